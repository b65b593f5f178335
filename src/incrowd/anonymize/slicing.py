"""Which columns to publish together, chosen privately: slices of columns that go together.

**Score.** For columns X and Y of a table of n rows let

    S = sum over x, y of max(0, c(x, y) - c(x) c(y) / n),

how many rows are where independence would not have them, the values of each column as frequent as
they are: 0 where X and Y are independent, up to n (1 - sum of squared shares) where one decides the
other.

**Sensitivity.** Let f(x, y) = c(x, y) - c(x) c(y) / n; S is half the sum of |f|, as f adds up to 0.
Add a row (u, v), and let p and q be the shares of u and of v before. Then f rises by
a = n (1 - p)(1 - q) / (n + 1) at (u, v), falls by a in all at (u, y) for y other than v, falls by
a in all at (x, v) for x other than u, and rises by a in all elsewhere. So the sum of |f| moves by
4a < 4 at most, and S by less than 2. Whole numbers floor(U S) then move by 2 U at most, and so does
the mean, rounded down, of several. They may move either way, so a choice among them by report
noisy max takes twice that for its sensitivity (see :mod:`incrowd.privacy.selection`).

**Slices.** How many there are, and how many columns each has, is settled by numbers alone. First
every column gets a place: a slice begins with the pair that scores most and takes in, one by one,
the column whose mean score with its members is largest; the next slice begins with what is left.
Further slices are made in the same way from all columns, each from a pair that does not stand
together yet (if there is one), where pairs that do score nothing. Each of these is one choice; what
is left for the last slice of the first kind is no choice. All of them look at the whole table, so
they compose.

Where there are so many slices as :func:`covering` needs for every two columns to stand together,
nothing is chosen and nothing is spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from incrowd.anonymize.frequency import Frequencies
from incrowd.privacy.randomness import Counts, Randomness
from incrowd.privacy.selection import select

_UNIT = 1 << 10
SENSITIVITY = 4 * _UNIT
_DENSE = 1 << 20  # so many pairs of groups are summed in place


def sizes(columns: int, most: int) -> list[int]:
    """How many columns each slice has: at most so many (two or more), as equal as can be."""
    number = -(-columns // most)
    each, more = divmod(columns, number)
    return [each + (at < more) for at in range(number)]


def choices(columns: int, most: int, tables: int) -> int:
    """How many private choices it takes to put so many columns into so many slices."""
    *early, _ = sizes(columns, most)
    return sum(size - 1 for size in early) + (tables - len(early) - 1) * (most - 1)


def covering(columns: int, most: int) -> list[tuple[int, ...]]:
    """Slices in which every two columns stand together, few if not the fewest."""
    apart = ~np.eye(columns, dtype=bool)
    found = []
    while apart.any():
        members = [int(at) for at in np.unravel_index(int(np.argmax(apart)), apart.shape)]
        while len(members) < min(most, columns):
            gains = apart[members].sum(axis=0)
            gains[members] = -1
            members.append(int(np.argmax(gains)))
        apart[np.ix_(members, members)] = False
        found.append(tuple(sorted(members)))
    return found


def dependence(frequencies: Frequencies, first: int, second: int) -> int:
    """floor(U S) of two columns, exactly."""
    total = frequencies.total
    if not total:
        return 0
    one, other = frequencies.codes[:, first].astype(np.int64), frequencies.codes[:, second]
    width = int(other.max()) + 1
    found, joint = _summed(one * width + other, frequencies.counts)
    rows = _held(frequencies, first)[found // width]
    columns = _held(frequencies, second)[found % width]
    # Products reach n squared, which needs whole numbers of any size for tables of billions.
    if total < 2**31:
        above = int(np.maximum(joint * total - rows * columns, 0).sum())
    else:
        parts = zip(joint.tolist(), rows.tolist(), columns.tolist(), strict=True)
        above = sum(max(c * total - x * y, 0) for c, x, y in parts)
    return _UNIT * above // total


def _held(frequencies: Frequencies, at: int) -> Counts:
    """How many rows have each code of a column."""
    codes, rows = _summed(frequencies.codes[:, at].astype(np.int64), frequencies.counts)
    held = np.zeros(int(codes[-1]) + 1, dtype=np.int64)
    held[codes] = rows
    return held


def _summed(places: Counts, counts: Counts) -> tuple[Counts, Counts]:
    """The places that there are, and the sum of the counts at each."""
    if int(places.max()) < _DENSE:
        summed = np.zeros(int(places.max()) + 1, dtype=np.int64)
        np.add.at(summed, places, counts)
        found = np.flatnonzero(summed)
        return found, summed[found]
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(places[order]) > 0))
    return places[order][starts], np.add.reduceat(counts[order], starts)


def slices(
    frequencies: Frequencies,
    most: int,
    tables: int,
    *,
    epsilons: Sequence[Fraction],
    bits: Randomness,
) -> list[tuple[int, ...]]:
    """So many slices of at most ``most`` columns: private at the sum of the epsilons.

    There is one epsilon for each of :func:`choices`.
    """
    columns = frequencies.codes.shape[1]
    score = {pair: dependence(frequencies, *pair) for pair in combinations(range(columns), 2)}
    budget = iter(epsilons)
    found: list[tuple[int, ...]] = []
    together: set[tuple[int, ...]] = set()

    def grown(size: int, left: list[int]) -> tuple[int, ...]:
        members: tuple[int, ...] = ()
        while len(members) < size:
            if members:
                options = [(*members, column) for column in left if column not in members]
                options = [x for x in options if tuple(sorted(x)) not in found] or options
            else:
                options = list(combinations(left, 2))
                options = [pair for pair in options if pair not in together] or options
            apart = {pair: 0 if pair in together else value for pair, value in score.items()}
            values = np.array([_added(apart, members, option) for option in options], np.int64)
            members = options[
                select(values, sensitivity=SENSITIVITY, epsilon=next(budget), bits=bits)
            ]
        return tuple(sorted(members))

    *early, _ = sizes(columns, most)
    left = list(range(columns))
    for size in early:
        found.append(grown(size, left))
        left = [column for column in left if column not in found[-1]]
    found.append(tuple(left))
    for part in found:
        together.update(combinations(part, 2))
    while len(found) < tables:
        found.append(grown(most, list(range(columns))))
        together.update(combinations(found[-1], 2))
    return found


def _added(
    score: dict[tuple[int, int], int], members: tuple[int, ...], option: tuple[int, ...]
) -> int:
    """The mean score, rounded down, of a column with the members it joins; of a pair, its own."""
    if not members:
        return score[option]  # type: ignore[index]
    added = option[-1]
    total = sum(score[min(member, added), max(member, added)] for member in members)
    return total // len(members)
