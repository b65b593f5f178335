"""Sheets of Excel and OpenDocument workbooks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from incrowd.codes.values import canonicalize_value
from incrowd.engine.local.text import LOOKED_AT, Cells, find_titled_header, refuse_duplicate_names
from incrowd.engine.table import UNNAMED, TableError, TableOrigin

_WHOLE = 2**53  # up to here a float holds every whole number
_NO_DAY = (dt.date(1899, 12, 30), dt.date(1899, 12, 31))  # the day of a time without one


def narrow_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """Cast columns of whole numbers to integers, of days to days, of nothing to text.

    A column is looked at without its name: Polars would take '^x$' for a pattern.
    """
    columns = {column.name: column.alias("") for column in frame.get_columns()}
    return pl.DataFrame({name: _narrow_column(column) for name, column in columns.items()})


def _narrow_column(column: pl.Series) -> pl.Series:
    values = column.drop_nulls()
    if values.is_empty():
        return column.cast(pl.String)
    if column.dtype.is_float():
        is_whole = (values.floor() == values) & (values.abs() <= _WHOLE)
        return column.cast(pl.Int64) if is_whole.all() else column
    if isinstance(column.dtype, pl.Datetime):
        if (values.dt.time() == dt.time()).all():
            return column.cast(pl.Date)
        if values.dt.date().is_in(_NO_DAY).all():
            return column.dt.time()
    return column


_CLOCK = r"^1899-12-3[01] (\d\d:\d\d:\d\d)$"
_NUMBER = r"^-?\d+(\.\d{1,9})?$"


def open_excel(
    path: Path, sheet: str | None, header: int | None
) -> tuple[pl.LazyFrame, TableOrigin]:
    """Open a sheet of a workbook, by default the first; rows without a value are left out.

    Titles above the header are skipped, unless the row of the header is given. Numbers and days
    stay what they are; a column that holds several kinds is text. A column without name and
    values is left out, and a first one without a name is called ``unnamed``.
    """
    with _explain_read_errors(path):
        from fastexcel import read_excel

        book = read_excel(path)
    sheet_name, other_sheets = _choose_sheet(path, book.sheet_names, sheet)
    place = f"The sheet '{sheet_name}' of '{path.name}'"
    notes = [f"The workbook has other sheets: {other_sheets}. --sheet names one of them."]
    notes = notes if other_sheets and sheet is None else []
    with _explain_read_errors(path):
        texts = book.load_sheet(
            sheet_name, header_row=None, skip_rows=0, dtypes="string"
        ).to_polars()
    if not texts.height:
        hint = f" The workbook has other sheets: {other_sheets}." if other_sheets else ""
        raise TableError(f"{place} is empty.{hint}")
    rows = dict(enumerate(texts.head(LOOKED_AT).rows(), start=1))
    row = header or next((at for at, cells in rows.items() if any(cells)), 1)
    if row > texts.height:
        raise TableError(
            f"{place} has {texts.height} rows, so row {row} cannot be the header. Correct `header`."
        )
    if header is None and (titled_header := find_titled_header(rows)):
        row = header = titled_header.header
        notes.append(titled_header.note)
    frame = _read_typed_rows(path, book, sheet_name, row, texts.slice(row))
    names = _name_columns(frame, texts.row(row - 1), place, row)
    frame = narrow_columns(frame.select(*names)).rename(names)
    return frame.lazy(), TableOrigin(sheet, header, tuple(notes))


def _choose_sheet(path: Path, names: list[str], sheet: str | None) -> tuple[str, str]:
    """Return the name of the sheet to be read, and those of the others."""
    if not names:
        raise TableError(f"Workbook '{path.name}': it has no sheet. Name another file.")
    if sheet is not None and sheet not in names:
        raise TableError(
            f"Workbook '{path.name}': no sheet '{sheet}'. Its sheets are: {', '.join(names)}."
        )
    sheet_name = names[0] if sheet is None else sheet
    return sheet_name, ", ".join(name for name in names if name != sheet_name)


def _name_columns(frame: pl.DataFrame, cells: Cells, place: str, row: int) -> dict[str, str]:
    """Return the columns that have a name or a value, and how they are called."""
    headers = {at: (cell or "").strip() for at, cell in zip(frame.columns, cells, strict=True)}
    names = {at: name for at, name in headers.items() if name or frame.schema[at] != pl.Null}
    first = next(iter(names), "")
    if not names.get(first) and UNNAMED not in names.values():
        names = {at: UNNAMED if at == first else name for at, name in names.items()}
    if bare := [number for number, at in enumerate(headers, start=1) if names.get(at) == ""]:
        raise TableError(
            f"{place}: column {bare[0]} has no name in row {row}, which was read as the header. "
            "Name the column, or set the header row with --header."
        )
    refuse_duplicate_names(list(names.values()), place)
    return names


def _read_typed_rows(
    path: Path, book: Any, sheet: str, row: int, texts: pl.DataFrame
) -> pl.DataFrame:
    """Read the rows below the header, each column of its own kind; one of nothing is null."""
    blank = texts.select(pl.all().str.strip_chars().replace("", None))
    filled = blank.select(column.name for column in blank if column.null_count() < len(column))
    if not filled.width:
        return texts.clear().cast(pl.Null)
    with _explain_read_errors(path):
        frame = book.load_sheet(
            sheet,
            header_row=None,
            skip_rows=row,
            schema_sample_rows=None,
            dtypes={at: "string" for at in texts.columns if at not in filled.columns},
        ).to_polars()
    columns = [
        _unmix_column(frame.get_column(at), texts.get_column(at))
        if at in filled.columns
        else pl.Series(at, [None] * len(frame))
        for at in frame.columns
    ]
    with _explain_read_errors(path):
        rows = pl.DataFrame(columns).with_columns(
            _restore_digits(book, sheet, row, pl.DataFrame(columns))
        )
    return rows.filter(~pl.all_horizontal(pl.all().is_null()))


def _restore_digits(book: Any, sheet: str, row: int, frame: pl.DataFrame) -> list[pl.Series]:
    """Return columns of text with the numbers among them as they are written alone.

    The reader rounds a number among texts to nine decimals, so that one cell of text would change
    what is read, and published, of all other rows. A text such as 007 is no number so rounded.
    """
    texts = frame.select(pl.col(pl.String))
    mixed_columns = [column.name for column in texts if column.str.contains(_NUMBER).any()]
    if not mixed_columns:
        return []
    numbers = book.load_sheet(
        sheet, header_row=None, skip_rows=row,
        use_columns=mixed_columns, dtypes=dict.fromkeys(mixed_columns, "float"),
    ).to_polars()  # fmt: skip
    columns = []
    for at in mixed_columns:
        pairs = zip(texts.get_column(at), numbers.get_column(at), strict=True)
        values = [
            canonicalize_value(x) if text == _format_rounded(x) else text for text, x in pairs
        ]
        columns.append(pl.Series(at, values, dtype=pl.String))
    return columns


def _format_rounded(number: float | None) -> str:
    """Format a number as the reader writes it among texts."""
    return "" if number is None else f"{number:.9f}".rstrip("0").rstrip(".")


def _unmix_column(column: pl.Series, texts: pl.Series) -> pl.Series:
    """Turn a column of several kinds into text: among numbers, true would be read as 1."""
    if column.dtype.is_numeric() and texts.is_in(["true", "false"]).any():
        column = texts
    if column.dtype == pl.Datetime and texts.str.contains(_CLOCK).any():
        column = texts
    if column.dtype != pl.String:
        return column
    # Days, times and clocks among texts look as they do without them: one cell of text must not
    # change what is read, and published, of all other rows.
    column = column.str.replace(_CLOCK, "$1")
    column = column.str.replace(r"^(\d{4}-\d\d-\d\d) 00:00:00$", "$1")
    return column.str.replace(r"^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)$", "${1}T${2}")


@contextmanager
def _explain_read_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the reader's errors have no common base
        reason = str(error).splitlines()[0]
        raise TableError(f"Cannot read '{path.name}' as {path.suffix[1:]}: {reason}") from error
