"""Distances between a table and its release, against sums over all bins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from support.pairs import (
    identity,
    pair_of,
    pairs,
    random_table,
    table,
    uniform,
    worlds,
)

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
