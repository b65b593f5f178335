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
    work_columns: Sequence[str],
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
    places = np.flatnonzero(members >= 0)
    frame = add_codes(table, names, coders)
    class_columns = {f"t{at}": pa.array(tuples.codes[places, at]) for at in range(len(names))}
    widths = [
        _bound_codes(table, name, coders[name], tuples.codes[:, at])
        for at, name in enumerate(names)
    ]
    if math.prod(widths) < 2**62:  # then one number stands for a tuple, which is found quicker
        number = tuples.codes[places, 0].astype(np.int64)
        number_column = F.col(keys[0]).cast("bigint")
        for at, width in enumerate(widths[1:], 1):
            number = number * width + tuples.codes[places, at]
            number_column = number_column * F.lit(width) + F.col(keys[at])
        frame, keys, class_columns = (
            frame.withColumn("k", number_column),
            ["k"],
            {"t0": pa.array(number)},
        )
    with explain_failures("send classes"):
        class_frame = frame.sparkSession.createDataFrame(
            pa.table({**class_columns, "m": pa.array(members[places], type=pa.int64())})
        )
    class_frame = F.broadcast(class_frame) if len(places) <= _BROADCAST else class_frame
    condition = reduce(and_, [F.col(key) == F.col(f"t{at}") for at, key in enumerate(keys)])
    passing = [table.get_inner_name(name) for name in through]
    reading = [table.get_inner_name(name) for name in work_columns]
    rows = frame.join(class_frame, condition, "inner").select(
        "m",
        *[F.col(column).alias(f"p{at}") for at, column in enumerate(passing)],
        *[F.col(column).alias(f"r{at}") for at, column in enumerate(reading)],
    )
    kinds = [field.dataType.simpleString() for field in rows.schema.fields][: 1 + len(through)]
    names_out = [f"p{at}" for at in range(len(through))]
    schema = ", ".join([
        "m bigint",
        *(f"{name} {kind}" for name, kind in zip(names_out, kinds[1:], strict=True)),
        *(f"r{at} bigint" for at in range(len(work_columns))),
        "told binary",
    ])  # fmt: skip
    task = ClassTask(work, tuple(work_columns), len(through), make_task_bits(bits))
    sorted_rows = rows.repartition("m").sortWithinPartitions("m")
    with explain_failures("work on the rows"):
        processed_rows = sorted_rows.mapInArrow(task, schema).toArrow()
    sizes = np.bincount(members[places], weights=tuples.counts[places])
    return _collect_rows(processed_rows, through, work_columns, sizes.astype(np.int64))


def _bound_codes(table: SparkTable, name: str, coder: Coder, codes: Codes) -> int:
    """Return more than any code of a column, so that no two tuples have one number."""
    met = coder(table.list_raw_values(name).get_column("value").to_list())
    return max(int(codes.max(initial=0)), int(np.asarray(met).max(initial=0))) + 1


def _collect_rows(
    output: Any, through: Sequence[str], work_columns: Sequence[str], class_sizes: Counts
) -> ProcessedRows:
    messages = [pickle.loads(value) for value in output.column("told").drop_null().to_pylist()]  # noqa: S301 - our own
    faults = [value for value in messages if isinstance(value, Exception)]
    if faults:
        raise min(faults, key=str)
    met = np.zeros_like(class_sizes)
    for classes, sizes, _ in messages:
        # Noise is as wide as the whole class: a class that two tasks had parts of would get too
        # little. Rows are partitioned by class, so none has; were one split, nothing is released.
        assert not met[classes].any(), "a class was split among tasks"
        met[classes] += sizes
    if (met != class_sizes).any():  # else a class could show fewer rows than it was formed of
        raise TableError(CHANGED)
    rows = output.filter(pa.compute.is_null(output.column("told")))
    through_frame = (
        to_plain_frame(rows.select([f"p{at}" for at in range(len(through))])) if through else None
    )
    noisy = {}
    for at, name in enumerate(work_columns):
        column = pl.from_arrow(rows.column(f"r{at}"))
        assert isinstance(column, pl.Series)
        noisy[name] = (column.fill_null(0).to_numpy(), column.is_null().to_numpy())
    through_columns = {}
    for at, name in enumerate(through):
        assert through_frame is not None
        column = through_frame.get_column(f"p{at}")
        raw = column.unique(maintain_order=True)
        labels: dict[object, int] = {}
        at_label = [
            labels.setdefault(normalize_kept_value(value), len(labels)) for value in raw.to_list()
        ]
        places = pl.DataFrame({"x": raw, "at": pl.Series(at_label, dtype=pl.Int32)})
        codes = column.alias("x").to_frame().join(
            places, on="x", how="left", nulls_equal=True, maintain_order="left"
        )  # fmt: skip
        through_columns[name] = (list(labels), codes.get_column("at").to_numpy())
    parts = [part for _, _, part in messages]
    return ProcessedRows(rows.column("m").to_numpy(), through_columns, noisy, parts)
