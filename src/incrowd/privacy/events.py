"""What was done to a table, as frozen records. What it costs is the accountant's business.

Every event of a composition works on the whole table with randomness of its own: each safe
release draws a fresh sample. (Two releases from one sample do not compose; the first
version of the paper claimed it, the second took it back.) An event may depend on the
results of earlier ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from incrowd.errors import (
    ParameterError,
    check_at_least_zero,
    check_fraction,
    check_whole,
    single,
)

LARGEST_K = 10_000_000


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
class Selection:
    """A choice that satisfies pure ``epsilon``-differential privacy."""

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "epsilon", single("epsilon", check_at_least_zero("epsilon", self.epsilon))
        )


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


Event: TypeAlias = SafeRelease | Selection | Mechanism | Sampled | OneOf | Composition


def _check_event(name: str, event: object) -> None:
    if not isinstance(event, SafeRelease | Selection | Mechanism | Sampled | OneOf | Composition):
        raise ParameterError(name, "hold events such as SafeRelease(k=20, beta=0.1)", event)


def words(event: Event) -> str:
    """An event on one line, for people; what happened several times is said once.

    >>> words(Composition([Selection(0.05), *[SafeRelease(k=20, beta=0.1)] * 3]))
    'choice of epsilon 0.05, 3 x (release of k 20, beta 0.1)'
    """
    match event:
        case SafeRelease(k, beta):
            return f"release of k {k}, beta {beta:g}"
        case Selection(epsilon):
            return f"choice of epsilon {epsilon:g}"
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
        case Selection(epsilon):
            return {"kind": "selection", "epsilon": epsilon}
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
        case {"kind": "selection", "epsilon": epsilon, **rest}:
            made = Selection(epsilon)
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
