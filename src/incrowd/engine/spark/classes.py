"""Rows worked on class by class, on the executors: recoded by a join, with noise if any."""

from __future__ import annotations

import math
import pickle
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from incrowd.arrays import Codes, Counts, Members
from incrowd.codes.frequency import Frequencies
from incrowd.engine.count import normalize_kept_value
from incrowd.engine.spark.cells import CHANGED, add_codes
from incrowd.engine.spark.column_type import to_plain_frame
from incrowd.engine.spark.session import explain_failures
from incrowd.engine.spark.tasks import ClassTask, make_task_bits
from incrowd.engine.table import Coder, ProcessedRows, TableError, Work
from incrowd.privacy.randomness import Randomness

if TYPE_CHECKING:
    from incrowd.engine.spark.table import SparkTable

_BROADCAST = 2_000_000  # tuples that are sent to every executor


def process_classes(
    table: SparkTable,
    coders: Mapping[str, Coder],
    tuples: Frequencies,
    members: Members,
    *,
    through: Sequence[str],
    read: Sequence[str],
    work: Work,
    bits: Randomness,
) -> ProcessedRows:
    """Return what a work makes of the rows of each class; rows without a class are left out.

    ``coders`` code the columns that decide the class: those of ``tuples``, whose class is in
    ``members``, or is none where that is negative. All rows of a class come to one task, which
    has to hold the largest class in memory. They are then drawn for in the last stage of the
    job, so once (:mod:`incrowd.engine.spark.tasks`). In which order rows come here is no order of
    the table's; whoever publishes them puts them in one that they show themselves. Raises
    :class:`TableError` if a class has other rows than ``tuples`` counts.
    """
    names = list(coders)
    keys = [f"k{at}" for at in range(len(names))]
    shown = np.flatnonzero(members >= 0)
    frame = add_codes(table, names, coders)
    known = {f"t{at}": pa.array(tuples.codes[shown, at]) for at in range(len(names))}
    widths = [
        _bound_codes(table, name, coders[name], tuples.codes[:, at])
        for at, name in enumerate(names)
    ]
    if math.prod(widths) < 2**62:  # then one number stands for a tuple, which is found quicker
        number = tuples.codes[shown, 0].astype(np.int64)
        whole = F.col(keys[0]).cast("bigint")
        for at, width in enumerate(widths[1:], 1):
            number = number * width + tuples.codes[shown, at]
            whole = whole * F.lit(width) + F.col(keys[at])
        frame, keys, known = frame.withColumn("k", whole), ["k"], {"t0": pa.array(number)}
    with explain_failures("send classes"):
        sent = frame.sparkSession.createDataFrame(
            pa.table({**known, "m": pa.array(members[shown], type=pa.int64())})
        )
    sent = F.broadcast(sent) if len(shown) <= _BROADCAST else sent
    alike = reduce(and_, [F.col(key) == F.col(f"t{at}") for at, key in enumerate(keys)])
    passing = [table.get_inner_name(name) for name in through]
    reading = [table.get_inner_name(name) for name in read]
    rows = frame.join(sent, alike, "inner").select(
        "m",
        *[F.col(item).alias(f"p{at}") for at, item in enumerate(passing)],
        *[F.col(item).alias(f"r{at}") for at, item in enumerate(reading)],
    )
    kinds = [field.dataType.simpleString() for field in rows.schema.fields][: 1 + len(through)]
    names_out = [f"p{at}" for at in range(len(through))]
    schema = ", ".join([
        "m bigint",
        *(f"{name} {kind}" for name, kind in zip(names_out, kinds[1:], strict=True)),
        *(f"r{at} bigint" for at in range(len(read))),
        "told binary",
    ])  # fmt: skip
    task = ClassTask(work, tuple(read), len(through), make_task_bits(bits))
    ordered = rows.repartition("m").sortWithinPartitions("m")
    with explain_failures("work on the rows"):
        processed_rows = ordered.mapInArrow(task, schema).toArrow()
    counted = np.bincount(members[shown], weights=tuples.counts[shown])
    return _collect_rows(processed_rows, through, read, counted.astype(np.int64))


def _bound_codes(table: SparkTable, name: str, coder: Coder, codes: Codes) -> int:
    """Return more than any code of a column, so that no two tuples have one number."""
    met = coder(table.list_raw_values(name).get_column("value").to_list())
    return max(int(codes.max(initial=0)), int(np.asarray(met).max(initial=0))) + 1


def _collect_rows(
    found: Any, through: Sequence[str], read: Sequence[str], counted: Counts
) -> ProcessedRows:
    text = [pickle.loads(item) for item in found.column("told").drop_null().to_pylist()]  # noqa: S301 - our own
    faults = [item for item in text if isinstance(item, Exception)]
    if faults:
        raise min(faults, key=str)
    met = np.zeros_like(counted)
    for classes, sizes, _ in text:
        # Noise is as wide as the whole class: a class that two tasks had parts of would get too
        # little. Rows are partitioned by class, so none has; were one split, nothing is released.
        assert not met[classes].any(), "a class was split among tasks"
        met[classes] += sizes
    if (met != counted).any():  # else a class could show fewer rows than it was formed of
        raise TableError(CHANGED)
    rows = found.filter(pa.compute.is_null(found.column("told")))
    kept = (
        to_plain_frame(rows.select([f"p{at}" for at in range(len(through))])) if through else None
    )
    noisy = {}
    for at, name in enumerate(read):
        column = pl.from_arrow(rows.column(f"r{at}"))
        assert isinstance(column, pl.Series)
        noisy[name] = (column.fill_null(0).to_numpy(), column.is_null().to_numpy())
    passed = {}
    for at, name in enumerate(through):
        assert kept is not None
        column = kept.get_column(f"p{at}")
        raw = column.unique(maintain_order=True)
        labels: dict[object, int] = {}
        at_label = [
            labels.setdefault(normalize_kept_value(item), len(labels)) for item in raw.to_list()
        ]
        places = pl.DataFrame({"x": raw, "at": pl.Series(at_label, dtype=pl.Int32)})
        codes = column.alias("x").to_frame().join(
            places, on="x", how="left", nulls_equal=True, maintain_order="left"
        )  # fmt: skip
        passed[name] = (list(labels), codes.get_column("at").to_numpy())
    parts = [part for _, _, part in text]
    return ProcessedRows(rows.column("m").to_numpy(), passed, noisy, parts)
