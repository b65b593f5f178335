"""Measuring residuals: exact whole-number queries with exact noise.

What a residual costs, and why, stands in :mod:`incrowd.anonymize.tables.plan`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from incrowd.anonymize.tables.plan import Residual, TablesPlan
from incrowd.anonymize.tables.workload import Columns, Levels, Workload
from incrowd.arrays import Counts
from incrowd.errors import ParameterError
from incrowd.privacy import discrete_noise
from incrowd.privacy.gaussian import whole_variance
from incrowd.privacy.randomness import Randomness

_AT_ONCE = 2_000_000  # numbers drawn at a time, so that memory stays small


@dataclass(frozen=True, eq=False)
class MeasuredResidual:
    """The numbers of a residual's query, with noise; 0 in blocks that carry nothing."""

    residual: Residual
    numbers: Counts


def measure_residuals(
    count_table: Callable[[Columns, Levels], Counts], plan: TablesPlan, bits: Randomness
) -> tuple[MeasuredResidual, ...]:
    """Measure all residuals of a plan, in its order.

    Args:
        count_table: returns the exact counts of some columns at some levels, dense, an axis for
            each column in ascending order. It is called once for each largest table.
        plan: the plan.
        bits: the random bits of the noise.

    """
    workload = plan.workload
    measured: dict[tuple[Columns, Levels], MeasuredResidual] = {}
    for table in workload.largest_tables:
        low = table.columns, table.levels
        counts = np.asarray(count_table(*low), dtype=np.int64)
        if counts.shape != workload.shape(*low):
            raise ParameterError("count_table", "count dense tables", counts.shape)
        for residual in plan.find_residuals(table):
            key = residual.columns, residual.components
            if key not in measured:
                query = make_query(workload, residual, workload.roll_up(counts, low, key))
                query += draw_noise(workload, residual, bits)
                measured[key] = MeasuredResidual(residual, query)
    return tuple(measured[x.columns, x.components] for x in plan.residuals)


def make_query(workload: Workload, residual: Residual, counts: Counts) -> Counts:
    """Return the query of a residual, from the counts of its columns at its components."""
    query = counts.copy()
    for at, (column, component) in enumerate(
        zip(residual.columns, residual.components, strict=True)
    ):
        link = workload.axes[column].links[component]
        if residual.centered[at]:
            sums = link.sum_children(query, at)
            query *= _align(link.siblings, at, query.ndim)
            query -= link.spread_parents(sums, at)
        else:
            query *= _align((link.siblings > 1).astype(np.int64), at, query.ndim)
    return query


def compute_squared_lengths(workload: Workload, residual: Residual) -> Counts:
    """Return, for each number of a query, D^2 of its block; 0 where it carries nothing."""
    lengths = np.ones((), dtype=np.int64)
    for column, component, is_centered in zip(
        residual.columns, residual.components, residual.centered, strict=True
    ):
        a = workload.axes[column].links[component].siblings
        lengths = np.multiply.outer(lengths, a * (a - 1) if is_centered else (a > 1).astype(int))
    return lengths


def draw_noise(workload: Workload, residual: Residual, bits: Randomness) -> Counts:
    """Draw the noise of a residual: of each block the variance that its part buys."""
    lengths = compute_squared_lengths(workload, residual)
    noise = np.zeros(lengths.size, dtype=np.int64)
    flat = lengths.ravel()
    for length in np.unique(flat[flat > 0]).tolist():
        variance = Fraction(whole_variance(length, residual.part))
        places = np.flatnonzero(flat == length)
        for start in range(0, len(places), _AT_ONCE):
            some = places[start : start + _AT_ONCE]
            noise[some] = discrete_noise.sample_rational_gaussian(variance, len(some), bits)
    return noise.reshape(lengths.shape)


def _align(numbers: Counts, axis: int, dimensions: int) -> Counts:
    """Return numbers along an axis, so that they broadcast over a table."""
    return numbers.reshape([-1 if at == axis else 1 for at in range(dimensions)])
