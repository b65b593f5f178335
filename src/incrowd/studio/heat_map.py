"""A released table of counts as a heat map: two columns against each other, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from incrowd.release.tables_column import TabulatedColumn
from incrowd.release.tables_read import PublishedCells

SHADES = 10
_MOST_GROUPS = 40  # along an axis, of the level that is shown first


@dataclass(frozen=True)
class HeatCell:
    """One cell: its count, the interval that holds the true count with 95 %, and its shade.

    ``count`` is None where it is hidden. ``is_faint`` says that the true count may well be 0.
    """

    count: int | None
    low: float
    high: float
    shade: int
    is_faint: bool


@dataclass(frozen=True)
class HeatAxis:
    """A column along an axis: the levels that it may have, the one that it has, and its labels."""

    name: str
    levels: tuple[int, ...]
    level: int
    labels: tuple[str, ...]


@dataclass(frozen=True)
class HeatFilter:
    """A further column of the table: its lines, and the one that is shown."""

    name: str
    lines: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class HeatMap:
    """A table along one or two axes; further columns are held at one line each."""

    axes: tuple[HeatAxis, ...]
    filters: tuple[HeatFilter, ...]
    cells: tuple[tuple[HeatCell, ...], ...]
    most: int


def draw_heat_map(cells: PublishedCells, chosen: Mapping[str, str]) -> HeatMap:
    """Draw a released table.

    Args:
        cells: The figures of the table.
        chosen: The level of each axis, ``level-0`` and ``level-1``, and the line of each further
            column, ``line-2`` and so on, as an address has them; what does not exist is ignored.

    """
    shape = tuple(map(len, cells.lines))
    count, low, high, hidden = (
        np.asarray(figures).reshape(shape)
        for figures in (cells.count, cells.low, cells.high, cells.is_hidden)
    )
    axes, places = [], []
    for axis, column in enumerate(cells.columns[:2]):
        level = _choose_level(cells, axis, chosen.get(f"level-{axis}", ""))
        lines = cells.lines[axis].find_level(level)
        labels = tuple(_name_label(cells.lines[axis].labels[at]) for at in lines.tolist())
        axes.append(HeatAxis(column.name, _list_levels(cells, axis), level, labels))
        places.append(lines)
    filters = []
    for axis, column in enumerate(cells.columns[2:], 2):
        line = _choose_line(cells, axis, chosen.get(f"line-{axis}", ""))
        names = tuple(_name_line(cells, axis, at, column) for at in range(shape[axis]))
        filters.append(HeatFilter(column.name, names, line))
        places.append(np.array([line]))
    rows, columns = len(places[0]), len(places[1]) if len(axes) > 1 else 1
    counts, lows, highs, is_hidden = (
        figures[np.ix_(*places)].reshape(rows, columns) for figures in (count, low, high, hidden)
    )
    most = int(np.where(is_hidden == 0, counts, 0).max(initial=0))
    return HeatMap(
        tuple(axes), tuple(filters),
        tuple(
            tuple(
                _make_cell(
                    None if is_hidden[row, at] else int(counts[row, at]),
                    float(lows[row, at]), float(highs[row, at]), most,
                )
                for at in range(columns)
            )
            for row in range(rows)
        ),
        most,
    )  # fmt: skip


def _make_cell(count: int | None, low: float, high: float, most: int) -> HeatCell:
    if count is None:
        return HeatCell(None, 0.0, 0.0, 0, is_faint=True)
    shade = min(int(SHADES * math.sqrt(count / most)), SHADES - 1) if most else 0
    return HeatCell(count, max(low, 0.0), max(high, 0.0), shade, is_faint=low <= 0)


def _list_levels(cells: PublishedCells, axis: int) -> tuple[int, ...]:
    return tuple(np.unique(cells.lines[axis].levels).tolist())


def _choose_level(cells: PublishedCells, axis: int, text: str) -> int:
    """Return the level that is asked for, or the finest whose groups are not too many."""
    levels = _list_levels(cells, axis)
    if text.isdecimal() and len(text) < 6 and int(text) in levels:
        return int(text)
    few = (level for level in levels if len(cells.lines[axis].find_level(level)) <= _MOST_GROUPS)
    return next(few, levels[-1])


def _choose_line(cells: PublishedCells, axis: int, text: str) -> int:
    """Return the line that is asked for, or the total, or the first."""
    lines, column = cells.lines[axis], cells.columns[axis]
    if text.isdecimal() and len(text) < 9 and int(text) < len(lines):
        return int(text)
    total = lines.find_level(column.root)
    return int(total[0]) if len(total) else 0


def _name_line(cells: PublishedCells, axis: int, line: int, column: TabulatedColumn) -> str:
    """Return the label of a line, set in below what it is a part of."""
    lines = cells.lines[axis]
    depth = int(lines.levels.max() - lines.levels[line]) if column.root else 0
    return "\u2003" * depth + _name_label(lines.labels[line])


def _name_label(label: str | None) -> str:
    return "missing" if label is None else label
