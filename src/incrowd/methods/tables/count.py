"""Exact counts of small tables of the private table, from its distinct tuples, wherever they are.

On this machine a table is counted from the tuples; where these are on other machines, there: one
pass over them for each table, of which only its cells come here. What is counted is private until
noise is added.
"""

from __future__ import annotations

import math

import numpy as np

from incrowd.anonymize.tables.workload import Columns, Levels
from incrowd.arrays import Codes, Counts, Places
from incrowd.codes.counted_table import CountedTable
from incrowd.methods.safe.remote_counts import RemoteCountedTable
from incrowd.methods.tables.summed import RemoteSummedTable, SummedTable
from incrowd.release.product import TrueCounts
from incrowd.release.tables_column import TabulatedColumn

_EXACT = 2**53  # floats hold whole numbers up to here
_BASE = 32  # of the digits of steps
_KEPT = 1 << 24  # cells of tables that are counted once for all


def make_cell_counter(
    table: CountedTable | RemoteCountedTable, columns: tuple[TabulatedColumn, ...]
) -> TrueCounts:
    """Return what counts tables of the private table by its distinct tuples."""
    if isinstance(table, RemoteCountedTable):
        return RemoteCellCounter(table, columns)
    return LocalCellCounter(table, columns)


class LocalCellCounter:
    """Counts from tuples on this machine."""

    def __init__(self, table: CountedTable, columns: tuple[TabulatedColumn, ...]) -> None:
        codes, counts = table.frequencies.codes, table.frequencies.counts
        groups = [column.positions[codes[:, at]] for at, column in enumerate(columns)]
        is_counted = np.ones(len(codes), dtype=bool)
        for part in groups:
            is_counted &= part >= 0
        steps = table.steps if isinstance(table, SummedTable) else ()
        without = table.without if isinstance(table, SummedTable) else 0
        self.excluded: int | None = int(counts[~is_counted].sum()) + without
        self._columns = columns
        self._positions = [part[is_counted].astype(np.int64) for part in groups]
        row_counts = counts[is_counted]
        self._numbers = [
            None if (row_counts == 1).all() else row_counts, *(part[is_counted] for part in steps)
        ]  # fmt: skip
        self._totals = [int(row_counts.sum()), *(int(part[is_counted].sum()) for part in steps)]
        self._counted: dict[tuple[int, Columns, Levels], Counts] = {}  # judging asks for them again
        self._kept = 0  # cells in them
        self._last: tuple[Columns, Levels, Places] = (), (), np.zeros(1, dtype=np.int64)

    def __call__(self, quantity: int, columns: Columns, levels: Levels) -> Counts:
        """Return a quantity of some columns at some levels; of no column, the total."""
        if not columns:
            return np.array(self._totals[quantity], dtype=np.int64)
        request = quantity, columns, levels
        if request in self._counted:
            return self._counted[request]
        cells = self._count(quantity, columns, levels)
        if self._kept + cells.size <= _KEPT:
            cells.flags.writeable = False
            self._counted[request] = cells
            self._kept += cells.size
        return cells

    def _find_places(self, columns: Columns, levels: Levels) -> Places:
        """Return the cell of each tuple; tables one after the other often begin alike."""
        start = (columns[:-1], levels[:-1])
        if not start[0]:
            places = np.zeros(1, dtype=np.int64)
        elif self._last[:2] == start:
            places = self._last[2]
        else:
            places = self._find_places(*start)
            self._last = (*start, places)
        groups = self._columns[columns[-1]].list_groups(levels[-1])
        part = self._positions[columns[-1]]
        return places * (int(groups.max()) + 1) + (groups[part] if levels[-1] else part)

    def _count(self, quantity: int, columns: Columns, levels: Levels) -> Counts:
        pairs = zip(columns, levels, strict=True)
        shape = [int(self._columns[x].list_groups(level).max()) + 1 for x, level in pairs]
        key = self._find_places(columns, levels)
        numbers, size = self._numbers[quantity], math.prod(shape)
        if self._totals[quantity] >= _EXACT:
            cells = np.zeros(size, dtype=np.int64)
            np.add.at(cells, key, 1 if numbers is None else numbers)
            return cells.reshape(shape)
        # Sums of whole numbers below 2^53 are exact in floats.
        return np.bincount(key, numbers, minlength=size).astype(np.int64).reshape(shape)


class RemoteCellCounter:
    """Counts from tuples that are on other machines.

    Steps of a summed column are added up digit by digit, so that few tuples come here.
    """

    def __init__(self, table: RemoteCountedTable, columns: tuple[TabulatedColumn, ...]) -> None:
        self._columns = columns
        self._tuples = table.with_steps if isinstance(table, RemoteSummedTable) else table.tuples
        self._sums = table.sums if isinstance(table, RemoteSummedTable) else ()
        self.excluded: int | None = None

    def __call__(self, quantity: int, columns: Columns, levels: Levels) -> Counts:
        """Return a quantity of some columns at some levels; of no column, the total."""
        if not quantity:
            return self._add(0, 0, columns, levels)
        digits, most = 0, self._sums[quantity - 1].steps
        while most:
            digits, most = digits + 1, most // _BASE
        parts = [
            self._add(quantity, digit, columns, levels) * _BASE**digit for digit in range(digits)
        ]
        cells: Counts = np.sum(parts, axis=0, dtype=np.int64)
        return cells

    def _add(self, quantity: int, digit: int, columns: Columns, levels: Levels) -> Counts:
        """Return the rows in each cell, each counted by a digit of its steps in a quantity."""
        level_of = dict(zip(columns, levels, strict=True))
        places = [at for at in range(len(self._columns)) if at in level_of or self._can_miss(at)]
        maps = [self._map(at, level_of.get(at)) for at in places]
        sizes = [int(self._columns[at].list_groups(level_of[at]).max()) + 1 for at in columns]
        # A code past the last one marks what is not counted.
        limits = [sizes[columns.index(at)] if at in level_of else 1 for at in places]
        for at, request in enumerate(self._sums, 1):
            places.append(len(self._columns) + at - 1)
            maps.append(_map_digit(request.steps, digit if at == quantity else None))
            limits.append(_BASE if at == quantity else 1)
        tuples = self._tuples.select_columns(places).roll_up(maps)
        is_counted = (tuples.codes < np.array(limits)).all(axis=1)
        codes, rows = tuples.codes[is_counted], tuples.counts[is_counted]
        if quantity:
            rows = rows * codes[:, places.index(len(self._columns) + quantity - 1)]
        if not columns:
            return np.array(rows.sum(), dtype=np.int64)
        cells = np.zeros(sizes, dtype=np.int64)
        np.add.at(cells, tuple(codes[:, [places.index(at) for at in columns]].T), rows)
        return cells

    def _can_miss(self, at: int) -> bool:
        return bool((self._columns[at].positions < 0).any()) or at == 0

    def _map(self, at: int, level: int | None) -> Codes:
        """From codes of level 0 to groups of a level, or to 0; one more for what is not counted."""
        column = self._columns[at]
        groups = np.zeros(column.size, np.int32) if level is None else column.list_groups(level)
        positions = column.positions
        mapped: Codes = np.where(positions >= 0, groups[positions], groups.max() + 1)
        return mapped.astype(np.int32)


def _map_digit(steps: int, digit: int | None) -> Codes:
    """From steps to one of their digits, or to 0; past the last one for what is no number."""
    numbers = np.arange(steps + 2, dtype=np.int32)
    digits = numbers * 0 if digit is None else numbers // _BASE**digit % _BASE
    digits[-1] = 1 if digit is None else _BASE
    return digits.astype(np.int32)
