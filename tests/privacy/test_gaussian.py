"""Gaussian measurements: the normal profile, discrete noise below it, adaptive parts within it."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.arrays import Floats
from incrowd.errors import ParameterError
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import GaussianMeasurements
from incrowd.privacy.gaussian import (
    ROUNDING_VARIANCE,
    normal_delta,
    of_measurements,
    whole_variance,
)

EPSILONS = np.array([0.0, 0.01, 0.1, 0.3, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0])


def exact_normal_delta(epsilon: float, mu: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)


@pytest.mark.parametrize("mu", [0.003, 0.05, 0.24, 1.0, 3.2])
def test_the_normal_delta_is_right_and_never_below(mu: float) -> None:
    epsilons = np.array([0.0, 0.1 * mu, mu, 3 * mu, 5 * mu + mu * mu, 20 * mu])
    for epsilon, result in zip(epsilons, normal_delta(epsilons, mu), strict=True):
        truth = exact_normal_delta(float(epsilon), mu)
        assert truth <= result <= truth * (1 + 1e-9) + 1e-290


def test_the_profile_is_that_of_mu_and_covers_the_remainder() -> None:
    for information in (0.054, 1.0, 7.0):
        profile = of_measurements(information)
        for epsilon in (0.2, 1.0, 3.0):
            truth = exact_normal_delta(epsilon - 2.4e-16, math.sqrt(information))
            result = float(profile.delta(np.array([epsilon]))[0])
            assert truth <= result <= truth * (1 + 1e-9)


def law(variance: int, reach: int) -> Floats:
    """The discrete Gaussian of a whole variance, from -reach to reach."""
    y = np.arange(-reach, reach + 1)
    weights = np.exp(-(y**2) / (2 * variance))
    result: Floats = weights / weights.sum()
    return result


def shift_delta(variance: int, shift: tuple[int, ...], epsilon: float) -> float:
    """The exact delta of discrete Gaussian noise on numbers that a row moves by a shift."""
    reach = int(9 * math.sqrt(variance)) + max(map(abs, shift)) + 2
    y = np.arange(-reach, reach + 1)
    joint = np.ones(1)
    ratio = np.zeros(1)
    for step in shift:
        if step:
            joint = np.multiply.outer(joint, law(variance, reach)).ravel()
            log_ratio = (step * step + 2 * step * y) / (2 * variance)  # ln P/Q for this number
            ratio = np.add.outer(ratio, log_ratio).ravel()
    return float((joint * np.maximum(-np.expm1(epsilon - ratio), 0)).sum())


@pytest.mark.parametrize("part", ["1/2", "1", "3"])
@pytest.mark.parametrize("shift", [(1,), (1, -1), (2, -1, -1)])
def test_discrete_noise_costs_no_more_than_its_part(part: str, shift: tuple[int, ...]) -> None:
    exact = Fraction(part)
    length = sum(step * step for step in shift)
    variance = whole_variance(length, exact)
    for epsilon in EPSILONS:
        allowed = normal_delta(np.array([epsilon]), math.sqrt(exact))[0]
        assert shift_delta(variance, shift, float(epsilon)) <= allowed * (1 + 1e-9) + 1e-13


def test_without_the_rounding_variance_it_would_cost_more() -> None:
    """A planted fault: noise of variance D^2 / tau, as if it were continuous."""
    result = [
        shift_delta(2, (1,), float(epsilon)) / normal_delta(np.array([epsilon]), math.sqrt(0.5))[0]
        for epsilon in EPSILONS[:8]
    ]
    assert max(result) > 1.02


def composed(parts: list[float], threshold: float, epsilon: float) -> float:
    """The exact delta of a first measurement, then one of two second ones by its result.

    Both measure one count that a row raises by 1. ``parts`` are those of the first, of the second
    if the first result is above the threshold, and of the second if it is not.
    """
    variances = [whole_variance(1, Fraction(part)) for part in parts]
    reach = int(12 * math.sqrt(max(variances)))
    y = np.arange(-reach, reach + 1)
    laws = [law(variance, reach) for variance in variances]
    losses = [(2 * y - 1) / (2 * variance) for variance in variances]  # ln P/Q, row present
    total = 0.0
    for high in (True, False):
        chosen = (y > threshold) == high
        second = 1 if high else 2
        # P is centered at 1; its law of y is that of noise y - 1.
        first_p = np.roll(laws[0], 1)
        second_p = np.roll(laws[second], 1)
        loss = np.add.outer(losses[0][chosen], losses[second])
        joint = np.multiply.outer(first_p[chosen], second_p)
        total += float((joint * np.maximum(-np.expm1(epsilon - loss), 0)).sum())
    return total


def test_adaptive_parts_cost_what_their_budget_costs() -> None:
    """An adversary who sees the first result decides how the rest is spent, or that it is not."""
    budget = 2.0
    accountant = Accountant(GaussianMeasurements(budget))
    for first, threshold in product((0.5, 1.0, 1.5), (-1, 0, 1, 2)):
        for second in ((budget - first, 1e-3), (1e-3, budget - first)):
            for epsilon in (0.5, 1.0, 2.0, 4.0):
                exact = composed([first, *second], threshold, epsilon)
                assert exact <= accountant.delta(epsilon=epsilon) * (1 + 1e-9)


def test_parts_beyond_the_budget_would_be_noticed() -> None:
    """A planted fault: the second part is not charged."""
    accountant = Accountant(GaussianMeasurements(0.1))
    assert composed([0.1, 0.1, 0.1], 0, 1.0) > 1.5 * accountant.delta(epsilon=1.0)


def test_a_part_must_be_above_zero() -> None:
    with pytest.raises(ParameterError, match="part"):
        whole_variance(1, Fraction(0))
    with pytest.raises(ParameterError, match="part"):
        whole_variance(0, Fraction(1))


@given(
    length=st.integers(1, 10**6),
    part=st.fractions(min_value=Fraction(1, 10**9), max_value=100, max_denominator=10**12),
)
def test_a_variance_costs_no_more_than_its_part(length: int, part: Fraction) -> None:
    """Rounded up: the variance without the 3 is at least what the part buys, by less than 1."""
    bought = whole_variance(length, part) - ROUNDING_VARIANCE
    assert Fraction(length, bought) <= part
    assert bought - length / part < 1
