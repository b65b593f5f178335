"""Tables of counts in the forms that offices exchange: a workbook, and SDMX."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from incrowd.engine.released_lines import LineBlock
from incrowd.engine.workbook import Sheet, iter_sheets, write_workbook
from incrowd.findings import Finding, make_finding
from incrowd.release.certificate import ReleasedFile
from incrowd.release.formulas import unescape_formula
from incrowd.release.tables_column import TabulatedColumn
from incrowd.release.tables_part import (
    WORKBOOK_FILE,
    TabulatedTable,
    TabulationPart,
    list_figures,
)
from incrowd.release.tables_read import iter_blocks
from incrowd.release.tables_sdmx import SdmxDescription, check_sdmx, write_sdmx

_AT_ONCE = 1 << 16  # lines whose values are held as objects
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
    tables = _list_released(draft, part, released)
    files = []
    if "xlsx" in forms:
        write_workbook(draft / WORKBOOK_FILE, _NOTES, _list_sheets(part, tables))
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
    tables, findings = _list_released(folder, part, released), []
    if WORKBOOK_FILE in listed:
        findings += _check_workbook(folder, part, tables)
    others = [file for file in listed if file != WORKBOOK_FILE]
    if others:
        description = SdmxDescription.build(part, columns)
        if others != [*description.files]:
            return [*findings, make_finding("EXPORT_DIFFERS", file=others[0])]
        findings += check_sdmx(folder, description, tables)
    return findings


@dataclass(frozen=True)
class ReleasedLines:
    """The lines of a released table, read anew by whoever goes through them, some at a time."""

    folder: Path
    release: ReleasedFile
    entry: TabulatedTable

    def iter_lines(self, headers: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the values of some columns, line by line; numbers are numbers."""
        for block in iter_blocks(self.folder, self.release, self.entry, _AT_ONCE):
            yield from zip(*(self._list_values(block, name) for name in headers), strict=True)

    def _list_values(self, block: LineBlock, name: str) -> list[Any]:
        values = block.list_values(name)
        if name in self.entry.columns:
            if not self.release.formulas:
                return values
            meanings = {text: text and unescape_formula(text) for text in set(values)}
            return [meanings[text] for text in values]
        if not block.is_text:
            return values
        is_whole = name == "count" or name not in list_figures(self.entry)
        kind = int if is_whole else _parse_sum if name == "sum" else float
        return [None if text is None else kind(text) for text in values]


def _list_released(
    folder: Path, part: TabulationPart, released: Sequence[ReleasedFile]
) -> list[ReleasedLines]:
    """Return the lines of each table of a release."""
    return [
        ReleasedLines(folder, release, entry)
        for release, entry in zip(released, part.tables, strict=True)
    ]


def _parse_sum(text: str) -> int | float:
    return float(text) if set(text) & set(".e") else int(text)


def _list_sheets(part: TabulationPart, tables: Sequence[ReleasedLines]) -> list[Sheet]:
    """Return a sheet for each table: labels and figures, without levels and codes."""
    sheets = []
    for entry, table in zip(part.tables, tables, strict=True):
        headers = [*entry.columns, *list_figures(entry)]
        summed = "" if entry.sum is None else f"{entry.sum} by "
        title = summed + " by ".join(entry.columns)
        sheets.append(Sheet(title, headers, partial(table.iter_lines, headers)))
    return sheets


def _check_workbook(
    folder: Path, part: TabulationPart, tables: Sequence[ReleasedLines]
) -> list[Finding]:
    """Return a finding if the workbook does not show the numbers of the tables."""
    sheets, is_alike = _list_sheets(part, tables), True
    pairs = zip_longest(sheets, iter_sheets(folder / WORKBOOK_FILE))
    for at, (sheet, named_cells) in enumerate(pairs, 1):
        if sheet is None or named_cells is None:
            is_alike = False
            break
        name, cells = named_cells
        is_alike = is_alike and name == f"Table {at}" and _is_alike(cells, sheet)
    return [] if is_alike else [make_finding("EXPORT_DIFFERS", file=WORKBOOK_FILE)]


def _is_alike(cells: Iterable[Sequence[object]], sheet: Sheet) -> bool:
    """Whether the cells of a sheet are its headers and its lines."""
    lines = chain([tuple(sheet.headers)], sheet.iter_lines())
    for row, line in zip_longest(cells, lines):
        if row is None or line is None or len(row) != len(line):
            return False
        if not all(map(_is_same, row, line)):
            return False
    return True


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
