"""The nonnegative table that is nearest to an estimate, by generalized least squares.

Setting negative numbers to 0 one by one would add people to every total. Here totals, which are
measured more precisely than cells, keep their weight.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from incrowd.anonymize.tables.plan import TablesPlan
from incrowd.anonymize.tables.workload import Levels, RequestedTable, Workload
from incrowd.arrays import Floats

_STEPS = 60
_LARGE = 2_000_000  # cells beyond which steps take too long
_CLEAR = 3.0  # standard deviations by which a cell stands out
_RAKES = 8


def fit_nonnegative(plan: TablesPlan, table: RequestedTable, estimate: Floats) -> Floats:
    """Return the nonnegative table that is nearest to an estimate, by the plan's precisions.

    It minimizes (x - e)' M (x - e) over x >= 0 by alternating directions, M being the sum over
    components of their precision times the projection on them. The unconstrained step is exact:
    in every component it is one division.
    """
    if estimate.size > _LARGE:
        # Only cells that stand out are told apart; raking does the rest.
        base = max(float(estimate.sum()), 1.0) / estimate.size / 2
        nearest: Floats = estimate - _CLEAR * plan.mean_variance(table) ** 0.5
        np.maximum(nearest, 0.0, out=nearest)
        nearest += base
        return nearest
    components = _Components(plan, table)
    rho = components.balance
    nearest = np.maximum(estimate, 0.0)
    if np.array_equal(nearest, estimate):
        return nearest
    dual = np.zeros_like(estimate)
    for _ in range(_STEPS):
        free = nearest - dual
        free -= estimate
        free = components.scale(free, rho)
        free += estimate
        free += 0.6 * (free - nearest)  # over-relaxed
        dual += free
        np.maximum(dual, 0.0, out=nearest)
        dual -= nearest
    return nearest


def rake_margins(
    workload: Workload,
    table: RequestedTable,
    near: Floats,
    margins: Sequence[tuple[RequestedTable, Floats]],
) -> None:
    """Scale a nonnegative table in place until margins are near theirs, the coarsest the nearest.

    In a table whose noise is larger than its counts, what is nearest by least squares has too many
    people where noise is positive. Its margins are known much more precisely than its cells, and
    come first.
    """
    low = table.columns, table.levels
    for _ in range(_RAKES):
        for margin, estimate in sorted(margins, key=lambda x: -x[1].size):
            sums = workload.roll_up(near, low, (margin.columns, margin.levels))
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(sums > 0, np.maximum(estimate, 0.0) / sums, 1.0)
            levels = dict(zip(margin.columns, margin.levels, strict=True))
            for at, (column, level) in enumerate(zip(table.columns, table.levels, strict=True)):
                if column in levels:
                    if levels[column] > level:
                        groups = workload.axes[column].ancestors(level, levels[column])
                        ratio = np.take(ratio, groups, axis=at)
                else:
                    ratio = np.expand_dims(ratio, at)
            near *= ratio


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
