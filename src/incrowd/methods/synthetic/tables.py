"""Small tables of the private table, counted where its tuples are.

A table of some columns is counted from the distinct tuples on this machine or, where those are on
other machines, there: one pass over the tuples for each set of columns, of which only the cells of
the small table come here. What is counted is private until it is measured.
"""

from __future__ import annotations

import numpy as np

from incrowd.anonymize.synthetic.choice import CountTable
from incrowd.anonymize.synthetic.domain import Columns, Levels, TableCounter
from incrowd.arrays import Codes, Counts
from incrowd.codes.counted_table import CountedTable
from incrowd.methods.safe.remote_counts import RemoteCountedTable
from incrowd.methods.synthetic.columns import SyntheticColumns


def make_counter(table: CountedTable | RemoteCountedTable, columns: SyntheticColumns) -> CountTable:
    """Return what counts small tables of a table by its distinct tuples."""
    if isinstance(table, RemoteCountedTable):
        return SpreadCounter(table, columns)
    frequencies = table.frequencies
    return TableCounter(columns.domain, columns.settle_codes(frequencies.codes), frequencies.counts)


class SpreadCounter:
    """Counts of small tables, from tuples that are on other machines."""

    def __init__(self, table: RemoteCountedTable, columns: SyntheticColumns) -> None:
        self._counted = table
        self._columns = columns

    def __call__(self, columns: Columns, levels: Levels) -> Counts:
        """Return the counts of some columns at some levels; of no column, the number of rows."""
        if not columns:
            top = self._columns.domain.tops((0,))
            return np.array(self((0,), top).sum(), dtype=np.int64)
        maps = [self._map(column, level) for column, level in zip(columns, levels, strict=True)]
        tuples = self._counted.tuples.select_columns(list(columns)).roll_up(maps)
        table = np.zeros(self._columns.domain.shape(columns, levels), dtype=np.int64)
        table[tuple(tuples.codes.T)] = tuples.counts
        return table

    def _map(self, column: int, level: int) -> Codes:
        """From codes of level 0 to groups of a level."""
        model_column = self._columns.domain.columns[column]
        hierarchy = list(self._columns.hierarchies.values())[column]
        codes = np.zeros((len(hierarchy.values) + 2, len(self._columns.names)), dtype=np.int32)
        codes[:, column] = np.arange(len(codes))
        settled = self._columns.settle_codes(codes)[:, column]
        groups: Codes = model_column.groups[level][model_column.positions[settled]]
        return groups
