"""The algorithm that puts columns together into slices, privately, with its proof.

**Score.** For columns X and Y of a table of n rows let f(x, y) = c(x, y) - c(x) c(y) / n, by how
much the rows with x and y are more than independence would have, and

    S = sum over x, y of min(max(0, f(x, y)), max(0, c(x, y) - t)),

how many rows are where independence would not have them, counted only in cells of more than t
rows: what is in smaller ones will not survive in a release. t is settled by the budget (see
:mod:`incrowd.methods.safe.slices`), not by the table. S is 0 where X and Y are independent, or
all cells small; for t = 0 it is up to n (1 - sum of squared shares), where one column decides
the other.

**Sensitivity.** Add a row (u, v), let p and q be the shares of u and of v before, and
a = n (1 - p)(1 - q) / (n + 1) < 1. Then f rises by a at (u, v), falls by a in all at (u, y) for y
other than v, falls by a in all at (x, v) for x other than u, and rises by a in all elsewhere; c
rises by 1 at (u, v) and stays elsewhere. The summand does not fall as f and c rise, and moves by no
more than the one of them that moves most. So it rises by 0 to 1 at (u, v), by a in all elsewhere at
most, and falls by 2a in all at most: S moves by more than -2 and less than 2. (To an empty table
the row adds nothing: f is 0.) Whole numbers floor(U S) then move by 2 U at most, and so does the
mean, rounded down, of several. They may move either way, so a choice among them by report noisy max
takes twice that for its sensitivity (see :mod:`incrowd.privacy.selection`). A person with up to m
tuples adds them one after the other, so the sensitivity is m times that.

**Slices.** How many there are, and how many columns each has, is settled by numbers alone. First
every column gets a place: a slice begins with the pair that scores most and takes in, one by one,
the column whose mean score with its members is largest; the next slice begins with what is left.
Further slices are made in the same way from all columns, each from a pair that does not stand
together yet (if there is one), where pairs that do score nothing. Each of these is one choice; what
is left for the last slice of the first kind is no choice. All of them look at the whole table, so
they compose.

Where there are so many slices as :func:`cover_pairs` needs for every two columns to stand together,
nothing is chosen and nothing is spent.

**Functions of others.** A slice of a year with its 0/1 columns tells nothing that the year does
not. Where a spec declares such columns, no slice has one together with those that determine it (see
:mod:`incrowd.anonymize.slice_rule`). The rule is public and removes options before anything is
scored: what is left out depends on it and on what was chosen before, so each choice is private as
before, whether or not the rule is true of the table. It may end a slice early; then fewer choices
are made than are paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import TypeAlias

import numpy as np

from incrowd.anonymize.slice_rule import SliceRule
from incrowd.arrays import Counts
from incrowd.codes.frequency import Frequencies
from incrowd.privacy.randomness import Randomness
from incrowd.privacy.selection import select_candidate

_Verdict: TypeAlias = Callable[[tuple[int, ...]], bool]
_UNIT = 1 << 10
SENSITIVITY = 4 * _UNIT
_DENSE = 1 << 20  # so many pairs of groups are summed in place


def count_choices(rule: SliceRule, limit: int, tables: int) -> int:
    """Return how many private choices it takes, at most, to put columns into so many slices."""
    *early, _ = rule.compute_sizes(limit)
    return sum(size - 1 for size in early) + (tables - len(early) - 1) * (limit - 1)


def cover_pairs(rule: SliceRule, limit: int) -> list[tuple[int, ...]]:
    """Return slices in which every two columns that may stand together do, few if not the fewest.

    A column that may stand with no other has a slice of its own.
    """
    columns, is_apart = rule.columns, rule.list_separate_pairs()
    slices: list[tuple[int, ...]] = [(at,) for at in range(columns) if not is_apart[at].any()]
    while is_apart.any():
        members = [int(at) for at in np.unravel_index(int(np.argmax(is_apart)), is_apart.shape)]
        while len(members) < min(limit, columns):
            gains = is_apart[members].sum(axis=0)
            gains[members] = -1
            for at in rule.dependent_columns:
                if not rule.allows((*members, at)):
                    gains[at] = -1
            if gains.max() < 0:
                break
            members.append(int(np.argmax(gains)))
        is_apart[np.ix_(members, members)] = False
        slices.append(tuple(sorted(members)))
    return slices


def compute_dependence(
    frequencies: Frequencies, first: int, second: int, threshold: int = 0
) -> int:
    """Return floor(U S) of two columns, exactly; ``threshold`` is t, a whole number from 0."""
    if not frequencies.total:
        return 0
    first_codes, second_codes = (
        frequencies.codes[:, first].astype(np.int64),
        frequencies.codes[:, second],
    )
    width = int(second_codes.max()) + 1
    places, joint = _sum_by_place(first_codes * width + second_codes, frequencies.counts)
    rows = _count_rows(frequencies, first)[places // width]
    columns = _count_rows(frequencies, second)[places % width]
    return compute_cell_dependence(joint, rows, columns, frequencies.total, threshold)


def compute_cell_dependence(
    joint: Counts, rows: Counts, columns: Counts, total: int, threshold: int
) -> int:
    """Return the same from cells: the rows of each, of its x and its y, and of the table.

    Cells of ``threshold`` rows or fewer count nothing, and may be left out.
    """
    if not total:
        return 0
    # Products reach n squared, which needs whole numbers of any size for tables of billions.
    if total < 2**31:
        excess = np.maximum(joint * total - rows * columns, 0)
        above = int(np.minimum(excess, np.maximum(joint - threshold, 0) * total).sum())
    else:
        parts = zip(joint.tolist(), rows.tolist(), columns.tolist(), strict=True)
        above = sum(
            min(max(c * total - x * y, 0), max(c - threshold, 0) * total) for c, x, y in parts
        )
    return _UNIT * above // total


def _count_rows(frequencies: Frequencies, at: int) -> Counts:
    """Return how many rows have each code of a column."""
    codes, rows = _sum_by_place(frequencies.codes[:, at].astype(np.int64), frequencies.counts)
    row_counts = np.zeros(int(codes[-1]) + 1, dtype=np.int64)
    row_counts[codes] = rows
    return row_counts


def _sum_by_place(places: Counts, counts: Counts) -> tuple[Counts, Counts]:
    """Return the places that there are, and the sum of the counts at each."""
    if int(places.max()) < _DENSE:
        sums = np.zeros(int(places.max()) + 1, dtype=np.int64)
        np.add.at(sums, places, counts)
        distinct = np.flatnonzero(sums)
        return distinct, sums[distinct]
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(places[order]) > 0))
    return places[order][starts], np.add.reduceat(counts[order], starts)


def choose_slices(
    frequencies: Frequencies,
    limit: int,
    tables: int,
    *,
    epsilons: Sequence[Fraction],
    bits: Randomness,
    threshold: int = 0,
    rows: int = 1,
    rule: SliceRule | None = None,
) -> list[tuple[int, ...]]:
    """Choose slices of at most ``limit`` columns each: private at the sum of the epsilons.

    There is one epsilon for each of :func:`count_choices`. What stands in cells of ``threshold``
    rows or fewer counts nothing; no data may decide that number. One person has at most ``rows`` of
    the tuples counted. By the ``rule`` some columns do not stand together.
    """
    columns = frequencies.codes.shape[1]
    pairs = combinations(range(columns), 2)
    score = {pair: compute_dependence(frequencies, *pair, threshold) for pair in pairs}
    rule = rule or SliceRule(columns)
    return choose_slices_by_score(
        score, rule, limit, tables, epsilons=epsilons, bits=bits, rows=rows
    )


def choose_slices_by_score(
    score: Mapping[tuple[int, int], int],
    rule: SliceRule,
    limit: int,
    tables: int,
    *,
    epsilons: Sequence[Fraction],
    bits: Randomness,
    rows: int = 1,
) -> list[tuple[int, ...]]:
    """Choose the same by :func:`compute_dependence` of every two columns, at one ``threshold``."""
    budget = iter(epsilons)
    slices: list[tuple[int, ...]] = []
    covered_pairs: set[tuple[int, ...]] = set()

    def grow_slice(size: int, columns: list[int], is_allowed: _Verdict) -> tuple[int, ...]:
        members: tuple[int, ...] = ()
        while len(members) < size:
            if members:
                options = [(*members, column) for column in columns if column not in members]
                options = [x for x in options if is_allowed(x)]
                options = [x for x in options if tuple(sorted(x)) not in slices] or options
            else:
                options = [x for x in combinations(columns, 2) if size > 1 and is_allowed(x)]
                options = [pair for pair in options if pair not in covered_pairs] or options
            if not options:  # by the rule alone, and what was chosen
                return tuple(sorted(members)) or _take_first(columns, is_allowed)
            scores = {pair: 0 if pair in covered_pairs else value for pair, value in score.items()}
            values = np.array(
                [_score_option(scores, members, option) for option in options], np.int64
            )
            members = options[
                select_candidate(
                    values, sensitivity=rows * SENSITIVITY, epsilon=next(budget), bits=bits
                )
            ]
        return tuple(sorted(members))

    sizes = rule.compute_sizes(limit)
    free_columns = list(range(rule.columns))
    for at in range(len(sizes) - 1):
        is_allowed = _RoomyOptions(rule, free_columns, sizes[at:]).allows
        slices.append(grow_slice(sizes[at], free_columns, is_allowed))
        free_columns = [column for column in free_columns if column not in slices[-1]]
    slices.append(tuple(free_columns))
    for part in slices:
        covered_pairs.update(combinations(part, 2))
    while len(slices) < tables:
        slices.append(grow_slice(limit, list(range(rule.columns)), rule.allows))
        covered_pairs.update(combinations(slices[-1], 2))
    return slices


class _RoomyOptions:
    """Beginnings of a slice that the rule allows, and that leave room for all other columns.

    Columns that the rule does not name differ in nothing, so few beginnings have to be tried.
    """

    def __init__(self, rule: SliceRule, free_columns: list[int], sizes: Sequence[int]) -> None:
        self._rule, self._free_columns, self._sizes = rule, free_columns, sizes
        self._named = frozenset(rule.dependent_columns)
        self._verdicts: dict[tuple[frozenset[int], int], bool] = {}

    def allows(self, members: tuple[int, ...]) -> bool:
        """Return whether a slice may begin with some columns."""
        if not self._named:
            return True
        key = (self._named.intersection(members), len(members))
        if key not in self._verdicts:
            rest = [column for column in self._free_columns if column not in members]
            self._verdicts[key] = self._rule.allows(members) and self._rule.leaves_room(
                members, rest, self._sizes
            )
        return self._verdicts[key]


def _take_first(columns: list[int], is_allowed: _Verdict) -> tuple[int, ...]:
    """Return a slice of one column, the first that leaves room for all others."""
    return next((column,) for column in columns if is_allowed((column,)))


def _score_option(
    score: dict[tuple[int, int], int], members: tuple[int, ...], option: tuple[int, ...]
) -> int:
    """Return the mean score, rounded down, of a column with those it joins; or a pair's own."""
    if not members:
        return score[option]  # type: ignore[index]
    column = option[-1]
    total = sum(score[min(member, column), max(member, column)] for member in members)
    return total // len(members)
