"""Means of a column in each cell, with intervals that hold where few people are in it, too.

With N the number of rows of a cell, and S the sum of what values differ from the middle, in half
steps, the mean is middle + (step / 2) S / N. Both are estimated with independent noise of known
variance. A mean m is in the interval if S - d N, with d = (m - middle) / (step / 2), is within 1.96
of its own standard deviations of 0 (Fieller): so the interval holds the true mean with probability
0.95, whatever N is. It is cut at the bounds, which every mean keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from incrowd.anonymize.tables.estimate import estimate_tables
from incrowd.anonymize.tables.measure import MeasuredResidual
from incrowd.anonymize.tables.plan import TablesPlan
from incrowd.anonymize.tables.workload import RequestedTable, SumColumn
from incrowd.arrays import Floats
from incrowd.errors import ParameterError

NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, eq=False)
class TableMeans:
    """The estimated mean of each cell, and a 95 % interval; all of the bounds if nothing is known.

    A mean is not a number where the estimated count is 0 or less.
    """

    means: Floats
    low: Floats
    high: Floats


def estimate_means(
    plan: TablesPlan, measured: Sequence[MeasuredResidual], table: RequestedTable
) -> TableMeans:
    """Return the means of a table of sums."""
    if not table.quantity:
        raise ParameterError("quantity", "be that of a sum, to have means", table.quantity)
    rows = replace(table, quantity=0)
    counts, sums = estimate_tables(plan, measured, (rows, table))
    column = plan.workload.sums[table.quantity - 1]
    return compute_means(column, counts, sums, plan.variance(rows), plan.variance(table))


def compute_means(
    column: SumColumn,
    counts: Floats,
    sums: Floats,
    count_variance: Floats,
    variance: Floats,
) -> TableMeans:
    """Return means from estimated counts and sums, and the variances of both."""
    half = column.step / 2
    sums = (sums - column.middle * counts) / half
    sum_variance = (variance - column.middle**2 * count_variance) / half**2
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(counts > 0, sums / counts, np.nan)
        # (S - d N)^2 <= z^2 (var S + d^2 var N) is a d^2 - 2 b d + c <= 0
        a = counts**2 - NORMAL_95**2 * count_variance
        b = sums * counts
        c = sums**2 - NORMAL_95**2 * sum_variance
        root = np.sqrt(np.maximum(b * b - a * c, 0.0))
        is_bounded = (a > 0) & (counts > 0)
        low = np.where(is_bounded, (b - root) / a, -np.inf)
        high = np.where(is_bounded, (b + root) / a, np.inf)
    limits = column.lower, column.upper
    return TableMeans(
        *(np.clip(column.middle + half * x, *limits) for x in (ratio, low, high)),
    )
