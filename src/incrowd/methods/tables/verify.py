"""Check that estimates and their standard deviations follow from the measured numbers.

The estimates are computed again, by the code that computed them. That shows no more than it says:
what is published is made of the measured numbers, so that nothing else of the input is in it. The
guarantee itself is checked without that code, in :mod:`incrowd.release`.

**Tolerance.** Figures have three digits after the point, and floats of another machine may differ
in the last bits: a figure may be off by half a unit of its last digit, and a millionth of its size.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np

from incrowd.anonymize.tables.estimate import estimate_tables
from incrowd.anonymize.tables.measure import MeasuredResidual, load_measured
from incrowd.anonymize.tables.plan import Residual, TablesPlan
from incrowd.arrays import Floats
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, make_finding
from incrowd.methods.tables.product import (
    compute_deviations,
    compute_sum_error,
    make_sums,
    round_error,
)
from incrowd.methods.tables.request import TablesRequest
from incrowd.release.certificate import Certificate
from incrowd.release.tables_column import add_totals
from incrowd.release.tables_part import CellSums, CellTable, TabulationPart
from incrowd.release.tables_read import (
    ROUNDING,
    PublishedCells,
    read_cells,
    read_columns,
    read_measured,
)
from incrowd.spec.table_request import SumRequest, TableRequest

_AT_ONCE = 1 << 22  # lines that are compared at a time


def check_estimates(folder: Path, certificate: Certificate) -> list[Finding]:
    """Return what contradicts that tables follow from the measured numbers.

    ``certificate`` is that of a release that holds otherwise.
    """
    part = certificate.tabulation
    assert part is not None
    try:
        request, plan, measured = read_plan(folder, certificate)
        tables = plan.workload.tables
        estimates = dict(zip(tables, estimate_tables(plan, measured), strict=True))
    except (IncrowdError, ValueError, LookupError, ArithmeticError) as error:
        return [make_finding("TABLES_NOT_ESTIMATED", problem=str(error))]
    columns = read_columns(folder, certificate)
    for at, (entry, table) in enumerate(zip(part.tables, request.tables, strict=True)):
        file = certificate.tables[at].release.file
        cells = read_cells(folder, certificate, at, columns)
        estimate = np.transpose(estimates[request.counts[at]], request.find_order(table))
        estimate = add_totals(estimate, cells.columns, cells.levels, cells.lines)
        sd = compute_deviations(request, plan, table, cells.lines)
        rmse = round_error(plan.mean_variance(request.counts[at]))
        is_alike = _is_alike(cells, estimate, sd) and rmse == entry.rmse
        located = request.locate_sum(table)
        if located is not None and is_alike:
            sums = np.transpose(estimates[located], request.find_order(table))
            sums = add_totals(sums, cells.columns, cells.levels, cells.lines)
            plain_cells = CellTable(
                cells.columns, cells.levels, cells.lines, cells.count, estimate, sd
            )
            deviations = compute_deviations(request, plan, table, cells.lines, located.quantity)
            expected = make_sums(
                request, located.quantity, plain_cells, cells.count, sums, deviations
            )
            is_alike = _are_sums_alike(cells, expected)
            is_alike &= compute_sum_error(request, plan, table) == entry.sum_rmse
        if not is_alike:
            return [make_finding("TABLE_ESTIMATES_DIFFER", file=file)]
    return []


def _are_sums_alike(cells: PublishedCells, expected: CellSums) -> bool:
    """Whether published sums and intervals of means are those that were computed again."""
    sums = cells.sums
    assert sums is not None
    largest = float(max(abs(expected.column.upper), abs(Decimal(expected.column.lower))))
    size = np.abs(expected.estimate) + expected.sd + largest
    slack = sums.rounding + 1e-6 * size
    pairs = (
        (sums.estimate, expected.estimate, slack),
        (sums.mean_low, expected.mean_low, sums.rounding + 1e-6 * largest),
        (sums.mean_high, expected.mean_high, sums.rounding + 1e-6 * largest),
    )
    is_near = [((np.abs(x - y) <= most) | cells.is_hidden).all() for x, y, most in pairs]
    return all(is_near) and bool((np.abs(sums.sd - expected.sd) <= slack).all())


def _is_alike(cells: PublishedCells, estimate: Floats, sd: Floats) -> bool:
    """Whether published figures are those that were computed again; lines are compared in parts."""
    pairs = (cells.estimate, estimate), (cells.sd, sd)
    figures = [np.ascontiguousarray(x).reshape(-1) for pair in pairs for x in pair]
    is_hidden = cells.is_hidden.reshape(-1)
    for start in range(0, len(is_hidden), _AT_ONCE):
        lines = slice(start, start + _AT_ONCE)
        published, expected, published_sd, expected_sd = (x[lines] for x in figures)
        size = np.abs(expected) + expected_sd
        slack = ROUNDING + 1e-6 * np.maximum(size, 1.0)
        is_near = (np.abs(published - expected) <= slack) | is_hidden[lines]
        if not (is_near.all() and (np.abs(published_sd - expected_sd) <= slack).all()):
            return False
    return True


def _restore_sum(part: TabulationPart, column: str) -> SumRequest:
    """Return a summed column as the spec had it."""
    certified = next(x for x in part.sums or () if x.column == column)
    return SumRequest(
        column=column,
        bounds=(Decimal(certified.lower), certified.upper),
        step=Decimal(certified.step),
    )


def read_plan(
    folder: Path, certificate: Certificate
) -> tuple[TablesRequest, TablesPlan, tuple[MeasuredResidual, ...]]:
    """Return the request of a release, its plan and its measured numbers."""
    part = certificate.tabulation
    assert part is not None
    columns = read_columns(folder, certificate)
    tables = tuple(
        TableRequest(
            columns=tuple(entry.columns),
            levels=dict(zip(entry.columns, entry.levels, strict=True)),
            weight=entry.weight,
            sum=None if entry.sum is None else _restore_sum(part, entry.sum),
        )
        for entry in part.tables
    )
    request = TablesRequest(tuple(columns.values()), tables)
    residuals = tuple(
        Residual(
            entry.quantity,
            tuple(entry.columns),
            tuple(entry.components),
            tuple(entry.centered),
            entry.unit,
            entry.cost,
        )
        for entry in part.residuals
    )
    information = float(certificate.parameters["information"])
    plan = TablesPlan(request.workload, information, part.objective, residuals, 0.0)
    return request, plan, load_measured(plan, read_measured(folder, certificate, columns))
