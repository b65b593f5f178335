"""Rounding a table of expected counts to whole numbers whose sums along both axes are given.

Rows of the table are groups of people, columns are values. Rounding each group by itself keeps its
size, but the errors of many small groups add up in the total of a value. Here totals are met
exactly: they are split between the first and the second half of the groups, each half's between its
halves, and so on down to single groups. At each split a value's count is divided in proportion to
what both halves expect, moved a little (on the scale of log-odds, for all values alike) so that the
sizes are met, and rounded at random. So sums over runs of neighboring groups are near what is
expected as well, not only the totals.

Everything here is post-processing of released results: no privacy depends on it.
"""

from __future__ import annotations

import numpy as np

from incrowd.arrays import Counts, Floats

_NEWTON_STEPS = 2
_LARGEST_STEP = 3.0
_NEGLIGIBLE = 1e-9


def round_table(
    expected: Floats, sizes: Counts, totals: Counts, rng: np.random.Generator
) -> Counts:
    """Return whole numbers near a table of expected counts.

    Args:
        expected: for each group (row) and value (column), not negative.
        sizes: the sum of each group's counts.
        totals: the sum of each value's counts; those of ``sizes`` and ``totals`` are equal.
        rng: the source of randomness.

    A value that a group does not expect at all gets nothing there, unless sizes and totals leave
    no other way.

    """
    levels = [(expected, sizes)]
    while len(levels[-1][0]) > 1:
        table, numbers = levels[-1]
        if len(table) % 2:
            table = np.concatenate([table, np.zeros((1, table.shape[1]))])
            numbers = np.append(numbers, 0)
            levels[-1] = table, numbers
        levels.append((table[::2] + table[1::2], numbers[::2] + numbers[1::2]))
    counts: Counts = totals[None].astype(np.int64)
    for table, numbers in levels[-2::-1]:
        halves = np.empty((len(table), table.shape[1]), dtype=np.int64)
        counts = counts[: len(table) // 2]
        halves[::2] = _round_first_half(counts, table[::2], table[1::2], numbers[::2], rng)
        halves[1::2] = counts - halves[::2]
        counts = halves
    return counts[: len(expected)]


def _round_first_half(
    counts: Counts, first: Floats, second: Floats, sizes: Counts, rng: np.random.Generator
) -> Counts:
    """Return how much of each count goes to the first of two halves, of the given sizes."""
    both = first + second
    shares = np.divide(first, both, out=np.full(both.shape, 0.5), where=both > 0)
    for _ in range(_NEWTON_STEPS):
        missing = sizes - (counts * shares).sum(axis=1)
        slope = np.maximum((counts * shares * (1 - shares)).sum(axis=1), _NEGLIGIBLE)
        odds = np.exp(np.clip(missing / slope, -_LARGEST_STEP, _LARGEST_STEP))[:, None]
        shares = shares * odds / (shares * odds + 1 - shares)
    part = counts * shares
    rounded: Counts = np.minimum(np.floor(part + _NEGLIGIBLE).astype(np.int64), counts)
    rest = np.clip(part - rounded, 0.0, 1.0)
    rest[rest < _NEGLIGIBLE] = 0.0
    missing_rows = sizes - rounded.sum(axis=1)
    rounded += _choose_cells(rest, missing_rows, rng)
    for row in np.flatnonzero(rounded.sum(axis=1) != sizes):
        _settle_row(rounded[row], counts[row], shares[row], int(sizes[row]))
    return rounded


def _choose_cells(chances: Floats, numbers: Counts, rng: np.random.Generator) -> Counts:
    """Return 1 for so many cells of each row, 0 for the others (Pareto sampling).

    Cells are chosen with about the given chances, where these sum to the number of cells.
    """
    draws = rng.random(chances.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        keys = np.log(draws) - np.log1p(-draws) - np.log(chances) + np.log1p(-chances)
    places = np.argsort(keys, axis=1)
    wanted = np.arange(chances.shape[1]) < numbers[:, None]
    chosen = np.zeros(chances.shape, dtype=np.int64)
    np.put_along_axis(chosen, places, wanted.astype(np.int64), axis=1)
    return chosen * (chances > 0)


def _settle_row(rounded: Counts, counts: Counts, shares: Floats, size: int) -> None:
    """Give or take, in place, what a row still differs from its size by."""
    difference = size - int(rounded.sum())
    while difference:
        room = counts - rounded if difference > 0 else rounded
        liking = shares if difference > 0 else 1 - shares
        place = int(np.argmax(np.where(room > 0, liking, -1.0)))
        step = min(abs(difference), int(room[place]))
        rounded[place] += step if difference > 0 else -step
        difference += -step if difference > 0 else step
