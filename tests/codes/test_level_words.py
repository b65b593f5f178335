"""Levels in words: from the labels alone, as whoever verifies a release has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from incrowd.codes.level_words import describe_levels, list_open_ends
from incrowd.spec.build import ColumnHierarchies, build_hierarchy
from incrowd.spec.model import Column


def describe(**hierarchy: Any) -> list[str]:
    column = Column.model_validate({"role": "quasi", "hierarchy": hierarchy})
    return describe_levels(build_hierarchy(column, folder=Path()))


@pytest.mark.parametrize(
    ("hierarchy", "words"),
    [
        (
            {"intervals": {"from": -10, "to": 29, "widths": [5, 20]}},
            ["whole numbers (such as 9)", "steps of 5 (such as 5 to 9)",
             "steps of 20 (such as -10 to 9)", "suppressed"],
        ),
        (
            {"intervals": {"from": 0, "to": 89, "widths": [10], "open": "both"}},
            ["whole numbers (such as 44)", "steps of 10 (such as 40-49)", "suppressed"],
        ),
        (
            {"intervals": {"from": 0, "to": 99, "cuts": [[0, 18, 65]]}},
            ["whole numbers (such as 49)", "3 ranges (such as 18-64)", "suppressed"],
        ),
        (
            {"intervals": {"from": 0, "to": 99, "cuts": [[0, 10, 18, 65]]}},
            ["whole numbers (such as 49)", "4 ranges (such as 10-17)", "suppressed"],
        ),
        (
            {"intervals": {"from": 0, "to": 1, "step": 0.1, "widths": [0.5]}},
            ["steps of 0.1 (such as 0.5)", "steps of 0.5 (such as [0, 0.5))", "suppressed"],
        ),
        (
            {"dates": {"from": "2020-01-01", "to": "2022-12-31",
                       "levels": ["day", "month", "quarter", "year"]}},
            ["days (such as 2021-07-01)", "months (such as 2021-06)", "quarters (such as 2021-Q2)",
             "years (such as 2021)", "suppressed"],
        ),
        (
            {"icd": {"version": 10}},
            ["categories of 3 characters (such as N11)", "261 groups (such as N00-N09)",
             "22 groups (such as K00-K95)", "suppressed"],
        ),
        (
            {"order": {"values": ["a", "b", "c", "d"], "runs": [2]}},
            ["4 values (a, b, c, d)", "2 groups (a to b, c to d)", "suppressed"],
        ),
        (
            {"intervals": {"from": 0, "to": 29999, "widths": [20000]}},  # the last range is cut
            ["whole numbers (such as 14999)", "steps of 20000 (such as 0-19999)", "suppressed"],
        ),
        (
            {"flat": {"values": [f"A{code}" for code in range(10, 30)]}},
            ["codes of 3 characters (such as A19)", "suppressed"],
        ),
        (
            {"flat": {"values": [str(x * x) for x in range(20)]}},
            ["20 values (such as 81)", "suppressed"],
        ),
        ({"flat": {"values": ["x"]}}, ["1 value (such as x)", "suppressed"]),
    ],
)  # fmt: skip
def test_levels_are_described_by_what_they_show(
    hierarchy: dict[str, Any], words: list[str]
) -> None:
    assert describe(**hierarchy) == words


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["32***", "33***"], "first 2 characters (such as 32***)"),
        (["***01", "***02"], "last 2 characters (such as ***01)"),
        (["**x**", "33***"], "2 groups (**x**, 33***)"),
    ],
)
def test_a_mask_in_a_file_is_recognized(tmp_path: Path, labels: list[str], words: str) -> None:
    values = ["32101", "33102"]
    lines = [f"{value};{label};*" for value, label in zip(values, labels, strict=True)]
    (tmp_path / "x.csv").write_text("\n".join(lines), encoding="utf-8")
    column = Column.model_validate({"role": "quasi", "hierarchy": {"csv": {"file": "x.csv"}}})
    assert describe_levels(build_hierarchy(column, folder=tmp_path))[1] == words


def test_only_ranges_without_an_end_are_open() -> None:
    assert list_open_ends(["<5", ">-2", "<5-9", "5", "<", "90+", None]) == ["<5", ">-2"]


@pytest.mark.parametrize(
    ("hierarchy", "level", "words"),
    [
        ({"intervals": {"from": 0, "to": 29999, "widths": [20000]}}, 0,
         "whole numbers (such as 14999)"),
        ({"intervals": {"from": 0, "to": 29999, "widths": [20000]}}, 1,
         "steps of 20000 (such as 0-19999)"),
        ({"intervals": {"from": 0, "to": 9, "step": 0.5, "widths": [5]}}, 0,
         "steps of 0.5 (such as 4.5)"),
        ({"icd": {"version": 10}}, 0, "categories of 3 characters (such as N11)"),
        ({"icd": {"version": 9}}, 0, "2,090 values (such as V46)"),
        ({"flat": {"values": ["a", "b"]}}, 0, "unchanged"),
    ],
)  # fmt: skip
def test_what_is_cut_is_not_called_unchanged(
    hierarchy: dict[str, Any], level: int, words: str
) -> None:
    """19999.50 is published as 19999, and K35.8 as K35: the curator reads it, as readers do."""
    column = Column.model_validate({"role": "quasi", "hierarchy": hierarchy})
    assert ColumnHierarchies({"x": column}).describe_level("x", level) == words
    if words != "unchanged":
        assert describe(**hierarchy)[level] == words
