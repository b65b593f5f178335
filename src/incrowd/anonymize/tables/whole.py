"""Whole, nonnegative counts near the estimates, all of which add up.

Everything here is post-processing of the estimates: it costs nothing, and no guarantee rests on it.
Tables add up because they are all counted from the same thing: where one table covers all others,
from its cells; elsewhere from rows that are made up for this (:mod:`.exchange`).

Near means: in the distance of generalized least squares, which counts a difference by how precisely
it was measured. Setting negative numbers to 0 one by one would add people to every total; this does
not. It leaves a bias in small cells, which can only err upward from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from incrowd.anonymize.tables.estimate import estimate_tables
from incrowd.anonymize.tables.exchange import RowExchange, TargetTable, find_finest_levels
from incrowd.anonymize.tables.measure import MeasuredResidual
from incrowd.anonymize.tables.plan import TablesPlan
from incrowd.anonymize.tables.start import draw_start
from incrowd.anonymize.tables.workload import Columns, Levels, RequestedTable
from incrowd.arrays import Counts, Floats

WholeCounter: TypeAlias = Callable[[Columns, Levels], Counts]

MOST_ROWS = 1_000_000  # made-up rows; where there are more people, each stands for several
_STEPS = 60
_LARGE_STEPS = 12  # of tables past _LARGE cells
_LARGE = 5_000_000
_EXCHANGED = 200_000  # cells up to which one table's totals are improved by moves


@dataclass(frozen=True, eq=False)
class WholeTables:
    """Whole counts of any columns at any levels that were asked for: all add up."""

    counter: WholeCounter

    def count(self, columns: Columns, levels: Levels) -> Counts:
        """Return the counts of some columns at some levels."""
        return self.counter(columns, levels)


def make_whole(plan: TablesPlan, measured: Sequence[MeasuredResidual]) -> WholeTables:
    """Return whole tables near the estimates: the same for the same measured numbers.

    Among counts that are equally near, a generator of fixed seed chooses; nothing rests on that.
    """
    rng = np.random.default_rng(0)
    workload = plan.workload
    largest = workload.largest_tables
    estimates = estimate_tables(plan, measured, largest)
    (number,) = estimate_tables(plan, measured, (RequestedTable((), ()),))
    total = max(round(float(number)), 0)
    if len(largest) > 1:
        return WholeTables(_count_rows(plan, measured, total, rng))
    table, estimate = largest[0], estimates[0]
    near = fit_nonnegative(plan, table, estimate)
    cells = round_cells(near, total, rng)
    if 0 < cells.size <= _EXCHANGED and table.columns:
        cells = _improve_cells(plan, measured, cells, rng)

    def count(columns: Columns, levels: Levels) -> Counts:
        low = table.columns, table.levels
        return workload.roll_up(cells, low, (columns, levels))

    return WholeTables(count)


# One table ------------------------------------------------------------------------------------


def fit_nonnegative(plan: TablesPlan, table: RequestedTable, estimate: Floats) -> Floats:
    """Return the nonnegative table that is nearest to an estimate, by the plan's precisions.

    It minimizes (x - e)' M (x - e) over x >= 0 by alternating directions, M being the sum over
    components of their precision times the projection on them. The unconstrained step is exact:
    in every component it is one division.
    """
    components = _Components(plan, table)
    rho = components.balance
    nearest: Floats = np.maximum(estimate, 0.0)
    if np.array_equal(nearest, estimate):
        return nearest
    dual = np.zeros_like(estimate)
    for _ in range(_STEPS if estimate.size <= _LARGE else _LARGE_STEPS):
        free = nearest - dual
        free -= estimate
        free = components.scale(free, rho)
        free += estimate
        free += 0.6 * (free - nearest)  # over-relaxed
        dual += free
        np.maximum(dual, 0.0, out=nearest)
        dual -= nearest
    return nearest


class _Components:
    """Orthogonal components of a table, axis by axis, with the precision of each.

    Along an axis, a component of level l is what is constant in the groups of level l, less what is
    constant in those of level l + 1.
    """

    def __init__(self, plan: TablesPlan, table: RequestedTable) -> None:
        self._axes = [plan.workload.axes[column] for column in table.columns]
        self._low = table.levels
        self._precision: dict[Levels, float] = {}
        size = float(np.prod(plan.workload.shape(table.columns, table.levels)))
        for residual, variance in plan.mean_variances(table).items():
            below = dict(zip(residual.columns, residual.components, strict=True))
            key = tuple(
                below.get(column, axis.root)
                for column, axis in zip(table.columns, self._axes, strict=True)
            )
            numbers = [
                axis.sizes[x] - (axis.sizes[x + 1] if x < axis.root else 0)
                for axis, x in zip(self._axes, key, strict=True)
            ]
            self._precision[key] = float(np.prod(numbers)) / (variance * size)

    @property
    def balance(self) -> float:
        """The geometric mean of the extreme precisions."""
        values = list(self._precision.values())
        return float(np.sqrt(min(values) * max(values)))

    def scale(self, table: Floats, rho: float) -> Floats:
        """Return the table with each component times rho / (its precision + rho)."""
        return self._scale(table, 0, (), rho)

    def _scale(self, table: Floats, at: int, key: Levels, rho: float) -> Floats:
        if at == len(self._axes):
            return table * (rho / (self._precision[key] + rho))
        axis, low = self._axes[at], self._low[at]
        sums, sizes = [table], [np.ones(axis.sizes[low])]
        for level in range(low, axis.root):
            link = axis.links[level]
            sums.append(link.sum_children(sums[-1], at))
            sizes.append(np.bincount(link.parents, sizes[-1]).astype(np.float64))
        shape = [1] * table.ndim
        shape[at] = -1
        means = [x / size.reshape(shape) for x, size in zip(sums, sizes, strict=True)]
        scaled = self._scale(means[-1], at + 1, (*key, axis.root), rho)
        for level in range(axis.root - 1, low - 1, -1):
            link, place = axis.links[level], level - low
            scaled = link.spread_parents(scaled, at)
            if axis.carries(level):
                part = means[place] - link.spread_parents(means[place + 1], at)
                scaled = scaled + self._scale(part, at + 1, (*key, level), rho)
            elif scaled.shape[at] == 1 < axis.sizes[level]:
                scaled = np.repeat(scaled, axis.sizes[level], axis=at)
        return scaled


def round_cells(near: Floats, total: int, rng: np.random.Generator) -> Counts:
    """Return whole numbers of a given sum: each a neighbor of its scaled number.

    Sums along the first axis stay within 1 of theirs; in them, which cells are rounded up is drawn.
    """
    if not near.ndim:
        return np.array(total, dtype=np.int64)
    rows = near.reshape(len(near), -1)
    sums = rows.sum(axis=1)
    if sums.sum() <= 0:
        rows, sums = np.ones_like(rows), np.full(len(rows), float(rows.shape[1]))
    totals = round_run(sums * (total / sums.sum()), total)
    cells = np.zeros(rows.shape, dtype=np.int64)
    for at, (row, number) in enumerate(zip(rows, totals.tolist(), strict=True)):
        if number:
            order = rng.permutation(len(row))
            weights = row if sums[at] > 0 else np.ones(len(row))
            cells[at, order] = round_run(weights[order] * (number / weights.sum()), number)
    return cells.reshape(near.shape)


def round_run(numbers: Floats, total: int) -> Counts:
    """Return whole numbers of a given sum whose running sums are those of the numbers, rounded."""
    ends = np.rint(np.cumsum(numbers)).astype(np.int64)
    ends[-1] = total
    np.minimum(ends, total, out=ends)
    return np.diff(ends, prepend=0)


def _improve_cells(
    plan: TablesPlan, measured: Sequence[MeasuredResidual], cells: Counts, rng: np.random.Generator
) -> Counts:
    """Return cells whose totals are nearer to theirs, by moves of single people."""
    table = plan.workload.largest_tables[0]
    flat = cells.ravel()
    movable = np.minimum(flat, 3)
    places = np.repeat(np.arange(flat.size), movable)
    codes = np.stack(np.unravel_index(places, cells.shape), axis=1).astype(np.int32)
    fixed = cells - movable.reshape(cells.shape)
    low = table.columns, table.levels
    targets = [
        replace(x, estimate=x.estimate - plan.workload.roll_up(fixed, low, (x.columns, x.levels)))
        for x in list_targets(plan, measured)
    ]
    all_codes = np.zeros((len(codes), len(plan.workload.axes)), dtype=np.int32)
    all_codes[:, list(table.columns)] = codes
    exchange = RowExchange(plan.workload, all_codes, np.ones(len(codes), np.int64), targets)
    exchange.run(rng)
    return fixed + exchange.count(*low)


# Several tables -------------------------------------------------------------------------------


def _count_rows(
    plan: TablesPlan, measured: Sequence[MeasuredResidual], total: int, rng: np.random.Generator
) -> WholeCounter:
    """Return what counts made-up rows, whose tables are near all estimates."""
    workload = plan.workload
    number = min(total, MOST_ROWS)
    weights = np.full(number, total // max(number, 1), dtype=np.int64)
    weights[: total - int(weights.sum())] += 1
    targets = list_targets(plan, measured)
    sizes = [a.sizes[x] for a, x in zip(workload.axes, find_finest_levels(workload), strict=True)]
    exchange = RowExchange(workload, draw_start(sizes, targets, number, rng), weights, targets)
    exchange.run(rng)
    return exchange.count


def list_targets(plan: TablesPlan, measured: Sequence[MeasuredResidual]) -> tuple[TargetTable, ...]:
    """Return the tables that counts should be near: all that can be summed up, by precision."""
    workload = plan.workload
    finest = find_finest_levels(workload)
    tables = [RequestedTable(x.columns, x.components) for x in plan.residuals if not x.quantity]
    targets = []
    for table, estimate in zip(tables, estimate_tables(plan, measured, tables), strict=True):
        maps = tuple(
            workload.axes[column].ancestors(finest[column], level)
            for column, level in zip(table.columns, table.levels, strict=True)
        )
        weight = 1 / plan.mean_variance(table)
        targets.append(TargetTable(table.columns, table.levels, maps, estimate, weight))
    return tuple(targets)
