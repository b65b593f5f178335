"""Tables of counts in the forms that offices exchange: a workbook, and SDMX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from incrowd.engine.released import read_lines
from incrowd.engine.workbook import Sheet, read_workbook, write_workbook
from incrowd.findings import Finding, make_finding
from incrowd.release.certificate import ReleasedFile
from incrowd.release.formulas import unescape_formula
from incrowd.release.tables_column import TabulatedColumn
from incrowd.release.tables_part import (
    FIGURES,
    SUM_FIGURES,
    WORKBOOK_FILE,
    TabulationPart,
    list_figures,
)
from incrowd.release.tables_sdmx import SdmxDescription, check_sdmx, write_sdmx

_NOTES = (
    "Tables of counts that add up",
    "count: a whole number, 0 or more. All counts add up, and tables that share columns agree.",
    "estimate: unbiased; may be negative and have a fraction. Use it for sums of your own.",
    "sd: the standard deviation of the estimate. low to high: a 95 % interval of the true number.",
    "An empty label is a missing value. README.md and certificate.html explain the guarantee.",
)


def write_exports(
    draft: Path,
    part: TabulationPart,
    columns: Mapping[str, TabulatedColumn],
    released: Sequence[ReleasedFile],
    forms: Sequence[str],
) -> list[str]:
    """Write tables, whose files are there already, in further forms; return the new files."""
    tables = [read_figures(draft, release) for release in released]
    files = []
    if "xlsx" in forms:
        write_workbook(draft / WORKBOOK_FILE, _NOTES, [*_list_sheets(part, tables)])
        files.append(WORKBOOK_FILE)
    if "sdmx" in forms:
        description = SdmxDescription.build(part, columns)
        write_sdmx(draft, description, tables)
        files += description.files
    return files


def check_exports(
    folder: Path,
    part: TabulationPart,
    columns: Mapping[str, TabulatedColumn],
    released: Sequence[ReleasedFile],
) -> list[Finding]:
    """Return a finding for each further file that does not show the numbers of the tables."""
    listed = [export.file for export in part.exports]
    if not listed:
        return []
    tables, findings = [read_figures(folder, release) for release in released], []
    if WORKBOOK_FILE in listed:
        findings += _check_workbook(folder, part, tables)
    others = [file for file in listed if file != WORKBOOK_FILE]
    if others:
        description = SdmxDescription.build(part, columns)
        if others != [*description.files]:
            return [*findings, make_finding("EXPORT_DIFFERS", file=others[0])]
        findings += check_sdmx(folder, description, tables)
    return findings


def read_figures(folder: Path, release: ReleasedFile) -> dict[str, list[Any]]:
    """Return the columns of a released table, with numbers as numbers."""
    unescape = unescape_formula if release.formulas else None
    columns = read_lines(folder / release.file, unescape=unescape)
    if release.file.endswith(".csv"):
        for name in (*FIGURES, *SUM_FIGURES):
            kind = int if name == "count" else _parse_sum if name == "sum" else float
            if name in columns:
                columns[name] = [None if text is None else kind(text) for text in columns[name]]
    return columns


def _parse_sum(text: str) -> int | float:
    return float(text) if set(text) & set(".e") else int(text)


def _list_sheets(
    part: TabulationPart, tables: Sequence[Mapping[str, Sequence[Any]]]
) -> Iterator[Sheet]:
    """Yield a sheet for each table: labels and figures, without levels and codes."""
    for entry, columns in zip(part.tables, tables, strict=True):
        headers = [*entry.columns, *list_figures(entry)]
        lines = list(zip(*(columns[name] for name in headers), strict=True))
        summed = "" if entry.sum is None else f"{entry.sum} by "
        yield Sheet(summed + " by ".join(entry.columns), headers, lines)


def _check_workbook(
    folder: Path, part: TabulationPart, tables: Sequence[Mapping[str, Sequence[Any]]]
) -> list[Finding]:
    """Return a finding if the workbook does not show the numbers of the tables."""
    sheets = read_workbook(folder / WORKBOOK_FILE)
    expected = [*_list_sheets(part, tables)]
    names = [f"Table {at}" for at in range(1, len(expected) + 1)]
    is_alike = [*sheets] == names and all(
        _is_alike(cells, sheet) for cells, sheet in zip(sheets.values(), expected, strict=True)
    )
    return [] if is_alike else [make_finding("EXPORT_DIFFERS", file=WORKBOOK_FILE)]


def _is_alike(cells: list[list[object]], sheet: Sheet) -> bool:
    lines: list[list[object]] = [list(sheet.headers), *(list(line) for line in sheet.lines)]
    return len(cells) == len(lines) and all(
        len(row) == len(line) and all(map(_is_same, row, line))
        for row, line in zip(cells, lines, strict=True)
    )


def _is_same(cell: object, value: object) -> bool:
    """Whether a cell, read as text, shows a text or a number."""
    if value is None or cell is None:
        return cell is None and value is None
    if isinstance(value, str):
        return cell == value
    try:
        return float(str(cell)) == float(str(value))
    except ValueError:
        return False
