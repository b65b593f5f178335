"""Counting in a Parquet file by the codes that it holds already.

Parquet stores a column as a dictionary of its values and small codes, group of rows by group
of rows. Translating each dictionary once is far cheaper than looking at every value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from pyarrow import parquet

from incrowd.anonymize.frequency import Counts, Frequencies, joined, merged
from incrowd.hierarchy import Codes

_BATCH_ROWS = 1 << 20
_DENSE = 1 << 22  # so many cells are counted in place
_PENDING = 1 << 23  # so many tuples wait before they are merged


def values(path: Path, column: str) -> list[object]:
    """The distinct values of a column, null among them."""

    def held(group: int) -> dict[object, None]:
        found: dict[object, None] = {}
        for batch in _batches(path, [column], group):
            part = _dictionary(batch.column(0))
            codes = part.indices.drop_null().to_numpy(zero_copy_only=False)
            used = np.flatnonzero(np.bincount(codes, minlength=len(part.dictionary)))
            found.update(dict.fromkeys(part.dictionary.take(used).to_pylist()))
            if part.null_count:
                found[None] = None
        return found

    with ThreadPoolExecutor() as workers:
        return list(dict.fromkeys(chain.from_iterable(workers.map(held, _groups(path)))))


def count(
    path: Path,
    columns: Sequence[str],
    coders: Mapping[str, Callable[[Sequence[object]], Codes]],
) -> Frequencies:
    """Distinct tuples of codes with counts; groups of rows are counted side by side."""
    translate = {name: _Translator(coders[name]) for name in columns}

    nothing = Frequencies(np.zeros((0, len(columns)), np.int32), np.zeros(0, np.int64))

    def counted(group: int) -> Frequencies:
        parts = [
            _batch_frequencies([translate[name](batch.column(name)) for name in columns])
            for batch in _batches(path, columns, group)
            if len(batch)
        ]
        return parts[0] if len(parts) == 1 else joined([nothing, *parts])

    total = nothing
    waiting: list[Frequencies] = []
    with ThreadPoolExecutor() as workers:
        for part in workers.map(counted, _groups(path)):
            waiting.append(part)
            if sum(len(part) for part in waiting) > _PENDING:
                total, waiting = joined([total, *waiting]), []
    return joined([total, *waiting])


def write(
    path: Path,
    codes: Mapping[str, np.ndarray[Any, Any]],
    labels: Mapping[str, list[object]],
) -> None:
    """Write columns of codes as columns of their labels, without spelling out each row."""
    columns = {}
    for name, texts in labels.items():
        known, places = list(texts), pl.Series(codes[name])
        if None in known:  # null has no place in a dictionary
            at = known.index(None)
            known = [*known[:at], *known[at + 1 :]]
            below = pl.when(places > at).then(places - 1).when(places < at).then(places)
            places = pl.select(below).to_series().cast(places.dtype)
        columns[name] = pa.DictionaryArray.from_arrays(
            places.to_arrow(), _column(known), safe=False
        )
    parquet.write_table(
        pa.table(columns), path, compression="zstd", store_schema=False, write_statistics=False
    )


def _column(values: list[object]) -> Any:
    """Text unless the values are of another kind."""
    if all(isinstance(value, str) for value in values):
        return pl.Series(values, dtype=pl.String).to_arrow().cast(pa.string())
    return pl.Series(values).to_arrow()


def _batch_frequencies(columns: list[Codes]) -> Frequencies:
    """Frequencies of one batch: counted in place where there are few cells, else by sorting."""
    widths = [int(column.max()) + 1 for column in columns]
    cells = int(np.prod([float(width) for width in widths]))
    if cells > _DENSE:
        stacked = np.column_stack(columns)
        return merged(stacked, np.ones(len(stacked), dtype=np.int64))
    keys = np.zeros(len(columns[0]), dtype=np.int32)
    for column, width in zip(columns, widths, strict=True):
        keys *= width
        keys += column
    dense: Counts = np.bincount(keys, minlength=cells)
    used = np.flatnonzero(dense)
    codes = np.column_stack(np.unravel_index(used, widths)).astype(np.int32)
    return Frequencies(codes, dense[used].astype(np.int64))


class _Translator:
    """From a column of a batch to codes; every distinct value is coded once."""

    def __init__(self, coder: Callable[[Sequence[object]], Codes]) -> None:
        self._coder = coder
        self._known: dict[object, int] = {}

    def __call__(self, column: Any) -> Codes:
        part = _dictionary(column)
        distinct = [*part.dictionary.to_pylist(), None]
        new = [value for value in distinct if value not in self._known]
        if new:
            self._known.update(zip(new, self._coder(new).tolist(), strict=True))
        lookup = np.array([self._known[value] for value in distinct], dtype=np.int32)
        indices = part.indices
        if indices.null_count:
            indices = indices.fill_null(len(distinct) - 1)
        codes: Codes = np.take(lookup, indices.to_numpy(zero_copy_only=False), mode="clip")
        return codes


def _dictionary(column: Any) -> Any:
    if pa.types.is_dictionary(column.type):
        return column
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    return column.dictionary_encode()


def _groups(path: Path) -> range:
    return range(parquet.ParquetFile(path).metadata.num_row_groups)


def _batches(path: Path, columns: Sequence[str], group: int) -> Iterator[Any]:
    """One group of rows, in batches that fit in memory, with text as dictionaries."""
    schema = parquet.read_schema(path)
    texts = [name for name in columns if _is_text(schema.field(name).type)]
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        yield from file.iter_batches(
            batch_size=_BATCH_ROWS, row_groups=[group], columns=list(columns), use_threads=False
        )


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
