"""A budget split between private choices and releases; pairs of k and beta that cost the same.

A budget is spent on choices that satisfy epsilon_1, epsilon_2, ..., and on one safe release or
several. Against the worst choices, randomised response, all together have

    delta(epsilon) = sum over signs of p(signs) h(epsilon - sum of signed epsilon_i),

h the profile of the releases, where a plus has probability e^epsilon_i / (1 + e^epsilon_i). For
each rate the smallest k that fits is found by this; since the choices decide among the pairs, h is
the largest of all pairs' profiles at each epsilon, and the accountant has the last word. Where the
table is itself a sample, choices and releases see the same sample, and are amplified together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from incrowd.arrays import Floats
from incrowd.errors import IncrowdError, UnsolvableError
from incrowd.privacy.accountant import Accountant, profile_of
from incrowd.privacy.events import (
    LARGEST_K,
    Coin,
    Composition,
    Event,
    GaussianCounts,
    GeometricCounts,
    OneOf,
    SafeRelease,
    Sampled,
    Selection,
)
from incrowd.privacy.profile import Profile, sampled
from incrowd.privacy.randomness import realised

RATES = (0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9)
LAST_DIGITS = 1e-9  # what sums of floats may differ by on another machine, and far more
_TRIES = 12
Side: TypeAlias = Callable[[Floats], Floats]
CountsEvent: TypeAlias = GeometricCounts | GaussianCounts
Draw: TypeAlias = SafeRelease | CountsEvent


@dataclass(frozen=True)
class Split:
    """What is spent, settled before the table is seen; ``epsilon`` and ``delta`` hold for all.

    First come ``choices``, of what goes into which table. Then, for each of ``tables``, come
    ``selections``, and what is drawn: ``event``, a sample (one of several, where selections choose
    among them) or counts. ``population`` is the rate at which the table itself was sampled, if it
    was.
    """

    epsilon: float
    delta: float
    event: Event
    selections: tuple[float, ...] = ()
    choices: tuple[float, ...] = ()
    tables: int = 1
    population: float | None = None

    @property
    def shared(self) -> dict[str, float | str]:
        """What certificates say of several tables together."""
        known: dict[str, float | str] = {}
        if self.tables > 1 and self.choices:
            known["slices_epsilon"] = _in_millionths(self.choices)
        if self.tables > 1 and self.population is not None:
            known["already_sampled"] = self.population
        return known

    @property
    def draws(self) -> tuple[Draw, ...]:
        """What a table may be drawn with: of a coin, first the side that it names first."""
        match self.event:
            case OneOf(events):
                return tuple(part for part in events if isinstance(part, Draw))
            case Coin(first, second, _):
                return tuple(part for part in (first, second) if isinstance(part, Draw))
            case SafeRelease() | GeometricCounts() | GaussianCounts():
                return (self.event,)
        raise AssertionError(self.event)

    def parameters(self, draw: Draw) -> dict[str, float | str]:
        """What certificates say of a table that was drawn with one of the draws.

        Counts have a k besides, which no event knows: whatever it is, they cost the same.
        """
        known = {**parameters_of(draw), **coin_of(self.event)}
        if self.selections:
            known["search_epsilon"] = _in_millionths(self.selections)
        if self.tables == 1 and self.population is not None:
            known["already_sampled"] = self.population
        return known

    @property
    def events(self) -> list[Event]:
        """All of it as events: one for each slice, where there are several tables."""
        each: list[Event] = [*(Selection(epsilon) for epsilon in self.selections), self.event]
        if self.selections and self.tables > 1:
            each = [Composition(each)]
        events = [*(Selection(epsilon) for epsilon in self.choices), *each * self.tables]
        if self.population is None:
            return events
        inside = events[0] if len(events) == 1 else Composition(events)
        return [Sampled(inside, self.population)]


def parameters_of(draw: Draw) -> dict[str, float | str]:
    """What certificates say of how a table was drawn."""
    match draw:
        case SafeRelease(k, beta):
            return {"k": float(k), "beta": beta}
        case GeometricCounts(r, epsilon):
            return {"noise": "geometric", "r": float(r), "noise_epsilon": epsilon}
        case GaussianCounts(r, variance):
            return {"noise": "gaussian", "r": float(r), "noise_variance": variance}


def coin_of(event: Event) -> dict[str, float | str]:
    """What certificates say of the coin between two bounds; nothing where there is none."""
    match event:
        case Coin(_, GeometricCounts(r, _), chance):
            return {"coin": chance, "coin_r": float(r)}
    return {}


def _in_millionths(epsilons: Sequence[float]) -> float:
    """A sum of epsilons that are payable, and so multiples of a millionth."""
    return round(math.fsum(epsilons), 6)


def paired(
    *,
    epsilon: float,
    delta: float,
    selections: Sequence[float] = (),
    rates: Sequence[float] = RATES,
    choices: Sequence[float] = (),
    tables: int = 1,
    population: float | None = None,
) -> Split:
    """A budget with the smallest k for each rate: within (epsilon, delta), all together."""
    chosen = (*choices, *tuple(selections) * tables)
    refuse_if_spent(chosen, epsilon=epsilon, delta=delta, population=population)
    empty = Split(
        epsilon, delta, Composition(()), tuple(selections), tuple(choices), tables, population
    )  # fmt: skip
    target, sums = delta, signs(chosen)
    for _ in range(_TRIES):
        pairs = tuple(_smallest(rate, empty, target, sums) for rate in rates)
        split = replace(empty, event=OneOf(pairs) if selections else pairs[0])
        found = Accountant(split.events).delta(epsilon=epsilon)
        if found * (1 + LAST_DIGITS) <= delta:
            return split
        target *= 0.98 * delta / found
    raise UnsolvableError(f"No k and β fit ε = {epsilon:g}, δ = {delta:g}. Use a larger ε or δ.")


def refuse_if_spent(
    chosen: Sequence[float], *, epsilon: float, delta: float, population: float | None
) -> None:
    """Refuse choices that leave nothing for a release."""
    spent = math.fsum(chosen)
    if spent >= epsilon and _alone(chosen, delta, population) > 0.999 * epsilon:
        raise IncrowdError(
            f"The search would use ε = {spent:g} of {epsilon:g}, and leave none for the release. "
            "Use a smaller `search_epsilon`."
        )


def _alone(epsilons: Sequence[float], delta: float, population: float | None) -> float:
    """What choices cost by themselves: of many, or on a sample, less than their sum."""
    event: Event = Composition(Selection(epsilon) for epsilon in epsilons)
    if population is not None:
        event = Sampled(event, population)
    return Accountant(event).epsilon(delta=delta)


def _smallest(rate: float, split: Split, delta: float, sums: tuple[Floats, Floats]) -> SafeRelease:
    """The smallest k at a rate, by bisection; delta falls as k grows."""
    beta = realised(rate)
    low, high = 0, 1
    while _delta(SafeRelease(high, beta), split, delta, sums) > delta:
        low, high = high, 2 * high
        if high > LARGEST_K:
            raise UnsolvableError(
                f"No k reaches δ = {delta:.3g} at ε = {split.epsilon:g} and β = {rate:g}. Use a "
                "larger ε or δ, or a smaller β."
            )
    while high - low > 1:
        middle = (low + high) // 2
        fits = _delta(SafeRelease(middle, beta), split, delta, sums) <= delta
        low, high = (low, middle) if fits else (middle, high)
    return SafeRelease(high, beta)


def signs(epsilons: Sequence[float]) -> tuple[Floats, Floats]:
    """The sums of signed epsilons, equal ones together, and how likely each is."""
    sums, shares = np.zeros(1), np.ones(1)
    for epsilon in epsilons:
        plus = 1 / (1 + math.exp(-epsilon))
        both = np.concatenate([sums + epsilon, sums - epsilon])
        weights = np.concatenate([shares * plus, shares * (1 - plus)])
        sums, place = np.unique(np.round(both, 9), return_inverse=True)
        shares = np.bincount(place, weights=weights).astype(np.float64)
    return sums, shares


def _delta(pair: SafeRelease, split: Split, target: float, sums: tuple[Floats, Floats]) -> float:
    """Delta if each release had this pair, near the target or above it."""
    event = pair if split.tables == 1 else Composition([pair] * split.tables)
    profile = _after(sums, profile_of(event, tail=target * 1e-5 / split.tables))
    if split.population is not None:
        profile = sampled(profile, split.population)
    return float(profile.delta(np.array([split.epsilon]))[0])


def _after(chosen: tuple[Floats, Floats], profile: Profile) -> Profile:
    """A profile after randomised responses; each side below zero follows from the other."""
    sums, shares = chosen

    def side(one: Side, other: Side) -> Side:
        def mixed(epsilon: Floats) -> Floats:
            at = epsilon[:, None] - sums
            above = one(np.maximum(at, 0.0).ravel()).reshape(at.shape)
            below = np.minimum(at, 0.0)
            turned = -np.expm1(below) + np.exp(below) * other(-below.ravel()).reshape(at.shape)
            return np.asarray(np.where(at < 0, turned, above) @ shares)

        return mixed

    present = side(profile.present, profile.absent)
    absent = side(profile.absent, profile.present)
    return Profile(present, absent, profile.reach + float(sums.max()))
