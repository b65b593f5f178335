"""The engine of this machine: it opens files, databases and data frames.

Text files are read as text: no type is guessed, so a ZIP code keeps its zeros. What is
wrong with a file is said before anything else happens.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from incrowd.arrays import Bools, Counts
from incrowd.engine.address import hide_secrets, is_address
from incrowd.engine.local.excel import open_excel
from incrowd.engine.local.postgres import read_postgres
from incrowd.engine.local.publishable import (
    BlockTable,
    PublishableTable,
    drop_unused_labels,
    mask_nulls,
)
from incrowd.engine.local.statistics import STATISTICS, open_statistics
from incrowd.engine.local.table import LocalTable
from incrowd.engine.local.text import open_compressed, open_text, refuse_duplicate_names
from incrowd.engine.table import Coded, RowBlocks, TableError, TableOrigin

Orders = Mapping[str, tuple[str, ...]]
_PARQUET = ".parquet"


def read_frame_orders(frame: pl.LazyFrame | pl.DataFrame) -> Orders:
    """Return the categories of each enum, in their order."""
    return {
        name: tuple(kind.categories)
        for name, kind in frame.collect_schema().items()
        if isinstance(kind, pl.Enum)
    }


def read_pandas_orders(frame: Any) -> Orders:
    """Return the categories of each ordered column of a pandas frame."""
    return {
        str(name): tuple(map(str, kind.categories))
        for name, kind in frame.dtypes.items()
        if getattr(kind, "ordered", False)
    }


def read_arrow_orders(table: Any) -> Orders:
    """Return the categories of each ordered dictionary of an Arrow table that has rows."""
    orders = {}
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) and field.type.ordered and table.num_rows:
            column = table.column(at)
            part = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
            orders[field.name] = tuple(map(str, part.dictionary.to_pylist()))
    return orders


def read_file_orders(path: Path) -> Orders:
    """Return the same of a Parquet or an Arrow file, from its first rows."""
    try:
        if path.suffix.lower() == _PARQUET:
            file = pa.parquet.ParquetFile(path)
            kinds = {field.name: field.type for field in file.schema_arrow}
            names = [name for name, kind in kinds.items() if getattr(kind, "ordered", False)]
            if not names:
                return {}
            return read_arrow_orders(next(file.iter_batches(batch_size=1, columns=names)))
        with pa.ipc.open_file(path) as batches:
            return read_arrow_orders(batches.get_batch(0)) if batches.num_record_batches else {}
    except (pa.ArrowException, OSError, StopIteration):  # what cannot be read is refused elsewhere
        return {}


_TEXT = {".csv", ".tsv", ".txt", ".tab"}
_COMPRESSED = {f"{ending}.gz" for ending in _TEXT}
_EXCEL = {".xlsx", ".xls", ".xlsb", ".ods"}
_ARROW = {".arrow", ".ipc", ".feather"}
_KNOWN = {*_TEXT, *_COMPRESSED, ".parquet", *_ARROW, *_EXCEL, *STATISTICS}


class LocalEngine:
    """Tables of this machine, by Polars."""

    def open(
        self,
        source: Any,
        *,
        folder: Path = Path(),
        empty: bool = False,
        delimiter: str | None = None,
        sheet: str | None = None,
        header: int | None = None,
    ) -> LocalTable:
        """Open a table from a path, a PostgreSQL address, or a Polars, pandas or Arrow object.

        Text (in gzip, too), Parquet, Arrow, Excel, SAS, Stata and SPSS files go by the ending of
        their names. A relative path is relative to ``folder``.
        ``postgresql://user@host/database#schema.table`` names a table of a database. A file
        without rows is refused unless ``empty`` allows it. The ``delimiter`` of a text file is
        found out; it is given for files that we wrote. ``sheet`` is for Excel files, ``header``,
        a row from 1, for those and for text.
        """
        if is_address(source) or not isinstance(source, str | os.PathLike):
            _refuse_sheet_or_header("The table", "", sheet, header)
        if isinstance(source, pl.LazyFrame):
            # Somebody else's plan may give its rows in another order each time: run it once.
            return LocalTable(source.collect(engine="streaming").lazy())
        if isinstance(source, pl.DataFrame):
            return LocalTable(source.lazy(), origin=TableOrigin(orders=read_frame_orders(source)))
        if is_address(source):
            return LocalTable(read_postgres(source).lazy())
        if isinstance(source, str) and (match := re.match(r"([\w.+:-]{2,})://", source)):
            raise TableError(
                f"Cannot read addresses that begin with '{match[1]}://'. Name a path or "
                "postgresql://user@host/database#schema.table, or use --engine spark."
            )
        if isinstance(source, str | os.PathLike):
            if _is_table_name(source) and not (folder / source).exists():
                raise TableError(
                    f"File '{source}': not found. Correct the path, or use --engine spark for a "
                    "table in Spark's catalog."
                )
            return _open_path(folder / source, empty, delimiter, sheet, header)
        kind = f"{type(source).__module__.split('.')[0]}.{type(source).__name__}"
        if kind == "pandas.DataFrame":
            refuse_duplicate_names([str(name) for name in source.columns], "The data frame")
            table_origin = TableOrigin(orders=read_pandas_orders(source))
            return _convert_frame(
                lambda: pl.from_pandas(source.reset_index(drop=True)), kind, table_origin
            )
        if kind.startswith("pyarrow.") and hasattr(source, "schema"):
            refuse_duplicate_names(list(source.schema.names), "The Arrow table")
            table_origin = TableOrigin(
                orders=read_arrow_orders(source) if hasattr(source, "num_rows") else {}
            )
            return _convert_frame(lambda: pl.from_arrow(source), kind, table_origin)
        raise TableError(
            f"Cannot read a table from a {kind}. Give a path, a PostgreSQL address, or a Polars, "
            "pandas or Arrow table."
        )

    def from_columns(
        self, columns: Mapping[str, Sequence[object] | np.ndarray[Any, Any]]
    ) -> LocalTable:
        """Make a table held in memory, from its columns.

        Polars takes a name such as '^x$' for a pattern while it builds some kinds of columns, so
        each column gets its name when it is there.
        """
        return LocalTable(
            pl.LazyFrame({name: pl.Series(values) for name, values in columns.items()})
        )

    def from_cells(
        self, columns: Mapping[str, Coded], counts: Counts, *, count_column: str | None = None
    ) -> LocalTable:
        """Make a table of cells; each label is held once, and only if it occurs in some cell."""
        coded_columns = {}
        for name, (texts, codes) in columns.items():
            labels, at = drop_unused_labels(texts, codes)
            coded_columns[name] = (labels, at if count_column else np.repeat(at, counts))
        plain = {count_column: pl.Series(counts)} if count_column else {}
        return PublishableTable(coded_columns, plain, [*coded_columns, *plain])

    def from_rows(
        self,
        coded_columns: Mapping[str, Coded],
        plain: Mapping[str, tuple[np.ndarray[Any, Any], Bools]],
        order: Sequence[str],
    ) -> LocalTable:
        """Make a table of rows: labels by code, and plain columns with a mask of nulls."""
        return PublishableTable(
            {name: drop_unused_labels(*column) for name, column in coded_columns.items()},
            mask_nulls(plain),
            order,
        )

    def from_blocks(self, blocks: RowBlocks) -> LocalTable:
        """Make a table of rows that are made block by block, and written so."""
        return BlockTable(blocks)


ENGINE = LocalEngine()


def _convert_frame(convert: Callable[[], Any], kind: str, origin: TableOrigin) -> LocalTable:
    try:
        return LocalTable(convert().lazy(), origin=origin)
    except Exception as error:  # the converters' errors have no common base
        reason = str(error).splitlines()[0]
        raise TableError(f"Cannot read the {kind}: {reason}") from error


def _refuse_sheet_or_header(
    source: str, ending: str, sheet: str | None, header: int | None
) -> None:
    if sheet is not None and ending not in _EXCEL:
        raise TableError(f"{source} has no sheets. Remove `sheet`.")
    if header is not None and ending not in {*_TEXT, *_COMPRESSED, *_EXCEL}:
        raise TableError(
            f"{source} stores its column names. Remove `header`, which is for text and Excel files."
        )


def _get_file_ending(path: Path) -> str:
    """Return the ending of a name, both of those of a compressed file."""
    return "".join(path.suffixes[-2 if path.suffix.lower() == ".gz" else -1 :]).lower()


def _is_table_name(source: str | os.PathLike[str]) -> bool:
    """Return whether it can be a table of a catalog, and is of no file that is read here."""
    text = os.fspath(source)
    return (
        bool(re.fullmatch(r"\w+(\.\w+){0,2}", text)) and _get_file_ending(Path(text)) not in _KNOWN
    )


def _open_path(
    path: Path, empty: bool, delimiter: str | None, sheet: str | None, header: int | None
) -> LocalTable:
    if path.is_dir():
        raise TableError(
            f"'{path}' is a folder. Name a file, or read a folder of Parquet files with --engine "
            "spark."
        )
    try:
        with path.open("rb") as file:
            is_empty = not file.read(1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        display_name = hide_secrets(str(path))  # it may be no path at all
        hides = None if display_name != str(path) else error
        raise TableError(f"Cannot read '{display_name}': {reason}.") from hides
    if is_empty:
        raise TableError(f"File '{path.name}': it is empty. Name a file with a table.")
    ending, origin = _get_file_ending(path), TableOrigin()
    _refuse_sheet_or_header(f"'{path.name}'", ending, sheet, header)
    try:
        if ending in _TEXT:
            frame, origin = open_text(path, delimiter, header)
        elif ending in _COMPRESSED:
            frame, origin = open_compressed(path, delimiter, header)
        elif ending == ".parquet":
            frame = pl.scan_parquet(path, glob=False)
        elif ending in _ARROW:
            frame = pl.scan_ipc(path, glob=False)
        elif ending in _EXCEL:
            frame, origin = open_excel(path, sheet, header)
        elif ending in STATISTICS:
            frame, origin = open_statistics(path)
        else:
            endings = ", ".join(sorted(_KNOWN))
            raise TableError(f"File '{path.name}': unknown format. Its name must end in {endings}.")
        if ending == ".parquet" or ending in _ARROW:
            origin = TableOrigin(orders={**read_frame_orders(frame), **read_file_orders(path)})
        table = LocalTable(frame, path, origin)
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise TableError(f"Cannot read '{path.name}' as {ending[1:]}: {reason}") from error
    if not empty and not table.head(1).rows():
        raise TableError(f"File '{path.name}': it has a header but no rows. Name a file with rows.")
    return table
