"""Who a person may be: counts of all rows decide, and speak against a wrong unit."""

from __future__ import annotations

import polars as pl

from incrowd.curate.unit_choice import UnitChoice, count_unit_choice
from incrowd.engine.source import open_table


def count(repeats: int, column: str = "") -> UnitChoice:
    people = [f"P{number:05d}" for number in range(300)]
    rows = [person for person in people for _ in range(repeats)]
    table = pl.DataFrame({
        "patient_id": rows,
        "visit_id": [f"V{number:06d}" for number in range(len(rows))],
        "ward": [f"ward {at % 7}" for at in range(len(rows))],
    })  # fmt: skip
    return count_unit_choice(open_table(table), column)


def test_an_id_that_repeats_comes_first_with_its_counts() -> None:
    choice = count(3)
    first = choice.options[0]
    assert (first.column, first.is_repeated, first.proposed) == ("patient_id", True, 3)
    assert (first.counts.ids, first.counts.median, first.counts.largest) == (300, 3, 3)
    assert choice.rows == 900


def test_a_row_is_no_person_where_an_id_repeats() -> None:
    words = count(3).find_contradiction("")
    assert "'patient_id' repeat" in words
    assert "300 values in 900 rows" in words
    assert count(1).find_contradiction("") == ""  # each id once: a row is a person


def test_events_and_categories_are_no_people() -> None:
    choice = count(3, "ward")
    assert "events" in choice.find_contradiction("visit_id")
    assert "7 values in 900 rows" in choice.find_contradiction("ward")
    assert choice.find_contradiction("patient_id") == ""
    assert choice.find_contradiction("nothing") != ""
