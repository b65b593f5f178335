"""Mondrian: strict multidimensional partitioning (LeFevre and others).

The table is one class. A class is cut in two or more along the column in which it is widest,
if every part keeps at least k rows (and satisfies the rules on sensitive values, for which one
cut of each column is tried); if that column allows no cut, the next widest is tried; a class
that allows none is done. Every
distinct tuple falls whole on one side, so equal people are never told apart.

An ordered column is cut between two of its values; a tree is cut into the parts of the
smallest group that holds the class. Parts of fewer than k rows stay together, and the
smallest of the others joins them where even together they are too few.

Where people may have several rows, every part keeps the rows of at least k different people; for
that, too, one cut of each column is tried.

All classes of one generation are cut at once, by arrays. This is k-anonymity and no more:
where the cuts fall depends on single people, and so do the boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Codes, Counts, Floats, Members, Places
from incrowd.codes.axis import Axis
from incrowd.codes.frequency import pack_columns
from incrowd.codes.person_sets import PersonSets
from incrowd.measure.diversity import SensitiveColumn, check_rules

Cut = Literal["balanced", "median"]


def partition_points(
    axes: Sequence[Axis],
    points: Codes,
    counts: Counts,
    *,
    k: int,
    weights: Floats | None = None,
    cut: Cut = "balanced",
    sensitive_columns: Sequence[SensitiveColumn] = (),
    people: PersonPoints | None = None,
) -> Members:
    """Return the class of each point, numbered from 0; all points in one if they are too few.

    ``cut`` says where ordered columns are cut: ``balanced`` makes the parts as even as
    possible, ``median`` keeps the median and all below it on one side. ``weights`` make
    columns count more in what is widest. ``people`` has those whose number k means, where it does
    not mean rows.
    """
    shares = np.ones(len(axes)) if weights is None else weights
    partition = _Partition(list(axes), points, counts, k, shares, cut, sensitive_columns)
    partition.people = people
    while len(partition.starts):
        partition.cut_classes()
    return partition.members


@dataclass(frozen=True, eq=False)
class PersonPoints:
    """People by their points: the numbers of people with each set of points, and where points are.

    ``starts`` is where the entries of each point begin, with one more for the end; ``members`` has
    the number of the set of each entry, ``counts`` the people who have it.
    """

    starts: Places
    members: Members
    counts: Counts

    def group_by_class(self, classes: Members, number: int) -> list[dict[int, int]]:
        """Return for each class of points the sets of people in it, with their numbers."""
        listed: list[dict[int, int]] = [{} for _ in range(number)]
        at = np.repeat(classes, np.diff(self.starts)).tolist()
        for place, member, count in zip(
            at, self.members.tolist(), self.counts.tolist(), strict=True
        ):
            listed[place][member] = count
        return listed


def make_person_points(sets: PersonSets, owner: Places) -> PersonPoints:
    """Return people by points, where several points may belong to one tuple: their owner."""
    tuples, members, counts = sets.list_entries()
    order = np.argsort(tuples, kind="stable")
    starts = np.searchsorted(tuples[order], np.arange(sets.tuples + 1))
    lengths = np.diff(starts)[owner]
    places = order[_concatenate_ranges(starts[owner], lengths)]
    return PersonPoints(np.append(0, np.cumsum(lengths)), members[places], counts[places])


@dataclass(eq=False)
class _Generation:
    """The classes being cut: where each begins in the order of rows, how it reaches, its rows."""

    low: Codes
    high: Codes
    totals: Counts
    lengths: Places


class _Partition:
    """The state: points in the order of their classes, of which finished ones drop out."""

    def __init__(
        self,
        axes: list[Axis],
        points: Codes,
        counts: Counts,
        k: int,
        shares: Floats,
        cut: Cut,
        sensitive_columns: Sequence[SensitiveColumn],
    ) -> None:
        self._axes, self._k, self._shares, self._cut = axes, k, shares, cut
        self._protected = sensitive_columns
        self.people: PersonPoints | None = None
        self._columns = [np.ascontiguousarray(column) for column in points.T]
        self._counts = counts
        self._all_counts = counts
        self._rows = np.arange(len(counts))
        self.starts = np.zeros(min(len(counts), 1), dtype=np.int64)
        self.members = np.zeros(len(counts), dtype=np.int64)
        self._finished = 0

    def cut_classes(self) -> None:
        """Cut every class once; those that allow no cut are finished."""
        generation = self._measure_classes()
        widths = np.column_stack(
            [
                np.where(
                    generation.low[:, at] < generation.high[:, at],
                    share * axis.compute_cost(generation.low[:, at], generation.high[:, at]),
                    -1.0,
                )
                for at, (axis, share) in enumerate(zip(self._axes, self._shares, strict=True))
            ]
        )
        preference = np.argsort(-widths, axis=1, kind="stable")
        part = np.zeros(len(self._rows), dtype=np.int64)
        pending = generation.totals >= 2 * self._k
        for attempt in range(len(self._axes)):
            for at in range(len(self._axes)):
                places = np.flatnonzero(
                    pending & (preference[:, attempt] == at) & (widths[:, at] >= 0)
                )
                if len(places):
                    pending[places[self._try_column(at, places, generation, part)]] = False
        self._divide_classes(
            generation, part, is_finished=pending | (generation.totals < 2 * self._k)
        )

    def _measure_classes(self) -> _Generation:
        starts = self.starts
        return _Generation(
            np.column_stack([np.minimum.reduceat(column, starts) for column in self._columns]),
            np.column_stack([np.maximum.reduceat(column, starts) for column in self._columns]),
            np.add.reduceat(self._counts, starts),
            np.diff(np.append(starts, len(self._rows))),
        )

    def _try_column(
        self, at: int, classes: Places, generation: _Generation, part: Places
    ) -> npt.NDArray[np.bool_]:
        """Cut some classes along a column, fill in the parts, and return which could be cut."""
        lengths = generation.lengths[classes]
        places = _concatenate_ranges(self.starts[classes], lengths)
        group = np.repeat(np.arange(len(classes)), lengths)
        column, counts = self._columns[at][places], self._counts[places]
        low, high, totals = (
            generation.low[classes, at],
            generation.high[classes, at],
            generation.totals[classes],
        )
        if self._axes[at].ordered:
            parts, good = self._cut_between(column, counts, group, low, high, totals)
        else:
            levels = self._axes[at].find_levels(low, high)
            codes = self._axes[at].find_parts(column, levels[group])
            parts, good = _cut_by_code(codes, counts, group, totals, self._k)
        if self._protected and good.any():
            good &= self._check_rules(places, counts, group, parts, len(classes))
        if self.people is not None and good.any():
            good &= self._check_people(places, group, parts, len(classes))
        fill = good[group]
        part[places[fill]] = parts[fill]
        return good

    def _cut_between(
        self,
        column: Codes,
        counts: Counts,
        group: Places,
        low: Codes,
        high: Codes,
        totals: Counts,
    ) -> tuple[Places, npt.NDArray[np.bool_]]:
        """Cut between two values: where each point falls, and which classes could be cut."""
        span = (high - low).astype(np.int64) + 1
        base = np.append(0, np.cumsum(span))
        cells = base[group] + (column - low[group])
        if base[-1] > 8 * len(cells) + (1 << 16):  # far more values than points: by those met
            met, cells = np.unique(cells, return_inverse=True)
            base = np.searchsorted(met, base)
        cell_rows = np.bincount(cells, weights=counts, minlength=int(base[-1]))
        upto = np.cumsum(cell_rows)
        before = np.append(0.0, upto)[base[:-1]]
        owner = np.repeat(np.arange(len(totals)), np.diff(base))
        left = upto - before[owner]
        right = totals[owner] - left
        even = np.minimum(left, right)
        if self._cut == "median":
            even = np.where(2 * left >= totals[owner], even, -1.0)
            even = np.where(_keep_first_marks(even >= 0, base[:-1]), even, -1.0)
        best = np.maximum.reduceat(even, base[:-1])
        where = np.flatnonzero(even == best[owner])
        cut_cells = where[np.searchsorted(where, base[:-1])]
        return (cells > cut_cells[group]).astype(np.int64), best >= self._k

    def _check_rules(
        self, places: Places, counts: Counts, group: Places, parts: Places, groups: int
    ) -> npt.NDArray[np.bool_]:
        """Return which classes have only parts that satisfy the rules."""
        _, at = np.unique(group * (int(parts.max()) + 1) + parts, return_inverse=True)
        number = int(at.max()) + 1
        rows = self._rows[places]
        part_columns = [
            SensitiveColumn(column.codes[rows], column.overall, column.rules)
            for column in self._protected
        ]
        good = check_rules(at, counts, classes=number, sensitive_columns=part_columns)
        bad = np.zeros(groups, dtype=bool)
        bad[group[~good[at]]] = True
        return ~bad

    def _check_people(
        self, places: Places, group: Places, parts: Places, groups: int
    ) -> npt.NDArray[np.bool_]:
        """Return which classes have only parts of at least k people."""
        assert self.people is not None
        width = int(parts.max()) + 1
        part_keys, at = np.unique(group * width + parts, return_inverse=True)
        points = self._rows[places]
        starts, lengths = self.people.starts[points], np.diff(self.people.starts)[points]
        entries = _concatenate_ranges(starts, lengths)
        pairs = pack_columns([np.repeat(at, lengths), self.people.members[entries]], len(entries))
        _, first = np.unique(pairs, return_index=True)
        in_part = np.bincount(
            np.repeat(at, lengths)[first],
            weights=self.people.counts[entries][first],
            minlength=len(part_keys),
        )
        bad = np.zeros(groups, dtype=bool)
        bad[part_keys[in_part < self._k] // width] = True
        return ~bad

    def _divide_classes(
        self, generation: _Generation, part: Places, *, is_finished: npt.NDArray[np.bool_]
    ) -> None:
        """Assign numbers to finished classes, and put the others' points in their new order."""
        owner = np.repeat(np.arange(len(generation.totals)), generation.lengths)
        number = self._finished + np.cumsum(is_finished) - 1
        is_done = is_finished[owner]
        self.members[self._rows[is_done]] = number[owner[is_done]]
        self._finished += int(is_finished.sum())
        places = np.flatnonzero(~is_done)
        key = owner[places] * (int(part.max(initial=0)) + 1) + part[places]
        order = places[np.argsort(key, kind="stable")]
        self._rows, self._counts = self._rows[order], self._counts[order]
        self._columns = [column[order] for column in self._columns]
        key = np.sort(key)
        self.starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])


def _cut_by_code(
    codes: Codes, counts: Counts, group: Places, totals: Counts, k: int
) -> tuple[Places, npt.NDArray[np.bool_]]:
    """Cut classes into parts by code; parts of fewer than k rows stay together.

    Where those together are fewer than k, the smallest other part joins them.
    """
    width = int(codes.max()) + 1
    distinct, at = np.unique(group * width + codes, return_inverse=True)
    sizes = np.bincount(at, weights=counts)
    owner = distinct // width
    large = sizes >= k
    rest = totals - np.bincount(owner, weights=sizes * large, minlength=len(totals))
    lacking = (rest > 0) & (rest < k)
    if lacking.any():
        joins = np.flatnonzero(large & lacking[owner])
        joins = joins[np.lexsort((sizes[joins], owner[joins]))]
        large[joins[_find_first_places(owner[joins])]] = False
        rest[lacking] = k  # it holds at least that now, or the class has a single part
    parts = np.bincount(owner, weights=large, minlength=len(totals)) + (rest > 0)
    child = np.where(large, distinct % width + 1, 0)
    return child[at], parts >= 2


def _find_first_places(owner: Places) -> Places:
    """Return where each owner comes first in a list that is ordered by owner."""
    return np.flatnonzero(np.append(True, owner[1:] != owner[:-1])[: len(owner)])


def _keep_first_marks(marks: npt.NDArray[np.bool_], starts: Places) -> npt.NDArray[np.bool_]:
    """Return only the first mark in each run that begins at the starts."""
    where = np.flatnonzero(marks)
    first_marks = np.zeros(len(marks), dtype=bool)
    first_marks[where[np.minimum(np.searchsorted(where, starts), len(where) - 1)]] = True
    return first_marks


def _concatenate_ranges(starts: Places, lengths: Places) -> Places:
    """Return the numbers from each start, ``lengths`` of each, one after the other."""
    ends = np.cumsum(lengths)
    places: Places = np.arange(int(ends[-1])) + np.repeat(starts - (ends - lengths), lengths)
    return places
