"""Gaussian noise of whole variances: small ones in 64 bits, large ones in numbers of any size."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from support.noise_law import compute_gaussian_law, is_drawn_from

from incrowd.errors import ParameterError
from incrowd.privacy.discrete_noise import flip_exp, sample_rational_gaussian
from incrowd.privacy.randomness import SeededRandomness

FALSE_ALARM = 1e-6


@pytest.mark.parametrize("variance", [4, 40, 2_000])
def test_small_variances_have_their_law_and_no_other(variance: int) -> None:
    draws = sample_rational_gaussian(Fraction(variance), 150_000, SeededRandomness(variance))
    sigma = math.sqrt(variance)
    reach = int(8 * sigma) + 2
    assert is_drawn_from(draws, compute_gaussian_law(sigma, reach))
    assert not is_drawn_from(draws, compute_gaussian_law(sigma * 1.03, reach))
    assert not is_drawn_from(draws, compute_gaussian_law(sigma / 1.03, reach))


@pytest.mark.parametrize("variance", [2**27 + 1, 2**40 + 7, 2**70 + 3])
def test_large_variances_are_normal_to_the_eye_of_a_test(variance: int) -> None:
    draws = sample_rational_gaussian(Fraction(variance), 60_000, SeededRandomness(3)) / math.sqrt(
        variance
    )
    groups = np.linspace(0, 1, 41)[1:-1]

    def chance(scale: float) -> float:
        edges = stats.norm.ppf(groups) * scale
        seen = np.bincount(np.searchsorted(edges, draws), minlength=40)
        return float(stats.chisquare(seen).pvalue)

    assert chance(1.0) > FALSE_ALARM
    assert chance(1.03) < FALSE_ALARM
    assert chance(1 / 1.03) < FALSE_ALARM
    assert np.unique(draws).size > 25_000


def test_coins_of_large_fractions_have_their_probability() -> None:
    under = 3**60
    for over in (0, under // 3, under, 5 * under // 2):
        coins = flip_exp(np.array([over] * 40_000, dtype=object), under, SeededRandomness(11))
        chance = math.exp(-over / under)
        assert (
            abs(coins.sum() - 40_000 * chance) < 5 * math.sqrt(40_000 * chance * (1 - chance)) + 1
        )


def test_coins_three_percent_off_are_told_apart() -> None:
    coins = flip_exp(np.full(200_000, 25, dtype=np.int64), 10, SeededRandomness(12)).sum()

    def accepts(rate: float) -> bool:
        chance = math.exp(-rate)
        return bool(abs(coins - 200_000 * chance) < 5 * math.sqrt(200_000 * chance))

    assert accepts(2.5)
    assert not accepts(2.5 * 1.03)
    assert not accepts(2.5 / 1.03)


def test_a_variance_of_nothing_is_refused() -> None:
    with pytest.raises(ParameterError, match="variance"):
        sample_rational_gaussian(Fraction(0), 1, SeededRandomness(1))
