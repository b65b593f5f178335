"""Labels of sets of values: written, read again, and never two sets with one label."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.codes.axis import Axis
from incrowd.codes.hierarchy import build_from_rows
from incrowd.codes.set_label import format_set, parse_set
from incrowd.errors import IncrowdError
from incrowd.measure.labels import LabelReader

TREE = build_from_rows(
    [("a", "ab", "*"), ("b", "ab", "*"), ("c, d", "rest", "*"), ("{e}", "rest", "*"),
     ('f"', "rest", "*")]
)  # fmt: skip


@given(st.lists(st.text(alphabet='ab ,{}"\\;|ü\n', min_size=0, max_size=6), min_size=2, max_size=4))
def test_a_set_is_read_as_it_was_written(values: list[str]) -> None:
    assert parse_set(format_set(values)) == values


@given(st.text(alphabet='ab ,{}"\\', max_size=12))
def test_what_is_read_is_written_in_one_way_only(text: str) -> None:
    values = parse_set(text)
    assert values is None or format_set(values) == text


def test_a_class_shows_the_set_of_its_values_or_the_group_that_they_fill() -> None:
    axis = Axis(TREE, ordered=False)
    at = {value: int(axis.positions[code]) for code, value in enumerate(TREE.values)}
    classes = [["a"], ["a", "b"], ["b", "c, d"], ["{e}", 'f"'], list(TREE.values), ["b", "c, d"]]
    points = np.array([at[value] for values in classes for value in values], dtype=np.int32)
    members = np.repeat(np.arange(len(classes)), [len(values) for values in classes])
    labels, codes = axis.make_set_labels(points, members)
    texts = [labels[code] for code in codes.tolist()]
    assert texts[:2] == ["a", "ab"]
    assert texts[4:] == ["*", texts[2]]
    assert parse_set(str(texts[2])) == ["b", "c, d"]
    assert parse_set(str(texts[3])) == ["{e}", 'f"']
    reader = LabelReader("x", axis)
    for label, values in zip(texts, classes, strict=True):
        places, _ = reader.read_label(label)
        assert places.tolist() == sorted(at[value] for value in values)


def test_null_beside_values_shows_the_group_that_holds_both() -> None:
    axis = Axis(TREE, ordered=False)
    points = axis.positions[[0, 1, TREE.null]].astype(np.int32)
    labels, _ = axis.make_set_labels(points, np.array([0, 0, 0]))
    assert labels == ["*"]


def test_a_hierarchy_with_labels_in_braces_is_refused() -> None:
    axis = Axis(build_from_rows([("a", "{a, b}"), ("b", "{a, b}"), ("c", "c")]), ordered=False)
    with pytest.raises(IncrowdError, match="is a label of a hierarchy"):
        axis.make_set_labels(np.array([0, 2]), np.array([0, 0]))


def test_a_run_is_never_called_like_a_group_that_it_is_not() -> None:
    """Files of other tools have groups such as 20-24 that hold 21 to 25."""
    rows = [(str(x), "20-24" if x > 20 else "15-19", "*") for x in range(16, 26)]
    axis = Axis(build_from_rows(rows), ordered=True)
    places = {value: int(axis.positions[code]) for code, value in enumerate(axis.hierarchy.values)}
    ends = [np.array([places[value]], dtype=np.int32) for value in ("20", "24")]
    labels, _ = axis.make_labels(*ends)
    assert labels == ["20 to 24"]
    read, _ = LabelReader("age", axis).read_label(labels[0])
    assert read.tolist() == list(range(places["20"], places["24"] + 1))
    right = [(str(x), "20-24" if x > 19 else "15-19", "*") for x in range(15, 25)]
    assert Axis(build_from_rows(right), ordered=True).spans.dash
