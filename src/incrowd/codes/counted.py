"""Tables by their distinct tuples, with names: as counted, with kept columns, and as shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from incrowd.arrays import Places
from incrowd.codes.axis import Axis
from incrowd.codes.frequency import Frequencies, between, merged
from incrowd.codes.hierarchy import Hierarchy

COUNT = "count"  # the column of a table with counts that says how many rows each row stands for


@dataclass(frozen=True, eq=False)
class Counted:
    """The frequencies of some columns at some levels, and the hierarchies behind the codes."""

    names: tuple[str, ...]
    hierarchies: tuple[Hierarchy, ...]
    levels: tuple[int, ...]
    frequencies: Frequencies

    def by_label(self) -> Counted:
        """With tuples that look the same to a reader counted as one."""
        maps = [h.by_label(level) for h, level in zip(self.hierarchies, self.levels, strict=True)]
        return replace(self, frequencies=self.frequencies.rolled(maps))

    def rolled(self, levels: tuple[int, ...]) -> Counted:
        """The tuples at higher levels."""
        if levels == self.levels:
            return self
        maps = between(self.hierarchies, self.levels, levels)
        return replace(self, levels=levels, frequencies=self.frequencies.rolled(maps))

    def by_values(self) -> Counted:
        """The tuples at level 0, each group by one value of it: it rolls up as the group does."""
        maps = []
        for hierarchy, level in zip(self.hierarchies, self.levels, strict=True):
            group = hierarchy.groups[level]
            value = np.zeros(len(hierarchy.labels[level]), dtype=np.int32)
            value[group[::-1]] = np.arange(len(group), dtype=np.int32)[::-1]
            maps.append(value)
        nothing = (0,) * len(self.names)
        return replace(self, levels=nothing, frequencies=self.frequencies.rolled(maps))

    def part(self, names: Sequence[str]) -> Counted:
        """The tuples of some of the columns."""
        places = [self.names.index(name) for name in names]
        return Counted(
            tuple(names),
            tuple(self.hierarchies[at] for at in places),
            tuple(self.levels[at] for at in places),
            merged(self.frequencies.codes[:, places], self.frequencies.counts),
        )

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The columns laid out on lines."""
        return tuple(Axis(hierarchy, hierarchy.ordered) for hierarchy in self.hierarchies)


@dataclass(frozen=True, eq=False)
class Rows:
    """A table as distinct tuples: codes of level 0, then the columns that are kept as they are.

    ``counted`` has the generalised columns alone. ``frequencies`` has all; its i-th tuple
    belongs to tuple ``owner[i]`` of ``counted``. ``kept`` lists the values behind the codes
    of each kept column, in their order.
    """

    counted: Counted
    frequencies: Frequencies
    owner: Places
    kept: dict[str, list[object]]


@dataclass(frozen=True)
class Rest:
    """What is known of cells that are not shown, and were not brought here.

    ``likely`` is how many of their rows are in cells that mostly survive; ``sizes`` are rows in
    cells of 1, 2-3, 4-7, ... rows.
    """

    rows: int
    cells: int
    likely: int
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class CountNoise:
    """What is known of the noise in numbers of rows that are shown.

    Each has noise of its own, of a ``variance``; cells of a ``crowd`` of so many rows are shown
    more often than not.
    """

    variance: float
    crowd: float


@dataclass(frozen=True, eq=False)
class Shown:
    """A released table as its readers see it: the labels of each column, and how many rows.

    ``levels`` are those that the labels of each column belong to, None where that is open (as in
    local recoding, and in files of which nothing is known); empty if it is for all columns. Where
    the numbers of rows have noise, ``noise`` says what is known of it.
    """

    labels: tuple[Sequence[object], ...]
    frequencies: Frequencies
    levels: tuple[int | None, ...] = ()
    noise: CountNoise | None = None

    @property
    def local(self) -> bool:
        """Whether some column may show fine and coarse labels side by side."""
        return not self.levels or None in self.levels

    def used(self) -> Shown:
        """The same with the labels alone that some row shows."""
        codes, labels = self.frequencies.codes.copy(), []
        for at, texts in enumerate(self.labels):
            known, codes[:, at] = np.unique(codes[:, at], return_inverse=True)
            labels.append([texts[code] for code in known.tolist()])
        counted = Frequencies(codes, self.frequencies.counts)
        return replace(self, labels=tuple(labels), frequencies=counted)
