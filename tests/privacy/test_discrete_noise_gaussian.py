"""The delta of Gaussian noise and the sigma for it, against sixty digits, over the whole range."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from incrowd.arrays import Bools, Counts
from incrowd.errors import ParameterError, UnsolvableError
from incrowd.privacy import discrete_noise
from incrowd.privacy.counts import sample_gaussian_noise
from incrowd.privacy.events import GaussianCounts
from incrowd.privacy.presentation import read_as_decimal
from incrowd.privacy.randomness import SeededRandomness
from incrowd.privacy.split import split_for_counts

DIGITS = 60


def true_delta(diameter: int, sigma: int, epsilon: float) -> Any:
    """sum over y of [P[Y = y] - e^epsilon P[Y = y + diameter]]_+, to more digits than needed."""
    with mpmath.workdps(DIGITS):
        first = math.floor(Fraction(epsilon) * sigma**2 / diameter - Fraction(diameter, 2)) + 1
        above = _sum_from(first, sigma)
        beyond = _sum_from(first + diameter, sigma)
        return (above - mpmath.exp(mpmath.mpf(epsilon)) * beyond) / _everything(sigma)


def _weight(y: int, sigma: int) -> Any:
    return mpmath.exp(-(mpmath.mpf(y) ** 2) / (2 * mpmath.mpf(sigma) ** 2))


def _everything(sigma: int) -> Any:
    """Poisson's formula for the sum of all weights."""
    q = [mpmath.exp(-2 * (mpmath.pi * sigma * j) ** 2) for j in range(1, 5)]
    return sigma * mpmath.sqrt(2 * mpmath.pi) * (1 + 2 * sum(q))


def _sum_from(first: int, sigma: int) -> Any:
    """The sum of the weights from ``first`` on: one by one, or by Euler and Maclaurin."""
    if first <= 0:
        return _everything(sigma) - _sum_from(1 - first, sigma)
    s, x = mpmath.mpf(sigma), mpmath.mpf(first) / sigma
    weight = mpmath.exp(-(x**2) / 2)
    if sigma < 300 or x > 0.1 * sigma:
        ratio, fall = mpmath.exp(-(2 * first + 1) / (2 * s**2)), mpmath.exp(-1 / s**2)
        total, least = mpmath.mpf(0), weight * mpmath.mpf(10) ** -DIGITS
        while weight > least:
            total, weight, ratio = total + weight, weight * ratio, ratio * fall
        return total
    total = s * mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(x / mpmath.sqrt(2)) + weight / 2
    for j in range(1, 13):
        order = 2 * j - 1
        # the derivative of an odd order: minus Hermite's polynomial times the weight
        derivative = -_hermite(order, x) * weight / s**order
        total -= mpmath.bernoulli(2 * j) / mpmath.factorial(2 * j) * derivative
    return total


def _hermite(order: int, x: Any) -> Any:
    previous, current = mpmath.mpf(1), x
    for n in range(1, order):
        previous, current = current, x * current - n * previous
    return current


def test_the_sums_of_weights_are_what_they_should_be() -> None:
    """By Euler and Maclaurin as one by one."""
    for first in (-900, 0, 17, 2000, 9000):
        with mpmath.workdps(DIGITS):
            total = sum(_weight(y, 300) for y in range(first, 13_000))
            assert abs(_sum_from(first, 300) / total - 1) < mpmath.mpf(10) ** -30


@pytest.mark.parametrize(
    ("width", "epsilon", "delta"), [(100_000, 16.0, 1e-10), (100_000, 18.7, 1e-13)]
)
def test_large_epsilons_do_not_multiply_rounding_errors(
    width: int, epsilon: float, delta: float
) -> None:
    sigma = discrete_noise.find_sigma(width, epsilon=epsilon, delta=delta)
    assert true_delta(width, sigma, epsilon) <= delta
    assert true_delta(width, sigma - 2, epsilon) > delta


EPSILONS = (1e-3, 0.05, 0.7, 3.0, 9.0, 16.0, 20.0, 37.0, 50.0, 300.0, 700.0, 5000.0)
DELTAS = (0.3, 1e-2, 1e-6, 1e-10, 1e-15, 1e-150, 1e-300)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_sigma_is_enough_and_hardly_more_over_the_whole_range(epsilon: float) -> None:
    """Its true delta is at most what was asked; two steps less would not do."""
    for delta in DELTAS:
        for width in (1, 7, 61, 3001, 100_000, 33_000_000):
            try:
                sigma = discrete_noise.find_sigma(width, epsilon=epsilon, delta=delta)
            except UnsolvableError:
                assert true_delta(width, 2**26, epsilon) > 0.999 * delta
                continue
            assert true_delta(width, sigma, epsilon) <= delta, (width, delta)
            if sigma > 2:
                less = max(sigma - 2 - sigma // 100_000, 1)
                assert true_delta(width, less, epsilon) > delta, (width, delta)


def test_delta_is_never_below_the_truth_and_close() -> None:
    """Both branches and their border: summed within 1 part in 10^10, else within 1 in 1,000."""
    draw = random.Random(3)
    sigmas = [
        1,
        2,
        3,
        10,
        39,
        40,
        discrete_noise._SUMMED,
        discrete_noise._SUMMED + 1,
        900,
        2000,
        2001,
        30_000,
    ]
    for _ in range(600):
        sigma = draw.choice([*sigmas, int(10 ** draw.uniform(0, 7.8))])
        epsilon = 10 ** draw.uniform(-3, 3)
        # the distance at which delta is about Q(a)
        a = draw.choice([draw.uniform(-6, 8), draw.uniform(8, 37)])
        width = max(round(sigma * (math.sqrt(a * a + 2 * epsilon) - a)), 1)
        gaussian_delta = discrete_noise.compute_gaussian_delta(width, sigma, epsilon)
        true = true_delta(width, sigma, epsilon)
        assert true <= gaussian_delta, (width, sigma, epsilon)
        above = (
            1e-10 if sigma <= discrete_noise._SUMMED else 1e-3 if epsilon <= 50 and a <= 8 else 0.02
        )
        assert gaussian_delta <= true * (1 + above) + mpmath.mpf("3e-308"), (width, sigma, epsilon)


def test_what_cannot_be_done_is_refused() -> None:
    for epsilon in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ParameterError, match="'epsilon'"):
            discrete_noise.find_sigma(10, epsilon=epsilon, delta=0.1)
    for delta in (0.0, 1.0, 1e-301, math.nan):
        with pytest.raises(ParameterError, match="'delta'"):
            discrete_noise.find_sigma(10, epsilon=1.0, delta=delta)
    with pytest.raises(UnsolvableError, match="coarser precision"):
        discrete_noise.find_sigma(2**40, epsilon=1.0, delta=1e-6)
    with pytest.raises(UnsolvableError, match="coarser precision"):
        discrete_noise.find_sigma(1, epsilon=1e-12, delta=1e-15)


# Far from 0, where 64 bits do not hold a square -------------------------------------------------


class Spy:
    """Proposals that are prescribed, and what the coins that keep or reject them are asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, proposals: list[int]) -> None:
        self.proposals = proposals
        self.rests: list[int] = []
        self.wholes: list[int] = []
        monkeypatch.setattr(discrete_noise, "sample_laplace", self._laplace)
        monkeypatch.setattr(discrete_noise, "flip_exp_coins", self._with_exp)
        monkeypatch.setattr(discrete_noise, "_flip_exp_powers", self._all_exp)

    def _laplace(self, t: Counts, s: int, bits: object) -> Counts:
        return np.array(self.proposals, dtype=np.int64)

    def _with_exp(self, u: Counts, t: Counts, bits: object) -> Bools:
        assert ((u >= 0) & (u < t)).all()
        self.rests = u.tolist()
        return np.ones(len(u), dtype=bool)

    def _all_exp(self, powers: Counts, bits: object) -> Bools:
        self.wholes = powers.tolist()
        return np.ones(len(powers), dtype=bool)


@pytest.mark.parametrize("sigma", [1, 3, 2**20, 2**26 - 1, 2**26])
def test_what_is_kept_is_exact_however_far_out(sigma: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond 46 sigma of the widest noise a square of 64 bits is negative: all would be kept."""
    proposals = [sign * (m * sigma + 1) for m in (0, 1, 39, 40, 45, 47, 60, 99) for sign in (-1, 1)]
    spy = Spy(monkeypatch, proposals)
    draws = discrete_noise.sample_gaussian(
        np.full(len(proposals), sigma, dtype=np.int64), SeededRandomness(1)
    )
    exact = [divmod((abs(y) - sigma) ** 2, 2 * sigma**2) for y in proposals]
    assert list(zip(spy.wholes, spy.rests, strict=True)) == exact
    assert draws.tolist() == proposals


@pytest.mark.parametrize(
    "variance", ["0.001", "0.05", "1", "46.1", "46.123", "35000.001", "999999.999", "1000000"]
)
def test_every_variance_of_an_event_can_be_drawn(
    variance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is settled, booked and accounted must not be refused when it is drawn."""
    event = GaussianCounts(1, float(variance))
    exact = Fraction(variance)
    assert (
        discrete_noise.sample_rational_gaussian(exact, 200, SeededRandomness(1)).var()
        < 4 * event.variance + 1
    )
    a, b = exact.numerator, exact.denominator
    t = math.isqrt(a // b) + 1
    proposals = [sign * (m * t + 1) for m in (0, 1, 3, 59, 60, 70) for sign in (-1, 1)]
    spy = Spy(monkeypatch, proposals)
    discrete_noise.sample_rational_gaussian(exact, len(proposals), SeededRandomness(1))
    true = [divmod((abs(y) * b * t - a) ** 2, 2 * a * b * t * t) for y in proposals]
    assert list(zip(spy.wholes, spy.rests, strict=True)) == true


@pytest.mark.parametrize("tables", [3, 16, 200])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 2.0])
def test_every_variance_that_is_settled_can_be_drawn(epsilon: float, tables: int) -> None:
    event = split_for_counts(epsilon=epsilon, delta=1e-6, tables=tables).event
    if isinstance(event, GaussianCounts):
        assert (
            len(
                sample_gaussian_noise(
                    50, read_as_decimal(event.variance), event.r, SeededRandomness(1)
                )
            )
            == 50
        )
