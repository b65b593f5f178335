"""Households by everything that is known of them: their own tuple, and those of all their people.

The *type* of a household is the multiset of the tuples of its people, each of which has the columns
of the household, too. A household has one type, at any levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from incrowd.arrays import Counts, Places
from incrowd.codes.frequency import Frequencies
from incrowd.codes.person_sets import PeopleTable, PersonSets

HOUSEHOLD_KEY = "household_key"  # the column that links households and their people


@dataclass(frozen=True, eq=False)
class HouseholdMembers(PeopleTable):
    """People with the columns of their households; every used person counts.

    ``own_columns`` are those of the household. Selected by those alone, households count, each
    once.
    """

    own_columns: tuple[str, ...]

    @classmethod
    def from_people(cls, table: PeopleTable, own_columns: Sequence[str]) -> HouseholdMembers:
        """Return people who were counted by rows as those of households, with ``own_columns``."""
        return cls(
            table.names, table.hierarchies, table.levels, table.frequencies, table.sets,
            tuple(own_columns),
        )  # fmt: skip

    def select_columns(self, names: Sequence[str]) -> PeopleTable:
        """Return the tuples of some of the columns: of people or, of their own, of households."""
        if not set(names) <= set(self.own_columns):
            return super().select_columns(names)
        once = PeopleTable(
            self.names, self.hierarchies, self.levels, self.frequencies,
            replace(self.sets, per_group=1),
        )  # fmt: skip
        return once.select_columns(names)

    @cached_property
    def types(self) -> HouseholdTypes:
        """The households by their types."""
        return list_household_types(self.sets)


@dataclass(frozen=True, eq=False)
class HouseholdTypes:
    """The distinct types of households, and how many households have each.

    ``members`` has the tuples of the people of all types, one type after the other, by their
    places; ``starts`` says where each type begins.
    """

    members: Places
    starts: Places
    counts: Counts

    @property
    def sizes(self) -> Counts:
        """The number of people of each type."""
        sizes: Counts = np.diff(self.starts, append=len(self.members))
        return sizes

    @property
    def first_members(self) -> Places:
        """The tuple of one of the people of each type."""
        return self.members[self.starts]

    @property
    def frequencies(self) -> Frequencies:
        """The types as tuples of one number each, with the households of each."""
        numbers = np.arange(len(self.counts), dtype=np.int32)[:, None]
        return Frequencies(numbers, self.counts)

    def list_members(self, types: Places) -> Places:
        """Return the tuples of the people of households of some types, one after the other."""
        sizes = self.sizes[types]
        ends = np.cumsum(sizes)
        within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - sizes, sizes)
        places: Places = self.members[np.repeat(self.starts[types], sizes) + within]
        return places


def list_household_types(sets: PersonSets) -> HouseholdTypes:
    """Return the types of households whose people are the rows of a person in ``sets``.

    ``sets`` must name a tuple as often as people of the household have it: counts of rows, with as
    many in a group as there are rows.
    """
    members, sizes, counts = [], [], []
    for places, households in sets.parts:
        types, number = _merge_equal_rows(places, households, sets.tuples)
        members.append(types.ravel())
        sizes.append(np.full(len(types), types.shape[1], dtype=np.int64))
        counts.append(number)
    if not counts:
        empty = np.zeros(0, dtype=np.int64)
        return HouseholdTypes(empty, empty, empty)
    size = np.concatenate(sizes)
    return HouseholdTypes(
        np.concatenate(members), np.cumsum(size) - size, np.concatenate(counts).astype(np.int64)
    )


def _merge_equal_rows(rows: Places, households: Counts, tuples: int) -> tuple[Places, Counts]:
    """Return the distinct rows of a matrix, in ascending order, with the households of each.

    Rows hold places in ascending order, so equal multisets are equal rows.
    """
    numbers = rows[:, 0]
    for column in rows.T[1:]:
        _, numbers = np.unique(numbers, return_inverse=True)  # below the number of rows again
        numbers = numbers.astype(np.int64) * tuples + column
    _, starts, places = np.unique(numbers, return_index=True, return_inverse=True)
    counts = np.bincount(places, weights=households, minlength=len(starts))
    return rows[starts], counts.astype(np.int64)
