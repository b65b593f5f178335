"""By what a table on Spark is recognized: sums over all rows of their hashes, in any order.

They cost a pass over all columns, unless they are asked for before the table is counted: then each
group of rows carries its part of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql import types as T  # noqa: N812

from incrowd.engine.spark.column_type import is_hashable
from incrowd.engine.spark.session import explain_failures
from incrowd.engine.table import RowsPerId


def count_rows_per_id(frame: DataFrame, identity: Column) -> RowsPerId:
    """Count the ids of a frame, and the rows of each; rows without an id do not count."""
    ids = frame.select(identity.alias("id")).where("id IS NOT NULL")
    rows = ids.groupBy("id").agg(F.count(F.lit(1)).alias("rows"))
    row = rows.agg(F.count(F.lit(1)), F.median("rows"), F.max("rows")).first()
    assert row is not None
    return RowsPerId(int(row[0]), float(row[1] or 0), int(row[2] or 0))


_BITS = 24  # of a hash in each part: no sum over less than 2**39 rows can overflow
_PARTS = {f"s{start}": start for start in range(0, 64, _BITS)}
_HASH = "h"


class RowSums:
    """The sums of a data frame as it was read; found once, in a pass of their own or on the way."""

    def __init__(self, raw: DataFrame, kinds: Mapping[str, T.DataType]) -> None:
        self._raw, self._kinds = raw, dict(kinds)
        self._lock, self._found, self._asked = Lock(), "", False

    def request_sums(self) -> None:
        """Let whoever groups the rows next carry the sums with them."""
        self._asked = True

    def list_carried_columns(self) -> tuple[list[Column], list[Column]]:
        """Return what each row brings to a grouping, of columns as they were read; and aggregates.

        Nothing where nobody asked, or where the sums are known.
        """
        if not self._asked or self._found or not self._list_hashable_columns():
            return [], []
        return [self._hash_rows().alias(_HASH)], _sum_hash_parts(F.col(_HASH))

    def take_sums(self, groups: Any, count: str) -> Any:
        """Return all groups, as an Arrow table, without the sums that they brought; keep these.

        ``count`` is the column that says how many rows each of them has.
        """
        if not set(_PARTS) <= set(groups.column_names):
            return groups
        rows = pc.sum(groups.column(count)).as_py() or 0
        sums = [pc.sum(groups.column(name)).as_py() for name in _PARTS]
        with self._lock:
            self._found = self._format_sums([rows, *sums])
        return groups.drop_columns(list(_PARTS))

    def describe_sums(self) -> str:
        """Return the sums, and names and kinds of the columns."""
        with self._lock:
            if not self._found:
                parts = _sum_hash_parts(self._hash_rows()) if self._list_hashable_columns() else []
                with explain_failures("take the fingerprint of the table"):
                    row = self._raw.select(F.count(F.lit(1)), *parts).first()
                self._found = self._format_sums(list(row or ()))
            return self._found

    def _format_sums(self, sums: list[int]) -> str:
        kinds = [(name, kind.simpleString()) for name, kind in self._kinds.items()]
        return repr((kinds, sums))

    def _list_hashable_columns(self) -> list[Column]:
        columns = zip(self._raw.columns, self._kinds.values(), strict=True)
        return [F.col(inner) for inner, kind in columns if is_hashable(kind)]

    def _hash_rows(self) -> Column:
        # A null leaves a hash as it is, so where nulls stand is hashed besides.
        columns = self._list_hashable_columns()
        return F.xxhash64(*[column.isNull() for column in columns], *columns)


def _sum_hash_parts(hash_column: Column) -> list[Column]:
    """Return the sums over all rows of 64-bit hashes, in parts."""
    part = F.lit((1 << _BITS) - 1)
    return [
        F.sum(F.shiftrightunsigned(hash_column, start).bitwiseAND(part)).alias(name)
        for name, start in _PARTS.items()
    ]
