"""How the information is divided: which differences are measured, and with which variance.

**Mechanism.** A residual takes one component of each of its columns. Its query is made of whole
numbers, axis by axis: below a parent with a children, count x becomes a x - (the sum of the
children). A row lies in one child of one parent along every axis, its block; it moves the query by
a product of vectors with a - 1 at one place and -1 at the a - 1 others. So it moves one block, by a
vector of squared length D^2 = product of a (a - 1), and no other. Below a parent with many children
(:func:`_choose_centered`) x is left as it is, and a row moves it by 1: that costs a / (a - 1) times
the variance, and keeps the numbers small. Blocks below a parent with one child carry nothing and
are not measured. Each number gets discrete Gaussian noise of variance ceil(D^2 / tau) + 3, D^2
being that of its own block.

**Sums.** Of a column with whole values k from 0 to K, a row adds 2 k - K in place of 1, which lies
between -K and K: it moves its block by a vector at most K times as long, so D^2 is K^2 times as
large. With S the table of these, N that of the rows, and values of lower + step k, the sum is
middle N + (step / 2) S. S and N are measured apart, each with residuals of its own. Nothing is lost
by taking the middle off: with parts that fit, an error is the same as that of a noisy sum of the
values themselves, half of the largest value for S and half for N if the lowest is 0, and the number
of rows comes with it. A mean, which is middle + (step / 2) S / N, is nearer.

**Claim.** All residuals together cost no more than
:class:`~incrowd.privacy.events.GaussianMeasurements` of ``information``.

**Proof.** Queries and parts are fixed by what is declared. A residual is one measurement in the
sense of :mod:`incrowd.privacy.gaussian`, only that variances differ: scaled to variance 1, number
by number, a row moves the mean by a vector that is 0 outside of the row's block, and of squared
length D^2 / (v - 3) <= tau inside. Which block that is depends on the row, and the bound does not.
The parts are exact fractions that sum to at most ``information``. So that module's claim holds.

**Estimates.** T_child = T_parent / a + (a T_child - T_parent) / a, along every axis. So a table is
a sum over the residuals of its columns; see :mod:`incrowd.anonymize.tables.estimate`. The noise of
a block is projected on vectors with sum 0 along each axis, as differences are: it keeps
(a - 1) / a of its variance along each. So residuals add to a cell the product over axes of
s^2 (a - 1) / a^3 for a centered axis, s^2 (a - 1) / a for another, and s^2 at the root, times v,
where s is the share that the cell has of the child. Different residuals have independent noise, so
their variances add. For columns without hierarchies and variances D^2 / tau this is the optimum of
ResidualPlanner (arXiv 2305.08175): the same subspaces, and ((a - 1) / a)^2 / tau for a part tau.

**Division.** Up to the rounding of variances, a table's mean variance is a sum of k / tau. For the
weighted sum of all cells' variances the best parts are proportional to the roots of the k. For the
largest weighted mean of a table, weights of tables are sought for which the best sum's tables have
equal means (:func:`_balance`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from incrowd.anonymize.tables.workload import (
    Columns,
    Levels,
    RequestedTable,
    ResidualKey,
    TableAxis,
    Workload,
)
from incrowd.arrays import Floats, Places
from incrowd.errors import ParameterError, check_choice
from incrowd.privacy.events import GaussianMeasurements
from incrowd.privacy.gaussian import ROUNDING_VARIANCE
from incrowd.privacy.information import InformationBudget

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_CENTERED = 50  # children per column of a residual: (51 / 50)^d is lost at most
_CENTERED_IN_LARGE = 32  # children where speed counts more
_LARGE = 2_000_000  # numbers of a residual
_LARGEST_LENGTH = 2**50  # so that sums of whole numbers stay far below 2^63
_GAP = 1e-4
_MOST_STEPS = 20_000


@dataclass(frozen=True)
class Residual:
    """The differences of one component of each of its columns, and the part that they cost.

    Siblings' sums are taken off in the query along each axis below parents with at most
    ``centered`` children. ``unit`` is the most that a row adds to a cell: 1, or K of a sum.
    """

    quantity: int
    columns: Columns
    components: Levels
    centered: tuple[int, ...]
    unit: int
    part: Fraction

    @property
    def key(self) -> ResidualKey:
        """What it is, whatever it costs."""
        return self.quantity, self.columns, self.components

    def bound_variance(self, squared_lengths: Floats) -> Floats:
        """Return the variance of the noise of blocks of some squared lengths, in floats."""
        lengths = squared_lengths * float(self.unit) ** 2
        variance: Floats = np.ceil(lengths / float(self.part)) + ROUNDING_VARIANCE
        return variance


@dataclass(frozen=True, eq=False)
class _CellClasses:
    """The cells of an axis at a level, in classes of the same variance whatever is measured.

    For each component from the level up, root last: factors are s^2 times what projection and
    scaling keep of the variance, and the axis' factor of D^2.
    """

    numbers: Floats  # of cells in each class
    places: Places  # the class of each cell
    siblings: Floats  # by component and class; the last row is of the root
    shares: Floats

    @classmethod
    def build(cls, axis: TableAxis, level: int) -> _CellClasses:
        """Return the classes of an axis at a level."""
        steps = range(level, axis.root)
        siblings = [axis.links[j].siblings[axis.ancestors(level, j)] for j in steps]
        shares = [axis.dilution(level, j) for j in (*steps, axis.root)]
        table = np.stack([*siblings, np.ones(axis.sizes[level]), *shares])
        classes, places, numbers = np.unique(table, axis=1, return_inverse=True, return_counts=True)
        half = len(siblings) + 1
        return cls(
            numbers.astype(float), places.ravel().astype(np.int64), classes[:half], classes[half:]
        )

    def list_factors(self, component: int, most_centered: int) -> tuple[Floats, Floats]:
        """Return what is kept of the variance, and the factor of D^2, of each class."""
        a, squares = self.siblings[component], self.shares[component] ** 2
        if component == len(self.siblings) - 1:
            return squares, np.ones(len(a))
        is_centered = a <= most_centered
        scales = squares * (a - 1) / np.where(is_centered, a**3, a)
        return scales, np.where(is_centered, a * (a - 1), 1.0)


@dataclass(frozen=True, eq=False)
class TablesPlan:
    """What is measured with which part of ``information``; known before any table is looked at.

    ``gap`` bounds the objective, up to rounding of variances: it is at most 1 + gap times the best.
    """

    workload: Workload
    information: float
    objective: str
    residuals: tuple[Residual, ...]
    gap: float

    @property
    def events(self) -> tuple[GaussianMeasurements, ...]:
        """What is charged."""
        return (GaussianMeasurements(self.information),)

    @cached_property
    def _classes(self) -> dict[tuple[int, int], _CellClasses]:
        """The classes of cells of axes at levels that were asked for, by both."""
        return {}

    @cached_property
    def by_key(self) -> dict[ResidualKey, Residual]:
        """Each residual by its key."""
        return {x.key: x for x in self.residuals}

    def variance(self, table: RequestedTable) -> Floats:
        """Return the variance of the estimate of each cell of a table or a coarser one."""
        classes, grid = self._compute_grid(table)
        cells: Floats = grid[np.ix_(*(axis.places for axis in classes))] if classes else grid
        return cells

    def mean_variance(self, table: RequestedTable) -> float:
        """Return the mean of the cells' variances."""
        classes, grid = self._compute_grid(table)
        for axis in classes:
            grid = np.tensordot(axis.numbers / axis.numbers.sum(), grid, axes=1)
        return float(grid)

    def find_residuals(self, table: RequestedTable) -> list[Residual]:
        """Return the residuals of a table; refuse one that is not covered."""
        self.workload.check_table(table)
        keys = list(self.workload.list_residuals(table))
        if any(key not in self.by_key for key in keys):
            raise ParameterError(
                "table",
                "be one of those asked for, or a sum of its cells",
                (table.quantity, table.columns, table.levels),
                "Ask for it in the workload.",
            )
        return [self.by_key[key] for key in keys]

    def mean_variances(self, table: RequestedTable) -> dict[Residual, float]:
        """Return what each residual adds to the mean of the cells' variances."""
        classes = self._list_classes(table)
        parts = {}
        for residual in self.find_residuals(table):
            grid = self._compute_part(table, classes, residual)
            for axis in classes:
                grid = np.tensordot(axis.numbers / axis.numbers.sum(), grid, axes=1)
            parts[residual] = float(grid)
        return parts

    def _list_classes(self, table: RequestedTable) -> list[_CellClasses]:
        """Return the classes of each axis of a table."""
        classes = []
        for place in zip(table.columns, table.levels, strict=True):
            if place not in self._classes:
                column, level = place
                self._classes[place] = _CellClasses.build(self.workload.axes[column], level)
            classes.append(self._classes[place])
        return classes

    def _compute_grid(self, table: RequestedTable) -> tuple[list[_CellClasses], Floats]:
        """Return the classes of each axis, and the variance of each combination of them."""
        residuals, classes = self.find_residuals(table), self._list_classes(table)
        grid = np.zeros([len(axis.numbers) for axis in classes])
        for residual in residuals:
            grid += self._compute_part(table, classes, residual)
        return classes, grid

    def _compute_part(
        self, table: RequestedTable, classes: Sequence[_CellClasses], residual: Residual
    ) -> Floats:
        """Return what a residual adds to the variance of each combination of classes."""
        components = dict(zip(residual.columns, residual.components, strict=True))
        centered = dict(zip(residual.columns, residual.centered, strict=True))
        scales = np.full((), find_scale(self.workload, table.quantity, residual.quantity) ** 2)
        lengths = np.ones(())
        for column, level, cells in zip(table.columns, table.levels, classes, strict=True):
            component = components.get(column, self.workload.axes[column].root) - level
            factors = cells.list_factors(component, centered.get(column, 0))
            scales, lengths = (
                np.multiply.outer(x, y) for x, y in zip((scales, lengths), factors, strict=True)
            )
        part: Floats = scales * residual.bound_variance(lengths)
        return part


def find_scale(workload: Workload, quantity: int, part: int) -> float:
    """Return what one unit of a residual's quantity is in the quantity of a table."""
    if not quantity:
        return 1.0
    column = workload.sums[quantity - 1]
    return column.step / 2 if part else column.middle


def plan_tables(
    workload: Workload, information: float, objective: str = "sum", *, totals: bool = False
) -> TablesPlan:
    """Return the residuals of all tables, and their parts of the information.

    Args:
        workload: the tables.
        information: that of all measurements; see
            :func:`incrowd.privacy.information.plan_information`.
        objective: "sum" for the least sum of the variances of all cells, each times its table's
            weight; "max" for the least largest product of a table's weight and mean variance. The
            error of a sum counts in multiples of the largest absolute value of its column.
        totals: whether the objective counts the totals of each table as well: its tables at all
            coarser levels, and without some of its columns. They add up either way.

    """
    check_choice("objective", objective, ("sum", "max"))
    keys = sorted(
        {key for table in workload.tables for key in workload.list_residuals(table)},
        key=lambda key: (len(key[1]), key),
    )
    centered = [_choose_centered(workload, key) for key in keys]
    if objective == "max":
        tables = _list_totals(workload) if totals else workload.tables
        costs = _sum_variances(workload, tables, keys, centered, totals=False)
        cells = np.array([math.prod(workload.shape(x.columns, x.levels)) for x in tables])
        weights = np.array([table.weight for table in tables])
        shares, gap = _balance(costs * (weights / cells)[:, None])
    else:
        costs = _sum_variances(workload, workload.tables, keys, centered, totals=totals)
        roots = np.sqrt(costs.T @ np.array([table.weight for table in workload.tables]))
        shares, gap = roots / roots.sum(), 0.0
    budget = InformationBudget(information)
    residuals = []
    for key, axes, share in zip(keys, centered, shares, strict=True):
        numbers = math.prod(workload.shape(*key[1:]))
        part = budget.spend(Fraction(information) * Fraction(float(share)), numbers)
        residuals.append(Residual(*key, axes, _find_unit(workload, key[0]), part))
    return TablesPlan(workload, information, objective, tuple(residuals), gap)


def _list_totals(workload: Workload) -> tuple[RequestedTable, ...]:
    """Return all tables with all of their totals, each once, with its largest weight."""
    weights: dict[ResidualKey, float] = {}
    for table in workload.tables:
        choices = [
            range(level, workload.axes[x].root + 1)
            for x, level in zip(table.columns, table.levels, strict=True)
        ]
        for levels in product(*choices):
            key = table.quantity, *workload.leave_out_roots(table.columns, levels)
            weights[key] = max(weights.get(key, 0.0), table.weight)
    return tuple(
        RequestedTable(columns, levels, weight, quantity)
        for (quantity, columns, levels), weight in weights.items()
    )


def compare_independent(
    workload: Workload, information: float, objective: str = "sum"
) -> tuple[float, ...]:
    """Return the variance of a cell of each table, if each table had noise of its own.

    That is 1 / tau for a part tau, at the best division for the same objective; for a sum the
    square of the largest absolute value over tau.
    """
    check_choice("objective", objective, ("sum", "max"))
    weights = np.array([table.weight for table in workload.tables])
    sizes = [math.prod(workload.shape(table.columns, table.levels)) for table in workload.tables]
    needs = np.sqrt(weights * sizes) if objective == "sum" else weights
    units = [workload.sums[x.quantity - 1].largest if x.quantity else 1 for x in workload.tables]
    return tuple((np.square(units) * needs.sum() / needs / information).tolist())


def _find_unit(workload: Workload, quantity: int) -> int:
    """Return the most by which a row moves a cell of a quantity, in its whole numbers."""
    return workload.sums[quantity - 1].steps if quantity else 1


def _choose_centered(workload: Workload, key: ResidualKey) -> tuple[int, ...]:
    """Return for each axis up to how many children are centered: where it pays, in small numbers.

    Not centering a block costs a / (a - 1) of its variance.
    """
    quantity, columns, components = key
    children = [
        workload.axes[x].links[j].children for x, j in zip(columns, components, strict=True)
    ]
    is_large = math.prod(workload.shape(columns, components)) > _LARGE
    limit = _CENTERED_IN_LARGE if is_large else _CENTERED * len(columns)
    widths = [int(max(x[x <= limit], default=0)) for x in children]
    unit = _find_unit(workload, quantity)
    while math.prod(x * (x - 1) for x in widths if x) * unit**2 > _LARGEST_LENGTH and any(widths):
        widths[widths.index(max(widths))] = 0
    return tuple(widths)


def _sum_variances(
    workload: Workload,
    tables: Sequence[RequestedTable],
    keys: Sequence[ResidualKey],
    centered: Sequence[tuple[int, ...]],
    *,
    totals: bool,
) -> csr_array:
    """Return, by table and residual, what a part of 1 adds to the sum of the cells' variances.

    With ``totals`` cells at all coarser levels count, too: the sum is a product over the axes.
    """
    from scipy.sparse import csr_array

    places = {key: at for at, key in enumerate(keys)}

    @cache
    def build_classes(x: int, level: int) -> _CellClasses:
        return _CellClasses.build(workload.axes[x], level)

    @cache
    def sum_axis(x: int, low: int, component: int, most_centered: int) -> float:
        root = workload.axes[x].root
        total = 1.0 if totals and component == root else 0.0
        for level in range(low, min(component, root - 1) + 1 if totals else low + 1):
            cells = build_classes(x, level)
            scales, lengths = cells.list_factors(component - level, most_centered)
            total += float((scales * lengths) @ cells.numbers)
        return total

    rows, columns, values = [], [], []
    for row, table in enumerate(tables):
        for key in workload.list_residuals(table):
            at = places[key]
            below = dict(zip(key[1], zip(key[2], centered[at], strict=True), strict=True))
            factors = [
                sum_axis(x, level, *below.get(x, (workload.axes[x].root, 0)))
                for x, level in zip(table.columns, table.levels, strict=True)
            ]
            unit = find_scale(workload, table.quantity, key[0]) * _find_unit(workload, key[0])
            if table.quantity:
                unit /= workload.sums[table.quantity - 1].largest
            rows.append(row)
            columns.append(at)
            values.append(unit**2 * math.prod(factors))
    return csr_array((values, (rows, columns)), shape=(len(tables), len(keys)))


def _balance(costs: csr_array) -> tuple[Floats, float]:
    """Return the shares of least largest table, and by how much it may be above the best.

    With weights w of the tables, of sum 1, the best shares for the weighted sum of the tables'
    means V have the value F(w) = (sum over residuals of the root of w costs)^2, which is w V. No
    shares have a smaller largest table than F(w), so max V / F(w) - 1 bounds what is lost. Each
    weight is multiplied by its V over the mean, which never lowers F; a power above 1 is taken as
    long as F rises.
    """
    weights = np.full(costs.shape[0], 1 / costs.shape[0])
    best = (np.inf, np.zeros(costs.shape[1]))
    power, value = 1.0, 0.0
    trial = previous = weights
    for _ in range(_MOST_STEPS):
        roots = np.sqrt(costs.T @ trial)
        means = roots.sum() * (costs @ (1 / roots))
        reached = float(roots.sum()) ** 2
        best = min(
            best, (float(means.max()) / reached - 1, roots / roots.sum()), key=lambda x: x[0]
        )
        if best[0] <= _GAP:
            break
        if reached < value:
            power, trial = 1.0, previous
            value = 0.0
            continue
        previous, value = trial, reached
        trial = trial * (means / reached) ** power
        trial = np.maximum(trial / trial.sum(), 1e-300)
        power = min(power * 1.2, 30.0)
    return best[1], best[0]
