"""From a table and a spec to distinct tuples of codes with counts, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import numpy.typing as npt

from incrowd.codes.frequency import Frequencies
from incrowd.codes.hierarchy import Hierarchy
from incrowd.codes.values import canonical, number
from incrowd.engine.table import Coder, Table
from incrowd.spec.build import build, is_open
from incrowd.spec.model import Column


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
    hierarchies = _hierarchies(table, columns, folder)
    coders = {
        name: _coder(hierarchy, level)
        for name, hierarchy, level in zip(names, hierarchies, levels, strict=True)
    }
    return Counted(names, hierarchies, levels, table.count(names, coders))


@dataclass(frozen=True, eq=False)
class Rows:
    """A table as distinct tuples: codes of level 0, then the columns that are kept as they are.

    ``counted`` has the generalised columns alone. ``frequencies`` has all; its i-th tuple
    belongs to tuple ``owner[i]`` of ``counted``. ``kept`` lists the values behind the codes
    of each kept column, in their order.
    """

    counted: Counted
    frequencies: Frequencies
    owner: npt.NDArray[np.int64]
    kept: dict[str, list[object]]


def count_rows(
    table: Table, columns: dict[str, Column], kept: Sequence[str], *, folder: Path = Path()
) -> Rows:
    """Count distinct tuples of generalised and kept columns together, in one pass."""
    hierarchies = _hierarchies(table, columns, folder)
    values = {
        name: sorted({_kept(value): None for value in table.values(name)}, key=_in_order)
        for name in kept
    }
    coders = {
        name: _coder(hierarchy, 0) for name, hierarchy in zip(columns, hierarchies, strict=True)
    }
    for name, listed in values.items():
        coders[name] = _place(listed)
    frequencies = table.count([*columns, *kept], coders)
    codes, width = frequencies.codes, len(columns)
    # Tuples are in order, so those alike in the first columns are neighbours.
    new = np.append(True, (codes[1:, :width] != codes[:-1, :width]).any(axis=1))[: len(codes)]
    owner = np.cumsum(new) - 1
    first = np.flatnonzero(new)
    counts = np.add.reduceat(frequencies.counts, first) if len(first) else frequencies.counts
    distinct = Frequencies(codes[first, :width], counts)
    counted = Counted(tuple(columns), hierarchies, (0,) * width, distinct)
    return Rows(counted, frequencies, owner, values)


def _hierarchies(table: Table, columns: dict[str, Column], folder: Path) -> tuple[Hierarchy, ...]:
    return tuple(
        build(column, folder=folder, values=table.values(name) if is_open(column) else ())
        for name, column in columns.items()
    )


def _in_order(value: object) -> tuple[bool, bool, Decimal, str]:
    """Numbers by size, then text, then null."""
    text = canonical(value)
    found = number(text)
    return (text is None, found is None, found or Decimal(0), text or "")


def _place(values: Sequence[object]) -> Coder:
    places = {value: at for at, value in enumerate(values)}
    # A reader of files may ask for null where there is none.
    return lambda met: np.array([places.get(_kept(value), 0) for value in met], dtype=np.int32)


def _kept(value: object) -> object:
    """A kept value as it is, but for text without characters, which is null everywhere."""
    return None if isinstance(value, str) and not value.strip() else value


def _coder(hierarchy: Hierarchy, level: int) -> Coder:
    return lambda values: hierarchy.groups[level][hierarchy.encode(values)]
