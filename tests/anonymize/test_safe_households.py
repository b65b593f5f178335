"""Households and their people in two tables, enumerated over all neighbors that differ in one
household; planted faults are not covered by what is charged.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from support.people import People, PeopleProblem, Person, list_bounded, list_neighbor_people
from support.people_law import PeopleLaw
from support.search_law import THREE, TWO, Cells, Distribution

from incrowd.anonymize.lattice import Lattice, Node
from incrowd.anonymize.safe_households import select_households
from incrowd.anonymize.safe_search import make_ramp
from incrowd.codes.frequency import Frequencies
from incrowd.codes.person_sets import PeopleTable, group_by_person, merge_codes
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.draw_parameters import CountsEvent
from incrowd.privacy.events import (
    Composition,
    Event,
    GaussianCounts,
    GeometricCounts,
    PersonCounts,
    Selection,
)
from incrowd.privacy.split import split_for_counts

END = ((9,), 9)  # between the cells of two tables
RAMPS = (make_ramp(2, 1.0),)
FIXED = PeopleProblem((TWO, TWO), Lattice((0, 0), (0, 0)), RAMPS)
OWN_CHOSEN = PeopleProblem((TWO, TWO), Lattice((0, 0), (1, 0)), RAMPS)
THREE_PEOPLE = PeopleProblem((TWO, THREE), Lattice((0, 0), (0, 0)), RAMPS, rows=3)


def make_household(region: int, *people: int) -> Person:
    """A household: all of its rows have its own value in the first column."""
    return tuple((region, person) for person in people)


def count_households(problem: PeopleProblem, people: People, node: Node) -> PeopleTable:
    rows = [(number, row) for number, household in enumerate(people) for row in household]
    codes, places = merge_codes(np.array([row for _, row in rows], np.int32).reshape(-1, 2))
    members = np.array([number for number, _ in rows], np.int64)
    sets = group_by_person(members, places, len(codes))
    table = PeopleTable(
        ("region", "age"), problem.hierarchies, (0, 0), Frequencies(codes, sets.counts), sets
    )
    return table.roll_up(tuple(node))


class HouseholdLaw(PeopleLaw):
    """Both tables as one distribution; the people of a household are the rows of a "person"."""

    def select_own(self, people: People, node: Node) -> Cells:
        if not people:
            return ()
        table = select_households(count_households(self.problem, people, node), ["region"])
        pairs = zip(
            table.frequencies.codes.tolist(), table.frequencies.counts.tolist(), strict=True
        )
        return tuple((tuple(code), count) for code, count in pairs)

    def show_tables(self, people: People, node: Node) -> dict[Cells, float]:
        households = self.show_cells(self.select_own(people, node))
        both = itertools.product(
            households.items(), self.show_cells(self.count_cells(people, node)).items()
        )
        return {
            (*households_shown, END, *cells): x * y for (households_shown, x), (cells, y) in both
        }

    def __call__(self, people: People) -> Distribution:
        if people in self._known:
            return self._known[people]
        distribution: Distribution = {}
        for bounded, weight in self.bound_rows(people):
            choices = zip(self.problem.nodes, self.compute_choices(bounded), strict=True)
            for number, (node, share) in enumerate(choices):
                for cells, chance in self.show_tables(bounded, node).items():
                    key = number, cells
                    distribution[key] = distribution.get(key, 0.0) + weight * share * chance
        self._known[people] = distribution
        return distribution

    @property
    def events(self) -> list[Event]:
        people: Event = PersonCounts(self.event, self.problem.rows)
        if len(self.problem.nodes) > 1:
            people = Composition([Selection(float(self.epsilon)), people])
        return [self.event, people]


HOUSEHOLDS = [
    make_household(0, 0), make_household(0, 0, 1), make_household(0, 1, 1), make_household(1, 0, 1),
    make_household(0, 0, 0, 1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("problem", "event", "kinds", "most", "least"),
    [
        (FIXED, GeometricCounts(1, 1.0), HOUSEHOLDS, 4, 0.999),
        (FIXED, GaussianCounts(1, 1.5), HOUSEHOLDS[:3], 4, 0.999),
        (THREE_PEOPLE, GeometricCounts(1, 0.8), [make_household(0, 0, 1, 2)], 4, 0.999),
        (OWN_CHOSEN, GeometricCounts(1, 1.0), HOUSEHOLDS[:4], 3, 0.3),
    ],
)
def test_both_tables_stay_within_the_accounted_delta_and_reach_it(
    problem: PeopleProblem, event: CountsEvent, kinds: list[Person], most: int, least: float
) -> None:
    law = HouseholdLaw(problem, Fraction(1, 2), event, 1)
    assert least < law.compute_usage(list_neighbor_people(kinds, most)) <= 1 + 1e-9


def test_every_published_cell_of_either_table_has_k_households() -> None:
    law, k, fewest = HouseholdLaw(FIXED, Fraction(1, 2), GeometricCounts(1, 1.0), 2), 2, set()
    for size in range(1, 4):
        for people in itertools.combinations_with_replacement(HOUSEHOLDS, size):
            for bounded, _ in list_bounded(people, 2):
                households = dict(law.select_own(bounded, (0, 0)))
                cells = dict(law.count_cells(bounded, (0, 0)))
                for both in law.show_tables(bounded, (0, 0)):
                    at = both.index(END)
                    fewest |= {households[code] for code, _ in both[:at]}
                    fewest |= {cells[code] for code, _ in both[at + 1 :]}
    assert min(fewest) == k


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_budget_is_split_over_one_cell_and_as_many_as_there_are_people(rows: int) -> None:
    split = split_for_counts(epsilon=1.0, delta=1e-6, rows=rows, beside=1)
    (event,) = split.draws
    people = event if rows == 1 else PersonCounts(event, rows)  # type: ignore[arg-type]
    assert split.events == [event, people]
    assert Accountant(split.events).delta(epsilon=1.0) <= 1e-6
    same = Accountant([event] * (rows + 1)).delta(epsilon=1.0)
    assert Accountant(split.events).delta(epsilon=1.0) == same
    # One less of noise would not do.
    smaller = type(event)(event.r - 1, *list(vars(event).values())[1:])  # type: ignore[union-attr]
    assert Accountant([smaller] * (rows + 1)).delta(epsilon=1.0) > 1e-6


def test_a_search_is_charged_once_for_both_tables() -> None:
    split = split_for_counts(epsilon=1.0, delta=1e-6, selections=(0.05,), rows=2, beside=1)
    (event,) = split.draws
    people = Composition([Selection(0.05), PersonCounts(event, 2)])  # type: ignore[arg-type]
    assert split.events == [event, people]
    parameters = split.list_parameters(event)
    shared = {name: x for name, x in parameters.items() if name.startswith(("noise", "r"))}
    shared.pop("rows_per_person")
    assert split.split_beside.list_parameters(event) == shared
    assert (parameters["search_epsilon"], parameters["rows_per_person"]) == (0.05, 2.0)


class OnePersonCharged(HouseholdLaw):
    """The table of people is charged as if one person of a household were used."""

    @property
    def events(self) -> list[Event]:
        return [self.event, self.event]


class HouseholdsFree(HouseholdLaw):
    """The table of households is not charged."""

    @property
    def events(self) -> list[Event]:
        return [PersonCounts(self.event, self.problem.rows)]


class LinkKept(HouseholdLaw):
    """Each published row of people names the household it comes from, where that is published."""

    def show_tables(self, people: People, node: Node) -> dict[Cells, float]:
        linked: dict[Cells, float] = {}
        for both, chance in super().show_tables(people, node).items():
            at = both.index(END)
            first, second = ({code for code, _ in part} for part in (both[:at], both[at + 1 :]))
            keys = tuple(
                sorted((row, number) for number, household in enumerate(people)
                       for row in set(household) if row[:1] in first and row in second)
            )  # fmt: skip
            key = (*both, END, *keys)
            linked[key] = linked.get(key, 0.0) + chance
        return linked


@pytest.mark.parametrize("planted", [OnePersonCharged, HouseholdsFree, LinkKept])
def test_planted_faults_are_not_covered(planted: Callable[..., HouseholdLaw]) -> None:
    event, pairs = GeometricCounts(1, 1.0), list(list_neighbor_people(HOUSEHOLDS[:3], 4))
    assert planted(FIXED, Fraction(1, 2), event, 1).compute_usage(pairs) > 1.02
    assert HouseholdLaw(FIXED, Fraction(1, 2), event, 1).compute_usage(pairs) <= 1 + 1e-9


class PeopleCounted(HouseholdLaw):
    """k counts people: two of one household in one cell count twice."""

    def count_cells(self, people: People, node: Node) -> Cells:
        return super().count_cells(tuple((row,) for household in people for row in household), node)


def test_k_counted_in_people_would_publish_a_single_household() -> None:
    people: People = (make_household(0, 1, 1),)
    law, planted = (
        kind(FIXED, Fraction(1, 2), GeometricCounts(1, 1.0), 2)
        for kind in (HouseholdLaw, PeopleCounted)
    )
    assert set(law.show_tables(people, (0, 0))) == {(END,)}
    assert len(planted.show_tables(people, (0, 0))) > 1


def test_a_household_whose_people_differ_in_its_own_columns_is_refused() -> None:
    table = count_households(FIXED, (((0, 0), (1, 0)),), (0, 0))
    with pytest.raises(ValueError, match="differ in a column of the household"):
        select_households(table, ["region"])
