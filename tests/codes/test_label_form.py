"""Forms of labels: one for a column, and its pattern reads every label as what it covers."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.readers import list_label_patterns

from incrowd.codes.axis import Axis
from incrowd.codes.hierarchy import Hierarchy, build_from_rows
from incrowd.codes.interval_label import SpanLabeler
from incrowd.codes.label_form import (
    Form,
    find_axis_form,
    find_form,
    find_level_form,
    parse_number_label,
    parse_number_labels,
)
from incrowd.measure.labels import LabelReader
from incrowd.spec.build import build_hierarchy
from incrowd.spec.model import Column

SPANS: tuple[Form, ...] = ("numbers", "a-b", "a to b", "[a, b)")
PATTERNS = {
    form: list_label_patterns(form)
    for form in ("a-b", "a to b", "[a, b)", "hours", "days", "weeks", "months", "quarters")
}


def built(**hierarchy: Any) -> Hierarchy:
    column = Column.model_validate({"role": "quasi", "hierarchy": hierarchy})
    return build_hierarchy(column, folder=Path())


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``; each end has -1 or 1 where it is left out."""

    low: tuple[Decimal, int]
    high: tuple[Decimal, int]

    def holds(self, other: Range) -> bool:
        return self.low <= other.low and other.high <= self.high


ENDLESS = Decimal("Infinity")


def read(label: str, form: str) -> Range:
    """A label as a program would read it that knows the page alone."""
    if form == "numbers":
        return Range((Decimal(label), 0), (Decimal(label), 0))
    matches = [pattern.fullmatch(label) for pattern in PATTERNS[form]]
    assert sum(match is not None for match in matches) == 1, f"'{label}' does not fit '{form}'"
    closed, lower, upper = matches[:3]
    low, high = (-ENDLESS, 0), (ENDLESS, 0)
    if closed:
        low = (Decimal(closed[1]), 0)
        high = (Decimal(closed[2] or closed[1]), -1 if label.endswith(")") else 0)
    elif lower:  # <5 leaves 5 out, <5-9 reaches to 9
        high = (Decimal(lower[1]), -1 if label == f"<{lower[1]}" else 0)
    elif upper:
        low = (Decimal(upper[1]), 1) if upper[1] else (Decimal(upper[2]), 0)
    return Range(low, high)


def leaf(value: str) -> Range:
    """What a value of the domain is, whatever it is shown as."""
    result = re.fullmatch(r"([<>]?)(-?[\d.]+?)(?:(?:-| to )(-?\d+))?", value)
    assert result is not None
    low, high = Decimal(result[2]), Decimal(result[3] or result[2])
    if result[1]:
        below = Range((-ENDLESS, 0), (low, -1))
        return below if result[1] == "<" else Range((low, 1), (ENDLESS, 0))
    return Range((low, 0), (high, 0))


def covered(hierarchy: Hierarchy, label: str, form: str) -> list[int]:
    span = read(label, form)
    return [at for at, value in enumerate(hierarchy.values) if span.holds(leaf(value))]


def assert_levels_are_read(hierarchy: Hierarchy) -> None:
    """At every level, every label has the one form and covers what is in its group."""
    values = len(hierarchy.values)
    axis = Axis(hierarchy, ordered=True)
    for level in range(hierarchy.height):
        form = find_level_form(hierarchy, level)
        if level == hierarchy.height - 1:
            assert form == "nothing"
            continue
        assert form in SPANS
        reader = LabelReader("x", axis, level)
        for code, label in enumerate(hierarchy.labels[level][:-2]):
            assert label is not None
            group = np.flatnonzero(hierarchy.groups[level][:values] == code)
            assert covered(hierarchy, label, form) == group.tolist()
            assert sorted(reader.read_label(label)[0].tolist()) == sorted(
                axis.positions[group].tolist()
            )


def runs(hierarchy: Hierarchy, most: int = 12) -> Iterator[tuple[int, int]]:
    values = len(hierarchy.values)
    ends = sorted({*range(min(values, most)), *range(max(values - 3, 0), values)})
    return ((low, high) for low in ends for high in ends if low <= high)


def assert_boxes_are_read(hierarchy: Hierarchy, form: Form) -> None:
    """On a line, every label has the one form and covers the values between its ends."""
    axis = Axis(hierarchy, ordered=True)
    assert find_axis_form(axis) == form
    reader = LabelReader("x", axis)
    # Whoever verifies a release knows the listed values, and no rule that made them.
    list_reader = LabelReader("x", Axis(build_from_rows(hierarchy.list_rows()), ordered=True))
    for low, high in runs(hierarchy):
        (label,), _ = axis.make_labels(np.array([low], np.int32), np.array([high], np.int32))
        assert label is not None
        assert reader.read_label(label)[0].tolist() == list(range(low, high + 1)), label
        assert list_reader.read_label(label)[0].tolist() == list(range(low, high + 1)), label
        if form in SPANS:
            codes = [code for code, at in enumerate(axis.positions.tolist())
                     if low <= at <= high and code < len(hierarchy.values)]  # fmt: skip
            assert covered(hierarchy, label, form) == codes


# Intervals -------------------------------------------------------------------------------------


@st.composite
def intervals(draw: st.DrawFn, unit: str) -> dict[str, Any]:
    step = Decimal(unit) * draw(st.sampled_from([1, 2, 5]))
    low = Decimal(unit) * draw(st.integers(-40, 40))
    count = draw(st.integers(2, 20))
    first = draw(st.integers(2, 4))
    widths = [first, first * draw(st.integers(2, 3))][: draw(st.integers(1, 2))]
    more = Decimal(unit) * draw(st.integers(0, 1))
    return {
        "from": str(low), "to": str(low + step * count + more), "step": str(step),
        "widths": [str(step * width) for width in widths],
        "open": draw(st.sampled_from(["none", "lower", "upper", "both"])),
    }  # fmt: skip


@given(intervals("1"))
def test_intervals_of_whole_numbers_have_one_form_at_each_level(declared: dict[str, Any]) -> None:
    hierarchy = built(intervals=declared)
    assert_levels_are_read(hierarchy)
    negative = int(declared["from"]) < 0
    for level in range(hierarchy.height - 1):
        spans = [str(label) for label in hierarchy.labels[level][:-2]]
        assert {" to " in label for label in spans if re.search(r"\d( to )?-", label)} <= {negative}
        form = find_level_form(hierarchy, level)
        assert form != "[a, b)"
        if not negative:
            assert form in ("numbers", "a-b")


@given(intervals("0.1"))
def test_intervals_of_decimals_have_one_form_at_each_level(declared: dict[str, Any]) -> None:
    assert_levels_are_read(built(intervals=declared))


@given(intervals("1"))
def test_boxes_over_whole_numbers_are_read_by_one_pattern(declared: dict[str, Any]) -> None:
    """An end that is open, too: nothing that a search may show is left without a form."""
    low = int(declared["from"])
    below = declared["open"] in ("lower", "both") and low < 0
    assert_boxes_are_read(built(intervals=declared), "a to b" if low < 0 or below else "a-b")


@given(intervals("0.1").map(lambda declared: {**declared, "open": "none"}))
def test_boxes_over_decimals_are_read_by_one_pattern(declared: dict[str, Any]) -> None:
    hierarchy = built(intervals=declared)
    form = find_axis_form(Axis(hierarchy, ordered=True))
    is_whole = all(isinstance(parse_number_label(value), int) for value in hierarchy.values)
    assert_boxes_are_read(hierarchy, form if is_whole else "a to b")


def test_boxes_over_decimals_with_open_ends_are_read_by_the_same_pattern() -> None:
    declared = {"from": 0, "to": 2, "step": 0.5, "open": "both"}
    assert_boxes_are_read(built(intervals=declared), "a to b")


def test_cuts_have_one_form() -> None:
    for low, form in ((0, "a-b"), (-20, "a to b")):
        hierarchy = built(intervals={"from": low, "to": 99, "cuts": [[1, 18, 65], [18]]})
        assert_levels_are_read(hierarchy)
        assert find_level_form(hierarchy, 1) == find_level_form(hierarchy, 2) == form


def test_a_negative_number_makes_all_labels_of_a_column_words() -> None:
    hierarchy = built(intervals={"from": -5, "to": 14, "widths": [5]})
    assert hierarchy.labels[1][:-2] == ("-5 to -1", "0 to 4", "5 to 9", "10 to 14")
    axis = Axis(hierarchy, ordered=True)
    labels, _ = axis.make_labels(np.array([0, 10], np.int32), np.array([9, 14], np.int32))
    assert labels == ["-5 to 4", "5 to 9"]


# Spans of steps, orders ------------------------------------------------------------------------


def test_steps_are_joined_by_their_ends() -> None:
    for hierarchy in (
        built(intervals={"from": 0, "to": 19, "step": 5}),
        built(order={"values": ["0-4", "5-9", "10-14", "15-19"], "runs": [3]}),
    ):
        axis = Axis(hierarchy, ordered=True)
        labels, _ = axis.make_labels(np.array([0, 1], np.int32), np.array([2, 3], np.int32))
        assert labels == ["0-14", "5-19"]
    assert hierarchy.labels[1][:-2] == ("0-14", "15-19")


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=9, unique=True).map(sorted),
       st.integers(2, 3))  # fmt: skip
def test_orders_of_whole_numbers_are_read_by_one_pattern(values: list[int], run: int) -> None:
    hierarchy = built(order={"values": values, "runs": [run]})
    assert_levels_are_read(hierarchy)
    assert_boxes_are_read(hierarchy, "a to b" if values[0] < 0 else "a-b")


@given(st.lists(st.integers(0, 20), min_size=3, max_size=8, unique=True).map(sorted),
       st.integers(2, 3))  # fmt: skip
def test_orders_of_spans_are_read_by_one_pattern(edges: list[int], run: int) -> None:
    values = [f"{5 * a}-{5 * b - 1}" for a, b in itertools.pairwise(edges)]
    hierarchy = built(order={"values": values, "runs": [run]})
    assert_levels_are_read(hierarchy)
    assert_boxes_are_read(hierarchy, "a-b")


def test_spans_in_another_order_are_called_by_their_outer_ends() -> None:
    """Nobody reads 60-59 as everything from 40 to 79."""
    values = ["60-79", "40-59", "20-39", "0-19"]
    hierarchy = built(order={"values": values, "runs": [2]})
    axis = Axis(hierarchy, ordered=True)
    pairs = zip((0, 2), hierarchy.labels[1][:-2], strict=True)
    values_by_label = {label: values[at : at + 2] for at, label in pairs}
    for low, high in runs(hierarchy):
        (label,), _ = axis.make_labels(np.array([low], np.int32), np.array([high], np.int32))
        values_by_label[label] = values[low : high + 1]
    for label, label_values in values_by_label.items():
        ends = [int(end) for end in re.findall(r"\d+", " ".join(label_values))]
        label_ends = [int(end) for end in re.findall(r"\d+", str(label))]
        assert (min(label_ends), max(label_ends)) == (min(ends), max(ends)), label


def test_orders_of_decimals_and_of_what_lies_beyond() -> None:
    assert_levels_are_read(built(order={"values": [0.5, 1, 1.5, 2], "runs": [2]}))
    assert_boxes_are_read(built(order={"values": [0.5, 1, 1.5, 2]}), "a to b")
    brackets = {"values": ["<18", "18-29", "30-64", ">64"], "runs": [2]}
    assert_levels_are_read(built(order=brackets))
    assert_boxes_are_read(built(order=brackets), "a-b")


def test_orders_of_words_are_text() -> None:
    hierarchy = built(order={"values": ["low", "middle", "high"], "runs": [2]})
    assert [find_level_form(hierarchy, level) for level in range(3)] == ["text", "text", "nothing"]
    assert_boxes_are_read(hierarchy, "text")


def test_a_month_is_no_span() -> None:
    spans = SpanLabeler(["2020-03", "2020-11", "2021-01"])
    assert spans("2020-03", "2021-01") == "2020-03 to 2021-01"
    assert find_form(["2020-03", "2020-11"]) == "months"


# Dates -----------------------------------------------------------------------------------------

LADDER = {
    "day": "days", "month": "months", "quarter": "quarters", "year": "numbers", "decade": "a-b",
}  # fmt: skip
BOXES = {"day": "text", "month": "text", "quarter": "text", "year": "a-b", "decade": "a-b"}


@given(
    st.lists(st.sampled_from(list(LADDER)), min_size=1, unique=True),
    st.dates(dt.date(1900, 1, 1), dt.date(2030, 1, 1)),
    st.integers(0, 4000),
)
def test_dates_have_one_form_at_each_level(levels: list[str], first: dt.date, days: int) -> None:
    levels.sort(key=list(LADDER).index)
    last = first + dt.timedelta(days)
    hierarchy = built(dates={"from": first, "to": last, "levels": levels})
    for at, level in enumerate(levels):
        assert find_level_form(hierarchy, at) == LADDER[level]
        for label in hierarchy.labels[at][:-2]:
            assert label is not None
            if level != "year":
                assert any(pattern.fullmatch(label) for pattern in PATTERNS[LADDER[level]])
    assert find_level_form(hierarchy, len(levels)) == "nothing"
    if levels[0] != "day":  # there are many
        assert_boxes_are_read(hierarchy, BOXES[levels[0]])  # type: ignore[arg-type]


def test_hours_weeks_and_weekdays_have_their_forms() -> None:
    hours = built(
        dates={"from": "2020-02-28", "to": "2020-03-01", "levels": ["hour", "day", "week"]}
    )
    assert [find_level_form(hours, level) for level in range(3)] == ["hours", "days", "weeks"]
    for form, level in (("hours", 0), ("weeks", 2)):
        for label in hours.labels[level][:-2]:
            assert any(pattern.fullmatch(label or "") for pattern in PATTERNS[form])
    assert_boxes_are_read(hours, "text")
    days = built(dates={"from": "2020-02-28", "to": "2020-03-01", "levels": ["day", "weekday"]})
    assert [find_level_form(days, level) for level in range(2)] == ["days", "text"]


def test_boxes_over_days_are_text_and_read_again() -> None:
    assert_boxes_are_read(built(dates={"from": "2020-02-20", "to": "2020-03-10"}), "text")


# Labels that others wrote ----------------------------------------------------------------------

WRITTEN = st.sampled_from(
    ["0", "5", "-5", "0.5", "05", "0-4", "5-9", "9-5", "-5-4", "-5 to 4", "5 to 9", "<0", "<-5",
     ">89", ">0.5", "<5-9", "80->89", "[0, 1)", "[0.5, 1]", "(0, 1]", "2020-03", "2020-13", "1e5",
     "2020-03-04", "2020-Q1", "2020-Q5", "a", "", "*", "1-", "--", "٣", "٣-٤", "1.", "1-2-3"]
)  # fmt: skip


@given(st.lists(WRITTEN, min_size=1, max_size=4))
def test_every_label_fits_the_pattern_of_the_form_that_is_claimed(labels: list[str]) -> None:
    form = find_form(labels)
    for label in labels:
        if form in PATTERNS:
            assert any(pattern.fullmatch(label) for pattern in PATTERNS[form]), (form, label)
        if form in SPANS:
            read(label, form)


def test_no_labels_have_no_form() -> None:
    assert find_form([]) == "text"


# Numbers ---------------------------------------------------------------------------------------


@given(st.one_of(st.integers(-(10**18), 10**18), st.floats(allow_nan=False, allow_infinity=False)))
def test_a_number_is_one_only_if_a_program_writes_it_as_it_was(x: float) -> None:
    text = f"{Decimal(repr(x)):f}"
    number_label = parse_number_label(text)
    if number_label is not None:
        again = (
            str(number_label)
            if isinstance(number_label, int)
            else f"{Decimal(repr(number_label)):f}"
        )
        assert again == text
        assert abs(number_label) < 2**53


@pytest.mark.parametrize(
    "text",
    ["01234", "1.0", "+1", "1e3", "-0", " 1", "", "NA", "1_000", "٣", "9007199254740993",
     "0.1000000000000000055511151231257827"],
)  # fmt: skip
def test_what_would_be_written_otherwise_is_no_number(text: str) -> None:
    assert parse_number_label(text) is None


def test_numbers_are_whole_where_the_whole_domain_is() -> None:
    number_labels = parse_number_labels(["1", None], ["1", "2"])
    assert number_labels == [1, None]
    assert isinstance(number_labels[0], int)
    number_labels = parse_number_labels(["1", None], ["1", "2.5"])
    assert number_labels == [1.0, None]
    assert isinstance(number_labels[0], float)
    assert parse_number_labels(["1", "*"], ["1", "2"]) is None
