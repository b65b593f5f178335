"""Pairs of k and beta that, with private choices before them, cost the same budget.

Choices that satisfy epsilon_1, epsilon_2, ... come first, a safe release after them. Against the
worst choices, randomised response, all together have

    delta(epsilon) = sum over signs of p(signs) h(epsilon - sum of signed epsilon_i),

h the profile of the release, where a plus has probability e^epsilon_i / (1 + e^epsilon_i). For each
rate the smallest k that fits is found by this; since the choices decide among the pairs, h is the
largest of all pairs' profiles at each epsilon, and the accountant has the last word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from incrowd.errors import Floats, IncrowdError, UnsolvableError
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import (
    LARGEST_K,
    Composition,
    Event,
    OneOf,
    SafeRelease,
    Sampled,
    Selection,
)
from incrowd.privacy.profile import of_safe_release, sampled
from incrowd.privacy.randomness import realised

RATES = (0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9)
_TRIES = 12


def paired(
    *,
    epsilon: float,
    delta: float,
    selections: Sequence[float],
    rates: Sequence[float] = RATES,
    population: float | None = None,
) -> tuple[list[SafeRelease], list[Event]]:
    """The pairs, and the events of choosing among them: within (epsilon, delta), together.

    ``selections`` are the epsilons of the choices that come before the release.

    ``population`` is the rate at which the table itself was sampled, if it was.
    """
    spent = math.fsum(selections)
    if spent >= epsilon:
        raise IncrowdError(
            f"The search would spend epsilon = {spent:g} of {epsilon:g}, which leaves nothing for "
            "the release. Use a smaller 'search_epsilon'."
        )
    target = delta
    for _ in range(_TRIES):
        pairs = [_smallest(rate, epsilon, target, selections, population) for rate in rates]
        events = _events(pairs, selections, population)
        found = Accountant(events).delta(epsilon=epsilon)
        if found <= delta:
            return pairs, events
        target *= 0.98 * delta / found
    raise UnsolvableError(f"No pairs of k and beta fit epsilon = {epsilon:g}, delta = {delta:g}.")


def _events(
    pairs: list[SafeRelease], selections: Sequence[float], population: float | None
) -> list[Event]:
    events: list[Event] = [*(Selection(epsilon) for epsilon in selections), OneOf(pairs)]
    return events if population is None else [Sampled(Composition(events), population)]


def _smallest(
    rate: float,
    epsilon: float,
    delta: float,
    selections: Sequence[float],
    population: float | None,
) -> SafeRelease:
    """The smallest k at a rate, by bisection; delta falls as k grows."""
    beta = realised(rate)
    signs = _signs(selections, population)
    low, high = 0, 1
    while _delta(high, beta, epsilon, signs, population) > delta:
        low, high = high, 2 * high
        if high > LARGEST_K:
            raise UnsolvableError(
                f"No k reaches delta = {delta:.3g} at epsilon = {epsilon:g} and beta = {rate:g}."
            )
    while high - low > 1:
        middle = (low + high) // 2
        fits = _delta(middle, beta, epsilon, signs, population) <= delta
        low, high = (low, middle) if fits else (middle, high)
    return SafeRelease(high, beta)


def _signs(selections: Sequence[float], population: float | None) -> tuple[Floats, Floats]:
    """The sums of signed epsilons, and how likely each is."""
    sums, shares = np.zeros(1), np.ones(1)
    for epsilon in selections:
        # As if each were sampled by itself, which is a little too cheap; the accountant corrects.
        one = epsilon if population is None else math.log1p(population * math.expm1(epsilon))
        plus = 1 / (1 + math.exp(-one))
        sums = np.concatenate([sums + one, sums - one])
        shares = np.concatenate([shares * plus, shares * (1 - plus)])
    return sums, shares


def _delta(
    k: int, beta: float, epsilon: float, signs: tuple[Floats, Floats], population: float | None
) -> float:
    profile = of_safe_release(k, beta)
    if population is not None:
        profile = sampled(profile, population)
    sums, shares = signs
    ways = (profile.present(epsilon - sums), profile.absent(epsilon - sums))
    return max(float((shares * way).sum()) for way in ways)
