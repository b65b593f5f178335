"""Whole, nonnegative counts near the estimates, all of which add up.

Everything here is post-processing of the estimates: it costs nothing, and no guarantee rests on it.
Tables add up because they are all counted from the same people. Where one table covers all others,
these are the people of its cells, rounded from the nearest nonnegative table
(:mod:`.nonnegative`). Elsewhere they are made up along the strongest pairs (:mod:`.start`). Either
way they exchange values until the margins are near (:mod:`.exchange`). Then each table by itself is
moved nearer to its estimate, by moves that keep its margins (:mod:`.refine`), so those that it
shares with other tables stay the same in both.

Near means: a difference counts by how precisely it was measured. Counts cannot be negative, so
those near 0 are biased upward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from incrowd.anonymize.tables.estimate import estimate_tables
from incrowd.anonymize.tables.exchange import RowExchange, TargetTable, find_finest_levels
from incrowd.anonymize.tables.measure import MeasuredResidual
from incrowd.anonymize.tables.nonnegative import fit_nonnegative
from incrowd.anonymize.tables.plan import TablesPlan
from incrowd.anonymize.tables.refine import refine_table
from incrowd.anonymize.tables.start import draw_start
from incrowd.anonymize.tables.workload import Columns, Levels, RequestedTable, Workload
from incrowd.arrays import Counts, Floats
from incrowd.errors import ParameterError

MOST_ROWS = 250_000  # made-up rows; where there are more people, some stand for several
_LIGHT = 0.3  # of the rows then stand for fewer than the others


@dataclass(frozen=True, eq=False)
class WholeTables:
    """Whole counts of any columns at any levels that were asked for: all add up.

    Each of ``tables`` has its counts in ``cells``; what two of them cover is the same in both.
    """

    workload: Workload
    tables: tuple[RequestedTable, ...]
    cells: tuple[Counts, ...]

    def count(self, columns: Columns, levels: Levels) -> Counts:
        """Return the counts of some columns at some levels."""
        requested = RequestedTable(columns, levels)
        self.workload.check_table(requested)
        covering = [
            (cells.size, at)
            for at, (table, cells) in enumerate(zip(self.tables, self.cells, strict=True))
            if self.workload.covers(table, requested)
        ]
        if not covering:
            raise ParameterError(
                "columns", "be covered by a table that was asked for", (columns, levels)
            )
        _, at = min(covering)
        low = self.tables[at].columns, self.tables[at].levels
        return self.workload.roll_up(self.cells[at], low, (columns, levels))


def make_whole(plan: TablesPlan, measured: Sequence[MeasuredResidual]) -> WholeTables:
    """Return whole tables near the estimates: the same for the same measured numbers.

    Among counts that are equally near, a generator of fixed seed chooses; nothing rests on that.
    """
    rng = np.random.default_rng(0)
    largest = plan.workload.largest_tables
    (number,) = estimate_tables(plan, measured, (RequestedTable((), ()),))
    total = max(round(float(number)), 0)
    if len(largest) == 1:
        cells: tuple[Counts, ...] = (_round_table(plan, measured, largest[0], total, rng),)
    else:
        cells = _fit_tables(plan, measured, total, rng)
    return WholeTables(plan.workload, largest, cells)


# One table ------------------------------------------------------------------------------------


def _round_table(
    plan: TablesPlan,
    measured: Sequence[MeasuredResidual],
    table: RequestedTable,
    total: int,
    rng: np.random.Generator,
) -> Counts:
    """Return whole cells of the one table that covers all others."""
    (estimate,) = estimate_tables(plan, measured, (table,))
    cells = round_cells(fit_nonnegative(plan, table, estimate), total, rng)
    if not cells.any() or not table.columns:
        return cells
    movable = _choose_movable(cells)
    fixed = cells - movable
    places = np.repeat(np.arange(cells.size), movable.ravel())
    codes = [np.zeros(len(places), dtype=np.int32) for _ in plan.workload.axes]
    for column, values in zip(table.columns, np.unravel_index(places, cells.shape), strict=True):
        codes[column] = values.astype(np.int32)
    low = table.columns, table.levels
    targets = [
        replace(x, estimate=x.estimate - plan.workload.roll_up(fixed, low, (x.columns, x.levels)))
        for x in list_targets(plan, measured)
    ]
    exchange = RowExchange(plan.workload, codes, np.ones(len(places), dtype=np.int64), targets)
    exchange.run(rng)
    cells = fixed + exchange.count(*low)
    return refine_table(plan.workload, table, cells, estimate, (), rng)


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
) -> tuple[Counts, ...]:
    """Return whole cells of the largest tables: of made-up rows, and then each nearer by itself."""
    workload = plan.workload
    largest = workload.largest_tables
    shapes = {(x.columns, x.levels) for x in largest}
    targets = list_targets(plan, measured)
    weights = _weigh_rows(total)
    sizes = [a.sizes[x] for a, x in zip(workload.axes, find_finest_levels(workload), strict=True)]
    codes = draw_start(sizes, targets, len(weights), rng)
    # What tables share are margins of them; the tables themselves are refined one by one.
    margins = [x for x in targets if (x.columns, x.levels) not in shapes]
    exchange = RowExchange(workload, codes, rng.permutation(weights), margins)
    exchange.run(rng)
    cells = []
    for table, estimate in zip(largest, estimate_tables(plan, measured, largest), strict=True):
        others = (other for other in largest if other is not table)
        counts = exchange.count(table.columns, table.levels)
        cells.append(refine_table(workload, table, counts, estimate, others, rng))
    return tuple(cells)


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
