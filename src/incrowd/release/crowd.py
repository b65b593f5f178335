"""The picture of a crowd: how many people alike it takes to be shown, as little people."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from incrowd.privacy.presentation import round_crowd_size

_MOST = 60  # figures that are drawn
_ACROSS = 15
_WIDE, _HIGH = 20, 30  # of the room of a figure


@dataclass(frozen=True)
class Crowd:
    """So many people, or rows of people, drawn as figures that stand for ``each`` of them."""

    people: int
    each: int
    unit: Literal["people", "rows"] = "people"

    @property
    def places(self) -> list[tuple[int, int]]:
        """Where each figure stands."""
        number = math.ceil(self.people / self.each)
        return [(at % _ACROSS * _WIDE, at // _ACROSS * _HIGH) for at in range(number)]

    @property
    def size(self) -> tuple[int, int]:
        """How wide and how high the picture is."""
        number = len(self.places)
        return min(number, _ACROSS) * _WIDE, math.ceil(number / _ACROSS) * _HIGH

    @property
    def words(self) -> str:
        """What the picture shows, for whoever does not see it."""
        each = "" if self.each == 1 else f", each figure standing for {self.each:,}"
        unit = {"people": "person", "rows": "row"}[self.unit] if self.people == 1 else self.unit
        return f"{self.people:,} {unit}{each}"


def make_crowd(number: float, unit: Literal["people", "rows"] = "people") -> Crowd:
    """Return the crowd of a number of people, or rows, drawn with at most sixty figures."""
    people = round_crowd_size(number)
    each = 1
    while people > _MOST * each:
        each *= 10
    return Crowd(people, each, unit)
