"""A released file, as whoever checks it reads it: its table, and what it holds besides.

Whichever engine made a release, its files are checked on this machine.

**Layout of a Parquet file.** Whether a Parquet file holds its rows and nothing besides, as far as
its footer shows.

A file has room for more than its rows: key-value metadata, statistics, indexes, Bloom filters,
fields that no reader looks at, bytes between columns. PyArrow reads the footer; written again, it
must be the same bytes, so that nothing stands in it that PyArrow does not know. What it knows, and
a release has no use for, is refused; and the columns must lie one after the other from the first
byte to the footer. Inside a column the encoder is free: how values are packed and compressed, and
what a page header adds, cannot be seen here and stays a channel (docs/reference/certificate.md).

It also bounds what a reader of the file must hold, by what the footer says: a few bytes can claim
to be gigabytes.
"""

from __future__ import annotations

import filecmp
import io
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import parquet

from incrowd.engine.local.engine import ENGINE
from incrowd.engine.local.parquet import read_chunks
from incrowd.engine.table import Coder, Table
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, make_finding

_MAGIC = b"PAR1"
_CREATED_BY = re.compile(r"parquet-cpp-arrow version \d{1,3}\.\d{1,3}\.\d{1,3}")
_LARGEST, _RATIO = 64 << 20, 100  # bytes that may be read from a file, or so many times its own
_ROWS_PER_BYTE = 1 << 16
_VERSIONS = ("1.0", "2.4", "2.6")
_ENCODINGS = ({"PLAIN", "RLE"}, {"PLAIN", "RLE", "RLE_DICTIONARY"}, {"RLE", "RLE_DICTIONARY"})


class LayoutError(IncrowdError):
    """What a file holds besides its rows, or what it claims to hold, in words."""


def check_layout(path: Path) -> None:
    """Raise if a Parquet file is heavy, or holds something besides its rows."""
    metadata = _read_metadata(path)
    _refuse_broken(path, metadata)
    _refuse_heavy(path, metadata)
    for problem in _find_layout_oddities(path, metadata):
        raise LayoutError(f"The file '{path.name}' {problem}.")


def _read_metadata(path: Path) -> Any:
    try:
        return parquet.read_metadata(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise LayoutError(f"File '{path.name}': not a Parquet file. Name another one.") from error


def _refuse_broken(path: Path, metadata: Any) -> None:
    """Refuse a footer whose parts contradict each other.

    PyArrow ends the process where it describes such a column, and raises where it reads one. So
    one row of each part is read first.
    """
    try:
        with parquet.ParquetFile(path) as file:
            for group in range(metadata.num_row_groups):
                batches = file.iter_batches(batch_size=1, row_groups=[group], use_threads=False)
                next(batches, None)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise LayoutError(f"File '{path.name}': not a Parquet file. Name another one.") from error


def _refuse_heavy(path: Path, metadata: Any) -> None:
    """Refuse what claims more rows, or more memory, than a file of its size can be trusted with."""
    size, chunks = path.stat().st_size, [*_list_chunks(metadata)]
    if metadata.num_rows > _ROWS_PER_BYTE * size:
        raise LayoutError(
            f"File '{path.name}': it states more rows than its size allows. Get it again."
        )
    memory = sum(max(chunk.total_uncompressed_size, 0) for chunk in chunks)
    # Numbers are held as they are, eight bytes for each row, nulls as well.
    numbers = sum(8 * chunk.num_values for chunk in chunks if chunk.physical_type != "BYTE_ARRAY")
    if max(memory, numbers) > max(_LARGEST, _RATIO * size):
        raise LayoutError(
            f"File '{path.name}': it needs far more memory than its size suggests. Get it again."
        )


def _list_chunks(metadata: Any) -> Iterator[Any]:
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            yield metadata.row_group(group).column(column)


def _find_layout_oddities(path: Path, metadata: Any) -> Iterator[str]:
    """Yield what a footer has that no release has."""
    with path.open("rb") as file:
        begin = file.read(4)
        file.seek(-8, io.SEEK_END)
        start = path.stat().st_size - 8 - int.from_bytes(file.read(4), "little")
        file.seek(start)
        footer = file.read()
    rewritten_footer = io.BytesIO()
    metadata.write_metadata_file(rewritten_footer)
    if metadata.metadata is not None:
        yield "holds key-value metadata, which no release has"
    if begin != _MAGIC or _MAGIC + footer != rewritten_footer.getvalue():
        yield "has a footer that says more than its rows need"
    if metadata.format_version not in _VERSIONS:
        yield "is of a version that no release has"
    if not _CREATED_BY.fullmatch(metadata.created_by or ""):
        yield "was not written by a known writer, or says more than its version"
    yield from _find_odd_columns(metadata)
    at = 4
    for chunk in _list_chunks(metadata):
        yield from _find_chunk_oddities(chunk)
        if chunk.file_path or _find_chunk_start(chunk) != at:
            yield "holds bytes between its columns, or columns that overlap"
        at += chunk.total_compressed_size
    if at != start:
        yield "holds bytes that belong to no column"
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if sum(group.num_rows for group in groups) != metadata.num_rows:
        yield "says of its rows what its parts do not add up to"
    for group in groups:
        if group.sorting_columns:
            yield "says how its rows are sorted, which no release does"
        columns = [group.column(at) for at in range(group.num_columns)]
        if any(column.num_values != group.num_rows for column in columns):
            yield "says of a column's values what its rows do not bear out"
        if group.total_byte_size != sum(column.total_uncompressed_size for column in columns):
            yield "says of a part's size what its columns do not add up to"


def _find_odd_columns(metadata: Any) -> Iterator[str]:
    """Yield what is odd of the types of a flat table."""
    for at in range(metadata.num_columns):
        column = metadata.schema.column(at)
        if column.max_repetition_level or column.max_definition_level != 1:
            yield "has columns within columns"
        is_fixed_length = column.physical_type == "FIXED_LEN_BYTE_ARRAY"
        if column.physical_type == "INT96" or (column.length > 0) != is_fixed_length:
            yield "has a column of a type that no release has"


def _find_chunk_oddities(chunk: Any) -> Iterator[str]:
    """Yield what a part of a column has besides its values."""
    if chunk.is_stats_set or chunk.statistics is not None:
        yield "holds statistics, which no release has"
    if chunk.has_offset_index or chunk.has_column_index:
        yield "holds an index of pages, which no release has"
    if getattr(chunk, "bloom_filter_offset", None) is not None:
        yield "holds a Bloom filter, which no release has"
    if getattr(chunk, "metadata", None):
        yield "holds key-value metadata of a column, which no release has"
    encodings = chunk.encodings
    if (
        chunk.compression != "ZSTD"
        or set(encodings) not in _ENCODINGS
        or len(set(encodings)) < len(encodings)
        or chunk.has_dictionary_page != ("RLE_DICTIONARY" in encodings)
        or chunk.file_offset
        not in (0, _find_chunk_start(chunk), _find_chunk_start(chunk) + chunk.total_compressed_size)
    ):
        yield "has a column that is not written as a release writes it"


def _find_chunk_start(chunk: Any) -> int:
    """Return where the pages of a column begin."""
    if chunk.has_dictionary_page:
        return int(chunk.dictionary_page_offset)
    return int(chunk.data_page_offset)


__all__ = [
    "ReleasedTable", "find_hidden_content", "open_released",
]  # fmt: skip


class ReleasedTable(Table, Protocol):
    """The table in a released file, whose rows have an order."""

    def has_ascending_rows(self, columns: Sequence[str], coders: Mapping[str, Coder]) -> bool:
        """Return whether the rows stand in the order of their codes, the first column first."""
        ...

    def respell_texts(self, spell: Callable[[str], str]) -> ReleasedTable:
        """Return the table with every text and every column name written in another way."""
        ...

    def iter_frames(self, rows: int) -> Iterator[Any]:
        """Yield the rows in their order, as data frames of so many each."""
        ...


def open_released(path: Path) -> ReleasedTable:
    """Open the table in a released file; it may have no rows."""
    return ENGINE.open(path, empty=True, delimiter=",")


def find_hidden_content(path: Path) -> list[Finding]:
    """Return what a file holds besides its rows; raises if it is not even safe to read."""
    if path.suffix == ".csv":
        with tempfile.TemporaryDirectory(prefix="incrowd-") as folder:
            copy = Path(folder) / path.name
            open_released(path).write(copy)
            is_same = filecmp.cmp(copy, path, shallow=False)
        return [] if is_same else [make_finding("FILE_NOT_CANONICAL", file=path.name)]
    check_layout(path)
    entries: set[tuple[str, object]] = set()
    used_values: set[tuple[str, object]] = set()
    for chunk in read_chunks(path):
        if chunk.odd:
            return [make_finding("FILE_NUMBERS_ODD", file=path.name, name=chunk.column)]
        if len(set(chunk.entries)) < len(chunk.entries):
            return [make_finding("FILE_VALUE_REPEATED", file=path.name, name=chunk.column)]
        entries |= {(chunk.column, value) for value in chunk.entries}
        used_values |= {(chunk.column, value) for value in chunk.used}
    if entries - used_values:
        column, value = min(entries - used_values, key=str)
        return [make_finding("FILE_VALUE_UNUSED", file=path.name, value=str(value), name=column)]
    return []
