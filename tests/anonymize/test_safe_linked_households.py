"""Whole households with their people, linked by keys: enumerated over all neighbors that differ in
one household; planted faults are not covered by what is charged.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import stats
from support.household_law import (
    LinkedLaw,
    Rows,
    find_type,
    list_ordered_neighbors,
    list_types,
    make_household,
    make_law,
    make_members,
)
from support.people import People, PeopleProblem, Person, list_bounded, list_neighbor_people
from support.search_law import THREE, TWO, Cells, compute_divergence

from incrowd.anonymize.lattice import Lattice, Node
from incrowd.anonymize.safe_linked_households import link_households
from incrowd.anonymize.safe_search import make_ramp
from incrowd.arrays import Counts
from incrowd.codes.frequency import Frequencies
from incrowd.codes.household_type import HouseholdMembers
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.draw_parameters import CountsEvent
from incrowd.privacy.events import Event, GaussianCounts, GeometricCounts, SafeRelease
from incrowd.privacy.randomness import SeededRandomness

RAMPS = (make_ramp(2, 1.0),)
FIXED = PeopleProblem((TWO, TWO), Lattice((0, 0), (0, 0)), RAMPS)
THREE_PEOPLE = PeopleProblem((TWO, THREE), Lattice((0, 0), (0, 0)), RAMPS, rows=3)
CHOSEN = PeopleProblem((TWO, TWO), Lattice((0, 0), (1, 1)), RAMPS)
HOUSEHOLDS = [
    make_household(0, 0), make_household(0, 0, 0), make_household(0, 0, 1), make_household(1, 0, 1),
]  # fmt: skip
LARGE = make_household(0, 0, 0, 1)  # one person more than is used


@pytest.mark.parametrize(
    ("problem", "event", "kinds", "most", "least"),
    [
        (FIXED, GeometricCounts(1, 1.0), HOUSEHOLDS[1:3], 4, 0.999),
        (FIXED, GaussianCounts(1, 1.5), HOUSEHOLDS[:2], 4, 0.999),
        (FIXED, GeometricCounts(1, 0.7), [*HOUSEHOLDS, LARGE], 3, 0.4),
        (THREE_PEOPLE, GeometricCounts(1, 0.8), [make_household(0, 0, 1, 2)], 4, 0.999),
        (CHOSEN, GeometricCounts(1, 1.0), HOUSEHOLDS[1:], 3, 0.3),
    ],
)
def test_linked_tables_stay_within_the_accounted_delta_and_reach_it(
    problem: PeopleProblem, event: CountsEvent, kinds: list[Person], most: int, least: float
) -> None:
    """One row's cost covers a household with all of its people, however many are used."""
    law = make_law(LinkedLaw, problem, event)
    assert least < law.compute_usage(list_neighbor_people(kinds, most)) <= 1 + 1e-9


def test_the_order_of_the_input_changes_nothing() -> None:
    law = make_law(LinkedLaw, FIXED, GeometricCounts(1, 1.0))
    people = (HOUSEHOLDS[1], HOUSEHOLDS[2], HOUSEHOLDS[2], HOUSEHOLDS[1])
    first = law(people)
    for other in itertools.permutations(people):
        assert law(other).keys() == first.keys()
        assert all(abs(law(other)[key] - chance) < 1e-12 for key, chance in first.items())


class DrawnHouseholds(LinkedLaw):
    """A sample of whole households, by the probabilities of Paper A."""

    release = SafeRelease(2, 0.5)

    def show_cells(self, cells: Cells) -> dict[Cells, float]:
        k, beta = self.release.k, self.release.beta
        outcome: dict[Cells, float] = {(): 1.0}
        for code, count in cells:
            chances = {0: float(stats.binom.cdf(k - 1, count, beta))}
            chances |= {j: float(stats.binom.pmf(j, count, beta)) for j in range(k, count + 1)}
            outcome = {
                (*cells_before, (code, j)) if j else cells_before: x * y
                for (cells_before, x), (j, y) in itertools.product(outcome.items(), chances.items())
            }
        return outcome

    @property
    def events(self) -> list[Event]:
        return [self.release]


def test_a_sample_of_whole_households_costs_what_a_sample_of_rows_does() -> None:
    law = make_law(DrawnHouseholds, FIXED, GeometricCounts(1, 1.0))
    usage = law.compute_usage(list_neighbor_people(HOUSEHOLDS[1:3], 4))
    assert 0.5 < usage <= 1 + 1e-9


def test_every_published_household_agrees_with_k_of_the_input() -> None:
    k = 2
    law, fewest = make_law(LinkedLaw, FIXED, GeometricCounts(1, 1.0), k), set()
    for size in range(1, 5):
        for people in itertools.combinations_with_replacement(HOUSEHOLDS, size):
            for bounded, _ in list_bounded(people, 2):
                true = Counter(find_type(FIXED, x, (0, 0)) for x in bounded)
                for rows in law.show_tables(bounded, (0, 0)):
                    fewest |= {true[members] for _, members in rows}
    assert min(fewest) == k


def test_types_are_multisets_of_the_labels_of_people() -> None:
    draws = np.random.default_rng(1)
    problem = PeopleProblem((TWO, THREE), Lattice((0, 0), (1, 1)), RAMPS, rows=4)
    for _ in range(30):
        people = tuple(
            make_household(int(draws.integers(2)), *draws.integers(0, 3, draws.integers(1, 5)))
            for _ in range(draws.integers(1, 40))
        )
        for node in itertools.product((0, 1), (0, 1)):
            table = make_members(problem, people, node)
            by_type = dict(zip(list_types(table), table.types.counts.tolist(), strict=True))
            assert by_type == Counter(find_type(problem, x, node) for x in people)
            by_region = table.select_columns(["region"])
            assert by_region.frequencies.total == len(people)
            assert table.frequencies.total == sum(map(len, people))


def test_keys_are_given_in_a_uniformly_random_order() -> None:
    people = (HOUSEHOLDS[1],) * 2 + (HOUSEHOLDS[3],) * 2
    types = make_members(FIXED, people, (0, 0)).types
    published = Frequencies(np.array([[0], [1]], np.int32), np.array([2, 2], np.int64))
    bits, tries = SeededRandomness(4), 6000
    orders = Counter(
        tuple(link_households(types, published, bits).households.tolist()) for _ in range(tries)
    )
    assert len(orders) == 6
    # A false alarm in one of 10,000 seeds; the seed is fixed.
    assert stats.chisquare(list(orders.values())).pvalue > 1e-4


class PeopleCounted(LinkedLaw):
    """People are counted instead of households: a type is drawn by its number of people."""

    def count_types(self, table: HouseholdMembers) -> Counts:
        return table.types.counts * table.types.sizes


class KeysOfTheInput(LinkedLaw):
    """Keys follow the order of the input: published households stand as they were read."""

    def give_keys(
        self, table: HouseholdMembers, published: Frequencies, people: People, node: Node
    ) -> Rows:
        left = dict(zip(published.codes[:, 0].tolist(), published.counts.tolist(), strict=True))
        numbers = {kind: number for number, kind in enumerate(list_types(table))}
        rows = []
        for household in people:
            kind = find_type(self.problem, household, node)
            if left.get(numbers[kind], 0) > 0:
                left[numbers[kind]] -= 1
                rows.append(kind)
        names = list_types(table)
        rows += [names[number] for number, more in left.items() for _ in range(more)]
        return {tuple(rows): 1.0}


class KeysKept(LinkedLaw):
    """The key of a household is that of the input: its number there, where its type is shown."""

    def give_keys(
        self, table: HouseholdMembers, published: Frequencies, people: People, node: Node
    ) -> Rows:
        visible = {list_types(table)[number] for number in published.codes[:, 0].tolist()}
        kinds = [find_type(self.problem, household, node) for household in people]
        keys = tuple((number, kind) for number, kind in enumerate(kinds) if kind in visible)
        outcome = super().give_keys(table, published, people, node)
        return {(*key, keys): chance for key, chance in outcome.items()}


class MembersApart(LinkedLaw):
    """People are dropped one by one: a row is shown where its own group is, by its own count."""

    def show_tables(self, people: People, node: Node) -> Rows:
        if not people:
            return {(): 1.0}
        table = make_members(self.problem, people, node)
        rows = tuple(
            ((number,), int(count)) for number, count in enumerate(table.frequencies.counts)
        )
        labels = list(map(tuple, table.frequencies.codes.tolist()))
        outcome: Rows = {}
        for drawn_rows, chance in self.show_cells(rows).items():
            visible = {labels[code[0]] for code, _ in drawn_rows}
            households = tuple(
                sorted(tuple(row for row in find_type(self.problem, household, node)
                             if row in visible) for household in people)
            )  # fmt: skip
            outcome[households] = outcome.get(households, 0.0) + chance
        return outcome


EVENT = GeometricCounts(1, 1.0)
PAIRS = list(list_neighbor_people(HOUSEHOLDS[1:3], 4))


@pytest.mark.parametrize("planted", [PeopleCounted, KeysKept, MembersApart])
def test_planted_faults_are_not_covered(planted: type[LinkedLaw]) -> None:
    assert make_law(planted, FIXED, EVENT).compute_usage(PAIRS) > 1.02
    assert make_law(LinkedLaw, FIXED, EVENT).compute_usage(PAIRS) <= 1 + 1e-9


def test_keys_that_follow_the_order_of_the_input_are_not_covered() -> None:
    pairs = list(list_ordered_neighbors(HOUSEHOLDS[1:3], 3))
    assert make_law(KeysOfTheInput, FIXED, EVENT).compute_usage(pairs) > 1.02
    assert make_law(LinkedLaw, FIXED, EVENT).compute_usage(pairs) <= 1 + 1e-9


def test_k_counted_in_people_would_publish_a_single_household() -> None:
    people: People = (make_household(0, 1, 1, 1),)
    law, planted = (
        make_law(kind, THREE_PEOPLE, GeometricCounts(1, 1.0), 2)
        for kind in (LinkedLaw, PeopleCounted)
    )
    assert set(law.show_tables(people, (0, 0))) == {()}
    assert len(planted.show_tables(people, (0, 0))) > 1


class FinerSearch(LinkedLaw):
    """The search has a quarter of the noise that it needs."""

    @property
    def search_rate(self) -> Any:
        return super().search_rate * 4


def test_a_search_with_too_little_noise_is_not_covered() -> None:
    pairs = list(list_neighbor_people([HOUSEHOLDS[1], HOUSEHOLDS[3]], 4))
    accountant = make_law(LinkedLaw, CHOSEN, EVENT)
    assert accountant.compute_usage(pairs) <= 1 + 1e-9
    planted = make_law(FinerSearch, CHOSEN, EVENT)
    epsilon = 0.3
    claimed = Accountant(planted.events).delta(epsilon=epsilon)
    worst = max(
        max(compute_divergence(planted(p), planted(q), epsilon) for p, q in (pair, pair[::-1]))
        for pair in pairs
    )
    assert worst > claimed
