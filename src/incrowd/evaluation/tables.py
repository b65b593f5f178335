"""Judge tables of counts: their true errors, beside those that the plan states."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from incrowd.arrays import Counts
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, make_finding
from incrowd.measure.estimate import AttackReport
from incrowd.measure.tables import TableErrors, TablesEvaluation, measure_sums, measure_table
from incrowd.methods.registry import make_method
from incrowd.methods.tables.method import Tables
from incrowd.release.certificate import Certificate
from incrowd.release.product import MethodResult, TrueCounts
from incrowd.release.tables_column import add_totals
from incrowd.release.tables_part import WITHIN, CellSums, CellTable, TabulationPart
from incrowd.release.tables_read import PublishedCells, read_cells, read_columns
from incrowd.spec.file import SpecFile

_NOT_ATTACKED = (
    "No attack was run: attacks on groups of rows do not apply to tables of counts, in which no "
    "line stands for a person. `incrowd audit` tests the guarantee itself."
)


def measure_tables(outcome: MethodResult) -> tuple[TablesEvaluation, tuple[Finding, ...]]:
    """Measure tables of counts beside the table that they count."""
    assert outcome.tabulation is not None
    assert outcome.true_counts is not None
    counter, part = outcome.true_counts, outcome.tabulation.part
    tables = tuple(measure_cells(cells, counter, part) for cells in outcome.tabulation.cells)
    evaluation = _evaluate(tables, counter, part)
    return evaluation, tuple(_find_excluded(evaluation))


def _evaluate(
    tables: tuple[TableErrors, ...], counter: TrueCounts, part: TabulationPart
) -> TablesEvaluation:
    rows = int(counter(0, (), ()))
    lines = sum(table.lines for table in tables)
    return TablesEvaluation(
        rows_original=rows + (counter.excluded or 0),
        rows_released=lines,
        suppressed=0,
        classes=lines,
        smallest_class=0,
        loss=0.0,
        tables=tables,
        excluded=counter.excluded if part.missing == "excluded" else 0,
    )


def _find_excluded(evaluation: TablesEvaluation) -> list[Finding]:
    if not evaluation.excluded:
        return []
    return [
        make_finding(
            "TABLES_ROWS_EXCLUDED", rows=evaluation.excluded, every=evaluation.rows_original
        )
    ]


def measure_cells(cells: CellTable, counter: TrueCounts, part: TabulationPart) -> TableErrors:
    """Measure one table; ``part`` says in which order the counter has its columns."""
    truth = count_truth(cells, counter, part.columns)
    is_finest = np.ones((), dtype=bool)
    for lines, level in zip(cells.lines, cells.levels, strict=True):
        is_finest = np.logical_and.outer(is_finest, lines.levels == level)
    errors = measure_table(
        cells.names,
        truth=truth,
        count=cells.count,
        estimate=cells.estimate,
        sd=cells.sd,
        is_finest=is_finest,
        within=WITHIN,
    )
    if cells.sums is None:
        return errors
    column, digits = cells.sums.column, cells.sums.column.digits
    quantity = [summed.column for summed in part.sums or ()].index(column.column) + 1
    steps = count_truth(cells, counter, part.columns, quantity)
    sums = measure_sums(
        column.column,
        truth=column.compute_sums(truth, steps) / 10**digits,
        rows=truth,
        whole_sums=column.compute_sums(cells.count, cells.sums.steps) / 10**digits,
        estimate=cells.sums.estimate,
        sd=cells.sums.sd,
        means=(cells.sums.mean_low, cells.sums.mean_high),
        is_finest=is_finest,
        within=WITHIN,
    )
    return replace(errors, sums=sums)


def count_truth(
    cells: CellTable, counter: TrueCounts, order: list[str], quantity: int = 0
) -> Counts:
    """Return the true counts of all lines of a table, or the true steps of a quantity."""
    places = [order.index(name) for name in cells.names]
    ascending = sorted(range(len(places)), key=places.__getitem__)
    cells_truth = counter(
        quantity, tuple(places[at] for at in ascending), tuple(cells.levels[at] for at in ascending)
    )
    finest = np.transpose(cells_truth, np.argsort(ascending))
    return add_totals(finest, cells.columns, cells.levels, cells.lines)


def describe_attacks() -> AttackReport:
    """Return that no attack applies."""
    return AttackReport((), 0, 0, (_NOT_ATTACKED,))


def restore_sums(cells: PublishedCells) -> CellSums | None:
    """Return the sums of a released table as they were made."""
    sums = cells.sums
    if sums is None:
        return None
    return CellSums(sums.column, sums.steps, sums.estimate, sums.sd, sums.mean_low, sums.mean_high)


def measure_folder(
    file: SpecFile, original: Table, folder: Path, certificate: Certificate
) -> TablesEvaluation:
    """Measure the tables of counts in a folder beside the table that they count."""
    method = make_method(file.with_all_confirmed())
    if not isinstance(method, Tables):
        raise IncrowdError(
            "Spec: it is not that of these tables: its method is not `tables`. Name the right spec."
        )
    part = certificate.tabulation
    assert part is not None
    columns = read_columns(folder, certificate)
    if list(method.request.names) != part.columns:
        raise IncrowdError(
            "Spec: its tables have other columns than the release. Name the right spec."
        )
    counter = method.make_counter(method.count(original))
    tables = []
    for at in range(len(part.tables)):
        cells = read_cells(folder, certificate, at, columns)
        if cells.is_hidden.any():
            raise IncrowdError(
                "Hidden cells cannot be measured. The report of the release has their errors."
            )
        cell_table = CellTable(
            cells.columns, cells.levels, cells.lines, cells.count, cells.estimate, cells.sd,
            restore_sums(cells),
        )  # fmt: skip
        tables.append(measure_cells(cell_table, counter, part))
    return _evaluate(tuple(tables), counter, part)
