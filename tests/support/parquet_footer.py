"""Parquet files whose footer was taken apart and put together again with something more in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Field = list[Any]  # number, type, value
Structure = list[Field]


def decode_structure(content: bytes, at: int) -> tuple[Structure, int]:
    """A structure of Thrift's compact protocol with the types of its fields."""
    structures: Structure = []
    last = 0
    while (head := content[at]) != 0:
        at += 1
        last += head >> 4
        assert head >> 4
        value, at = _read_value(content, at, head & 15)
        structures.append([last, head & 15, value])
    return structures, at + 1


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    varint = shift = 0
    while True:
        varint |= (content[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if content[at - 1] < 128:
            return varint, at


def _read_value(content: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (1, 2):
        return kind == 1, at
    if kind in (4, 5, 6):
        return _read_varint(content, at)
    if kind == 8:
        size, at = _read_varint(content, at)
        return content[at : at + size], at + size
    if kind == 9:
        size, inner = content[at] >> 4, content[at] & 15
        at += 1
        if size == 15:
            size, at = _read_varint(content, at)
        values = []
        for _ in range(size):
            value, at = _read_value(content, at, inner)
            values.append(value)
        return (inner, values), at
    return decode_structure(content, at)


def encode_structure(structure: Structure) -> bytes:
    """The bytes of a structure."""
    content, last = b"", 0
    for number, kind, value in structure:
        kind = (1 if value else 2) if kind in (1, 2) else kind
        content += bytes([(number - last) << 4 | kind]) + _encode_value(kind, value)
        last = number
    return content + b"\0"


def _encode_varint(value: int) -> bytes:
    content = b""
    while value > 127:
        content, value = content + bytes([value & 127 | 128]), value >> 7
    return content + bytes([value])


def _encode_value(kind: int, value: Any) -> bytes:
    if kind in (1, 2):
        return b""
    if kind in (4, 5, 6):
        return _encode_varint(value)
    if kind == 8:
        return _encode_varint(len(value)) + bytes(value)
    if kind == 9:
        inner, values = value
        size = len(values)
        head = (
            bytes([size << 4 | inner])
            if size < 15
            else bytes([0xF0 | inner]) + _encode_varint(size)
        )
        return head + b"".join(_encode_value(inner, element) for element in values)
    return encode_structure(value)


def find_field(structure: Structure, number: int) -> Field:
    return next(field for field in structure if field[0] == number)


def change_footer(content: bytes, change: Callable[[Structure], object]) -> bytes:
    """A file whose footer was changed."""
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer, _ = decode_structure(content, start)
    change(footer)
    encoded = encode_structure(footer)
    return content[:start] + encoded + len(encoded).to_bytes(4, "little") + content[-4:]
