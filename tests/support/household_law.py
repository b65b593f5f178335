"""Whole households with their people as one distribution: people are chosen, a scheme is chosen,
types are drawn, keys are given.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any

import mpmath
import numpy as np
import pytest
from support.exact import compute_choice_law
from support.people import People, PeopleProblem, Person
from support.people_law import PeopleLaw
from support.search_law import Distribution

from incrowd.anonymize import household_search, safe_linked_households
from incrowd.anonymize.lattice import Node
from incrowd.anonymize.safe_linked_households import LinkedRows, link_households
from incrowd.anonymize.safe_search import ChosenScheme
from incrowd.arrays import Counts
from incrowd.codes.frequency import Frequencies
from incrowd.codes.household_type import HouseholdMembers
from incrowd.codes.person_sets import PeopleTable, group_by_person, merge_codes
from incrowd.privacy.draw_parameters import CountsEvent
from incrowd.privacy.events import Event, Selection
from incrowd.privacy.randomness import Randomness, SeededRandomness

Type = tuple[tuple[int, ...], ...]
Rows = dict[Any, float]
_FEW = 3  # households that are given keys in every order


def make_household(region: int, *people: int) -> Person:
    """A household: all of its rows have its own value in the first column."""
    return tuple((region, person) for person in people)


def make_members(problem: PeopleProblem, people: People, node: Node) -> HouseholdMembers:
    """The table of households as the code counts it, at the levels of a node."""
    rows = [(number, row) for number, household in enumerate(people) for row in household]
    codes, places = merge_codes(np.array([row for _, row in rows], np.int32).reshape(-1, 2))
    members = np.array([number for number, _ in rows], np.int64)
    most = max((len(household) for household in people), default=1)
    sets = group_by_person(members, places, len(codes), per_group=most)
    table = PeopleTable(
        ("region", "age"), problem.hierarchies, (0, 0), Frequencies(codes, sets.counts), sets
    )
    return HouseholdMembers.from_people(table, ["region"]).roll_up(tuple(node))


def find_type(problem: PeopleProblem, household: Person, node: Node) -> Type:
    """The type of a household, by its definition."""
    levels = list(zip(problem.hierarchies, node, strict=True))
    rows = (
        tuple(
            int(tree.groups[level][code]) for (tree, level), code in zip(levels, row, strict=True)
        )
        for row in household
    )
    return tuple(sorted(rows))


def list_types(table: HouseholdMembers) -> list[Type]:
    """The types of a table, in the order of their numbers."""
    types, codes = table.types, table.frequencies.codes
    return [
        tuple(sorted(tuple(codes[place]) for place in types.list_members(np.array([number]))))
        for number in range(len(types.counts))
    ]


class LinkedLaw(PeopleLaw):
    """Both linked tables: for each key, from 1 on, the rows of the household and of its people."""

    link: Callable[..., LinkedRows] = staticmethod(link_households)

    @cached_property
    def rows(self) -> int:
        """The most people of a household that are used."""
        return self.problem.rows

    def count_types(self, table: HouseholdMembers) -> Counts:
        """What is counted of each type: households."""
        return table.types.counts

    def give_keys(
        self, table: HouseholdMembers, published: Frequencies, people: People, node: Node
    ) -> Rows:
        """Every outcome of the keys, by every order that the bits may name.

        Of many households one order stands for all: they are equally likely whatever the table is.
        """
        total = published.total
        outcome: Rows = {}
        orders = list(itertools.permutations(range(total))) if total <= _FEW else [range(total)]
        codes = table.frequencies.codes
        with pytest.MonkeyPatch.context() as patch:
            for order in orders:
                patch.setattr(
                    safe_linked_households, "sample_permutation",
                    lambda _count, _bits, x=order: np.array(x, np.int64),
                )  # fmt: skip
                rows = type(self).link(table.types, published, SeededRandomness(0))
                key = tuple(
                    (
                        int(codes[first, 0]),
                        tuple(sorted(map(tuple, codes[rows.people[rows.keys == number]].tolist()))),
                    )
                    for number, first in enumerate(rows.households, 1)
                )
                outcome[key] = outcome.get(key, 0.0) + 1 / len(orders)
        return outcome

    def show_tables(self, people: People, node: Node) -> Rows:
        if not people:
            return {(): 1.0}
        table = make_members(self.problem, people, node)
        cells = tuple(((n,), int(count)) for n, count in enumerate(self.count_types(table)))
        result: Rows = {}
        for drawn_cells, chance in self.show_cells(cells).items():
            published = Frequencies(
                np.array([code for code, _ in drawn_cells], np.int32).reshape(-1, 1),
                np.array([count for _, count in drawn_cells], np.int64),
            )
            for key, share in self.give_keys(table, published, people, node).items():
                result[key] = result.get(key, 0.0) + chance * share
        return result

    def compute_choices(self, people: People) -> list[float]:
        scores = tuple(score_types(self.problem, people, node) for node in self.problem.nodes)
        if scores not in self._choices:
            self._choices[scores] = compute_choice_law(list(scores), self.search_rate)
        return self._choices[scores]

    @cached_property
    def search_rate(self) -> mpmath.mpf:
        """epsilon / sensitivity as the search itself asks for its noise."""
        request: list[tuple[int, Fraction]] = []

        def none(count: int, *, sensitivity: int, epsilon: Fraction, bits: Randomness) -> Counts:
            request.append((sensitivity, epsilon))
            return np.zeros(count, dtype=np.int64)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(household_search, "sample_one_sided_noise", none)
            run_household_search(self.problem, (make_household(0, 0),), self.epsilon)
        ((sensitivity, used),) = request
        return mpmath.mpf(used.numerator) / used.denominator / sensitivity

    def __call__(self, people: People) -> Distribution:
        if people in self._known:
            return self._known[people]
        distribution: dict[Any, float] = {}
        for bounded, weight in self.bound_rows(people):
            choices = zip(self.problem.nodes, self.compute_choices(bounded), strict=True)
            for number, (node, share) in enumerate(choices):
                for rows, chance in self.show_tables(bounded, node).items():
                    key = number, rows
                    distribution[key] = distribution.get(key, 0.0) + weight * share * chance
        self._known[people] = distribution
        return distribution

    @property
    def events(self) -> list[Event]:
        event: Event = self.event
        return [Selection(float(self.epsilon)), event] if len(self.problem.nodes) > 1 else [event]


def run_household_search(
    problem: PeopleProblem, people: People, epsilon: Fraction, *, seed: int = 0
) -> ChosenScheme:
    return household_search.search_household_scheme(
        make_members(problem, people, (0, 0)), problem.lattice, problem.ramps, epsilon=epsilon,
        power=problem.power, weights=problem.shares, bits=SeededRandomness(seed),
    )  # fmt: skip


def score_types(problem: PeopleProblem, people: People, node: Node) -> int:
    """The score of a node by its definition, with the weights of rows that the other search has."""
    (ramp,) = problem.ramps
    detail = problem.make_detail((((0,) * len(problem.hierarchies)),))
    total = 0
    for rows, count in Counter(find_type(problem, x, node) for x in people).items():
        weights = detail.weigh_cells(np.array(rows, np.int32), node).tolist()
        psi = int(ramp.compute_psi(np.array([count], np.int64))[0])
        total += sum(weights) // len(weights) * psi
    return total


def list_ordered_neighbors(kinds: list[Person], most: int) -> Iterator[tuple[People, People]]:
    """Every table in every order, beside itself without one household."""
    for size in range(1, most + 1):
        for people in itertools.product(kinds, repeat=size):
            for at in range(size):
                yield people, people[:at] + people[at + 1 :]


def make_law(
    law: type[LinkedLaw], problem: PeopleProblem, event: CountsEvent, k: int = 1
) -> LinkedLaw:
    return law(problem, Fraction(1, 2), event, k)
