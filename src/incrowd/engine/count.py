"""From a table and a spec to distinct tuples of codes with counts, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from incrowd.anonymize.frequency import Frequencies
from incrowd.builders import build, is_open
from incrowd.engine import Coder, Table
from incrowd.hierarchy import Hierarchy
from incrowd.spec import Column


@dataclass(frozen=True, eq=False)
class Counted:
    """The frequencies of some columns at some levels, and the hierarchies behind the codes."""

    names: tuple[str, ...]
    hierarchies: tuple[Hierarchy, ...]
    levels: tuple[int, ...]
    frequencies: Frequencies

    def by_label(self) -> Counted:
        """With tuples that look the same to a reader counted as one."""
        maps = [h.by_label(level) for h, level in zip(self.hierarchies, self.levels, strict=True)]
        return replace(self, frequencies=self.frequencies.rolled(maps))


def count(
    table: Table,
    columns: dict[str, Column],
    *,
    folder: Path = Path(),
    levels: Sequence[int] | None = None,
) -> Counted:
    """Count distinct tuples of the columns at the given levels (by default the values).

    Each distinct value is coded once, not each row.
    """
    names = tuple(columns)
    levels = tuple(levels) if levels is not None else (0,) * len(names)
    hierarchies = tuple(
        build(column, folder=folder, values=table.values(name) if is_open(column) else ())
        for name, column in columns.items()
    )
    coders = {
        name: _coder(hierarchy, level)
        for name, hierarchy, level in zip(names, hierarchies, levels, strict=True)
    }
    return Counted(names, hierarchies, levels, table.count(names, coders))


def _coder(hierarchy: Hierarchy, level: int) -> Coder:
    return lambda values: hierarchy.groups[level][hierarchy.encode(values)]
