"""Neighboring tables for tables of counts, and what their measured residuals show.

The auditor knows every row but one. With a the vector by which that row moves a residual's query
and v the variance of its noise, the logarithm of the likelihood ratio is (rest . a) / v - |a|^2 /
(2 v), summed over all residuals, where the rest is what was measured less the query without the
row: the best test by Neyman and Pearson. The plan depends on declarations alone, so the residuals
of a release can be measured again and again, by the method's own function, and each time is an
outcome with the law of a release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from incrowd.anonymize.tables.measure import (
    compute_squared_lengths,
    make_query,
    measure_residuals,
)
from incrowd.anonymize.tables.workload import Columns, Levels
from incrowd.arrays import Counts, Floats
from incrowd.evaluation.audit.pairs import NeighborPair, Outcome
from incrowd.evaluation.audit.synthetic import ROWS, bin_scores, describe_scores, score_laws
from incrowd.methods.base import MakeContext, Method
from incrowd.methods.tables.method import Tables
from incrowd.privacy.gaussian import whole_variance

_NUMBERS = 50_000  # that a run measures, in all its outcomes
_OUTCOMES = 100  # of a run, at most


def table_pairs(method: Method) -> list[NeighborPair]:
    """Return the pair worth trying: equal rows, against one fewer."""
    assert isinstance(method, Tables)
    return [ResidualsPair(method)]


@dataclass(frozen=True, eq=False)
class ResidualsPair:
    """Rows that are all equal, against one fewer, by all measured residuals."""

    method: Tables
    views: tuple[tuple[int, ...], ...] = ((0,),)
    share: float = 1.0

    @property
    def description(self) -> str:
        """What differs."""
        return f"{ROWS} equal rows against {ROWS - 1}, by all measured residuals"

    @cached_property
    def moves(self) -> list[tuple[Counts, Floats]]:
        """The vector by which a row moves each residual, and the variance of each number."""
        workload, vectors = self.method.plan.workload, []
        for residual in self.method.plan.residuals:
            row = self._count(residual.unit, residual.columns, residual.components)
            lengths = compute_squared_lengths(workload, residual)
            sizes = {int(x): whole_variance(int(x), residual.part) for x in np.unique(lengths) if x}
            variances = np.array([sizes.get(int(x), 1) for x in lengths.ravel()], dtype=float)
            vectors.append((make_query(workload, residual, row), variances.reshape(lengths.shape)))
        return vectors

    @cached_property
    def information(self) -> float:
        """The squared distance of the two laws, but for the rounding of the noise."""
        return float(sum((move**2 / variances).sum() for move, variances in self.moves))

    @property
    def outcomes(self) -> int:
        """How many outcomes a run has."""
        numbers = sum(move.size for move, _ in self.moves)
        return min(max(_NUMBERS // numbers, 1), _OUTCOMES)

    def _count(self, rows: int, columns: Columns, levels: Levels) -> Counts:
        """Return the counts of so many rows with the first value of every column."""
        cells = np.zeros(self.method.plan.workload.shape(columns, levels), dtype=np.int64)
        cells[(0,) * cells.ndim] = rows
        return cells

    def run_once(self, method: Method, context: MakeContext, *, first: bool) -> Counter[Outcome]:
        """Return the scores of several measurements."""
        assert isinstance(method, Tables)
        rows = ROWS if first else ROWS - 1

        def tabulate(quantity: int, columns: Columns, levels: Levels) -> Counts:
            # Each row has the largest value of every summed column.
            steps = self.method.plan.workload.sums[quantity - 1].steps if quantity else 1
            return self._count(rows * steps, columns, levels)

        scores = []
        for _ in range(self.outcomes):
            measured = measure_residuals(tabulate, method.plan, context.bits)
            scores.append(
                sum(
                    float(((entry.numbers - (ROWS - 1) * move) * move / variances).sum())
                    for entry, (move, variances) in zip(measured, self.moves, strict=True)
                )
                - self.information / 2
            )
        return bin_scores(np.array(scores), self.information)

    def laws(self) -> tuple[Floats, Floats]:
        """Of what was measured; noise is normal but for its rounding."""
        return score_laws(self.information)

    def describe_event(self, outcomes: Sequence[Outcome]) -> str:
        """By the ends of the event."""
        return describe_scores(outcomes)
