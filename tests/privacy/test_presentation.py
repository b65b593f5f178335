"""Nothing is reported below the truth, by a last digit or at the ends of the floats: 60 digits."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from incrowd.privacy import pld
from incrowd.privacy.accountant import Accountant, BasicAccountant
from incrowd.privacy.amplification import amplify_guarantee, invert_amplification
from incrowd.privacy.events import (
    Composition,
    Event,
    Mechanism,
    OneOf,
    SafeRelease,
    SampledEvent,
    Selection,
)
from incrowd.privacy.presentation import round_crowd_size
from incrowd.privacy.profile import amplify_profile, build_guarantee_profile, build_release_profile
from incrowd.privacy.sample import delta, log_absent_divergence, round_up_exp

mp = mpmath.mpf


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    with mpmath.workdps(60):
        yield


@pytest.mark.parametrize("k", [1, 3, 125])
@pytest.mark.parametrize("beta", [0.5, 0.9999, 1 - 1e-9, 1 - 2**-53])
def test_far_out_delta_is_that_of_a_cell_of_k_rows(k: int, beta: float) -> None:
    """Past ln k it is beta**k, where (1 - beta) e^-epsilon is no longer a full float too."""
    exact = Fraction(beta) ** k
    for epsilon in (50.0, 299.0, 301.0, 590.0, 650.0, 694.7, 707.6, 755.0, 5000.0, 1e300):
        for claimed in (
            delta(k=k, beta=beta, epsilon=epsilon),
            float(build_release_profile(k, beta).present(np.array([epsilon]))[0]),
        ):
            assert exact <= Fraction(claimed) <= exact * (1 + Fraction(1, 10**9)), epsilon


def test_the_absent_near_the_border_of_what_they_see() -> None:
    """With k = 1 it is h = 1 - (1 - beta) e^epsilon, which rounding must not make smaller."""
    draw = random.Random(5)
    for _ in range(500):
        beta = draw.choice([10 ** draw.uniform(-9, -0.01), 1 - 10 ** draw.uniform(-15.5, -1)])
        epsilon = -math.log1p(-beta) * (1 - 10 ** draw.uniform(-16, -1))
        h = 1 - (1 - mp(beta)) * mpmath.exp(mp(epsilon))
        ones = [np.array([x]) for x in (1.0, beta, epsilon)]
        result = float(round_up_exp(log_absent_divergence(*ones))[0])
        assert h <= result <= h * (1 + mp("1e-11")) + mp("2e-15") * (epsilon + 1), (beta, epsilon)


def randomized_response(x: Any, epsilon: float, event_delta: float) -> Any:
    """The profile of the worst mechanism that satisfies (epsilon, own), at x >= 0."""
    odds = (1 - mpmath.exp(x - mp(epsilon))) / (1 + mpmath.exp(-mp(epsilon)))
    return mp(event_delta) + (1 - mp(event_delta)) * max(odds, 0)


def test_a_guarantee_costs_no_less_than_randomized_response() -> None:
    draw = random.Random(6)
    for _ in range(500):
        epsilon, event_delta = 10 ** draw.uniform(-6, 2.9), draw.choice([0.0, 1e-300, 1e-9, 0.3])
        x = draw.choice([0.0, epsilon * draw.random(), epsilon * (1 - 10 ** draw.uniform(-16, -1))])
        result = build_guarantee_profile(epsilon, event_delta).present(np.array([x]))[0]
        exact = max(  # as the float, and as the decimal that it is written as
            randomized_response(mp(x), reading, event_delta)
            for reading in (epsilon, mp(repr(epsilon)))
        )
        assert exact <= result <= exact * (1 + mp("1e-12")), (epsilon, event_delta, x)


def test_a_sampled_guarantee_costs_no_less_than_its_mixture() -> None:
    draw = random.Random(7)
    for _ in range(1500):
        epsilon, event_delta = 10 ** draw.uniform(-4, 2.9), draw.choice([0.0, 1e-12, 1e-3])
        rate = draw.choice([10 ** draw.uniform(-6, -0.001), 1 - 10 ** draw.uniform(-9, -1)])
        b, profile = mp(rate), amplify_profile(build_guarantee_profile(epsilon, event_delta), rate)
        near = 1 - 10 ** draw.uniform(-16, -1)
        ends = [  # where present and absent come to an end, and where absent is 0 for certain
            float(mpmath.log(1 + b * (mpmath.exp(mp(epsilon)) - 1))),
            float(-mpmath.log(1 - b * (1 - mpmath.exp(-mp(epsilon))))),
            float(-mpmath.log(1 - b)),
        ]
        x = draw.choice([0.0, draw.random() * ends[0], *(end * near for end in ends)])
        e = mpmath.exp(mp(x))
        present = b * randomized_response(mpmath.log(1 + (e - 1) / b), epsilon, event_delta)
        share = (1 - 1 / e) / b
        absent = mp(0)
        if share < 1:
            y = -mpmath.log(1 - share)
            absent = b * mpmath.exp(x - y) * randomized_response(y, epsilon, event_delta)
        for exact, side in ((present, profile.present), (absent, profile.absent)):
            result = side(np.array([x]))[0]
            assert exact <= result <= exact * (1 + mp("1e-9")) + mp("1e-13") * e, (epsilon, rate, x)


def test_a_sampled_mechanism_keeps_all_of_its_delta() -> None:
    draw = random.Random(8)
    for _ in range(300):
        rate, event_delta = draw.uniform(0.001, 0.999), 10 ** draw.uniform(-12, -1)
        sampled_event: Event = SampledEvent(Mechanism(0.1, event_delta), rate)
        exact = Fraction(rate) * Fraction(event_delta)
        result = Accountant(sampled_event).delta(epsilon=5.0)
        assert exact <= Fraction(result) <= exact * (1 + Fraction(1, 2**51))
        both = SampledEvent(
            Composition([Mechanism(0.1, event_delta), Mechanism(0.2, event_delta / 3)]), rate
        )
        exact = Fraction(rate) * (Fraction(event_delta) + Fraction(event_delta / 3))
        assert exact <= Fraction(Accountant(both).delta(epsilon=5.0))
        # What is needed is also enough, to the last digit.
        for event in (sampled_event, both, OneOf([sampled_event, both])):
            needed = Accountant(event).delta(epsilon=5.0)
            assert BasicAccountant(event).epsilon(delta=needed) <= 0.3


def test_amplified_and_allowed_are_rounded_against_us() -> None:
    draw = random.Random(9)
    for _ in range(3000):
        epsilon, event_delta = 10 ** draw.uniform(-8, 3.2), 10 ** draw.uniform(-300, -1)
        rate = draw.choice([10 ** draw.uniform(-12, -0.001), 1 - 10 ** draw.uniform(-15, -1)])
        e, b = mpmath.exp(mp(epsilon)), mp(rate)
        more = amplify_guarantee(epsilon=epsilon, delta=event_delta, rate=rate)
        exact = mpmath.log(1 + b * (e - 1))
        assert exact <= more.epsilon <= exact * (1 + mp("1e-14")), (epsilon, rate)
        assert b * event_delta <= more.delta <= b * event_delta * (1 + mp("1e-14")) + mp("1e-323")
        inside = invert_amplification(epsilon=epsilon, delta=event_delta, rate=rate)
        exact = mpmath.log(1 + (e - 1) / b)
        assert exact * (1 - mp("1e-14")) <= inside.epsilon <= exact, (epsilon, rate)
        assert inside.delta <= min(event_delta / b, 1)


@pytest.mark.parametrize("epsilon", [30.0, 300.0, 690.0, 720.0, 900.0, 5000.0, 1e7])
def test_large_epsilons_have_an_answer_and_no_warning(epsilon: float) -> None:
    """In a sample too, and in a composition, whose grid is coarse then."""
    pure = SampledEvent(Selection(epsilon), 0.1)
    more = amplify_guarantee(epsilon=epsilon, rate=0.1).epsilon
    assert Accountant(pure).epsilon(delta=1e-20) == pytest.approx(more, rel=1e-9)
    assert Accountant(pure).epsilon(delta=0.0) == more
    half = Accountant(pure).delta(epsilon=epsilon / 2)
    e, b = mpmath.exp(mp(epsilon) / 2), mp(0.1)
    exact = b * randomized_response(mpmath.log(1 + (e - 1) / b), epsilon, 0.0)
    assert exact <= half <= exact * (1 + mp("1e-12"))
    two = Accountant([Selection(epsilon)] * 2)
    assert two.epsilon(delta=1e-6) <= 2 * epsilon
    truth = 1 / (1 + mpmath.exp(-mp(epsilon)))
    exact = truth**2 * (1 - mpmath.exp(-mp(epsilon)))  # of two, at epsilon: both must say so
    assert exact <= two.delta(epsilon=epsilon) <= exact * (1 + mp("1e-6"))


def test_a_grid_of_large_losses_covers_the_profile() -> None:
    """Also where e^-epsilon is no longer a float."""
    for epsilon in (5.0, 60.0, 760.0, 2000.0):
        profile = build_guarantee_profile(epsilon, 1e-9)
        grid = pld.discretize_losses(profile, epsilon / 300, 1e-20)
        at = np.linspace(0, epsilon * 1.1, 40)
        assert np.all(grid.delta(at) >= np.minimum(profile.present(at), 1.0))


def test_a_delta_is_at_most_one() -> None:
    for event in (Selection(50.0), Mechanism(60.0, 0.5), SafeRelease(1, 1 - 2**-53)):
        assert Accountant(event).delta(epsilon=0.0) <= 1.0
        assert Accountant(SampledEvent(event, 0.999)).delta(epsilon=0.0) <= 1.0


def test_a_crowd_in_people_is_shown_at_least_as_often_as_not() -> None:
    """P[B(n, beta) >= k] >= 1/2 at the crowd k / beta rounded up; rounded down, not always."""
    less = []
    for k in (1, 2, 5, 17, 60, 300):
        for beta in (0.01, 0.1, 0.2537, 0.3, 0.5, 0.7, 0.9, 0.99):
            crowd = round_crowd_size(k / beta)
            assert binom.sf(k - 1, crowd, beta) >= 0.5
            if binom.sf(k - 1, crowd - 1, beta) < 0.5:
                less.append((k, beta))
    assert (17, 0.9) in less
    assert round_crowd_size(3 / 0.1) == 30
