"""A release as an attacker reads it, the people that he is after, and which rows may be theirs.

A row fits a person in a column if its label covers the person's value. Who knows some columns of a
person looks for the rows that fit in most of them; if the knowledge is right and the row is shown,
these are the rows that fit in all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Bools, Codes, Counts, Floats, Places
from incrowd.codes.frequency import Frequencies, keys
from incrowd.measure.labels import Cover

_CELLS = 20_000_000  # comparisons of a person with a class that are held at once


@dataclass(frozen=True, eq=False)
class Seen:
    """The classes of a release: ``codes`` are labels of the columns ``names``, ``counts`` rows.

    ``covers`` says what the labels of each column cover. ``drawn`` is the chance that a person's
    row was drawn into the release at all.
    """

    names: tuple[str, ...]
    codes: Codes
    counts: Counts
    covers: tuple[Cover, ...]
    drawn: float = 1.0

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def rows(self) -> int:
        """How many rows are shown."""
        return int(self.counts.sum())

    def part(self, columns: Sequence[int]) -> tuple[Seen, Places]:
        """What is seen of some columns, and the class that each class becomes."""
        chosen = self.codes[:, list(columns)]
        _, first, at = np.unique(keys(chosen), return_index=True, return_inverse=True)
        counts = np.bincount(at, weights=self.counts, minlength=len(first)).astype(np.int64)
        part = replace(
            self,
            names=tuple(self.names[column] for column in columns),
            codes=chosen[first],
            counts=counts,
            covers=tuple(self.covers[column] for column in columns),
        )
        return part, at.astype(np.int64)

    def without_stars(self) -> Seen:
        """Without the rows that show nothing at all; they fit everybody and name nobody."""
        starred = [cover.starred[self.codes[:, at]] for at, cover in enumerate(self.covers)]
        shown = ~np.all(starred, axis=0) if starred else np.ones(len(self), dtype=bool)
        return replace(self, codes=self.codes[shown], counts=self.counts[shown])

    def near(self, points: Codes) -> Iterator[Near]:
        """The classes that fit each of some people in most columns, in parts."""
        size = max(1, _CELLS // max(len(self), 1))
        for start in range(0, len(points), size):
            some = points[start : start + size]
            fitting = self._fitting(some)
            most = fitting.max(axis=1, initial=0)
            person, place = np.nonzero(fitting == most[:, None])
            ends = np.searchsorted(person, np.arange(len(some) + 1))
            yield Near(slice(start, start + len(some)), most.astype(np.int64), place, ends)

    def _fitting(self, points: Codes) -> npt.NDArray[np.uint8]:
        """In how many columns each class (across) fits each person (down)."""
        found = np.zeros((len(points), len(self)), dtype=np.uint8)
        for at, cover in enumerate(self.covers):
            found += fits(cover, points[:, at])[:, self.codes[:, at]]
        return found


@dataclass(frozen=True, eq=False)
class Near:
    """For the people of a ``part``: in how many columns the nearest classes fit, and which.

    Person i is nearest to the classes ``place[ends[i] : ends[i + 1]]``.
    """

    part: slice
    most: Places
    place: Places
    ends: Places

    def sums(self, weights: Counts | Floats) -> Floats:
        """For each person, what the nearest classes weigh together; rows of a matrix, too."""
        upto = np.concatenate([np.zeros_like(weights[:1]), np.cumsum(weights[self.place], axis=0)])
        return np.asarray(upto[self.ends[1:]] - upto[self.ends[:-1]], dtype=np.float64)


def fits(cover: Cover, places: Codes) -> npt.NDArray[np.uint8]:
    """Whether each label (across) covers each position (down)."""
    found = (cover.low <= places[:, None]) & (places[:, None] <= cover.high)
    for label, covered in cover.sets.items():
        found[:, label] = np.isin(places, covered)
    return found.astype(np.uint8)


@dataclass(frozen=True, eq=False)
class People:
    """Some people, each a row: positions on the axes of all columns."""

    points: Codes

    def __len__(self) -> int:
        return len(self.points)

    def some(self, number: int, rng: np.random.Generator) -> People:
        """So many of them, at random; all if there are fewer."""
        if len(self) <= number:
            return self
        return People(self.points[rng.choice(len(self), number, replace=False)])

    def mistaken(self, errors: float, rng: np.random.Generator) -> People:
        """As an attacker has them who is wrong about each value with a given chance.

        A wrong value is that of another of these people.
        """
        points = self.points.copy()
        for column in points.T:
            wrong: Bools = rng.random(len(column)) < errors
            column[wrong] = rng.choice(column, int(wrong.sum()))
        return People(points)


def people(frequencies: Frequencies, number: int, rng: np.random.Generator) -> People:
    """So many random rows of a table that was counted by positions, none of them twice."""
    total = frequencies.total
    chosen = (
        np.arange(total) if total <= number else np.sort(rng.choice(total, number, replace=False))
    )
    owner = np.searchsorted(np.cumsum(frequencies.counts), chosen, side="right")
    return People(frequencies.codes[owner])
