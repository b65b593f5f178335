"""Neighboring tables that are worst for a method, and what a run on each of them shows.

Tables are made up from the spec's domain; no table of anybody is opened. Where the worst pair is
not known for certain, several are proposed, and whoever audits tries each.

**Fixed levels.** A pair has many cells of n rows on the one side and of n - 1 on the other, and a
run gives as many outcomes as there are cells: how many rows it shows of each. *Claim*: these are
independent, and each has the law of a table with this cell alone. *Proof*: a cell is drawn by
random words of its own, and shown or not by its own draw; nothing else of the table enters. (Where
a coin decides how all cells are drawn, that holds given the coin. So only runs are used in which it
fell on its likelier side, of chance c: the event that it does, and that a cell then shows one of
the outcomes in S, has c P(S), and c P(S) <= e^epsilon c Q(S) + delta is what is tested, with
delta / c in the place of delta.) The tables of a run are no neighbors of each other; of each cell,
the two tables that are alike but for it would be.

The n that is worst for a sample stands in :mod:`incrowd.privacy.sample`: it is where the profile
at the audit's own delta is attained. For counts it is any n from which the cell is always shown,
2 r + k (:mod:`incrowd.privacy.counts`).

**A scheme that is chosen.** All rows are alike, n of them or n - 1, so that every scheme has one
cell. For the private choice the row counts most where the cell lies on the ramp
(:mod:`incrowd.anonymize.safe_search`): there it moves the score of the finest scheme by all that
the noise allows for, and that of the coarsest, which keeps no detail, not at all. Which schemes
are chosen, and how many rows are shown, is the outcome.

**Whole households.** A cell is a type of households, all of whose people are equal
(:mod:`incrowd.evaluation.audit.households`).

**A table that is a sample.** The guarantee counts on nobody knowing whether the person was drawn.
So the person is in the table with that rate, on the side that has the person.

**Classes.** k-anonymity and (k,epsilon)-anonymity promise nothing of this kind. The pair is a
made-up table and the same without its last row; the outcome is what is shown, without noisy
columns.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from incrowd.arrays import Counts, Floats
from incrowd.codes.counted_table import CountedTable, DistinctRows
from incrowd.codes.frequency import Frequencies
from incrowd.errors import IncrowdError
from incrowd.methods.base import MakeContext, Method, require_local
from incrowd.methods.fictional import make_fictional_table
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.counts import build_event_law
from incrowd.privacy.draw_parameters import CountsEvent
from incrowd.privacy.events import (
    Coin,
    Composition,
    Event,
    GaussianCounts,
    GeometricCounts,
    OneOf,
    SafeRelease,
    SampledEvent,
    Selection,
)
from incrowd.privacy.randomness import Randomness, sample_binomial
from incrowd.privacy.sample import log_absent_divergence, log_present_divergence
from incrowd.release.product import MethodResult, Product
from incrowd.spec.file import SpecFile
from incrowd.spec.model import PersonId
from incrowd.spec.release import SafeSpec, SyntheticSpec, TablesSpec

CELLS = 10_000  # so many outcomes of one run, at most
_MADE = 40_000  # so many rows are made up to find that many cells
_SMALL_K = 5

Outcome: TypeAlias = tuple[object, ...]


class NeighborPair(Protocol):
    """Two neighboring tables: the first has a row that the second lacks.

    ``views`` are what may be looked at of an outcome, by places of the tuple; the best is found by
    the runs that choose the event. ``share`` is the chance of the runs that are used.
    """

    @property
    def description(self) -> str:
        """What the tables are, and how they differ."""
        ...

    @property
    def views(self) -> tuple[tuple[int, ...], ...]:
        """See above."""
        ...

    @property
    def share(self) -> float:
        """See above."""
        ...

    def run_once(self, method: Method, context: MakeContext, *, first: bool) -> Counter[Outcome]:
        """Return what one run shows, how often: on the first table or the second."""
        ...

    def laws(self) -> tuple[Floats, Floats] | None:
        """Return the laws of an outcome on both tables, where they are known."""
        ...

    def describe_event(self, outcomes: Sequence[Outcome]) -> str:
        """Describe an event, by what was looked at of its outcomes."""
        ...


@dataclass(frozen=True, eq=False)
class CellPair:
    """Many cells of n rows, drawn alike by levels that are fixed."""

    counted: CountedTable
    n: int
    event: SafeRelease | CountsEvent
    threshold: int
    share: float = 1.0
    rate: float = 1.0
    views: tuple[tuple[int, ...], ...] = ((0,),)

    @property
    def description(self) -> str:
        """What differs."""
        number = len(self.counted.frequencies)
        return (
            f"a cell of {self.n} rows and the same cell of {self.n - 1} ({number:,} such cells per "
            "run)" + _describe_rate(self.rate)
        )

    def run_once(self, method: Method, context: MakeContext, *, first: bool) -> Counter[Outcome]:
        """Return the rows shown of each cell; 0 if it is dropped."""
        codes = self.counted.frequencies.codes
        sizes = np.full(len(codes), self.n - 1, dtype=np.int64)
        if first:
            sizes += _draw_presence(len(codes), self.rate, context.bits)
        nonempty = np.flatnonzero(sizes)  # a cell without rows is not among the frequencies
        table = replace(self.counted, frequencies=Frequencies(codes[nonempty], sizes[nonempty]))
        (product,) = method.make(table, context).products
        if isinstance(self.event, GeometricCounts) and product.parameters["r"] != self.event.r:
            return Counter()  # the coin fell on its other side
        return self._count_outcomes(product.shown.frequencies.counts)

    def _count_outcomes(self, counts: Counts) -> Counter[Outcome]:
        """Return how often each count is shown; 0 for each cell that is not."""
        values, times = np.unique(counts, return_counts=True)
        counter: Counter[Outcome] = Counter(
            {
                (value,): number
                for value, number in zip(values.tolist(), times.tolist(), strict=True)
            }
        )
        counter[(0,)] += len(self.counted.frequencies) - len(counts)
        return counter

    def laws(self) -> tuple[Floats, Floats]:
        """Return the binomial law, or that of the noise; what is not shown is 0."""
        without = self._compute_law(self.n - 1)
        return self.rate * self._compute_law(self.n) + (1 - self.rate) * without, without

    def _compute_law(self, n: int) -> Floats:
        from scipy.stats import binom

        if isinstance(self.event, SafeRelease):
            size, least = self.n + 1, self.event.k
            law = np.asarray(binom.pmf(np.arange(size), n, self.event.beta), dtype=np.float64)
        else:
            tail, least = build_event_law(self.event).tail, self.threshold
            r = self.event.r
            law = np.zeros(self.n + r + 1)
            counts = np.arange(max(n - r, 0), n + r + 1)
            law[counts] = tail[np.abs(counts - n)]
        published_law = np.where(np.arange(len(law)) >= least, law, 0.0)
        published_law[0] = 1.0 - published_law[1:].sum() if least > 0 else published_law[0]
        return published_law

    def describe_event(self, outcomes: Sequence[Outcome]) -> str:
        """Describe an event by how many rows are shown of the cell."""
        return f"{_format_ranges(outcomes)} of the cell are published"


@dataclass(frozen=True, eq=False)
class EqualRowsPair:
    """Rows that are all alike, under a scheme that is chosen, or in several tables."""

    row: CountedTable
    n: int
    rate: float = 1.0
    share: float = 1.0
    # how many rows are shown; also how coarsely, or by which scheme exactly
    views: tuple[tuple[int, ...], ...] = ((0,), (0, 1), (1,), (2,), (0, 2))

    @property
    def description(self) -> str:
        """What differs."""
        return f"{self.n} equal rows, and {self.n - 1}" + _describe_rate(self.rate)

    def run_once(self, method: Method, context: MakeContext, *, first: bool) -> Counter[Outcome]:
        """Return how many rows are shown, and the scheme that was chosen."""
        n = self.n - 1
        if first:
            n += int(_draw_presence(1, self.rate, context.bits)[0])
        codes = self.row.frequencies.codes[: 1 if n else 0]
        counts = np.full(len(codes), n, dtype=np.int64)
        outcome = method.make(replace(self.row, frequencies=Frequencies(codes, counts)), context)
        return Counter([_describe_outcome(outcome)])

    def laws(self) -> None:
        """Return None: the laws are not known."""
        return

    def describe_event(self, outcomes: Sequence[Outcome]) -> str:
        """Describe an event by what was looked at."""
        if all(len(outcome) == 1 and isinstance(outcome[0], int) for outcome in outcomes):
            return f"{_format_ranges(outcomes)} are published"
        return _list_outcomes(outcomes)


@dataclass(frozen=True, eq=False)
class MissingRowPair:
    """A made-up table against the same without its last row."""

    both: tuple[CountedTable | DistinctRows, CountedTable | DistinctRows]
    rows: int
    share: float = 1.0
    views: tuple[tuple[int, ...], ...] = ((0,), (1,))

    @property
    def description(self) -> str:
        """What differs."""
        return f"a fictional table of {self.rows} rows, and the same without its last row"

    def run_once(self, method: Method, context: MakeContext, *, first: bool) -> Counter[Outcome]:
        """Return a digest of what is shown, and the number of rows."""
        outcome = method.make(self.both[0 if first else 1], context)
        text = repr([_list_classes(product) for product in outcome.products])
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return Counter([(digest, sum(product.rows for product in outcome.products))])

    def laws(self) -> None:
        """Return None: the laws are not known."""
        return

    def describe_event(self, outcomes: Sequence[Outcome]) -> str:
        """Describe an event by digests, or by numbers of rows."""
        return _list_outcomes(outcomes)


def make_pairs(file: SpecFile, method: Method, *, delta: float, seed: int) -> list[NeighborPair]:
    """Return the pairs worth trying for a method; the same for the same seed."""
    rng = np.random.default_rng(seed)
    if isinstance(file.spec.release, SyntheticSpec):
        from incrowd.evaluation.audit.synthetic import synthetic_pairs

        return synthetic_pairs(method)
    if isinstance(file.spec.release, TablesSpec):
        from incrowd.evaluation.audit.tables import table_pairs

        return table_pairs(method)
    if not isinstance(file.spec.release, SafeSpec):
        return list(_make_class_pairs(file, method, rng))
    household = file.spec.household
    if household is not None and household.linked:
        from incrowd.evaluation.audit.households import make_household_pair

        return [make_household_pair(file, method, delta, rng)]
    if household is not None:
        raise IncrowdError(
            "An audit changes one row of one table, but `household` names a second. Audit the spec "
            "without `household`, and with `rows: 1` under `unit`."
        )
    if isinstance(file.spec.unit, PersonId) and file.spec.unit.rows > 1:
        raise IncrowdError(
            "An audit changes one row, but the unit is a person with several rows. Audit the spec "
            "with `rows: 1` under `unit`."
        )
    draw_events = list(_list_draw_events(method.events))
    rate = next(_list_rates(method.events), 1.0)
    crowd = int(method.planned_release.crowd)
    most = max((event.r for event in draw_events if not isinstance(event, SafeRelease)), default=0)
    k = crowd - most if most else 0
    single = len(method.planned_release.tables) == 1
    if single and not any(list_selections(method.events)):
        share, event = find_likelier_draw(method)
        n = find_critical_size(event, k, delta / share)
        table = method.count(make_fictional_table(file, _MADE, rng))
        assert isinstance(table, CountedTable)
        table = table.merge_labels()
        codes = table.frequencies.codes[:CELLS]
        cells = replace(table, frequencies=Frequencies(codes, np.ones(len(codes), np.int64)))
        threshold = 0 if isinstance(event, SafeRelease) else event.r + k
        return [CellPair(cells, n, event, threshold, share, rate)]
    row = method.count(make_fictional_table(file, 1, rng))
    assert isinstance(row, CountedTable)
    sizes = {find_critical_size(event, k, delta) for event in draw_events[:3]} | {
        math.ceil(1.6 * crowd)
    }
    return [EqualRowsPair(row, n, rate) for n in sorted(sizes)]


def find_likelier_draw(method: Method) -> tuple[float, SafeRelease | CountsEvent]:
    """Return what cells are drawn with, and 1; of a coin, its likelier side and that chance.

    There is either one event, or both sides of a coin that differ by one row of noise.
    """
    draw_events = list(_list_draw_events(method.events))
    coin = next(_list_coins(method.events), None)
    if coin is None:
        return 1.0, draw_events[0]
    event = draw_events[0] if coin.chance >= 0.5 else draw_events[1]
    return max(coin.chance, 1 - coin.chance), event


def find_critical_size(event: SafeRelease | CountsEvent, k: int, delta: float) -> int:
    """Return the number of rows of a cell at which the event is worst at delta."""
    if not isinstance(event, SafeRelease):
        return 2 * event.r + max(k, 1)
    epsilon = Accountant(event).epsilon(delta=delta)
    at = (np.array([float(event.k)]), np.array([event.beta]), np.array([epsilon]))
    ratio = 1 - (1 - event.beta) * math.exp(-epsilon)
    if log_absent_divergence(*at)[0] > log_present_divergence(*at)[0]:
        ratio = 1 - (1 - event.beta) * math.exp(epsilon)
    return max(math.ceil((event.k - 1) / ratio), event.k)


def _make_class_pairs(
    file: SpecFile, method: Method, rng: np.random.Generator
) -> Iterator[NeighborPair]:
    assert file.spec.release is not None
    size = max(4 * (file.spec.release.k or _SMALL_K), 20)
    for rows in (size, size + 1, 2 * size):
        table = make_fictional_table(file, rows, rng)
        yield MissingRowPair(
            (require_local(method.count(table)), require_local(method.count(table.head(rows - 1)))),
            rows,
        )


def _list_draw_events(events: Sequence[Event]) -> Iterator[SafeRelease | CountsEvent]:
    """Yield what cells are drawn with, each once."""
    distinct_events: dict[SafeRelease | CountsEvent, None] = {}
    for event in _list_leaves(events):
        if isinstance(event, SafeRelease | GeometricCounts | GaussianCounts):
            distinct_events.setdefault(event)
    yield from distinct_events


def _list_leaves(events: Sequence[Event]) -> Iterator[Event]:
    for event in events:
        match event:
            case Composition(parts) | OneOf(parts):
                yield from _list_leaves(parts)
            case SampledEvent(part, _):
                yield from _list_leaves([part])
            case Coin(first, second, _):
                yield event
                yield from (first, second)
            case _:
                yield event


def _list_coins(events: Sequence[Event]) -> Iterator[Coin]:
    yield from (event for event in _list_leaves(events) if isinstance(event, Coin))


def list_selections(events: Sequence[Event]) -> Iterator[Selection]:
    """Yield the private choices among events."""
    yield from (event for event in _list_leaves(events) if isinstance(event, Selection))


def _list_rates(events: Sequence[Event]) -> Iterator[float]:
    yield from (event.rate for event in events if isinstance(event, SampledEvent))


def _draw_presence(
    cells: int, rate: float, bits: Randomness
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return whether the person is in the table, for each cell: always, unless a sample."""
    ones = np.ones(cells, dtype=np.int64)
    return ones if rate >= 1 else sample_binomial(ones, rate, bits)


def _describe_outcome(outcome: MethodResult) -> Outcome:
    """Return rows shown, how coarse they are, and the scheme; of several tables, together."""
    rows = sum(product.shown.frequencies.total for product in outcome.products)
    levels = [product.shown.levels for product in outcome.products]
    coarse = sum(level or 0 for table in levels for level in table)
    return (
        rows,
        f"levels that add up to {coarse}",
        "; ".join(_describe_scheme(product) for product in outcome.products),
    )


def _describe_scheme(product: Product) -> str:
    """Return the scheme of one table, and what it was drawn with."""
    levels = zip(product.original.names, product.shown.levels, strict=True)
    parameters = [(name, product.parameters.get(name)) for name in ("k", "beta", "r")]
    scheme = [(name, value) for name, value in (*levels, *parameters) if value is not None]
    return ", ".join(f"{name} {value:g}" for name, value in scheme if not isinstance(value, str))


def _list_classes(product: Product) -> list[tuple[object, ...]]:
    """Return the classes that a product shows, by their labels, with numbers of rows."""
    published = product.shown
    rows = [
        (*(str(published.labels[at][code]) for at, code in enumerate(codes)), str(count))
        for codes, count in zip(
            published.frequencies.codes.tolist(), published.frequencies.counts.tolist(), strict=True
        )
    ]
    return [*sorted(rows), (product.stars,)]


def _describe_rate(rate: float) -> str:
    return "" if rate >= 1 else f"; the row that is more was drawn into the table with {rate:g}"


def _format_ranges(outcomes: Sequence[Outcome]) -> str:
    """Return whole numbers as runs: '18 to 31' for all from 18 to 31."""
    listed = sorted({number for (number,) in outcomes if isinstance(number, int)})
    runs: list[list[int]] = []
    for number in listed:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [str(low) if low == high else f"{low} to {high}" for low, high in runs]
    more = f", and {len(texts) - 4} more such ranges" if len(texts) > 4 else ""
    return ", ".join(texts[:4]) + more + " rows"


def _list_outcomes(outcomes: Sequence[Outcome]) -> str:
    """Return a few outcomes of many."""
    texts = [", ".join(map(str, outcome)) for outcome in outcomes[:3]]
    more = f", or {len(outcomes) - 3:,} more" if len(outcomes) > 3 else ""
    return "the outcome is one of: " + "; ".join(texts) + more
