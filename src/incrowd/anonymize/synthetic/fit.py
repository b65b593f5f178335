"""Fitting a log-linear model to noisy tables.

The model has a parameter lambda for each cell of each table; a clique's potential is the sum of
the parameters that fall on its cells. With N the number of rows, y the tables and Z the partition
sum, the fit minimizes

    N log Z(lambda) - lambda . y + 1/2 sum kappa lambda^2,

which is strictly convex on the space of tables that are centered along the same axes as y. At its
minimum the model's counts are y - kappa lambda: equal to what was measured, up to a slack that each
cell pays for. A small kappa makes the model follow a cell. It is the standard deviation of the
cell's noise, times that deviation over the count where it is below 1 (and at least 0.1, or 0.02 in
the table of one column): cells well above their noise are followed closely, the others only as far
as they agree. A single column is followed more closely because there is nothing to smooth: what the
slack takes from its counts is an error, which enters every table with that column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.anonymize.synthetic.centered import make_centered_solver
from incrowd.anonymize.synthetic.descent import FitPoint, Precondition, minimize
from incrowd.anonymize.synthetic.domain import Columns, Domain, Levels
from incrowd.anonymize.synthetic.margins import CliqueMargins
from incrowd.anonymize.synthetic.measurement import OneWay, TableEstimate, center, pool_one_way
from incrowd.anonymize.synthetic.model import Model, Structure
from incrowd.arrays import Codes, Floats

FOLLOWED = 1.0
LEAST_SLACK = 0.1
LEAST_SLACK_OF_ONE = 0.02  # column
Parameters = dict[tuple[Columns, Levels], Floats]


@dataclass(frozen=True, eq=False)
class Evidence:
    """A table that the model is fitted to: counts, the deviation of each cell, centered axes."""

    columns: Columns
    levels: Levels
    cells: Floats
    deviation: Floats
    centered: tuple[int, ...]


def pool(domain: Domain, estimates: Sequence[TableEstimate], rows: float) -> list[OneWay]:
    """Return what is known of each column, from its own table and the margins of others.

    A margin is of use if the other axes are not centered: their sums would be 0.
    """
    margins: list[dict[int, tuple[Floats, float]]] = [{} for _ in domain.columns]
    for estimate in estimates:
        shape = estimate.cells.shape
        for axis, (column, level) in enumerate(zip(estimate.columns, estimate.levels, strict=True)):
            others = tuple(other for other in range(len(shape)) if other != axis)
            if set(others) & set(estimate.centered):
                continue
            margin = estimate.cells.sum(axis=others)
            margin = margin - margin.mean() + rows / margin.size
            precision = estimate.precision * margin.size / estimate.cells.size
            before, weight = margins[column].get(level, (margin, 0.0))
            total = weight + precision
            margins[column][level] = ((before * weight + margin * precision) / total, total)
    pairs = zip(domain.columns, margins, strict=True)
    return [pool_one_way(column, of_one, rows) for column, of_one in pairs]


def gather_evidence(
    structure: Structure,
    estimates: Sequence[TableEstimate],
    one_ways: Sequence[OneWay],
    rows: float,
) -> list[Evidence]:
    """Return the tables that a model of this structure is fitted to.

    Pairs are centered along both axes and triples along theirs: what is taken off is in the
    one-ways, pooled.
    """
    evidences = []
    for estimate in estimates:
        if len(estimate.columns) == 1:
            (column,) = estimate.columns
            level, pooled = structure.levels[column], one_ways[column]
            counts = np.add.reduceat(pooled.leaves, structure.domain.columns[column].starts[level])
            deviation = np.sqrt(pooled.variances[level])
            evidences.append(Evidence(estimate.columns, (level,), counts, deviation, ()))
        else:
            axes = (0, 1) if len(estimate.columns) == 2 else estimate.centered
            cells = center(estimate.cells, axes)
            if not axes:
                cells = cells + (rows - cells.sum()) / cells.size
            deviation = np.full(cells.shape, estimate.precision**-0.5)
            evidences.append(Evidence(estimate.columns, estimate.levels, cells, deviation, axes))
    return evidences


def fit(
    structure: Structure,
    estimates: Sequence[TableEstimate],
    rows: float,
    *,
    before: Model | None = None,
    parameters: Mapping[tuple[Columns, Levels], Floats] | None = None,
    gap: float,
    steps: int,
    pooled: Sequence[TableEstimate] = (),
) -> tuple[Model, Parameters]:
    """Fit a model to estimates of its tables.

    Args:
        structure: the model's; each table lies in one of its cliques.
        estimates: the tables, with the one-way table of every column among them.
        rows: the estimated number of rows.
        before: an earlier model, by whose counts cells are told from noise.
        parameters: an earlier fit's, to begin with.
        gap: what the objective may still fall by, doubled, when the fit ends.
        steps: the most steps.
        pooled: further tables, that inform the one-ways alone.

    Returns:
        The model, and its parameters by table.

    """
    one_ways = pool(structure.domain, [*estimates, *pooled], rows)
    evidence = gather_evidence(structure, estimates, one_ways, rows)
    objective = _Objective(structure, evidence, rows, before)
    start = objective.project(objective.start(parameters or {}))
    point, reached = minimize(
        objective.evaluate, start, objective.precondition, gap=gap, steps=steps
    )
    marginals, _ = structure.calibrate(objective.potentials(point.x))
    shares = [
        _share_leaves(structure, marginals, column, one_ways[column].leaves, rows)
        for column in range(len(structure.domain))
    ]
    return Model(structure, marginals, shares, rows, reached), objective.by_table(point.x)


class _Objective:
    """What :func:`fit` minimizes, over the parameters of all tables in one vector."""

    def __init__(
        self,
        structure: Structure,
        evidence: Sequence[Evidence],
        rows: float,
        before: Model | None,
    ) -> None:
        self._structure = structure
        self._evidence = evidence
        self._rows = rows
        self._ends = np.cumsum([0, *(table.cells.size for table in evidence)])
        self._counts = np.concatenate([table.cells.ravel() for table in evidence])
        self._slack = np.concatenate([_slack(table, rows, before).ravel() for table in evidence])
        self._maps = [self._level_maps(table) for table in evidence]
        # Tables of the same columns are put on a clique, and read from it, together.
        self._groups: dict[int, dict[Columns, list[int]]] = {}
        for number, table in enumerate(evidence):
            at = structure.home(table.columns)
            self._groups.setdefault(at, {}).setdefault(table.columns, []).append(number)
        self._margins = {
            at: CliqueMargins(structure.tree.cliques[at], structure.shapes[at], list(tables))
            for at, tables in self._groups.items()
        }

    def _level_maps(self, table: Evidence) -> list[tuple[int, Codes, Codes]]:
        """For each axis that is coarser than in the model: its runs, and the group of each part."""
        maps = []
        for axis, (column, level) in enumerate(zip(table.columns, table.levels, strict=True)):
            model_column, at = (
                self._structure.domain.columns[column],
                self._structure.levels[column],
            )
            if level != at:
                maps.append((axis, model_column.runs(at, level), model_column.parents(at, level)))
        return maps

    def _table(self, x: Floats, number: int) -> Floats:
        part = x[self._ends[number] : self._ends[number + 1]]
        return part.reshape(self._evidence[number].cells.shape)

    def project(self, x: Floats) -> Floats:
        """Center every table along its centered axes."""
        projected = x.copy()
        for number, first in enumerate(self._evidence):
            if first.centered:
                self._table(projected, number)[...] = center(self._table(x, number), first.centered)
        return projected

    def precondition(self, curvature: Floats) -> Precondition:
        """Return the map from a gradient to the best centered step for this curvature."""
        inverse = 1 / curvature
        solvers = [
            make_centered_solver(self._table(inverse, number), table.centered)
            for number, table in enumerate(self._evidence)
        ]

        def solve(gradient: Floats) -> Floats:
            step = np.empty_like(gradient)
            for number, solver in enumerate(solvers):
                self._table(step, number)[...] = solver(self._table(gradient, number))
            return step

        return solve

    def potentials(self, x: Floats) -> list[Floats]:
        """Return the potentials of all cliques."""
        potentials = [np.zeros(shape) for shape in self._structure.shapes]
        for at, tables in self._groups.items():
            sums: dict[Columns, Floats] = {}
            for columns, numbers in tables.items():
                for number in numbers:
                    table = self._table(x, number)
                    for axis, _, parents in self._maps[number]:
                        table = np.take(table, parents, axis=axis)
                    sums[columns] = sums[columns] + table if columns in sums else table
            potentials[at] = self._margins[at].put(sums)
        return potentials

    def evaluate(self, x: Floats) -> FitPoint:
        """Return the objective at x, which is centered."""
        marginals, log_sum = self._structure.calibrate(self.potentials(x))
        expected = np.empty(len(x))
        for at, tables in self._groups.items():
            margins = self._margins[at].read(marginals[at])
            for columns, numbers in tables.items():
                for number in numbers:
                    table = margins[columns]
                    for axis, runs, _ in self._maps[number]:
                        table = np.add.reduceat(table, runs, axis=axis)
                    self._table(expected, number)[...] = table
        expected *= self._rows
        penalty = self._slack * x
        value = self._rows * log_sum - float(np.einsum("i,i->", x, self._counts - 0.5 * penalty))
        gradient = self.project(expected - self._counts + penalty)
        return FitPoint(x, value, gradient, expected + self._slack)

    def start(self, parameters: Mapping[tuple[Columns, Levels], Floats]) -> Floats:
        """Where to begin: earlier parameters, those of a coarser one-way spread over its parts."""
        x = np.zeros(len(self._counts))
        for number, first in enumerate(self._evidence):
            table = self._table(x, number)
            if (first.columns, first.levels) in parameters:
                table[...] = parameters[first.columns, first.levels]
            elif len(first.columns) == 1:
                column = self._structure.domain.columns[first.columns[0]]
                for level in range(first.levels[0] + 1, column.height):
                    if (first.columns, (level,)) in parameters:
                        parents = column.parents(first.levels[0], level)
                        table[...] = parameters[first.columns, (level,)][parents]
        return x

    def by_table(self, x: Floats) -> Parameters:
        """Return the parameters of each table."""
        return {
            (table.columns, table.levels): self._table(x, number).copy()
            for number, table in enumerate(self._evidence)
        }


def _slack(table: Evidence, rows: float, before: Model | None) -> Floats:
    """Return the kappa of each cell; see the module."""
    if before is None:
        return table.deviation
    counts = before.table(table.columns, table.levels) * rows
    nearness = FOLLOWED * table.deviation / np.maximum(counts, 1e-9)
    least = LEAST_SLACK_OF_ONE if len(table.columns) == 1 else LEAST_SLACK
    return table.deviation * np.clip(nearness, least, 1.0)


def _share_leaves(
    structure: Structure,
    marginals: Sequence[Floats],
    column: int,
    leaves: Floats,
    rows: float,
) -> Floats:
    """Return the probability of each leaf given its group at the column's level.

    In each group: the numbers of at least 0 that are nearest to the leaves' estimates and sum to
    what the model gives the group.
    """
    model_column, level = structure.domain.columns[column], structure.levels[column]
    shares = np.ones(model_column.sizes[0])
    if level == 0:
        return shares
    at = structure.home((column,))
    inside = structure.tree.cliques[at]
    others = tuple(axis for axis, other in enumerate(inside) if other != column)
    counts = marginals[at].sum(axis=others) * rows
    ends = np.append(model_column.starts[level], model_column.sizes[0])
    for group, count in enumerate(counts):
        part = slice(ends[group], ends[group + 1])
        shares[part] = _nearest_shares(leaves[part], float(count))
    return shares


def _nearest_shares(estimates: Floats, total: float) -> Floats:
    """Return the nearest nonnegative numbers of a given sum, over their sum."""
    if total <= 1e-9 or len(estimates) == 1:
        return np.full(len(estimates), 1 / len(estimates))
    falling = np.sort(estimates)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    last = np.flatnonzero(falling > excess)[-1]
    nearest = np.maximum(estimates - excess[last], 0.0)
    shares: Floats = nearest / nearest.sum()
    return shares
