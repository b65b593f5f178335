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
from incrowd.anonymize.tables.plan import TablesPlan
from incrowd.anonymize.tables.workload import Columns, Levels, RequestedTable, Workload
from incrowd.arrays import Floats


def estimate_tables(
    plan: TablesPlan,
    measured: Sequence[MeasuredResidual],
    tables: Sequence[RequestedTable] | None = None,
) -> tuple[Floats, ...]:
    """Return the estimate of each table that was asked for, or of others that they cover."""
    asked_for = plan.workload.tables if tables is None else tables
    parts = _ResidualParts(plan.workload, measured)
    for table in asked_for:
        plan.find_residuals(table)
    return tuple(parts.build_table(table.columns, table.levels, (), ()) for table in asked_for)


class _ResidualParts:
    """The measured differences, in rows."""

    def __init__(self, workload: Workload, measured: Sequence[MeasuredResidual]) -> None:
        self._workload = workload
        self._measured = {(x.residual.columns, x.residual.components): x for x in measured}
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
        for at, (column, component) in enumerate(
            zip(residual.columns, residual.components, strict=True)
        ):
            link = self._workload.axes[column].links[component]
            shape = [-1 if x == at else 1 for x in range(part.ndim)]
            means = link.sum_children(part, at) / link.children.reshape(shape)
            part -= link.spread_parents(means, at)
            if residual.centered[at]:
                part /= link.siblings.reshape(shape)
        return part
