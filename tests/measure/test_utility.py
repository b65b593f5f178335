"""Distances and associations between a table and its release, against sums over all bins."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import contingency
from support.pairs import (
    identity,
    pair_of,
    pairs,
    random_table,
    split_counts,
    table,
    uniform,
    worlds,
)

from incrowd.arrays import Floats
from incrowd.codes.frequency import Frequencies
from incrowd.measure import association
from incrowd.measure.association import Association, associations, mean_error
from incrowd.measure.utility import Pair, distances


def test_a_distance_by_hand() -> None:
    original = table([(0, 0, 3), (1, 0, 1)])
    released = table([(0, 1, 5)])
    pair = pair_of(original, released, uniform([0, 1], bins=2), np.eye(2))
    assert distances(pair) == {"a": 0.25, "b": 1.0}


def test_a_release_that_changes_nothing_is_at_no_distance() -> None:
    pair = identity(random_table(500, 7, 3, 5), 7, 3, 5)
    assert distances(pair) == {"a": 0.0, "b": 0.0, "c": 0.0}


def test_an_empty_table_is_at_distance_one() -> None:
    full, empty = table([(0, 2)]), table([], 1)
    assert distances(pair_of(full, empty, np.eye(2))) == {"a": 1.0}
    assert distances(pair_of(empty, full, np.eye(2))) == {"a": 1.0}


@given(pair=pairs())
def test_a_distance_is_the_sum_over_all_bins(pair: Pair) -> None:
    for at, (name, got) in enumerate(distances(pair).items()):
        assert name == pair.names[at]
        assert 0 <= got <= 1
        moved = np.zeros(pair.shares[at].shape[1])
        for side, shares, sign in (
            (pair.original, pair.exact, 1),
            (pair.released, pair.shares, -1),
        ):
            for place, rows in worlds(side, shares).items():
                moved[place[at]] += sign * rows / side.total
        assert got == pytest.approx(moved[moved > 0].sum(), abs=1e-12)


def test_an_association_by_hand() -> None:
    # (30 * 30 - 10 * 10) / 40**2 = 1/2; each half of the second column shown decides nothing.
    original = table([(0, 0, 30), (0, 1, 10), (1, 0, 10), (1, 1, 30)])
    released = table([(0, 0, 40), (1, 0, 40)])
    (got,) = associations(pair_of(original, released, np.eye(2), uniform([0, 1], bins=2)))
    assert (got.first, got.second) == ("a", "b")
    assert got.original == pytest.approx(0.5)
    assert got.released == pytest.approx(0.0, abs=1e-12)


def test_groups_that_decide_the_other_column_keep_v_at_one() -> None:
    original = table([(0, 0, 4), (0, 1, 1), (1, 2, 2), (1, 3, 3)])
    released = table([(0, 0, 5), (1, 1, 5)])
    halves = uniform([0, 1], [2, 3], bins=4)
    (got,) = associations(pair_of(original, released, np.eye(2), halves))
    assert got.original == pytest.approx(1.0)
    assert got.released == pytest.approx(1.0)


def test_associations_agree_with_scipy() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        seen = rng.integers(1, 30, rng.integers(2, 7, 2))
        rows = [(*place, int(count)) for place, count in np.ndenumerate(seen)]
        (got,) = associations(identity(table(rows), *seen.shape))
        assert got.original == pytest.approx(contingency.association(seen, method="cramer"))


@given(pair=pairs())
def test_an_association_is_chi_square_of_all_pairs_of_bins(pair: Pair) -> None:
    def v(side: Frequencies, shares: Sequence[Floats], one: int, two: int) -> float:
        joint = np.zeros((shares[one].shape[1], shares[two].shape[1]))
        for place, rows in worlds(side, shares).items():
            joint[place[one], place[two]] += rows
        joint = joint[joint.sum(axis=1) > 0][:, joint.sum(axis=0) > 0]
        if min(joint.shape) == 1:
            return 0.0
        squares = joint**2 / joint.sum(axis=1)[:, None] / joint.sum(axis=0)
        return float(np.sqrt(max(squares.sum() - 1, 0) / (min(joint.shape) - 1)))

    got = associations(pair)
    assert len(got) == len(pair.names) * (len(pair.names) - 1) // 2
    for found in got:
        at = pair.names.index(found.first), pair.names.index(found.second)
        assert 0 <= found.original <= 1
        assert 0 <= found.released <= 1
        # The reference takes the root of a difference of ones: 1e-16 becomes 1e-8.
        assert found.original == pytest.approx(v(pair.original, pair.exact, *at), abs=1e-6)
        assert found.released == pytest.approx(v(pair.released, pair.shares, *at), abs=1e-6)


@given(pair=pairs())
def test_distances_and_associations_do_not_see_how_counts_are_split(pair: Pair) -> None:
    apart = Pair(
        pair.names,
        split_counts(pair.original),
        split_counts(pair.released),
        pair.shares,
        pair.ordered,
    )
    assert distances(apart) == pytest.approx(distances(pair), abs=1e-12)
    for one, two in zip(associations(apart), associations(pair), strict=True):
        assert one.original == pytest.approx(two.original, abs=1e-9)
        assert one.released == pytest.approx(two.released, abs=1e-9)


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_labels_too_many_for_a_grid_give_the_same(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(9)
    released = table([(*rng.integers(0, 6, 3).tolist(), 2) for _ in range(60)])
    shares = rng.dirichlet(np.ones(4), (3, 6))
    pair = pair_of(random_table(50, 4, 4, 4), released, *shares)
    grid = associations(pair)
    monkeypatch.setattr(association, "_GRID", 0)
    monkeypatch.setattr(association, "_CHUNK", chunk)
    for one, two in zip(associations(pair), grid, strict=True):
        assert one.original == pytest.approx(two.original)
        assert one.released == pytest.approx(two.released)


def test_ten_thousand_labels_fit_in_memory() -> None:
    labels = np.arange(10_000, dtype=np.int32)
    released = Frequencies(np.column_stack([labels, labels[::-1]]), np.ones(10_000, dtype=np.int64))
    shares = np.eye(4)[labels // 2500]
    original = table([(at, 3 - at, 1) for at in range(4)])
    tracemalloc.start()
    (got,) = associations(pair_of(original, released, shares, shares))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6  # a grid of all pairs of labels takes 800 MB
    assert got.original == got.released == pytest.approx(1.0)


def test_constant_columns_and_empty_tables_have_no_association() -> None:
    constant = table([(0, 0, 5), (0, 1, 5)])
    (got,) = associations(pair_of(constant, table([], 2), np.eye(3), np.eye(2)))
    assert (got.original, got.released) == (0.0, 0.0)


def test_the_mean_error_of_associations() -> None:
    found = [Association("a", "b", 0.5, 0.25), Association("a", "c", 0.0, 0.75)]
    assert mean_error(found) == 0.5
    assert mean_error([]) == 0.0
    assert mean_error(associations(identity(random_table(300, 4, 3, 5), 4, 3, 5))) == 0.0
