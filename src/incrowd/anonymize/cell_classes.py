"""Classes by suppressing cells: at least k rows that show the same, suppressed cells included.

Which cells to suppress at least cost is NP-hard. Small tables are solved exactly, by an integer
program. Of larger ones the rows are put into classes greedily, in several rounds, and what comes
out is compared with a lower bound (:mod:`incrowd.anonymize.suppression`).

A round takes the patterns from the cheapest on. Rows not yet in a class that agree in what a
pattern leaves, and are k or more, become a class. Where they are fewer, rows of other classes that
can spare them join if that costs less than the rows would cost later on, by the round before. The
last few rows join the class in which that costs least.

Rows that are alike may come into different classes: a pattern is given to a number of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.suppression import (
    Patterns,
    TupleKeys,
    list_patterns,
    sum_large_groups,
    suppress_by_row,
)
from incrowd.arrays import Codes, Counts, Floats, Members, Places, Progress

_ROUNDS = 3
_RECRUITINGS = 400  # patterns for which rows are recruited in a round, at most
_CANDIDATES = 100_000  # groups that are looked at one by one in a round, at most
_VARIABLES, _SECONDS = 1600, 10.0  # of the integer program


@dataclass(frozen=True, eq=False)
class CellClasses:
    """Which pattern how many rows of each tuple have.

    Entry i gives ``pattern[i]`` to ``counts[i]`` rows of the tuple ``owner[i]``. ``cost`` is the
    sum of the weights of all suppressed cells; no such classes cost less than ``least``.
    """

    owner: Places
    pattern: Members
    counts: Counts
    patterns: Patterns
    cost: float
    least: float


def suppress_cells(
    codes: Codes,
    counts: Counts,
    *,
    k: int,
    weights: Floats,
    progress: Progress = lambda _done, _all: None,
) -> CellClasses:
    """Suppress few cells, so that every row shows the same as k - 1 others at least.

    The table must have at least k rows. Columns with a larger weight are suppressed less.
    """
    patterns = list_patterns(codes, weights)
    by_row = patterns.costs[suppress_by_row(codes, counts, patterns, k=k)]
    least = float((by_row * counts).sum()) if patterns.complete else 0.0
    best = _solve_exactly(codes, counts, patterns, k)
    if best is not None:
        return best
    costs = by_row
    for round_number in range(_ROUNDS):
        progress(round_number, _ROUNDS)
        entries_and_cost = _Round(codes, counts, patterns, k, costs).run()
        if best is None or entries_and_cost[1] < best.cost:
            owner, pattern, rows = entries_and_cost[0]
            best = CellClasses(owner, pattern, rows, patterns, entries_and_cost[1], least)
        if best.cost <= least * (1 + 1e-12):
            break
        costs = _average_costs(*entries_and_cost[0], patterns, len(codes))
    assert best is not None
    progress(_ROUNDS, _ROUNDS)
    return best


def _average_costs(
    owner: Places, pattern: Members, rows: Counts, patterns: Patterns, tuples: int
) -> Floats:
    """Return what a row of each tuple costs on average."""
    costs = np.bincount(owner, weights=patterns.costs[pattern] * rows, minlength=tuples)
    totals = np.bincount(owner, weights=rows, minlength=tuples)
    return np.asarray(costs / np.maximum(totals, 1))


@dataclass(eq=False)
class _Entries:
    """Rows in classes: tuple, class and number of each entry; pattern and rows of each class."""

    owner: list[int] = field(default_factory=list)
    member: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    pattern: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)

    def add_class(self, pattern: int) -> int:
        """Add an empty class, and return its number."""
        self.pattern.append(pattern)
        self.size.append(0)
        return len(self.size) - 1

    def add_rows(self, owner: int, member: int, rows: int) -> None:
        """Put rows of a tuple into a class."""
        self.owner.append(owner)
        self.member.append(member)
        self.rows.append(rows)
        self.size[member] += rows

    def take_rows(self, entry: int, rows: int) -> None:
        """Take rows out of an entry, and of its class."""
        self.rows[entry] -= rows
        self.size[self.member[entry]] -= rows


class _Round:
    """One pass over the patterns."""

    def __init__(
        self, codes: Codes, counts: Counts, patterns: Patterns, k: int, costs: Floats
    ) -> None:
        self._codes, self._counts, self._patterns, self._k = codes, counts, patterns, k
        self._costs = costs
        self._keys = TupleKeys(codes)
        self._left = counts.copy()
        self._entries = _Entries()
        self._recruitings, self._candidates = 0, 0

    def run(self) -> tuple[tuple[Places, Members, Counts], float]:
        """Return the entries (tuples, patterns, rows), and what they cost."""
        for number, hidden in enumerate(self._patterns.hidden):
            open_tuples = np.flatnonzero(self._left)
            if not len(open_tuples):
                break
            keys, size = self._keys.make_keys(hidden)
            self._form_classes(number, keys, size, open_tuples)
            if number:
                self._recruit_rows(number, keys, size)
        for place in np.flatnonzero(self._left).tolist():
            self._absorb_rows(place)
        entries = self._entries
        rows = np.array(entries.rows, dtype=np.int64)
        filled = rows > 0
        owner = np.array(entries.owner, dtype=np.int64)[filled]
        pattern = np.array(entries.pattern, dtype=np.int64)[np.array(entries.member)[filled]]
        cost = float((self._patterns.costs[pattern] * rows[filled]).sum())
        return (owner, pattern, rows[filled]), cost

    def _form_classes(
        self, number: int, keys: npt.NDArray[np.int64], size: int, open_tuples: Places
    ) -> None:
        """Make classes of open rows that agree in what the pattern leaves, if they are k."""
        rows = sum_large_groups(keys, size, self._left, open_tuples, self._k)
        places = open_tuples[rows >= self._k]
        if not len(places):
            return
        _, at = np.unique(keys[places], return_inverse=True)
        first = len(self._entries.size)
        for _ in range(int(at.max()) + 1):
            self._entries.add_class(number)
        for place, group in zip(places.tolist(), at.tolist(), strict=True):
            self._entries.add_rows(place, first + group, int(self._left[place]))
        self._left[places] = 0

    def _recruit_rows(self, number: int, keys: npt.NDArray[np.int64], size: int) -> None:
        """Fill up groups of fewer than k open rows with rows that other classes can spare."""
        cost = float(self._patterns.costs[number])
        places = np.flatnonzero((self._left > 0) & (self._costs > cost))
        if not len(places) or self._recruitings >= _RECRUITINGS:
            return
        possible = sum_large_groups(keys, size, self._counts, places, self._k) >= self._k
        values, at = np.unique(keys[places[possible]], return_inverse=True)
        places = places[possible]
        gains = np.bincount(at, weights=self._left[places] * (self._costs[places] - cost))
        rows = np.bincount(at, weights=self._left[places])
        step = float(np.diff(np.unique(self._patterns.costs[: number + 1])).min(initial=cost))
        worth = gains > (self._k - rows) * min(step, cost)
        if not worth.any():
            return
        self._recruitings += 1
        owner = np.array(self._entries.owner, dtype=np.int64)
        order = np.argsort(keys[owner], kind="stable")
        sorted_keys = keys[owner][order]
        starts = np.searchsorted(sorted_keys, values, side="left")
        ends = np.searchsorted(sorted_keys, values, side="right")
        by_group = np.argsort(at, kind="stable")
        bounds = np.append(0, np.cumsum(np.bincount(at)))
        for group in np.flatnonzero(worth).tolist():
            self._candidates += 1
            if self._candidates > _CANDIDATES:
                return
            members = places[by_group[bounds[group] : bounds[group + 1]]]
            entries = order[starts[group] : ends[group]]
            self._fill_group(number, members, entries, float(gains[group]))

    def _fill_group(self, number: int, members: Places, entries: Places, gain: float) -> None:
        """Make a class of the open rows, and of others that can be spared, if that pays."""
        cost = float(self._patterns.costs[number])
        needed = self._k - int(self._left[members].sum())
        spare: dict[int, int] = {}
        listed = []
        table = self._entries
        for entry in entries.tolist():
            member = table.member[entry]
            old = float(self._patterns.costs[table.pattern[member]])
            spare.setdefault(member, table.size[member] - self._k)
            if table.rows[entry] > 0 and old <= cost and spare[member] > 0:
                listed.append((cost - old, entry, member))
        chosen, price = [], 0.0
        for more, entry, member in sorted(listed):
            take = min(needed, table.rows[entry], spare[member])
            if take > 0:
                chosen.append((entry, take))
                price += more * take
                needed -= take
                spare[member] -= take
            if not needed or price >= gain:
                break
        if needed or price >= gain:
            return
        new_class = table.add_class(number)
        for entry, take in chosen:
            table.take_rows(entry, take)
            table.add_rows(table.owner[entry], new_class, take)
        for place in members.tolist():
            table.add_rows(place, new_class, int(self._left[place]))
        self._left[members] = 0

    def _absorb_rows(self, place: int) -> None:
        """Put the rows of a tuple into the class where that costs least, whole or in part."""
        table, rows, k = self._entries, int(self._left[place]), self._k
        if not table.size:  # the patterns end with one under which all rows agree
            raise AssertionError("no class was formed")
        first_owner = np.zeros(len(table.size), dtype=np.int64)
        for entry in reversed(range(len(table.owner))):
            if table.rows[entry]:
                first_owner[table.member[entry]] = table.owner[entry]
        sizes = np.array(table.size)
        old = np.array(table.pattern)
        differs = self._codes[first_owner] != self._codes[place]
        hidden = self._patterns.hidden[old] | differs
        new = self._find_patterns(hidden)
        costs, old_costs = self._patterns.costs[new], self._patterns.costs[old]
        whole_price = (sizes + rows) * costs - sizes * old_costs
        needed = max(k - rows, 0)
        part = np.where(sizes >= k + needed, (needed + rows) * costs - needed * old_costs, np.inf)
        prices = np.where(sizes > 0, np.minimum(whole_price, part), np.inf)
        best = int(np.argmin(prices))
        moving = int(sizes[best]) if whole_price[best] <= part[best] else needed
        new_class = table.add_class(int(new[best]))
        for entry in range(len(table.owner)):
            take = min(moving, table.rows[entry]) if table.member[entry] == best else 0
            if take:
                table.take_rows(entry, take)
                table.add_rows(table.owner[entry], new_class, take)
                moving -= take
        table.add_rows(place, new_class, rows)
        self._left[place] = 0

    def _find_patterns(self, hidden: npt.NDArray[np.bool_]) -> Members:
        """Return the cheapest listed pattern that suppresses all that is marked."""
        numbers = np.full(len(hidden), len(self._patterns) - 1, dtype=np.int64)
        distinct_marks, at = np.unique(hidden, axis=0, return_inverse=True)
        for place, marks in enumerate(distinct_marks):
            covers = (self._patterns.hidden | ~marks).all(axis=1)
            numbers[at.ravel() == place] = int(np.argmax(covers))
        return numbers


def _solve_exactly(codes: Codes, counts: Counts, patterns: Patterns, k: int) -> CellClasses | None:
    """Solve a small table by an integer program; None if it is large, or not solved in time.

    A variable for each tuple and pattern: how many rows of the one have the other. And one for each
    class that may be: whether it is. Rows are in classes that are; those have k rows at least.
    Classes that fewer than k rows of the table fit are none.
    """
    if not patterns.complete or len(codes) * math.sqrt(len(patterns)) > _VARIABLES:
        return None
    owner, pattern, member = _list_memberships(codes, counts, patterns, k)
    if len(owner) > _VARIABLES:
        return None
    solution = _solve_program(owner, member, counts, patterns.costs[pattern], k)
    if solution is None:
        return None
    rows = solution[: len(owner)]
    sizes = np.bincount(member, weights=rows)
    sums = np.bincount(owner, weights=rows, minlength=len(codes))
    if (sums != counts).any() or ((sizes > 0) & (sizes < k)).any():
        return None  # rounded wrongly
    used = rows > 0
    cost = float((patterns.costs[pattern] * rows).sum())
    return CellClasses(owner[used], pattern[used], rows[used], patterns, cost, cost)


def _list_memberships(
    codes: Codes, counts: Counts, patterns: Patterns, k: int
) -> tuple[Places, Members, Members]:
    """Return tuple, pattern and class of all that rows may have."""
    keys, everybody = TupleKeys(codes), np.arange(len(codes))
    owner, pattern, member, class_count = [], [], [], 0
    for number, hidden in enumerate(patterns.hidden):
        values, size = keys.make_keys(hidden)
        places = everybody[sum_large_groups(values, size, counts, everybody, k) >= k]
        if len(places):
            _, at = np.unique(values[places], return_inverse=True)
            owner.append(places)
            pattern.append(np.full(len(places), number))
            member.append(class_count + at)
            class_count += int(at.max()) + 1
    return np.concatenate(owner), np.concatenate(pattern), np.concatenate(member)


def _solve_program(
    owner: Places, member: Members, counts: Counts, costs: Floats, k: int
) -> Counts | None:
    """Return the rows of each membership, then which classes are; None if it takes too long."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # slow to load, and seldom needed
    from scipy.sparse import coo_array

    number, class_count = len(owner), int(member.max()) + 1
    ones, each, classes = np.ones(number), np.arange(number), np.arange(class_count)
    shape = number + class_count
    all_rows = coo_array((ones, (owner, each)), shape=(len(counts), shape))
    in_classes = coo_array(
        (
            np.concatenate([ones, -counts[owner].astype(float)]),
            (np.concatenate([each, each]), np.concatenate([each, number + member])),
        ),
        shape=(number, shape),
    )
    filled = coo_array(
        (
            np.concatenate([ones, np.full(class_count, -float(k))]),
            (np.concatenate([member, classes]), np.concatenate([each, number + classes])),
        ),
        shape=(class_count, shape),
    )
    solution = milp(
        np.concatenate([costs, np.zeros(class_count)]),
        constraints=[
            LinearConstraint(all_rows, counts, counts),
            LinearConstraint(in_classes, -np.inf, 0.0),
            LinearConstraint(filled, 0.0, np.inf),
        ],
        integrality=np.ones(shape),
        bounds=Bounds(0.0, np.concatenate([counts[owner], np.ones(class_count)])),
        options={"time_limit": _SECONDS, "mip_rel_gap": 0.0},
    )
    if solution.status != 0 or solution.x is None:
        return None
    return np.asarray(np.rint(solution.x), dtype=np.int64)
