"""Counting at coarse levels: values become codes before they are grouped, in one pass.

Grouped by their values, most rows of a large table are tuples of their own, and are shuffled;
grouped by coarse codes, few are. A look at some rows finds most values of each column, which are
coded here and joined there; a value that was not met stands for itself, and is coded when it comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from incrowd.arrays import Codes
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.engine.spark.cells import CHANGED
from incrowd.engine.spark.lookup import LookupBundle, bundle_columns, code_values, to_plain_values
from incrowd.engine.spark.session import explain_failures
from incrowd.engine.table import Coder, TableError, TooManyTuplesError

if TYPE_CHECKING:
    from incrowd.engine.spark.table import SparkTable

LOOKED_AT = 100_000  # rows, about


def count_coarse_codes(
    table: SparkTable, columns: Sequence[str], coders: Mapping[str, Coder], limit: int
) -> Frequencies:
    """Count distinct tuples of codes; raise :class:`TooManyTuplesError` beyond ``limit``."""
    sample_values(table, columns)
    inner = {table.get_inner_name(name): coders[name] for name in columns}
    bundles = bundle_columns(
        [
            code_values(table.get_inner_name(column), table.known_values[column], coders[column])
            for column in columns
        ]
    )
    frame, sum_columns = table.select_with_sums(columns)
    keys = []
    for at, bundle in enumerate(bundles):
        frame = bundle.join_rows(frame, "left")
        values = F.struct(*[column.inner for column in bundle.columns])
        new = F.when(F.col(bundle.name).isNull(), values).alias(f"r{at}")
        keys += [F.col(bundle.name), new]
    grouped_frame = frame.groupBy(*keys).agg(F.count(F.lit(1)).alias("n"), *sum_columns)
    with explain_failures("count the table"):
        sums = (
            grouped_frame.limit(limit + 1).toArrow()
            if table.rows() > limit
            else grouped_frame.toArrow()
        )
    if sums.num_rows > limit:
        raise TooManyTuplesError(
            f"Table: more than {limit:,} distinct tuples. Publish fewer or coarser columns."
        )
    sums = table.take_sums(sums, "n")
    counts = sums.column("n").to_numpy().astype(np.int64)
    if counts.sum() != table.rows():
        raise TableError(CHANGED)
    codes: dict[str, Codes] = {}
    for at, bundle in enumerate(bundles):
        codes |= _read_codes(bundle, sums.column(bundle.name), sums.column(f"r{at}"), inner)
    return merge_tuples(np.column_stack([codes[inner_name] for inner_name in inner]), counts)


def sample_values(table: SparkTable, columns: Sequence[str]) -> None:
    """Have a table meet most values of some columns.

    Rows are chosen by their places, evenly, as a table may be in the order of its values.
    """
    new_columns = [name for name in columns if name not in table.known_values]
    if not new_columns:
        return
    step = max(table.rows() // LOOKED_AT, 1)
    rows = table.inner_frame.select(*[table.get_inner_name(name) for name in new_columns])
    sample = rows.where(F.monotonically_increasing_id() % step == 0)
    with explain_failures("look at the values of the table"):
        sets = sample.select(
            [F.collect_set(F.struct(column)) for column in sample.columns]
        ).toArrow()
    for at, name in enumerate(new_columns):
        values = sets.column(at).combine_chunks().flatten().field(0)
        table.remember_values(name, pa.table({"x": values}), is_complete=False)


def _read_codes(
    bundle: LookupBundle, numbers: Any, raw: Any, coders: Mapping[str, Coder]
) -> dict[str, Codes]:
    """Return the codes of some columns: those that were joined, and those of new tuples."""
    joined_numbers = numbers.combine_chunks()
    codes = bundle.decode_numbers(joined_numbers.fill_null(0).to_numpy())
    new = np.flatnonzero(joined_numbers.is_null().to_numpy(zero_copy_only=False))
    if len(new):
        rows = raw.combine_chunks().take(pa.array(new))
        for at, (column, column_codes) in enumerate(codes.items()):
            values = rows.field(at).dictionary_encode(null_encoding="encode")
            column_codes[new] = coders[column](to_plain_values(values.dictionary))[
                values.indices.to_numpy()
            ]
    return codes
