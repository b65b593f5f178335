"""What to expect of households that are published whole, with their people.

Households of 1, 2, ..., m people are taken to be equally frequent, and the people of one to be
independent of each other and of the household. The cell of a household of j people then has the
share of its own groups, times those of each person, times the j! orders in which the same people
may be named (fewer where some are equal). Real households are less even: couples and children go
together, so more of them agree than is expected here; small ones are more frequent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping

import numpy as np

from incrowd.arrays import Floats, Places
from incrowd.measure.forecast import (
    PER_NAT,
    GroupShares,
    Levels,
    TableForecast,
    Waves,
    round_up_points,
)


class HouseholdForecast(TableForecast):
    """What households with their people can be expected to publish, at any levels and number.

    ``columns`` has those of households, named by ``own_columns``, and those of people. A household
    has up to ``people`` of these.
    """

    def __init__(
        self,
        columns: Mapping[str, Mapping[int, GroupShares]],
        likely: Callable[[Floats], Floats],
        own_columns: Collection[str],
        people: int,
    ) -> None:
        self._own_columns, self._people = frozenset(own_columns), people
        self._shift = math.ceil(math.lgamma(people + 1) * PER_NAT)
        super().__init__(columns, likely)

    def _count_points(self) -> int:
        width = 0.0
        for name in self._columns:
            times = 1 if name in self._own_columns else self._people
            width += times * (2 - PER_NAT * self._find_smallest_log(name))
        return round_up_points(width + 2 * PER_NAT * (1 + math.log(self._people)) + self._shift)

    def _find_cells(self, levels: Levels) -> tuple[Places, Floats]:
        """Return the cells of a scheme: households of each number of people, in equal parts."""
        ones = np.ones(self._points // 2 + 1, dtype=np.complex128)
        household, person = ones, ones
        for name, level in levels.items():
            if name in self._own_columns:
                household = household * self._waves[name, level]
            else:
                person = person * self._waves[name, level]
        total: Waves = np.zeros_like(ones)
        wave = household
        for people in range(1, self._people + 1):
            wave = wave * person
            total = total + wave * self._make_order_wave(people)
        places, mass = self._find_wave_cells(total / self._people)
        return places - self._shift, mass

    def _make_order_wave(self, people: int) -> Waves:
        """Return the factor j! of the orders of j people, and the part that such households are."""
        log_share = math.lgamma(people + 1) - math.log(self._people) - self._shift / PER_NAT
        point: Waves = np.fft.rfft(
            self._put_on_grid(GroupShares(np.array([log_share]), np.ones(1)))
        )
        return point

    def _iterate_finer_cells(self, levels: Levels) -> Iterator[tuple[str, tuple[Places, Floats]]]:
        for name, level in levels.items():
            if (name, level - 1) in self._waves:
                yield name, self._find_cells({**levels, name: level - 1})
