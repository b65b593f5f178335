"""From a table and a spec to distinct tuples of codes with counts, in one pass."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from incrowd.anonymize.frequency import Frequencies, joined, merged
from incrowd.builders import build, is_open
from incrowd.engine import Table, Tally
from incrowd.hierarchy import Codes, Hierarchy
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

    The table is grouped by its raw values, and each distinct value is coded once.
    """
    names = tuple(columns)
    levels = tuple(levels) if levels is not None else (0,) * len(names)
    tallies = table.tallies(names)
    first = list(itertools.islice(tallies, 2))
    hierarchies = tuple(
        build(column, folder=folder, values=_met(table, name, at, first) if is_open(column) else ())
        for at, (name, column) in enumerate(columns.items())
    )
    frequencies = joined(
        _coded(tally, hierarchies, levels) for tally in itertools.chain(first, tallies)
    )
    return Counted(names, hierarchies, levels, frequencies)


def _met(table: Table, name: str, at: int, first: list[Tally]) -> Sequence[object]:
    """All values of an open column: from the tally if it is the only one."""
    return first[0].values[at] if len(first) == 1 else table.values(name)


def _coded(tally: Tally, hierarchies: Sequence[Hierarchy], levels: Sequence[int]) -> Frequencies:
    columns: list[Codes] = []
    for at, (hierarchy, level) in enumerate(zip(hierarchies, levels, strict=True)):
        coded = hierarchy.groups[level][hierarchy.encode(tally.values[at])]
        columns.append(coded[tally.codes[:, at]])
    return merged(np.column_stack(columns).astype(np.int32), tally.counts)
