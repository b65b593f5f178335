"""Cells as spreadsheets and statistics programs keep them, where every number is a float."""

from __future__ import annotations

import datetime as dt

import polars as pl

_WHOLE = 2**53  # up to here a float holds every whole number
_CLOCK = (dt.date(1899, 12, 30), dt.date(1899, 12, 31))  # the day of a time without one


def narrowed(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns of whole numbers as such, those of days as days, those of nothing as text.

    A column is looked at without its name: Polars would take '^x$' for a pattern.
    """
    columns = {column.name: column.alias("") for column in frame.get_columns()}
    return pl.DataFrame({name: _narrowed(column) for name, column in columns.items()})


def _narrowed(column: pl.Series) -> pl.Series:
    known = column.drop_nulls()
    if known.is_empty():
        return column.cast(pl.String)
    if column.dtype.is_float():
        whole = (known.floor() == known) & (known.abs() <= _WHOLE)
        return column.cast(pl.Int64) if whole.all() else column
    if isinstance(column.dtype, pl.Datetime):
        if (known.dt.time() == dt.time()).all():
            return column.cast(pl.Date)
        if known.dt.date().is_in(_CLOCK).all():
            return column.dt.time()
    return column
