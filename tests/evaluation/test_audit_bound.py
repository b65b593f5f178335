"""The bound from runs: exact against its definition, right as often as it says, and no weaker."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

from incrowd.arrays import Counts, Floats
from incrowd.errors import ParameterError
from incrowd.evaluation.audit.bound import (
    Runs,
    bound_from_runs,
    choose_event,
    compute_expected_bound,
    compute_largest_bound,
    compute_lower_bound,
)

SURE = np.array([1, 0])  # runs that leave no doubt about the event


def of_event(hits: int, n: int, misses: int, m: int, *, delta: float, confidence: float) -> float:
    """The bound where the event is the outcome 0, by runs of a choice that were clear."""
    clear = Runs(1000 * SURE, 1000 * SURE[::-1])
    test = Runs(np.array([hits, n - hits]), np.array([misses, m - misses]))
    return bound_from_runs(clear, clear, test, delta=delta, confidence=confidence).epsilon


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
@pytest.mark.parametrize(("hits", "n", "misses", "m"), [(60, 100, 7, 90), (999, 1000, 1, 500)])
def test_the_bound_is_that_of_the_two_tails(
    hits: int, n: int, misses: int, m: int, confidence: float
) -> None:
    alpha = (1 - confidence) / 4

    def shown(hits: int, n: int, misses: int, m: int, delta: float) -> float:
        low = brentq(lambda p: binom.sf(hits - 1, n, p) - alpha, 1e-9, 1 - 1e-9, xtol=1e-14)
        high = brentq(lambda q: binom.cdf(misses, m, q) - alpha, 1e-9, 1 - 1e-9, xtol=1e-14)
        return math.log((low - delta) / high)

    for delta in (0.0, 0.05):
        both = shown(hits, n, misses, m, delta), shown(m - misses, m, n - hits, n, delta)
        got = of_event(hits, n, misses, m, delta=delta, confidence=confidence)
        assert got == pytest.approx(max(both), abs=1e-9)


def test_either_direction_is_found() -> None:
    item, other = np.array([90, 10]), np.array([50, 50])
    there = bound_from_runs(*[Runs(item, other)] * 3, delta=0.0)
    back = bound_from_runs(*[Runs(other, item)] * 3, delta=0.0)
    assert there.epsilon == back.epsilon > 0.7
    assert (there.on_first, back.on_first) == (False, True)
    assert there.event.tolist() == back.event.tolist() == [1]  # 10 against 50 tells most


def test_the_event_is_the_best_prefix_of_the_likelihood_ratio() -> None:
    item, other = np.array([100, 4000, 5900]), np.array([1, 1000, 8999])
    runs = Runs(item, other)
    assert choose_event(runs, runs, delta=0.0).event.tolist() == [True, False, False]
    # The first outcome is too rare to show anything beyond delta.
    assert choose_event(runs, runs, delta=0.05).event.tolist() == [True, True, False]


def test_what_delta_allows_shows_nothing() -> None:
    assert of_event(9, 1000, 0, 1000, delta=0.01, confidence=0.95) == 0.0
    assert of_event(50, 1000, 0, 1000, delta=0.01, confidence=0.95) > 1.0
    assert of_event(0, 0, 0, 0, delta=0.01, confidence=0.95) == 0.0


def drawn(law: Floats, runs: int, rng: np.random.Generator) -> Counts:
    return rng.choice(len(law), runs, p=law)


def test_it_is_wrong_no_more_often_than_it_says() -> None:
    """Of audits of a method at its exact epsilon, at most 5 % may be above it.

    The error is shared among four bounds of which two have to fail at once, so far fewer are
    expected, and a correct program fails with less than 1e-9 for a random seed.
    """
    rng = np.random.default_rng(1)
    p = math.e / (1 + math.e)
    laws = np.array([p, 1 - p]), np.array([1 - p, p])
    bounds = [
        compute_lower_bound(
            *(drawn(law, 600, rng) for law in laws), delta=0.0, confidence=0.95
        ).epsilon
        for _ in range(1000)
    ]
    assert np.mean(np.array(bounds) > 1.0) <= 0.01
    assert np.median(bounds) > 0.6


def test_it_is_as_wrong_as_it_says_where_one_proportion_decides() -> None:
    """With q = 1 known for certain, nothing but p_low can be wrong: with 1.25 % in one direction.

    There p - delta = q e^epsilon has epsilon = ln(p - delta) < 0, so the bound is looked at itself.
    Of 2,000, 25 are expected at most, and 50 with less than 1e-5.
    """
    rng = np.random.default_rng(2)
    clear = Runs(1000 * SURE, 1000 * SURE[::-1])
    above = 0
    for hits in rng.binomial(500, 0.5, 2000):
        test = Runs(np.array([hits, 500 - hits]), np.array([500, 0]))
        above += bound_from_runs(clear, clear, test, delta=0.0).likely.low > 0.5
    assert 5 <= above <= 50  # far fewer would say that the error is not used


def test_runs_that_chose_the_event_must_not_test_it() -> None:
    """Two equal laws of many outcomes: epsilon is 0, and any bound above it is a false alarm.

    Kept apart, fewer than 5 % are; on the runs of the choice itself, nearly all.
    """
    rng = np.random.default_rng(3)
    even = np.full(400, 1 / 400)
    apart, same = [], []
    for _ in range(200):
        item, other = drawn(even, 900, rng), drawn(even, 900, rng)
        apart.append(compute_lower_bound(item, other, delta=0.0).epsilon)
        runs = Runs(np.bincount(item, minlength=400), np.bincount(other, minlength=400))
        same.append(bound_from_runs(runs, runs, runs, delta=0.0).epsilon)
    assert np.mean(np.array(apart) > 0) < 0.05
    assert np.mean(np.array(same) > 0) > 0.9


def test_no_more_can_be_shown_than_the_power() -> None:
    for runs in (10, 1000, 100_000):
        alpha = 0.05 / 4
        at_best = math.log((alpha ** (1 / runs) - 0.01) / (1 - alpha ** (1 / runs)))
        assert compute_largest_bound(runs, delta=0.01) == pytest.approx(max(at_best, 0), abs=1e-6)
        assert (
            compute_largest_bound(runs, delta=0.01) <= math.log(runs / math.log(1 / alpha)) + 1e-9
        )
    apart = compute_lower_bound(np.zeros(6000, np.int64), np.ones(6000, np.int64), delta=0.01)
    assert apart.epsilon == pytest.approx(compute_largest_bound(4000, delta=0.01), abs=1e-9)
    assert compute_largest_bound(0, delta=0.01) == 0.0


def smallest_epsilon(p: Floats, q: Floats, delta: float) -> float:
    """By the definition: where the larger hockey-stick divergence meets delta."""

    def excess(epsilon: float) -> float:
        t = math.exp(epsilon)
        both = np.maximum(p - t * q, 0).sum(), np.maximum(q - t * p, 0).sum()
        return float(max(both)) - delta

    return float(brentq(excess, 0.0, 50.0, xtol=1e-12))


def test_of_known_laws_the_expected_bound_grows_to_their_epsilon() -> None:
    rng = np.random.default_rng(4)
    for _ in range(5):
        p, q = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(8))
        truth = smallest_epsilon(p, q, 0.01)
        expected = [compute_expected_bound(p, q, 10**n, delta=0.01) for n in (2, 4, 6, 11)]
        assert expected == sorted(expected)
        assert truth * 0.999 < expected[-1] < truth
        got = compute_lower_bound(drawn(p, 15_000, rng), drawn(q, 15_000, rng), delta=0.01).epsilon
        # Three spreads of a logarithm of a proportion of a few percent.
        assert got == pytest.approx(expected[1], rel=0.12)


def test_parameters_are_checked() -> None:
    none = np.zeros(6, dtype=np.int64)
    for delta, confidence in ((1.0, 0.95), (-0.1, 0.95), (0.01, 1.0), (0.01, 0.0)):
        with pytest.raises(ParameterError, match="delta|confidence"):
            compute_lower_bound(none, none, delta=delta, confidence=confidence)
