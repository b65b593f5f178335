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
from incrowd.codes.frequency import Frequencies, merged
from incrowd.engine.spark.cells import CHANGED
from incrowd.engine.spark.lookup import Bundle, Known, bundled, plain_values
from incrowd.engine.spark.session import told
from incrowd.engine.table import Coder, TableError, TooManyError

if TYPE_CHECKING:
    from incrowd.engine.spark.table import SparkTable

LOOKED_AT = 100_000  # rows


def count_coarsely(
    table: SparkTable, columns: Sequence[str], coders: Mapping[str, Coder], most: int
) -> Frequencies:
    """Distinct tuples of codes with counts; raises :class:`TooManyError` beyond ``most``."""
    inner = {table.inner(name): coders[name] for name in columns}
    bundles = bundled(_looked_at(table, inner))
    frame, summed = table.carrying(columns)
    keys = []
    for at, bundle in enumerate(bundles):
        frame = bundle.joined(frame, "left")
        values = F.struct(*[one.inner for one in bundle.columns])
        new = F.when(F.col(bundle.name).isNull(), values).alias(f"r{at}")
        keys += [F.col(bundle.name), new]
    grouped = frame.groupBy(*keys).agg(F.count(F.lit(1)).alias("n"), *summed)
    with told("count the table"):
        found = grouped.limit(most + 1).toArrow() if table.rows() > most else grouped.toArrow()
    if found.num_rows > most:
        raise TooManyError(f"The table has more than {most:,} distinct tuples.")
    found = table.take_sums(found, "n")
    counts = found.column("n").to_numpy().astype(np.int64)
    if counts.sum() != table.rows():
        raise TableError(CHANGED)
    coded: dict[str, Codes] = {}
    for at, bundle in enumerate(bundles):
        coded |= _codes(bundle, found.column(bundle.name), found.column(f"r{at}"), inner)
    return merged(np.column_stack([coded[one] for one in inner]), counts)


def _looked_at(table: SparkTable, coders: Mapping[str, Coder]) -> list[Known]:
    """The values of each column in some rows, and their codes; a null is one of them."""
    some = table.inside.select(*coders).limit(LOOKED_AT)
    with told("look at some rows of the table"):
        met = some.select([F.collect_set(F.struct(one)) for one in coders]).toArrow()
    found = []
    for at, (one, coder) in enumerate(coders.items()):
        values = met.column(at).combine_chunks().flatten().field(0)
        found.append(Known(one, values, np.asarray(coder(plain_values(values)), dtype=np.int32)))
    return found


def _codes(bundle: Bundle, numbers: Any, raw: Any, coders: Mapping[str, Coder]) -> dict[str, Codes]:
    """The codes of some columns: those that were joined, and those of tuples that were new."""
    joined = numbers.combine_chunks()
    codes = bundle.read(joined.fill_null(0).to_numpy())
    new = np.flatnonzero(joined.is_null().to_numpy(zero_copy_only=False))
    if len(new):
        rows = raw.combine_chunks().take(pa.array(new))
        for at, (one, found) in enumerate(codes.items()):
            values = rows.field(at).dictionary_encode(null_encoding="encode")
            found[new] = coders[one](plain_values(values.dictionary))[values.indices.to_numpy()]
    return codes
