"""What is handed out of tables: their lines, the certificate's part, and the measured numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.anonymize.tables.measure import MeasuredResidual
from incrowd.anonymize.tables.plan import TablesPlan
from incrowd.anonymize.tables.workload import Columns, Levels, RequestedTable
from incrowd.arrays import Counts, Floats
from incrowd.engine.table import Coded, Engine, Table
from incrowd.methods.base import MakeContext
from incrowd.methods.tables.request import TablesRequest
from incrowd.release.tables_column import (
    ColumnLines,
    TabulatedColumn,
    add_totals,
    list_level_choices,
    place_levels,
)
from incrowd.release.tables_part import (
    DIGITS,
    FIGURES,
    NUMBER,
    RESIDUAL,
    WITHIN,
    CellTable,
    CertifiedResidual,
    TabulatedTable,
    TabulationPart,
    TabulationProduct,
    list_headers,
)
from incrowd.spec.model import Spec
from incrowd.spec.release import TablesSpec
from incrowd.spec.table_request import TableRequest


@dataclass(frozen=True, eq=False)
class TabulationContext:
    """What tables are made of: the request, its plan, estimates by table, and whole counts."""

    request: TablesRequest
    plan: TablesPlan
    release: TablesSpec
    estimates: Sequence[Floats]
    count: Callable[[Columns, Levels], Counts]
    measured: Sequence[MeasuredResidual]

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
    table, located = tabulation.request.tables[at], tabulation.request.workload.tables[at]
    columns = tabulation.request.select_columns(table)
    order = tabulation.request.find_order(table)
    levels = tuple(table.levels.get(name, 0) for name in table.columns)
    lines = tuple(
        column.list_lines(level, tabulation.total)
        for column, level in zip(columns, levels, strict=True)
    )
    count = np.transpose(tabulation.count(located.columns, located.levels), order)
    estimate = np.transpose(tabulation.estimates[at], order)
    return CellTable(
        columns,
        levels,
        lines,
        add_totals(count.astype(np.int64), columns, levels, lines),
        add_totals(estimate, columns, levels, lines),
        compute_deviations(tabulation.request, tabulation.plan, table, lines),
    )


def compute_deviations(
    request: TablesRequest,
    plan: TablesPlan,
    table: TableRequest,
    lines: tuple[ColumnLines, ...],
) -> Floats:
    """Return the standard deviation of the estimate of every line of a table."""
    columns, order = request.select_columns(table), request.find_order(table)
    levels = tuple(table.levels.get(name, 0) for name in table.columns)
    blocks = {}
    for chosen in list_level_choices(columns, lines, levels):
        variance = _compute_variance(plan, columns, order, chosen, request)
        blocks[chosen] = np.sqrt(variance)
    return place_levels(columns, lines, levels, blocks)


def _compute_variance(
    plan: TablesPlan,
    columns: tuple[TabulatedColumn, ...],
    order: tuple[int, ...],
    chosen: tuple[int, ...],
    request: TablesRequest,
) -> Floats:
    """Return the variances of a table at some levels, along its own order of columns.

    A column at its total is left out of the table, and is an axis of length 1 here.
    """
    by_place = sorted(
        (request.names.index(column.name), level, level >= column.root)
        for column, level in zip(columns, chosen, strict=True)
    )
    visible = [(place, level) for place, level, is_total in by_place if not is_total]
    located = RequestedTable(tuple(place for place, _ in visible), tuple(x for _, x in visible))
    variance = plan.variance(located)
    sizes = iter(variance.shape)
    shape = [1 if is_total else next(sizes) for _, _, is_total in by_place]
    return np.transpose(variance.reshape(shape), order)


def make_lines(cells: CellTable, hide_below: int | None, engine: Engine) -> Table:
    """Return a table as it is written: labels, levels and codes of each column, and figures."""
    shape = tuple(map(len, cells.lines))
    places = [
        np.broadcast_to(
            np.arange(size).reshape([-1 if at == axis else 1 for at in range(len(shape))]), shape
        ).ravel()
        for axis, size in enumerate(shape)
    ]
    coded: dict[str, Coded] = {}
    plain: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    nothing = np.zeros(math.prod(shape), dtype=bool)
    for name, lines, at in zip(cells.names, cells.lines, places, strict=True):
        labels = list(dict.fromkeys(lines.labels))
        numbers = np.array([labels.index(label) for label in lines.labels], dtype=np.int32)
        coded[name] = (labels, numbers[at])
        plain[f"{name}_level"] = lines.levels[at].astype(np.int64), nothing
        plain[f"{name}_code"] = lines.groups[at].astype(np.int64), nothing
    figures = round_figures(cells)
    is_hidden = nothing if hide_below is None else figures["count"] < hide_below
    for name in FIGURES:
        plain[name] = figures[name], nothing if name == "sd" else is_hidden
    return engine.from_rows(coded, plain, list_headers(cells.names))


def round_figures(cells: CellTable) -> dict[str, np.ndarray]:
    """Return the figures of a table as they are written, line by line."""
    estimate, sd = cells.estimate.ravel(), cells.sd.ravel()
    figures = {
        "estimate": estimate, "sd": sd, "low": estimate - WITHIN * sd,
        "high": estimate + WITHIN * sd,
    }  # fmt: skip
    rounded = {name: np.round(numbers, DIGITS) + 0.0 for name, numbers in figures.items()}
    return {"count": cells.count.ravel(), **rounded}


def make_numbers(numbers: Sequence[Counts], engine: Engine) -> Table:
    """Return the measured numbers as one table, residual by residual."""
    sizes = [part.size for part in numbers]
    residuals = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    joined = np.concatenate([part.ravel() for part in numbers]).astype(np.int64)
    nothing = np.zeros(len(joined), dtype=bool)
    plain = {RESIDUAL: (residuals, nothing), NUMBER: (joined, nothing)}
    return engine.from_rows({}, plain, [RESIDUAL, NUMBER])


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
            )
            for table, located in zip(request.tables, request.workload.tables, strict=True)
        ],
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


def round_error(variance: float) -> float:
    """Return the root of a variance with three digits."""
    return float(f"{math.sqrt(variance):.3g}")
