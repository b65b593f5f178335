"""Measuring residuals: exact whole-number queries with exact noise.

What a residual costs, and why, stands in :mod:`incrowd.anonymize.tables.plan`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.tables.plan import Residual, TablesPlan
from incrowd.anonymize.tables.workload import (
    AxisLink,
    Columns,
    Levels,
    RequestedTable,
    ResidualKey,
    Workload,
)
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
    tabulate: Callable[[int, Columns, Levels], Counts], plan: TablesPlan, bits: Randomness
) -> tuple[MeasuredResidual, ...]:
    """Measure all residuals of a plan, in its order.

    Args:
        tabulate: returns the exact table of a quantity by some columns at some levels, dense, an
            axis for each column in ascending order. Quantity 0 is the number of rows; quantity j
            the sum of the whole steps, from 0 to ``steps`` in each row, of the j-th summed column.
            It is called once for each largest table, and once more for each sum of it.
        plan: the plan.
        bits: the random bits of the noise.

    """
    measured: dict[ResidualKey, MeasuredResidual] = {}
    for quantity in sorted({x.quantity for x in plan.residuals}):
        for table in plan.workload.find_largest(quantity):
            exact: Counts | None = None
            for residual in plan.find_residuals(table):
                if residual.quantity == quantity and residual.key not in measured:
                    if exact is None:
                        exact = _tabulate_centered(tabulate, plan.workload, table)
                    numbers = measure_residual(plan.workload, residual, exact, table, bits)
                    measured[residual.key] = MeasuredResidual(residual, numbers)
    return tuple(measured[x.key] for x in plan.residuals)


def load_measured(
    plan: TablesPlan, numbers: Sequence[npt.NDArray[np.int64]]
) -> tuple[MeasuredResidual, ...]:
    """Return measured residuals from their numbers, in the plan's order; refuse other shapes."""
    shapes = [plan.workload.shape(x.columns, x.components) for x in plan.residuals]
    if [x.shape for x in numbers] != shapes:
        raise ParameterError("numbers", "have the plan's shapes", [x.shape for x in numbers][:9])
    return tuple(MeasuredResidual(x, y) for x, y in zip(plan.residuals, numbers, strict=True))


def _tabulate_centered(
    tabulate: Callable[[int, Columns, Levels], Counts], workload: Workload, table: RequestedTable
) -> Counts:
    """Return exact counts, or the sums of 2 k - K over the rows of each cell."""
    shape = workload.shape(table.columns, table.levels)

    def tabulate_quantity(quantity: int) -> Counts:
        numbers: Counts = np.asarray(
            tabulate(quantity, table.columns, table.levels), dtype=np.int64
        )
        if numbers.shape != shape:
            raise ParameterError("tabulate", "return dense tables", numbers.shape)
        return numbers

    counts = tabulate_quantity(0)
    if not table.quantity:
        return counts
    steps = workload.sums[table.quantity - 1].steps
    sums = tabulate_quantity(table.quantity)
    if bool((sums < 0).any()) or bool((sums > counts * steps).any()):
        raise ParameterError("tabulate", f"add 0 to {steps:,} steps for each row", "other sums")
    return 2 * sums - steps * counts


def measure_residual(
    workload: Workload,
    residual: Residual,
    exact: Counts,
    table: RequestedTable,
    bits: Randomness,
) -> Counts:
    """Return the noisy numbers of a residual, from an exact table that covers it."""
    low, high = (table.columns, table.levels), (residual.columns, residual.components)
    query = make_query(workload, residual, workload.roll_up(exact, low, high))
    query += draw_noise(workload, residual, bits)
    return query


def make_query(workload: Workload, residual: Residual, counts: Counts) -> Counts:
    """Return the query of a residual, from the counts of its columns at its components."""
    query = counts.copy()
    for at, link, is_centered in _list_axes(workload, residual):
        is_measured = link.siblings > 1
        factors = np.where(is_centered, link.siblings, is_measured).astype(np.int64)
        sums = link.sum_children(query, at) if is_centered.any() else None
        if not (factors == 1).all():
            query *= _align(factors, at, query.ndim)
        if sums is not None:
            spread = link.spread_parents(sums, at)
            if not is_centered.all():
                spread = spread * _align(is_centered.astype(np.int64), at, query.ndim)
            query -= spread
    return query


def compute_squared_lengths(workload: Workload, residual: Residual) -> Counts:
    """Return, for each number of a query, D^2 of its block; 0 where it carries nothing."""
    lengths = np.full((), residual.unit**2, dtype=np.int64)
    for _, link, is_centered in _list_axes(workload, residual):
        a = link.siblings
        factors = np.where(is_centered, a * (a - 1), a > 1).astype(np.int64)
        lengths = np.multiply.outer(lengths, factors)
    return lengths


def _list_axes(
    workload: Workload, residual: Residual
) -> Iterator[tuple[int, AxisLink, npt.NDArray[np.bool_]]]:
    """Yield each axis of a residual, its link, and for each child whether its block is centered."""
    for at, (column, component, most_centered) in enumerate(
        zip(residual.columns, residual.components, residual.centered, strict=True)
    ):
        link = workload.axes[column].links[component]
        yield at, link, (link.siblings > 1) & (link.siblings <= most_centered)


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
