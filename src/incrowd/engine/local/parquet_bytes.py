"""Whether a Parquet file holds its rows and nothing besides, told from its bytes.

A file has room for more than its rows: key-value metadata, statistics of pages, indexes, Bloom
filters, gaps between pages, fields that no reader looks at. Here the footer and every page header
are read field by field: a field that a release has no use for, or of another type or value than
it has there, is a problem, and so is a byte that belongs to no page. Pages are unpacked, and must
end where their values do. What an encoder may choose freely (how runs are split, how a block is
compressed) cannot be told apart from an honest choice and stays a channel.

It also bounds what a reader of the file must hold: a few bytes can claim to be gigabytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from incrowd.engine.local.thrift import Fields, Reader
from incrowd.errors import IncrowdError

_MAGIC = b"PAR1"
_CREATED_BY = re.compile(r"parquet-cpp-arrow version \d{1,3}\.\d{1,3}\.\d{1,3}")
_LARGEST_FOOTER = 64 << 20
_LARGEST, _RATIO = 64 << 20, 100  # bytes that may be read from a file, or so many times its own
_ROWS_PER_BYTE = 1 << 16
_ZSTD, _PLAIN, _DICTIONARY = 6, 0, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_BYTES = 6

# The fields of each structure that a release has, with their types; all others are problems.
_FILE = {1: int, 2: list, 3: int, 4: list, 6: bytes, 7: list}
_ELEMENT = {1: int, 2: int, 3: int, 4: bytes, 5: int, 6: int, 7: int, 8: int, 10: dict}
_GROUP = {1: list, 2: int, 3: int, 5: int, 6: int, 7: int}
_CHUNK = {2: int, 3: dict}
_CHUNK_DATA = {
    1: int, 2: list, 3: list, 4: int, 5: int, 6: int, 7: int, 9: int, 11: int, 13: list, 16: dict,
}  # fmt: skip
_PAGE = {1: int, 2: int, 3: int, 5: dict, 7: dict}
_DATA_HEADER = {1: int, 2: int, 3: int, 4: int, 5: dict}
_DICTIONARY_HEADER = {1: int, 2: int, 3: bool}
_SIZES = {1: int, 2: list, 3: list}
_RLE = 3
_WIDTHS = {1: 4, 2: 8, 4: 4, 5: 8}  # bytes of a value, by the type of a column
_BOOLEAN, _FIXED = 0, 7
_NAMES = {
    ("file", 5): "key-value metadata",
    ("chunk", 4): "an offset index",
    ("chunk", 6): "a column index",
    ("chunk data", 8): "key-value metadata of a column",
    ("chunk data", 12): "statistics",
    ("chunk data", 14): "a Bloom filter",
}


class BytesError(IncrowdError):
    """What a file holds besides its rows, in words."""


class _FoundError(Exception):
    """The same, before it is known of which file."""


@dataclass(frozen=True)
class Claim:
    """What the footer says of a part of one column; its rows can bear it out.

    ``entries`` is the size of its dictionary, 0 where it has none. ``nulls`` and ``text``, its
    bytes of text, are None where nothing is said.
    """

    group: int
    column: str
    entries: int
    nulls: int | None
    text: int | None


def claims(path: Path) -> list[Claim]:
    """What a Parquet file says of its columns; raises if it holds anything besides its rows."""
    content = path.read_bytes()
    try:
        return _check(content)
    except _FoundError as problem:
        raise BytesError(f"The file '{path.name}' {problem}.") from problem
    except (IndexError, KeyError, TypeError, ValueError, OverflowError) as error:
        message = f"The file '{path.name}' is no Parquet file as a release has it."
        raise BytesError(message) from error


def _footer(content: bytes) -> tuple[Fields, int]:
    """What a file says of itself, and where it begins to."""
    if content[:4] != _MAGIC or content[-4:] != _MAGIC or len(content) < 12:
        raise _FoundError("does not begin and end as Parquet does")
    size = int.from_bytes(content[-8:-4], "little")
    start = len(content) - 8 - size
    if start < 4 or size > _LARGEST_FOOTER:
        raise _FoundError("has a footer that is too long")
    footer = Reader(content, start, len(content) - 8)
    file = footer.structure()
    if footer.at != footer.end:
        raise _FoundError("holds bytes after its footer")
    return file, start


def _bound(file: Fields, size: int) -> None:
    """Refuse what claims more rows, or more memory, than a file of its size can be trusted with."""
    if file[3] > _ROWS_PER_BYTE * size:
        raise _FoundError("claims more rows than a file of its size can be trusted with")
    memory = sum(chunk[3][6] for group in file[4] for chunk in group[1])
    # Numbers are held as they are, eight bytes for each row, nulls as well.
    numbers = sum(group[3] * 8 for group in file[4] for c in group[1] if c[3][1] != _BYTES)
    memory = max(memory, numbers)
    if memory > max(_LARGEST, _RATIO * size):
        raise _FoundError("would take far more memory than its size tells")


def _check(content: bytes) -> list[Claim]:
    file, start = _footer(content)
    _bound(file, len(content))
    _only(file, _FILE, "file")
    if file[1] not in (1, 2):
        raise _FoundError("is of a version that no release has")
    if not _CREATED_BY.fullmatch(file[6].decode()):
        raise _FoundError("was not written by a known writer, or says more than its version")
    columns = _columns(file[2])
    _refuse_more(file.get(7, []), len(columns))
    groups = file[4]
    if sum(group[3] for group in groups) != file[3]:
        raise _FoundError("says of its rows what its parts do not add up to")
    chunks = [
        (number, group[3], chunk)
        for number, group in enumerate(groups)
        for chunk in _chunks(group, number, columns)
    ]
    lengths = [column.get(2, 0) for column in columns] * len(groups)
    at, found = 4, []
    for (group, rows, chunk), length in zip(chunks, lengths, strict=True):
        at, entries = _pages(content, at, chunk[3], rows, start, length)
        found.append(_claim(group, chunk[3], rows, entries))
    if at != start:
        raise _FoundError("holds bytes that belong to no column")
    return found


def _claim(group: int, data: Fields, rows: int, entries: int) -> Claim:
    """What the sizes of a column say, if they are there."""
    name, sizes = data[3][0].decode(), data.get(16)
    if sizes is None:
        return Claim(group, name, entries, None, None)
    _only(sizes, _SIZES, "sizes")
    nulls, *rest = sizes[3]
    if sizes.get(2) or rest != [rows - nulls] or (1 in sizes) != (data[1] == _BYTES):
        raise _FoundError("has sizes that are not those of its rows")
    return Claim(group, name, entries, nulls, sizes.get(1))


def _columns(elements: list[Fields]) -> list[Fields]:
    """The columns of a flat table."""
    for element in elements:
        _only(element, _ELEMENT, "schema")
    root, *columns = elements
    if root[4] != b"schema" or root[5] != len(columns) or set(root) - {3, 4, 5}:
        raise _FoundError("has no schema of a plain table")
    for column in columns:
        if 5 in column or column[3] != 1:
            raise _FoundError("has columns within columns")
        if not _is_plain(column):
            raise _FoundError("has a column of a type that no release has")
    return columns


def _is_plain(column: Fields) -> bool:
    """Whether the types that a column names are those of plain values, and nothing is added."""
    kind, logical = column[1], column.get(10, {})
    if (2 in column) != (kind == _FIXED) or not 0 <= column.get(6, 0) <= 21:
        return False
    if (kind == _FIXED and not 1 <= column[2] <= 64) or kind not in (*_WIDTHS, 0, _BYTES, _FIXED):
        return False
    match logical:
        case {5: {1: scale, 2: precision, **more}, **rest}:  # decimals
            named = (column.get(7, scale), column.get(8, precision))
            good = named == (scale, precision) and 0 <= scale <= precision <= 76
            return good and type(scale) is type(precision) is int and not more and not rest
        case {8: {1: bool(), 2: dict(unit), **more}, **rest}:  # times of day and dates
            return unit in ({1: {}}, {2: {}}, {3: {}}) and not more and not rest
        case {10: {1: bits, 2: bool(), **more}, **rest}:  # whole numbers
            return bits in (8, 16, 32, 64) and not more and not rest
    return logical in ({}, {1: {}}, {6: {}}, {11: {}}) and not {7, 8} & set(column)


def _refuse_more(orders: list[Fields], columns: int) -> None:
    """The order of each column may be said, and nothing else."""
    if len(orders) not in (0, columns) or any(order != {1: {}} for order in orders):
        raise _FoundError("says something odd of the order of its columns")


def _chunks(group: Fields, number: int, columns: list[Fields]) -> Iterator[Fields]:
    _only(group, _GROUP, "group")
    if len(group[1]) != len(columns):
        raise _FoundError("has parts that do not have all columns")
    first = group[1][0][3]
    if group.get(5, 0) not in (0, _begin(first)) or group.get(7, number) != number:
        raise _FoundError("says of a part where it does not lie")
    for name, total in ((6, 2), (7, 6)):
        whole = sum(chunk[3][name] for chunk in group[1])
        if group.get(total, whole) != whole:
            raise _FoundError("says of a part's size what its columns do not add up to")
    for chunk, column in zip(group[1], columns, strict=True):
        _only(chunk, _CHUNK, "chunk")
        data = chunk[3]
        _only(data, _CHUNK_DATA, "chunk data")
        if chunk[2] not in (0, _begin(data), _begin(data) + data[7]):
            raise _FoundError("says of a column where it does not lie")
        encodings = sorted(data[2])
        if (
            data[3] != [column[4]]
            or data[1] != column[1]
            or data[4] != _ZSTD
            or encodings not in ([_PLAIN, _RLE], [_PLAIN, _RLE, _DICTIONARY], [_RLE, _DICTIONARY])
        ):
            raise _FoundError("has a column that is not written as a release writes it")
        if data[5] != group[3]:
            raise _FoundError("says of a column's values what its rows do not bear out")
        yield chunk


def _begin(data: Fields) -> int:
    """Where the pages of a column begin."""
    return int(data[11] if 11 in data else data[9])


def _pages(
    content: bytes, at: int, data: Fields, rows: int, end: int, length: int
) -> tuple[int, int]:
    """Walk the pages of a column, which lie one after the other.

    The place after the last, and the number of entries of its dictionary.
    """
    if _begin(data) != at or at + data[7] > end:
        raise _FoundError("holds bytes between its columns, or columns that overlap")
    last, held, seen, read, entries = at + data[7], 0, 0, 0, 0
    coded = 11 in data
    while at < last:
        reader = Reader(content, at, last)
        page = reader.structure()
        _only(page, _PAGE, "page")
        read += reader.at - at + page[2]
        if seen == 0 and coded:
            _only(page[7], _DICTIONARY_HEADER, "dictionary page")
            good = page[1] == _DICTIONARY_PAGE and page[7][2] == _PLAIN and 5 not in page
            good &= page[7].get(3, False) is False
            entries = page[7][1]
        else:
            _only(page[5], _DATA_HEADER, "data page")
            if page[5].get(5):
                raise _FoundError("holds statistics of a page, which no release has")
            encoding = _DICTIONARY if coded else _PLAIN
            good = page[1] == _DATA_PAGE and page[5][2] == encoding and 7 not in page
            good &= page[5][3] == page[5][4] == _RLE and page[5][1] > 0
            held += page[5][1]
            if held == page[5][1] and data[9] != at:
                raise _FoundError("says of its pages where they do not lie")
        if not good:
            raise _FoundError("has a page that is not written as a release writes it")
        at = reader.at + page[3]
        if at > last or page[2] > _LARGEST:
            raise _FoundError("has a page that is larger than what holds it")
        _frame(content, reader.at, at)
        unpacked = pa.decompress(content[reader.at : at], page[2], "zstd", asbytes=True)
        if seen == 0 and coded:
            _plain_values(unpacked, 0, entries, data[1], length)
        else:
            _values(unpacked, page[5][1], data[1], length, coded=coded)
        seen += 1
    listed = [{1: _DICTIONARY_PAGE, 2: _PLAIN, 3: 1}] if coded else []
    listed.append({1: _DATA_PAGE, 2: _DICTIONARY if coded else _PLAIN, 3: seen - coded})
    if at != last or held != rows or read != data[6] or data.get(13, listed) != listed:
        raise _FoundError("has pages that do not add up to its rows or to their size")
    return at, entries


def _values(page: bytes, rows: int, kind: int, length: int, *, coded: bool) -> None:
    """A data page: which rows have a value, then the values, and then nothing."""
    levels = int.from_bytes(page[:4], "little")
    held = _runs(page, 4, 4 + levels, 1, rows, ones=True)
    at = 4 + levels
    if not coded:
        _plain_values(page, at, held, kind, length)
    elif held or at < len(page):
        width = page[at]
        if width > 32:
            raise ValueError("codes that are too wide")
        _runs(page, at + 1, len(page), width, held, ones=False)


def _plain_values(page: bytes, at: int, count: int, kind: int, length: int) -> None:
    """So many values one after the other, and then nothing; of floats, no odd ones."""
    if kind == _BYTES:
        for _ in range(count):
            at += 4 + int.from_bytes(page[at : at + 4], "little")
    elif kind == _BOOLEAN:
        if count % 8 and page[-1] >> count % 8:
            raise _FoundError("holds bits after the values of a page")
        at += -(-count // 8)
    else:
        if kind == 5:
            floats = np.frombuffer(page, np.float64, count, at)
            odd = np.isnan(floats) | ((floats == 0) & np.signbit(floats))
            if odd.any():
                raise _FoundError("holds numbers that are none, or a negative zero")
        at += count * (length if kind == _FIXED else _WIDTHS[kind])
    if at != len(page):
        raise _FoundError("holds bytes after the values of a page")


def _runs(page: bytes, at: int, end: int, width: int, count: int, *, ones: bool) -> int:
    """Walk so many numbers in runs of equal ones or packed groups of eight; how many are 1."""
    left, found = count, 0
    while left > 0:
        reader = Reader(page, at, end)
        head = reader.whole()
        at = reader.at
        if head & 1:
            groups = head >> 1
            size = groups * width
            if not groups or groups * 8 - left >= 8:
                raise _FoundError("holds bytes after the values of a page")
            packed = int.from_bytes(page[at : at + size], "little")
            if packed >> min(left, groups * 8) * width:
                raise _FoundError("holds bits after the values of a page")
            found += packed.bit_count() if ones else 0
            left, at = left - groups * 8, at + size
        else:
            run, size = head >> 1, -(-width // 8)
            value = int.from_bytes(page[at : at + size], "little")
            if not 0 < run <= left or value >> width:
                raise _FoundError("holds bytes after the values of a page")
            found += run * value if ones else 0
            left, at = left - run, at + size
        if at > end:
            raise ValueError("cut off")
    if at != end:
        raise _FoundError("holds bytes after the values of a page")
    return found


def _frame(content: bytes, at: int, end: int) -> None:
    """A compressed page is one frame of Zstandard and ends with it."""
    if content[at : at + 4] != b"\x28\xb5\x2f\xfd":
        raise _FoundError("has a page that is not compressed as a release is")
    described = content[at + 4]
    single, checked = described >> 5 & 1, described >> 2 & 1
    if described & 0b1011 or described >> 3 & 1:
        raise _FoundError("has a compressed page with a dictionary or reserved bits")
    at += 5 + (1 - single) + ((single, 2, 4, 8)[described >> 6])
    while True:
        header = int.from_bytes(content[at : at + 3], "little")
        kind, size = header >> 1 & 3, header >> 3
        if kind == 3:
            raise _FoundError("has a compressed page with a reserved block")
        at += 3 + (1 if kind == 1 else size)
        if at > end:
            raise _FoundError("has a compressed page that is cut off")
        if header & 1:
            break
    if at + 4 * checked != end:
        raise _FoundError("holds bytes after a compressed page")


def _only(fields: Fields, known: dict[int, type], what: str) -> None:
    """Refuse fields that a release does not have, or that are not of their type."""
    strange = sorted(set(fields) - set(known))
    if not strange and any(type(value) is not known[name] for name, value in fields.items()):
        raise _FoundError(f"has a {what} with a field of another type")
    if strange:
        name = _NAMES.get((what, strange[0]), f"field {strange[0]} of a {what}")
        raise _FoundError(f"holds {name}, which no release has")
