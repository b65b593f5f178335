"""What slices spend: how many there are, their events, and the joint law of two of them."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.cli import run_successfully
from support.releases import list_sample_draws
from support.slice_tables import (
    BASE,
    CHOSEN,
    COLUMNS,
    COVERING,
    DECLARED,
    make_sliced_people,
    publish_slices,
)
from support.unjudged import publish_unjudged

from incrowd.arrays import Words
from incrowd.engine.source import open_table
from incrowd.errors import IncrowdError
from incrowd.methods.base import MakeContext
from incrowd.methods.safe.method import Safe
from incrowd.methods.safe.slices import Slicer
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import (
    Composition,
    Event,
    OneOf,
    SafeRelease,
    SampledEvent,
    Selection,
    parse_event,
)
from incrowd.privacy.plan import plan
from incrowd.privacy.randomness import round_down_rate
from incrowd.privacy.selection import round_down_epsilon
from incrowd.privacy.split import BudgetSplit, split_for_samples
from incrowd.release.ledger import Ledger
from incrowd.release.verify import verify
from incrowd.spec.dependency import ColumnDependencies
from incrowd.spec.file import parse_spec
from incrowd.spec.slices import Slicing

pytestmark = pytest.mark.usefixtures("settled_once")


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    return make_sliced_people()


@pytest.mark.parametrize(
    ("columns", "slices", "tables", "choices"),
    [
        (6, Slicing(columns=2, tables=4), 4, 3),
        (6, Slicing(columns=2, tables=14), 14, 13),
        (6, Slicing(columns=2, tables=15), 15, 0),  # all pairs
        (6, Slicing(columns=2, tables=400), 15, 0),
        (6, Slicing(columns=2), 15, 0),
        (6, Slicing(columns=2, tables="all"), 15, 0),
        (7, Slicing(columns=2), 16, 15),  # of 21 pairs, 16 by default
        (7, Slicing(columns=2, tables="all"), 21, 0),
        (40, Slicing(columns=2), 20, 19),  # 16 would not place every column
        (40, Slicing(columns=2, tables=20), 20, 19),
        (7, Slicing(columns=3, tables=4), 4, 2 + 1 + 2),  # 3, 2 and 2, then one of 3
        (4, Slicing(columns=3, tables=2), 2, 1),
        (6, (("a", "b"), ("b", "c", "d", "e", "f")), 2, 0),
        (6, (), 1, 0),
    ],
)
def test_how_many_slices_and_choices(columns: int, slices: Any, tables: int, choices: int) -> None:
    slicer = Slicer(slices, tuple("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN"[:columns]))
    assert (slicer.tables, slicer.choices) == (tables, choices)


# Budgets and events.


def settled(more: str, base: str = BASE, columns: str = COLUMNS) -> Safe:
    return Safe(parse_spec(f"{columns}\nrelease: {{{base}, {more}}}\n"))


def test_fixed_slices_are_planned_as_so_many_releases(people: pl.DataFrame, tmp_path: Path) -> None:
    """And searched ones have their rate: that of the smallest crowd."""
    release = publish_slices(people, tmp_path / "out", f"{DECLARED}, draw: sample, scheme: fixed")
    planned = plan(epsilon=1, delta=1e-6, releases=3)
    events = [parse_event(event) for event in release.certificate.events]
    assert events == [SafeRelease(planned.k, round_down_rate(planned.beta))] * 3
    promised = release.certificate.guarantee
    assert promised.epsilon == 1.0
    assert promised.delta is not None
    assert Accountant(events).delta(epsilon=1.0) <= promised.delta  # rounded up
    assert 0.95e-6 < promised.delta <= 1e-6
    assert [table.parameters for table in release.certificate.tables] == [
        {"k": float(planned.k), "beta": planned.beta}
    ] * 3
    request = ["plan", "--epsilon", "1", "--delta", "1e-6", "--releases", "3", "--json"]
    text = json.loads(run_successfully(*request))
    assert (text["k"], text["beta"]) == (planned.k, planned.beta)
    pair = leaves(settled(f"{DECLARED}, draw: sample, scheme: search").events[-1])[-1]
    assert isinstance(pair, SafeRelease)
    assert pair.beta == round_down_rate(planned.beta)


def test_one_table_has_the_events_that_it_always_had() -> None:
    selection, choice = settled("scheme: search, beta: 0.25").events
    assert selection == Selection(0.05)
    assert isinstance(choice, OneOf)
    (only,) = settled("scheme: fixed, beta: 0.25").events
    assert isinstance(only, SafeRelease)


def test_with_a_rate_the_smallest_k_is_planned() -> None:
    for word in ("beta", "keep"):
        events = settled(f"{COVERING}, scheme: fixed, {word}: 0.3").events
        assert events == [SafeRelease(plan(epsilon=1, delta=1e-6, beta=0.3, releases=7).k, 0.3)] * 7


def test_what_is_not_given_is_accounted_for_all_slices() -> None:
    pair = SafeRelease(20, 0.25)
    first = settled(f"{DECLARED}, scheme: fixed, k: 20, beta: 0.25", base="delta: 1.0e-6")
    other = settled(f"{DECLARED}, scheme: fixed, k: 20, beta: 0.25", base="epsilon: 1")
    assert first.events == other.events == [pair] * 3
    for result, true in (
        (first.promise.epsilon, Accountant([pair] * 3).epsilon(delta=1e-6)),
        (other.promise.delta, Accountant([pair] * 3).delta(epsilon=1.0)),
    ):
        assert result is not None
        assert true < result < true * (1 + 1e-5)  # rounded up, so that it holds elsewhere too
    assert first.promise.delta == 1e-6
    assert other.promise.epsilon == 1.0


def leaves(event: Event) -> list[Event]:
    if isinstance(event, Composition | OneOf):
        return [leaf for part in event.events for leaf in leaves(part)]
    return leaves(event.event) if isinstance(event, SampledEvent) else [event]


def part(share: float, over: int) -> Selection:
    """A share of an epsilon of 1, by the square root of how many choices there are."""
    return Selection(round_down_epsilon(share / math.sqrt(over)))


@pytest.mark.parametrize(
    ("more", "choices", "each", "tables", "sampled"),
    [
        (f"{CHOSEN}, scheme: fixed", [part(0.05, 3)] * 3, [], 4, None),
        (f"{CHOSEN}, scheme: fixed", [part(0.05, 3)] * 3, [], 4, 0.3),
        (f"{DECLARED}, scheme: fixed", [], [], 3, 0.3),
        (f"{DECLARED}, scheme: search", [], [part(0.05, 3)], 3, None),
        (f"{CHOSEN}, scheme: search", [part(0.05, 3)] * 3, [part(0.05, 4)], 4, 0.3),
        (f"{CHOSEN}, scheme: mondrian", [part(0.05, 3)] * 3, [part(0.05, 4)] * 3, 4, None),
        (f"{DECLARED}, search_epsilon: 0.06, scheme: mondrian", [], [Selection(0.02)] * 3, 3, 0.3),
        (f"{COVERING}, search_epsilon: 0.03", [], [Selection(0.03)], 7, None),
    ],
)
def test_what_is_spent_is_within_the_budget_and_hardly_less(
    more: str, choices: list[Event], each: list[Event], tables: int, sampled: float | None
) -> None:
    """First what puts slices together, then the same for each; k - 1 would cost too much."""
    rate = f"{more}, beta: 0.25" + (f", already_sampled: {sampled}" if sampled else "")
    events = settled(rate).events
    pair = leaves(events[-1])[-1]
    assert isinstance(pair, SafeRelease)
    assert pair.beta == 0.25

    def spent(pair: SafeRelease) -> list[Event]:
        table_event: Event = Composition([*each, OneOf([pair])]) if each else pair
        events: list[Event] = [*choices, *[table_event] * tables]
        return events if sampled is None else [SampledEvent(Composition(events), sampled)]

    assert events == spent(pair)
    assert Accountant(events).delta(epsilon=1.0) <= 1e-6
    assert Accountant(spent(SafeRelease(pair.k - 1, 0.25))).delta(epsilon=1.0) > 0.95e-6


def test_several_tables_and_choices_are_paid_from_one_budget() -> None:
    """The grid of choices and tables that is bisected on is the accountant's own answer."""
    for population in (None, 0.4):
        budget = split_for_samples(
            epsilon=1.5, delta=1e-5, selections=(0.04, 0.02), choices=(0.03, 0.05),
            rates=(0.2, 0.5), tables=3, population=population,
        )  # fmt: skip
        assert isinstance(budget, BudgetSplit)
        assert [pair.beta for pair in list_sample_draws(budget)] == [0.2, 0.5]
        table_event = Composition(
            [Selection(0.04), Selection(0.02), OneOf(list_sample_draws(budget))]
        )
        inside: list[Event] = [
            Selection(0.03),
            Selection(0.05),
            table_event,
            table_event,
            table_event,
        ]
        assert budget.events == (
            [SampledEvent(Composition(inside), population)] if population else inside
        )
        assert 0.5e-5 < Accountant(budget.events).delta(epsilon=1.5) <= 1e-5


@pytest.mark.parametrize("more", ["scheme: fixed", "scheme: mondrian"])
def test_the_ledger_books_all_slices_as_one_entry(
    people: pl.DataFrame, tmp_path: Path, more: str
) -> None:
    book = Ledger(tmp_path / "ledger")
    book.set_budget(epsilon=1.2, delta=1e-6)
    release = publish_slices(people, tmp_path / "out", f"{CHOSEN}, {more}, beta: 0.25", ledger=book)
    (booked,) = [spend.event for spend in book.spends()]
    assert isinstance(booked, Composition)
    assert list(booked.events) == [parse_event(event) for event in release.certificate.events]
    assert 0.9 < book.total().epsilon <= 1 + 1e-6
    with pytest.raises(IncrowdError, match="δ is used up"):
        publish_slices(people, tmp_path / "again", f"{CHOSEN}, {more}, beta: 0.25", ledger=book)


@pytest.mark.parametrize("scheme", ["fixed", "search"])
@pytest.mark.parametrize("slices", [DECLARED, CHOSEN])
def test_slices_of_a_sample_are_amplified_together(
    people: pl.DataFrame, tmp_path: Path, slices: str, scheme: str
) -> None:
    more = f"{slices}, scheme: {scheme}, beta: 0.25, already_sampled: 0.3"
    release = publish_slices(people, tmp_path / "out", more)
    (event,) = (parse_event(event) for event in release.certificate.events)
    assert isinstance(event, SampledEvent)
    assert event.rate == 0.3
    assert isinstance(event.event, Composition)
    assert not any(isinstance(inner, SampledEvent) for inner in event.event.events)
    assert release.certificate.parameters["already_sampled"] == 0.3
    assert ("slices_epsilon" in release.certificate.parameters) == (slices == CHOSEN)
    assert not any("already_sampled" in table.parameters for table in release.certificate.tables)
    assert release.certificate.guarantee.text.count("with probability 0.3") == 1
    assert verify(tmp_path / "out") == []
    assert Accountant(event).delta(epsilon=1.0) <= 1e-6
    unsampled = leaves(settled(more.replace(", already_sampled: 0.3", "")).events[-1])[-1]
    assert isinstance(unsampled, SafeRelease)
    assert release.certificate.k < unsampled.k


def test_the_largest_rate_for_a_k_is_within_the_budget() -> None:
    (pair, *_) = settled(f"{DECLARED}, draw: sample, scheme: fixed, k: 20").events
    assert pair == SafeRelease(20, plan(epsilon=1, delta=1e-6, k=20, releases=3).beta)


# The joint distribution of two slices.

Row = tuple[int, ...]
Rows = tuple[Row, ...]
Shows = tuple[tuple[object, ...], ...]
Law = dict[tuple[Shows, ...], float]
TINY = """
columns:
  a: {role: quasi, hierarchy: {flat: {values: [0, 1]}}}
  b: {role: quasi, hierarchy: {flat: {values: [0, 1]}}}
"""


class Coins:
    """Words that stand for drawn (0) and not drawn (the largest word), and no more of them."""

    private = False

    def __init__(self, coins: Iterable[bool]) -> None:
        self.left = np.array([0 if x else 2**64 - 1 for x in coins], dtype=np.uint64)

    def draw_words(self, count: int) -> Words:
        assert count <= len(self.left), "more bits were asked for than there are rows"
        words, self.left = self.left[:count], self.left[count:]
        return words


@dataclass(frozen=True)
class Tiny:
    """Two slices by fixed schemes; beta has few binary digits."""

    parts: str
    k: int
    beta: float

    @property
    def columns(self) -> list[list[str]]:
        return [list(x.strip(" []").replace(",", " ").split()) for x in self.parts.split("], [")]

    def method(self) -> Safe:
        return settled(
            f"scheme: fixed, k: {self.k}, beta: {self.beta}, levels: {{a: 0, b: 0}}, "
            f"slices: [{self.parts}]", base="epsilon: 1", columns=TINY,
        )  # fmt: skip

    def shown(self, method: Safe, rows: Rows, coins: Sequence[Sequence[bool]]) -> tuple[Shows, ...]:
        """What both slices show if in each of them certain rows are drawn."""
        table = open_table(pl.DataFrame(rows, schema={"a": pl.Int64, "b": pl.Int64}, orient="row"))
        words = Coins(itertools.chain.from_iterable(coins))
        result = method.make(method.count(table), MakeContext(words, table.engine))
        assert not len(words.left)  # a word for each row in each slice
        return tuple(_weighted(product.data.to_frame()) for product in result.products)

    def ordered(self, rows: Rows, coins: Sequence[bool], columns: list[str]) -> list[bool]:
        """Coins of rows as a slice takes them: cell by cell."""
        places = ["ab".index(name) for name in columns]
        cells = sorted(range(len(rows)), key=lambda at: [rows[at][place] for place in places])
        return [coins[at] for at in cells]

    def weight(self, coins: Sequence[bool]) -> float:
        return float(self.beta ** sum(coins) * (1 - self.beta) ** (len(coins) - sum(coins)))

    def by_slice(self, method: Safe, rows: Rows) -> list[dict[Shows, float]]:
        """What each slice shows, over all its coins."""
        result: list[dict[Shows, float]] = [{}, {}]
        for coins in itertools.product((True, False), repeat=len(rows)):
            for law, shows in zip(result, self.shown(method, rows, [coins] * 2), strict=True):
                law[shows] = law.get(shows, 0.0) + self.weight(coins)
        return result

    def from_one_sample(self, rows: Rows) -> Law:
        """The planted fault: who is drawn for one slice is drawn for the other."""
        method, result = self.method(), Law()
        for coins in itertools.product((True, False), repeat=len(rows)):
            each = [self.ordered(rows, coins, columns) for columns in self.columns]
            shows = self.shown(method, rows, each)
            result[shows] = result.get(shows, 0.0) + self.weight(coins)
        return result

    def from_all_coins(self, rows: Rows) -> Law:
        method, result = self.method(), Law()
        every = list(itertools.product((True, False), repeat=len(rows)))
        for first, other in itertools.product(every, every):
            shows = self.shown(method, rows, [first, other])
            result[shows] = result.get(shows, 0.0) + self.weight((*first, *other))
        return result


def _weighted(rows: pl.DataFrame) -> Shows:
    """The cells with their counts, in an order of their own."""
    return tuple(sorted(rows.group_by(rows.columns).len().iter_rows(), key=repr))


def product(laws: Sequence[Mapping[Shows, float]]) -> Law:
    return {
        (first, second): p * q
        for (first, p), (second, q) in itertools.product(*(x.items() for x in laws))
    }


def divergence(p: Law, q: Law, epsilon: float) -> float:
    t = math.exp(epsilon)
    return math.fsum(max(x - t * q.get(shows, 0.0), 0.0) for shows, x in p.items())


def used_up(tiny: Tiny, pairs: Iterable[tuple[Law, Law]]) -> float:
    """The largest divergence, either way, over what the accountant gives for both slices."""
    accountant = Accountant(tiny.method().events)
    worst = 0.0
    for epsilon in (0.0, 0.1, 0.3, 0.7, 1.2, 2.0, 3.0):
        claimed = accountant.delta(epsilon=epsilon)
        for first, other in pairs:
            worst = max(worst, divergence(first, other, epsilon) / claimed)
            worst = max(worst, divergence(other, first, epsilon) / claimed)
    return worst


TINIES = [
    (Tiny("[a], [b]", 1, 0.5), 0.99),
    (Tiny("[a], [b]", 2, 0.25), 0.9),
    (Tiny("[a, b], [b]", 2, 0.5), 0.9),
]


@pytest.mark.parametrize(("tiny", "least"), TINIES)
def test_two_slices_together_stay_within_the_accounted_delta(tiny: Tiny, least: float) -> None:
    """Every table of up to three rows beside itself without one of them."""
    method = tiny.method()
    cells = list(itertools.product((0, 1), repeat=2))
    laws: dict[Rows, Law] = {}
    for size in range(4):
        for rows in itertools.combinations_with_replacement(cells, size):
            laws[rows] = product(tiny.by_slice(method, rows))
    pairs = [
        (law, laws[rows[:at] + rows[at + 1 :]])
        for rows, law in laws.items()
        for at in range(len(rows))
    ]
    assert least < used_up(tiny, pairs) <= 1 + 1e-9


def test_slices_are_independent_over_all_coins() -> None:
    """What the test above takes for granted."""
    for tiny, rows in ((TINIES[0][0], ((0, 0), (0, 1), (1, 1))), (TINIES[2][0], ((0, 1),) * 2)):
        joint = tiny.from_all_coins(rows)
        apart = product(tiny.by_slice(tiny.method(), rows))
        assert set(joint) == {shows for shows, share in apart.items() if share}
        assert all(share == pytest.approx(apart[shows]) for shows, share in joint.items())


def test_two_slices_from_one_sample_are_not_covered() -> None:
    """One slice counts a crowd, the other the crowd and one more: the difference is a person."""
    tiny = Tiny("[a], [b]", 3, 0.25)
    without: Rows = ((0, 1),) * 6
    rows: Rows = ((0, 0), *without)
    fault = [(tiny.from_one_sample(rows), tiny.from_one_sample(without))]
    assert used_up(tiny, fault) > 1.3
    method = tiny.method()
    true = [(product(tiny.by_slice(method, rows)), product(tiny.by_slice(method, without)))]
    assert 0 < used_up(tiny, true) <= 1 + 1e-9


# Functions of other columns.

YEARS = {"y81": ("year",), "y82": ("year",)}


def plan_slices(columns: str, slices: Any, sources: dict[str, tuple[str, ...]]) -> Slicer:
    return Slicer(slices, tuple(columns.split()), ColumnDependencies(sources))


def test_slices_of_all_pairs_leave_out_those_of_functions() -> None:
    slicer = plan_slices("year y81 y82 sex", Slicing(columns=2), YEARS)
    assert {frozenset(part) for part in slicer.known_slices} == {
        frozenset(pair)
        for pair in (("year", "sex"), ("y81", "y82"), ("y81", "sex"), ("y82", "sex"))
    }
    assert "but functions of each other" in slicer.reason
    assert (slicer.tables, slicer.choices) == (4, 0)


def test_a_source_that_is_not_published_is_none() -> None:
    slicer = plan_slices("y81 y82 sex", Slicing(columns=2), YEARS)
    assert slicer.tables == 3


def test_columns_of_one_thing_alone_have_no_slices() -> None:
    with pytest.raises(IncrowdError, match="function of each other one"):
        plan_slices("a b c", Slicing(columns=2), {"a": ("b",), "b": ("c",), "c": ("a",)})


def test_functions_take_more_tables_than_there_may_be() -> None:
    with pytest.raises(IncrowdError, match="3 tables of 3, with functions of others apart"):
        plan_slices(
            "a b c d", Slicing(columns=3, tables=2), {"b": ("a",), "c": ("b",), "a": ("c",)}
        )


def test_a_false_declaration_only_keeps_columns_apart(people: pl.DataFrame, tmp_path: Path) -> None:
    """Neither e nor z is a function of d: the release verifies, spends the same, and parts them."""
    columns = COLUMNS
    for name in "ez":
        columns = columns.replace(f"  {name}: {{", f"  {name}: {{function_of: [d], ")
    assert columns != COLUMNS
    spec = parse_spec(f"{columns}\nrelease: {{{BASE}, {CHOSEN}}}\n")
    method, plain = Safe(spec), settled(CHOSEN)
    assert method.promise.epsilon == plain.promise.epsilon
    release = publish_unjudged(people, spec, output=tmp_path / "out")
    parts = [set(table.scheme) for table in release.certificate.tables]
    assert not any("d" in part and part & {"e", "z"} for part in parts)
    assert all(any(name in part for part in parts) for name in "dez")
    assert verify(tmp_path / "out") == []
