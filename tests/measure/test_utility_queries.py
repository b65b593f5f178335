"""Counting queries asked of a table and of its release."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pairs import (
    compute_expected_rows,
    draw_frequencies,
    make_frequencies,
    make_identity_pair,
    make_pair,
    make_uniform_shares,
    scale_pair,
    utility_pairs,
)

from incrowd.codes.frequency import Frequencies
from incrowd.errors import ParameterError
from incrowd.measure import utility
from incrowd.measure.utility import (
    QueryErrors,
    TablePair,
    measure_query_errors,
)


@given(pair=utility_pairs(), seed=st.integers(0, 99))
def test_queries_equal_going_through_every_row(pair: TablePair, seed: int) -> None:
    regions = utility._draw_regions(pair, 7, [1, 2, 3], np.random.default_rng(seed))
    errors = []
    for query in range(7):
        share = []
        for side, shares in ((pair.original, pair.exact_shares), (pair.released, pair.shares)):
            inside = sum(
                rows
                for place, rows in compute_expected_rows(side, shares).items()
                if all(regions.selected[at][query, where] for at, where in enumerate(place))
            )
            share.append(inside / side.total)
        errors.append(abs(share[1] - share[0]) / max(share[0], 0.001))
    query_errors = measure_query_errors(pair, count=7, seed=seed)
    assert query_errors.count == 7
    assert query_errors.median_error == pytest.approx(sorted(errors)[3], abs=1e-9)
    assert query_errors.mean_error == pytest.approx(sum(errors) / 7, abs=1e-9)


def test_regions_are_what_the_docstring_says() -> None:
    sizes = (20, 20, 2, 1)
    pair = make_identity_pair(draw_frequencies(300, *sizes), *sizes)
    regions = utility._draw_regions(pair, 300, [1, 3], np.random.default_rng(0))
    assert set(regions.restricted.sum(axis=1).tolist()) == {1, 3}
    assert np.all(utility._answer_queries(pair.original, pair.exact_shares, regions) > 0)
    split = 0
    for at, bins in enumerate(sizes):
        for number, restricted, mask in zip(
            regions.restricted.sum(axis=1),
            regions.restricted[:, at],
            regions.selected[at],
            strict=True,
        ):
            if not restricted:
                assert mask.all()
                continue
            expected = {(20, 1): 2, (20, 3): 9}.get((bins, int(number)), 1)
            assert mask.sum() == expected
            runs = int(np.count_nonzero(np.diff(np.append(0, mask.astype(int))) == 1))
            split += runs > 1
            assert runs == 1 or not pair.ordered[at]
    assert split  # sets of bins are not intervals


def test_an_interval_may_lie_anywhere_around_its_row() -> None:
    rng = np.random.default_rng(0)
    for place, firsts in ((0, {0}), (1, {0, 1}), (4, {2, 3, 4}), (9, {7})):
        masks = [utility._draw_around(place, 10, 3, ordered=True, rng=rng) for _ in range(200)]
        assert {int(np.argmax(mask)) for mask in masks} == firsts


def test_a_release_that_changes_nothing_answers_exactly() -> None:
    pair = make_identity_pair(draw_frequencies(2000, 9, 4, 30, 2), 9, 4, 30, 2)
    assert measure_query_errors(pair, count=200) == QueryErrors(200, 0.0, 0.0)


@pytest.mark.parametrize(("columns", "error"), [((1,), 3 / 4), ((2,), 15 / 16)])
@pytest.mark.parametrize("ordered", [True, False])
def test_a_release_of_nothing_but_stars_answers_uniformly(
    columns: tuple[int, ...], error: float, ordered: bool
) -> None:
    # Every row is at (1, 2); one bin of four in each column holds them all.
    star = make_uniform_shares([0, 1, 2, 3], bins=4)
    pair = make_pair(
        make_frequencies([(1, 2, 10)]),
        make_frequencies([(0, 0, 10)]),
        star,
        star,
        ordered=(ordered, ordered),
    )
    query_errors = measure_query_errors(pair, count=25, columns=columns)
    assert query_errors.median_error == pytest.approx(error)
    assert query_errors.mean_error == pytest.approx(error)


def test_rare_regions_are_measured_against_a_thousandth() -> None:
    # A query on all of eleven columns of two bins is about one row of 2048.
    original = make_frequencies([(*place, 1) for place in np.ndindex(*[2] * 11)])
    pair = make_pair(original, make_frequencies([], 11), *[np.eye(2)] * 11)
    query_errors = measure_query_errors(pair, count=10, columns=(11,))
    assert query_errors.mean_error == pytest.approx((1 / 2048) / 0.001)


def test_queries_are_asked_where_the_rows_are() -> None:
    original = make_frequencies([(0, 9999), (1, 1)])
    query_errors = measure_query_errors(
        make_pair(original, make_frequencies([(0, 1)]), make_uniform_shares([0, 1], bins=2)),
        count=100,
    )
    assert query_errors.median_error == pytest.approx((0.9999 - 0.5) / 0.9999)


def test_an_empty_release_is_wrong_altogether() -> None:
    pair = make_pair(draw_frequencies(100, 5), make_frequencies([], 1), np.eye(5))
    assert measure_query_errors(pair, count=20) == QueryErrors(20, 1.0, 1.0)


def test_nothing_is_asked_about_an_empty_table() -> None:
    pair = make_pair(make_frequencies([], 1), make_frequencies([], 1), np.eye(5))
    assert measure_query_errors(pair) == QueryErrors(0, 0.0, 0.0)


def test_the_seed_decides_the_queries() -> None:
    star = make_uniform_shares(range(9), bins=9)
    pair = make_pair(draw_frequencies(200, 9, 9), make_frequencies([(0, 0, 1)]), star, star)
    assert measure_query_errors(pair, count=50, seed=3) == measure_query_errors(
        pair, count=50, seed=3
    )
    assert measure_query_errors(pair, count=50, seed=3) != measure_query_errors(
        pair, count=50, seed=4
    )


@given(pair=utility_pairs())
def test_queries_are_about_shares_not_numbers(pair: TablePair) -> None:
    assert measure_query_errors(scale_pair(pair, 2), count=9) == measure_query_errors(pair, count=9)


def test_blocks_of_queries_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    star = make_uniform_shares(range(9), bins=9)
    pair = make_pair(draw_frequencies(200, 9, 9), make_frequencies([(0, 0, 1)]), star, star)
    expected = measure_query_errors(pair, count=50)
    monkeypatch.setattr(utility, "_BLOCK", 7)
    assert measure_query_errors(pair, count=50).mean_error == pytest.approx(expected.mean_error)


@given(pair=utility_pairs())
def test_answers_by_cells_are_those_by_rows(pair: TablePair) -> None:
    with pytest.MonkeyPatch.context() as patch:
        result = []
        for dense in (0, 1 << 30):
            patch.setattr(utility, "_DENSE", dense)
            result.append(measure_query_errors(pair, count=20))
    assert result[0].median_error == pytest.approx(result[1].median_error, abs=1e-9)
    assert result[0].mean_error == pytest.approx(result[1].mean_error, abs=1e-9)


def test_too_many_tuples_are_sampled_by_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.arange(3000, dtype=np.int32)[:, None]
    heavy = np.where(codes[:, 0] < 1500, 9, 1).astype(np.int64)
    original = Frequencies(codes, heavy)
    limited = utility.limit_tuples(original, 2000, 5)
    assert limited.total == 2000
    assert len(limited) < 2000
    assert set(limited.codes[:, 0].tolist()) <= set(range(3000))
    # Binomial(2000, 0.9): more than 5 standard deviations away less than once in a million.
    share = limited.counts[limited.codes[:, 0] < 1500].sum() / 2000
    assert abs(share - 0.9) < 5 * (0.09 / 2000) ** 0.5
    assert utility.limit_tuples(original, 3000, 5) is original
    monkeypatch.setattr(utility, "_TUPLES", 50)
    same = make_identity_pair(draw_frequencies(500, 9, 9), 9, 9)
    assert measure_query_errors(same, count=50) == QueryErrors(50, 0.0, 0.0)


def test_queries_that_cannot_be_asked() -> None:
    pair = make_identity_pair(draw_frequencies(20, 3, 3), 3, 3)
    with pytest.raises(ParameterError, match="'count'.*at least 1. Got 0"):
        measure_query_errors(pair, count=0)
    with pytest.raises(ParameterError, match="'columns'.*at least 1. Got 0"):
        measure_query_errors(pair, columns=(2, 0))
    with pytest.raises(ParameterError, match="'columns'.*at least one number"):
        measure_query_errors(pair, columns=())
