"""Check tables of counts from the folder alone: lines, sums, agreement, intervals.

Every line of a table is declared, so labels, levels and codes follow from the scheme. Counts are
whole, not negative, and add up. That estimates and standard deviations follow from the measured
numbers is checked in :mod:`incrowd.verification`, with the code that made them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.engine.released import find_hidden_content
from incrowd.findings import Finding, make_finding
from incrowd.release.tables_column import add_totals
from incrowd.release.tables_margins import TableMargins
from incrowd.release.tables_part import MEASURED_FILE, TabulationPart
from incrowd.release.tables_read import (
    PublishedCells,
    PublishedSums,
    get_finest,
    get_part,
    read_cells,
    read_columns,
    read_measured,
)

if TYPE_CHECKING:
    from incrowd.release.certificate import Certificate


def check_tables(folder: Path, certificate: Certificate) -> list[Finding]:
    """Return what is wrong with tables of counts, and with the file of measured numbers."""
    findings = list(find_hidden_content(folder / MEASURED_FILE))
    for table in certificate.tables:
        findings += find_hidden_content(folder / table.release.file)
    if findings:
        return findings
    columns = read_columns(folder, certificate)
    read_measured(folder, certificate, columns)
    margins = TableMargins()
    for at, table in enumerate(certificate.tables):
        file = table.release.file
        try:
            cells = read_cells(folder, certificate, at, columns)
        except ValueError as error:
            findings.append(make_finding("TABLE_LINES_DIFFER", file=file, problem=str(error)))
            continue
        findings += _check_cells(file, cells, get_part(certificate))
        if len(certificate.tables) > 1:
            findings += _compare_margins(margins, file, cells)
    if not findings and get_part(certificate).exports:
        from incrowd.release.tables_export import check_exports

        released = [table.release for table in certificate.tables]
        findings += check_exports(folder, get_part(certificate), columns, released)
    return findings


def _check_cells(file: str, cells: PublishedCells, part: TabulationPart) -> Iterator[Finding]:
    """Return what contradicts that a table adds up, and that intervals follow from estimates."""
    if part.hide_below is not None and (cells.count[~cells.is_hidden] < part.hide_below).any():
        yield make_finding("TABLE_COUNT_NOT_HIDDEN", file=file, least=part.hide_below)
    finest = get_finest(cells)
    if finest is not None:
        sums = add_totals(finest, cells.columns, cells.levels, cells.lines)
        if (sums != cells.count)[~cells.is_hidden].any():
            yield make_finding("TABLE_DOES_NOT_ADD_UP", file=file)
    if not cells.has_intervals:
        yield make_finding("TABLE_INTERVALS_DIFFER", file=file)
        return
    if cells.sums is not None:
        yield from _check_sums(file, cells, cells.sums)


def _check_sums(file: str, cells: PublishedCells, sums: PublishedSums) -> Iterator[Finding]:
    """Return what contradicts that sums are possible for their counts, add up, and have means."""
    is_possible = (sums.steps >= 0) & (sums.steps <= cells.count * sums.column.steps)
    if not (is_possible | cells.is_hidden).all():
        yield make_finding("TABLE_SUM_IMPOSSIBLE", sums.column.column, file=file)
        return
    finest = get_finest(cells)
    if finest is not None:
        steps = get_finest(replace(cells, count=sums.steps))
        assert steps is not None
        added = add_totals(steps, cells.columns, cells.levels, cells.lines)
        if (added != sums.steps)[~cells.is_hidden].any():
            yield make_finding("TABLE_DOES_NOT_ADD_UP", file=file)
    if not sums.has_intervals:
        yield make_finding("TABLE_INTERVALS_DIFFER", file=file)


def _compare_margins(margins: TableMargins, file: str, cells: PublishedCells) -> Iterator[Finding]:
    """Return what contradicts that a table agrees with earlier ones, in counts and in sums."""
    finest = get_finest(cells)
    if finest is None:
        return
    yield from margins.compare(file, cells.columns, cells.levels, finest)
    if cells.sums is not None:
        steps = get_finest(replace(cells, count=cells.sums.steps))
        assert steps is not None
        summed = cells.sums.column.column
        yield from margins.compare(file, cells.columns, cells.levels, steps, summed)
