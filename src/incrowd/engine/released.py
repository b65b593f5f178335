"""A released file, as whoever checks it reads it: its table, and what it holds besides.

Whichever engine made a release, its files are checked on this machine.
"""

from __future__ import annotations

import filecmp
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from incrowd.engine.local.engine import ENGINE
from incrowd.engine.local.parquet import chunks
from incrowd.engine.local.parquet_layout import check_layout
from incrowd.engine.table import Coder, Table
from incrowd.findings import Finding, make_finding

__all__ = ["ReleasedTable", "hidden", "open_released"]


class ReleasedTable(Table, Protocol):
    """The table in a released file, whose rows have an order."""

    def ascending(self, columns: Sequence[str], coders: Mapping[str, Coder]) -> bool:
        """Whether the rows stand in the order of their codes, the first column first."""
        ...

    def respelled(self, spell: Callable[[str], str]) -> ReleasedTable:
        """The table with every text and every name of a column written in another way."""
        ...


def open_released(path: Path) -> ReleasedTable:
    """The table in a released file; it may have no rows."""
    return ENGINE.open(path, empty=True, delimiter=",")


def hidden(path: Path) -> list[Finding]:
    """Return what a file holds besides its rows; raises if it is not even safe to read."""
    if path.suffix == ".csv":
        with tempfile.TemporaryDirectory(prefix="incrowd-") as folder:
            again = Path(folder) / path.name
            open_released(path).write(again)
            same = filecmp.cmp(again, path, shallow=False)
        return [] if same else [make_finding("FILE_NOT_CANONICAL", file=path.name)]
    check_layout(path)
    entries: set[tuple[str, object]] = set()
    used: set[tuple[str, object]] = set()
    for chunk in chunks(path):
        if chunk.odd:
            return [make_finding("FILE_NUMBERS_ODD", file=path.name, name=chunk.column)]
        if len(set(chunk.entries)) < len(chunk.entries):
            return [make_finding("FILE_VALUE_REPEATED", file=path.name, name=chunk.column)]
        entries |= {(chunk.column, value) for value in chunk.entries}
        used |= {(chunk.column, value) for value in chunk.used}
    if entries - used:
        column, value = min(entries - used, key=str)
        return [make_finding("FILE_VALUE_UNUSED", file=path.name, value=str(value), name=column)]
    return []
