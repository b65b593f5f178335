"""Rounding of a table: both sums exact, zeros kept, no bias, and no error that adds up."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from incrowd.anonymize.synthetic.rounded_table import round_table
from incrowd.arrays import Counts, Floats


def _make_table(seed: int, groups: int, values: int) -> tuple[Floats, Counts, Counts]:
    """Return expected counts with zeros, and sums of a whole-number table that obeys them."""
    rng = np.random.default_rng(seed)
    weights = rng.gamma(0.3, size=(groups, values)) * (rng.random((groups, values)) < 0.7)
    weights[weights.sum(axis=1) == 0, 0] = 1.0
    sizes = rng.integers(0, 6, groups)
    shares = weights / weights.sum(axis=1, keepdims=True)
    possible = np.stack([rng.multinomial(n, row) for n, row in zip(sizes, shares, strict=True)])
    return shares * sizes[:, None], sizes, possible.sum(axis=0)


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 9))
def test_both_sums_are_met(seed: int, groups: int, values: int) -> None:
    expected, sizes, totals = _make_table(seed, groups, values)
    rounded = round_table(expected, sizes, totals, np.random.default_rng(seed))
    assert (rounded >= 0).all()
    assert (rounded.sum(axis=1) == sizes).all()
    assert (rounded.sum(axis=0) == totals).all()


def test_runs_of_groups_are_met_as_well() -> None:
    # 512 groups of two rows: rounded each by itself, the sum over a half is off by 10 or so.
    expected = np.tile([0.9, 0.7, 0.4], (512, 1))
    totals = np.rint(expected.sum(axis=0)).astype(np.int64)
    totals[0] += 1024 - totals.sum()
    for seed in range(20):
        rounded = round_table(expected, np.full(512, 2), totals, np.random.default_rng(seed))
        for run in (slice(0, 256), slice(256, 384), slice(100, 355)):
            missed = rounded[run].sum(axis=0) - expected[run].sum(axis=0)
            assert np.abs(missed).max() < 5, (seed, run, missed)


def test_the_mean_of_each_cell_is_what_is_expected() -> None:
    expected = np.array([[0.9, 0.1, 0.0], [0.3, 0.3, 0.4], [1.8, 0.6, 0.6]])
    sizes, totals = np.array([1, 1, 3]), np.array([3, 1, 1])
    rng = np.random.default_rng(5)
    draws = np.mean([round_table(expected, sizes, totals, rng) for _ in range(4_000)], axis=0)
    # A deviation of a mean is at most 0.02; the law given both sums is not exactly the product.
    assert np.abs(draws - expected).max() < 0.12
    assert draws[0, 2] == 0
