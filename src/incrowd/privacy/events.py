"""What was done to a table, as frozen records. What it costs is the accountant's business.

Every event of a composition works on the whole table with randomness of its own: each safe
release draws a fresh sample. (Two releases from one sample do not compose; the first
version of the paper claimed it, the second took it back.) What an event asks of the table may
depend on the results of earlier ones; the event itself, its parameters, may not, except as
:mod:`incrowd.privacy.filter` allows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from incrowd.errors import (
    ParameterError,
    check_at_least_zero,
    check_fraction,
    check_whole,
    single,
)
from incrowd.privacy.rounded import as_written

LARGEST_K = 10_000_000
LARGEST_R = 1_000_000
_MILLION = 1_000_000
_BILLION = 1_000_000_000


@dataclass(frozen=True)
class SafeRelease:
    """A sample with rate ``beta``, generalised, without the tuples seen fewer than ``k`` times."""

    k: int
    beta: float

    def __post_init__(self) -> None:
        k = int(single("k", check_whole("k", self.k)))
        if k > LARGEST_K:
            raise ParameterError("k", f"be at most {LARGEST_K:,}", k)
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "beta", single("beta", check_fraction("beta", self.beta)))


@dataclass(frozen=True)
class GeometricCounts:
    """The count of every cell with two-sided geometric noise of at most ``r``.

    P[X = x] is proportional to e^(-epsilon |x|). Cells are shown from a noisy count of r + 1 on, or
    of more; see :mod:`incrowd.privacy.counts`. What is drawn, and what is charged, is the law of
    the decimal that epsilon is written as.
    """

    r: int
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", _reach(self.r))
        epsilon = single("epsilon", check_at_least_zero("epsilon", self.epsilon))
        if not epsilon > 0 or as_written(epsilon).denominator > _MILLION:
            raise ParameterError("epsilon", "be above 0 and have at most six decimals", epsilon)
        object.__setattr__(self, "epsilon", epsilon)


@dataclass(frozen=True)
class GaussianCounts:
    """The count of every cell with Gaussian noise of at most ``r``.

    P[X = x] is proportional to e^(-x^2 / (2 variance)). Otherwise as :class:`GeometricCounts`.
    A bound beyond forty standard deviations would bound nothing.
    """

    r: int
    variance: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", _reach(self.r))
        variance = single("variance", check_at_least_zero("variance", self.variance))
        if not 0 < variance <= _MILLION or as_written(variance).denominator > 1000:
            raise ParameterError(
                "variance",
                "be above 0, at most a million, and have at most three decimals",
                variance,
            )
        object.__setattr__(self, "variance", variance)
        if self.r > 40 * math.sqrt(variance) + 40:
            raise ParameterError("r", "be at most forty standard deviations", self.r)


@dataclass(frozen=True)
class Coin:
    """``first`` with the probability ``chance``, else ``second``; the coin sees no data.

    Which one it was may be told, so it costs the average of both, at every epsilon by itself.
    """

    first: Event
    second: Event
    chance: float

    def __post_init__(self) -> None:
        _check_event("first", self.first)
        _check_event("second", self.second)
        object.__setattr__(self, "chance", single("chance", check_fraction("chance", self.chance)))


def _reach(r: int) -> int:
    found = int(single("r", check_whole("r", r)))
    if found > LARGEST_R:
        raise ParameterError("r", f"be at most {LARGEST_R:,}", found)
    return found


@dataclass(frozen=True)
class Selection:
    """A choice that satisfies pure ``epsilon``-differential privacy, epsilon as it is written."""

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "epsilon", single("epsilon", check_at_least_zero("epsilon", self.epsilon))
        )


@dataclass(frozen=True)
class BoundedChoice:
    """A choice whose privacy losses span at most ``epsilon``, wherever they lie.

    The exponential mechanism with scores that a row raises by 0 or 1 is one; see
    :func:`incrowd.privacy.selection.choose`. It is epsilon-differentially private, and costs
    less than a :class:`Selection` in a composition.
    """

    epsilon: float

    def __post_init__(self) -> None:
        epsilon = single("epsilon", check_at_least_zero("epsilon", self.epsilon))
        if not epsilon > 0 or _BILLION % Fraction(repr(epsilon)).denominator:
            raise ParameterError("epsilon", "be above 0 and have at most nine decimals", epsilon)
        object.__setattr__(self, "epsilon", epsilon)


@dataclass(frozen=True)
class GaussianMeasurements:
    """Tables measured with Gaussian noise, of ``information`` in all.

    A measurement costs the squared distance that a row moves it, over the variance of its noise.
    What is measured next, and how precisely, may depend on earlier results; the sum of the costs
    never exceeds ``information``. See :mod:`incrowd.privacy.gaussian`.
    """

    information: float

    def __post_init__(self) -> None:
        information = single("information", check_at_least_zero("information", self.information))
        if not 1e-12 <= information <= 1e6:
            requirement = "be at least 1e-12 and at most a million"
            raise ParameterError("information", requirement, information)
        object.__setattr__(self, "information", information)


@dataclass(frozen=True)
class Mechanism:
    """Any mechanism of which only (``epsilon``, ``delta``)-differential privacy is known."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "epsilon", single("epsilon", check_at_least_zero("epsilon", self.epsilon))
        )
        if self.delta != 0:
            object.__setattr__(self, "delta", single("delta", check_fraction("delta", self.delta)))


@dataclass(frozen=True)
class Sampled:
    """``event`` on a table that is itself a random sample of a population.

    Everybody of the population is in the table with probability ``rate``, independently.
    Premise: each person's own membership of the table is unknown to the attacker, who may
    know everybody else's. What is protected is that a person is in the population at all. A
    composition inside sees one and the same sample; a composition of sampled events means a
    fresh sample for each.
    """

    event: Event
    rate: float

    def __post_init__(self) -> None:
        _check_event("event", self.event)
        object.__setattr__(self, "rate", single("rate", check_fraction("rate", self.rate)))


@dataclass(frozen=True)
class OneOf:
    """One of ``events``: which one may depend on the results of earlier events.

    It costs what the worst of them costs, at every epsilon by itself.
    """

    events: tuple[Event, ...]

    def __init__(self, events: Iterable[Event]) -> None:
        object.__setattr__(self, "events", tuple(events))
        if not self.events:
            raise ParameterError("events", "hold at least one event", ())
        for event in self.events:
            _check_event("events", event)


@dataclass(frozen=True)
class Composition:
    """All of ``events``, on the same table."""

    events: tuple[Event, ...]

    def __init__(self, events: Iterable[Event]) -> None:
        object.__setattr__(self, "events", tuple(events))
        for event in self.events:
            _check_event("events", event)


Event: TypeAlias = (
    SafeRelease | GeometricCounts | GaussianCounts | Selection | BoundedChoice
    | GaussianMeasurements | Mechanism | Sampled | OneOf | Coin | Composition
)  # fmt: skip


def _check_event(name: str, event: object) -> None:
    if not isinstance(event, Event):
        raise ParameterError(name, "hold events such as SafeRelease(k=20, beta=0.1)", event)


def words(event: Event) -> str:
    """An event on one line, for people; what happened several times is said once.

    >>> words(Composition([Selection(0.05), *[SafeRelease(k=20, beta=0.1)] * 3]))
    'choice of epsilon 0.05, 3 x (release of k 20, beta 0.1)'
    """
    match event:
        case SafeRelease(k, beta):
            return f"release of k {k}, beta {beta:g}"
        case GeometricCounts(r, epsilon):
            return f"counts with geometric noise of epsilon {epsilon:g}, at most {r}"
        case GaussianCounts(r, variance):
            return f"counts with Gaussian noise of variance {variance:g}, at most {r}"
        case Coin(first, second, chance):
            return f"{words(first)} ({chance:.4g} of the time), else {words(second)}"
        case Selection(epsilon):
            return f"choice of epsilon {epsilon:g}"
        case BoundedChoice(epsilon):
            return f"choice of range {epsilon:g}"
        case GaussianMeasurements(information):
            return f"measurements with Gaussian noise of information {information:g}"
        case Mechanism(epsilon, delta):
            return f"mechanism of epsilon {epsilon:g}, delta {delta:g}"
        case Sampled(part, rate):
            return f"on a sample of rate {rate:g}: {words(part)}"
        case OneOf(events):
            listed = " or ".join(words(part).removeprefix("release of ") for part in events)
            return f"release of {listed}"
        case Composition(events):
            times = Counter(words(part) for part in events)
            return ", ".join(one if n == 1 else f"{n} x ({one})" for one, n in times.items())


def as_dict(event: Event) -> dict[str, Any]:
    """An event as plain values, for certificates and ledgers."""
    match event:
        case SafeRelease(k, beta):
            return {"kind": "safe release", "k": k, "beta": beta}
        case GeometricCounts(r, epsilon):
            return {"kind": "geometric counts", "r": r, "epsilon": epsilon}
        case GaussianCounts(r, variance):
            return {"kind": "gaussian counts", "r": r, "variance": variance}
        case Coin(first, second, chance):
            both = {"first": as_dict(first), "second": as_dict(second)}
            return {"kind": "coin", "chance": chance, **both}
        case Selection(epsilon):
            return {"kind": "selection", "epsilon": epsilon}
        case BoundedChoice(epsilon):
            return {"kind": "bounded choice", "epsilon": epsilon}
        case GaussianMeasurements(information):
            return {"kind": "gaussian measurements", "information": information}
        case Mechanism(epsilon, delta):
            return {"kind": "mechanism", "epsilon": epsilon, "delta": delta}
        case Sampled(part, rate):
            return {"kind": "sampled", "rate": rate, "event": as_dict(part)}
        case OneOf(events):
            return {"kind": "one of", "events": [as_dict(part) for part in events]}
        case Composition(events):
            return {"kind": "composition", "events": [as_dict(part) for part in events]}


def from_dict(value: object) -> Event:
    """The event of :func:`as_dict`; raises :class:`ParameterError` for anything else."""
    made: Event
    match value:
        case {"kind": "safe release", "k": k, "beta": beta, **rest}:
            made = SafeRelease(k, beta)
        case {"kind": "geometric counts", "r": r, "epsilon": epsilon, **rest}:
            made = GeometricCounts(r, epsilon)
        case {"kind": "gaussian counts", "r": r, "variance": variance, **rest}:
            made = GaussianCounts(r, variance)
        case {"kind": "coin", "chance": chance, "first": first, "second": second, **rest}:
            made = Coin(from_dict(first), from_dict(second), chance)
        case {"kind": "selection", "epsilon": epsilon, **rest}:
            made = Selection(epsilon)
        case {"kind": "bounded choice", "epsilon": epsilon, **rest}:
            made = BoundedChoice(epsilon)
        case {"kind": "gaussian measurements", "information": information, **rest}:
            made = GaussianMeasurements(information)
        case {"kind": "mechanism", "epsilon": epsilon, "delta": delta, **rest}:
            made = Mechanism(epsilon, delta)
        case {"kind": "sampled", "rate": rate, "event": event, **rest}:
            made = Sampled(from_dict(event), rate)
        case {"kind": "one of", "events": list(events), **rest}:
            made = OneOf(from_dict(part) for part in events)
        case {"kind": "composition", "events": list(events), **rest}:
            made = Composition(from_dict(part) for part in events)
        case _:
            raise ParameterError("event", "be a known event", value)
    if rest:
        raise ParameterError("event", "hold nothing else", rest)
    return made
