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


def hidden(path: Path) -> list[str]:
    """What a file holds besides its rows, in words; raises if it is not even safe to read."""
    if path.suffix == ".csv":
        with tempfile.TemporaryDirectory(prefix="incrowd-") as folder:
            again = Path(folder) / path.name
            open_released(path).write(again)
            same = filecmp.cmp(again, path, shallow=False)
        return [] if same else [f"The file '{path.name}' is not written as a release is."]
    check_layout(path)
    entries: set[tuple[str, object]] = set()
    used: set[tuple[str, object]] = set()
    for chunk in chunks(path):
        if chunk.odd:
            what = "numbers that are none, or a negative zero"
            return [f"The file '{path.name}' holds {what}, in '{chunk.column}'."]
        if len(set(chunk.entries)) < len(chunk.entries):
            return [f"The file '{path.name}' holds a value of '{chunk.column}' twice."]
        entries |= {(chunk.column, value) for value in chunk.entries}
        used |= {(chunk.column, value) for value in chunk.used}
    if entries - used:
        column, value = min(entries - used, key=str)
        return [f"The file '{path.name}' holds '{value}' in '{column}', which no row has."]
    return []
