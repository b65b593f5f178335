"""Findings on the pages: the way out is a page, and nothing is said twice."""

from __future__ import annotations

import polars as pl
import pytest

from incrowd.curate.check import check
from incrowd.spec.file import parse_spec
from incrowd.spec.value_format import ValueFormat
from incrowd.studio.views.data import describe_written, list_findings

SPEC = """
unit: {unit}
columns:
  who: {{role: identifier}}
  age: {{role: quasi, hierarchy: {{intervals: {{from: 0, to: 99, widths: [10]}}}}, confirm: [role]}}
  town:
    role: quasi
    hierarchy: {{groups: {{Land: [a, b], "*": [c]}}}}
release: {{method: safe, epsilon: 1, delta: 1.0e-6}}
"""
TABLE = pl.DataFrame({"who": ["x", "x", None], "age": [1, 2, 3], "town": ["a", "b", "d"]})


@pytest.mark.parametrize("unit", ["one row per person", "{id: who}"])
def test_what_is_wrong_names_a_page_and_no_yaml(unit: str) -> None:
    result = check(TABLE, parse_spec(SPEC.format(unit=unit)))
    listed = list_findings(result)
    assert any(" page" in item.studio_remedy for item in listed)
    for first in listed:
        words = set(f"{first.message} {first.studio_remedy}".split())
        assert not {"`unit:", "`size:", "`other`."} & words, first
    assert any(item.topic == "confirmation" for item in result)
    assert not any(item.topic == "confirmation" for item in listed)
    assert len(listed) < len(result)


def test_how_values_are_written_in_words() -> None:
    dates = describe_written(ValueFormat(dates="day-month-year"))
    assert dates == "dates in the order day, month, year"
    money = ValueFormat(nulls=("n/a", "-"), thousands=".", decimal=",", sign="€")
    assert describe_written(money) == (
        "numbers with a decimal comma; thousands separated by '.'; amounts in '€'; "
        "'n/a', '-' for missing values"
    )
