"""Putting small tables on a clique, and reading them from it, in few passes over its cells.

A clique of many cells holds many pairs of columns. Those without one of its two largest columns are
put on, and read from, a table without that column: it has far fewer cells, and stands for all of
them in one pass over the clique.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from incrowd.anonymize.synthetic.domain import Columns
from incrowd.arrays import Floats


class CliqueMargins:
    """The tables of some sets of columns in one clique."""

    def __init__(self, clique: Columns, shape: Sequence[int], margins: Sequence[Columns]) -> None:
        self._sizes = dict(zip(clique, shape, strict=True))
        self._clique = clique
        largest = sorted(clique, key=lambda column: -self._sizes[column])[:2]
        ways = [
            tuple(column for column in clique if column != left_out) for left_out in largest
        ] if len(clique) > 3 else []  # fmt: skip
        self._ways: dict[Columns, list[Columns]] = {}
        for columns in margins:
            fitting = [way for way in ways if set(columns) <= set(way)]
            self._ways.setdefault(min(fitting, key=self._count, default=clique), []).append(columns)

    def _count(self, columns: Columns) -> int:
        cells = 1
        for column in columns:
            cells *= self._sizes[column]
        return cells

    def _expand(self, table: Floats, columns: Columns, inside: Columns) -> Floats:
        return table.reshape([self._sizes[x] if x in columns else 1 for x in inside])

    def put(self, tables: Mapping[Columns, Floats]) -> Floats:
        """Return the sum of all tables, each repeated along the columns that it lacks."""
        total = np.zeros([self._sizes[column] for column in self._clique])
        for way, margins in self._ways.items():
            if way == self._clique:
                for columns in margins:
                    total += self._expand(tables[columns], columns, way)
                continue
            part = np.zeros([self._sizes[column] for column in way])
            for columns in margins:
                part += self._expand(tables[columns], columns, way)
            total += self._expand(part, way, self._clique)
        return total

    def read(self, table: Floats) -> dict[Columns, Floats]:
        """Return the sums of a clique's table over all columns but the wanted ones."""
        tables = {}
        for way, margins in self._ways.items():
            part = table if way == self._clique else table.sum(axis=_axes(self._clique, way))
            for columns in margins:
                tables[columns] = part.sum(axis=_axes(way, columns))
        return tables


def _axes(inside: Columns, remaining: Columns) -> tuple[int, ...]:
    return tuple(axis for axis, column in enumerate(inside) if column not in remaining)
