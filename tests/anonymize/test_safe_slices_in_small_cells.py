"""Slices chosen by what will survive: small cells count nothing, and one row moves no more."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.slices_law import (
    SliceChoiceLaw,
    U,
    add_row,
    compute_budget_usage,
    count_listed_rows,
    list_neighbor_tables,
    row_tables,
)

from incrowd.anonymize.safe_slices import choose_slices, compute_dependence
from incrowd.codes.frequency import Frequencies
from incrowd.privacy.randomness import SeededRandomness

Row = tuple[int, ...]


def by_definition(rows: Mapping[Row, int], least: int) -> int:
    """floor(U S), S summed over all pairs of values with exact fractions."""
    total, score = sum(rows.values()), Fraction(0)
    for x, y in itertools.product({row[0] for row in rows}, {row[1] for row in rows}):
        both = rows.get((x, y), 0)
        first = sum(n for row, n in rows.items() if row[0] == x)
        other = sum(n for row, n in rows.items() if row[1] == y)
        apart = both - Fraction(first * other, total)
        score += min(max(Fraction(0), apart), Fraction(max(0, both - least)))
    return math.floor(U * score)


@given(rows=row_tables(2), least=st.integers(0, 40))
def test_the_score_is_what_the_docstring_says(rows: dict[Row, int], least: int) -> None:
    assert compute_dependence(count_listed_rows(rows), 0, 1, least) == (
        by_definition(rows, least) if rows else 0
    )
    many = {row: n * 2**29 for row, n in rows.items()}
    if many:  # products that no longer fit into 64 bits
        score = compute_dependence(count_listed_rows(many), 0, 1, least * 2**29)
        assert score == by_definition(many, least * 2**29)


def test_small_cells_count_nothing() -> None:
    """A thousand cells of one row each: by chance alone one column decides the other."""
    scattered: dict[Row, int] = {(x, (7 * x) % 1000): 1 for x in range(1000)}
    assert compute_dependence(count_listed_rows(scattered), 0, 1) > 0.99 * U * 1000
    assert compute_dependence(count_listed_rows(scattered), 0, 1, 1) == 0
    large: dict[Row, int] = {(0, 0): 500, (1, 1): 500}
    assert compute_dependence(count_listed_rows(large), 0, 1, 30) == compute_dependence(
        count_listed_rows(large), 0, 1
    )


@pytest.mark.parametrize("least", [0, 1, 2, 3])
def test_one_row_moves_the_score_by_less_than_two_units(least: int) -> None:
    """All tables of up to four rows of three values each, beside all with a row more."""
    rows = list(itertools.product(range(3), repeat=2))
    low, high = 0, 0
    for size in range(5):
        for table in itertools.combinations_with_replacement(rows, size):
            before = dict(Counter(table))
            dependence = compute_dependence(count_listed_rows(before), 0, 1, least)
            for row in rows:
                moved = (
                    compute_dependence(count_listed_rows(add_row(before, row)), 0, 1, least)
                    - dependence
                )
                low, high = min(low, moved), max(high, moved)
    assert -2 * U <= low <= high <= 2 * U


@given(
    rows=row_tables(2, most=300), row=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    least=st.integers(0, 200),
)  # fmt: skip
def test_neither_does_it_in_larger_tables(rows: dict[Row, int], row: Row, least: int) -> None:
    moved = compute_dependence(count_listed_rows(add_row(rows, row)), 0, 1, least)
    assert abs(moved - compute_dependence(count_listed_rows(rows), 0, 1, least)) <= 2 * U


@pytest.mark.parametrize("least", [1, 40])
def test_the_bound_is_nearly_reached_both_ways(least: int) -> None:
    """Up: a cell passes the threshold, and so does all else that is where it should not be."""
    rows: dict[Row, int] = {(0, 0): 10_000, (1, 1): least}
    risen = compute_dependence(count_listed_rows(add_row(rows, (1, 1))), 0, 1, least)
    risen -= compute_dependence(count_listed_rows(rows), 0, 1, least)
    assert 1.95 * U < risen <= 2 * U
    apart: dict[Row, int] = {(0, 1): 300, (1, 0): 300, (0, 0): 29_400}
    fallen = compute_dependence(count_listed_rows(add_row(apart, (1, 1))), 0, 1, least)
    fallen -= compute_dependence(count_listed_rows(apart), 0, 1, least)
    assert -2 * U <= fallen < -1.95 * U


# Columns, columns of a slice, slices, epsilons, rows at most, and what is used up at least.
WHOLES: list[tuple[int, int, int, list[Fraction], int, float]] = [
    (3, 2, 2, [Fraction(1, 2)], 7, 0.2),
    (3, 2, 4, [Fraction(1, 2), Fraction(2), Fraction(1)], 4, 0.1),
    (4, 2, 3, [Fraction(1, 2), Fraction(1)], 3, 0.0),
]


@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize(("columns", "most", "number", "epsilons", "rows", "used"), WHOLES)
def test_all_choices_together_stay_within_the_sum_of_the_epsilons(
    columns: int, most: int, number: int, epsilons: list[Fraction], rows: int, used: float,
    least: int,
) -> None:  # fmt: skip
    """The whole law of the slices, on every small table beside itself without a row."""
    chosen = SliceChoiceLaw(columns, most, number, epsilons)
    assert (
        used <= compute_budget_usage(chosen, list_neighbor_tables(columns, rows), least) <= 1 + 1e-9
    )


def test_slices_are_chosen_by_what_survives() -> None:
    """Two columns of a thousand values look dependent by chance; two of two values are."""
    draw = np.random.default_rng(1)
    rows = 4000
    coin = draw.integers(0, 2, rows)
    copy = np.where(draw.random(rows) < 0.9, coin, 1 - coin)
    codes = np.column_stack(
        [draw.integers(0, 1000, rows), coin, draw.integers(0, 1000, rows), copy]
    ).astype(np.int32)
    table = Frequencies(codes, np.ones(rows, dtype=np.int64))
    for least, first in ((0, (0, 2)), (60, (1, 3))):
        slices = choose_slices(
            table, 2, 2, epsilons=[Fraction(10**6)], bits=SeededRandomness(1), threshold=least
        )
        assert slices[0] == first
