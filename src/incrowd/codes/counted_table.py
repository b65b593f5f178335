"""Tables by their distinct tuples, with names: as counted, with kept columns, and as shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from incrowd.arrays import Codes, Places
from incrowd.codes.axis import Axis
from incrowd.codes.frequency import Frequencies, map_levels, merge_tuples
from incrowd.codes.hierarchy import Hierarchy

if TYPE_CHECKING:
    from incrowd.codes.person_sets import PersonSets

COUNT = "count"  # the column of a table with counts that says how many rows each row stands for


@dataclass(frozen=True, eq=False)
class CountedTable:
    """The frequencies of some columns at some levels, and the hierarchies behind the codes."""

    names: tuple[str, ...]
    hierarchies: tuple[Hierarchy, ...]
    levels: tuple[int, ...]
    frequencies: Frequencies

    def merge_labels(self) -> Self:
        """Return the table with tuples that look the same to a recipient counted as one."""
        maps = [
            h.map_equal_labels(level)
            for h, level in zip(self.hierarchies, self.levels, strict=True)
        ]
        return self._map_codes(maps)

    def roll_up(self, levels: tuple[int, ...]) -> Self:
        """Return the tuples at higher levels."""
        if levels == self.levels:
            return self
        maps = map_levels(self.hierarchies, self.levels, levels)
        return replace(self._map_codes(maps), levels=levels)

    def represent_by_values(self) -> Self:
        """Return the tuples at level 0: one value per group, which rolls up as the group does."""
        base_levels = (0,) * len(self.names)
        return replace(self._map_codes(self._map_to_values()), levels=base_levels)

    def _map_to_values(self) -> list[Codes]:
        maps = []
        for hierarchy, level in zip(self.hierarchies, self.levels, strict=True):
            group = hierarchy.groups[level]
            value = np.zeros(len(hierarchy.labels[level]), dtype=np.int32)
            value[group[::-1]] = np.arange(len(group), dtype=np.int32)[::-1]
            maps.append(value)
        return maps

    def _map_codes(self, maps: Sequence[Codes]) -> Self:
        """Return the table with the codes of each column mapped; equal tuples are merged."""
        return replace(self, frequencies=self.frequencies.roll_up(maps))

    def select_columns(self, names: Sequence[str]) -> CountedTable:
        """Return the tuples of some of the columns."""
        places = [self.names.index(name) for name in names]
        return CountedTable(
            tuple(names),
            tuple(self.hierarchies[at] for at in places),
            tuple(self.levels[at] for at in places),
            merge_tuples(self.frequencies.codes[:, places], self.frequencies.counts),
        )

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The columns laid out on lines."""
        return tuple(Axis(hierarchy, hierarchy.ordered) for hierarchy in self.hierarchies)


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """A table as distinct tuples: codes of level 0, then the columns that are kept as they are.

    ``counted`` has the generalized columns alone. ``frequencies`` has all; its i-th tuple
    belongs to tuple ``owner[i]`` of ``counted``. ``kept`` lists the values behind the codes
    of each kept column, in their order. Where people may have several rows, ``people`` has them by
    their sets of tuples of ``counted``.
    """

    counted: CountedTable
    frequencies: Frequencies
    owner: Places
    kept: dict[str, list[object]]
    people: PersonSets | None = None


@dataclass(frozen=True)
class SuppressedCells:
    """Summary of the cells that are not published, and were not brought here.

    ``likely`` is how many of their rows are in cells that mostly survive; ``sizes`` are rows in
    cells of 1, 2-3, 4-7, ... rows.
    """

    rows: int
    cells: int
    likely: int
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class CountNoise:
    """The noise in the row counts that are published, as far as it is known.

    Each has noise of its own, of a ``variance``; cells of a ``crowd`` of so many rows are shown
    more often than not.
    """

    variance: float
    crowd: float


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """A released table as recipients see it: the labels of each column, and how many rows.

    ``levels`` are those that the labels of each column belong to, None where that is open (as in
    local recoding, and in files of which nothing is known); empty if it is for all columns. Where
    the numbers of rows have noise, ``noise`` says what is known of it.
    """

    labels: tuple[Sequence[object], ...]
    frequencies: Frequencies
    levels: tuple[int | None, ...] = ()
    noise: CountNoise | None = None

    @property
    def is_local(self) -> bool:
        """Whether some column may show fine and coarse labels side by side."""
        return not self.levels or None in self.levels

    def drop_unused_labels(self) -> PublishedTable:
        """Return the same table with only the labels that some row shows."""
        codes, labels = self.frequencies.codes.copy(), []
        for at, texts in enumerate(self.labels):
            used_codes, codes[:, at] = np.unique(codes[:, at], return_inverse=True)
            labels.append([texts[code] for code in used_codes.tolist()])
        frequencies = Frequencies(codes, self.frequencies.counts)
        return replace(self, labels=tuple(labels), frequencies=frequencies)
