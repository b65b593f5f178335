"""Axes and boxes, against leaf sets written out."""

from __future__ import annotations

import itertools
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.arrays import Codes
from incrowd.codes.axis import Axis, bound_classes, compute_class_cost, locate_points
from incrowd.codes.hierarchy import Hierarchy, build_from_rows

NULL, OUTSIDE = "null", "outside"
Rows = list[tuple[str, ...]]


def name(hierarchy: Hierarchy, code: int) -> str:
    return [*hierarchy.values, NULL, OUTSIDE][code]


def lined(axis: Axis) -> list[str]:
    """The values in the order of their positions."""
    codes = np.argsort(axis.positions)
    assert sorted(axis.positions.tolist()) == list(range(len(codes)))
    return [name(axis.hierarchy, int(code)) for code in codes]


def runs(axis: Axis) -> tuple[Codes, Codes, list[list[str]]]:
    """All runs of positions, and the values in each."""
    values = lined(axis)
    pairs = list(itertools.combinations_with_replacement(range(len(values)), 2))
    low, high = (np.array(ends, dtype=np.int32) for ends in zip(*pairs, strict=True))
    return low, high, [values[first : last + 1] for first, last in pairs]


def texts(axis: Axis, low: Codes, high: Codes) -> list[str | None]:
    labels, places = axis.make_labels(low, high)
    assert len(set(labels)) == len(labels)
    return [labels[place] for place in places]


@st.composite
def trees(draw: st.DrawFn) -> tuple[Rows, str | None]:
    size = draw(st.integers(2, 7))
    columns = [[f"v{value}" for value in range(size)]]
    groups = list(range(size))
    for level in range(draw(st.integers(0, 3))):
        parents = draw(st.lists(st.integers(0, 3 - level), min_size=7, max_size=7))
        groups = [parents[group] for group in groups]
        columns.append([f"{level}:{group}" for group in groups])
    root = draw(st.sampled_from([None, "*", "all"]))
    if root is not None:
        columns.append([root] * size)
    return list(zip(*columns, strict=True)), draw(st.sampled_from([None, "other"]))


def smallest(rows: Rows, other: str | None, values: list[str]) -> tuple[str | None, float]:
    """The label of the smallest group that holds the values, and what it costs."""
    height, size = len(rows[0]), len(rows)
    rooted = height > 1 and len({row[-1] for row in rows}) == 1
    if values == [NULL]:
        return None, 0.0
    if values == [OUTSIDE]:  # shown as the root, and as little is known, unless it has a label
        root = rows[0][-1] if rooted else "*"
        return (root, 1.0) if other is None else (other, 0.0)
    if NULL in values or OUTSIDE in values:
        return (rows[0][-1] if rooted else "*"), 1.0
    for level in range(height):
        labels = {row[level] for row in rows if row[0] in values}
        if len(labels) == 1:
            label = labels.pop()
            covered = sum(row[level] == label for row in rows)
            return label, (covered - 1) / (size - 1)
    return "*", 1.0


@given(tree=trees())
def test_a_run_of_a_tree_is_its_smallest_group(tree: tuple[Rows, str | None]) -> None:
    rows, other = tree
    axis = Axis(build_from_rows(rows, other=other), ordered=False)
    low, high, value_sets = runs(axis)
    expected = [smallest(rows, other, values) for values in value_sets]
    assert texts(axis, low, high) == [label for label, _ in expected]
    assert axis.compute_cost(low, high) == pytest.approx([paid for _, paid in expected])


@given(tree=trees())
def test_every_group_of_a_tree_is_a_run(tree: tuple[Rows, str | None]) -> None:
    rows, other = tree
    axis = Axis(build_from_rows(rows, other=other), ordered=False)
    values = lined(axis)
    assert values[-2:] == [NULL, OUTSIDE]
    for level in range(len(rows[0])):
        labels = [next(row[level] for row in rows if row[0] == value) for value in values[:-2]]
        met = [label for label, _ in itertools.groupby(labels)]
        assert len(met) == len(set(met))


@given(tree=trees())
def test_levels_and_parts_of_a_tree(tree: tuple[Rows, str | None]) -> None:
    """A run is told apart, one level below its smallest group, into that group's children."""
    rows, other = tree
    axis = Axis(build_from_rows(rows, other=other), ordered=False)
    low, high, value_sets = runs(axis)
    levels = axis.find_levels(low, high)
    for at, values in enumerate(value_sets):
        if NULL in values or OUTSIDE in values:
            continue
        label_rows = [[row[level] for level in range(len(row))] for row in rows if row[0] in values]
        alike = [
            len({labels[level] for labels in label_rows}) == 1 for level in range(len(rows[0]))
        ]
        level = alike.index(True) if any(alike) else len(alike)
        assert levels[at] == level
        if level:
            run = np.arange(low[at], high[at] + 1, dtype=np.int32)
            parts = axis.find_parts(run, np.full(len(run), level)).tolist()
            below = [next(row[level - 1] for row in rows if row[0] == value) for value in values]
            pairs = set(zip(parts, below, strict=True))
            assert len(pairs) == len(set(parts)) == len(set(below)) >= 2


numbers = st.lists(
    st.decimals(-20, 60, places=1, allow_nan=False), min_size=2, max_size=8, unique=True
)


@given(decimals=numbers, other=st.sampled_from([None, "other"]))
def test_a_run_of_numbers_is_an_interval(decimals: list[Decimal], other: str | None) -> None:
    axis = Axis(build_from_rows([(str(x), "*") for x in decimals], other=other), ordered=True)
    low, high, value_sets = runs(axis)
    ordered = lined(axis)
    assert [Decimal(x) for x in ordered[:-2]] == sorted(decimals)
    assert ordered[-2:] == [NULL, OUTSIDE]
    costs, labels = axis.compute_cost(low, high).tolist(), texts(axis, low, high)
    for values, paid, text in zip(value_sets, costs, labels, strict=True):
        if values == [NULL]:
            assert (text, paid) == (None, 0.0)
        elif values == [OUTSIDE]:
            assert (text, paid) == (("*", 1.0) if other is None else (other, 0.0))
        elif OUTSIDE in values or NULL in values:
            assert (text, paid) == ("*", 1.0)
        else:
            assert paid == pytest.approx((len(values) - 1) / (len(decimals) - 1))
            first, last = values[0], values[-1]
            plain = all(x.isdecimal() for x in ordered[:-2])
            interval = f"{first}-{last}" if plain else f"{first} to {last}"
            assert text == (first if len(values) == 1 else interval)


def test_words_keep_the_order_in_which_they_were_declared() -> None:
    axis = Axis(build_from_rows([(x, "*") for x in ("low", "middle", "high", "10")]), ordered=True)
    assert lined(axis) == ["low", "middle", "high", "10", NULL, OUTSIDE]
    low, high = np.array([0, 1, 2, 3], np.int32), np.array([2, 1, 3, 5], np.int32)
    assert texts(axis, low, high) == ["low to high", "middle", "high to 10", "*"]
    assert axis.compute_cost(low, high) == pytest.approx([2 / 3, 0, 1 / 3, 1])


def test_numbers_are_ordered_as_numbers() -> None:
    axis = Axis(build_from_rows([(x,) for x in ("10", "9", "-3", "100", "2.5")]), ordered=True)
    assert lined(axis)[:-2] == ["-3", "2.5", "9", "10", "100"]


def test_an_open_domain_is_measured_by_its_rule() -> None:
    """Two characters of ten: a hidden one is half of what there is to lose, met or not."""
    rows = [("11", "1*", "**"), ("12", "1*", "**"), ("35", "3*", "**")]
    axis = Axis(replace(build_from_rows(rows, size=100, exact=True), open=True), ordered=False)
    low, high = np.array([0, 0, 0, 2], np.int32), np.array([0, 1, 2, 2], np.int32)
    assert texts(axis, low, high) == ["11", "1*", "**", "35"]
    assert axis.compute_cost(low, high) == pytest.approx([0, 1 / 2, 1, 0])


def test_alike_labels_are_one() -> None:
    axis = Axis(build_from_rows([("a", "*"), ("b", "*")]), ordered=False)
    low, high = np.array([0, 3, 1, 0], np.int32), np.array([1, 3, 3, 0], np.int32)
    labels, places = axis.make_labels(low, high)  # a or b, outside, b to outside: the root
    assert sorted(labels, key=str) == ["*", "a"]
    assert len(set(places[:3].tolist())) == 1
    assert places[3] != places[0]


points_of = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 9), st.integers(0, 4)),
    min_size=1,
    max_size=25,
)


@given(rows=points_of)
def test_boxes_reach_from_the_least_to_the_greatest(rows: list[tuple[int, int, int, int]]) -> None:
    table = np.array(rows)
    members = np.unique(table[:, 3], return_inverse=True)[1]
    result = bound_classes(table[:, :2].astype(np.int32), table[:, 2], members)
    for number in range(int(members.max()) + 1):
        inside = [row for row, member in zip(rows, members, strict=True) if member == number]
        for at in (0, 1):
            assert result.low[number, at] == min(row[at] for row in inside)
            assert result.high[number, at] == max(row[at] for row in inside)
        assert result.sizes[number] == sum(row[2] for row in inside)
    assert len(result.sizes) == len(result.low) == len(result.high) == members.max() + 1


def test_positions_and_the_mean_cost_of_boxes() -> None:
    first = Axis(build_from_rows([(x, "*") for x in ("30", "10", "20", "40", "50")]), ordered=True)
    second = Axis(
        build_from_rows([("a", "x", "*"), ("b", "y", "*"), ("c", "x", "*")]), ordered=False
    )
    codes = np.array([[1, 0], [0, 2], [4, 1], [6, 4]], np.int32)  # the last: outside both
    points = locate_points([first, second], codes)
    assert points.tolist() == [[0, 0], [2, 1], [4, 2], [6, 4]]
    result = bound_classes(points, np.array([3, 4, 5, 6]), np.array([0, 0, 1, 2]))
    assert result.sizes.tolist() == [7, 5, 6]
    # 10 to 30 covers 3 of 5, and x covers 2 of 3
    assert compute_class_cost([first, second], result) == pytest.approx([(0.5 + 0.5) / 2, 0, 1])
    weighted = compute_class_cost([first, second], result, np.array([3.0, 1.0]))
    assert weighted == pytest.approx([(3 * 0.5 + 0.5) / 4, 0, 1])
    uneven = bound_classes(points, np.array([3, 4, 5, 6]), np.array([0, 1, 1, 2]))
    # 30 to 50 covers 3 of 5, and only the root holds b and c
    third = compute_class_cost([first, second], uneven, np.array([3.0, 1.0]))
    assert third == pytest.approx([0, (3 * 0.5 + 1) / 4, 1])
