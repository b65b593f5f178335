"""Rows joined with a second table by ids, whatever holds them, and how the two met."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from incrowd.engine.table import JoinMatch, Table, TableError
from incrowd.spec.value_format import ValueFormat

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


def test_ids_are_joined_by_what_they_mean_and_stay_as_they_are(make_table: MakeTable) -> None:
    read = ValueFormat(thousands=".", decimal=",", nulls=("NA",)).make_reader()
    people = make_table({"id": ["1.000", "1000", "1000,0", "2,5", "NA"], "age": [1, 2, 3, 4, 5]})
    households = make_table({
        "id": ["1000", "1.000", "2,50", "NA", "2.500"], "region": ["a", "a", "b", "c", "d"],
    })  # fmt: skip
    joined = people.join_table("id", households, "id", read)
    assert list_rows(joined) == [
        ("1.000", 1, "a"), ("1000", 2, "a"), ("1000,0", 3, "a"), ("2,5", 4, "b"), ("NA", 5, None),
    ]  # fmt: skip
    assert joined.origin.match == JoinMatch(("region",), 1, 1, 1, 0)
    assert not joined.origin.reread


def test_numbers_are_joined_with_texts_that_mean_them(make_table: MakeTable) -> None:
    read = ValueFormat(thousands=".", decimal=",", nulls=("-9",)).make_reader()
    people = make_table({"id": [1000, 2500, -9, None], "age": [1, 2, 3, 4]})
    households = make_table({"id": ["1.000", "2500"], "region": ["a", "b"]})
    joined = people.join_table("id", households, "id", read)
    assert list_rows(joined) == [
        (-9, 3, None), (1000, 1, "a"), (2500, 2, "b"), (None, 4, None)
    ]  # fmt: skip
    assert joined.origin.match == JoinMatch(("region",), 0, 0, 0, 0)
