"""The lines of a released file, block by block, as whoever checks it reads them.

A table of counts may have more lines than are to be held at once, and far too many for an object
each: columns are compared and read as arrays. A text file has texts for numbers; each must be
written as a release writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from pyarrow import parquet

from incrowd.arrays import Bools, Counts, Floats, Places
from incrowd.engine.released import open_released

BLOCK_LINES = 1 << 20
_WHOLE = "^(0|[1-9][0-9]{0,17})$"
_SIGNED = "^(0|-?[1-9][0-9]{0,17})$"


@dataclass(frozen=True, eq=False)
class LineBlock:
    """Lines of a file from ``start`` on; ``is_text`` if numbers stand there as texts."""

    start: int
    is_text: bool
    _frame: pl.DataFrame

    def __len__(self) -> int:
        return len(self._frame)

    @property
    def headers(self) -> list[str]:
        """The names of the columns."""
        return self._frame.columns

    def rename(self, headers: Sequence[str]) -> LineBlock:
        """Return the same lines with other names for the columns."""
        names = dict(zip(self.headers, headers, strict=True))
        return replace(self, _frame=self._frame.rename(names))

    def list_values(self, name: str) -> list[Any]:
        """Return the values of a column, an object each."""
        return self._frame[name].to_list()

    def has_texts(self, name: str, labels: Sequence[str | None], codes: Places) -> bool:
        """Return whether a column holds these labels, by the code of each line."""
        expected = pl.Series(labels, dtype=pl.String).gather(codes)
        column = self._frame[name]
        return column.dtype == pl.String and bool(column.eq_missing(expected).all())

    def has_numbers(self, name: str, numbers: Counts) -> bool:
        """Return whether a column holds these whole numbers."""
        column, expected = self._frame[name], pl.Series(numbers)
        if self.is_text:
            expected = expected.cast(pl.String)
        is_kind = column.dtype == pl.String if self.is_text else column.dtype.is_integer()
        return is_kind and bool(column.eq_missing(expected).all())

    def find_missing(self, name: str) -> Bools:
        """Return which lines have no value in a column."""
        return self._frame[name].is_null().to_numpy()

    def read_whole(self, name: str, *, signed: bool = False) -> Counts:
        """Return whole numbers, 0 where there is none; negative ones only if they are allowed.

        Raises:
            ValueError: if something else stands there.

        """
        column = self._frame[name]
        if self.is_text:
            self._refuse_unlike(column, _SIGNED if signed else _WHOLE, "no whole number from 0")
        elif not column.dtype.is_integer():
            raise ValueError(f"the column '{name}' does not hold whole numbers")
        numbers = column.cast(pl.Int64).fill_null(0).to_numpy()
        if not signed and (numbers < 0).any():
            value = numbers[numbers < 0][0]
            raise ValueError(f"the count '{value}' is no whole number from 0")
        return numbers

    def read_decimals(self, name: str, digits: int) -> Floats:
        """Return numbers with at most some digits after the point, 0 where there is none.

        Raises:
            ValueError: if something else stands there.

        """
        column, problem = self._frame[name], f"no number with {digits} digits"
        if self.is_text:
            column = self._read_spelled(column, problem)
        elif column.dtype != pl.Float64:
            raise ValueError(f"the column '{name}' does not hold numbers with {digits} digits")
        numbers = column.fill_null(0.0).to_numpy()
        is_odd = (np.round(numbers, digits) != numbers) | ~np.isfinite(numbers)
        if is_odd.any():
            raise ValueError(f"'{numbers[is_odd][0]}' is {problem}")
        return numbers

    def _read_spelled(self, column: pl.Series, problem: str) -> pl.Series:
        """Return the numbers of texts; refuse any text but the one that Polars writes for its own.

        A number has many spellings, with as many digits as one likes, all of which are read alike:
        what they differ in could carry anything.
        """
        _refuse_no_texts(column)
        numbers = column.cast(pl.Float64, strict=False)
        is_odd = numbers.cast(pl.String).ne_missing(column) | column.eq("-0.0")
        _refuse_first(column, is_odd, problem)
        return numbers

    def _refuse_unlike(self, column: pl.Series, pattern: str, problem: str) -> None:
        """Refuse texts that are not written as a release writes numbers."""
        _refuse_no_texts(column)
        _refuse_first(column, ~column.str.contains(pattern), problem)


def _refuse_no_texts(column: pl.Series) -> None:
    if column.dtype != pl.String:
        raise ValueError(f"the column '{column.name}' does not hold texts")


def _refuse_first(column: pl.Series, is_odd: pl.Series, problem: str) -> None:
    """Refuse the first text that is odd; a missing one is not."""
    odd = column.filter(is_odd)
    if len(odd):
        raise ValueError(f"'{odd[0]}' is {problem}")


def iter_line_blocks(path: Path, lines: int | None = None) -> Iterator[LineBlock]:
    """Yield the lines of a released file in their order, in blocks."""
    start = 0
    for frame in open_released(path).iter_frames(lines or BLOCK_LINES):
        yield LineBlock(start, path.suffix == ".csv", frame)
        start += len(frame)


def read_whole_numbers(path: Path, columns: Sequence[str]) -> Iterator[list[np.ndarray[Any, Any]]]:
    """Yield columns of whole numbers of a Parquet file, in the order of lines, in blocks.

    Raises:
        ValueError: if the file has other columns, or something else in these.

    """
    with parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        if schema.names != [*columns]:
            raise ValueError(f"the columns are {', '.join(schema.names)}")
        for batch in file.iter_batches(BLOCK_LINES):
            for name in columns:
                if schema.field(name).type != pa.int64() or batch.column(name).null_count:
                    raise ValueError(f"the column '{name}' does not hold whole numbers alone")
            yield [batch.column(name).to_numpy() for name in columns]
