"""Exact counts of small tables of the private table, from its distinct tuples, wherever they are.

On this machine a table is counted from the tuples; where these are on other machines, there: one
pass over them for each table, of which only its cells come here. What is counted is private until
noise is added.
"""

from __future__ import annotations

import math

import numpy as np

from incrowd.anonymize.tables.workload import Columns, Levels
from incrowd.arrays import Codes, Counts
from incrowd.codes.counted_table import CountedTable
from incrowd.methods.safe.remote_counts import RemoteCountedTable
from incrowd.release.product import TrueCounts
from incrowd.release.tables_column import TabulatedColumn


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
        self.excluded: int | None = int(counts[~is_counted].sum())
        self._columns = columns
        self._positions = [part[is_counted].astype(np.int64) for part in groups]
        row_counts = counts[is_counted]
        self._counts = None if (row_counts == 1).all() else row_counts
        self._rows = int(row_counts.sum())

    def __call__(self, quantity: int, columns: Columns, levels: Levels) -> Counts:  # noqa: ARG002
        """Return the counts of some columns at some levels; of no column, the number of rows."""
        if not columns:
            return np.array(self._rows, dtype=np.int64)
        shape, key = [], np.zeros(1, dtype=np.int64)
        for column, level in zip(columns, levels, strict=True):
            groups = self._columns[column].list_groups(level)
            part = self._positions[column]
            shape.append(int(groups.max()) + 1)
            key = key * shape[-1] + (groups[part] if level else part)
        # Sums of whole numbers below 2^53 are exact in floats.
        cells = np.bincount(key, self._counts, minlength=math.prod(shape))
        return cells.astype(np.int64).reshape(shape)


class RemoteCellCounter:
    """Counts from tuples that are on other machines."""

    def __init__(self, table: RemoteCountedTable, columns: tuple[TabulatedColumn, ...]) -> None:
        self._counted, self._columns = table, columns
        self.excluded: int | None = None

    def __call__(self, quantity: int, columns: Columns, levels: Levels) -> Counts:  # noqa: ARG002
        """Return the counts of some columns at some levels; of no column, the number of rows."""
        level_of = dict(zip(columns, levels, strict=True))
        places_counted = [
            at for at in range(len(self._columns)) if at in level_of or self._can_miss(at)
        ]
        maps = [self._map(at, level_of.get(at)) for at in places_counted]
        tuples = self._counted.tuples.select_columns(places_counted).roll_up(maps)
        sizes = [int(self._columns[at].list_groups(level_of[at]).max()) + 1 for at in columns]
        # A code past the last one marks what is not counted.
        limits = [sizes[columns.index(at)] if at in level_of else 1 for at in places_counted]
        is_counted = (tuples.codes < np.array(limits)).all(axis=1)
        places = [places_counted.index(at) for at in columns]
        if not columns:
            return np.array(tuples.counts[is_counted].sum(), dtype=np.int64)
        cells = np.zeros(sizes, dtype=np.int64)
        np.add.at(cells, tuple(tuples.codes[is_counted][:, places].T), tuples.counts[is_counted])
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
