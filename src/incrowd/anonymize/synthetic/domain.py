"""Columns with nested levels, laid out so that every group of a level is a run of neighbors.

A model sees a column as positions 0 to m - 1. Positions are its leaves (the values of its domain)
in an order in which the groups of every level are runs, so that a table is rolled up by adding
neighboring cells. Everything here is declared; nothing is read from a table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Bools, Codes, Counts, Places
from incrowd.codes.hierarchy import Hierarchy
from incrowd.errors import IncrowdError, ParameterError

Columns: TypeAlias = tuple[int, ...]  # columns of a domain, ascending
Levels: TypeAlias = tuple[int, ...]  # a level for each of them
Number = TypeVar("Number", np.int64, np.float64)


class RulesError(IncrowdError):
    """Rules that no row can satisfy, or that a model cannot hold."""


@dataclass(frozen=True, eq=False)
class ModelColumn:
    """A column: ``groups[l][p]`` is the group at level l of the leaf at position p.

    Level 0 has a group for each leaf; groups are numbered along the positions. ``codes[p]`` is the
    code, in the table, of the leaf at position p; ``level_numbers[l]`` is the number that level l
    has in the hierarchy.
    """

    groups: tuple[Codes, ...]
    codes: Codes
    level_numbers: tuple[int, ...]

    @property
    def height(self) -> int:
        """The number of levels, the leaves included."""
        return len(self.groups)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of groups of each level."""
        return tuple(int(group[-1]) + 1 for group in self.groups)

    @cached_property
    def starts(self) -> tuple[Places, ...]:
        """The first position of each group, level by level."""
        return tuple(np.flatnonzero(np.diff(group, prepend=-1)) for group in self.groups)

    def parents(self, low: int, high: int) -> Codes:
        """Return the group at level ``high`` of each group at level ``low``."""
        return self.groups[high][self.starts[low]]

    def runs(self, low: int, high: int) -> Codes:
        """Return the first group at level ``low`` of each group at level ``high``."""
        return self.groups[low][self.starts[high]]

    @cached_property
    def positions(self) -> Codes:
        """The position of each code; -1 for codes that are no leaf."""
        positions = np.full(int(self.codes.max()) + 1, -1, dtype=np.int32)
        positions[self.codes] = np.arange(len(self.codes), dtype=np.int32)
        return positions


def make_column(levels: Sequence[npt.ArrayLike], codes: npt.ArrayLike | None = None) -> ModelColumn:
    """Return a column from the group of each leaf at each level, the leaves themselves first.

    Levels that merge nothing, or everything, carry no information and are left out.

    Raises:
        ParameterError: if a level does not nest in the one below.

    """
    listed = [np.asarray(level, dtype=np.int64) for level in levels]
    if not listed or not len(listed[0]) or any(len(level) != len(listed[0]) for level in listed):
        raise ParameterError("levels", "give a group for each of one or more leaves", len(listed))
    if len(np.unique(listed[0])) != len(listed[0]):
        raise ParameterError("levels", "begin with a group for each leaf", listed[0].tolist()[:9])
    for number, (low, high) in enumerate(pairwise(listed), start=1):
        if len(np.unique(np.stack([low, high]), axis=1).T) != len(np.unique(low)):
            raise ParameterError("levels", f"nest: a group splits at level {number}", number)
    order = np.lexsort(listed)  # the top level counts most
    kept_levels: list[Codes] = []
    numbers: list[int] = []
    for number, level in enumerate(listed):
        along = level[order]
        groups = np.cumsum(np.append(False, along[1:] != along[:-1])).astype(np.int32)
        if not kept_levels or 1 <= groups[-1] < kept_levels[-1][-1]:
            kept_levels.append(groups)
            numbers.append(number)
    leaf_codes = np.arange(len(order)) if codes is None else np.asarray(codes)
    return ModelColumn(tuple(kept_levels), leaf_codes[order].astype(np.int32), tuple(numbers))


def column_of(hierarchy: Hierarchy, *, null: bool = True, outside: bool = True) -> ModelColumn:
    """Return a column of a closed hierarchy.

    Null and what is outside the domain are leaves if asked.
    """
    if hierarchy.open:
        requirement = "be closed: list the values, or declare bounds"
        raise ParameterError("hierarchy", requirement, "an open domain")
    extra_leaves = [null] * 1 + [outside] * 1
    leaves = np.append(np.ones(len(hierarchy.values), dtype=bool), extra_leaves)
    levels = [group[leaves] for group in hierarchy.groups]
    return make_column([np.flatnonzero(leaves), *levels[1:]], np.flatnonzero(leaves))


@dataclass(frozen=True, eq=False)
class Domain:
    """All columns, and the rules that every row obeys.

    A rule is a table of some columns' leaves, by position: True where a row may be.
    """

    columns: tuple[ModelColumn, ...]
    rules: Mapping[Columns, Bools] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.columns:
            raise ParameterError("columns", "hold at least one column", ())
        for columns, allowed in self.rules.items():
            if allowed.shape != self.shape(columns, (0,) * len(columns)) or not allowed.any():
                raise RulesError(f"The rule about columns {columns} allows no row.")

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def leaves(self) -> tuple[int, ...]:
        """The number of leaves of each column."""
        return tuple(column.sizes[0] for column in self.columns)

    def shape(self, columns: Columns, levels: Levels) -> tuple[int, ...]:
        """Return the shape of a table."""
        pairs = zip(columns, levels, strict=True)
        return tuple(self.columns[column].sizes[level] for column, level in pairs)

    def cells(self, columns: Columns, levels: Levels) -> int:
        """Return the number of cells of a table."""
        return math.prod(self.shape(columns, levels))

    def tops(self, columns: Columns) -> Levels:
        """Return the coarsest level of each column."""
        return tuple(self.columns[column].height - 1 for column in columns)

    def roll_up(
        self, table: npt.NDArray[Number], columns: Columns, low: Levels, high: Levels
    ) -> npt.NDArray[Number]:
        """Return a table at coarser levels."""
        for axis, (column, start, end) in enumerate(zip(columns, low, high, strict=True)):
            if start != end:
                table = np.add.reduceat(table, self.columns[column].runs(start, end), axis=axis)
        return table

    @cached_property
    def rule_levels(self) -> tuple[int, ...]:
        """For each column the coarsest level at which every rule about it can be told."""
        levels = list(self.tops(tuple(range(len(self)))))
        for columns, allowed in self.rules.items():
            for axis, column in enumerate(columns):
                while not self._is_constant(allowed, axis, column, levels[column]):
                    levels[column] -= 1
        return tuple(levels)

    def _is_constant(self, allowed: Bools, axis: int, column: int, level: int) -> bool:
        """Whether all leaves of a group are alike to a rule."""
        model_column = self.columns[column]
        firsts = model_column.starts[level][model_column.groups[level]]
        return bool((np.take(allowed, firsts, axis=axis) == allowed).all())

    def encode(self, codes: Codes) -> Codes:
        """Tuples of codes as positions.

        Raises:
            ParameterError: if a code is no leaf of its column.

        """
        positions = np.empty(codes.shape, dtype=np.int32)
        for at, column in enumerate(self.columns):
            column_codes = codes[:, at]
            in_range = (column_codes >= 0) & (column_codes < len(column.positions))
            places = np.where(in_range, column.positions[np.where(in_range, column_codes, 0)], -1)
            if (places < 0).any():
                bad = int(column_codes[np.argmax(places < 0)])
                raise ParameterError("codes", f"be leaves of column {at}", bad)
            positions[:, at] = places
        return positions

    def decode(self, positions: Codes) -> Codes:
        """Tuples of positions as codes."""
        parts = [column.codes[positions[:, at]] for at, column in enumerate(self.columns)]
        return np.column_stack(parts).astype(np.int32)


class TableCounter:
    """Counts of small tables, from tuples of codes and how many rows have each.

    It is the private table. Called with columns and levels it returns the counts of one small
    table, its axes in the order of the domain's positions; an engine that counts by itself is
    called in the same way.
    """

    def __init__(self, domain: Domain, codes: Codes, counts: Counts | None = None) -> None:
        self._domain = domain
        self._positions = [part.astype(np.int64) for part in domain.encode(codes).T]
        self._counts = None if counts is None or (counts == 1).all() else counts
        self._rows = len(codes) if self._counts is None else int(self._counts.sum())

    def __call__(self, columns: Columns, levels: Levels) -> Counts:
        """Return the counts of some columns at some levels; of no column, the number of rows."""
        if not columns:
            return np.array(self._rows, dtype=np.int64)
        shape = self._domain.shape(columns, levels)
        key: npt.NDArray[np.integer] | None = None
        for column, level, size in zip(columns, levels, shape, strict=True):
            part = self._positions[column]
            part = self._domain.columns[column].groups[level][part] if level else part
            key = part if key is None else key * size + part
        assert key is not None
        # Sums of whole numbers below 2^53 are exact in floats.
        table = np.bincount(key, self._counts, minlength=math.prod(shape))
        return table.astype(np.int64).reshape(shape)
