"""What columns of Spark hold: which kinds can be asked about, and values as plain ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_type

from incrowd.codes.values import BLANKS, BOOLEANS, NUMERAL
from incrowd.engine.local.table import LocalTable
from incrowd.engine.spark.session import explain_failures
from incrowd.engine.table import TableError

_SINGLE = (
    T.StringType, T.BooleanType, T.NumericType, T.DateType, T.TimestampType, T.TimestampNTZType,
    T.DayTimeIntervalType, T.NullType, *([T.TimeType] if hasattr(T, "TimeType") else []),
)  # fmt: skip
_NTZ = T.TimestampNTZType()
_SIGNED: dict[Any, Any] = {
    pl.UInt8: pl.Int16, pl.UInt16: pl.Int32, pl.UInt32: pl.Int64, pl.UInt64: pl.Decimal(20, 0),
}  # fmt: skip
_UNORDERED = re.compile(r"\binterval\b(?! (day|hour|minute|second|year|month))")
_UNHASHABLE = ("map", "variant", "geometry", "geography")


def refuse_nested_type(name: str, kind: T.DataType) -> None:
    """Refuse a column whose values are no single ones, or of a type that only Spark has."""
    if not isinstance(kind, _SINGLE):
        raise TableError(
            f"Column '{name}': it holds {kind.simpleString()}, not single values. Drop it, or "
            "split it into columns with select."
        )


def is_hashable(kind: T.DataType) -> bool:
    """Return whether Spark has hashes of such values."""
    return not any(word in kind.simpleString() for word in _UNHASHABLE)


def to_plain_frame(frame: Any) -> pl.DataFrame:
    """Convert an Arrow table that Spark gave to values as the local engine has them."""
    local_frame = pl.from_arrow(frame)
    assert isinstance(local_frame, pl.DataFrame)
    zoned_columns = [
        name
        for name, kind in local_frame.schema.items()
        if isinstance(kind, pl.Datetime) and kind.time_zone not in (None, "UTC")
    ]
    local_frame = local_frame.with_columns(
        pl.col(name).dt.convert_time_zone("UTC") for name in zoned_columns
    )
    return LocalTable(local_frame.lazy()).to_frame()


def canonicalize_text(column: Column) -> Column:
    """Write the texts of a column in canonical form; text without characters is null."""
    blank = "[" + "".join(f"\\x{{{ord(mark):x}}}" for mark in BLANKS) + "]"
    text = F.regexp_replace(column, f"^{blank}+|{blank}+$", "")
    for word, plainer in BOOLEANS.items():
        text = F.when(text == word, F.lit(plainer)).otherwise(text)
    bare = F.regexp_replace(text, r"^\+", "")
    short = F.regexp_replace(bare, r"0+$", "")
    short = F.regexp_replace(F.regexp_replace(short, r"\.$", ""), r"^(-?)\.", "$10.")
    short = F.when(F.contains(bare, F.lit(".")), short).otherwise(bare)
    short = F.when(short.isin("-0", "-", ""), F.lit("0")).otherwise(short)
    canonical = F.when(F.regexp_like(text, F.lit(f"^({NUMERAL})$")), short).otherwise(text)
    return F.when(text != "", canonical)


def send_polars_frame(session: Any, frame: pl.DataFrame) -> Any:
    """Send a frame of this machine to Spark, kind by kind."""
    plainer = []
    for name, kind in frame.schema.items():
        column = frame.get_column(name).alias("x")
        if isinstance(kind, pl.Categorical | pl.Enum):
            column = column.cast(pl.String)
        elif kind in _SIGNED:
            column = column.cast(_SIGNED[kind], strict=True)
        plainer.append(column.to_arrow())
    inner = [f"c{at}" for at in range(frame.width)]
    return send_arrow_columns(session, dict(zip(inner, plainer, strict=True))).toDF(*frame.columns)


def send_arrow_columns(session: Any, columns: Mapping[str, Any]) -> Any:
    """Send columns of Arrow to Spark; times without a zone stay so, in any session."""
    arrow = pa.table({name: _shorten_offsets(column) for name, column in columns.items()})
    fields = [
        T.StructField(field.name, _NTZ if _is_naive(field.type) else from_arrow_type(field.type))
        for field in arrow.schema
    ]
    with explain_failures("take a table of this machine"):
        return session.createDataFrame(arrow, T.StructType(fields))


def _shorten_offsets(column: Any) -> Any:
    """Return text with short offsets, as Spark takes it."""
    return column.cast(pa.string()) if pa.types.is_large_string(column.type) else column


def _is_naive(kind: Any) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is None


def normalize_column(inner: str, kind: T.DataType) -> Column:
    """Return a column in which values that Spark takes for the same are the same.

    NaN is null, there is one zero, text is what its characters are whatever its collation, and
    nulls of no kind are nulls of text: they could not be joined.
    """
    column = F.col(inner)
    if isinstance(kind, T.FloatType | T.DoubleType):
        zero = F.lit(0.0).cast(kind)
        return F.when(column == zero, zero).when(~F.isnan(inner), column).alias(inner)
    if isinstance(kind, T.StringType) and kind != T.StringType():
        return F.collate(column, "UTF8_BINARY").alias(inner)
    return column.cast("string").alias(inner) if isinstance(kind, T.NullType) else column


def is_orderable(kind: T.DataType) -> bool:
    """Return whether Spark can order such values; of intervals, those of days and of months."""
    return is_hashable(kind) and not _UNORDERED.search(kind.simpleString())
