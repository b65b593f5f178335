"""Distinct tuples with counts that are too many for one machine: they stay on the cluster.

What comes here is what fits: cells of coarser levels, cells of more than so many rows, and cells
that were drawn there. See :mod:`incrowd.engine.spark.tasks` for how tasks draw, and why once.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from incrowd.arrays import Codes
from incrowd.codes.counted_table import SuppressedCells
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.engine.spark.lookup import bundle_columns, code_values
from incrowd.engine.spark.session import explain_failures
from incrowd.engine.spark.tasks import SUMS, DrawTask, RollUpTask, make_task_bits
from incrowd.engine.table import Coder, DrawnCells, PicklableDraw, TableError, TooManyTuplesError
from incrowd.privacy.randomness import Randomness

if TYPE_CHECKING:
    from incrowd.engine.spark.table import SparkTable

CHANGED = (
    "The table changed while it was read: it has other rows than were counted. Publish a copy that "
    "stays as it is."
)
SURELY = 1.2  # an approximate count may be off by a tenth, and more once in many
_SOME = 200_000  # cells that stand for all where something is measured


def approximate_distinct(columns: Sequence[str]) -> Column:
    """Return about how many distinct tuples some columns have, within a twentieth mostly."""
    return F.approx_count_distinct(F.xxhash64(*columns))


def add_codes(table: SparkTable, columns: Sequence[str], coders: Mapping[str, Coder]) -> DataFrame:
    """Add to the rows of a table a code for each of some columns, called k0, k1 and so on.

    Each distinct value is coded once, here. Values and codes are sent as tables and joined.
    """
    coded_columns = [
        code_values(table.get_inner_name(name), table.list_raw_values(name), coders[name])
        for name in columns
    ]
    frame = table.inner_frame
    data_frame: dict[str, Column] = {}
    for bundle in bundle_columns(coded_columns):
        frame = bundle.join_rows(frame, "inner")
        data_frame |= bundle.make_code_columns()
    return frame.withColumns(
        {f"k{at}": data_frame[column.inner] for at, column in enumerate(coded_columns)}
    )


def group_by_codes(
    table: SparkTable, columns: Sequence[str], coders: Mapping[str, Coder], limit: int
) -> SparkCells:
    """Return the distinct tuples of codes of a table, on the cluster."""
    names = [f"k{at}" for at in range(len(columns))]
    frame = add_codes(table, columns, coders)
    grouped_frame = frame.groupBy(*names).agg(F.count(F.lit(1)).alias("n"))
    # These are counts: another attempt gives the same.
    cached_frame = grouped_frame.persist(StorageLevel.MEMORY_AND_DISK)
    cells = SparkCells(cached_frame, len(columns), limit)
    weakref.finalize(cells, _unpersist_frame, cached_frame).atexit = False
    if cells.total != table.rows():
        raise TableError(CHANGED)
    return cells


def _unpersist_frame(frame: DataFrame) -> None:
    with suppress(Exception):  # the session may have ended
        frame.unpersist()


class SparkCells:
    """Tuples of codes (k0, k1, ...) with counts (n), on the cluster."""

    def __init__(self, frame: DataFrame, width: int, limit: int) -> None:
        self._frame, self._width, self._most = frame, width, limit
        self._names = [f"k{at}" for at in range(width)]

    @cached_property
    def total(self) -> int:
        """The number of rows."""
        with explain_failures("count the table"):
            row = self._frame.select(F.sum("n")).first()
        return int((row or [0])[0] or 0)

    def _map_codes(self, maps: Sequence[Codes] | None) -> DataFrame:
        """Return codes at other levels; equal tuples are not joined yet."""
        if maps is None:
            return self._frame
        schema = ", ".join([*(f"{name} int" for name in self._names), "n bigint"])
        with explain_failures("roll counts up"):
            return self._frame.mapInArrow(RollUpTask(tuple(maps)), schema)

    def _group_cells(self, maps: Sequence[Codes] | None) -> DataFrame:
        if maps is None:
            return self._frame
        return self._map_codes(maps).groupBy(*self._names).agg(F.sum("n").alias("n"))

    def estimate_distinct(self, maps: Sequence[Codes] | None = None) -> int:
        """Return about how many distinct tuples there are at other levels."""
        frame = self._map_codes(maps)
        with explain_failures("count the distinct tuples of the table"):
            distinct = frame.select(approximate_distinct(self._names)).first()
        return int((distinct or [0])[0])

    def roll_up(self, maps: Sequence[Codes] | None = None) -> Frequencies:
        """Return all tuples at other levels, here; refuse too many."""
        if self.estimate_distinct(maps) > self._most * SURELY:
            raise TooManyTuplesError(
                f"Table: more than {self._most:,} distinct tuples, which exceeds one machine. "
                "Publish fewer or coarser columns.",
                self,
            )
        return self._collect_cells(self._group_cells(maps))

    def collect_above(self, maps: Sequence[Codes], threshold: int) -> Frequencies:
        """Return the cells at other levels that have more than so many rows, here."""
        return self._collect_cells(self._group_cells(maps).where(F.col("n") > threshold))

    def collect_sample(self, maps: Sequence[Codes]) -> Frequencies:
        """Return some cells at other levels, chosen by a hash of their codes, to stand for all."""
        share = min(1.0, _SOME / max(self.estimate_distinct(maps), 1))
        is_chosen = F.pmod(F.xxhash64(*self._names), F.lit(1_000_000)) < int(share * 1_000_000)
        return self._collect_cells(self._group_cells(maps).where(is_chosen))

    def _collect_cells(self, frame: DataFrame) -> Frequencies:
        with explain_failures("count the table"):
            table = frame.select(*self._names, "n").toArrow()
        codes = [table.column(name).to_numpy() for name in self._names]
        counts = table.column("n").to_numpy().astype(np.int64)
        return merge_tuples(np.column_stack(codes).astype(np.int32), counts)

    def select_columns(self, places: Sequence[int]) -> SparkCells:
        """Return the tuples of some of the columns."""
        columns = [F.col(f"k{place}").alias(f"k{at}") for at, place in enumerate(places)]
        names = [f"k{at}" for at in range(len(places))]
        grouped_frame = self._frame.select(*columns, "n").groupBy(*names).agg(F.sum("n").alias("n"))
        return SparkCells(grouped_frame, len(places), self._most)

    def draw_cells(
        self, maps: Sequence[Codes], draw: PicklableDraw, bits: Randomness
    ) -> DrawnCells:
        """Return the cells at other levels that a draw shows; it is made on the executors, once."""
        schema = [*(f"{name} int" for name in self._names), "shown bigint", "n bigint"]
        work = DrawTask(draw, make_task_bits(bits))
        # Nothing follows the draw but its way here: see incrowd.engine.spark.tasks.
        frame = self._group_cells(maps).mapInArrow(work, ", ".join([*schema, "sums array<bigint>"]))
        with explain_failures("draw on the executors"):
            table = pl.from_arrow(frame.toArrow())
        assert isinstance(table, pl.DataFrame)
        sums = np.array(table.get_column("sums").drop_nulls().to_list(), dtype=np.int64)
        published = table.filter(pl.col("sums").is_null()).sort(self._names)
        codes = published.select(self._names).to_numpy().astype(np.int32)
        total = sums.sum(axis=0) if len(sums) else np.zeros(SUMS, dtype=np.int64)
        return DrawnCells(
            Frequencies(codes, published.get_column("shown").to_numpy().astype(np.int64)),
            Frequencies(codes, published.get_column("n").to_numpy().astype(np.int64)),
            _make_rest(total.tolist()),
        )


def _make_rest(sums: list[int]) -> SuppressedCells:
    rows, cells, likely, *sizes = sums
    return SuppressedCells(rows, cells, likely, tuple(sizes))
