"""Randomized response: odds, exact rates, the law of its draws, and the estimator."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from incrowd.errors import ParameterError
from incrowd.privacy.randomized_response import (
    choose_keep_rate,
    compute_odds,
    estimate_shares,
    is_within_epsilon,
    randomize_categories,
    round_up_epsilon,
)
from incrowd.privacy.randomness import SeededRandomness

SETTINGS = [(e, d) for e in ("0.01", "0.5", "1", "3.7", "20") for d in (2, 3, 10, 500)]


@pytest.mark.parametrize(("epsilon", "categories"), SETTINGS)
def test_the_rate_is_the_largest_that_epsilon_allows(epsilon: str, categories: int) -> None:
    """By mpmath: its odds are at most e**epsilon, and those of the next rate are above."""
    mpmath.mp.dps = 80
    most = mpmath.exp(mpmath.mpf(epsilon))
    keep = Fraction(choose_keep_rate(Fraction(epsilon), categories))
    assert keep.denominator <= 2**53
    for rate, holds in ((keep, True), (keep + Fraction(1, 2**53), False)):
        if rate < 1:
            odds = compute_odds(rate, categories)[0]
            assert (mpmath.mpf(odds.numerator) / odds.denominator <= most) == holds
    assert is_within_epsilon([(float(keep), categories)], float(epsilon))
    if keep + Fraction(1, 2**53) < 1:
        larger = float(keep + Fraction(1, 2**53))
        assert not is_within_epsilon([(larger, categories)], float(epsilon))


def test_responses_together_multiply_their_odds() -> None:
    halves = [(choose_keep_rate(Fraction(1), 3), 3), (choose_keep_rate(Fraction(1), 5), 5)]
    assert is_within_epsilon(halves, 2.0)
    assert not is_within_epsilon(halves, 1.9999999)
    assert round_up_epsilon(halves) == 2.0
    assert is_within_epsilon(halves, round_up_epsilon(halves))
    assert not is_within_epsilon([(0.9, 2)], math.log(9) - 1e-9)
    assert is_within_epsilon([(0.1, 2)], math.log(9) + 1e-9)  # telling the opposite costs as much


@pytest.mark.parametrize("categories", [2, 3, 7])
def test_draws_follow_the_matrix(categories: int) -> None:
    """Chi-square of each row of the matrix at a false-alarm rate of 1e-6; a wrong rate fails."""
    rows = 40_000
    keep = choose_keep_rate(Fraction(1), categories)
    for category in range(categories):
        codes = np.full(rows, category, dtype=np.int32)
        released = randomize_categories(codes, keep, categories, SeededRandomness(category))
        counts = np.bincount(released, minlength=categories)
        for rate, holds in ((keep, True), (keep + 0.03, False)):
            expected = np.full(categories, (1 - rate) / (categories - 1)) * rows
            expected[category] = rate * rows
            statistic = float(((counts - expected) ** 2 / expected).sum())
            assert (statistic < chi2.isf(1e-6, categories - 1)) == holds


def test_rows_respond_independently() -> None:
    """The number of kept rows of each hundred varies as a binomial does."""
    codes = np.zeros(100_000, dtype=np.int32)
    released = randomize_categories(codes, 0.75, 4, SeededRandomness(8)).reshape(-1, 100)
    kept_counts = (released == 0).sum(axis=1)
    assert kept_counts.mean() == pytest.approx(75, abs=4 * math.sqrt(100 * 0.75 * 0.25 / 1000))
    assert kept_counts.var() == pytest.approx(18.75, rel=0.25)


def test_the_estimate_is_unbiased_and_its_error_true() -> None:
    """Over 400 releases of 500 rows, within four standard errors; the naive share is far off."""
    codes = np.repeat(np.arange(3, dtype=np.int32), [350, 100, 50])
    keep = choose_keep_rate(Fraction(1), 3)
    bits = SeededRandomness(2)
    estimates, naive, errors = [], [], []
    for _ in range(400):
        shares = np.bincount(randomize_categories(codes, keep, 3, bits), minlength=3) / 500
        estimate, error = estimate_shares(shares, keep, 500)
        estimates.append(estimate)
        errors.append(error)
        naive.append(shares)
    true = np.array([0.7, 0.2, 0.1])
    deviations = np.std(estimates, axis=0)
    assert (np.abs(np.mean(estimates, axis=0) - true) < 4 * deviations / 20).all()
    assert (np.abs(np.mean(naive, axis=0) - true) > 0.03).all()
    assert np.mean(errors, axis=0) == pytest.approx(deviations, rel=0.15)


@pytest.mark.parametrize(("epsilon", "categories"), [(Fraction(0), 2), (Fraction(1), 1)])
def test_mistakes(epsilon: Fraction, categories: int) -> None:
    with pytest.raises(ParameterError):
        choose_keep_rate(epsilon, categories)
