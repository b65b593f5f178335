"""Measuring small tables with exact Gaussian noise, and pooling what was measured.

**The query.** A table has a cell for each combination of its columns' groups. Along every axis with
at most ``CENTERED`` groups it is centered: cell x becomes a x - (the sum along the axis), a being
the number of groups. One row is 1 in one cell and 0 elsewhere: centered, it is a - 1 there and -1
in the a - 1 others, of squared length a (a - 1). The query is a product of such steps along
different axes, so a row moves it by a vector of squared length D^2, the product of a (a - 1) over
the centered axes (1 for each other). All of it is in whole numbers. Divided by the product of the
a, noise of variance v has the variance v / (product of a^2) per cell: for the same part of the
budget, the product of (1 - 1/a) times that of the uncentered table, and a quarter for two binary
columns. What centering takes away, sums along an axis, is in the one-way tables.

**The cost** of one measurement is a part of an
:class:`~incrowd.privacy.information.InformationBudget`, see :mod:`incrowd.privacy.gaussian`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from incrowd.anonymize.synthetic.domain import Columns, Levels, ModelColumn
from incrowd.arrays import Counts, Floats
from incrowd.privacy import discrete_noise
from incrowd.privacy.gaussian import whole_variance
from incrowd.privacy.information import InformationBudget
from incrowd.privacy.randomness import Randomness

CENTERED = 16


@dataclass(frozen=True, eq=False)
class Measurement:
    """A measured table: ``numbers`` are those of the query, with noise of ``variance``.

    The query of a table without columns is the number of rows. ``information`` is what the
    measurement cost.
    """

    columns: Columns
    levels: Levels
    numbers: Counts
    variance: int
    information: Fraction

    @property
    def centered(self) -> tuple[int, ...]:
        """The axes along which the query is centered."""
        return centered_axes(self.numbers.shape)

    @cached_property
    def scale(self) -> int:
        """What a row counts in its own cell before the axes' means are taken off."""
        return math.prod(self.numbers.shape[axis] for axis in self.centered)

    @property
    def precision(self) -> float:
        """One over the variance of a cell's noise, in units of rows."""
        return self.scale**2 / self.variance

    @cached_property
    def cells(self) -> Floats:
        """The estimate of each cell, in rows; its distance from the mean along centered axes."""
        return center(self.numbers / self.scale, self.centered)


def centered_axes(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the axes of a table that are centered."""
    return tuple(axis for axis, size in enumerate(shape) if 2 <= size <= CENTERED)


def center(table: Floats, axes: Sequence[int]) -> Floats:
    """Return a table without its means along some axes."""
    for axis in axes:
        # Sums cost a third of what means do, and this is called for every table at every step.
        table = table - np.add.reduce(table, axis=axis, keepdims=True) / table.shape[axis]
    return table


def gain(shape: Sequence[int]) -> float:
    """Return the variance of a cell's noise, over that of the table without centering."""
    return math.prod(1 - 1 / shape[axis] for axis in centered_axes(shape))


def make_query(table: Counts) -> tuple[Counts, int]:
    """Return the whole-number query of a table, and the squared length by which a row moves it."""
    squared_length = 1
    for axis in centered_axes(table.shape):
        size = table.shape[axis]
        table = size * table - table.sum(axis=axis, keepdims=True)
        squared_length *= size * (size - 1)
    return table, squared_length


def measure(
    table: Counts,
    columns: Columns,
    levels: Levels,
    part: Fraction | float,
    budget: InformationBudget,
    bits: Randomness,
) -> Measurement:
    """Measure a table for a part of the budget, or for what is left of it if that is less."""
    query, squared_length = make_query(table)
    spent = budget.spend(part, query.size)
    variance = whole_variance(squared_length, spent)
    noise = discrete_noise.sample_rational_gaussian(Fraction(variance), query.size, bits)
    return Measurement(columns, levels, query + noise.reshape(query.shape), variance, spent)


@dataclass(frozen=True, eq=False)
class TableEstimate:
    """All measurements of one table, as one: cells in rows, and the precision of each."""

    columns: Columns
    levels: Levels
    cells: Floats
    precision: float
    information: float

    @property
    def centered(self) -> tuple[int, ...]:
        """The axes along which only distances from the mean are known."""
        return centered_axes(self.cells.shape)


def combine(measurements: Sequence[Measurement]) -> TableEstimate:
    """Return the mean of measurements of one table, weighted by their precision."""
    first = measurements[0]
    precision = sum(measurement.precision for measurement in measurements)
    cells = sum(
        (measurement.cells * (measurement.precision / precision) for measurement in measurements),
        np.zeros(()),
    )
    information = float(sum(measurement.information for measurement in measurements))
    return TableEstimate(first.columns, first.levels, cells, precision, information)


@dataclass(frozen=True, eq=False)
class OneWay:
    """What is known of one column: the estimate of each leaf, and variances at each level.

    ``variances[l]`` are those of the sums over each group of level l, as measured from below.
    """

    leaves: Floats
    variances: tuple[Floats, ...]


def pool_one_way(
    column: ModelColumn, estimates_by_level: dict[int, tuple[Floats, float]], rows: float
) -> OneWay:
    """Pool, by least squares over a column's levels, estimates of groups at several of them.

    Args:
        column: the column.
        estimates_by_level: an estimate of each group, and its precision; level 0 must be there.
        rows: the number of rows, which the estimates are made to sum to.

    Upward, each group's estimate is the weighted mean of its own and its parts' sum; downward, what
    a group's sum changed is given to its parts in proportion to their variances. That is the
    least-squares solution of a tree.

    """
    leaves, precision = estimates_by_level[0]
    estimates = [leaves]
    variances = [np.full(len(leaves), 1 / precision)]
    for level in range(1, column.height):
        runs = column.runs(level - 1, level)
        total, variance = (np.add.reduceat(x[-1], runs) for x in (estimates, variances))
        if level in estimates_by_level:
            group_estimate, weight = estimates_by_level[level]
            variance_before, variance = variance, 1 / (1 / variance + weight)
            total = (total / variance_before + group_estimate * weight) * variance
        estimates.append(total)
        variances.append(variance)
    top, spread = estimates[-1], variances[-1]
    pooled = top + (rows - top.sum()) * spread / spread.sum()
    for level in range(column.height - 1, 0, -1):
        runs, parents = column.runs(level - 1, level), column.parents(level - 1, level)
        below, spread = estimates[level - 1], variances[level - 1]
        missing = (pooled - np.add.reduceat(below, runs)) / np.add.reduceat(spread, runs)
        pooled = below + missing[parents] * spread
    return OneWay(pooled, tuple(variances))
