"""A workbook of tables of counts, as offices hand it out: a sheet for each table.

The same numbers make the same bytes: the file holds no time and no name of who made it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.errors import IncrowdError

_DAY = dt.datetime(1980, 1, 1)
_NEEDED = "`exports: [xlsx]` needs the extra `excel`: pip install 'incrowd[excel]'."


@dataclass(frozen=True)
class Sheet:
    """A sheet: its title, its headers, and what goes through its lines; None is an empty cell."""

    title: str
    headers: Sequence[str]
    iter_lines: Callable[[], Iterator[Sequence[object]]]


def require_workbooks() -> Any:
    """Return the library that writes workbooks; refuse if it is not installed."""
    try:
        import xlsxwriter
    except ImportError as error:
        raise IncrowdError(_NEEDED) from error
    return xlsxwriter


def write_workbook(path: Path, notes: Sequence[str], sheets: Sequence[Sheet]) -> None:
    """Write a workbook: a first sheet of notes, and then the sheets by number.

    Texts are written as texts, whatever they begin with: no cell holds a formula.
    """
    library = require_workbooks()
    options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    with library.Workbook(str(path), options) as book:
        book.set_properties({"created": _DAY})
        bold = book.add_format({"bold": True})
        number = book.add_format({"num_format": "#,##0.0"})
        page = book.add_worksheet("Contents")
        page.set_column(0, 0, 100)
        listed = [f"Table {at}: {sheet.title}" for at, sheet in enumerate(sheets, 1)]
        for at, text in enumerate((*notes, "", *listed)):
            page.write_string(at, 0, text, bold if not at else None)
        for at, sheet in enumerate(sheets, 1):
            page = book.add_worksheet(f"Table {at}")
            page.freeze_panes(1, 0)
            page.set_column(0, len(sheet.headers) - 1, 12)
            for column, header in enumerate(sheet.headers):
                page.write_string(0, column, header, bold)
            for row, line in enumerate(sheet.iter_lines(), 1):
                for column, value in enumerate(line):
                    if isinstance(value, str):
                        page.write_string(row, column, value)
                    elif isinstance(value, float):
                        page.write_number(row, column, value, number)
                    elif value is not None:
                        page.write_number(row, column, value)


def iter_sheets(path: Path) -> Iterator[tuple[str, Iterator[Sequence[object]]]]:
    """Yield the name of each sheet of a workbook but the first, and its cells line by line."""
    import fastexcel

    book = fastexcel.read_excel(path)
    for name in book.sheet_names[1:]:
        frame = book.load_sheet(name, header_row=None, dtypes="string").to_polars()
        yield name, frame.iter_rows()
