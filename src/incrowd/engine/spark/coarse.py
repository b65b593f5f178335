"""Counting at coarse levels: values become codes before they are grouped, in one pass.

Grouped by their values, most rows of a large table are tuples of their own, and are shuffled;
grouped by coarse codes, few are. A look at some rows finds most values of each column, which are
coded here and joined there; a value that was not met stands for itself, and is coded when it comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from incrowd.arrays import Codes
from incrowd.codes.frequency import Frequencies, merged
from incrowd.engine.spark.kinds import plain, sent_arrow
from incrowd.engine.spark.session import told
from incrowd.engine.table import Coder, TooManyError

if TYPE_CHECKING:
    from incrowd.engine.spark.table import SparkTable

LOOKED_AT = 100_000  # rows


def count_coarsely(
    table: SparkTable, columns: Sequence[str], coders: Mapping[str, Coder], most: int
) -> Frequencies:
    """Distinct tuples of codes with counts; raises :class:`TooManyError` beyond ``most``."""
    inner = [table.inner(name) for name in columns]
    frame, session = table.inside.select(*inner), table.inside.sparkSession
    with told("look at some rows of the table"):
        met = frame.limit(LOOKED_AT).select([F.collect_set(one) for one in inner]).toArrow()
    keys = []
    for at, (name, column) in enumerate(zip(columns, inner, strict=True)):
        known = met.column(at).combine_chunks().flatten()
        codes = pa.array(coders[name](_plain(known)), type=pa.int32())
        sent = F.broadcast(sent_arrow(session, {f"v{at}": known, f"k{at}": codes}))
        frame = frame.join(sent, F.col(column).eqNullSafe(F.col(f"v{at}")), "left")
        new = F.when(F.col(f"k{at}").isNull(), F.col(column)).alias(f"r{at}")
        keys += [F.col(f"k{at}"), new]
    grouped = frame.groupBy(*keys).agg(F.count(F.lit(1)).alias("n"))
    with told("count the table"):
        found = grouped.limit(most + 1).toArrow() if table.rows() > most else grouped.toArrow()
    if found.num_rows > most:
        raise TooManyError(f"The table has more than {most:,} distinct tuples.")
    coded = [_codes(found, at, coders[name]) for at, name in enumerate(columns)]
    counts = found.column("n").to_numpy().astype(np.int64)
    return merged(np.column_stack(coded).astype(np.int32), counts)


def _codes(found: Any, at: int, coder: Coder) -> Codes:
    """The codes of a column: those that were joined, and those of values that were not met."""
    joined = found.column(f"k{at}").combine_chunks()
    codes: Codes = joined.fill_null(0).to_numpy().copy()
    new = np.flatnonzero(joined.is_null().to_numpy(zero_copy_only=False))
    if len(new):
        values = found.column(f"r{at}").combine_chunks().take(pa.array(new)).dictionary_encode(
            null_encoding="encode"
        )  # fmt: skip
        codes[new] = coder(_plain(values.dictionary))[values.indices.to_numpy()]
    return codes


def _plain(values: Any) -> list[object]:
    held: pl.Series = plain(pa.table({"x": values})).to_series()
    return held.to_list()
