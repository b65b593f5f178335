"""What was counted of a table is not counted again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
import pytest

from incrowd.curate.check import check
from incrowd.engine.source import open_table
from incrowd.engine.table import Tally
from incrowd.spec.file import parse_spec
from incrowd.studio import worker_pool
from incrowd.studio.worker_pool import CachedTable

SPEC = """
columns:
  who: {role: identifier}
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 99, widths: [10]}}}
  town: {role: quasi, hierarchy: {flat: {values: [a, b]}}}
"""


class Asked:
    """A table that writes down what it is asked."""

    def __init__(self) -> None:
        rows = {"who": ["x", "x", "y"], "age": [1, 2, 200], "town": ["a", "b", "c"]}
        self._table, self.log = open_table(pl.DataFrame(rows)), list[tuple[str, Any]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def iter_tallies(self, columns: Sequence[str]) -> Iterator[Tally]:
        self.log.append(("tallies", tuple(columns)))
        return self._table.iter_tallies(columns)

    def count_distinct(self, columns: Sequence[str]) -> int:
        self.log.append(("distinct", tuple(columns)))
        return self._table.count_distinct(columns)


def test_a_second_check_counts_only_what_changed() -> None:
    request: Any = Asked()
    table = CachedTable(request)
    first = check(table, parse_spec(SPEC))
    assert sorted(request.log) == [
        ("distinct", ("who",)), ("tallies", ("age",)), ("tallies", ("town",)),
    ]  # fmt: skip
    request.log.clear()
    assert check(table, parse_spec(SPEC)) == first == check(request._table, parse_spec(SPEC))
    assert request.log == []
    changed = SPEC.replace("who: {role: identifier}", "who: {role: quasi, hierarchy: flat}")
    check(table, parse_spec(changed))
    assert request.log == [("tallies", ("who",))]


def test_counts_of_very_many_values_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "MOST_KEPT", 2)
    request: Any = Asked()
    table = CachedTable(request)
    for _ in range(2):
        assert sum(tally.counts.sum() for tally in table.iter_tallies(["age"])) == 3
        assert sum(tally.counts.sum() for tally in table.iter_tallies(["who"])) == 3
    assert request.log.count(("tallies", ("age",))) == 2
    assert request.log.count(("tallies", ("who",))) == 1
