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
    require_single,
)
from incrowd.privacy.partition import count_partitions
from incrowd.privacy.presentation import read_as_decimal

LARGEST_K = 10_000_000
LARGEST_R = 1_000_000
LARGEST_ROWS = 1000  # of one person
MOST_PARTITIONS = 200  # of the rows of one person into groups, each of which is accounted
LONGEST_SERIES = 16
SERIES_GRID = 8  # steps of a series' noise to one person
_MILLION = 1_000_000
_BILLION = 1_000_000_000


@dataclass(frozen=True)
class SafeRelease:
    """A random sample of rows, without the groups that have fewer than k sampled rows.

    Attributes:
        k: Threshold on the number of sampled rows.
        beta: Sampling rate.

    Examples:
        >>> SafeRelease(k=20, beta=0.1)
        SafeRelease(k=20, beta=0.1)
    """

    k: int
    beta: float

    def __post_init__(self) -> None:
        k = int(require_single("k", check_whole("k", self.k)))
        if k > LARGEST_K:
            raise ParameterError("k", f"be at most {LARGEST_K:,}", k)
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "beta", require_single("beta", check_fraction("beta", self.beta)))


@dataclass(frozen=True)
class GeometricCounts:
    """The count of every cell with two-sided geometric noise, truncated at r.

    P[X = x] is proportional to e^(-epsilon |x|). Cells with a noisy count of r or less are
    suppressed. What is drawn, and what is charged, is the distribution for epsilon as the decimal
    that is written; see :mod:`incrowd.privacy.counts`.

    Attributes:
        r: Largest noise, either way.
        epsilon: Epsilon of the noise.

    Examples:
        >>> GeometricCounts(r=14, epsilon=1.0).r
        14
    """

    r: int
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", _check_reach(self.r))
        epsilon = require_single("epsilon", check_at_least_zero("epsilon", self.epsilon))
        if not epsilon > 0 or read_as_decimal(epsilon).denominator > _MILLION:
            raise ParameterError("epsilon", "be above 0 and have at most six decimals", epsilon)
        object.__setattr__(self, "epsilon", epsilon)


@dataclass(frozen=True)
class GaussianCounts:
    """The count of every cell with Gaussian noise on whole numbers, truncated at r.

    P[X = x] is proportional to e^(-x^2 / (2 variance)). Cells with a noisy count of r or less are
    suppressed. A bound beyond forty standard deviations is refused.

    Attributes:
        r: Largest noise, either way.
        variance: Variance before truncation.

    Examples:
        >>> GaussianCounts(r=40, variance=60.0).variance
        60.0
    """

    r: int
    variance: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", _check_reach(self.r))
        variance = require_single("variance", check_at_least_zero("variance", self.variance))
        if not 0 < variance <= _MILLION or read_as_decimal(variance).denominator > 1000:
            raise ParameterError(
                "variance",
                "be above 0, at most a million, and have at most three decimals",
                variance,
            )
        object.__setattr__(self, "variance", variance)
        if self.r > 40 * math.sqrt(variance) + 40:
            raise ParameterError("r", "be at most forty standard deviations", self.r)


@dataclass(frozen=True)
class PersonCounts:
    """Counts of people, each of whom may be in several cells, but in no cell twice.

    Whoever is added or removed moves at most ``rows`` cells, each by one, and all in one direction.
    It costs what as many independent draws of the noise cost; see
    :mod:`incrowd.anonymize.safe_counts`.

    Attributes:
        event: The noise of each cell.
        rows: The largest number of cells that one person may be in.

    Examples:
        >>> PersonCounts(GaussianCounts(r=45, variance=72.0), rows=4).rows
        4
    """

    event: GeometricCounts | GaussianCounts
    rows: int

    def __post_init__(self) -> None:
        if not isinstance(self.event, GeometricCounts | GaussianCounts):
            raise ParameterError("event", "be GeometricCounts or GaussianCounts", self.event)
        rows = int(require_single("rows", check_whole("rows", self.rows)))
        if not 2 <= rows <= LARGEST_ROWS:
            raise ParameterError("rows", f"be from 2 to {LARGEST_ROWS:,}", rows)
        object.__setattr__(self, "rows", rows)


@dataclass(frozen=True)
class ShiftedCounts:
    """A count that one person moves by up to ``distance``; see :mod:`incrowd.privacy.shifted`.

    Attributes:
        event: The noise of the count.
        distance: The largest change by one person.

    Examples:
        >>> ShiftedCounts(GeometricCounts(r=30, epsilon=0.5), distance=2).distance
        2
    """

    event: GeometricCounts | GaussianCounts
    distance: int

    def __post_init__(self) -> None:
        if not isinstance(self.event, GeometricCounts | GaussianCounts):
            raise ParameterError("event", "be GeometricCounts or GaussianCounts", self.event)
        distance = int(require_single("distance", check_whole("distance", self.distance)))
        if not 1 <= distance <= LARGEST_ROWS:
            raise ParameterError("distance", f"be from 1 to {LARGEST_ROWS:,}", distance)
        object.__setattr__(self, "distance", distance)


@dataclass(frozen=True)
class RowCounts:
    """Counts of rows, of which one person has a few: at most ``per_group`` in each cell.

    Whoever is added or removed moves cells by up to ``per_group`` each, by no more than ``rows``
    in all, and all in one direction. It costs what the worst way to spread the rows over cells
    costs; see :mod:`incrowd.privacy.shifted`.

    Attributes:
        event: The noise of each cell.
        rows: The largest number of rows of one person.
        per_group: The largest number of them that count in one cell.

    Examples:
        >>> RowCounts(GaussianCounts(r=90, variance=300.0), rows=4, per_group=2).per_group
        2
    """

    event: GeometricCounts | GaussianCounts
    rows: int
    per_group: int

    def __post_init__(self) -> None:
        if not isinstance(self.event, GeometricCounts | GaussianCounts):
            raise ParameterError("event", "be GeometricCounts or GaussianCounts", self.event)
        for name, most in (("rows", LARGEST_ROWS), ("per_group", self.rows)):
            number = int(require_single(name, check_whole(name, getattr(self, name))))
            if not 2 <= number <= most:
                raise ParameterError(name, f"be from 2 to {most:,}", number)
            object.__setattr__(self, name, number)
        refuse_many_partitions(self.rows, self.per_group)


@dataclass(frozen=True)
class SeriesCounts:
    """Counts of a growing table, published period by period, with noise that is planned for all.

    It is the whole series: what somebody who is in one period may lose by all its releases. See
    :mod:`incrowd.privacy.series`.

    Attributes:
        r: Largest basic noise, either way.
        variance: Variance of the basic noise before truncation.
        of: Number of releases.
        rows: The largest number of cells that one person may be in within one period.

    Examples:
        >>> SeriesCounts(r=60, variance=131.0, of=8, rows=4).of
        8
    """

    r: int
    variance: float
    of: int
    rows: int = 1

    def __post_init__(self) -> None:
        for name, least, most in (
            ("r", 1, LARGEST_R // SERIES_GRID), ("of", 2, LONGEST_SERIES), ("rows", 1, LARGEST_ROWS)
        ):  # fmt: skip
            number = int(require_single(name, check_whole(name, getattr(self, name))))
            if not least <= number <= most:
                raise ParameterError(name, f"be from {least} to {most:,}", number)
            object.__setattr__(self, name, number)
        basic = GaussianCounts(self.r, self.variance)
        object.__setattr__(self, "variance", basic.variance)
        if basic.variance > _MILLION / SERIES_GRID**2:
            raise ParameterError(
                "variance", f"be at most {_MILLION / SERIES_GRID**2:,g}", basic.variance
            )

    @property
    def grid_event(self) -> GaussianCounts:
        """The basic noise in steps of its grid, of which there are eight to one person."""
        variance = float(read_as_decimal(self.variance) * SERIES_GRID**2)
        return GaussianCounts(self.r * SERIES_GRID, variance)


@dataclass(frozen=True)
class Coin:
    """One of two events, chosen by a coin that sees no data.

    The outcome of the coin may be published, so the cost is the average of both at every epsilon.

    Attributes:
        first: The event with probability ``chance``.
        second: The other event.
        chance: Probability of the first.

    Examples:
        >>> Coin(GeometricCounts(13, 1.0), GeometricCounts(14, 1.0), chance=0.9).chance
        0.9
    """

    first: Event
    second: Event
    chance: float

    def __post_init__(self) -> None:
        _check_event("first", self.first)
        _check_event("second", self.second)
        object.__setattr__(
            self, "chance", require_single("chance", check_fraction("chance", self.chance))
        )


def refuse_many_partitions(rows: int, per_group: int) -> None:
    """Refuse rows of one person that can lie in cells in too many ways to account for each."""
    if per_group > (most := find_most_per_group(rows)):
        requirement = f"be at most {most} of {rows} rows; the ways to lie in groups are too many"
        raise ParameterError("per_group", requirement, per_group)


def find_most_per_group(rows: int) -> int:
    """Return how many of the rows of one person may count in one cell.

    >>> find_most_per_group(4), find_most_per_group(16), find_most_per_group(100)
    (4, 8, 2)
    """
    most = 1
    while most < rows and count_partitions(rows, most + 1) <= MOST_PARTITIONS:
        most += 1
    return most


def _check_reach(r: int) -> int:
    reach = int(require_single("r", check_whole("r", r)))
    if reach > LARGEST_R:
        raise ParameterError("r", f"be at most {LARGEST_R:,}", reach)
    return reach


@dataclass(frozen=True)
class Selection:
    """A choice with pure epsilon-differential privacy, such as that of a scheme.

    Attributes:
        epsilon: Epsilon of the choice, as the decimal that is written.

    Examples:
        >>> Selection(epsilon=0.05)
        Selection(epsilon=0.05)
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "epsilon", require_single("epsilon", check_at_least_zero("epsilon", self.epsilon))
        )


@dataclass(frozen=True)
class DeclaredCounts:
    """Counts of all declared values of a column, each with two-sided geometric noise of any size.

    It costs epsilon and no delta, over all values that one person may have. See
    :mod:`incrowd.anonymize.declared_counts`.

    Attributes:
        epsilon: Epsilon of all its counts together, as the decimal that is written.

    Examples:
        >>> DeclaredCounts(epsilon=0.05)
        DeclaredCounts(epsilon=0.05)
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "epsilon", require_single("epsilon", check_at_least_zero("epsilon", self.epsilon))
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
        epsilon = require_single("epsilon", check_at_least_zero("epsilon", self.epsilon))
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
        information = require_single(
            "information", check_at_least_zero("information", self.information)
        )
        if not 1e-12 <= information <= 1e6:
            requirement = "be at least 1e-12 and at most a million"
            raise ParameterError("information", requirement, information)
        object.__setattr__(self, "information", information)


@dataclass(frozen=True)
class Mechanism:
    """Any mechanism that is known to satisfy (epsilon, delta)-differential privacy.

    Attributes:
        epsilon: Its epsilon.
        delta: Its delta.

    Examples:
        >>> Mechanism(epsilon=0.5, delta=1e-7)
        Mechanism(epsilon=0.5, delta=1e-07)
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "epsilon", require_single("epsilon", check_at_least_zero("epsilon", self.epsilon))
        )
        if self.delta != 0:
            object.__setattr__(
                self, "delta", require_single("delta", check_fraction("delta", self.delta))
            )


@dataclass(frozen=True)
class SampledEvent:
    """An event on a table that is itself a random sample of a population.

    Each person of the population is in the table with probability ``rate``, independently. The
    premise is that a person's own membership in the table is unknown to the attacker, who may know
    all other members. The guarantee is for the presence of a person in the population. A
    composition inside uses one sample; a composition of sampled events means a fresh sample for
    each.

    Attributes:
        event: The event on the table.
        rate: Probability of being in the table.

    Examples:
        >>> SampledEvent(SafeRelease(k=20, beta=0.1), rate=0.05).rate
        0.05
    """

    event: Event
    rate: float

    def __post_init__(self) -> None:
        _check_event("event", self.event)
        object.__setattr__(self, "rate", require_single("rate", check_fraction("rate", self.rate)))


@dataclass(frozen=True)
class OneOf:
    """One of several events, chosen by the results of earlier events.

    It costs the maximum of their costs at every epsilon.

    Attributes:
        events: The possible events.

    Examples:
        >>> len(OneOf((SafeRelease(20, 0.1), SafeRelease(40, 0.2))).events)
        2
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
    """Several events on the same table, all of which happen.

    Attributes:
        events: The events.

    Examples:
        >>> len(Composition((Selection(0.05), SafeRelease(20, 0.1))).events)
        2
    """

    events: tuple[Event, ...]

    def __init__(self, events: Iterable[Event]) -> None:
        object.__setattr__(self, "events", tuple(events))
        for event in self.events:
            _check_event("events", event)


Event: TypeAlias = (
    SafeRelease | GeometricCounts | GaussianCounts | PersonCounts | RowCounts | ShiftedCounts
    | SeriesCounts | Selection | DeclaredCounts | BoundedChoice | GaussianMeasurements | Mechanism
    | SampledEvent
    | OneOf | Coin | Composition
)  # fmt: skip


def _check_event(name: str, event: object) -> None:
    if not isinstance(event, Event):
        raise ParameterError(name, "hold events such as SafeRelease(k=20, beta=0.1)", event)


def describe_event(event: Event) -> str:
    """Return an event on one line, for people; repeated parts are listed once.

    >>> describe_event(Composition([Selection(0.05), *[SafeRelease(k=20, beta=0.1)] * 3]))
    'private choice (ε = 0.05), 3 x (sample (k = 20, β = 0.1))'
    """
    match event:
        case SafeRelease(k, beta):
            return f"sample (k = {k}, β = {beta:g})"
        case GeometricCounts(r, epsilon):
            return f"counts with geometric noise (ε = {epsilon:g}, at most ±{r})"
        case GaussianCounts(r, variance):
            return f"counts with Gaussian noise (variance {variance:g}, at most ±{r})"
        case PersonCounts(part, rows):
            return f"{describe_event(part)} of people in up to {rows} cells each"
        case RowCounts(part, rows, per_group):
            return (
                f"{describe_event(part)} of up to {rows} rows of a person, up to {per_group} in a "
                "cell"
            )
        case ShiftedCounts(part, distance):
            return f"{describe_event(part)}, a person moves it by up to {distance}"
        case SeriesCounts(r, variance, of, rows):
            cells = f" in up to {rows} cells each" if rows > 1 else ""
            noise = f"basic noise of variance {variance:g}, at most ±{r}"
            return f"series of {of} releases of counts of people{cells} ({noise})"
        case Coin(first, second, chance):
            likely = f"{describe_event(first)} with probability {chance:.4g}"
            return f"{likely}, else {describe_event(second)}"
        case Selection(epsilon):
            return f"private choice (ε = {epsilon:g})"
        case DeclaredCounts(epsilon):
            return f"counts of declared values (ε = {epsilon:g})"
        case BoundedChoice(epsilon):
            return f"choice of range {epsilon:g}"
        case GaussianMeasurements(information):
            return f"measurements with Gaussian noise of information {information:g}"
        case Mechanism(epsilon, delta):
            return f"mechanism (ε = {epsilon:g}, δ = {delta:g})"
        case SampledEvent(part, rate):
            return f"on a sample at rate {rate:g}: {describe_event(part)}"
        case OneOf(events):
            return f"one of: {' or '.join(describe_event(part) for part in events)}"
        case Composition(events):
            times = Counter(describe_event(part) for part in events)
            return ", ".join(text if n == 1 else f"{n} x ({text})" for text, n in times.items())


def serialize_event(event: Event) -> dict[str, Any]:
    """Return an event as plain values, for certificates and ledgers."""
    match event:
        case SafeRelease(k, beta):
            return {"kind": "safe release", "k": k, "beta": beta}
        case GeometricCounts(r, epsilon):
            return {"kind": "geometric counts", "r": r, "epsilon": epsilon}
        case GaussianCounts(r, variance):
            return {"kind": "gaussian counts", "r": r, "variance": variance}
        case PersonCounts(part, rows):
            return {"kind": "person counts", "rows": rows, "event": serialize_event(part)}
        case RowCounts(part, rows, per_group):
            limits = {"rows": rows, "per_group": per_group}
            return {"kind": "row counts", **limits, "event": serialize_event(part)}
        case ShiftedCounts(part, distance):
            return {"kind": "shifted counts", "distance": distance, "event": serialize_event(part)}
        case SeriesCounts(r, variance, of, rows):
            return {"kind": "series counts", "r": r, "variance": variance, "of": of, "rows": rows}
        case Coin(first, second, chance):
            sides = {"first": serialize_event(first), "second": serialize_event(second)}
            return {"kind": "coin", "chance": chance, **sides}
        case Selection(epsilon):
            return {"kind": "selection", "epsilon": epsilon}
        case DeclaredCounts(epsilon):
            return {"kind": "declared counts", "epsilon": epsilon}
        case BoundedChoice(epsilon):
            return {"kind": "bounded choice", "epsilon": epsilon}
        case GaussianMeasurements(information):
            return {"kind": "gaussian measurements", "information": information}
        case Mechanism(epsilon, delta):
            return {"kind": "mechanism", "epsilon": epsilon, "delta": delta}
        case SampledEvent(part, rate):
            return {"kind": "sampled", "rate": rate, "event": serialize_event(part)}
        case OneOf(events):
            return {"kind": "one of", "events": [serialize_event(part) for part in events]}
        case Composition(events):
            return {"kind": "composition", "events": [serialize_event(part) for part in events]}


def parse_event(value: object) -> Event:
    """Return the event of :func:`serialize_event`; raise ParameterError for anything else."""
    parsed: Event
    match value:
        case {"kind": "safe release", "k": k, "beta": beta, **rest}:
            parsed = SafeRelease(k, beta)
        case {"kind": "geometric counts", "r": r, "epsilon": epsilon, **rest}:
            parsed = GeometricCounts(r, epsilon)
        case {"kind": "gaussian counts", "r": r, "variance": variance, **rest}:
            parsed = GaussianCounts(r, variance)
        case {"kind": "person counts", "rows": rows, "event": event, **rest}:
            parsed = PersonCounts(_require_counts(parse_event(event)), rows)
        case {
            "kind": "row counts", "rows": rows, "per_group": per_group, "event": event, **rest
        }:  # fmt: skip
            parsed = RowCounts(_require_counts(parse_event(event)), rows, per_group)
        case {"kind": "shifted counts", "distance": distance, "event": event, **rest}:
            parsed = ShiftedCounts(_require_counts(parse_event(event)), distance)
        case {"kind": "series counts", "r": r, "variance": x, "of": of, "rows": rows, **rest}:
            parsed = SeriesCounts(r, x, of, rows)
        case {"kind": "coin", "chance": chance, "first": first, "second": second, **rest}:
            parsed = Coin(parse_event(first), parse_event(second), chance)
        case {"kind": "selection", "epsilon": epsilon, **rest}:
            parsed = Selection(epsilon)
        case {"kind": "declared counts", "epsilon": epsilon, **rest}:
            parsed = DeclaredCounts(epsilon)
        case {"kind": "bounded choice", "epsilon": epsilon, **rest}:
            parsed = BoundedChoice(epsilon)
        case {"kind": "gaussian measurements", "information": information, **rest}:
            parsed = GaussianMeasurements(information)
        case {"kind": "mechanism", "epsilon": epsilon, "delta": delta, **rest}:
            parsed = Mechanism(epsilon, delta)
        case {"kind": "sampled", "rate": rate, "event": event, **rest}:
            parsed = SampledEvent(parse_event(event), rate)
        case {"kind": "one of", "events": list(events), **rest}:
            parsed = OneOf(parse_event(part) for part in events)
        case {"kind": "composition", "events": list(events), **rest}:
            parsed = Composition(parse_event(part) for part in events)
        case _:
            raise ParameterError("event", "be a known event", value)
    if rest:
        raise ParameterError("event", "hold nothing else", rest)
    return parsed


def _require_counts(event: Event) -> GeometricCounts | GaussianCounts:
    if not isinstance(event, GeometricCounts | GaussianCounts):
        raise ParameterError("event", "be GeometricCounts or GaussianCounts", event)
    return event
