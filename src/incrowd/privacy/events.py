"""What was done to a table, as frozen records. What it costs is the accountant's business.

Every event of a composition works on the whole table with randomness of its own: each safe
release draws a fresh sample. (Two releases from one sample do not compose; the first
version of the paper claimed it, the second took it back.) An event may depend on the
results of earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from incrowd.errors import (
    ParameterError,
    check_at_least_zero,
    check_fraction,
    check_whole,
)


@dataclass(frozen=True)
class SafeRelease:
    """A sample with rate ``beta``, generalised, without the tuples seen fewer than ``k`` times."""

    k: int
    beta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", int(check_whole("k", self.k)))
        object.__setattr__(self, "beta", float(check_fraction("beta", self.beta)))


@dataclass(frozen=True)
class Selection:
    """A choice that satisfies pure ``epsilon``-differential privacy."""

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", float(check_at_least_zero("epsilon", self.epsilon)))


@dataclass(frozen=True)
class Mechanism:
    """Any mechanism of which only (``epsilon``, ``delta``)-differential privacy is known."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", float(check_at_least_zero("epsilon", self.epsilon)))
        if self.delta != 0:
            object.__setattr__(self, "delta", float(check_fraction("delta", self.delta)))


@dataclass(frozen=True)
class Sampled:
    """``event`` on a table that is itself a random sample of a population.

    Everybody of the population is in the table with probability ``rate``, independently,
    and nobody knows who is. A composition inside sees one and the same sample; a
    composition of sampled events means a fresh sample for each.
    """

    event: Event
    rate: float

    def __post_init__(self) -> None:
        _check_event("event", self.event)
        object.__setattr__(self, "rate", float(check_fraction("rate", self.rate)))


@dataclass(frozen=True)
class Composition:
    """All of ``events``, on the same table."""

    events: tuple[Event, ...]

    def __init__(self, events: Iterable[Event]) -> None:
        object.__setattr__(self, "events", tuple(events))
        for event in self.events:
            _check_event("events", event)


Event: TypeAlias = SafeRelease | Selection | Mechanism | Sampled | Composition


def _check_event(name: str, event: object) -> None:
    if not isinstance(event, SafeRelease | Selection | Mechanism | Sampled | Composition):
        raise ParameterError(name, "hold events such as SafeRelease(k=20, beta=0.1)", event)
