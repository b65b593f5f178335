"""Choosing, privately, which table to measure next.

**Score.** A candidate is a table: columns and levels. With n its counts and m what the released
model expects of each cell, rounded to whole numbers, its score is the sum over cells of max(n - m,
0), less a penalty for the noise that the table would be measured with.

**Claim.** A row more raises every score by 0 or 1. It adds 1 to one cell's n; m, the penalty and
the candidates are functions of released results and declarations. So a choice with probability
proportional to e^(epsilon score) has the range epsilon
(:func:`incrowd.privacy.selection.choose`).

**Weights.** Pairs without the target column may count for less: all scores are multiplied by whole
numbers up to q and epsilon is divided by q, so that a row raises epsilon times the score by at most
epsilon, as before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Protocol

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.synthetic.domain import Columns, Domain, Levels
from incrowd.anonymize.synthetic.measurement import gain
from incrowd.anonymize.synthetic.model import Model
from incrowd.arrays import Counts
from incrowd.privacy.randomness import Randomness
from incrowd.privacy.selection import choose

NOISE_PENALTY = 0.7
_MEAN_DEVIATION = math.sqrt(2 / math.pi)  # of a normal variable, in standard deviations


class CountTable(Protocol):
    """The private table: it counts some columns at some levels."""

    def __call__(self, columns: Columns, levels: Levels) -> Counts:
        """Return the counts, with an axis for each column, along its positions.

        Of none, all rows.
        """
        ...


@dataclass(frozen=True)
class Candidate:
    """A table that may be measured; ``cells`` and ``gain`` are those of its measurement."""

    columns: Columns
    levels: Levels
    cells: int
    gain: float

    @property
    def need(self) -> float:
        """How much information it wants, relative to others: a root of its size."""
        return self.need_of(self.cells)

    def need_of(self, cells: float) -> float:
        """How much information it wants if so many of its cells matter."""
        return math.sqrt(cells * math.sqrt(self.gain))


def make_candidate(domain: Domain, columns: Columns, levels: Levels) -> Candidate:
    """Return the candidate of some columns at some levels."""
    shape = domain.shape(columns, levels)
    return Candidate(columns, levels, math.prod(shape), gain(shape))


def limit_levels(
    domain: Domain, columns: Columns, most: int, levels: Levels | None = None
) -> Levels | None:
    """Return levels at which a table has at most so many cells, largest column first.

    Begins at ``levels``, or at the leaves; None if even the coarsest table is too large.
    """
    chosen_levels = list(levels or (0,) * len(columns))
    while domain.cells(columns, tuple(chosen_levels)) > most:
        sizes = [
            (domain.columns[column].sizes[level], -axis)
            for axis, (column, level) in enumerate(zip(columns, chosen_levels, strict=True))
            if level < domain.columns[column].height - 1
        ]
        if not sizes:
            return None
        chosen_levels[-max(sizes)[1]] += 1
    return tuple(chosen_levels)


def list_pairs(domain: Domain, most: int) -> Iterator[Candidate]:
    """All pairs of columns at all levels from the finest of at most so many cells."""
    for columns in combinations(range(len(domain)), 2):
        finest = limit_levels(domain, columns, most)
        if finest is not None:
            tops = domain.tops(columns)
            for levels in product(*(range(a, b + 1) for a, b in zip(finest, tops, strict=True))):
                yield make_candidate(domain, columns, levels)


def list_triples(
    domain: Domain, limits: Sequence[int], is_eligible: Callable[[Columns], bool]
) -> Iterator[Candidate]:
    """Triples of columns that are wanted, at the finest levels within each limit of cells."""
    for columns in combinations(range(len(domain)), 3):
        levels: Levels | None = None
        if not is_eligible(columns):
            continue
        for limit in limits:
            coarser = limit_levels(domain, columns, limit, levels)
            if coarser is None:
                break
            if coarser != levels:
                yield make_candidate(domain, columns, coarser)
            levels = coarser


class PrivateTables:
    """Counts of the private table, each counted once and rolled up to coarser levels."""

    def __init__(self, domain: Domain, count: CountTable) -> None:
        self._domain = domain
        self._count = count
        self._kept: dict[Columns, tuple[Levels, npt.NDArray[np.integer]]] = {}

    def keep(self, columns: Columns, levels: Levels) -> None:
        """Count a table now, at the finest levels at which it will be asked for."""
        table = self._count(columns, levels)
        small = int(table.max(initial=0)) < 2**31
        self._kept[columns] = levels, table.astype(np.int32) if small else table

    def get(self, columns: Columns, levels: Levels) -> Counts:
        """Return the counts of some columns at some levels."""
        if columns in self._kept:
            finest, table = self._kept[columns]
            if all(low <= level for low, level in zip(finest, levels, strict=True)):
                return self._domain.roll_up(table.astype(np.int64), columns, finest, levels)
        return self._count(columns, levels)


class Scores:
    """The scores of candidates against a released model; private until a choice is drawn."""

    def __init__(
        self, domain: Domain, tables: PrivateTables, candidates: Iterable[Candidate]
    ) -> None:
        self._domain = domain
        self._tables = tables
        self._finest: dict[Columns, Levels] = {}
        for candidate in candidates:
            before = self._finest.get(candidate.columns, candidate.levels)
            lower = tuple(min(a, b) for a, b in zip(before, candidate.levels, strict=True))
            self._finest[candidate.columns] = lower
        for columns, levels in self._finest.items():
            tables.keep(columns, levels)

    def expect(self, model: Model) -> None:
        """Take a released model as the one that scores are computed against."""
        self._expected = {
            columns: model.table(columns, levels) * model.rows
            for columns, levels in self._finest.items()
        }

    def count_visible(self, candidate: Candidate, deviation: float) -> float:
        """Return the cells of a candidate that can be told from noise of some deviation; public."""
        finest = self._finest[candidate.columns]
        table = self._domain.roll_up(
            self._expected[candidate.columns], candidate.columns, finest, candidate.levels
        )
        return float(np.minimum(table / deviation, 1.0).sum())

    def compute(self, candidates: Sequence[Candidate], deviations: Sequence[float]) -> Counts:
        """Compute the score of each candidate for noise of the given deviation."""
        scores = np.empty(len(candidates), dtype=np.int64)
        differences: dict[Columns, Counts] = {}
        for number, (candidate, deviation) in enumerate(zip(candidates, deviations, strict=True)):
            finest = self._finest[candidate.columns]
            if candidate.columns not in differences:
                counts = self._tables.get(candidate.columns, finest)
                expected = np.rint(self._expected[candidate.columns]).astype(np.int64)
                differences[candidate.columns] = counts - expected
            table = self._domain.roll_up(
                differences[candidate.columns], candidate.columns, finest, candidate.levels
            )
            visible = self.count_visible(candidate, _MEAN_DEVIATION * deviation)
            scores[number] = score_difference(table) - noise_penalty(visible, deviation)
        return scores


def expected_counts(model: Model, columns: Columns, levels: Levels) -> Counts:
    """Return what a released model expects of each cell, in whole numbers."""
    return np.rint(model.table(columns, levels) * model.rows).astype(np.int64)


def score_difference(difference: Counts) -> int:
    """Return the rows by which counts exceed what is expected, cell by cell."""
    return int(np.maximum(difference, 0).sum())


def noise_penalty(cells: float, deviation: float) -> int:
    """Return what a score loses for noise: a share of the rows by which noise alone exceeds."""
    return round(NOISE_PENALTY * 0.5 * _MEAN_DEVIATION * deviation * cells)


def choose_fitting(
    scores: Counts,
    weights: Counts,
    *,
    epsilon: Fraction,
    fits: Callable[[int], bool],
    bits: Randomness,
    alike: Counts | None = None,
) -> int | None:
    """Return the place of a candidate that fits, chosen privately; None if none does.

    Args:
        scores: whole numbers that a row raises by 0 or 1.
        weights: whole numbers by which scores are multiplied.
        epsilon: the range of the choice.
        fits: a public condition.
        bits: the source of randomness.
        alike: a number for each candidate; those of one number all fit, or none does.

    Candidates that do not fit leave the law when one of them is drawn; see
    :mod:`incrowd.privacy.selection` for why that is one choice.

    """
    left = np.arange(len(scores))
    alike = left if alike is None else alike
    rate = epsilon / int(weights.max(initial=1))
    weighted = scores * weights
    while len(left):
        place = int(left[choose(weighted[left], epsilon=rate, bits=bits)])
        if fits(place):
            return place
        left = left[alike[left] != alike[place]]
    return None
