"""Labels are read back as exactly the values that they stand for."""

from __future__ import annotations

import datetime as dt
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.codes.axis import Axis
from incrowd.codes.hierarchy import build_from_rows
from incrowd.measure.labels import MOST_BINS, LabelError, LabelReader, assign_bins, read_labels
from incrowd.spec.build import build_hierarchy
from incrowd.spec.model import Column

OUTSIDE = "outside the domain"
COLUMNS: dict[str, dict[str, Any]] = {
    "ages": {"intervals": {"from": 0, "to": 99, "widths": [5, 10]}},
    "fives": {"intervals": {"from": 0, "to": 99, "step": 5, "widths": [10, 20]}},
    "tenths": {"intervals": {"from": 0, "to": 2, "step": 0.1, "widths": [0.5]}},
    "signed": {"intervals": {"from": -10, "to": 10, "widths": [5]}},
    "open": {"intervals": {"from": 18, "to": 30, "widths": [4], "open": "both"}},
    "days": {"dates": {"from": "2020-01-01", "to": "2021-12-31"}},
    "months": {"dates": {"from": "2020-01-01", "to": "2021-12-31", "levels": ["month", "year"]}},
    "quarters": {"dates": {"from": "2020-01-01", "to": "2022-12-31", "levels": ["quarter"]}},
    "years": {"dates": {"from": "2014-01-01", "to": "2026-12-31", "levels": ["year", "decade"]}},
    "decades": {"dates": {"from": "1950-01-01", "to": "2009-12-31", "levels": ["decade"]}},
    "order": {"order": {"values": ["low", "mid", "high", "very high", "max"], "runs": [2]}},
    "ranges": {"order": {"values": ["up to 5", "6 to 10", "11-20", "over 20"]}},
    "groups": {"groups": {"North": {"Coast": ["a", "b"], "Hills": ["c"]}, "South": {"Sea": ["d"]}}},
    "named root": {"groups": {"Person": ["female", "male"]}},
    "mask": {"mask": {"length": 3}},
    "masked left": {"mask": {"length": 3, "hide": "left"}},
    "flat": {"flat": {"values": ["a", "b", "c"]}},
    "mixed": {"flat": {"values": [18, 19, 20, "?"]}},
    "met": {"flat": {}},
    "numbers met": {"flat": {}},
}
MET: dict[str, list[object]] = {
    "mask": ["120", "121", "130", "200", "299"],
    "masked left": ["120", "220", "130", "001"],
    "met": ["x", "y", "z", None],
    "numbers met": [3, 1, 2, 10, -4, 2.5],
}
ROWS: dict[str, list[tuple[str, ...]]] = {
    "csv of numbers": [("20", "old", "*"), ("5", "young", "*"), ("15", "old", "*"),
                       ("10", "young", "*"), ("-5", "young", "*")],
    "csv without a root": [("a", "A"), ("b", "A"), ("c", "C")],
}  # fmt: skip
KINDS = [*COLUMNS, *ROWS]


@cache
def axis_of(kind: str, other: str | None = None) -> Axis:
    if kind in ROWS:
        return Axis(build_from_rows(ROWS[kind], other=other), ordered="numbers" in kind)
    entry = {"role": "quasi", "hierarchy": COLUMNS[kind], "other": other}
    column = Column.model_validate(entry)
    hierarchy = build_hierarchy(column, folder=Path(), values=MET.get(kind, ()))
    return Axis(hierarchy, hierarchy.ordered)


@cache
def reader_of(kind: str, other: str | None = None) -> LabelReader:
    return LabelReader("age", axis_of(kind, other))


def named(axis: Axis) -> list[str | None]:
    """The value at each position of an axis."""
    texts = [*axis.hierarchy.values, None, OUTSIDE]
    return [texts[code] for code in np.argsort(axis.positions)]


def read(kind: str, label: object, other: str | None = None) -> set[str | None]:
    places, _ = reader_of(kind, other).read_label(label)
    names = named(axis_of(kind, other))
    result = [names[place] for place in places.tolist()]
    assert len(set(result)) == len(result)
    return set(result)


def whole(first: int, last: int, step: int = 1) -> set[str | None]:
    return {str(x) for x in range(first, last + 1, step)}


def days(first: str, last: str) -> set[str | None]:
    begin, end = dt.date.fromisoformat(first), dt.date.fromisoformat(last)
    return {(begin + dt.timedelta(x)).isoformat() for x in range((end - begin).days + 1)}


def months(first: int, last: int, year: int = 2020) -> set[str | None]:
    return {f"{year}-{month:02d}" for month in range(first, last + 1)}


LABELS: list[tuple[str, object, set[str | None]]] = [
    *(
        ("ages", spelled, whole(18, 64))
        for spelled in (
            "18-64", "18 - 64", "18 to 64", "18..64", "18–64", "18~64", "[18, 64]", "[18;64]",
            "[18, 65)", "[18, 65[", "]17, 64]", "(17, 64]", "(17, 65)", "[18,65)", " 18-64 ",
            "18.0-64.0",
        )
    ),
    ("ages", 18, {"18"}),
    ("ages", 18.0, {"18"}),
    ("ages", "18.0", {"18"}),
    ("ages", " 18 ", {"18"}),
    ("ages", "[18, 18]", {"18"}),
    ("ages", "18-18", {"18"}),
    ("ages", "10-19", whole(10, 19)),
    ("ages", "15-19", whole(15, 19)),
    ("ages", "90-200", whole(90, 99)),
    ("ages", "{18, 20, 64}", {"18", "20", "64"}),
    ("ages", "18,20,64", {"18", "20", "64"}),
    ("ages", "18;64", {"18", "64"}),
    ("ages", "18|64", {"18", "64"}),
    ("ages", "*", whole(0, 99)),
    ("ages", None, {None}),
    ("ages", "", {None}),
    ("fives", "0-4", {"0-4"}),
    ("fives", "7", {"5-9"}),
    ("fives", 7, {"5-9"}),
    ("fives", "0-14", {"0-4", "5-9", "10-14"}),
    ("fives", "0-19", {"0-4", "5-9", "10-14", "15-19"}),
    ("fives", "0-4 to 10-14", {"0-4", "5-9", "10-14"}),
    ("fives", "[0, 15)", {"0-4", "5-9", "10-14"}),
    ("fives", "[90, 100)", {"90-94", "95-99"}),  # ends just above the domain
    ("tenths", "0.5 to 0.9", {"0.5", "0.6", "0.7", "0.8", "0.9"}),
    ("tenths", "[0.5, 1)", {"0.5", "0.6", "0.7", "0.8", "0.9"}),
    ("tenths", "(0.5, 0.7]", {"0.6", "0.7"}),
    ("tenths", "0.5-0.7", {"0.5", "0.6", "0.7"}),
    ("tenths", 0.3, {"0.3"}),
    ("tenths", ".30", {"0.3"}),
    ("signed", "-5 to 5", whole(-5, 5)),
    ("signed", "-5-5", whole(-5, 5)),
    ("signed", "-5--3", whole(-5, -3)),
    ("signed", "[-5, 5)", whole(-5, 4)),
    ("signed", "-5,5", {"-5", "5"}),
    ("open", "<18", {"<18"}),
    ("open", "<18 to 19", {"<18", "18", "19"}),
    ("open", "29 to >30", {"29", "30", ">30"}),
    ("open", "20-22", whole(20, 22)),
    ("open", "[29, 31)", {"29", "30"}),
    ("open", 7, {"<18"}),
    ("days", dt.date(2020, 2, 29), {"2020-02-29"}),
    ("days", dt.datetime(2020, 2, 29, 7, 30), {"2020-02-29"}),
    ("days", "2020-01-05 to 2020-03-07", days("2020-01-05", "2020-03-07")),
    ("days", "2020-01-05-2020-03-07", days("2020-01-05", "2020-03-07")),
    ("days", "[2020-01-05, 2020-01-08)", days("2020-01-05", "2020-01-07")),
    ("days", "2020-02", days("2020-02-01", "2020-02-29")),
    ("days", "2020-Q3", days("2020-07-01", "2020-09-30")),
    ("days", "2021", days("2021-01-01", "2021-12-31")),
    ("days", "2020-2029", days("2020-01-01", "2021-12-31")),
    ("months", "2020-03", {"2020-03"}),
    ("months", "2020-03 to 2020-06", months(3, 6)),
    ("months", "2020", months(1, 12)),
    ("months", "2020-11 to 2021-02", months(11, 12) | months(1, 2, 2021)),
    ("quarters", "2020-Q2 to 2020-Q4", {"2020-Q2", "2020-Q3", "2020-Q4"}),
    ("years", "2015-2019", whole(2015, 2019)),
    ("years", "2010-2019", whole(2014, 2019)),
    ("years", 2015, {"2015"}),
    ("decades", "1960-1969", {"1960-1969"}),
    ("decades", "1960-1969 to 1980-1989", {"1960-1969", "1970-1979", "1980-1989"}),
    ("order", "mid to very high", {"mid", "high", "very high"}),
    ("order", "low - mid", {"low", "mid"}),
    ("order", "mid-high", {"mid", "high"}),
    ("order", "{low, high}", {"low", "high"}),
    ("order", "low,max", {"low", "max"}),
    ("ranges", "up to 5", {"up to 5"}),
    ("ranges", "up to 5 to 11-20", {"up to 5", "6 to 10", "11-20"}),
    ("ranges", "6 to 10 to over 20", {"6 to 10", "11-20", "over 20"}),
    ("csv of numbers", "-5 to 10", {"-5", "5", "10"}),
    ("csv of numbers", "5-15", {"5", "10", "15"}),
    ("csv of numbers", "young", {"-5", "5", "10"}),
    ("csv of numbers", "[5, 20)", {"5", "10", "15"}),
    ("csv without a root", "A", {"a", "b"}),
    ("csv without a root", "*", {"a", "b", "c"}),
    ("groups", "North", {"a", "b", "c"}),
    ("groups", "Coast", {"a", "b"}),
    ("groups", "a,d", {"a", "d"}),
    ("groups", "{a, d}", {"a", "d"}),
    ("groups", "['a', 'd']", {"a", "d"}),
    ("groups", "d", {"d"}),
    ("named root", "Person", {"female", "male"}),
    ("named root", "*", {"female", "male"}),
    ("mask", "12*", {"120", "121"}),
    ("mask", "1**", {"120", "121", "130"}),
    ("mask", "***", {"120", "121", "130", "200", "299"}),
    ("mask", "*", {"120", "121", "130", "200", "299"}),
    ("mask", 120, {"120"}),
    ("masked left", "*20", {"120", "220"}),
    ("masked left", 1, {"001"}),
    ("flat", "b", {"b"}),
    ("met", "x,z", {"x", "z"}),
    ("numbers met", "1 to 3", {"1", "2", "2.5", "3"}),
    ("numbers met", "-4 to 2", {"-4", "1", "2"}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "label", "values"), LABELS)
def test_every_kind_of_label_is_read(kind: str, label: object, values: set[str | None]) -> None:
    assert read(kind, label) == values


@pytest.mark.parametrize(
    ("kind", "label", "level"),
    [
        ("ages", "18", 0), ("ages", "15-19", 1), ("ages", "10-19", 2), ("ages", "*", 3),
        ("ages", "18-64", None), ("ages", "18,20", None), ("ages", None, 0), ("groups", "Hills", 1),
        ("groups", "South", 2), ("groups", "*", 3), ("named root", "Person", 1), ("mask", "12*", 1),
        ("mask", "***", 3), ("days", "2020-02", 1), ("flat", "*", 1),
    ],
)  # fmt: skip
def test_groups_and_values_have_a_level(kind: str, label: str | None, level: int | None) -> None:
    assert reader_of(kind).read_label(label)[1] == level


@pytest.mark.parametrize("kind", KINDS)
def test_all_labels_of_the_hierarchy_are_read_as_its_rows_say(kind: str) -> None:
    axis = axis_of(kind)
    covered: dict[str, set[str | None]] = {}
    for level in range(axis.hierarchy.height):
        groups: dict[str, set[str | None]] = {}
        for row in axis.hierarchy.list_rows():
            groups.setdefault(row[level], set()).add(row[0])
        for label, values in groups.items():  # one that stands for several is the widest
            covered[label] = max(covered.get(label, set()), values, key=len)
    for label, values in covered.items():
        assert read(kind, label) - {None, OUTSIDE} == values


def smallest(axis: Axis, met: set[str | None]) -> set[str | None]:
    """What a class with these values must be read as, from the rows of the hierarchy alone."""
    everything: set[str | None] = set(axis.hierarchy.values)
    if len(met) == 1 and met != {OUTSIDE}:
        return met
    if not met <= everything:
        return everything
    rows = axis.hierarchy.list_rows()
    for level in range(axis.hierarchy.height):
        labels = {row[level] for row in rows if row[0] in met}
        if len(labels) == 1:
            return {row[0] for row in rows if row[level] in labels}
    return everything


@given(data=st.data(), kind=st.sampled_from(KINDS))
def test_what_local_recoding_shows_is_read_back(data: st.DataObject, kind: str) -> None:
    axis = axis_of(kind)
    names = named(axis)
    low = data.draw(st.integers(0, len(names) - 1))
    high = data.draw(st.integers(low, len(names) - 1))
    run = set(names[low : high + 1])
    ((label,), _) = axis.make_labels(np.array([low], np.int32), np.array([high], np.int32))
    if axis.ordered and run <= set(axis.hierarchy.values):
        assert read(kind, label) == run
    elif axis.ordered and low < high:
        assert read(kind, label) >= set(axis.hierarchy.values)
    else:  # of the values; whether the root also stands for null is another matter
        expected = smallest(axis, run)
        result = read(kind, label)
        assert (result if expected == {None} else result - {None, OUTSIDE}) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_values_outside_the_domain_are_told_from_null(kind: str) -> None:
    assert read(kind, None, "elsewhere") == {None}
    assert read(kind, "elsewhere", "elsewhere") == {OUTSIDE}
    assert read(kind, "*", "elsewhere") >= set(axis_of(kind).hierarchy.values)


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("ages", "500-900"), ("ages", "64-18"), ("ages", "(18, 18)"), ("ages", "zebra"),
        ("ages", "18-zebra"), ("ages", "{18, zebra}"), ("ages", "100"), ("ages", "**"),
        ("order", "high to low"), ("order", "low to"), ("groups", "East"), ("groups", "a-c"),
        ("days", "2019-12-31"), ("days", "2020-02-30 to 2020-03-01"), ("mask", "9**"),
        ("ages", "18-"), ("ages", "18,"), ("ages", "[18,)"), ("order", "low-"),
        ("flat", "a,z"), ("mixed", "[18, 20)"), ("mixed", "(18, 20]"), ("mixed", "18-20"),
    ],
)  # fmt: skip
def test_a_label_without_meaning_is_named_with_its_column(kind: str, label: str) -> None:
    with pytest.raises(LabelError) as error:
        reader_of(kind).read_label(label)
    assert str(error.value) == (
        f"Column 'age': '{label}' is not a label of its hierarchy. Name the spec that the table "
        "was made with."
    )


def test_what_labels_cost() -> None:
    axis = axis_of("ages")
    labels = ["7", "5-9", "10-19", "18-64", "7,99", "*", None]
    value_counts = np.zeros(102)
    value_counts[[7, 18, 64, 99, 100]] = 1, 2, 4, 8, 16
    cover = read_labels("age", axis, labels, value_counts)
    assert cover.labels == tuple(labels)
    assert cover.loss.tolist() == pytest.approx([0, 4 / 99, 9 / 99, 46 / 99, 1 / 99, 1, 0])
    assert cover.precision.tolist() == pytest.approx([0, 4 / 99, 9 / 99, 46 / 99, 92 / 99, 1, 0])
    assert cover.rows.tolist() == [1, 1, 2, 6, 9, 31, 16]
    assert cover.starred.tolist() == [False] * 5 + [True, False]
    assert cover.shares.shape == (7, 102)
    assert cover.shares.sum(axis=1).tolist() == pytest.approx([1.0] * 7)
    assert np.flatnonzero(cover.shares[3]).tolist() == list(range(18, 65))
    assert cover.shares[6, 100] == 1


def test_precision_of_a_tree_is_its_level_and_of_a_set_its_share() -> None:
    cover = read_labels(
        "age", axis_of("groups"), ["a", "Coast", "Hills", "North", "*", "a,c"], np.ones(6)
    )
    assert cover.loss.tolist() == pytest.approx([0, 1 / 3, 0, 2 / 3, 1, 1 / 3])
    assert cover.precision.tolist() == pytest.approx([0, 1 / 3, 1 / 3, 2 / 3, 1, 1 / 3])


def test_an_open_domain_costs_what_the_rule_covers_not_what_was_met() -> None:
    """A prefix that all values met share still tells the prefix."""
    entry = {"role": "quasi", "hierarchy": {"mask": {"length": 3}}}
    column = Column.model_validate(entry)
    hierarchy = build_hierarchy(column, folder=Path(), values=["120", "121", "130"])
    cover = read_labels(
        "zip", Axis(hierarchy, False), ["120", "12*", "1**", "***", "*"], np.ones(5)
    )
    assert cover.loss.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1, 1])
    assert cover.precision.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1, 1])


def test_decimals_are_measured_by_width() -> None:
    cover = read_labels("x", axis_of("numbers met"), ["1 to 3", "-4 to 1", "10"], np.ones(8))
    assert cover.precision.tolist() == pytest.approx([2 / 14, 5 / 14, 0])
    assert cover.loss.tolist() == pytest.approx([3 / 5, 1 / 5, 0])


def test_many_values_share_bins_in_their_order() -> None:
    column = Column.model_validate(
        {"role": "quasi", "hierarchy": {"intervals": {"from": 1, "to": 1000}}}
    )
    bins = assign_bins(Axis(build_hierarchy(column, folder=Path()), True))
    assert len(bins) == 1002
    assert (np.diff(bins) >= 0).all()
    assert np.bincount(bins[:-2]).tolist() == pytest.approx([1000 / MOST_BINS] * MOST_BINS, abs=1)
    assert bins[-2:].tolist() == [MOST_BINS, MOST_BINS + 1]
    assert assign_bins(axis_of("ages")).tolist() == list(range(102))
