"""Distances between a table and its release, against sums over all bins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from support.pairs import (
    compute_expected_rows,
    draw_frequencies,
    make_frequencies,
    make_identity_pair,
    make_pair,
    make_uniform_shares,
    utility_pairs,
)

from incrowd.measure.utility import TablePair, compute_distances


def test_a_distance_by_hand() -> None:
    original = make_frequencies([(0, 0, 3), (1, 0, 1)])
    released = make_frequencies([(0, 1, 5)])
    pair = make_pair(original, released, make_uniform_shares([0, 1], bins=2), np.eye(2))
    assert compute_distances(pair) == {"a": 0.25, "b": 1.0}


def test_a_release_that_changes_nothing_is_at_no_distance() -> None:
    pair = make_identity_pair(draw_frequencies(500, 7, 3, 5), 7, 3, 5)
    assert compute_distances(pair) == {"a": 0.0, "b": 0.0, "c": 0.0}


def test_an_empty_table_is_at_distance_one() -> None:
    full, empty = make_frequencies([(0, 2)]), make_frequencies([], 1)
    assert compute_distances(make_pair(full, empty, np.eye(2))) == {"a": 1.0}
    assert compute_distances(make_pair(empty, full, np.eye(2))) == {"a": 1.0}


@given(pair=utility_pairs())
def test_a_distance_is_the_sum_over_all_bins(pair: TablePair) -> None:
    for at, (name, distance) in enumerate(compute_distances(pair).items()):
        assert name == pair.names[at]
        assert 0 <= distance <= 1
        moved = np.zeros(pair.shares[at].shape[1])
        for side, shares, sign in (
            (pair.original, pair.exact_shares, 1),
            (pair.released, pair.shares, -1),
        ):
            for place, rows in compute_expected_rows(side, shares).items():
                moved[place[at]] += sign * rows / side.total
        assert distance == pytest.approx(moved[moved > 0].sum(), abs=1e-12)
