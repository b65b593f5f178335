"""Neighboring tables for an audit of synthetic rows, and what is looked at of a run.

What sees the private table of a release are its measurements and choices; rows and model follow
from them, so that an audit leaves them out. Of a run it keeps the logarithm of the likelihood ratio
of the measurements, of the one table against the other, in steps of a tenth: of all tests on
measurements the best (Neyman and Pearson). With noise of variance v and a the vector by which the
row moves a query, that is the sum of (measured - query without the row) . a / v - |a|^2 / (2 v).

- :class:`AlikeRows`: a few rows that are all alike, against one fewer. Every measured table tells
  of the row, and together they have all the information of the plan. One outcome in each run.
- :class:`ManyLeaves`, of one column with many values: each value has some rows, against one fewer.
  Noise is independent from value to value, and the share of a value in the budget does not depend
  on the counts, so that every value of a run is an outcome of its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.anonymize.synthetic.allocation import TOTAL_SHARE
from incrowd.anonymize.synthetic.measurement import Measurement, centered_axes
from incrowd.arrays import Floats
from incrowd.codes.counted_table import CountedTable
from incrowd.codes.frequency import Frequencies
from incrowd.evaluation.audit.pairs import NeighborPair, Outcome
from incrowd.methods.base import MakeContext, Method
from incrowd.methods.synthetic.method import Synthetic
from incrowd.privacy.gaussian import ROUNDING_VARIANCE

ROWS = 30
_STEP = 0.1  # of scores, in standard deviations
_MOST = 60  # steps on either side of 0
_VALUES = 10_000


def synthetic_pairs(method: Method) -> list[NeighborPair]:
    """Return the pair worth trying: many outcomes in each run, where there is one column for it."""
    assert isinstance(method, Synthetic)
    column = method.domain.columns[0]
    if len(method.domain) == 1 and not centered_axes(column.sizes[:1]):
        return [ManyLeaves(method)]
    return [AlikeRows(method)]


def _laws(information: float) -> tuple[Floats, Floats]:
    """Return the laws of a score in steps: normal, information as squared distance."""
    from scipy.special import ndtr

    mu = math.sqrt(information)
    edges = (np.arange(-_MOST, _MOST + 2) - 0.5) * _STEP
    edges[0], edges[-1] = -np.inf, np.inf
    return np.diff(ndtr(edges - mu / 2)), np.diff(ndtr(edges + mu / 2))


def _bin(scores: Floats, information: float) -> Counter[Outcome]:
    """Scores over their standard deviation, in steps."""
    steps = np.clip(np.rint(scores / math.sqrt(information) / _STEP), -_MOST, _MOST).astype(int)
    values, times = np.unique(steps, return_counts=True)
    return Counter({(value,): n for value, n in zip(values.tolist(), times.tolist(), strict=True)})


def _tell(outcomes: Sequence[Outcome]) -> str:
    steps = sorted(int(str(one[0])) for one in outcomes)
    low, high = steps[0] * _STEP, steps[-1] * _STEP
    return f"a log-likelihood ratio of {low:.1f} to {high:.1f} standard deviations"


@dataclass(frozen=True, eq=False)
class AlikeRows:
    """Rows that are all alike, against one fewer."""

    method: Synthetic
    views: tuple[tuple[int, ...], ...] = ((0,),)
    share: float = 1.0

    @property
    def description(self) -> str:
        """What differs."""
        return f"{ROWS} equal rows against {ROWS - 1}, by all measured tables"

    def run_once(self, method: Method, context: MakeContext, *, first: bool) -> Counter[Outcome]:
        """Return the score of one run."""
        assert isinstance(method, Synthetic)
        rows = ROWS if first else ROWS - 1
        measured = method.measure(_make_table(method, [0], rows), context)
        score = sum(_score(one, ROWS - 1) for one in measured)
        return _bin(np.array([score]), self.method.plan.information)

    def laws(self) -> tuple[Floats, Floats]:
        """Of all the information of the plan; noise is normal but for its rounding."""
        return _laws(self.method.plan.information)

    def describe_event(self, outcomes: Sequence[Outcome]) -> str:
        """By the ends of the event."""
        return _tell(outcomes)


def _make_table(method: Synthetic, values: Sequence[int], rows: int) -> CountedTable:
    """Return a table of so many rows for each of some positions, the same in every column."""
    domain = method.domain
    codes = [[int(column.codes[at]) for column in domain.columns] for at in values]
    order = np.lexsort(np.array(codes).T[::-1])
    counts = np.full(len(values), rows, dtype=np.int64)
    columns = method.columns
    return CountedTable(
        columns.names,
        tuple(columns.hierarchies.values()),
        (0,) * len(columns.names),
        Frequencies(np.array(codes, dtype=np.int32)[order], counts),
    )


def _score(one: Measurement, others: int) -> float:
    """Return the logarithm of the likelihood ratio of a measurement.

    All other rows are at position 0.
    """
    row = np.zeros(one.numbers.shape)
    row[(0,) * row.ndim] = 1.0
    for axis in one.centered:
        row = row.shape[axis] * row - row.sum(axis=axis, keepdims=True)
    moved, length = ((one.numbers - others * row) * row).sum(), (row**2).sum()
    return float(moved / one.variance - length / (2 * one.variance))


@dataclass(frozen=True, eq=False)
class ManyLeaves:
    """Values of one column, each of some rows, against each of one fewer."""

    method: Synthetic
    views: tuple[tuple[int, ...], ...] = ((0,),)
    share: float = 1.0

    @property
    def _values(self) -> int:
        return min(self.method.domain.columns[0].sizes[0], _VALUES)

    @property
    def description(self) -> str:
        """What differs."""
        return (
            f"a value of {ROWS} rows against the same value of {ROWS - 1} ({self._values:,} such "
            "values in each run)"
        )

    def run_once(self, method: Method, context: MakeContext, *, first: bool) -> Counter[Outcome]:
        """Return the score of each value."""
        assert isinstance(method, Synthetic)
        rows = ROWS if first else ROWS - 1
        table = _make_table(method, range(self._values), rows)
        scores = np.zeros(self._values)
        information = 0.0
        for one in method.measure(table, context):
            if one.columns:
                residual = one.numbers[: self._values] - (ROWS - 1)
                scores += residual / one.variance - 1 / (2 * one.variance)
                information += 1 / one.variance
        return _bin(scores, information)

    def laws(self) -> tuple[Floats, Floats]:
        """Of all the information but that of the number of rows, and but for the rounding."""
        part = (1 - TOTAL_SHARE) * self.method.plan.information
        return _laws(1 / (1 / part + ROUNDING_VARIANCE))

    def describe_event(self, outcomes: Sequence[Outcome]) -> str:
        """By the ends of the event."""
        return _tell(outcomes)
