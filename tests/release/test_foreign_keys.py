"""References by the public rule: always to a key, in the declared numbers, the same everywhere."""

from __future__ import annotations

from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from incrowd.release.foreign_keys import assign_parents, list_weights, scale_weights

SEAL = "ab" * 32
SHARES = {0: 0.3, 1: 0.4, 4: 0.3}


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(0, 400),
    parents=st.integers(1, 300),
    children=st.sampled_from([None, SHARES, {1: 1.0}, {0: 0.999, 2: 0.001}, {7: 0.5, 3: 0.5}]),
)
def test_every_row_refers_to_a_key(
    rows: int, parents: int, children: dict[int, float] | None
) -> None:
    keys = assign_parents(SEAL, "patient", rows=rows, parents=parents, children=children)
    assert len(keys) == rows
    assert keys.dtype == np.int64
    assert not rows or (keys.min() >= 1 and keys.max() <= parents)
    if children is None:
        return
    weights = np.sort(list_weights(parents, children))
    exact = weights * rows / weights.sum()
    counts = np.sort(np.bincount(keys, minlength=parents + 1)[1:])
    assert all(
        floor(share - 1e-9) <= count <= ceil(share + 1e-9)
        for count, share in zip(counts, exact, strict=True)
    )


def test_numbers_are_as_declared_where_they_add_up() -> None:
    keys = assign_parents(SEAL, "patient", rows=1600, parents=1000, children=SHARES)
    sizes = np.bincount(np.bincount(keys, minlength=1001)[1:])
    assert sizes.tolist() == [300, 400, 0, 0, 300]
    once = assign_parents(SEAL, "patient", rows=50, parents=50, children={1: 1.0})
    assert sorted(once.tolist()) == list(range(1, 51))


@pytest.mark.parametrize(
    ("parents", "children", "weights"),
    [
        (3, SHARES, [0, 1, 4]),
        (1, SHARES, [1]),
        (1, {0: 0.9, 2: 0.1}, [2]),  # somebody must have the rows
        (4, {2: 0.5, 3: 0.5}, [2, 2, 3, 3]),
    ],
)
def test_shares_are_rounded_such_that_they_add_up(
    parents: int, children: dict[int, float], weights: list[int]
) -> None:
    assert list_weights(parents, children).tolist() == weights


def test_scaled_numbers_add_up() -> None:
    assert scale_weights(np.array([1, 0, 2, 1]), 8).tolist() == [2, 0, 4, 2]
    assert scale_weights(np.array([1, 1, 1]), 2).sum() == 2
    assert scale_weights(np.array([3]), 0).tolist() == [0]


def test_the_rule_is_one_for_ever() -> None:
    """Published releases must verify: another stream of words would be another rule."""
    keys = assign_parents(SEAL, "patient", rows=6, parents=10, children=None)
    children = assign_parents(SEAL, "patient", rows=6, parents=4, children={1: 0.5, 2: 0.5})
    assert (keys.tolist(), children.tolist()) == ([2, 10, 10, 10, 10, 7], [4, 3, 2, 2, 1, 1])


def test_releases_and_columns_have_other_references() -> None:
    first = assign_parents(SEAL, "patient", rows=100, parents=1000, children=None)
    for seal, column in ((SEAL, "doctor"), ("cd" * 32, "patient")):
        other = assign_parents(seal, column, rows=100, parents=1000, children=None)
        assert (first == other).mean() < 0.1


@pytest.mark.parametrize("children", [None, {3: 1.0}])
def test_references_do_not_follow_the_order_of_the_rows(children: dict[int, float] | None) -> None:
    """A fixed rule on fixed numbers: no false alarm; rows in order would fail by far."""
    rows, parts = 30_000, 10
    keys = assign_parents(SEAL, "patient", rows=rows, parents=10_000, children=children)

    def statistic(of: np.ndarray) -> float:
        place = np.arange(rows) * parts // rows
        cells = np.bincount(place * parts + (of - 1) * parts // 10_000, minlength=parts**2)
        expected = rows / parts**2
        return float(((cells - expected) ** 2 / expected).sum())

    limit = chi2.ppf(1 - 1e-9, parts**2 - 1)
    assert statistic(keys) < limit
    assert statistic(np.sort(keys)) > 10 * limit
