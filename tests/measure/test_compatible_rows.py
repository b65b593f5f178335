"""Rows that are compatible if a suppressed cell may be any value, against counts of others."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from incrowd.codes.frequency import merge_tuples
from incrowd.measure.compatible_rows import count_compatible_rows, find_incompatible_sets

STAR = None


def code_rows(rows: list[tuple[object, ...]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes, suppressed cells and counts (1 each) of rows in which None is suppressed."""
    codes = np.zeros((len(rows), len(rows[0])), dtype=np.int32)
    hidden = np.zeros(codes.shape, dtype=bool)
    for at, column in enumerate(zip(*rows, strict=True)):
        values = [value for value in dict.fromkeys(column) if value is not STAR]
        for row, value in enumerate(column):
            hidden[row, at] = value is STAR
            codes[row, at] = 99 if value is STAR else values.index(value)
    return codes, hidden, np.ones(len(rows), dtype=np.int64)


# The frequencies that ARX 3.9.2 expects in its test of wildcard matching (TestWildcardMatching).
PUBLISHED = [
    (
        [("M", 1), ("M", 1), ("M", 1), (STAR, 1), (STAR, 1), ("F", 2), ("F", STAR), ("M", STAR)],
        [6, 6, 6, 7, 7, 2, 4, 6],
    ),
    (
        [
            (STAR, "F", "n"), (68, "F", "n"), (68, STAR, "n"), (STAR, STAR, "n"),
            (STAR, STAR, "n"), (STAR, STAR, "n"), (68, "F", STAR), (68, STAR, "s"),
            (68, "F", "s"), (68, "F", "s"),
        ],
        [7, 7, 7, 7, 7, 7, 10, 4, 4, 4],
    ),
    (
        [
            (73, "a"), (73, "a"), (STAR, "a"), (STAR, "a"), (STAR, "b"),
            (67, "b"), (67, "b"), (67, "a"), (67, "a"), (67, "a"),
        ],
        [4, 4, 7, 7, 3, 3, 3, 5, 5, 5],
    ),
    # sdcMicro's comments on its test of freqCalc: 5 rows, the last with one cell suppressed
    (
        [("A", "s", 5), ("A", "m", 5), ("A", "m", 5), ("A", "s", 5), ("A", STAR, 5)],
        [3, 3, 3, 3, 5],
    ),
    # Tests of sdcMicro's freqCalc on numbers: missing values in the third column, in a whole row
    # and a whole column, in a table of one column, and in one of more columns than rows
    (
        [
            (2, 3, 1), (3, 3, 3), (2, 3, STAR), (2, 3, 2),
            (3, 3, 1), (3, 3, 1), (1, 4, STAR), (2, 3, 1),
        ],
        [3, 1, 4, 2, 2, 2, 1, 3],
    ),
    (
        [
            (2, 3, STAR), (3, 3, STAR), (STAR, STAR, STAR), (2, 3, STAR),
            (3, 3, STAR), (3, 3, STAR), (1, 4, STAR), (2, 3, STAR),
        ],
        [4, 4, 8, 4, 4, 4, 2, 4],
    ),
    (
        [(2,), (3,), (STAR,), (2,), (1,), (STAR,), (1,), (2,)],
        [5, 3, 8, 5, 4, 8, 4, 5],
    ),
    (
        [
            (2, 2, 1, 3, 3, 3, 1, STAR), (3, 3, STAR, STAR, 2, STAR, 2, 4),
            (STAR, 3, 3, 3, 2, STAR, STAR, 4),
        ],
        [1, 2, 2],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "frequencies"), PUBLISHED)
def test_published_frequencies(rows: list[tuple[object, ...]], frequencies: list[int]) -> None:
    assert count_compatible_rows(*code_rows(rows)).tolist() == frequencies


@pytest.mark.parametrize("seed", range(6))
def test_counts_equal_a_comparison_of_every_two_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, size=(150, 4)).astype(np.int32)
    hidden = rng.random(codes.shape) < 0.25
    counts = rng.integers(1, 9, size=150)
    fits = ((codes[:, None] == codes[None]) | hidden[:, None] | hidden[None]).all(axis=2)
    assert (count_compatible_rows(codes, hidden, counts) == fits @ counts).all()
    some = rng.choice(150, 20, replace=False)
    assert (count_compatible_rows(codes, hidden, counts, some) == (fits @ counts)[some]).all()


def test_sets_of_columns_in_which_a_row_stands_out() -> None:
    rng = np.random.default_rng(8)
    for _ in range(10):
        codes = rng.integers(0, 3, size=(30, 4)).astype(np.int32)
        hidden = rng.random(codes.shape) < 0.2
        tuples = merge_tuples(np.where(hidden, 9, codes).astype(np.int32), np.ones(30, np.int64))
        sets = [columns for size in (1, 2, 3) for columns in combinations(range(4), size)]
        expected = [
            columns for columns in sets
            if count_compatible_rows(
                codes[:, columns], hidden[:, columns], np.ones(30, dtype=np.int64)
            ).min() < 6
        ]  # fmt: skip
        small_sets = find_incompatible_sets(tuples.codes, tuples.codes == 9, tuples.counts, sets, 6)
        assert small_sets == expected
        assert 0 < len(small_sets) < len(sets)


def test_rows_that_show_nothing_are_compatible_with_all() -> None:
    """Why this reading is weak: k - 1 such rows make any table compatible with k."""
    codes = np.arange(20, dtype=np.int32)[:, None].repeat(3, axis=1)
    hidden = np.zeros(codes.shape, dtype=bool)
    hidden[:4] = True
    counts = count_compatible_rows(codes, hidden, np.ones(20, dtype=np.int64))
    assert counts.tolist() == [20] * 4 + [5] * 16
