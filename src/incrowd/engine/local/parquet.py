"""Counting in a Parquet file by the codes that it holds already.

Parquet stores a column as a dictionary of its values and small codes, group of rows by group
of rows. Translating each dictionary once is far cheaper than looking at every value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa
from pyarrow import parquet

from incrowd.arrays import Bools, Codes, Counts
from incrowd.codes.frequency import Frequencies, join_frequencies, merge_tuples

_BATCH_ROWS = 1 << 20
_DENSE = 1 << 22  # so many cells are counted in place
_AXES = 32  # and so many columns, since arrays have no more than 64 axes
_WHOLE_DICTIONARY = 1 << 30  # a column is coded to its end, however many labels it has
_PENDING = 1 << 23  # so many tuples wait before they are merged


# Labels and codes of the coded columns, and the plain columns.
RowPart: TypeAlias = tuple[
    Mapping[str, tuple[Sequence[object], np.ndarray[Any, Any]]], Mapping[str, pl.Series]
]


def list_values(path: Path, column: str) -> list[object]:
    """Return the distinct values of a column, null among them."""

    def read_group(group: int) -> dict[object, None]:
        values: dict[object, None] = {}
        for batch in _read_batches(path, [column], group):
            part = _encode_dictionary(batch.column(0))
            codes, is_null = _read_numbers(part.indices)
            used_codes = np.flatnonzero(np.bincount(codes[~is_null]))
            labels = part.dictionary.to_pylist()
            values.update(dict.fromkeys(labels[code] for code in used_codes.tolist()))
            if is_null.any():
                values[None] = None
        return values

    with ThreadPoolExecutor() as workers:
        return list(
            dict.fromkeys(chain.from_iterable(workers.map(read_group, _list_row_groups(path))))
        )


def count_codes(
    path: Path,
    columns: Sequence[str],
    coders: Mapping[str, Callable[[Sequence[object]], Codes]],
) -> Frequencies:
    """Count distinct tuples of codes; groups of rows are counted side by side."""
    translate = {name: _CodeTranslator(coders[name]) for name in columns}

    empty = Frequencies(np.zeros((0, len(columns)), np.int32), np.zeros(0, np.int64))

    def count_group(group: int) -> Frequencies:
        parts = [
            _count_batch([translate[name](batch.column(name)) for name in columns])
            for batch in _read_batches(path, columns, group)
            if len(batch)
        ]
        return parts[0] if len(parts) == 1 else join_frequencies([empty, *parts])

    total = empty
    waiting: list[Frequencies] = []
    with ThreadPoolExecutor() as workers:
        for part in workers.map(count_group, _list_row_groups(path)):
            waiting.append(part)
            if sum(len(part) for part in waiting) > _PENDING:
                total, waiting = join_frequencies([total, *waiting]), []
    return join_frequencies([total, *waiting])


@dataclass(frozen=True)
class ColumnChunk:
    """What a part of a file holds of one column: the entries of its dictionary, and odd numbers.

    ``used`` are the entries that some row of the part has; those of the dictionary may repeat.
    Odd are floats that are no numbers, and a negative zero: their bits carry more than they show.
    """

    column: str
    entries: list[object]
    used: list[object]
    odd: bool


def read_chunks(path: Path) -> Iterator[ColumnChunk]:
    """Read every part of every column of a file."""
    names = parquet.read_schema(path).names
    for group in _list_row_groups(path):
        for name in names:
            entries: list[object] = []
            used_values: dict[object, None] = {}
            odd = False
            for batch in _read_batches(path, [name], group):
                column = batch.column(0)
                if pa.types.is_floating(column.type):
                    values, is_null = _read_numbers(column)
                    is_odd = np.isnan(values) | ((values == 0) & np.signbit(values))
                    odd |= bool((is_odd & ~is_null).any())
                if not pa.types.is_dictionary(column.type):
                    continue
                codes, is_null = _read_numbers(column.indices)
                times = np.bincount(codes[~is_null], minlength=len(column.dictionary))
                entries = column.dictionary.to_pylist()
                used_values.update(dict.fromkeys(entries[at] for at in np.flatnonzero(times)))
            yield ColumnChunk(name, entries, list(used_values), odd)


def has_ascending_rows(
    path: Path,
    columns: Sequence[str],
    coders: Mapping[str, Callable[[Sequence[object]], Codes]],
) -> bool:
    """Return whether the rows stand in the order of their codes, the first column first."""
    translate = {name: _CodeTranslator(coders[name]) for name in columns}
    last_row: list[Codes] = []
    for group in _list_row_groups(path):
        for batch in _read_batches(path, columns, group):
            codes = [translate[name](batch.column(name)) for name in columns]
            if last_row:
                codes = [np.append(old, new) for old, new in zip(last_row, codes, strict=True)]
            if not is_ascending(codes):
                return False
            last_row = [column[-1:] for column in codes]
    return True


def is_ascending(columns: Sequence[Codes]) -> bool:
    """Return whether tuples, one column of codes after the other, stand in ascending order."""
    undecided = np.ones(max(len(columns[0]) - 1, 0), dtype=bool)
    for column in columns:
        if (column[1:] < column[:-1])[undecided].any():
            return False
        undecided &= column[1:] == column[:-1]
    return True


def write_parquet(
    path: Path,
    parts: Iterable[RowPart],
    order: Sequence[str],
) -> None:
    """Write columns of codes as columns of their labels, without spelling out each row.

    The file holds the rows and nothing besides: no statistics, no schema of a library, no
    indexes; dictionaries for text alone, of the labels that occur.

    Args:
        path: The file.
        parts: The rows, in one part or several, which have the same labels. While one is written,
            the next one is made.
        order: All columns, in their order.

    """
    with ExitStack() as opened:
        writer: Any = None
        worker = opened.enter_context(ThreadPoolExecutor(1))
        waiting: list[Future[None]] = []
        for coded_columns, plain in parts:
            table, texts = _make_arrow_table(coded_columns, plain, order)
            while waiting:
                waiting.pop().result()
            if writer is None:
                writer = opened.enter_context(
                    parquet.ParquetWriter(
                        path, table.schema, compression="zstd", store_schema=False,
                        write_statistics=False, use_dictionary=texts,
                        dictionary_pagesize_limit=_WHOLE_DICTIONARY,
                    )
                )  # fmt: skip
                opened.callback(wait, waiting)  # whatever fails: nobody writes to a closed file
            if len(table):
                waiting.append(worker.submit(writer.write_table, table))
        while waiting:
            waiting.pop().result()


def _make_arrow_table(
    coded_columns: Mapping[str, tuple[Sequence[object], np.ndarray[Any, Any]]],
    plain: Mapping[str, pl.Series],
    order: Sequence[str],
) -> tuple[Any, list[str]]:
    """Return a table for Arrow, and which of its columns are texts."""
    columns, texts = {}, []
    for name in order:
        if name in plain:
            columns[name] = plain[name].to_arrow()
        elif all(isinstance(label, str | None) for label in coded_columns[name][0]):
            columns[name] = _encode_texts(*coded_columns[name])
            texts.append(name)
        else:
            labels, codes = coded_columns[name]
            columns[name] = pl.Series(labels, strict=False).gather(codes).to_arrow()
    return pa.table(columns), texts


def _encode_texts(labels: Sequence[object], codes: np.ndarray[Any, Any]) -> Any:
    dictionary: list[Any] = list(labels)
    places = pl.Series(codes)
    if None in dictionary:  # null has no place in a dictionary
        at = dictionary.index(None)
        dictionary = [*dictionary[:at], *dictionary[at + 1 :]]
        below = pl.when(places > at).then(places - 1).when(places < at).then(places)
        places = pl.select(below).to_series().cast(places.dtype)
    encoded_texts = [text.encode() for text in dictionary]
    ends = np.cumsum([0, *map(len, encoded_texts)], dtype=np.int32)
    texts = pa.StringArray.from_buffers(  # other ways load pandas, or what casts: slow to load
        len(dictionary), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded_texts))
    )
    return pa.DictionaryArray.from_arrays(places.to_arrow(), texts, safe=False)


def _count_batch(columns: list[Codes]) -> Frequencies:
    """Count one batch: in place where there are few cells, else by sorting."""
    widths = [int(column.max()) + 1 for column in columns]
    cells = math.prod(widths)
    if cells > _DENSE or len(widths) > _AXES:
        tuples = np.column_stack(columns)
        return merge_tuples(tuples, np.ones(len(tuples), dtype=np.int64))
    keys = np.zeros(len(columns[0]), dtype=np.int32)
    for column, width in zip(columns, widths, strict=True):
        keys *= width
        keys += column
    dense: Counts = np.bincount(keys, minlength=cells)
    places = np.flatnonzero(dense)
    codes = np.column_stack(np.unravel_index(places, widths)).astype(np.int32)
    return Frequencies(codes, dense[places].astype(np.int64))


class _CodeTranslator:
    """From a column of a batch to codes; every distinct value is coded once."""

    def __init__(self, coder: Callable[[Sequence[object]], Codes]) -> None:
        self._coder = coder
        self._known: dict[object, int] = {}

    def __call__(self, column: Any) -> Codes:
        part = _encode_dictionary(column)
        distinct = [*part.dictionary.to_pylist(), None]
        new = [value for value in distinct if value not in self._known]
        if new:
            self._known.update(zip(new, self._coder(new).tolist(), strict=True))
        lookup = np.array([self._known[value] for value in distinct], dtype=np.int32)
        indices, is_null = _read_numbers(part.indices)
        codes: Codes = np.take(lookup, np.where(is_null, len(distinct) - 1, indices), mode="clip")
        return codes


def _read_numbers(column: Any) -> tuple[np.ndarray[Any, Any], Bools]:
    """Read whole numbers or floats, and which of them are null, out of the memory of a column.

    Arrow's own ways load pandas, if it is installed, and all that computes: most of the time of a
    command on a small file.
    """
    valid, memory = column.buffers()
    letter = "f" if pa.types.is_floating(column.type) else "i"
    if pa.types.is_unsigned_integer(column.type):
        letter = "u"
    kind = np.dtype(f"{letter}{column.type.bit_width // 8}")
    start, stop = column.offset, column.offset + len(column)
    values = np.frombuffer(memory, kind)[start:stop] if len(column) else np.zeros(0, kind)
    if not column.null_count or valid is None:
        return values, np.zeros(len(column), dtype=bool)
    bits = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")[start:stop]
    return values, bits == 0


def _encode_dictionary(column: Any) -> Any:
    if pa.types.is_dictionary(column.type):
        return column
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    return column.dictionary_encode()


def _list_row_groups(path: Path) -> range:
    return range(parquet.ParquetFile(path).metadata.num_row_groups)


def _read_batches(path: Path, columns: Sequence[str], group: int) -> Iterator[Any]:
    """Read one group of rows, in batches that fit in memory, with text as dictionaries."""
    schema = parquet.read_schema(path)
    texts = [name for name in columns if _is_text(schema.field(name).type)]
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        yield from file.iter_batches(
            batch_size=_BATCH_ROWS, row_groups=[group], columns=list(columns), use_threads=False
        )


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
