"""Unbiased estimates of tables from measured residuals.

T_child = (T_parent + its difference) / a, along every axis: a table is built axis by axis, from the
root down. Noise within a block is first projected on vectors of sum 0 along each axis, which the
differences are. So children sum to their parent exactly (up to the last bits of floats), and tables
that share columns agree: both are made of the same residuals. Estimates are linear in the measured
numbers, whose noise has mean 0: they are unbiased, and may be negative.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from incrowd.anonymize.tables.measure import MeasuredResidual
from incrowd.anonymize.tables.plan import TablesPlan, find_scale
from incrowd.anonymize.tables.workload import Columns, Levels, RequestedTable, Workload
from incrowd.arrays import Floats


def estimate_tables(
    plan: TablesPlan,
    measured: Sequence[MeasuredResidual],
    tables: Sequence[RequestedTable] | None = None,
) -> tuple[Floats, ...]:
    """Return the estimate of each table that was asked for, or of others that they cover."""
    requested = plan.workload.tables if tables is None else tables
    parts = {
        quantity: _ResidualParts(plan.workload, quantity, measured)
        for quantity in {x.quantity for x in plan.residuals}
    }

    def estimate(table: RequestedTable) -> Floats:
        plan.find_residuals(table)
        counts = parts[0].build_table(table.columns, table.levels, (), ())
        if not table.quantity:
            return counts
        sums = parts[table.quantity].build_table(table.columns, table.levels, (), ())
        counts = counts * find_scale(plan.workload, table.quantity, 0)
        return counts + sums * find_scale(plan.workload, table.quantity, table.quantity)

    return tuple(estimate(table) for table in requested)


class _ResidualParts:
    """The measured differences of one quantity, in its units."""

    def __init__(
        self, workload: Workload, quantity: int, measured: Sequence[MeasuredResidual]
    ) -> None:
        self._workload = workload
        self._measured = {
            x.residual.key[1:]: x for x in measured if x.residual.quantity == quantity
        }
        self._parts: dict[tuple[Columns, Levels], Floats] = {}

    def build_table(
        self, columns: Columns, levels: Levels, done: Columns, components: Levels
    ) -> Floats:
        """Return the table of the remaining columns at levels, of one component of those done."""
        if not columns:
            return self._find_part(*self._workload.leave_out_roots(done, components), done)
        axis = self._workload.axes[columns[0]]
        at = len(done)
        rest = columns[1:], levels[1:], (*done, columns[0])
        table = self.build_table(*rest, (*components, axis.root))
        for level in range(axis.root - 1, levels[0] - 1, -1):
            link = axis.links[level]
            shape = [-1 if x == at else 1 for x in range(table.ndim)]
            table = link.spread_parents(table, at) / link.siblings.reshape(shape)
            if axis.carries(level):
                table += self.build_table(*rest, (*components, level))
        return table

    def _find_part(self, columns: Columns, components: Levels, axes: Columns) -> Floats:
        """Return a residual's part of its cells, with an axis of length 1 for each other column."""
        key = columns, components
        if key not in self._parts:
            self._parts[key] = self._project(self._measured[key])
        part = self._parts[key]
        sizes = dict(zip(columns, part.shape, strict=True))
        return part.reshape([sizes.get(column, 1) for column in axes])

    def _project(self, measured: MeasuredResidual) -> Floats:
        """Return differences in rows, without what is left of their means."""
        residual = measured.residual
        part = measured.numbers.astype(np.float64)
        for at, (column, component, most_centered) in enumerate(
            zip(residual.columns, residual.components, residual.centered, strict=True)
        ):
            link = self._workload.axes[column].links[component]
            shape = [-1 if x == at else 1 for x in range(part.ndim)]
            means = link.sum_children(part, at) / link.children.reshape(shape)
            part -= link.spread_parents(means, at)
            factors = np.where(link.siblings <= most_centered, link.siblings, 1)
            part /= factors.reshape(shape)
        return part
