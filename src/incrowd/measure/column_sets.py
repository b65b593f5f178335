"""Which sets of columns single people out: distinction, separation, and rows in small groups.

*Distinction* of a set of columns is the share of distinct combinations among the rows: at least
this share of the rows can be kept so that no two are alike. *Separation* is the share of pairs of
rows that differ in the set (Motwani and Xu 2007). Both are 1 for a key and 0 for a constant, up to
one row; both grow with the set.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from incrowd.arrays import Counts, Progress
from incrowd.codes.frequency import Frequencies, pack_columns


@dataclass(frozen=True)
class ColumnSetRisk:
    """How far a set of columns tells rows apart.

    Attributes:
        columns: Names of the columns.
        groups: Number of distinct combinations.
        uniques: Rows that are alone with their combination.
        violating: Rows in groups of fewer than k.
        distinction: Distinct combinations per row; the mean risk of an attacker who knows that
            somebody is in the table.
        separation: Share of pairs of rows that differ.
    """

    columns: tuple[str, ...]
    groups: int
    uniques: int
    violating: int
    distinction: float
    separation: float


def measure_column_set(columns: Sequence[str], counts: Counts, k: int) -> ColumnSetRisk:
    """Return the figures of one set of columns, from the sizes of its groups."""
    rows = int(counts.sum())
    alike = int((counts * (counts - 1) // 2).sum())
    pairs = rows * (rows - 1) // 2
    return ColumnSetRisk(
        columns=tuple(columns),
        groups=len(counts),
        uniques=int((counts == 1).sum()),
        violating=int(counts[counts < k].sum()),
        distinction=len(counts) / max(rows, 1),
        separation=(pairs - alike) / pairs if pairs else 0.0,
    )


def measure_column_sets(
    names: Sequence[str],
    frequencies: Frequencies,
    *,
    most: int,
    k: int,
    progress: Progress = lambda _done, _all: None,
) -> tuple[ColumnSetRisk, ...]:
    """Return all sets of up to ``most`` columns, those first that put most rows at risk.

    Risk is the number of rows in groups of fewer than k, then the distinction; of equals the
    smaller set comes first.
    """
    total = count_column_sets(len(names), most)
    risks = []
    for done, places in enumerate(iterate_column_sets(len(names), most)):
        progress(done, total)
        counts = count_groups(frequencies, places)
        risks.append(measure_column_set([names[at] for at in places], counts, k))
    return tuple(
        sorted(risks, key=lambda risk: (-risk.violating, -risk.distinction, len(risk.columns)))
    )


def count_groups(frequencies: Frequencies, places: Sequence[int]) -> Counts:
    """Return the sizes of the groups by some of the columns."""
    columns = [frequencies.codes[:, at] for at in places]
    numbers = pack_columns(columns, len(frequencies))
    groups = np.unique(numbers, return_inverse=True)[1]
    return np.bincount(groups, weights=frequencies.counts).astype(np.int64)


def iterate_column_sets(width: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield the sets of 1 to ``most`` of so many columns, by their places."""
    for size in range(1, min(most, width) + 1):
        yield from combinations(range(width), size)


def count_column_sets(width: int, most: int) -> int:
    """Return how many sets of 1 to ``most`` columns there are."""
    return sum(math.comb(width, size) for size in range(1, min(most, width) + 1))
