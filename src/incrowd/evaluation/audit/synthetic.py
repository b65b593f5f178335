"""Neighboring tables for synthetic rows, and what their measured tables show of the difference.

Rows, model and later choices are computed from the measured tables, so an audit looks at these. The
auditor knows every row but one. With a the vector by which that row moves a query and v the
variance of its noise, the logarithm of the likelihood ratio is (residual . a) / v - |a|^2 / (2 v),
summed over all measured tables: the best test by Neyman and Pearson, because the information of all
tables together is what the certificate accounts. Only the choices are left out, to which a plan
gives 3 % of it.

**The pair** has ``ROWS`` equal rows, or one fewer. With so few rows the method makes no choice, and
the allocation depends on declarations alone: the total, the one-way tables, those that the spec
names, and the rest of the budget for the same tables.

- :class:`WholeRunPair`: one run of the method gives one outcome. It tests the whole path, but ten
  thousand runs show little.
- :class:`RepeatedTablesPair`: the tables that one run of the method measured, each measured many
  times over for the same part of the budget, by the method's own function.

*Claim*: the outcomes of :class:`RepeatedTablesPair` are independent, and each has the law of the
summed ratio in a run with this allocation. *Proof*: a table is measured together with copies of
itself along an axis that has more values than the method centers. So the query, the length of a
row's vector and the variance are those of one copy, and every cell of every copy has noise of its
own. Along axes that are not centered, each value holds the rows of the pair, too: the noise of a
cell does not depend on the other cells, so that each value is a copy. An outcome adds up one copy
of each table, and each copy belongs to one outcome. []
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.anonymize.synthetic.measurement import (
    CENTERED,
    Measurement,
    centered_axes,
    make_query,
    measure,
)
from incrowd.arrays import Counts, Floats
from incrowd.codes.counted_table import CountedTable
from incrowd.codes.frequency import Frequencies
from incrowd.engine.source import local_engine
from incrowd.evaluation.audit.pairs import NeighborPair, Outcome
from incrowd.methods.base import MakeContext, Method
from incrowd.methods.synthetic.method import Synthetic
from incrowd.privacy.information import InformationBudget
from incrowd.privacy.randomness import Randomness, SystemRandomness

ROWS = 30
_STEP = 0.1  # of scores, in standard deviations
_MOST = 60  # steps on either side of 0
_OUTCOMES = 10_000  # of one run
_NOTHING = 1e-9  # information of a table that shows nothing: the rest of a budget
_NUMBERS = 2**22  # of one measured table with its copies


def synthetic_pairs(method: Method) -> list[NeighborPair]:
    """Return the pairs worth trying: many outcomes in each run, or the whole method."""
    assert isinstance(method, Synthetic)
    context = MakeContext(SystemRandomness(), local_engine())
    measured = method.measure(_make_table(method, ROWS), context)
    telling = tuple(table for table in measured if table.information > _NOTHING)
    return [RepeatedTablesPair(telling), WholeRunPair(method)]


def _make_table(method: Synthetic, rows: int) -> CountedTable:
    """Return a table of equal rows, with the first value of every column."""
    columns = method.columns
    codes = [[int(column.codes[0]) for column in method.domain.columns]]
    return CountedTable(
        columns.names,
        tuple(columns.hierarchies.values()),
        (0,) * len(columns.names),
        Frequencies(np.array(codes, dtype=np.int32), np.array([rows], dtype=np.int64)),
    )


def score_laws(information: float) -> tuple[Floats, Floats]:
    """Return the laws of a score in steps: normal, information as squared distance."""
    from scipy.special import ndtr

    mu = math.sqrt(information)
    edges = (np.arange(-_MOST, _MOST + 2) - 0.5) * _STEP
    edges[0], edges[-1] = -np.inf, np.inf
    return np.diff(ndtr(edges - mu / 2)), np.diff(ndtr(edges + mu / 2))


def bin_scores(scores: Floats, information: float) -> Counter[Outcome]:
    """Count scores over their standard deviation, in steps."""
    steps = np.clip(np.rint(scores / math.sqrt(information) / _STEP), -_MOST, _MOST).astype(int)
    values, times = np.unique(steps, return_counts=True)
    return Counter({(value,): n for value, n in zip(values.tolist(), times.tolist(), strict=True)})


def describe_scores(outcomes: Sequence[Outcome]) -> str:
    """Describe scores by their longest run of steps; scattered ones are rare."""
    steps = np.array(sorted(int(str(outcome[0])) for outcome in outcomes))
    blocks = np.split(steps, np.flatnonzero(np.diff(steps) > 1) + 1)
    longest = max(blocks, key=len)
    low, high = longest[0] * _STEP, longest[-1] * _STEP
    scattered = len(steps) - len(longest)
    more = f", and {scattered} rare values" if scattered else ""
    return f"a log-likelihood ratio of {low:.1f} to {high:.1f} standard deviations{more}"


@dataclass(frozen=True, eq=False)
class WholeRunPair:
    """Rows that are all equal, against one fewer; one outcome in each run of the method."""

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
        measured = method.measure(_make_table(method, ROWS if first else ROWS - 1), context)
        score = sum(_score_one(table) for table in measured)
        return bin_scores(np.array([score]), self.method.plan.information)

    def laws(self) -> tuple[Floats, Floats]:
        """Of all the information of the plan; noise is normal but for its rounding."""
        return score_laws(self.method.plan.information)

    def describe_event(self, outcomes: Sequence[Outcome]) -> str:
        """By the ends of the event."""
        return describe_scores(outcomes)


def _score_one(table: Measurement) -> float:
    """Return the score of a measured table whose rows are all in its first cell."""
    row = np.zeros(table.numbers.shape, dtype=np.int64)
    row[(0,) * row.ndim] = 1
    query, length = make_query(row)
    moved = float(((table.numbers - (ROWS - 1) * query) * query).sum())
    return moved / table.variance - length / (2 * table.variance)


@dataclass(frozen=True, eq=False)
class RepeatedTablesPair:
    """The measured tables of one run, each with many copies; see the module's claim."""

    measured: tuple[Measurement, ...]
    views: tuple[tuple[int, ...], ...] = ((0,),)
    share: float = 1.0

    @property
    def outcomes(self) -> int:
        """How many outcomes a run has."""
        largest = max(_count_cells(table.numbers.shape) for table in self.measured)
        return min(max(_NUMBERS // largest, CENTERED + 1), _OUTCOMES)

    @property
    def information(self) -> float:
        """The squared distance of the two laws, but for the rounding of the noise."""
        return sum(_find_length(table) / table.variance for table in self.measured)

    @property
    def description(self) -> str:
        """What differs."""
        return (
            f"{ROWS} equal rows against {ROWS - 1}, by all measured tables ({self.outcomes:,} "
            "copies of them in each run)"
        )

    def run_once(self, method: Method, context: MakeContext, *, first: bool) -> Counter[Outcome]:
        """Return the score of each copy."""
        del method  # the tables are those of one of its runs
        scores = np.zeros(self.outcomes)
        for table in self.measured:
            scores += _score_copies(table, self.outcomes, context.bits, first=first)
        return bin_scores(scores, self.information)

    def laws(self) -> tuple[Floats, Floats]:
        """Of what was spent; noise is normal but for its rounding."""
        return score_laws(self.information)

    def describe_event(self, outcomes: Sequence[Outcome]) -> str:
        """By the ends of the event."""
        return describe_scores(outcomes)


def _count_cells(shape: Sequence[int]) -> int:
    """Return how many numbers one copy takes: those along centered axes."""
    return math.prod(shape[axis] for axis in centered_axes(shape))


def _find_length(table: Measurement) -> int:
    """Return the squared length of a row's vector."""
    row = np.zeros(table.numbers.shape, dtype=np.int64)
    row[(0,) * row.ndim] = 1
    return make_query(row)[1]


def _score_copies(table: Measurement, outcomes: int, bits: Randomness, *, first: bool) -> Floats:
    """Measure copies of a table for the part of the budget that it took, and score each."""
    shape = table.numbers.shape
    centered = centered_axes(shape)
    free = math.prod(shape) // _count_cells(shape)
    # An axis of one value is not centered, and neither is one of more than CENTERED.
    times = 1 if free >= outcomes else max(-(-outcomes // free), CENTERED + 1)
    row = np.zeros((1, *shape), dtype=np.int64)
    row[(0, *(0 if axis in centered else slice(None) for axis in range(len(shape))))] = 1
    rows = np.repeat(row * (ROWS if first else ROWS - 1), times, axis=0)
    budget = InformationBudget(2 * float(table.information))  # more than the part
    done = measure(rows, table.columns, table.levels, table.information, budget, bits)
    query, _ = make_query(row)
    moved = (done.numbers - (ROWS - 1) * query) * query
    sums: Counts = moved.sum(axis=tuple(axis + 1 for axis in centered)).ravel()[:outcomes]
    scores: Floats = sums / done.variance - _find_length(table) / (2 * done.variance)
    return scores
