"""Pairs of k and beta that, with a private search before them, cost the same budget.

A search that satisfies epsilon_1 comes first, a safe release after it. Against the worst
search, randomised response, the two together have

    delta(epsilon) = p h(epsilon - epsilon_1) + (1 - p) h(epsilon + epsilon_1),

h the profile of the release and p = e^epsilon_1 / (1 + e^epsilon_1). For each rate the smallest k
that fits is found by this; since the search chooses among the pairs, h is the largest of all
pairs' profiles at each epsilon, and the accountant has the last word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from incrowd.errors import IncrowdError, UnsolvableError
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
from incrowd.privacy.profile import Profile, of_safe_release, sampled
from incrowd.privacy.randomness import realised

RATES = (0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9)
_TRIES = 12


def paired(
    *,
    epsilon: float,
    delta: float,
    search_epsilon: float,
    rates: Sequence[float] = RATES,
    population: float | None = None,
) -> tuple[list[SafeRelease], list[Event]]:
    """The pairs, and the events of a search among them: within (epsilon, delta), together.

    ``population`` is the rate at which the table itself was sampled, if it was.
    """
    if search_epsilon >= epsilon:
        raise IncrowdError(
            f"The search would spend epsilon = {search_epsilon:g} of {epsilon:g}, which leaves "
            "nothing for the release. Use a smaller 'search_epsilon'."
        )
    target = delta
    for _ in range(_TRIES):
        pairs = [_smallest(rate, epsilon, target, search_epsilon, population) for rate in rates]
        events = _events(pairs, search_epsilon, population)
        found = Accountant(events).delta(epsilon=epsilon)
        if found <= delta:
            return pairs, events
        target *= 0.98 * delta / found
    raise UnsolvableError(f"No pairs of k and beta fit epsilon = {epsilon:g}, delta = {delta:g}.")


def _events(pairs: list[SafeRelease], search: float, population: float | None) -> list[Event]:
    events: list[Event] = [Selection(search), OneOf(pairs)]
    return events if population is None else [Sampled(Composition(events), population)]


def _smallest(
    rate: float, epsilon: float, delta: float, search: float, population: float | None
) -> SafeRelease:
    """The smallest k at a rate, by bisection; delta falls as k grows."""
    beta = realised(rate)
    low, high = 0, 1
    while _delta(high, beta, epsilon, search, population) > delta:
        low, high = high, 2 * high
        if high > LARGEST_K:
            raise UnsolvableError(
                f"No k reaches delta = {delta:.3g} at epsilon = {epsilon:g} and beta = {rate:g}."
            )
    while high - low > 1:
        middle = (low + high) // 2
        fits = _delta(middle, beta, epsilon, search, population) <= delta
        low, high = (low, middle) if fits else (middle, high)
    return SafeRelease(high, beta)


def _delta(k: int, beta: float, epsilon: float, search: float, population: float | None) -> float:
    profile = of_safe_release(k, beta)
    if population is not None:  # the whole is sampled; its parts cost no more than each sampled
        profile = sampled(profile, population)
        search = math.log1p(population * math.expm1(search))
    return max(_mixed(profile, epsilon, search), _mixed(profile.reversed(), epsilon, search))


def _mixed(profile: Profile, epsilon: float, search: float) -> float:
    share = float(1 / (1 + np.exp(-search)))
    near, far = profile.present(np.array([epsilon - search, epsilon + search]))
    return share * float(near) + (1 - share) * float(far)
