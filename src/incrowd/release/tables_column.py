"""A column of tables of counts as recipients see it: its groups, level by level, and its total.

Groups of a level are numbered in their declared order; null comes after them, and then the label
``other``, each if the column has it. Above the declared levels stands the total, one group of
everything: its level is ``root``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Codes, Counts, Floats, Places
from incrowd.codes.hierarchy import Hierarchy

Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True, eq=False)
class ColumnLines:
    """The lines of a table along one column: the level and the number of each group, its label.

    Every group stands before its parts.
    """

    levels: Codes
    groups: Codes
    labels: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.levels)

    def find_level(self, level: int) -> Places:
        """Return the places of the groups of a level, in the order of their numbers."""
        places = np.flatnonzero(self.levels == level)
        return places[np.argsort(self.groups[places], kind="stable")]


@dataclass(frozen=True, eq=False)
class TabulatedColumn:
    """A column: its hierarchy, and whether null and other values have a group of their own."""

    name: str
    hierarchy: Hierarchy
    has_null: bool
    has_other: bool

    @property
    def root(self) -> int:
        """The level of the total."""
        return self.hierarchy.height - int(self.hierarchy.is_rooted)

    @cached_property
    def codes(self) -> Codes:
        """The code in the hierarchy of each finest group."""
        hierarchy, listed = self.hierarchy, [*range(len(self.hierarchy.values))]
        listed += [hierarchy.null] if self.has_null else []
        listed += [hierarchy.outside] if self.has_other else []
        return np.array(listed, dtype=np.int32)

    @property
    def size(self) -> int:
        """The number of finest groups."""
        return len(self.codes)

    @cached_property
    def positions(self) -> Codes:
        """The finest group of each code of the hierarchy; -1 for what is not counted.

        Without a group of its own, a value outside the domain is missing.
        """
        positions = np.full(len(self.hierarchy.values) + 2, -1, dtype=np.int32)
        positions[self.codes] = np.arange(self.size, dtype=np.int32)
        if not self.has_other:
            positions[self.hierarchy.outside] = positions[self.hierarchy.null]
        return positions

    def list_groups(self, level: int) -> Codes:
        """Return the group at a level of each finest group."""
        if level >= self.root:
            return np.zeros(self.size, dtype=np.int32)
        numbers = self.hierarchy.groups[level][self.codes]
        return np.unique(numbers, return_inverse=True)[1].astype(np.int32)

    def list_labels(self, level: int, total: str) -> tuple[str | None, ...]:
        """Return the labels of the groups of a level, or that of the total."""
        if level >= self.root:
            return (total,)
        labels = self.hierarchy.labels[level]
        used_codes = np.unique(self.hierarchy.groups[level][self.codes])
        return tuple(labels[code] for code in used_codes.tolist())

    def list_parents(self, low: int, high: int) -> Codes:
        """Return the group at level ``high`` of each group at level ``low``."""
        below = self.list_groups(low)
        parents = np.zeros(int(below.max()) + 1, dtype=np.int32)
        parents[below] = self.list_groups(high)
        return parents

    def count_lines(self, level: int, *, totals: bool) -> int:
        """Return how many lines a table has along this column, from a level on."""
        levels = range(level, self.root + 1) if totals else (level,)
        return sum(int(self.list_groups(x).max()) + 1 for x in levels)

    def list_lines(self, level: int, total: str | None) -> ColumnLines:
        """Return the lines from a level on: with its totals, if these have a label."""
        if total is None:
            labels = self.list_labels(level, "")
            groups = np.arange(len(labels), dtype=np.int32)
            return ColumnLines(np.full(len(labels), level, dtype=np.int32), groups, labels)
        paths = []
        for low in range(level, self.root + 1):
            labels = self.list_labels(low, total)
            above = [self.list_parents(low, high).tolist() for high in range(self.root, low, -1)]
            for group, label in enumerate(labels):
                paths.append(((*(groups[group] for groups in above), group), low, label))
        paths.sort(key=lambda entry: entry[0])
        return ColumnLines(
            np.array([low for _, low, _ in paths], dtype=np.int32),
            np.array([path[-1] for path, _, _ in paths], dtype=np.int32),
            tuple(label for _, _, label in paths),
        )


def sum_groups(cells: npt.NDArray[Number], axis: int, groups: Codes) -> npt.NDArray[Number]:
    """Return the sums of the groups along an axis."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    sums: npt.NDArray[Number] = np.add.reduceat(np.take(cells, order, axis=axis), starts, axis=axis)
    return sums


def add_totals(
    cells: npt.NDArray[Number],
    columns: tuple[TabulatedColumn, ...],
    levels: tuple[int, ...],
    lines: tuple[ColumnLines, ...],
) -> npt.NDArray[Number]:
    """Return a table with all lines, each the sum of its parts, from its finest cells."""
    for axis, (column, level, listed) in enumerate(zip(columns, levels, lines, strict=True)):
        if len(listed) == cells.shape[axis]:
            continue  # without totals the lines are the cells
        shape = [*cells.shape]
        shape[axis] = len(listed)
        wider = np.empty(shape, dtype=cells.dtype)
        for low in range(level, column.root + 1):
            part = sum_groups(cells, axis, column.list_parents(level, low))
            wider[(slice(None),) * axis + (listed.find_level(low),)] = part
        cells = wider
    return cells


def locate_lines(lines: tuple[ColumnLines, ...], start: int, stop: int) -> list[Places]:
    """Return where, along each column, the lines of a table are, from a first up to a last one.

    The last column changes from line to line.
    """
    left = np.arange(start, stop, dtype=np.int64)
    places: list[Places] = []
    for listed in reversed(lines):
        above = left // len(listed)
        places.append(left - above * len(listed))
        left = above
    return places[::-1]


def place_levels(
    columns: tuple[TabulatedColumn, ...],
    lines: tuple[ColumnLines, ...],
    levels: tuple[int, ...],
    blocks: dict[tuple[int, ...], Floats],
) -> Floats:
    """Return a table with all lines, from its blocks: one for each choice of levels."""
    table = np.empty([len(listed) for listed in lines])
    for chosen in list_level_choices(columns, lines, levels):
        places = [listed.find_level(level) for listed, level in zip(lines, chosen, strict=True)]
        table[np.ix_(*places)] = blocks[chosen]
    return table


def list_level_choices(
    columns: tuple[TabulatedColumn, ...],
    lines: tuple[ColumnLines, ...],
    levels: tuple[int, ...],
) -> list[tuple[int, ...]]:
    """Return the choices of a level for each column that the lines show."""
    level_choices = [
        [low for low in range(level, column.root + 1) if (listed.levels == low).any()]
        for column, listed, level in zip(columns, lines, levels, strict=True)
    ]
    return list(product(*level_choices))


def find_outside(codes: Codes, columns: tuple[TabulatedColumn, ...]) -> tuple[Codes, Counts]:
    """Return tuples of finest groups for those of codes, and which have a group in each column."""
    groups = np.column_stack(
        [column.positions[codes[:, at]] for at, column in enumerate(columns)]
    ).astype(np.int32)
    return groups, np.flatnonzero((groups >= 0).all(axis=1))
