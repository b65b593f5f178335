"""What runs on executors: whole batches in and out, by numpy, with random bits of their own.

**Randomness.** A task that draws makes its own key from the operating system it runs on
(:class:`~incrowd.privacy.randomness.SystemRandomness`) when it begins. No bits, no key and no seed
are sent, so none can be read in a plan, a log or on the wire, and no two tasks share any.

**Drawn once.** Spark runs a task again where its executor is lost, and twice at once where it is
slow (speculation); each attempt draws afresh. Claim: what is released holds, for each partition,
the draws of exactly one attempt, and of every other attempt nothing is seen by anyone. Proof:
whatever draws here is the last stage of its job, a stage whose results go straight to the driver
(``toArrow``), and is asked for once. The driver takes, for each partition of that stage, the result
of the attempt that finishes first and drops any other; it never asks again for a partition whose
result it has. Results are not kept on executors for others to read, so no attempt's draws can meet
those of another: the case where that happens, a shuffle after the draw, of whose outputs some
readers saw a lost attempt and others its successor, cannot arise, as no shuffle follows the draw.
What is drawn from, cells with their counts or rows with their classes, is a function of the table
alone, and so is which of them a partition holds (they are partitioned by hash): each partition has
the same input in every attempt. So each cell, or row, is drawn for once. What comes here is held in
memory and written once; it is never computed again.

**Faults.** Nothing about the data may stand in the message of a failed task, which Spark writes
into logs: what is wrong with values is sent to the driver as a result, and raised there.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from incrowd.arrays import Codes
from incrowd.codes.frequency import Frequencies
from incrowd.engine.spark.column_type import to_plain_frame
from incrowd.engine.table import ClassChunk, PicklableDraw, Work
from incrowd.errors import IncrowdError
from incrowd.privacy.randomness import Randomness, SeededRandomness, SystemRandomness

SUMS = 3 + 64  # rows, cells, rows in likely cells, and a histogram of sizes
_CHUNK_ROWS = 1_000_000
Batches = Iterator[Any]


@dataclass(frozen=True)
class TaskRandomness:
    """How a task gets its random bits: from its system; or, in tests, from a seed."""

    seed: int | None

    def open_bits(self) -> Randomness:
        """Return bits of the task that runs here."""
        if self.seed is None:
            return SystemRandomness()
        from pyspark import TaskContext

        context = TaskContext.get()
        return SeededRandomness((self.seed << 32) + (context.partitionId() if context else 0))


def make_task_bits(bits: Randomness) -> TaskRandomness:
    """Return the bits of each system for bits that nobody can know; else a seed made of them."""
    return TaskRandomness(None if bits.private else int(bits.draw_words(1)[0]))


@dataclass(frozen=True)
class RollUpTask:
    """Codes of columns mapped to those of coarser levels."""

    maps: tuple[Codes, ...]

    def __call__(self, batches: Batches) -> Batches:
        """Map batches of codes and counts."""
        for batch in batches:
            *codes, counts = batch.columns
            columns = [
                pa.array(lookup[column.to_numpy()], type=pa.int32())
                for lookup, column in zip(self.maps, codes, strict=True)
            ]
            yield pa.RecordBatch.from_arrays([*columns, counts], names=batch.schema.names)


@dataclass(frozen=True)
class DrawTask:
    """Cells drawn: those that are shown go on, of the others their sums alone."""

    draw: PicklableDraw
    bits: TaskRandomness

    def __call__(self, batches: Batches) -> Batches:
        """Turn batches of codes and counts into codes, rows shown, rows; and one of sums."""
        bits, sums, names = self.bits.open_bits(), np.zeros(SUMS, dtype=np.int64), None
        codes: list[Any] = []
        for batch in batches:
            names = batch.schema.names
            *codes, counts = batch.columns
            rows = counts.to_numpy().astype(np.int64)
            # Cells by their places in the batch: what is shown of them is known by these.
            places = np.arange(len(rows), dtype=np.int32)[:, None]
            published = self.draw.draw_published_cells(Frequencies(places, rows), bits)
            at = published.codes[:, 0]
            hidden = np.ones(len(rows), dtype=bool)
            hidden[at] = False
            sums += _sum_suppressed(rows[hidden], self.draw.crowd)
            code_columns = [column.take(pa.array(at)) for column in codes]
            no_sums = pa.nulls(len(at), pa.list_(pa.int64()))
            arrays = [*code_columns, pa.array(published.counts), pa.array(rows[at]), no_sums]
            yield pa.RecordBatch.from_arrays(arrays, names=[*names[:-1], "shown", "n", "sums"])
        if names is not None:
            empty = [pa.nulls(1, column.type) for column in codes]
            long = pa.nulls(1, pa.int64())
            sum_column = pa.array([sums.tolist()], pa.list_(pa.int64()))
            yield pa.RecordBatch.from_arrays(
                [*empty, long, long, sum_column], names=[*names[:-1], "shown", "n", "sums"]
            )


def _sum_suppressed(rows: np.ndarray[Any, np.dtype[np.int64]], crowd: float) -> Any:
    sums = np.zeros(SUMS, dtype=np.int64)
    sums[:3] = rows.sum(), len(rows), rows[rows >= crowd].sum()
    sizes = np.floor(np.log2(rows)).astype(int) if len(rows) else np.zeros(0, dtype=int)
    np.add.at(sums, 3 + sizes, rows)
    return sums


@dataclass(frozen=True)
class ClassTask:
    """Rows worked on class by class; they come in the order of their classes."""

    work: Work
    read: tuple[str, ...]  # names of the columns that are worked on
    through: int  # how many columns go through as they are
    bits: TaskRandomness

    def __call__(self, batches: Batches) -> Batches:
        """Process batches of a class, columns that go through, columns to work on."""
        bits = self.bits.open_bits()
        waiting: list[Any] = []
        row_count, chunk_rows = 0, _CHUNK_ROWS
        for batch in batches:
            waiting.append(batch)
            row_count += batch.num_rows
            if row_count >= chunk_rows:
                chunk = pa.Table.from_batches(waiting).combine_chunks()
                members = chunk.column(0).to_numpy()
                end = int(np.searchsorted(members, members[-1]))  # where the last class begins
                if end:
                    yield from self._process_rows(chunk.slice(0, end), bits)
                waiting = chunk.slice(end).combine_chunks().to_batches()
                row_count -= end
                chunk_rows = max(2 * row_count, _CHUNK_ROWS)  # a large class is looked at few times
        if waiting:
            yield from self._process_rows(pa.Table.from_batches(waiting).combine_chunks(), bits)

    def _process_rows(self, rows: Any, bits: Randomness) -> Batches:
        try:
            columns = {
                name: _encode_column(rows.column(1 + self.through + at))
                for at, name in enumerate(self.read)
            }
            processed = self.work(ClassChunk(rows.column(0).to_numpy(), columns), bits)
        except (MemoryError, OSError):  # which say nothing of the data, and may pass
            raise
        except Exception as error:  # noqa: BLE001 - any other may repeat a value
            # Its words alone: an error may hold what cannot be sent.
            message = str(error) if isinstance(error, IncrowdError) else f"A task failed: {error!r}"
            yield self._make_message_row(rows, pickle.dumps(IncrowdError(message)))
            return
        places = pa.array(np.flatnonzero(processed.kept))
        arrays = [
            column.take(places).combine_chunks() for column in rows.columns[: 1 + self.through]
        ]
        for name in self.read:
            steps, null = processed.columns[name]
            arrays.append(pa.array(steps, mask=null, type=pa.int64()).take(places))
        arrays.append(pa.nulls(len(places), pa.binary()))
        arrays = [
            array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
            for array in arrays
        ]
        yield from pa.Table.from_arrays(arrays, names=self._list_output_names(rows)).to_batches()
        classes, sizes = np.unique(rows.column(0).to_numpy(), return_counts=True)
        yield self._make_message_row(rows, pickle.dumps((classes, sizes, processed.part)))

    def _make_message_row(self, rows: Any, message: bytes) -> Any:
        """Return a row that holds nothing but what is told of many."""
        kinds = [column.type for column in rows.columns[: 1 + self.through]]
        empty = [pa.nulls(1, kind) for kind in [*kinds, *[pa.int64()] * len(self.read)]]
        message_column = pa.array([message], pa.binary())
        return pa.RecordBatch.from_arrays(
            [*empty, message_column], names=self._list_output_names(rows)
        )

    def _list_output_names(self, rows: Any) -> list[str]:
        return [*rows.schema.names, "told"]


def _encode_column(column: Any) -> tuple[Sequence[object], Codes]:
    """Return the distinct plain values of a column, and the place of each row's among them."""
    values_array = column.combine_chunks()
    encoded = values_array.dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values = to_plain_frame(pa.table({"x": encoded.dictionary})).to_series().to_list()
    return values, encoded.indices.to_numpy().astype(np.int32)
