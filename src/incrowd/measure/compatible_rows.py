"""Rows that may stand for the same person, if a suppressed cell may be any value.

Two published rows are *compatible* if in every column they show the same value or one of them is
suppressed there. Counting compatible rows is the reading of suppressed cells that sdcMicro and ARX
offer beside classes. It is the weaker one: k - 1 rows that show nothing are compatible with
everything, so that with them every row of any table is compatible with k.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Bools, Codes, Counts, Places
from incrowd.codes.frequency import merge_tuples

_BATCH = 1 << 17  # words that are compared at once


def count_compatible_rows(
    codes: Codes, hidden: Bools, counts: Counts, places: Places | None = None
) -> Counts:
    """Return how many rows are compatible with the tuples at ``places``, themselves included.

    ``hidden`` marks suppressed cells, whose codes are not looked at; ``counts`` are the rows of
    each tuple. Without ``places``, all tuples.
    """
    row_places = np.arange(len(counts)) if places is None else places
    columns = [_CellIndex(codes[:, at], hidden[:, at]) for at in range(codes.shape[1])]
    words = -(-len(counts) // 64)
    totals = np.zeros(len(row_places), dtype=np.int64)
    weights = counts.astype(np.float64)  # whole numbers up to 2**53 are exact
    step = max(1, _BATCH // max(words, 1))
    for start in range(0, len(row_places), step):
        part = row_places[start : start + step]
        fits = np.full((len(part), words), ~np.uint64(0))
        for column in columns:
            column.intersect(part, fits)
        marks = np.unpackbits(fits.view(np.uint8), axis=1, count=len(counts), bitorder="little")
        totals[start : start + step] = (marks.astype(np.float64) @ weights).astype(np.int64)
    return totals


class _CellIndex:
    """For each value of a column the tuples that show it or nothing, a bit for each tuple."""

    def __init__(self, codes: Codes, hidden: Bools) -> None:
        self._codes, self._hidden = codes, hidden

    def intersect(self, places: Places, fits: npt.NDArray[np.uint64]) -> None:
        """Keep of the bits of some tuples those of tuples that fit them in this column."""
        has_value = ~self._hidden[places]
        values, at = np.unique(self._codes[places[has_value]], return_inverse=True)
        if not len(values):
            return
        bits = np.zeros((len(values), fits.shape[1] * 8), dtype=np.uint8)
        for place, value in enumerate(values):
            packed = np.packbits((self._codes == value) | self._hidden, bitorder="little")
            bits[place, : len(packed)] = packed
        fits[has_value] &= bits.view(np.uint64)[at]


def find_incompatible_sets(
    codes: Codes, hidden: Bools, counts: Counts, sets: Iterable[tuple[int, ...]], least: int
) -> list[tuple[int, ...]]:
    """Return the sets of columns in which some row is compatible with fewer than ``least`` rows.

    Only rows that fewer than ``least`` rows are equal to need to be compared.
    """
    small_sets = []
    marked = np.where(hidden, -1, codes).astype(np.int32) + 1
    for columns in sets:
        tuples = merge_tuples(marked[:, columns], counts)
        small = np.flatnonzero(tuples.counts < least)
        rows = count_compatible_rows(tuples.codes, tuples.codes == 0, tuples.counts, small)
        if (rows < least).any():
            small_sets.append(columns)
    return small_sets
