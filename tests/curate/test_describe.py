"""What a column holds, for whoever looks at it."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

from incrowd.curate import describe as module
from incrowd.curate.describe import ColumnDescription, describe_column
from incrowd.engine.source import open_table


def described(values: list[object], **more: object) -> ColumnDescription:
    return describe_column(open_table(pl.DataFrame({"x": values}, strict=False, **more)), "x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, None], "whole numbers"),
        ([1.5, 2.0], "numbers"),
        (["1.5", "2"], "numbers"),
        (["a", "1"], "text"),
        (["2020-01-01", "2021-05-03"], "days"),
        ([True, False], "yes or no"),
        ([dt.date(2020, 1, 1)], "days"),
        ([dt.datetime(2020, 1, 1, 5)], "times"),
        ([None, None], "nothing"),
        ([[1], [2]], "not single values"),
    ],
)
def test_kinds(values: list[object], kind: str) -> None:
    assert described(values).kind == kind


def test_counts_of_nulls_and_values() -> None:
    result = described(["a", "b", "a", None, "a"])
    assert (result.rows, result.nulls, result.distinct) == (5, 1, 2)
    assert result.bars == (("a", 3), ("b", 1))
    assert result.examples == ("a", "b")
    assert result.rest == 0


def test_many_numbers_are_put_into_ranges_of_a_round_width() -> None:
    result = described(list(range(-7, 93)))
    labels = [label for label, _ in result.bars]
    assert labels[0] == "-10 to 0"
    assert labels[-1] == "90 to 100"
    assert dict(result.bars)["0 to 10"] == 10
    assert sum(count for _, count in result.bars) == 100


def test_many_days_are_put_together_by_month_or_years() -> None:
    within = described([f"2023-{11 + at % 2}-{1 + at // 2:02}" for at in range(40)])
    assert within.bars == (("2023-11", 20), ("2023-12", 20))
    times = [dt.datetime(1930 + at % 80, 5, 1, at % 24) for at in range(400)]
    bars = dict(described(list(times)).bars)
    assert bars["1930 to 1940"] == 50
    assert sum(bars.values()) == 400


def test_many_texts_leave_a_rest() -> None:
    result = described([f"t{at}" for at in range(100)])
    assert len(result.bars) == 12
    assert result.rest == 88


def test_of_a_large_table_the_first_rows_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOKED_AT", 10)
    values: list[object] = [at // 3 for at in range(30)] + [None] * 5
    result = described(values)
    assert (result.rows, result.nulls, result.distinct, result.looked_at) == (35, 5, 10, 10)
    assert sum(count for _, count in result.bars) == 10
    assert not result.large
    monkeypatch.setattr(module, "LARGE", 20)
    result = described(values)
    assert (result.rows, result.nulls, result.distinct, result.large) == (35, 0, 4, True)
