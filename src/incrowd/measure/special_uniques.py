"""Special uniques: records that are unique by few columns already (SUDA2, DIS-SUDA).

A *minimal sample unique* (MSU) of a record is a set of columns by which it is unique, no smaller
part of which makes it so. Records with many and small MSUs are more likely to be unique in the
population, too (Elliot, Manning and Ford 2002).

**Search.** Uniqueness is inherited by larger sets: so a set that makes a record unique is minimal
if and only if none of its parts with one column less does. Sets are gone through by size; one is
counted only if some record that is unique by all columns is not yet unique by a part of it. The
result is the same set of MSUs as that of the recursive SUDA2 (Manning, Haglin and Keane 2008).

**Scores** of one MSU of s out of m columns, with M the largest size that is searched:

- ``elliot`` (Elliot and others 2005): product of (m - i) for i from s to min(M, m - 1);
- ``ihsn`` (early sdcMicro): (2^(m - s) - 1) s! (m - s)! / m!.

The score of a record is the sum over its MSUs. *DIS-SUDA* spreads the risk of the file over the
records: with U unique records, P records in pairs and sampling fraction f, DIS = U f / (U f +
P (1 - f)) estimates the chance that a unique match is correct (Skinner and Elliot 2002); with
q = 1 + (8 - m) / 20, a record of score z gets 1 / (1 + U (1 / DIS - 1) / (z^q sum of z^-q)), as in
sdcMicro. It is a heuristic, which ranks records; it bounds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from incrowd.arrays import Bools, Floats, Places, Progress
from incrowd.codes.frequency import Frequencies, pack_columns

Score: TypeAlias = Literal["elliot", "ihsn"]


@dataclass(frozen=True, eq=False)
class SpecialUniques:
    """Minimal sample uniques of a table, by tuple.

    ``scores`` and ``dis`` have an entry for each tuple, 0 where it is not unique; ``dis`` is None
    without a sampling fraction. ``sizes`` counts MSUs of 1, 2, ... columns. ``contributions`` is
    the share of all scores that comes from MSUs with each column.
    """

    scores: Floats
    dis: Floats | None
    sizes: tuple[int, ...]
    contributions: tuple[float, ...]

    @property
    def records(self) -> int:
        """The number of records with an MSU."""
        return int((self.scores > 0).sum())


def find_special_uniques(
    frequencies: Frequencies,
    *,
    most: int | None = None,
    fraction: float | None = None,
    score: Score = "elliot",
    progress: Progress = lambda _done, _all: None,
) -> SpecialUniques:
    """Return the scores of all tuples by their MSUs of up to ``most`` columns (default: all)."""
    width = frequencies.codes.shape[1]
    most = min(most or width, width)
    scores = np.zeros(len(frequencies))
    by_column, sizes = np.zeros(width), [0] * most
    for places, records in iterate_minimal_uniques(frequencies, most, progress):
        value = compute_msu_score(len(places), width, most, score)
        scores[records] += value
        sizes[len(places) - 1] += len(records)
        by_column[list(places)] += value * len(records)
    total = scores.sum()
    shares = by_column / total if total else by_column
    dis = None if fraction is None else compute_dis_suda(frequencies, scores, fraction)
    return SpecialUniques(scores, dis, tuple(sizes), tuple(shares.tolist()))


def iterate_minimal_uniques(
    frequencies: Frequencies, most: int, progress: Progress = lambda _done, _all: None
) -> Iterator[tuple[tuple[int, ...], Places]]:
    """Yield sets of columns with the tuples of which they are minimal sample uniques."""
    codes, counts = frequencies.codes, frequencies.counts
    width, candidates = codes.shape[1], np.flatnonzero(counts == 1)
    if not len(candidates):
        return
    smaller: dict[tuple[int, ...], Bools] = {}  # unique by the sets of the size before
    total = sum(math.comb(width, size) for size in range(1, most + 1))
    done = 0
    for size in range(1, most + 1):
        unique: dict[tuple[int, ...], Bools] = {}
        for places in combinations(range(width), size):
            progress(done := done + 1, total)
            inherited = np.zeros(len(candidates), dtype=bool)
            for part in combinations(places, size - 1):
                inherited |= smaller.get(part, False)
            unique[places] = inherited
            if inherited.all():
                continue
            numbers = pack_columns([codes[:, at] for at in places], len(counts))
            _, groups = np.unique(numbers, return_inverse=True)
            alone = np.bincount(groups, weights=counts)[groups[candidates]] == 1
            unique[places] = alone
            minimal = alone & ~inherited
            if minimal.any():
                yield places, candidates[minimal]
        smaller = unique


def compute_msu_score(size: int, width: int, most: int, score: Score) -> float:
    """Return the score of one MSU of ``size`` out of ``width`` columns."""
    if score == "ihsn":
        return float((1 << (width - size)) - 1) / math.comb(width, size)
    return float(math.prod(width - at for at in range(size, min(most, width - 1) + 1)))


def compute_dis(uniques: int, in_pairs: int, fraction: float) -> float:
    """Return the estimated chance that a unique match with the population is correct.

    >>> round(compute_dis(4, 6, 0.01), 8)
    0.00668896
    """
    mass = uniques * fraction + in_pairs * (1 - fraction)
    return uniques * fraction / mass if mass else 0.0


def compute_dis_suda(frequencies: Frequencies, scores: Floats, fraction: float) -> Floats:
    """Return the DIS-SUDA score of each tuple."""
    counts = frequencies.counts
    uniques, in_pairs = int((counts == 1).sum()), 2 * int((counts == 2).sum())
    dis, special = compute_dis(uniques, in_pairs, fraction), scores > 0
    dis_scores = np.zeros(len(scores))
    if dis and special.any():
        power = scores[special] ** (1 + (8 - frequencies.codes.shape[1]) / 20)
        dis_scores[special] = 1 / (1 + uniques * (1 / dis - 1) / (power * (1 / power).sum()))
    return dis_scores
