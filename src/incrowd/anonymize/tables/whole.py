"""Whole, nonnegative counts near the estimates, all of which add up.

Everything here is post-processing of the estimates: it costs nothing, and no guarantee rests on it.
Tables add up because they are all counted from the same people. Where one table covers all others,
these are the people of its cells, rounded from the nearest nonnegative table
(:mod:`.nonnegative`). Elsewhere they are made up along the strongest pairs (:mod:`.start`). Either
way they exchange values until the margins are near (:mod:`.exchange`). Then each table by itself is
moved nearer to its estimate, by moves that keep its margins (:mod:`.refine`), so those that it
shares with other tables stay the same in both. Sums go with the people (:mod:`.row_sums`).

Near means: a difference counts by how precisely it was measured. Counts cannot be negative, so
those near 0 are biased upward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from incrowd.anonymize.tables.estimate import estimate_tables
from incrowd.anonymize.tables.exchange import RowExchange, TargetTable, find_finest_levels
from incrowd.anonymize.tables.measure import MeasuredResidual
from incrowd.anonymize.tables.nonnegative import fit_nonnegative, rake_margins
from incrowd.anonymize.tables.plan import TablesPlan
from incrowd.anonymize.tables.refine import refine_table
from incrowd.anonymize.tables.row_sums import SumTarget, fit_row_sums
from incrowd.anonymize.tables.start import draw_start
from incrowd.anonymize.tables.workload import Columns, Levels, RequestedTable, Workload
from incrowd.arrays import Counts, Floats
from incrowd.errors import ParameterError

MOST_ROWS = 250_000  # made-up rows; where there are more people, some stand for several
_LIGHT = 0.3  # of the rows then stand for fewer than the others
_REFINED = 1_000_000  # cells up to which one table is refined
_CLEAR = 4.0  # squared mean count over variance, from which on a table counts in full
_FAINT = 0.05  # relevance below which a table is left aside


@dataclass(frozen=True, eq=False)
class WholeTables:
    """Whole counts, and sums in whole steps, of what was asked for at any level: all add up.

    Each of ``tables`` has its numbers in ``cells``; what two of one quantity cover is the same in
    both. Sums are steps above the lowest value, at most as many as their count allows.
    """

    workload: Workload
    tables: tuple[RequestedTable, ...]
    cells: tuple[Counts, ...]

    def count(self, columns: Columns, levels: Levels) -> Counts:
        """Return the counts of some columns at some levels."""
        return self._roll_up(RequestedTable(columns, levels))

    def sum_steps(self, quantity: int, columns: Columns, levels: Levels) -> Counts:
        """Return the sums of a quantity: the value is lower * count + step * this."""
        return self._roll_up(RequestedTable(columns, levels, quantity=quantity))

    @cached_property
    def _places(self) -> dict[tuple[int, Columns, Levels], int]:
        return {(x.quantity, x.columns, x.levels): at for at, x in enumerate(self.tables)}

    def _roll_up(self, requested: RequestedTable) -> Counts:
        self.workload.check_table(requested)
        same = self._places.get((requested.quantity, requested.columns, requested.levels))
        if same is not None:
            return self.cells[same]
        covering = [
            (cells.size, at)
            for at, (table, cells) in enumerate(zip(self.tables, self.cells, strict=True))
            if table.quantity == requested.quantity and self.workload.covers(table, requested)
        ]
        if not covering:
            names = requested.quantity, requested.columns, requested.levels
            raise ParameterError("columns", "be covered by a table that was asked for", names)
        _, at = min(covering)
        low = self.tables[at].columns, self.tables[at].levels
        return self.workload.roll_up(self.cells[at], low, (requested.columns, requested.levels))


def make_whole(plan: TablesPlan, measured: Sequence[MeasuredResidual]) -> WholeTables:
    """Return whole tables near the estimates: the same for the same measured numbers.

    Among counts that are equally near, a generator of fixed seed chooses; nothing rests on that.
    """
    rng = np.random.default_rng(0)
    workload = plan.workload
    (number,) = estimate_tables(plan, measured, (RequestedTable((), ()),))
    total = max(round(float(number)), 0)
    if len(workload.largest_tables) == 1:
        tables, cells, rows = _round_table(plan, measured, total, rng)
    else:
        tables, cells, rows = _fit_tables(plan, measured, total, rng)
    for quantity in range(1, len(workload.sums) + 1):
        largest = workload.find_largest(quantity)
        if largest:
            steps = _share_sums(plan, measured, quantity, rows)
            tables += largest
            cells += [rows.count(x.columns, x.levels, steps) for x in largest]
    return WholeTables(workload, tuple(tables), tuple(cells))


def _share_sums(
    plan: TablesPlan, measured: Sequence[MeasuredResidual], quantity: int, rows: RowExchange
) -> Counts:
    """Return the steps of each row, near the estimated sums given the whole counts."""
    column = plan.workload.sums[quantity - 1]
    keys = [x.key for x in plan.residuals if x.quantity == quantity]
    targets = []
    for _, columns, levels in keys:
        rows_of_table = RequestedTable(columns, levels)
        table = replace(rows_of_table, quantity=quantity)
        counts, sums = estimate_tables(plan, measured, (rows_of_table, table))
        # What values differ from the middle is measured apart from the counts.
        differences = (sums - column.middle * counts) / column.step
        middle = rows.count(columns, levels) * (column.steps / 2)
        variance = plan.mean_variance(table) - column.middle**2 * plan.mean_variance(rows_of_table)
        targets.append(
            SumTarget(
                rows.find_places(columns, levels),
                (differences + middle).ravel(),
                column.step**2 / variance,
            )
        )
    return fit_row_sums(rows.weights, column.steps, targets)


# One table ------------------------------------------------------------------------------------


def _round_table(
    plan: TablesPlan,
    measured: Sequence[MeasuredResidual],
    total: int,
    rng: np.random.Generator,
) -> tuple[list[RequestedTable], list[Counts], RowExchange]:
    """Return whole cells of the one table that covers all others, and a row for each cell."""
    workload = plan.workload
    (table,) = workload.largest_tables
    low = table.columns, table.levels
    (estimate,) = estimate_tables(plan, measured, (table,))
    targets = list_targets(plan, measured)
    near = fit_nonnegative(plan, table, estimate)
    margins = [
        (RequestedTable(x.columns, x.levels), x.estimate)
        for x in targets
        if (x.columns, x.levels) != low and x.relevance == 1
    ]
    rake_margins(workload, table, near, margins)
    cells = round_cells(near, total, rng)
    del near
    if cells.any() and table.columns:
        movable = _choose_movable(cells)
        margins_left = [
            replace(
                x,
                estimate=x.estimate - workload.roll_up(cells - movable, low, (x.columns, x.levels)),
            )
            for x in targets
            if x.relevance > _FAINT
        ]
        exchange = _list_rows(workload, table, movable, margins_left, split=True)
        exchange.run(rng)
        cells = cells - movable + exchange.count(*low)
        if cells.size <= _REFINED:
            cells = refine_table(workload, table, cells, estimate, (), rng)
    return [table], [cells], _list_rows(workload, table, cells, (), split=False)


def _list_rows(
    workload: Workload,
    table: RequestedTable,
    cells: Counts,
    targets: Sequence[TargetTable],
    *,
    split: bool,
) -> RowExchange:
    """Return a row for each person in the cells of a table, or one for each cell with people."""
    filled = np.flatnonzero(cells)
    people = cells.ravel()[filled]
    places = np.repeat(filled, people) if split else filled
    weights = np.ones(len(places), dtype=np.int64) if split else people
    codes = [np.zeros(len(places), dtype=np.int32) for _ in workload.axes]
    if table.columns:
        groups = np.unravel_index(places, cells.shape)
        for column, values in zip(table.columns, groups, strict=True):
            codes[column] = values.astype(np.int32)
    return RowExchange(workload, codes, weights, targets)


def _choose_movable(cells: Counts) -> Counts:
    """Return how many people of each cell may move: enough for the margins to come near."""
    most = max(MOST_ROWS // max(int(np.count_nonzero(cells)), 1), 1)
    return np.minimum(cells, most)


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


# Several tables -------------------------------------------------------------------------------


def _fit_tables(
    plan: TablesPlan, measured: Sequence[MeasuredResidual], total: int, rng: np.random.Generator
) -> tuple[list[RequestedTable], list[Counts], RowExchange]:
    """Return whole cells of the largest tables, and the made-up rows from which they were counted.

    Then each table is moved nearer by itself; not one with sums, which go with the rows' counts.
    What tables share are margins, and those stay.
    """
    workload = plan.workload
    largest = workload.largest_tables
    with_sums = [x for x in workload.tables if x.quantity]
    refined = {
        (x.columns, x.levels)
        for x in largest
        if not any(workload.covers(x, other) for other in with_sums)
    }
    targets = list_targets(plan, measured)
    weights = _weigh_rows(total)
    sizes = [a.sizes[x] for a, x in zip(workload.axes, find_finest_levels(workload), strict=True)]
    codes = draw_start(sizes, targets, len(weights), rng)
    margins = [x for x in targets if (x.columns, x.levels) not in refined and x.relevance > _FAINT]
    rows = RowExchange(workload, codes, rng.permutation(weights), margins)
    rows.run(rng)
    cells = []
    for table, estimate in zip(largest, estimate_tables(plan, measured, largest), strict=True):
        counts = rows.count(table.columns, table.levels)
        if (table.columns, table.levels) in refined:
            others = (other for other in largest if other is not table)
            counts = refine_table(workload, table, counts, estimate, others, rng)
        cells.append(counts)
    return list(largest), cells, rows


def _weigh_rows(total: int) -> Counts:
    """Return for how many people each made-up row stands: some for few, so that sums come near."""
    if total <= MOST_ROWS:
        return np.ones(total, dtype=np.int64)
    most = total / MOST_ROWS / (1 - _LIGHT)
    light = np.floor(np.geomspace(1, most, int(MOST_ROWS * _LIGHT))).astype(np.int64)
    heavy = MOST_ROWS - len(light)
    left = total - int(light.sum())
    weights = np.full(heavy, left // heavy, dtype=np.int64)
    weights[: left - int(weights.sum())] += 1
    return np.concatenate([light, weights])


def list_targets(plan: TablesPlan, measured: Sequence[MeasuredResidual]) -> tuple[TargetTable, ...]:
    """Return the tables that counts should be near: all that can be summed up, by precision.

    Where the noise is larger than the counts, numbers that cannot be negative fit the noise that is
    positive, at the expense of totals: such tables are less relevant.
    """
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
        relevance = min(1.0, float(estimate.mean()) ** 2 * weight / _CLEAR)
        targets.append(TargetTable(table.columns, table.levels, maps, estimate, weight, relevance))
    return tuple(targets)
