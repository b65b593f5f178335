"""Words of the tasks on the pages: the way out is a page, and nothing is said twice."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from incrowd.curate.check import check
from incrowd.methods.safe.auto import decided, drawn
from incrowd.spec.build import Declared
from incrowd.spec.file import parse
from incrowd.spec.release import SafeSpec
from incrowd.spec.written import Written
from incrowd.studio.words import plain, read_as, shown

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
    found = check(TABLE, parse(SPEC.format(unit=unit)))
    listed = shown(found)
    assert any("on the Data page" in one.message for one in listed)
    for one in listed:
        assert not {"unit:", "size:", "Declare", "expect:"} & set(one.message.split()), one
    assert any(one.unconfirmed for one in found)
    assert not any(one.unconfirmed for one in listed)
    assert len(listed) < len(found)


def test_how_to_have_another_aim_is_a_setting() -> None:
    spec = parse(SPEC.format(unit="one row per person")).spec
    assert isinstance(spec.release, SafeSpec)
    quasi = {name: spec.columns[name] for name in spec.with_role("quasi")}
    _, reasons = decided(drawn(spec.release)[0], Declared(quasi, Path()), None)
    told = [plain(one) for one in reasons]
    assert "objective:" in " ".join(reasons)
    assert "under more settings on the Privacy page" in " ".join(told)
    assert "objective:" not in " ".join(told)


def test_how_values_are_written_in_words() -> None:
    assert read_as(Written(dates="day-month-year")) == "dates by day, month, year"
    money = Written(nulls=("n/a", "-"), thousands=".", decimal=",", sign="€")
    assert read_as(money) == (
        "numbers with a decimal comma; thousands apart by '.'; amounts in '€'; "
        "'n/a', '-' for no value"
    )
