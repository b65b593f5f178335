"""How the information is divided: which differences are measured, and with which variance.

**Mechanism.** A residual takes one component of each of its columns. Its query is made of whole
numbers, axis by axis: below a parent with a children, count x becomes a x - (the sum of the
children). A row lies in one child of one parent along every axis, its block; it moves the query by
a product of vectors with a - 1 at one place and -1 at the a - 1 others. So it moves one block, by a
vector of squared length D^2 = product of a (a - 1), and no other. Where a is more than ``CENTERED``
the axis is left as it is, x, which a row moves by 1: that costs a / (a - 1) times the variance, and
keeps the numbers small. Blocks below a parent with one child carry nothing and are not measured.
Each number gets discrete Gaussian noise of variance ceil(D^2 / tau) + 3, D^2 being that of its own
block.

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
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from incrowd.anonymize.tables.workload import Columns, Levels, RequestedTable, TableAxis, Workload
from incrowd.arrays import Floats, Places
from incrowd.errors import ParameterError, check_choice
from incrowd.privacy.events import GaussianMeasurements
from incrowd.privacy.gaussian import ROUNDING_VARIANCE
from incrowd.privacy.information import InformationBudget

if TYPE_CHECKING:
    from scipy.sparse import csr_array

CENTERED = 32
_LARGEST_LENGTH = 2**40  # so that sums of whole numbers stay far below 2^63
_GAP = 1e-4
_MOST_STEPS = 20_000


@dataclass(frozen=True)
class Residual:
    """The differences of one component of each of its columns, and the part that they cost.

    ``centered`` says of each axis whether siblings' sums are taken off in the query.
    """

    columns: Columns
    components: Levels
    centered: tuple[bool, ...]
    part: Fraction

    def bound_variance(self, squared_lengths: Floats) -> Floats:
        """Return the variance of the noise of blocks of some squared lengths, in floats."""
        variance: Floats = np.ceil(squared_lengths / float(self.part)) + ROUNDING_VARIANCE
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

    def list_factors(self, component: int, is_centered: bool) -> tuple[Floats, Floats]:
        """Return what is kept of the variance, and the factor of D^2, of each class."""
        a, squares = self.siblings[component], self.shares[component] ** 2
        if component == len(self.siblings) - 1:
            return squares, np.ones(len(a))
        if is_centered:
            return squares * (a - 1) / a**3, a * (a - 1)
        return squares * (a - 1) / a, np.ones(len(a))


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
    def by_columns(self) -> dict[tuple[Columns, Levels], Residual]:
        """Each residual, by its columns and components."""
        return {(x.columns, x.components): x for x in self.residuals}

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
        if any(key not in self.by_columns for key in keys):
            raise ParameterError(
                "table",
                "be one of those asked for, or a sum of its cells",
                (table.columns, table.levels),
                "Ask for it in the workload.",
            )
        return [self.by_columns[key] for key in keys]

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
        return [
            _CellClasses.build(self.workload.axes[column], level)
            for column, level in zip(table.columns, table.levels, strict=True)
        ]

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
        scales, lengths = np.ones(()), np.ones(())
        for column, level, cells in zip(table.columns, table.levels, classes, strict=True):
            component = components.get(column, self.workload.axes[column].root) - level
            factors = cells.list_factors(component, centered.get(column, False))
            scales, lengths = (
                np.multiply.outer(x, y) for x, y in zip((scales, lengths), factors, strict=True)
            )
        part: Floats = scales * residual.bound_variance(lengths)
        return part


def plan_tables(workload: Workload, information: float, objective: str = "sum") -> TablesPlan:
    """Return the residuals of all tables, and their parts of the information.

    Args:
        workload: the tables.
        information: that of all measurements; see
            :func:`incrowd.privacy.information.plan_information`.
        objective: "sum" for the least sum of the variances of all cells, each times its table's
            weight; "max" for the least largest product of a table's weight and mean variance.

    """
    check_choice("objective", objective, ("sum", "max"))
    keys = sorted(
        {key for table in workload.tables for key in workload.list_residuals(table)},
        key=lambda key: (len(key[0]), key),
    )
    centered = [_choose_centered(workload, *key) for key in keys]
    costs = _compute_costs(workload, keys, centered)
    weights = np.array([table.weight for table in workload.tables])
    if objective == "max":
        shares, gap = _balance(costs * weights[:, None])
    else:
        sizes = [math.prod(workload.shape(x.columns, x.levels)) for x in workload.tables]
        roots = np.sqrt(costs.T @ (weights * sizes))
        shares, gap = roots / roots.sum(), 0.0
    budget = InformationBudget(information)
    residuals = []
    for key, axes, share in zip(keys, centered, shares, strict=True):
        numbers = math.prod(workload.shape(*key))
        part = budget.spend(Fraction(information) * Fraction(float(share)), numbers)
        residuals.append(Residual(*key, axes, part))
    return TablesPlan(workload, information, objective, tuple(residuals), gap)


def compare_independent(
    workload: Workload, information: float, objective: str = "sum"
) -> tuple[float, ...]:
    """Return the variance of a cell of each table, if each table had noise of its own.

    That is 1 / tau for a part tau, at the best division for the same objective.
    """
    check_choice("objective", objective, ("sum", "max"))
    weights = np.array([table.weight for table in workload.tables])
    sizes = [math.prod(workload.shape(table.columns, table.levels)) for table in workload.tables]
    needs = np.sqrt(weights * sizes) if objective == "sum" else weights
    return tuple((needs.sum() / needs / information).tolist())


def _choose_centered(workload: Workload, columns: Columns, components: Levels) -> tuple[bool, ...]:
    """Say of each axis whether it is centered: where it pays, and numbers stay small."""
    widths = [
        int(workload.axes[x].links[j].children.max())
        for x, j in zip(columns, components, strict=True)
    ]
    centered, length = [False] * len(widths), 1
    for at in sorted(range(len(widths)), key=lambda x: widths[x]):
        length *= widths[at] * (widths[at] - 1)
        centered[at] = widths[at] <= CENTERED and length <= _LARGEST_LENGTH
    return tuple(centered)


def _compute_costs(
    workload: Workload,
    keys: Sequence[tuple[Columns, Levels]],
    centered: Sequence[tuple[bool, ...]],
) -> csr_array:
    """Return, by table and residual, what the mean variance is for a part of 1."""
    from scipy.sparse import csr_array

    places = {key: at for at, key in enumerate(keys)}
    means: dict[tuple[int, int, int, bool], float] = {}
    for x, axis in enumerate(workload.axes):
        for level in range(axis.root):
            cells = _CellClasses.build(axis, level)
            numbers = cells.numbers / cells.numbers.sum()
            for j, flag in product(range(level, axis.root + 1), (False, True)):
                scales, lengths = cells.list_factors(j - level, flag)
                means[x, level, j, flag] = float((scales * lengths) @ numbers)
    rows, columns, values = [], [], []
    for row, table in enumerate(workload.tables):
        for key in workload.list_residuals(table):
            at = places[key]
            below = dict(zip(key[0], zip(key[1], centered[at], strict=True), strict=True))
            factors = [
                means[(x, level, *below.get(x, (workload.axes[x].root, False)))]
                for x, level in zip(table.columns, table.levels, strict=True)
            ]
            rows.append(row)
            columns.append(at)
            values.append(math.prod(factors))
    return csr_array((values, (rows, columns)), shape=(len(workload.tables), len(keys)))


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
