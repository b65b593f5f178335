"""Slices chosen privately: scores by definition, and what one row moves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.slices_law import (
    BITS,
    HUGE,
    RecordedSelect,
    Row,
    Slices,
    U,
    add_row,
    count_listed_rows,
    row_tables,
)

from incrowd.anonymize import safe_slices as module
from incrowd.anonymize.safe_slices import (
    choose_slices,
    compute_dependence,
    count_choices,
    cover_pairs,
)
from incrowd.anonymize.slice_rule import SliceRule
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.privacy.randomness import SeededRandomness


def by_definition(rows: Mapping[Row, int], first: int = 0, second: int = 1) -> int:
    """floor(U S), S summed over all pairs of values with exact fractions."""
    total = sum(rows.values())
    score = Fraction(0)
    for x in {row[first] for row in rows}:
        for y in {row[second] for row in rows}:
            both = sum(n for row, n in rows.items() if (row[first], row[second]) == (x, y))
            first_rows = sum(n for row, n in rows.items() if row[first] == x)
            second_rows = sum(n for row, n in rows.items() if row[second] == y)
            score += max(Fraction(0), both - Fraction(first_rows * second_rows, total))
    return math.floor(U * score)


@given(rows=row_tables(3))
def test_dependence_is_what_the_docstring_says(rows: dict[Row, int]) -> None:
    for first, second in itertools.permutations(range(3), 2):
        expected = by_definition(rows, first, second) if rows else 0
        assert compute_dependence(count_listed_rows(rows, 3), first, second) == expected


def test_dependence_at_the_edges() -> None:
    assert compute_dependence(count_listed_rows({}), 0, 1) == 0
    assert compute_dependence(count_listed_rows({(5, 0): 1}), 0, 1) == 0
    constant: dict[Row, int] = {(0, y): y + 3 for y in range(5)}
    assert (
        compute_dependence(count_listed_rows(constant), 0, 1)
        == compute_dependence(count_listed_rows(constant), 1, 0)
        == 0
    )
    independent: dict[Row, int] = {
        (x, y): 2 * (x + 1) * (y + 1) for x in range(3) for y in range(4)
    }
    assert compute_dependence(count_listed_rows(independent), 0, 1) == 0
    decides: dict[Row, int] = {(0, 0): 3, (1, 0): 2, (2, 1): 4, (3, 2): 1}  # 5, 4 and 1 of ten
    assert compute_dependence(count_listed_rows(decides), 0, 1) == math.floor(
        U * 10 * (1 - Fraction(42, 100))
    )


@given(rows=row_tables(2), total=st.sampled_from([2**31 - 1, 2**31, 2**31 + 1, 2**40]))
def test_dependence_is_exact_for_tables_of_billions(rows: dict[Row, int], total: int) -> None:
    """On both sides of where products of counts no longer fit into 64 bits."""
    many = {row: n * (total // max(sum(rows.values()), 1)) for row, n in rows.items()}
    many[9, 9] = total - sum(many.values()) or total
    assert compute_dependence(count_listed_rows(many), 0, 1) == by_definition(many)


def test_billions_score_in_proportion() -> None:
    rows: dict[Row, int] = {(0, 0): 1, (1, 1): 3, (1, 0): 2}
    for times in (2**20, 2**29, 2**33):
        many = {row: n * times for row, n in rows.items()}
        assert compute_dependence(count_listed_rows(many), 0, 1) == U * times  # S is 1 for six rows


@given(rows=row_tables(4), row=st.tuples(*[st.integers(0, 4)] * 4))
def test_a_row_moves_a_score_and_a_mean_by_two_units_at_most(
    rows: dict[Row, int], row: Row
) -> None:
    before, after = count_listed_rows(rows, 4), count_listed_rows(add_row(rows, row), 4)
    low = {pair: compute_dependence(before, *pair) for pair in itertools.combinations(range(4), 2)}
    high = {pair: compute_dependence(after, *pair) for pair in low}
    assert max(abs(high[pair] - low[pair]) for pair in low) <= 2 * U
    for members in ((0, 1), (1, 3), (0, 1, 3)):
        option = (*members, 2)
        means = [module._score_option(score, members, option) for score in (low, high)]
        assert abs(means[1] - means[0]) <= 2 * U


ALIKE = {(0, 0): 400}
AVOIDED = {(0, 1): 300, (1, 0): 300, (0, 0): 9400}  # 1 and 1, each rare, never meet


@pytest.mark.parametrize(("rows", "way"), [(ALIKE, 1), (AVOIDED, -1)])
def test_a_row_can_move_a_score_by_nearly_two_units_either_way(
    rows: dict[Row, int], way: int
) -> None:
    """So half of the constant would be too little."""
    before, after = count_listed_rows(rows), count_listed_rows(add_row(rows, (1, 1)))
    moved = compute_dependence(after, 0, 1) - compute_dependence(before, 0, 1)
    assert 1.85 * U < way * moved <= 2 * U


def test_a_row_can_move_a_mean_by_nearly_two_units() -> None:
    before, after = (
        count_listed_rows({(0, 0, 0): 400}, 3),
        count_listed_rows({(0, 0, 0): 400, (1, 1, 1): 1}, 3),
    )
    low, high = (
        {pair: compute_dependence(table, *pair) for pair in itertools.combinations(range(3), 2)}
        for table in (before, after)
    )
    moved = module._score_option(high, (0, 1), (0, 1, 2)) - module._score_option(
        low, (0, 1), (0, 1, 2)
    )
    assert 1.99 * U < moved <= 2 * U


# How many slices, of how many columns.

MANY = [(columns, most) for most in range(2, 8) for columns in range(most + 1, 25)]


@pytest.mark.parametrize("most", range(2, 8))
def test_sizes_place_every_column_once(most: int) -> None:
    for columns in range(1, 40):
        slice_sizes = SliceRule(columns).compute_sizes(most)
        assert sum(slice_sizes) == columns
        assert max(slice_sizes) <= most
        assert max(slice_sizes) - min(slice_sizes) <= 1
        assert slice_sizes == sorted(
            slice_sizes, reverse=True
        )  # the last is the one that is left over
        assert len(slice_sizes) == math.ceil(columns / most)
        assert all(size >= 2 for size in slice_sizes[:-1])  # a choice begins with a pair


def fewest(columns: int, most: int) -> int:
    """Schönheim's bound: no fewer slices have every two columns together."""
    return math.ceil(columns / most * math.ceil((columns - 1) / (most - 1)))


def test_every_two_columns_stand_together_in_few_slices() -> None:
    for columns, most in MANY:
        result = cover_pairs(SliceRule(columns), most)
        together = [set(itertools.combinations(part, 2)) for part in result]
        assert set().union(*together) == set(itertools.combinations(range(columns), 2))
        assert all(len(part) == most and sorted(set(part)) == list(part) for part in result)
        assert fewest(columns, most) <= len(result) <= 1.6 * fewest(columns, most) + 1
        for number, pairs in enumerate(together):  # none is for nothing
            assert not pairs <= set().union(*together[:number])
    assert len(cover_pairs(SliceRule(7), 3)) == 7  # Fano's plane: none better
    assert cover_pairs(SliceRule(3), 5) == [(0, 1, 2)]


def watched(
    patch: pytest.MonkeyPatch, table: Frequencies, most: int, number: int, **more: Any
) -> tuple[Slices, RecordedSelect]:
    select = RecordedSelect(**more)
    patch.setattr(module, "select_candidate", select)
    each = [
        Fraction(at + 1, 7)
        for at in range(count_choices(SliceRule(table.codes.shape[1]), most, number))
    ]
    return tuple(choose_slices(table, most, number, epsilons=each, bits=BITS)), select


def test_each_epsilon_pays_for_one_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many choices as are counted; in order, each with its own epsilon and all the noise."""
    for columns, most in [pair for pair in MANY if pair[0] < 11]:
        table = count_listed_rows({(0,) * columns: 4, (1,) * columns: 2}, columns)
        least = len(SliceRule(columns).compute_sizes(most))
        for number in (least, least + 1, least + 4):
            result, select = watched(monkeypatch, table, most, number)
            expected = [
                Fraction(at + 1, 7) for at in range(count_choices(SliceRule(columns), most, number))
            ]
            assert [epsilon for _, _, epsilon, _ in select.seen] == expected
            assert {sensitivity for _, sensitivity, _, _ in select.seen} <= {4 * U}
            assert all(bits is BITS for *_, bits in select.seen)
            assert len(result) == number
            assert max(map(len, result)) <= most
            assert set().union(*result) == set(range(columns))
            assert all(sorted(set(part)) == list(part) for part in result)
            assert [len(part) for part in result[:least]] == SliceRule(columns).compute_sizes(most)
            assert sorted(x for part in result[:least] for x in part) == list(range(columns))
            assert {len(part) for part in result[least:]} <= {most}


def test_an_epsilon_too_few_is_no_free_choice() -> None:
    table = count_listed_rows({(0,) * 6: 4}, 6)
    with pytest.raises((StopIteration, RuntimeError)):
        choose_slices(table, 2, 4, epsilons=[HUGE] * 2, bits=SeededRandomness(1))


# Which columns.


def copies(*groups: Sequence[int], rows: int = 512) -> Frequencies:
    """Columns of a group are equal; groups are independent: digits of the row number."""
    digits = np.arange(rows)[:, None] >> np.arange(len(groups)) & 1
    codes = np.zeros((rows, sum(map(len, groups))), dtype=np.int32)
    for at, group in enumerate(groups):
        codes[:, list(group)] = digits[:, [at]]
    return merge_tuples(codes, np.ones(rows, dtype=np.int64))


def test_with_hardly_any_noise_columns_that_go_together_stand_together() -> None:
    pairs = copies((0, 4), (2, 3), (1, 5))
    slices = choose_slices(pairs, 2, 3, epsilons=[HUGE] * 2, bits=SeededRandomness(1))
    assert sorted(slices) == [(0, 4), (1, 5), (2, 3)]
    threes = copies((0, 2, 5), (1, 3, 4))
    slices = choose_slices(threes, 3, 2, epsilons=[HUGE] * 2, bits=SeededRandomness(1))
    assert sorted(slices) == [(0, 2, 5), (1, 3, 4)]


def test_a_further_slice_shows_what_was_left_apart() -> None:
    """Four equal columns in pairs: the third slice joins what the first two did not."""
    slices = choose_slices(
        copies((0, 1, 2, 3)), 2, 4, epsilons=[HUGE] * 3, bits=SeededRandomness(1)
    )
    assert len({frozenset(part) for part in slices}) == 4
    assert {x for part in slices[:2] for x in part} == {0, 1, 2, 3}


SCORES = {
    (0, 1): 90, (0, 2): 10, (0, 3): 7, (0, 4): 1, (0, 5): 2, (1, 2): 1, (1, 3): 6, (1, 4): 8,
    (1, 5): 4, (2, 3): 70, (2, 4): 5, (2, 5): 11, (3, 4): 3, (3, 5): 9, (4, 5): 12,
}  # fmt: skip


def chosen(
    patch: pytest.MonkeyPatch, answers: Sequence[int], most: int, number: int
) -> tuple[Slices, list[list[int]]]:
    """Slices of six columns with the scores above, and what every choice was made among."""
    patch.setattr(
        module, "compute_dependence", lambda _, first, second, _least: SCORES[first, second]
    )
    sliceses, select = watched(
        patch, count_listed_rows({(0,) * 6: 1}, 6), most, number, answers=answers
    )
    return sliceses, [scores for scores, *_ in select.seen]


def test_a_slice_takes_in_the_column_with_the_largest_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Means are rounded down, over all members; the next slice is of what is left."""
    result, seen = chosen(monkeypatch, [0, 1], 3, 2)
    assert seen == [list(SCORES.values()), [5, 6, 4, 3]]  # halves of 11, 13, 9 and 6
    assert result == ((0, 1, 3), (2, 4, 5))
    result, seen = chosen(monkeypatch, [9, 0], 3, 2)  # the tenth pair is 2 and 3
    assert seen[1] == [8, 3, 4, 10]  # of 0, 1, 4 and 5 with 2 and 3
    assert result == ((0, 2, 3), (1, 4, 5))
    result, seen = chosen(monkeypatch, [14, 3], 2, 3)
    assert seen == [list(SCORES.values()), [90, 10, 7, 1, 6, 70]]  # pairs of 0 to 3
    assert result == ((4, 5), (1, 2), (0, 3))


def test_three_members_weigh_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    _, seen = chosen(monkeypatch, [0, 0, 1], 4, 3)  # sizes 3 and 3, then one of 4
    assert [len(scores) for scores in seen] == [15, 4, 9, 4, 3]
    apart = itertools.product((0, 1, 2), (3, 4, 5))
    assert seen[2] == [SCORES[pair] for pair in apart]
    # Of 0 and 4 with 1, 2, 3, 5: pairs that stand together already count nothing.
    assert seen[3] == [8 // 2, 5 // 2, 7 // 2, 2 // 2]
    # Of 0, 4 and 1 with 2, 3 and 5.
    assert seen[4] == [5 // 3, (7 + 6) // 3, (2 + 4) // 3]


def test_a_further_slice_begins_with_a_pair_that_does_not_stand_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not with one of the slice of what is left either, nor of further slices before it."""
    result, seen = chosen(monkeypatch, [0, 0, 3, 1], 2, 6)
    assert result[:5] == ((0, 1), (2, 3), (4, 5), (0, 5), (0, 3))
    free = dict(SCORES)
    for place, together in enumerate(([(0, 1), (2, 3), (4, 5)], [(0, 5)], [(0, 3)])):
        for pair in together:
            del free[pair]
        assert seen[2 + place] == list(free.values())


def test_chosen_slices_differ() -> None:
    """Without any association: nothing but noise tells pairs apart, and 14 of 15 are asked for."""
    rows = np.array(list(itertools.product((0, 1), repeat=6)), dtype=np.int32)
    table = merge_tuples(rows, np.ones(len(rows), dtype=np.int64))
    for most, number in ((2, 14), (2, 15), (3, 12)):
        count = count_choices(SliceRule(6), most, number)
        slices = choose_slices(
            table, most, number, epsilons=[Fraction(1, 100)] * count, bits=SeededRandomness(1)
        )
        assert len({frozenset(part) for part in slices}) == number
