"""People by the tuples of their rows: how many *people* have a tuple, at any levels.

Numbers of people do not roll up by sums: two rows of one person may become one tuple. So the set of
tuples of each person is kept, and people are counted again whenever tuples are merged.

Where rows are counted, of which at most so many of one person count in a tuple, a set names a tuple
as often as the person counts there. That is enough at any levels: of the rows of a person in merged
tuples the same number counts, whether they were cut to that number before or not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Codes, Counts, Members, Places
from incrowd.codes.counted_table import CountedTable
from incrowd.codes.frequency import Frequencies, number_tuples

_COMPARED = 6  # so many tuples of a person are compared with each other, more are sorted
_NUMBERED = 2**62
_DENSEST = 1 << 22  # so many tuples are looked up in place


@dataclass(frozen=True, eq=False)
class PersonSets:
    """People by the set of tuples that their rows have.

    Each part has people with equally many tuples: a matrix with a row for each set, which names its
    tuples by their places, and how many people have that set. ``tuples`` is how many places there
    are. ``per_group`` is how often a person counts in one tuple at most.
    """

    tuples: int
    parts: tuple[tuple[Places, Counts], ...]
    per_group: int = 1

    @cached_property
    def counts(self) -> Counts:
        """How many people have each tuple; or how many of their rows count there."""
        counts = np.zeros(self.tuples, dtype=np.int64)
        for places, people in self.parts:
            for column in places.T:
                counts += _sum_people(column, people, self.tuples)
        return counts

    @property
    def people(self) -> int:
        """The number of people."""
        return sum(int(people.sum()) for _, people in self.parts)

    def count_once(self, keys: npt.NDArray[np.int64]) -> Counts:
        """Return how many people count at each tuple if they count once per key.

        ``keys`` has the key of each tuple. The sum over all tuples of one key is the number of
        people who have that key; or of their rows that count there, up to ``per_group`` of each.
        """
        counts = self.counts.copy()
        for places, people in self.parts:
            if places.shape[1] == 1:
                continue
            is_beyond = _find_beyond(keys[places], self.per_group)
            for column, repeats in zip(places.T, is_beyond.T, strict=True):
                if repeats.any():
                    counts -= _sum_people(column[repeats], people[repeats], self.tuples)
        return counts

    def count_by_key(self, keys: npt.NDArray[np.int64], size: int) -> Counts:
        """Return how many people have each key, for keys of the tuples from 0 to ``size`` - 1."""
        return _sum_people(keys, self.count_once(keys), size)

    def list_entries(self) -> tuple[Places, Members, Counts]:
        """Return for each tuple of each set: the tuple, a number of the set, and its people."""
        tuples, members, numbers, first = [], [], [], 0
        for places, people in self.parts:
            width = places.shape[1]
            tuples.append(places.ravel())
            members.append(first + np.repeat(np.arange(len(places)), width))
            numbers.append(np.repeat(people, width))
            first += len(places)
        if not tuples:
            empty = np.zeros(0, dtype=np.int64)
            return empty, empty, empty
        return np.concatenate(tuples), np.concatenate(members), np.concatenate(numbers)

    def merge(self, places: Places, tuples: int) -> PersonSets:
        """Return the same people after tuples were merged: ``places`` has the new one of each."""
        merged: dict[int, list[tuple[Places, Counts]]] = {}
        for old, people in self.parts:
            new = np.sort(places[old], axis=1)
            is_counted = np.ones(new.shape, dtype=bool)
            is_counted[:, self.per_group :] = new[:, self.per_group :] != new[:, : -self.per_group]
            sizes = is_counted.sum(axis=1)
            for size in np.unique(sizes).tolist():
                chosen = sizes == size
                sets = new[chosen][is_counted[chosen]].reshape(-1, size)
                merged.setdefault(size, []).append((sets, people[chosen]))
        parts = tuple(_merge_equal_sets(merged[size], tuples) for size in sorted(merged))
        return replace(self, tuples=tuples, parts=parts)


def group_by_person(
    members: Members, places: Places, tuples: int, *, per_group: int = 1
) -> PersonSets:
    """Return people by their sets of tuples, from the person and the tuple of each row."""
    if (int(members.max(initial=0)) + 1) * tuples < _NUMBERED:
        keys = np.sort(members * tuples + places)
        is_used = np.ones(len(keys), dtype=bool)
        is_used[per_group:] = keys[per_group:] != keys[:-per_group]
        members, places = np.divmod(keys[is_used], tuples)
    else:
        order = np.lexsort((places, members))
        members, places = members[order], places[order]
        is_used = np.ones(len(members), dtype=bool)
        is_used[per_group:] = (members[per_group:] != members[:-per_group]) | (
            places[per_group:] != places[:-per_group]
        )
        members, places = members[is_used], places[is_used]
    starts = np.flatnonzero(np.append(True, members[1:] != members[:-1])[: len(members)])
    sizes = np.diff(starts, append=len(members))
    parts = []
    for size in np.unique(sizes).tolist():
        sets = places[starts[sizes == size][:, None] + np.arange(size)]
        parts.append(_merge_equal_sets([(sets, np.ones(len(sets), dtype=np.int64))], tuples))
    return PersonSets(tuples, tuple(parts), per_group)


def _sum_people(places: Places, people: Counts, tuples: int) -> Counts:
    """Return the sum of people at each place; exact below 2**53."""
    return np.bincount(places, weights=people, minlength=tuples).astype(np.int64)


def _find_beyond(keys: npt.NDArray[np.int64], times: int) -> npt.NDArray[np.bool_]:
    """Return for each row of a matrix which of its keys stand so many times further left in it."""
    width = keys.shape[1]
    is_beyond = np.zeros(keys.shape, dtype=bool)
    if width <= _COMPARED:
        for at in range(times, width):
            before = np.zeros(len(keys), dtype=np.int8)
            for other in range(at):
                before += keys[:, at] == keys[:, other]
            is_beyond[:, at] = before >= times
        return is_beyond
    order = np.argsort(keys, axis=1, kind="stable")
    in_order = np.take_along_axis(keys, order, axis=1)
    is_repeat = np.zeros(keys.shape, dtype=bool)
    is_repeat[:, times:] = in_order[:, times:] == in_order[:, :-times]
    np.put_along_axis(is_beyond, order, is_repeat, axis=1)
    return is_beyond


def _merge_equal_sets(parts: Sequence[tuple[Places, Counts]], tuples: int) -> tuple[Places, Counts]:
    """Return sets of one size, each once, with the people of all; as they are if they are wide."""
    sets = np.concatenate([part for part, _ in parts])
    people = np.concatenate([number for _, number in parts])
    width = sets.shape[1]
    if width == 1:
        counts = _sum_people(sets[:, 0], people, tuples)
        places = np.flatnonzero(counts)
        return places[:, None], counts[places]
    if math.pow(tuples, width) >= _NUMBERED:
        return sets, people
    numbers = np.zeros(len(sets), dtype=np.int64)
    for column in sets.T:
        numbers = numbers * tuples + column
    order = np.argsort(numbers)
    starts = np.flatnonzero(np.append(True, np.diff(numbers[order]) > 0)[: len(order)])
    return sets[order[starts]], np.add.reduceat(people[order], starts)


@dataclass(frozen=True, eq=False)
class PeopleTable(CountedTable):
    """A table whose frequencies count people: each person once per tuple, or a few rows of each.

    ``sets`` are aligned with the tuples of ``frequencies``. Rolled up, selected or merged, people
    are counted again.
    """

    sets: PersonSets

    @property
    def people(self) -> int:
        """The number of people in the table."""
        return self.sets.people

    def select_columns(self, names: Sequence[str]) -> PeopleTable:
        """Return the tuples of some of the columns."""
        places = [self.names.index(name) for name in names]
        merged = self._merge(self.frequencies.codes[:, places])
        return PeopleTable(
            tuple(names),
            tuple(self.hierarchies[at] for at in places),
            tuple(self.levels[at] for at in places),
            merged.frequencies,
            merged.sets,
        )

    @property
    def plain(self) -> CountedTable:
        """The counts alone, of people by the tuples as they are."""
        return CountedTable(self.names, self.hierarchies, self.levels, self.frequencies)

    def _map_codes(self, maps: Sequence[Codes]) -> Self:
        columns = [lookup[self.frequencies.codes[:, at]] for at, lookup in enumerate(maps)]
        return self._merge(np.column_stack(columns).astype(np.int32))

    def _merge(self, codes: Codes) -> Self:
        """Return the table with new codes of its tuples; equal ones are merged."""
        codes, places = merge_codes(codes)
        sets = self.sets.merge(places, len(codes))
        return replace(self, frequencies=Frequencies(codes, sets.counts), sets=sets)


def merge_codes(codes: Codes) -> tuple[Codes, Places]:
    """Return the distinct tuples in ascending order, and for each tuple its place among them."""
    numbers = number_tuples(codes)
    size = int(numbers.max(initial=-1)) + 1
    if size > max(_DENSEST, 2 * len(numbers)):
        _, starts, places = np.unique(numbers, return_index=True, return_inverse=True)
        return codes[starts], places.astype(np.int64)
    starts = np.full(size, -1, dtype=np.int64)
    starts[numbers] = np.arange(len(numbers))
    is_met = starts >= 0
    return codes[starts[is_met]], (np.cumsum(is_met) - 1)[numbers]
