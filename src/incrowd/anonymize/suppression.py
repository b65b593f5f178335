"""Cells to suppress, row by row: the cheapest set of cells whose rest fits k rows of the input.

A *pattern* is a set of columns that are suppressed in a row; the others show their values. A row
**fits** an input row if it shows the same value wherever it shows one. This is the reading of a
suppressed cell as a wildcard.

**Claim.** :func:`suppress_by_row` gives every row the cheapest pattern under which it fits at least
``k`` rows of the input, and under which any columns of a demanded number, its suppressed cells left
out, fit at least as many rows as is demanded for that number. No choice of patterns that gives
every row as much costs less: what a row fits depends on the input and its own pattern alone, so
rows are chosen for separately, and patterns are tried from the cheapest on.

**Bound.** In a table whose classes, told by values and suppressed cells alike, have at least k
rows, every row of a class fits the at least k input rows of its class. So the cost of this choice
is a lower bound on the cost of any such table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Bools, Codes, Counts, Floats, Members, Places, Progress
from incrowd.codes.frequency import pack_columns
from incrowd.errors import ParameterError

MOST_COLUMNS = 14  # of which every set is a pattern; of more, the small sets and one long chain
_MOST_SETS = 20_000  # of columns that are demanded to fit enough rows
_DENSEST = 1 << 21
_MIXED = np.uint64(0x9E3779B97F4A7C15)  # odd: its multiples spread over the highest bits
_BUCKET_BITS = 18


@dataclass(frozen=True, eq=False)
class Patterns:
    """Sets of columns to suppress, the cheapest first; ``hidden`` marks the columns of each.

    ``complete`` tells whether these are all sets.
    """

    hidden: Bools
    costs: Floats
    complete: bool

    def __len__(self) -> int:
        return len(self.costs)


def list_patterns(codes: Codes, weights: Floats) -> Patterns:
    """Return patterns of the columns of some tuples: all of them, or of many columns some.

    The last one suppresses everything.
    """
    columns = codes.shape[1]
    sizes, count = 0, 1
    while sizes < columns and count + math.comb(columns, sizes + 1) <= 1 << MOST_COLUMNS:
        sizes += 1
        count += math.comb(columns, sizes)
    sets: list[tuple[int, ...]] = [
        chosen for size in range(sizes + 1) for chosen in combinations(range(columns), size)
    ]
    widths = [len(np.unique(column)) for column in codes.T]
    widest = sorted(range(columns), key=lambda at: (-widths[at], at))
    sets += [tuple(widest[:size]) for size in range(sizes + 1, columns + 1)]
    hidden = np.zeros((len(sets), columns), dtype=bool)
    for place, chosen in enumerate(sets):
        hidden[place, list(chosen)] = True
    costs = hidden @ weights
    order = np.lexsort((hidden.sum(axis=1), costs))
    return Patterns(hidden[order], costs[order], complete=sizes == columns)


class TupleKeys:
    """One number per tuple that names its values in the columns that a pattern leaves.

    The columns are two halves. The values that stand together in a part of a half are numbered
    once, so that keys are exact for any number of values.
    """

    def __init__(self, codes: Codes) -> None:
        self._columns = [np.unique(column, return_inverse=True)[1] for column in codes.T]
        self._middle = (len(self._columns) + 1) // 2
        self._numbers: dict[tuple[int, ...], tuple[npt.NDArray[np.int64], int]] = {}
        self._rows = len(codes)

    def make_keys(self, hidden: Bools) -> tuple[npt.NDArray[np.int64], int]:
        """Return the key of each tuple, and how many keys there may be."""
        left = tuple(at for at in range(self._middle) if not hidden[at])
        right = tuple(at for at in range(self._middle, len(hidden)) if not hidden[at])
        first, many = self._number(left)
        second, more = self._number(right)
        return first * more + second, many * more

    def _number(self, columns: tuple[int, ...]) -> tuple[npt.NDArray[np.int64], int]:
        if columns not in self._numbers:
            packed = pack_columns([self._columns[at] for at in columns], self._rows)
            values, numbers = np.unique(packed, return_inverse=True)
            self._numbers[columns] = numbers.astype(np.int64), max(len(values), 1)
        return self._numbers[columns]


def sum_large_groups(
    keys: npt.NDArray[np.int64], size: int, counts: Counts, places: Places, k: int
) -> Counts:
    """Return the rows of the group of each tuple at ``places``; 0 may stand for fewer than k.

    Keys are thrown into buckets first: a bucket of fewer than k rows holds no group of k.
    """
    if size <= max(_DENSEST, 2 * len(keys)):
        sums = np.bincount(keys, weights=counts, minlength=size)
        return sums[keys[places]].astype(np.int64)
    buckets = ((keys.astype(np.uint64) * _MIXED) >> np.uint64(64 - _BUCKET_BITS)).astype(np.int64)
    filled = np.bincount(buckets, weights=counts, minlength=1 << _BUCKET_BITS)
    row_counts = np.zeros(len(places), dtype=np.int64)
    likely_places = np.flatnonzero(filled[buckets[places]] >= k)
    if not len(likely_places):
        return row_counts
    marked = np.zeros(1 << _BUCKET_BITS, dtype=bool)
    marked[buckets[places[likely_places]]] = True
    rows = np.flatnonzero(marked[buckets])
    values, at = np.unique(keys[rows], return_inverse=True)
    sums = np.bincount(at, weights=counts[rows])
    row_counts[likely_places] = sums[np.searchsorted(values, keys[places[likely_places]])].astype(
        np.int64
    )
    return row_counts


def suppress_by_row(
    codes: Codes,
    counts: Counts,
    patterns: Patterns,
    *,
    k: int,
    subsets: Mapping[int, int] | None = None,
    progress: Progress = lambda _done, _all: None,
) -> Members:
    """Return the cheapest pattern of each tuple that satisfies the claim above.

    ``subsets`` says for a number of columns how many rows any so many of them must fit.
    """
    unhit = _UnhitSets(codes, counts, subsets or {})
    keys = TupleKeys(codes)
    chosen = np.full(len(codes), len(patterns) - 1, dtype=np.int64)
    left = np.arange(len(codes))
    for number, hidden in enumerate(patterns.hidden[:-1]):
        if not len(left):
            break
        hits = left[unhit.is_hit(left, hidden)]
        if len(hits):
            values, size = keys.make_keys(hidden)
            fits = hits[sum_large_groups(values, size, counts, hits, k) >= k]
            chosen[fits] = number
            left = left[chosen[left] == len(patterns) - 1]
        progress(len(codes) - len(left), len(codes))
    progress(len(codes), len(codes))
    return chosen


class _UnhitSets:
    """For each tuple the small sets of columns whose values fit too few rows.

    Demanded are so many rows of any s columns. Of these a pattern may leave t; hence what is left
    of any t columns must fit the most that is demanded of t or more.
    """

    def __init__(self, codes: Codes, counts: Counts, subsets: Mapping[int, int]) -> None:
        columns = codes.shape[1]
        demands = {
            size: max(least for demanded, least in subsets.items() if demanded >= size)
            for size in range(1, max(subsets, default=0) + 1)
        }
        self._sets = list(_list_sets(columns, demands))
        keys = TupleKeys(codes)
        words = -(-len(self._sets) // 64)
        self._bad = np.zeros((len(codes), words), dtype=np.uint64)
        for at, (members, least) in enumerate(self._sets):
            values, size = keys.make_keys(_mark_others(columns, members))
            rows = sum_large_groups(values, size, counts, np.arange(len(codes)), least)
            self._bad[rows < least, at // 64] |= np.uint64(1 << (at % 64))

    def is_hit(self, places: Places, hidden: Bools) -> Bools:
        """Return of which tuples the pattern has a column in every set that fits too few rows."""
        if not self._sets:
            return np.ones(len(places), dtype=bool)
        missed = np.zeros(self._bad.shape[1], dtype=np.uint64)
        for at, (members, _) in enumerate(self._sets):
            if not hidden[list(members)].any():
                missed[at // 64] |= np.uint64(1 << (at % 64))
        return np.asarray(~(self._bad[places] & missed).any(axis=1))


def _list_sets(columns: int, demands: Mapping[int, int]) -> Iterator[tuple[tuple[int, ...], int]]:
    total = sum(math.comb(columns, size) for size in demands)
    if total > _MOST_SETS:
        raise ParameterError(
            "subsets",
            f"leave at most {_MOST_SETS:,} sets of columns to check",
            total,
            "Use smaller sets, or publish fewer columns.",
        )
    for size, least in demands.items():
        for members in combinations(range(columns), size):
            yield members, least


def _mark_others(columns: int, members: tuple[int, ...]) -> Bools:
    hidden = np.ones(columns, dtype=bool)
    hidden[list(members)] = False
    return hidden
