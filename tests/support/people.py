"""People with several rows, for enumerations: a person is a tuple of rows."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from support.search_law import Cells, SearchProblem, Table

from incrowd.anonymize.lattice import Node, Rollups
from incrowd.anonymize.person_rollups import PeopleRollups
from incrowd.codes.person_sets import group_by_person, merge_codes

Person = Table
People = tuple[Person, ...]


@dataclass(frozen=True)
class PeopleProblem(SearchProblem):
    """A search whose cells count people, or rows of them; tables are given person by person."""

    rows: int = 2
    per_group: int = 1

    def make_rollups(self, table: Table) -> Rollups:
        return self.make_people_rollups((row,) for row in table)

    def make_people_rollups(self, people: Iterable[Person]) -> PeopleRollups:
        listed = [(number, row) for number, person in enumerate(people) for row in person]
        codes = np.array([row for _, row in listed], dtype=np.int32)
        distinct, places = merge_codes(codes.reshape(-1, len(self.hierarchies)))
        members = np.array([number for number, _ in listed], dtype=np.int64)
        sets = group_by_person(members, places, len(distinct), per_group=self.per_group)
        return PeopleRollups(self.hierarchies, distinct, sets)


def count_people_by_cell(
    problem: SearchProblem, people: People, node: Node, *, per_group: int = 1
) -> Cells:
    """The people of each cell of a node, by the definition; or up to so many rows of each."""
    counts: dict[tuple[int, ...], int] = {}
    for person in people:
        cells = Counter(
            tuple(
                int(hierarchy.groups[level][code])
                for hierarchy, level, code in zip(problem.hierarchies, node, row, strict=True)
            )
            for row in person
        )
        for cell, rows in cells.items():
            counts[cell] = counts.get(cell, 0) + min(rows, per_group)
    return tuple(sorted(counts.items()))


def list_bounded(people: People, rows: int) -> Iterator[tuple[People, float]]:
    """Every choice of at most so many rows of each person, and how likely it is."""
    choices = [list(itertools.combinations(person, min(rows, len(person)))) for person in people]
    weight = 1.0
    for choice in choices:
        weight /= len(choice)
    for chosen in itertools.product(*choices):
        yield chosen, weight


def list_neighbor_people(kinds: Iterable[Person], most: int) -> Iterator[tuple[People, People]]:
    """Every table of up to so many people of some kinds, beside itself without one of them."""
    listed = list(kinds)
    for size in range(1, most + 1):
        for people in itertools.combinations_with_replacement(listed, size):
            for person in dict.fromkeys(people):
                at = people.index(person)
                yield people, people[:at] + people[at + 1 :]
