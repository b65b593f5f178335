"""Rows joined with a second table by ids, whatever holds them, and how the two met."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from incrowd.engine.table import JoinMatch, Table, TableError

MakeTable = Callable[[Mapping[str, Sequence[object]]], Table]


def list_rows(table: Table) -> list[tuple[Any, ...]]:
    (tally,) = table.iter_tallies(table.columns)
    rows: list[tuple[Any, ...]] = []
    for codes, count in zip(tally.codes.tolist(), tally.counts.tolist(), strict=True):
        values = zip(tally.values, codes, strict=True)
        rows += [tuple(listed[code] for listed, code in values)] * count
    return sorted(rows, key=str)


def test_each_row_gets_the_values_of_its_id(make_table: MakeTable) -> None:
    people = make_table({"id": ["1", " 2", "2.0", "3", None, ""], "age": [5, 6, 7, 8, 9, 9]})
    households = make_table({"number": [2, 1, 4, None], "*": ["b", "a", "d", "n"]})
    joined = people.join_table("id", households, "number")
    assert joined.columns == ("id", "age", "*")
    assert sorted((row[1:] for row in list_rows(joined)), key=str) == [
        (5, "a"), (6, "b"), (7, "b"), (8, None), (9, None), (9, None),
    ]  # fmt: skip
    assert joined.origin.match == JoinMatch(("*",), repeated=0, missing=1, unused=1, unmatched=1)
    assert joined.rows() == 6


def test_rows_with_an_id_that_is_there_already_add_no_rows(make_table: MakeTable) -> None:
    people = make_table({"id": [1, 1, 2], "age": [5, 6, 7]})
    households = make_table({"id": [1, 2, 1, 2, 2], "region": ["n", "n", "n", "n", "n"]})
    joined = people.join_table("id", households, "id")
    assert (joined.rows(), joined.columns) == (3, ("id", "age", "region"))
    assert joined.origin.match == JoinMatch(("region",), 3, 0, 0, 0)


def test_a_column_of_both_tables_is_refused(make_table: MakeTable) -> None:
    people = make_table({"id": [1], "region": ["n"]})
    with pytest.raises(TableError, match="'region': both tables have it"):
        people.join_table("id", make_table({"id": [1], "region": ["s"]}), "id")


def test_how_tables_met_is_known_when_values_were_read_anew(make_table: MakeTable) -> None:
    people = make_table({"id": [1], "age": ["5"]})
    joined = people.join_table("id", make_table({"id": [1], "region": ["s"]}), "id")
    read = joined.interpret_values({"region": lambda value: f"{value}!"})
    assert read.origin.match == joined.origin.match
    assert list_rows(read) == [(1, "5", "s!")]
