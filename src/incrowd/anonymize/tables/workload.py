"""What is asked for: tables of columns at levels of nested hierarchies. All of it is declared.

A cell of a table holds a quantity: the number of its rows, or the sum of a numeric column over
them. Quantity 0 is the number of rows, and quantity j the j-th column that is summed.

A column is an axis with a chain of levels, finest first. Above the coarsest declared level stands
the root, one group of everything: a column that a table leaves out is at its root. The component l
of an axis are the differences, at level l, between a group and the mean of its siblings, the groups
of the same parent at level l + 1. All components and the root together are the finest level.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Codes, Counts, Floats
from incrowd.errors import ParameterError

Columns: TypeAlias = tuple[int, ...]  # axes of a workload, ascending
Levels: TypeAlias = tuple[int, ...]  # a level for each of them
ResidualKey: TypeAlias = tuple[int, Columns, Levels]  # quantity, columns, component of each
Number = TypeVar("Number", np.int64, np.float64)

MOST_STEPS = 1_000_000  # of a column that is summed, so that whole numbers stay far below 2^63


@dataclass(frozen=True, eq=False)
class AxisLink:
    """From the groups of a level to their parents at the next: ``parents[c]`` is that of c."""

    parents: Codes
    order: Counts  # children by parent
    starts: Counts  # the first child of each parent, in this order
    children: Counts  # how many each parent has

    @property
    def siblings(self) -> Counts:
        """For each child the number of its parent's children, itself included."""
        return self.children[self.parents]

    @property
    def is_sorted(self) -> bool:
        """Whether children already stand by parent."""
        return bool((self.order[1:] > self.order[:-1]).all())

    def sum_children(self, table: npt.NDArray[Number], axis: int) -> npt.NDArray[Number]:
        """Return the table with the parents' sums along an axis."""
        if len(self.children) == 1:
            total: npt.NDArray[Number] = table.sum(axis=axis, keepdims=True)
            return total
        ordered = table if self.is_sorted else np.take(table, self.order, axis=axis)
        sums: npt.NDArray[Number] = np.add.reduceat(ordered, self.starts, axis=axis)
        return sums

    def spread_parents(self, table: npt.NDArray[Number], axis: int) -> npt.NDArray[Number]:
        """Return the table with each parent's number at each of its children.

        Below one single parent numpy's broadcasting does it, and costs no memory.
        """
        if len(self.children) == 1:
            return table
        return np.take(table, self.parents, axis=axis)


@dataclass(frozen=True, eq=False)
class TableAxis:
    """A column: ``size`` values at level 0, and the group of each of them at each coarser level.

    ``parents[l - 1][v]`` is the group of value v at level l. Groups of a level are numbered from 0,
    and none is empty. The root is not listed.
    """

    name: str
    size: int
    parents: tuple[Codes, ...] = ()

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ParameterError(self.name, "have at least one value", self.size)
        groups: Codes = np.arange(self.size, dtype=np.int32)
        for level, mapped in enumerate(self.parents, start=1):
            way_out = f"Look at level {level} of its hierarchy."
            if mapped.shape != (self.size,):
                requirement = f"give a group for each of its {self.size} values"
                raise ParameterError(self.name, requirement, mapped.shape, way_out)
            numbers = np.unique(mapped)
            if not np.array_equal(numbers, np.arange(len(numbers))):
                raise ParameterError(
                    self.name, "number its groups from 0", numbers[:9].tolist(), way_out
                )
            pairs = np.unique(np.stack([groups, mapped]), axis=1)
            if pairs.shape[1] != int(groups.max()) + 1:
                raise ParameterError(self.name, "have levels that nest", level, way_out)
            groups = mapped

    @property
    def root(self) -> int:
        """The number of the level above the declared ones, which has one group."""
        return len(self.parents) + 1

    def map_values(self, level: int) -> Codes:
        """Return the group of each value at a level."""
        if level == 0:
            return np.arange(self.size, dtype=np.int32)
        return self.parents[level - 1] if level < self.root else np.zeros(self.size, dtype=np.int32)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of groups of each level, the root included."""
        return tuple(int(self.map_values(level).max()) + 1 for level in range(self.root + 1))

    @cached_property
    def links(self) -> tuple[AxisLink, ...]:
        """The link from each level to the next."""
        links = []
        for level in range(self.root):
            parents = np.zeros(self.sizes[level], dtype=np.int32)
            parents[self.map_values(level)] = self.map_values(level + 1)
            order = np.argsort(parents, kind="stable").astype(np.int64)
            children = np.bincount(parents).astype(np.int64)
            links.append(AxisLink(parents, order, np.cumsum(children) - children, children))
        return tuple(links)

    def carries(self, component: int) -> bool:
        """Whether some group of a component has siblings, so that there is a difference."""
        return bool((self.links[component].children > 1).any())

    def ancestors(self, low: int, high: int) -> Codes:
        """Return the group at level ``high`` of each group at level ``low``."""
        groups = np.arange(self.sizes[low], dtype=np.int32)
        for level in range(low, high):
            groups = self.links[level].parents[groups]
        return groups

    def dilution(self, low: int, high: int) -> Floats:
        """Return the share that a group at level ``low`` gets of its ancestor's at ``high``."""
        share = np.ones(self.sizes[low])
        for level in range(low, high):
            share /= self.links[level].siblings[self.ancestors(low, level)]
        return share


@dataclass(frozen=True)
class SumColumn:
    """A numeric column that is summed: a row holds a whole number of steps, from 0 to ``steps``.

    Its value is ``lower`` plus so many times ``step``. Bounds and step are declared; what lies
    outside is moved to the nearer bound before anything is summed.
    """

    name: str
    lower: float
    step: float
    steps: int

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lower) and 0 < self.step < math.inf):
            raise ParameterError(self.name, "have finite bounds and a step above 0", self.step)
        if not 1 <= self.steps <= MOST_STEPS:
            raise ParameterError(
                self.name,
                f"have 1 to {MOST_STEPS:,} steps between its bounds",
                self.steps,
                "Choose another step.",
            )

    @property
    def upper(self) -> float:
        """The largest value."""
        return self.lower + self.step * self.steps

    @property
    def middle(self) -> float:
        """The value halfway between the bounds."""
        return self.lower + self.step * self.steps / 2

    @property
    def largest(self) -> float:
        """The largest absolute value; errors of sums count in multiples of it."""
        return max(abs(self.lower), abs(self.upper))


@dataclass(frozen=True)
class RequestedTable:
    """A table: a column's number for each of its axes, ascending, and the level of each.

    The variance of a table with twice the weight counts twice. A table without columns is the total
    of its ``quantity``: the number of rows, or the sum of a column.
    """

    columns: Columns
    levels: Levels
    weight: float = 1.0
    quantity: int = 0


@dataclass(frozen=True, eq=False)
class Workload:
    """The columns, the tables that are asked for, and the columns that are summed in some."""

    axes: tuple[TableAxis, ...]
    tables: tuple[RequestedTable, ...]
    sums: tuple[SumColumn, ...] = ()

    def __post_init__(self) -> None:
        if not self.tables:
            raise ParameterError("tables", "hold at least one table", ())
        for table in self.tables:
            self.check_table(table)

    def check_table(self, table: RequestedTable) -> None:
        """Refuse a table of columns, levels or a weight that there cannot be."""
        columns, levels = table.columns, table.levels
        way_out = f"Columns are numbered from 0 to {len(self.axes) - 1}, ascending."
        is_ascending = all(a < b for a, b in pairwise(columns))
        if not is_ascending or any(not 0 <= x < len(self.axes) for x in columns):
            raise ParameterError("columns", "be different columns in order", columns, way_out)
        if len(levels) != len(columns):
            raise ParameterError("levels", "give a level for each column", levels)
        for column, level in zip(columns, levels, strict=True):
            axis = self.axes[column]
            if not 0 <= level < axis.root:
                way_out = f"Column '{axis.name}' has levels 0 to {axis.root - 1}."
                raise ParameterError("levels", "name declared levels", level, way_out)
        if not 0 <= table.quantity <= len(self.sums):
            way_out = f"There are {len(self.sums)} columns to sum; 0 stands for the number of rows."
            raise ParameterError("quantity", "name a declared sum", table.quantity, way_out)
        if not 0 < table.weight < math.inf:
            raise ParameterError("weight", "be a finite number above 0", table.weight)

    def shape(self, columns: Columns, levels: Levels) -> tuple[int, ...]:
        """Return the shape of a table."""
        return tuple(self.axes[x].sizes[y] for x, y in zip(columns, levels, strict=True))

    def list_residuals(self, table: RequestedTable) -> Iterator[ResidualKey]:
        """Yield the keys of all residuals that a table is made of.

        A column at its root is left out, and so is a residual that carries nothing. A sum is made
        of residuals of its own and of those of the number of rows; see :mod:`.plan`.
        """
        choices = [
            [level for level in range(low, self.axes[x].root) if self.axes[x].carries(level)]
            + [self.axes[x].root]
            for x, low in zip(table.columns, table.levels, strict=True)
        ]
        for quantity in sorted({0, table.quantity}):
            for levels in product(*choices):
                yield quantity, *self.leave_out_roots(table.columns, levels)

    def leave_out_roots(self, columns: Columns, levels: Levels) -> tuple[Columns, Levels]:
        """Return columns and levels without the columns that are at their root."""
        pairs = zip(columns, levels, strict=True)
        below = [(x, level) for x, level in pairs if level < self.axes[x].root]
        return tuple(x for x, _ in below), tuple(level for _, level in below)

    def roll_up(
        self, counts: npt.NDArray[Number], low: tuple[Columns, Levels], high: tuple[Columns, Levels]
    ) -> npt.NDArray[Number]:
        """Return a table at coarser levels; columns that ``high`` leaves out are summed over."""
        levels = dict(zip(*high, strict=True))
        start = list(zip(*low, strict=True))
        gone = tuple(at for at, (x, _) in enumerate(start) if x not in levels)
        rolled: npt.NDArray[Number] = counts.sum(axis=gone) if gone else counts
        for at, (x, level) in enumerate(pair for pair in start if pair[0] in levels):
            for step in range(level, levels[x]):
                rolled = self.axes[x].links[step].sum_children(rolled, at)
        return rolled

    def covers(self, table: RequestedTable, other: RequestedTable) -> bool:
        """Whether the columns and levels of the other table can be summed up from this one."""
        levels = dict(zip(table.columns, table.levels, strict=True))
        pairs = zip(other.columns, other.levels, strict=True)
        return all(x in levels and levels[x] <= level for x, level in pairs)

    @cached_property
    def largest_tables(self) -> tuple[RequestedTable, ...]:
        """The tables of counts that cannot be summed up from another one, each once.

        Each table of sums has its table of counts.
        """
        return self.find_largest(0)

    def find_largest(self, quantity: int) -> tuple[RequestedTable, ...]:
        """Return the tables of a quantity that cannot be summed up from another one, each once."""
        largest: list[RequestedTable] = []
        by_columns: dict[Columns, list[RequestedTable]] = {}
        tables = {
            (x.columns, x.levels): replace(x, quantity=quantity)
            for x in self.tables
            if quantity in (0, x.quantity)
        }
        for table in sorted(tables.values(), key=lambda x: (-len(x.columns), sum(x.levels))):
            wider = (x for x in largest if len(x.columns) > len(table.columns))
            equal = by_columns.setdefault(table.columns, [])
            columns = set(table.columns)
            if any(self.covers(x, table) for x in equal) or any(
                columns <= set(x.columns) and self.covers(x, table) for x in wider
            ):
                continue
            largest.append(table)
            equal.append(table)
        return tuple(largest)
