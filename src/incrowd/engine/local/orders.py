"""The order of categories, where a table declares one: Polars' enums, ordered ones of Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

Orders = Mapping[str, tuple[str, ...]]
_PARQUET = ".parquet"


def orders_of_frame(frame: pl.LazyFrame | pl.DataFrame) -> Orders:
    """Return the categories of each enum, in their order."""
    return {
        name: tuple(kind.categories)
        for name, kind in frame.collect_schema().items()
        if isinstance(kind, pl.Enum)
    }


def orders_of_pandas(frame: Any) -> Orders:
    """Return the categories of each ordered column of a pandas frame."""
    return {
        str(name): tuple(map(str, kind.categories))
        for name, kind in frame.dtypes.items()
        if getattr(kind, "ordered", False)
    }


def orders_of_arrow(table: Any) -> Orders:
    """Return the categories of each ordered dictionary of an Arrow table that has rows."""
    found = {}
    for at, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) and field.type.ordered and table.num_rows:
            column = table.column(at)
            part = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
            found[field.name] = tuple(map(str, part.dictionary.to_pylist()))
    return found


def orders_of_file(path: Path) -> Orders:
    """Return the same of a Parquet or an Arrow file, from its first rows."""
    try:
        if path.suffix.lower() == _PARQUET:
            file = pa.parquet.ParquetFile(path)
            kinds = {field.name: field.type for field in file.schema_arrow}
            names = [name for name, kind in kinds.items() if getattr(kind, "ordered", False)]
            if not names:
                return {}
            return orders_of_arrow(next(file.iter_batches(batch_size=1, columns=names)))
        with pa.ipc.open_file(path) as batches:
            return orders_of_arrow(batches.get_batch(0)) if batches.num_record_batches else {}
    except (pa.ArrowException, OSError, StopIteration):  # what cannot be read is refused elsewhere
        return {}
