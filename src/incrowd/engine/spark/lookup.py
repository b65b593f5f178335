"""Values become codes on Spark: known values are sent with their codes, as tables, and joined.

Columns of few values are looked up together, as a join for each costs more than what follows. No
value stands in a plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from incrowd.arrays import Codes
from incrowd.engine.spark.column_type import send_arrow_columns, to_plain_frame
from incrowd.engine.table import Coder

_TOGETHER = 4096  # tuples of values that are looked up at once
_BROADCAST = 2_000_000  # of them, that are sent to every executor


@dataclass(frozen=True)
class CodedValues:
    """Values of a column, as they are on Spark, with their codes."""

    inner: str
    values: Any  # of Arrow
    codes: Codes

    @property
    def width(self) -> int:
        """More than any of the codes."""
        return int(self.codes.max(initial=0)) + 1


def code_values(inner: str, met: pl.DataFrame, coder: Coder) -> CodedValues:
    """Return values that were met, ``raw`` as on Spark and plain as ``value``, with codes."""
    codes = np.asarray(coder(met.get_column("value").to_list()), dtype=np.int32)
    return CodedValues(inner, met.get_column("raw").to_arrow(), codes)


@dataclass(frozen=True)
class LookupBundle:
    """Columns that are looked up together. Their codes are one number, in the column ``name``."""

    columns: tuple[CodedValues, ...]
    name: str

    @property
    def _widths(self) -> tuple[int, ...]:
        return tuple(column.width for column in self.columns)

    def join_rows(self, frame: DataFrame, how: str) -> DataFrame:
        """Join rows with the number of their codes: all, ``left``, or those ``inner`` with one."""
        places = np.indices([len(column.values) for column in self.columns])
        places = places.reshape(len(self.columns), -1)
        codes = [coded.codes[at] for coded, at in zip(self.columns, places, strict=True)]
        sending = {self.name: pa.array(np.ravel_multi_index(codes, self._widths))}
        conditions = []
        for coded, at in zip(self.columns, places, strict=True):
            sending[f"v{coded.inner}"] = coded.values.take(pa.array(at))
            conditions.append(
                _match_columns(coded.inner, f"v{coded.inner}", nulls=coded.values.null_count > 0)
            )
        lookup_frame = send_arrow_columns(frame.sparkSession, sending)
        lookup_frame = F.broadcast(lookup_frame) if places.shape[1] <= _BROADCAST else lookup_frame
        return frame.join(lookup_frame, reduce(and_, conditions), how)

    def make_code_columns(self) -> dict[str, Column]:
        """Return the code of each column, on Spark, from the number."""
        code_columns, below = {}, 1
        for column in reversed(self.columns):
            code_columns[column.inner] = F.expr(
                f"cast({self.name} div {below} % {column.width} as int)"
            )
            below *= column.width
        return code_columns

    def decode_numbers(self, numbers: Any) -> dict[str, Codes]:
        """Return the code of each column, here, from an array of numbers."""
        codes = np.unravel_index(numbers, self._widths)
        pairs = zip(self.columns, codes, strict=True)
        return {column.inner: entry.astype(np.int32) for column, entry in pairs}


def bundle_columns(columns: Sequence[CodedValues]) -> list[LookupBundle]:
    """Bundle columns of few values, as long as their tuples are few."""
    bundles: list[list[CodedValues]] = []
    size = _TOGETHER + 1
    for column in sorted(columns, key=lambda column: len(column.values)):
        size *= max(len(column.values), 1)
        if size > _TOGETHER:
            bundles.append([])
            size = max(len(column.values), 1)
        bundles[-1].append(column)
    return [LookupBundle(tuple(bundle), f"b{number}") for number, bundle in enumerate(bundles)]


def to_plain_values(values: Any) -> list[object]:
    """Return values of Arrow as the local engine has them."""
    series: pl.Series = to_plain_frame(pa.table({"x": values})).to_series()
    return series.to_list()


def _match_columns(column: str, other_column: str, *, nulls: bool) -> Column:
    """Return the condition that two columns are equal; ``nulls`` only where they can be met.

    Spark looks up what is equal faster than what is equal or null on both sides.
    """
    left, right = F.col(column), F.col(other_column)
    return left.eqNullSafe(right) if nulls else left == right
