"""Neighboring tables of households that are published whole, for fixed levels.

A pair has many types of n households on the one side and of n - 1 on the other. The people of a
household are equal, as many as are used, so that a household and one of its people are told apart:
whoever counts people in place of households moves a count by that many. How many households are
shown of each type is read from the table of people. The claim of
:mod:`incrowd.evaluation.audit.pairs` holds: each type is drawn by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from incrowd.codes.frequency import Frequencies
from incrowd.codes.person_sets import PeopleTable, PersonSets
from incrowd.errors import IncrowdError
from incrowd.evaluation.audit.pairs import (
    CELLS,
    CellPair,
    Outcome,
    find_critical_size,
    find_likelier_draw,
    list_selections,
)
from incrowd.methods.base import MakeContext, Method
from incrowd.methods.fictional import make_fictional_table
from incrowd.privacy.events import GeometricCounts, SafeRelease
from incrowd.privacy.plan_counts import USUAL_K
from incrowd.spec.file import SpecFile
from incrowd.spec.model import PersonId
from incrowd.spec.release import SafeSpec

_PEOPLE = 200_000  # of one run, about
_HOUSEHOLDS = 5_000  # that are made up to find types


@dataclass(frozen=True, eq=False)
class HouseholdPair(CellPair):
    """Many types of n households with ``people`` equal people each."""

    people: int = 2

    @property
    def description(self) -> str:
        """What differs."""
        return (
            f"a type of {self.n} households of {self.people} equal people and the same of "
            f"{self.n - 1} ({len(self.counted.frequencies):,} such types per run)"
        )

    def run_once(self, method: Method, context: MakeContext, *, first: bool) -> Counter[Outcome]:
        """Return the households shown of each type; 0 if it is dropped."""
        table = self.counted
        number = len(table.frequencies)
        sizes = np.full(number, self.n if first else self.n - 1, dtype=np.int64)
        places = np.repeat(np.arange(number)[:, None], self.people, axis=1)
        sets = PersonSets(number, ((places, sizes),), self.people)
        household_table = PeopleTable(
            table.names, table.hierarchies, table.levels,
            Frequencies(table.frequencies.codes, sets.counts), sets,
        )  # fmt: skip
        households, people = method.make(household_table, context).products
        if isinstance(self.event, GeometricCounts) and households.parameters["r"] != self.event.r:
            return Counter()  # the coin fell on its other side
        return self._count_outcomes(people.shown.frequencies.counts // self.people)

    def describe_event(self, outcomes: Sequence[Outcome]) -> str:
        """Describe an event by how many households are shown of the type."""
        return super().describe_event(outcomes).replace(" rows of the cell", " households of it")


def make_household_pair(
    file: SpecFile, method: Method, delta: float, rng: np.random.Generator
) -> HouseholdPair:
    """Return the pair for households that are published whole, by levels that are fixed."""
    assert isinstance(file.spec.unit, PersonId)
    if any(list_selections(method.events)):
        raise IncrowdError(
            "An audit of linked households needs fixed levels. Set one level per column under "
            "`levels`."
        )
    share, event = find_likelier_draw(method)
    assert isinstance(file.spec.release, SafeSpec)
    is_sample = isinstance(event, SafeRelease)
    k = 0 if is_sample else file.spec.release.k or USUAL_K
    threshold = 0 if isinstance(event, SafeRelease) else event.r + k
    n, people = find_critical_size(event, k, delta / share), file.spec.unit.rows
    table = method.count(make_fictional_table(file, _HOUSEHOLDS, rng))
    assert isinstance(table, PeopleTable)
    merged = table.merge_labels()
    most = max(min(CELLS, _PEOPLE // (n * people)), 1)
    codes = merged.frequencies.codes[:most]
    cells = replace(merged.plain, frequencies=Frequencies(codes, np.ones(len(codes), np.int64)))
    return HouseholdPair(cells, n, event, threshold, share, people=people)
