"""Counting queries asked of a table and of its release."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pairs import identity, pair_of, pairs, random_table, scaled, table, uniform, worlds

from incrowd.codes.frequency import Frequencies
from incrowd.errors import ParameterError
from incrowd.measure import utility
from incrowd.measure.utility import (
    Pair,
    Queries,
    queries,
)


@given(pair=pairs(), seed=st.integers(0, 99))
def test_queries_equal_going_through_every_row(pair: Pair, seed: int) -> None:
    regions = utility._regions(pair, 7, [1, 2, 3], np.random.default_rng(seed))
    errors = []
    for query in range(7):
        share = []
        for side, shares in ((pair.original, pair.exact), (pair.released, pair.shares)):
            inside = sum(
                rows
                for place, rows in worlds(side, shares).items()
                if all(regions.selected[at][query, where] for at, where in enumerate(place))
            )
            share.append(inside / side.total)
        errors.append(abs(share[1] - share[0]) / max(share[0], 0.001))
    got = queries(pair, count=7, seed=seed)
    assert got.count == 7
    assert got.median_error == pytest.approx(sorted(errors)[3], abs=1e-9)
    assert got.mean_error == pytest.approx(sum(errors) / 7, abs=1e-9)


def test_regions_are_what_the_docstring_says() -> None:
    sizes = (20, 20, 2, 1)
    pair = identity(random_table(300, *sizes), *sizes)
    regions = utility._regions(pair, 300, [1, 3], np.random.default_rng(0))
    assert set(regions.restricted.sum(axis=1).tolist()) == {1, 3}
    assert np.all(utility._answers(pair.original, pair.exact, regions) > 0)
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
        masks = [utility._around(place, 10, 3, ordered=True, rng=rng) for _ in range(200)]
        assert {int(np.argmax(mask)) for mask in masks} == firsts


def test_a_release_that_changes_nothing_answers_exactly() -> None:
    pair = identity(random_table(2000, 9, 4, 30, 2), 9, 4, 30, 2)
    assert queries(pair, count=200) == Queries(200, 0.0, 0.0)


@pytest.mark.parametrize(("columns", "error"), [((1,), 3 / 4), ((2,), 15 / 16)])
@pytest.mark.parametrize("ordered", [True, False])
def test_a_release_of_nothing_but_stars_answers_uniformly(
    columns: tuple[int, ...], error: float, ordered: bool
) -> None:
    # Every row is at (1, 2); one bin of four in each column holds them all.
    star = uniform([0, 1, 2, 3], bins=4)
    pair = pair_of(table([(1, 2, 10)]), table([(0, 0, 10)]), star, star, ordered=(ordered, ordered))
    got = queries(pair, count=25, columns=columns)
    assert got.median_error == pytest.approx(error)
    assert got.mean_error == pytest.approx(error)


def test_rare_regions_are_measured_against_a_thousandth() -> None:
    # A query on all of eleven columns of two bins is about one row of 2048.
    original = table([(*place, 1) for place in np.ndindex(*[2] * 11)])
    pair = pair_of(original, table([], 11), *[np.eye(2)] * 11)
    got = queries(pair, count=10, columns=(11,))
    assert got.mean_error == pytest.approx((1 / 2048) / 0.001)


def test_queries_are_asked_where_the_rows_are() -> None:
    original = table([(0, 9999), (1, 1)])
    got = queries(pair_of(original, table([(0, 1)]), uniform([0, 1], bins=2)), count=100)
    assert got.median_error == pytest.approx((0.9999 - 0.5) / 0.9999)


def test_an_empty_release_is_wrong_altogether() -> None:
    pair = pair_of(random_table(100, 5), table([], 1), np.eye(5))
    assert queries(pair, count=20) == Queries(20, 1.0, 1.0)


def test_nothing_is_asked_about_an_empty_table() -> None:
    pair = pair_of(table([], 1), table([], 1), np.eye(5))
    assert queries(pair) == Queries(0, 0.0, 0.0)


def test_the_seed_decides_the_queries() -> None:
    star = uniform(range(9), bins=9)
    pair = pair_of(random_table(200, 9, 9), table([(0, 0, 1)]), star, star)
    assert queries(pair, count=50, seed=3) == queries(pair, count=50, seed=3)
    assert queries(pair, count=50, seed=3) != queries(pair, count=50, seed=4)


@given(pair=pairs())
def test_queries_are_about_shares_not_numbers(pair: Pair) -> None:
    assert queries(scaled(pair, 2), count=9) == queries(pair, count=9)


def test_blocks_of_queries_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    star = uniform(range(9), bins=9)
    pair = pair_of(random_table(200, 9, 9), table([(0, 0, 1)]), star, star)
    whole = queries(pair, count=50)
    monkeypatch.setattr(utility, "_BLOCK", 7)
    assert queries(pair, count=50).mean_error == pytest.approx(whole.mean_error)


@given(pair=pairs())
def test_answers_by_cells_are_those_by_rows(pair: Pair) -> None:
    with pytest.MonkeyPatch.context() as patch:
        found = []
        for dense in (0, 1 << 30):
            patch.setattr(utility, "_DENSE", dense)
            found.append(queries(pair, count=20))
    assert found[0].median_error == pytest.approx(found[1].median_error, abs=1e-9)
    assert found[0].mean_error == pytest.approx(found[1].mean_error, abs=1e-9)


def test_too_many_tuples_are_sampled_by_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.arange(3000, dtype=np.int32)[:, None]
    heavy = np.where(codes[:, 0] < 1500, 9, 1).astype(np.int64)
    original = Frequencies(codes, heavy)
    limited = utility.limited(original, 2000, 5)
    assert limited.total == 2000
    assert len(limited) < 2000
    assert set(limited.codes[:, 0].tolist()) <= set(range(3000))
    # Binomial(2000, 0.9): more than 5 standard deviations away less than once in a million.
    share = limited.counts[limited.codes[:, 0] < 1500].sum() / 2000
    assert abs(share - 0.9) < 5 * (0.09 / 2000) ** 0.5
    assert utility.limited(original, 3000, 5) is original
    monkeypatch.setattr(utility, "_TUPLES", 50)
    same = identity(random_table(500, 9, 9), 9, 9)
    assert queries(same, count=50) == Queries(50, 0.0, 0.0)


def test_queries_that_cannot_be_asked() -> None:
    pair = identity(random_table(20, 3, 3), 3, 3)
    with pytest.raises(ParameterError, match="'count'.*at least 1. Got 0"):
        queries(pair, count=0)
    with pytest.raises(ParameterError, match="'columns'.*at least 1. Got 0"):
        queries(pair, columns=(2, 0))
    with pytest.raises(ParameterError, match="'columns'.*at least one number"):
        queries(pair, columns=())
