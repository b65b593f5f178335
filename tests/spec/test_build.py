from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from incrowd.codes.hierarchy import Hierarchy, HierarchyError
from incrowd.spec.build import build_hierarchy
from incrowd.spec.model import Column


def hierarchy(declared: Any, values: list[object] = [], **more: Any) -> Hierarchy:  # noqa: B006
    column = Column.model_validate({"role": "quasi", "hierarchy": declared, **more})
    return build_hierarchy(column, folder=Path(), values=values)


def path(built: Hierarchy, value: object) -> list[str | None]:
    (code,) = built.encode([value])
    return [built.labels[level][built.groups[level][code]] for level in range(built.height)]


def test_table_1_of_paper_b_comes_out_of_a_line_each() -> None:
    year = hierarchy({"intervals": {"from": 1900, "to": 2026, "widths": [2, 4, 8]}})
    assert (year.height, year.size) == (5, 127)
    assert path(year, 1985) == ["1985", "1984-1985", "1984-1987", "1980-1987", "*"]
    gender = hierarchy({"groups": {"Person": ["female", "male"]}})
    assert path(gender, "male") == ["male", "Person"]
    race = hierarchy({"flat": {"values": ["White", "Black"]}})
    assert path(race, "Black") == ["Black", "*"]
    marital = hierarchy({"groups": {"Alone": ["single", "divorced"], "In marriage": ["married"]}})
    assert path(marital, "divorced") == ["divorced", "Alone", "*"]
    postal = hierarchy({"mask": {"length": 5}}, ["23704"])
    assert path(postal, "23704") == ["23704", "2370*", "237**", "23***", "2****", "*****"]
    assert postal.size == 100_000


@pytest.mark.parametrize("value", [39, 39.0, "39", "39.00", " 39"])
def test_a_number_means_the_same_however_it_is_written(value: object) -> None:
    assert path(hierarchy({"intervals": {"from": 0, "to": 99}}), value)[0] == "39"
    assert path(hierarchy({"flat": {"values": [39, 40]}}), value)[0] == "39"
    assert path(hierarchy({"groups": {"old": ["39.0"], "young": [3]}}), value)[1] == "old"


def test_null_is_a_value_of_its_own_until_the_root() -> None:
    for declared in ({"intervals": {"from": 0, "to": 9, "widths": [5]}}, {"mask": {"length": 1}}):
        built = hierarchy(declared)
        assert path(built, None)[:-1] == [None] * (built.height - 1)
        assert path(built, None)[-1] == path(built, 3)[-1] == "*"
    assert path(hierarchy("flat", ["x"]), float("nan")) == [None, "*"]


def test_outside_the_domain_is_the_root_or_the_declared_other() -> None:
    declared = {"intervals": {"from": 0, "to": 9, "widths": [5]}}
    assert path(hierarchy(declared), 10) == ["*", "*", "*"]
    assert path(hierarchy(declared), "ten") == ["*", "*", "*"]
    assert path(hierarchy(declared, other="else"), 10) == ["else", "else", "*"]
    named = {"groups": {"Person": ["female", "male"]}}
    assert path(hierarchy(named), "robot") == ["Person", "Person"]


def test_intervals_of_decimals_are_exact() -> None:
    built = hierarchy({"intervals": {"from": 0, "to": 1, "step": 0.1, "widths": [0.2]}})
    for tenth in range(10):
        assert path(built, tenth / 10)[0] == str(tenth / 10).removesuffix(".0")
    assert path(built, "0.30")[1] == "[0.2, 0.4)"
    assert path(built, 0.35)[0] == "0.3"


def test_cuts_and_open_ends() -> None:
    built = hierarchy(
        {"intervals": {"from": 0, "to": 99, "cuts": [[0, 18, 65], [0, 65]], "open": "both"}}
    )
    assert path(built, 17) == ["17", "0-17", "0-64", "*"]
    assert path(built, 65) == ["65", "65-99", "65-99", "*"]
    assert path(built, 120) == [">99", ">99", ">99", "*"]
    assert path(built, -1) == ["<0", "<0", "<0", "*"]


def test_masks() -> None:
    left = hierarchy({"mask": {"length": 3, "hide": "left", "alphabet": "abc1"}}, ["ab1", "xyz"])
    assert path(left, "ab1") == ["ab1", "*b1", "**1", "***"]
    assert path(left, "xyz") == ["***"] * 4
    assert left.size == 64
    # a ZIP code that a program has read as a number has lost its zeros; as text it is too short
    assert path(hierarchy({"mask": {"length": 5}}, [501, "501"]), 501)[0] == "00501"
    assert path(hierarchy({"mask": {"length": 5}}, [501, "501"]), "501")[0] == "*****"


def test_dates() -> None:
    built = hierarchy({"dates": {"from": "1999-12-30", "to": "2001-01-02"}})
    expected = ["2000-02-29", "2000-02", "2000-Q1", "2000", "2000-2009", "*"]
    for value in ("2000-02-29", dt.date(2000, 2, 29), dt.datetime(2000, 2, 29, 23, 5)):
        assert path(built, value) == expected
    assert path(built, "29/02/2000")[0] == "*"
    declared = {"from": "1999-01-01", "to": "2001-01-02", "format": "%d/%m/%Y"}
    other = hierarchy({"dates": {**declared, "levels": ["month", "year"]}})
    assert path(other, "29/02/2000") == ["2000-02", "2000", "*"]
    assert path(other, "2000-02-29") == ["2000-02", "2000", "*"]


def test_times_by_hour_and_days_by_week_or_weekday() -> None:
    hours = hierarchy(
        {"dates": {"from": "2019-12-29", "to": "2020-01-02", "levels": ["hour", "day", "week"]}}
    )
    expected = ["2019-12-30T23", "2019-12-30", "2020-W01", "*"]  # weeks are those of ISO 8601
    for value in (dt.datetime(2019, 12, 30, 23, 59), "2019-12-30 23:05:00", "2019-12-30T23"):
        assert path(hours, value) == expected
    assert path(hours, dt.date(2020, 1, 1))[:2] == ["2020-01-01T00", "2020-01-01"]
    assert len(hours.values) == 5 * 24
    weekdays = hierarchy(
        {"dates": {"from": "2026-07-01", "to": "2026-07-31", "levels": ["weekday"]}}
    )
    assert [*weekdays.values] == [
        "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"
    ]  # fmt: skip
    assert path(weekdays, "2026-07-04") == ["Saturday", "*"]
    assert path(weekdays, "2026-08-01")[0] == "*"  # a Saturday outside
    assert not weekdays.ordered  # a span of days would have all of them
    assert hours.ordered


@pytest.mark.parametrize(
    "levels", [["week", "month"], ["weekday", "week"], ["month", "day"], ["weekday", "year"]]
)
def test_levels_of_dates_lie_within_each_other(levels: list[str]) -> None:
    with pytest.raises(ValueError, match="each within the next"):
        hierarchy({"dates": {"from": "2019-12-29", "to": "2020-01-02", "levels": levels}})


def test_masks_of_several_lengths() -> None:
    declared = {"length": 5, "shortest": 3}
    right = hierarchy({"mask": declared}, ["123", "12345", "1234", "12"])
    assert path(right, "12345") == ["12345", "1234*", "123**", "12***", "1****", "*****"]
    assert path(right, "123") == ["123", "123**", "123**", "12***", "1****", "*****"]
    assert path(right, "12") == ["*****"] * 6
    assert path(right, 123)[0] == "123"  # whose length is its own
    assert right.size == 10**3 + 10**4 + 10**5
    left = hierarchy({"mask": {**declared, "hide": "left"}}, ["123", "12345"])
    assert path(left, "12345") == ["12345", "*2345", "**345", "***45", "****5", "*****"]
    assert path(left, "123") == ["123", "**123", "**123", "***23", "****3", "*****"]
    with pytest.raises(ValueError, match="exceeds `length`"):
        hierarchy({"mask": {"length": 2, "shortest": 3}})


def test_top_and_bottom_coding_by_name() -> None:
    both = hierarchy({"intervals": {"bottom": 16, "top": 89, "widths": [10]}})
    plain = hierarchy({"intervals": {"from": 16, "to": 89, "open": "both", "widths": [10]}})
    assert both.labels == plain.labels
    assert [path(both, age)[0] for age in (15, 16, 89, 90)] == ["<16", "16", "89", ">89"]
    only_top = hierarchy({"intervals": {"from": 0, "top": 89}})
    assert [path(only_top, age)[0] for age in (-1, 0, 90)] == ["*", "0", ">89"]
    for wrong in ({"from": 0, "to": 9, "top": 8}, {"from": 0, "top": 9, "open": "upper"}):
        with pytest.raises(ValueError, match="exclude each other"):
            hierarchy({"intervals": wrong})


def test_order_merges_neighbors() -> None:
    built = hierarchy({"order": {"values": ["low", "mid", "high", "top", "peak"], "runs": [2, 4]}})
    assert path(built, "mid") == ["mid", "low to mid", "low to top", "*"]
    assert path(built, "peak") == ["peak", "peak", "peak", "*"]


def test_groups_within_groups() -> None:
    built = hierarchy(
        {"groups": {"Europe": {"West": ["FR", "DE"], "East": ["PL"]}, "Asia": {"S": ["IN"]}}}
    )
    assert path(built, "PL") == ["PL", "East", "Europe", "*"]


def test_labels_of_awkward_numbers() -> None:
    built = hierarchy({"intervals": {"from": -10, "to": 10.0, "widths": [5], "open": "both"}})
    assert path(built, -7)[1] == "-10 to -6"
    assert path(built, 1000)[0] == ">10"
    small = hierarchy({"intervals": {"from": 0, "to": 1, "step": 0.00001}})
    assert path(small, 5e-05)[0] == "0.00005"
    assert path(small, ".5")[0] == "0.5"


def test_numbers_of_any_kind_get_their_zeros_back() -> None:
    for value in (501, 501.0, Decimal(501)):
        assert path(hierarchy({"mask": {"length": 5}}, [value]), value)[0] == "00501"
    dotted = hierarchy({"mask": {"length": 4, "alphabet": "0123456789."}}, ["1.50"])
    assert path(dotted, "1.50")[0] == "1.50"


def test_dates_are_understood_in_every_iso_form() -> None:
    built = hierarchy({"dates": {"from": "2019-01-01", "to": "2021-12-31"}})
    for text in ("2020-02-29 00:00:00", "20200229", "2020-02-29T10:00:00Z", "2020-02-29T01:02"):
        assert path(built, text)[0] == "2020-02-29"
    assert path(built, "2020-02-29abc")[0] == "*"


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            {"intervals": {"from": 0, "to": 9, "widths": [2, 3]}},
            "Levels do not nest: '2' and '3' are both '2-3' at level 1, "
            "but '0-2' and '3-5' at level 2.",
        ),
        (
            {"flat": {"values": ["a", "b", "a"]}},
            "Rows 1 and 3 both list the value 'a'.",
        ),
        (
            {"flat": {"values": ["39", 39.0]}},
            "Rows 1 and 2 both list the value '39'.",
        ),
        (
            {"groups": {"A": ["x"], "B": {"C": ["y"]}}},
            "Row 2 ('y') has 4 levels, row 1 ('x') has 3.",
        ),
        ({"groups": {"A": [["x", "y"]]}}, "Group 'A': ['x', 'y'] is not a value. Correct it."),
        ({"groups": {"A": [None]}}, "Group 'A': None is not a value. Correct it."),
        ({"groups": {"A": "x"}}, "Group 'A': expected a list of values or groups. Correct it."),
        (
            {"intervals": {"from": 0, "to": 9, "cuts": [[5, 3]]}},
            "The cuts 5, 3 must increase. Sort them.",
        ),
        (
            {"csv": "nowhere.csv"},
            "Hierarchy 'nowhere.csv': cannot be read (No such file or directory).",
        ),
    ],
)
def test_what_cannot_be_a_hierarchy_names_the_values(declared: Any, message: str) -> None:
    with pytest.raises(HierarchyError) as error:
        hierarchy(declared)
    assert str(error.value).startswith(message)


def test_leaves_count_what_a_node_covers() -> None:
    built = hierarchy({"intervals": {"from": 0, "to": 9, "widths": [4]}})
    named = dict(zip(built.labels[1], built.count_leaves(1).tolist(), strict=True))
    assert (named["0-3"], named["4-7"], named["8-9"]) == (4, 4, 2)
    assert built.count_leaves(2).tolist() == [10]
