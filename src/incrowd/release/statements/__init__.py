"""What the guarantees of certificates rest on, and the words of each format of certificate.

Every statement follows from facts in the certificate alone, so that whoever verifies it can write
it again and compare. The words of a format never change: a release is read for longer than the
version that made it is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile

from incrowd.errors import check_whole
from incrowd.privacy.counts import is_even
from incrowd.privacy.events import (
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
from incrowd.privacy.split import Draw, coin_of, parameters_of

Parameters = dict[str, float | str]


@dataclass(frozen=True)
class Told:
    """What the events of a safe release tell of its tables.

    ``shared`` holds for all of them; ``tables`` lists, for each, what its own k, beta and so on
    may be: a selection, or a coin, has told which of them it is. Of counts no event tells k.
    """

    shared: Parameters
    tables: list[list[Parameters]]


def told(events: list[Event]) -> Told | None:
    """What the events tell; None if they are not those of a safe release.

    One table has a safe release or counts; where its scheme was searched for, selections and then
    one of several releases, or counts. Slices have one such event each, after the selections that
    put them together. No table is drawn in another way than its neighbours.
    """
    match events:
        case [Sampled(event, rate)]:
            inner: list[Event] = [event]
            if isinstance(event, Composition):
                inner = list(event.events)
            if any(isinstance(part, Sampled) for part in inner) or (found := told(inner)) is None:
                return None
            sampled: Parameters = {"already_sampled": rate}
            if len(found.tables) > 1:
                return Told({**found.shared, **sampled}, found.tables)
            return Told({}, [[{**known, **sampled} for known in found.tables[0]]])
        case _:
            one = _of_one_table(events)
            return Told({}, [one]) if one else _of_slices(events)


def _of_one_table(events: list[Event]) -> list[Parameters]:
    match events:
        case [SafeRelease() as only]:
            return [parameters_of(only)]
        case [*choices, last]:
            possible = _drawn(last, chosen=bool(choices))
            if not choices:
                return possible
            spent = _spent(choices)
            if spent:
                return [{**known, "search_epsilon": spent} for known in possible]
    return []


def _drawn(event: Event, *, chosen: bool) -> list[Parameters]:
    """What may have been drawn: counts or, where selections chose it, one of several releases."""
    parts: tuple[Event, ...] = ()
    match event:
        case OneOf(events) if chosen and all(isinstance(part, SafeRelease) for part in events):
            parts = events
        case GeometricCounts() | GaussianCounts():
            parts = (event,)
        case Coin(first, second, _) if is_even(event):
            parts = (first, second)
    known = coin_of(event)
    return [{**parameters_of(part), **known} for part in parts if isinstance(part, Draw)]


def _of_slices(events: list[Event]) -> Told | None:
    choices = list(takewhile(lambda event: isinstance(event, Selection), events))
    slices = [
        _of_one_table(list(event.events) if isinstance(event, Composition) else [event])
        for event in events[len(choices) :]
    ]
    if len(slices) < 2 or not all(slices):
        return None
    if any("r" in one[0] for one in slices) and not _is_one_law(slices):
        return None
    if not choices:
        return Told({}, slices)
    spent = _spent(choices)
    return Told({"slices_epsilon": spent}, slices) if spent else None


def _is_one_law(slices: list[list[Parameters]]) -> bool:
    """Whether all slices have the same noise, whose bound no coin has settled."""
    first = {name: value for name, value in slices[0][0].items() if name != "search_epsilon"}
    each = [{name: x for name, x in part[0].items() if name != "search_epsilon"} for part in slices]
    return "coin" not in first and all(part == first for part in each)


def _spent(events: list[Event]) -> float:
    """The sum of selections; 0 if anything else is among them, or one that spends nothing."""
    epsilons = [event.epsilon for event in events if isinstance(event, Selection)]
    # Each is a multiple of a millionth (see payable), so their sum is one too.
    if len(epsilons) < len(events) or not all(x > 0 and round(x, 6) == x for x in epsilons):
        return 0.0
    return round(math.fsum(epsilons), 6)


@dataclass(frozen=True)
class Facts:
    """What the words of a certificate follow from.

    ``tables`` holds the parameters of each table, ``shared`` those of all. ``local`` names the
    columns that may show fine and coarse labels side by side, ``noisy`` those with noise,
    ``kept`` those that are shown as they are.
    """

    tables: list[Parameters]
    unit: str
    shared: Parameters = field(default_factory=dict)
    epsilon: float | None = None
    delta: float | None = None
    without_id: str | None = None
    local: tuple[str, ...] = ()
    noisy: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    seeded: bool = False
    rehearsal: bool = False


@dataclass(frozen=True)
class Wording:
    """What a format of certificates says of one method: the kind of promise, and its words.

    What is ``accounted`` for is differentially private and has events; counts have a wording of
    their own, where the format knows them. Of the rest the format names the ``parameters`` that a
    release must have, those that it may, and whether columns have noise.
    """

    kind: str
    words: Callable[[Facts], str]
    accounted: bool = False
    parameters: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    noisy: bool = False
    by_counts: Wording | None = None

    def of(self, tables: list[Parameters]) -> Wording:
        """The wording for tables with such parameters."""
        counts = bool(tables) and all("r" in known for known in tables)
        return self.by_counts if counts and self.by_counts is not None else self


CLASSES = frozenset({"k", "algorithm", "suppressed"})  # what every release by classes says
NOISE = CLASSES | {"epsilon", "noise", "bounds"}
ALGORITHMS = ("ola", "mondrian", "cluster", "duplicate")
RULES = (
    "distinct values, at least",
    "entropy of so many equally frequent values, at least",
    "distance to the table (equal), at most",
    "distance to the table (ordered), at most",
)
_CHOICES = {
    "algorithm": ALGORITHMS,
    "suppressed": ("dropped", "starred"),
    "noise": ("laplace", "gaussian"),
    "bounds": ("class", "declared"),
}


def rules_of(parameters: Parameters) -> list[tuple[str, str, float]]:
    """The rules on sensitive columns among the parameters: column, kind, value."""
    found = []
    for name, value in sorted(parameters.items()):
        if name.startswith("rule "):
            column, _, kind = name.removeprefix("rule ").partition(": ")
            for known in RULES:
                if name.endswith(f": {known}"):
                    column, kind = name.removeprefix("rule ").removesuffix(f": {known}"), known
            if kind not in RULES or not isinstance(value, float) or not value >= 0:
                raise ValueError(f"'{name}' is no rule that is known")
            found.append((column, kind, value))
    return found


def check_parameters(parameters: Parameters, wording: Wording, kept: list[str]) -> None:
    """Refuse parameters that such a release does not have, or values that they cannot take."""
    rules = {f"rule {column}: {kind}" for column, kind, _ in rules_of(parameters)}
    names = wording.parameters | wording.optional
    strange = sorted(set(parameters) - names - rules)
    if strange:
        raise ValueError(f"such a release has no parameter '{strange[0]}'")
    missing = sorted(wording.parameters - set(parameters))
    if missing:
        raise ValueError(f"such a release has a parameter '{missing[0]}'")
    for name, choices in _CHOICES.items():
        if name in names and parameters.get(name) not in choices:
            raise ValueError(f"'{name}' is not one of {', '.join(choices)}")
    for column, _, _ in rules_of(parameters):
        if column not in kept:
            raise ValueError(f"a rule names '{column}', which is not kept")
    check_whole_k(parameters)


def check_whole_k(parameters: Parameters) -> None:
    """Refuse a k that is no whole number from 1."""
    k = parameters.get("k")
    if not isinstance(k, float) or k < 1 or k != int(k):
        raise ValueError("'k' is no whole number from 1")


def without_size(parameters: Parameters) -> Parameters:
    """Return parameters without the asserted size, which no event implies; refuse a bad one."""
    if "size" in parameters:
        check_whole("size", parameters["size"])
    return {name: value for name, value in parameters.items() if name != "size"}
