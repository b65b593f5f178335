"""Wrong methods: each is caught by an audit, and each is wrong for the reason that it says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from incrowd.codes.frequency import Frequencies
from incrowd.evaluation.audit.bound import compute_largest_bound, compute_lower_bound
from incrowd.papers.naive import (
    VARIANTS,
    NaiveVariant,
    add_float_laplace,
    add_noise_per_column,
    choose_by_exact_score,
    find_reachable,
    publish_reused_sample,
)
from incrowd.privacy.discrete_noise import sample_laplace
from incrowd.privacy.randomness import SeededRandomness

RUNS = 600


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_each_is_caught(variant: NaiveVariant) -> None:
    """The bound is wrong with 5 % at most; a bound of twice the claim by chance, far less often."""
    bits = SeededRandomness(1)
    first, second = (variant.outcomes(side, RUNS, bits) for side in (True, False))
    bound = compute_lower_bound(first, second, delta=0.01)
    assert bound.epsilon > 2 * variant.claim
    assert bound.epsilon <= compute_largest_bound(RUNS * 2 // 3, delta=0.01) + 1e-9


def test_epsilon_shared_among_the_columns_is_not_caught() -> None:
    """The right version of one of them: an eighth of epsilon in each of eight columns."""
    bits = SeededRandomness(2)
    sums = [
        add_noise_per_column(
            np.full((20_000, 8), value), width=1, epsilon=Fraction(1, 8), bits=bits
        ).sum(axis=1)
        for value in (1, 0)
    ]
    assert compute_lower_bound(sums[0], sums[1], delta=0.01).epsilon < 1.0


def test_exact_noise_on_a_grid_has_no_holes() -> None:
    """The right version of another: whether an output can come from both values tells nothing."""
    t = np.full(200_000, 1000)
    noise = sample_laplace(t, 1, SeededRandomness(3))
    met, shifted = np.unique(noise), np.unique(noise + 1)
    near = np.abs(met) < 1000
    assert np.isin(met[near], shifted).all()


def test_every_float_that_comes_out_is_reachable_and_many_are_not() -> None:
    rng = np.random.default_rng(4)
    for value, other in ((0.0, 1.0), (1.0, 0.0), (0.5, 1.5)):
        outputs = add_float_laplace(np.full(20_000, value), 1.0, rng)
        assert find_reachable(outputs, value, 1.0).all()
        assert 0.05 < find_reachable(outputs, other, 1.0).mean() < 0.95


def test_a_search_that_ends_exactly_names_the_best_of_what_it_has_seen() -> None:
    bits = SeededRandomness(5)
    scores = np.array([5, 9, 9, 1])
    result = choose_by_exact_score(
        scores, steps=30, sensitivity=1, epsilon=Fraction(1), runs=50, bits=bits
    )
    assert set(result.tolist()) == {1}


def test_a_sample_reused_shows_no_cell_below_k() -> None:
    bits = SeededRandomness(6)
    table = Frequencies(np.arange(3, dtype=np.int32)[:, None], np.array([60, 50, 3]))
    schemes = [[np.arange(3, dtype=np.int32)], [np.array([0, 0, 1], dtype=np.int32)]]
    for _ in range(100):
        _, cells = publish_reused_sample(table, schemes, k=14, beta=0.5, bits=bits)
        assert (cells.counts >= 14).all()
