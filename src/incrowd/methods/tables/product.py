"""What is handed out of tables: their lines, the certificate's part, and the measured numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from incrowd.anonymize.tables.estimate import estimate_tables
from incrowd.anonymize.tables.mean import compute_means
from incrowd.anonymize.tables.measure import MeasuredResidual
from incrowd.anonymize.tables.plan import TablesPlan
from incrowd.anonymize.tables.whole import WholeTables
from incrowd.anonymize.tables.workload import RequestedTable
from incrowd.arrays import Counts, Floats
from incrowd.methods.base import MakeContext
from incrowd.methods.tables.lines import make_lines, make_numbers
from incrowd.methods.tables.request import TablesRequest
from incrowd.release.tables_column import (
    ColumnLines,
    TabulatedColumn,
    add_totals,
    list_level_choices,
    place_levels,
)
from incrowd.release.tables_part import (
    CellSums,
    CellTable,
    CertifiedResidual,
    CertifiedSum,
    TabulatedTable,
    TabulationPart,
    TabulationProduct,
)
from incrowd.spec.model import Spec
from incrowd.spec.release import TablesSpec
from incrowd.spec.table_request import SumRequest, TableRequest


@dataclass(frozen=True, eq=False)
class TabulationContext:
    """What tables are made of: the request, its plan, what was measured, and whole numbers."""

    request: TablesRequest
    plan: TablesPlan
    release: TablesSpec
    whole_tables: WholeTables
    measured: Sequence[MeasuredResidual]

    @cached_property
    def estimates(self) -> dict[RequestedTable, Floats]:
        """The estimates of what was asked for."""
        tables = self.request.workload.tables
        return dict(zip(tables, estimate_tables(self.plan, self.measured, tables), strict=True))

    @property
    def total(self) -> str | None:
        """The label of totals; None without totals."""
        return self.release.total_label if self.release.totals else None


def make_product(
    tabulation: TabulationContext, spec: Spec, context: MakeContext
) -> TabulationProduct:
    """Return the tables with everything that is published beside them."""
    cells, tables = [], []
    for at in range(len(tabulation.request.tables)):
        cell_table = make_cells(tabulation, at)
        cells.append(cell_table)
        tables.append(make_lines(cell_table, tabulation.release.hide_below, context.engine))
        context.progress(at + 1, len(tabulation.request.tables))
    return TabulationProduct(
        part=make_part(tabulation.request, tabulation.plan, tabulation.release),
        cells=tuple(cells),
        tables=tuple(tables),
        numbers=make_numbers([entry.numbers for entry in tabulation.measured], context.engine),
        exports=tabulation.release.exports,
        declared={name: spec.columns[name] for name in tabulation.request.names},
    )


def make_cells(tabulation: TabulationContext, at: int) -> CellTable:
    """Return the numbers of a table along its lines."""
    table, located = tabulation.request.tables[at], tabulation.request.counts[at]
    columns = tabulation.request.select_columns(table)
    order = tabulation.request.find_order(table)
    levels = tuple(table.levels.get(name, 0) for name in table.columns)
    lines = tuple(
        column.list_lines(level, tabulation.total)
        for column, level in zip(columns, levels, strict=True)
    )
    whole_tables = tabulation.whole_tables
    count = np.transpose(whole_tables.count(located.columns, located.levels), order)
    estimate = np.transpose(tabulation.estimates[located], order)
    cells = CellTable(
        columns,
        levels,
        lines,
        add_totals(count.astype(np.int64), columns, levels, lines),
        add_totals(estimate, columns, levels, lines),
        compute_deviations(tabulation.request, tabulation.plan, table, lines),
    )
    located_sum = tabulation.request.locate_sum(table)
    if located_sum is None:
        return cells
    quantity = located_sum.quantity
    steps = whole_tables.sum_steps(quantity, located.columns, located.levels)
    steps = np.transpose(steps, order).astype(np.int64)
    sums = np.transpose(tabulation.estimates[located_sum], order)
    return replace(
        cells,
        sums=make_sums(
            tabulation.request,
            quantity,
            cells,
            add_totals(steps, columns, levels, lines),
            add_totals(sums, columns, levels, lines),
            compute_deviations(tabulation.request, tabulation.plan, table, lines, quantity),
        ),
    )


def make_sums(
    request: TablesRequest,
    quantity: int,
    cells: CellTable,
    steps: Counts,
    estimate: Floats,
    sd: Floats,
) -> CellSums:
    """Return sums with the intervals of the means that follow from them and from counts."""
    column = request.workload.sums[quantity - 1]
    means = compute_means(column, cells.estimate, estimate, cells.sd**2, sd**2)
    certified = certify_sum(request.sums[quantity - 1])
    return CellSums(certified, steps, estimate, sd, means.low, means.high)


def certify_sum(summed: SumRequest) -> CertifiedSum:
    """Return a summed column as the certificate has it."""
    lower, step = (format(x, "f") for x in (summed.bounds[0], summed.size))
    return CertifiedSum(column=summed.column, lower=lower, step=step, steps=summed.steps)


def compute_deviations(
    request: TablesRequest,
    plan: TablesPlan,
    table: TableRequest,
    lines: tuple[ColumnLines, ...],
    quantity: int = 0,
) -> Floats:
    """Return the standard deviation of the estimate of every line of a table."""
    columns, order = request.select_columns(table), request.find_order(table)
    levels = tuple(table.levels.get(name, 0) for name in table.columns)
    blocks = {}
    for chosen in list_level_choices(columns, lines, levels):
        variance = _compute_variance(plan, columns, order, chosen, request, quantity)
        blocks[chosen] = np.sqrt(variance)
    return place_levels(columns, lines, levels, blocks)


def _compute_variance(
    plan: TablesPlan,
    columns: tuple[TabulatedColumn, ...],
    order: tuple[int, ...],
    chosen: tuple[int, ...],
    request: TablesRequest,
    quantity: int,
) -> Floats:
    """Return the variances of a table at some levels, along its own order of columns.

    A column at its total is left out of the table, and is an axis of length 1 here.
    """
    by_place = sorted(
        (request.names.index(column.name), level, level >= column.root)
        for column, level in zip(columns, chosen, strict=True)
    )
    visible = [(place, level) for place, level, is_total in by_place if not is_total]
    located = RequestedTable(
        tuple(place for place, _ in visible), tuple(x for _, x in visible), quantity=quantity
    )
    variance = plan.variance(located)
    sizes = iter(variance.shape)
    shape = [1 if is_total else next(sizes) for _, _, is_total in by_place]
    return np.transpose(variance.reshape(shape), order)


def make_part(request: TablesRequest, plan: TablesPlan, release: TablesSpec) -> TabulationPart:
    """Return what the certificate says of the tables, before any file is written."""
    return TabulationPart(
        columns=list(request.names),
        missing=release.missing or "counted",
        total=release.total_label if release.totals else None,
        hide_below=release.hide_below,
        objective=release.objective or "sum",
        tables=[
            TabulatedTable(
                columns=list(table.columns),
                levels=[table.levels.get(name, 0) for name in table.columns],
                weight=table.weight,
                rmse=round_error(plan.mean_variance(located)),
                sum=None if table.sum is None else table.sum.column,
                sum_rmse=compute_sum_error(request, plan, table),
            )
            for table, located in zip(request.tables, request.counts, strict=True)
        ],
        sums=[certify_sum(summed) for summed in request.sums] or None,
        residuals=[
            CertifiedResidual(
                quantity=entry.quantity,
                columns=list(entry.columns),
                components=list(entry.components),
                centered=list(entry.centered),
                unit=entry.unit,
                part=str(entry.part),
            )
            for entry in plan.residuals
        ],
        measured="0" * 64,
    )


def compute_sum_error(
    request: TablesRequest, plan: TablesPlan, table: TableRequest
) -> float | None:
    """Return the root mean variance of the sums of a table; None without sums."""
    located = request.locate_sum(table)
    return None if located is None else round_error(plan.mean_variance(located))


def round_error(variance: float) -> float:
    """Return the root of a variance with three digits."""
    return float(f"{math.sqrt(variance):.3g}")
