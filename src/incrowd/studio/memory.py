"""A table that remembers what was counted of it: a check after a change counts only the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from incrowd.engine.table import RowsPerId, Table, Tally

T = TypeVar("T")
MOST_KEPT = 200_000  # distinct values of a column whose counts are kept


class Remembered:
    """A table of a file that does not change. What is not remembered is asked of the table itself.

    Columns with very many values are counted anew each time, since their counts take much room.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: dict[tuple[str, tuple[str, ...]], Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def _once(self, name: str, columns: Sequence[str], count: Callable[[], T]) -> T:
        key = name, tuple(columns)
        if key not in self._known:
            self._known[key] = count()
        found: T = self._known[key]
        return found

    def rows(self) -> int:
        """The number of rows."""
        return self._once("rows", (), self._table.rows)

    def distinct(self, columns: Sequence[str]) -> int:
        """How many distinct tuples some columns have."""
        return self._once("distinct", columns, lambda: self._table.distinct(columns))

    def people(self, column: str) -> int:
        """How many people a column identifies."""
        return self._once("people", (column,), lambda: self._table.people(column))

    def count_rows_per_id(self, column: str) -> RowsPerId:
        """How many ids a column has, and how many rows share one."""
        return self._once("rows per id", (column,), lambda: self._table.count_rows_per_id(column))

    def missing(self, column: str) -> int:
        """How many rows have no value in a column."""
        return self._once("missing", (column,), lambda: self._table.missing(column))

    def tallies(self, columns: Sequence[str]) -> Iterator[Tally]:
        """Distinct tuples with counts."""
        key = "tallies", tuple(columns)
        if key in self._known:
            yield from self._known[key]
            return
        kept: list[Tally] | None = []
        size = 0
        for tally in self._table.tallies(columns):
            size += len(tally.counts)
            if kept is not None:
                kept = [*kept, tally] if size <= MOST_KEPT else None
            yield tally
        if kept is not None:
            self._known[key] = kept
