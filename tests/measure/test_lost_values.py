"""What a release lost: values, pairs of values, and columns that show nothing."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.measure.lost_values import (
    LEAST_ROWS,
    LOST,
    MOST_LABELS,
    ColumnLabels,
    LostValues,
    find_lost_values,
    shows_nothing,
)
from incrowd.spec.build import build_hierarchy
from incrowd.spec.file import parse_spec

INSURERS, RESULTS = ["charity", "private", "public"], ["negative", "positive"]
TABLE = {
    ("charity", "negative"): 100, ("charity", "positive"): 30,
    ("private", "negative"): 2000, ("private", "positive"): 200,
    ("public", "negative"): 1000, ("public", "positive"): 100,
}  # fmt: skip


def tuples(rows: dict[tuple[str, str], int]) -> Frequencies:
    codes = [[INSURERS.index(first), RESULTS.index(other)] for first, other in rows]
    return merge_tuples(np.array(codes, dtype=np.int32), np.array([*rows.values()], dtype=np.int64))


def found(rows: dict[tuple[str, str], int]) -> LostValues:
    columns = [ColumnLabels("insurer", 0, INSURERS, INSURERS),
               ColumnLabels("result", 1, RESULTS, RESULTS)]  # fmt: skip
    return find_lost_values(columns, tuples(TABLE), tuples(rows))


def test_a_release_that_kept_everything_lost_no_value() -> None:
    assert found(TABLE) == LostValues()
    assert found(TABLE).findings() == []


def test_a_release_that_lost_evenly_lost_no_value() -> None:
    assert found({key: rows // 3 for key, rows in TABLE.items()}) == LostValues()


def test_half_of_the_positives_are_named_with_their_shares_and_a_pair_that_lost_all() -> None:
    rows = TABLE | {("charity", "positive"): 0, ("private", "positive"): 110,
                    ("public", "positive"): 55}  # fmt: skip
    (value,) = found(rows).values
    assert (value.columns, value.labels) == (("result",), ("positive",))
    assert (value.rows, value.released) == (330, 165)
    assert value.lost == 0.5
    assert value.share_before == 330 / 3430
    assert value.share_after == 165 / 3265
    (pair,) = found(rows).pairs  # the others lost what the value lost
    assert pair.labels == ("charity", "positive")
    assert pair.lost == 1.0
    value_finding, pair_finding = map(str, found(rows).findings())
    assert "result = positive (50 % of 330 rows, share 9.6 % → 5.1 %)" in value_finding
    assert "insurer = charity with result = positive (all of 30 rows)" in pair_finding


def test_a_loss_that_a_random_choice_of_rows_explains_is_not_named() -> None:
    """Of 30 rows in a sample of one in ten three are expected, and one is no wonder."""
    sampled = {key: rows // 10 for key, rows in TABLE.items()}
    assert found(sampled | {("charity", "positive"): 1}).pairs == ()
    half = {key: rows // 2 for key, rows in TABLE.items()}
    assert found(half | {("charity", "positive"): 5}).pairs != ()


def test_surplus_rows_do_not_make_a_loss_negative_or_more_than_all() -> None:
    rows = {key: 2 * count for key, count in TABLE.items()} | {("charity", "positive"): 0}
    every = [*found(rows).values, *found(rows).pairs]
    assert [value.labels for value in every] == [("charity", "positive")]
    assert [value.lost for value in every] == [1.0]


def test_what_the_release_alone_has_and_empty_tables_are_no_loss() -> None:
    columns = [ColumnLabels("x", 0, ["a", "b"], ["b", "c"])]
    before = merge_tuples(np.array([[0], [1]], np.int32), np.array([50, 50]))
    after = merge_tuples(np.array([[0], [1]], np.int32), np.array([50, 50]))
    (lost,) = find_lost_values(columns, before, after).values
    assert (lost.labels, lost.released) == (("a",), 0)
    nothing = Frequencies(np.zeros((0, 1), np.int32), np.zeros(0, np.int64))
    assert find_lost_values(columns, before, nothing) == LostValues()
    assert find_lost_values(columns, nothing, after) == LostValues()
    assert find_lost_values([], before, after) == LostValues()


def test_columns_of_many_labels_are_not_compared_and_many_values_are_counted() -> None:
    for number in (MOST_LABELS, MOST_LABELS + 1):
        labels = [f"value {at:02d}" for at in range(number)]
        before = merge_tuples(np.arange(number, dtype=np.int32)[:, None], np.full(number, 1000))
        after = merge_tuples(
            np.arange(number, dtype=np.int32)[:, None],
            np.where(np.arange(number) < number - 11, 1000, 10),
        )
        lost = find_lost_values([ColumnLabels("x", 0, labels, labels)], before, after)
        assert len(lost.values) == (11 if number == MOST_LABELS else 0)
        if lost.values:
            (finding,) = lost.findings()
            assert finding.values["more"] == 3
            assert "and 3 more" in finding.message


@given(
    st.lists(st.integers(0, 60), min_size=9, max_size=9),
    st.lists(st.integers(0, 60), min_size=9, max_size=9),
)
def test_named_are_those_that_the_definition_names(
    rows_before: list[int], rows_after: list[int]
) -> None:
    keys = list(product("abc", "xyz"))
    before, after = (
        dict(zip(keys, rows_before, strict=True)),
        dict(zip(keys, rows_after, strict=True)),
    )
    codes = np.array([["abc".index(a), "xyz".index(b)] for a, b in keys], dtype=np.int32)
    columns = [ColumnLabels("a", 0, [*"abc"], [*"abc"]), ColumnLabels("x", 1, [*"xyz"], [*"xyz"])]
    lost = find_lost_values(
        columns,
        merge_tuples(codes, np.array(rows_before)),
        merge_tuples(codes, np.array(rows_after)),
    )
    overall = min(sum(rows_after) / max(sum(rows_before), 1), 1.0)
    every = [*((0, x) for x in "abc"), *((1, x) for x in "xyz")]
    assert {value.labels for value in lost.values} == {
        (label,)
        for at, label in every
        if sum(rows_after) and is_lost(one_of(before, at, label), one_of(after, at, label), overall)
    }
    for lost_value in (*lost.values, *lost.pairs):
        assert 0 <= lost_value.lost <= 1
        assert lost_value.rows >= LEAST_ROWS
        assert lost_value.released < (1 - LOST) * lost_value.rows


def one_of(rows: dict[tuple[str, str], int], at: int, label: str) -> int:
    result = Counter[str]()
    for key, count in rows.items():
        result[key[at]] += count
    return result[label]


def is_lost(rows: int, released: int, rate: float) -> bool:
    short = rate * rows - released
    return rows >= 20 and released < 0.75 * rate * rows and short > 2.5 * (
        rate * (1 - rate) * rows
    ) ** 0.5  # fmt: skip


@pytest.mark.parametrize(
    ("declared", "labels", "nothing"),
    [
        ("{mask: {length: 5}}", {"*****"}, True),
        ("{mask: {length: 5}}", {"*"}, True),
        ("{mask: {length: 5}}", {"1****"}, False),
        ("{groups: {Person: [female, male]}}", {"Person"}, True),
        ("{groups: {Person: [female, male]}}", {"female"}, False),
        ("{flat: {values: [a, b]}}", {"*", "a"}, False),
        ("{flat: {values: [a, b]}}", {"*", None}, False),
    ],
)
def test_a_root_and_a_full_mask_show_nothing(
    declared: str, labels: set[str | None], nothing: bool
) -> None:
    file = parse_spec(f"columns: {{x: {{role: quasi, hierarchy: {declared}}}}}")
    hierarchy = build_hierarchy(
        file.spec.columns["x"], folder=file.folder, values=["12345", "54321"]
    )
    assert shows_nothing(hierarchy, labels) is nothing


def test_columns_that_show_nothing_are_named_and_their_values_are_not() -> None:
    columns = [ColumnLabels("x", 0, ["a", "b"], ["*", "*"])]
    before = merge_tuples(np.array([[0], [1]], np.int32), np.array([50, 50]))
    lost = find_lost_values(columns, before, before, ["x"])
    assert lost == LostValues(nothing_shown=("x",))
    (finding,) = lost.findings()
    assert (finding.code, finding.values["listed"]) == ("COLUMNS_SUPPRESSED", ["x"])
