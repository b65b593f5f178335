"""Moving whole counts of one table nearer to its estimate, while some of its margins stay.

A move takes two siblings along each axis that moves, and adds a whole number to the corners of this
box with alternating signs: what it takes from a group it gives to the other. So margins stay that
leave out one of these axes, or have it at a coarser level. Pairs are drawn for all groups at once,
and their boxes do not overlap: each gets the number that brings it nearest, within what keeps its
corners at 0 or more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from incrowd.anonymize.tables.workload import RequestedTable, Workload
from incrowd.arrays import Counts, Floats, Places

_MOST_MOVES = 4_000_000  # boxes of all sweeps through a table
_SWEEPS = 50
_FEWEST_SWEEPS = 4


def refine_table(
    workload: Workload,
    table: RequestedTable,
    counts: Counts,
    estimate: Floats,
    others: Iterable[RequestedTable],
    rng: np.random.Generator,
) -> Counts:
    """Return counts nearer to an estimate, with the same margins at coarser levels.

    Args:
        workload: The columns.
        table: The table.
        counts: Whole counts, from which the moves start.
        estimate: What they should be near.
        others: Tables that must go on agreeing with this one; what they share is a margin of it.
        rng: Draws the pairs.

    """
    groups = _list_groups(workload, table)
    moving = [
        (column, level)
        for column, level, x in zip(table.columns, table.levels, groups, strict=True)
        if x is not None
    ]
    if not moving or not _keeps_margins(moving, others):
        return counts
    cells = counts.ravel().copy()
    excess = cells - estimate.ravel()
    steps = [math.prod(counts.shape[at + 1 :]) for at in range(counts.ndim)]
    for _ in range(min(_SWEEPS, max(_MOST_MOVES // counts.size, _FEWEST_SWEEPS))):
        sides = [
            step * (_draw_pairs(x, rng) if x is not None else np.arange(size)[None, :])
            for x, size, step in zip(groups, counts.shape, steps, strict=True)
        ]
        if all(x.shape[1] for x in sides):
            _move(cells, excess, sides)
    return cells.reshape(counts.shape)


def _list_groups(workload: Workload, table: RequestedTable) -> list[Places | None]:
    """Return for each axis the groups within which pairs are drawn, None if it does not move.

    Pairs are siblings, of one parent at the next level: that keeps all margins at coarser levels.
    """
    groups: list[Places | None] = []
    for column, level in zip(table.columns, table.levels, strict=True):
        axis = workload.axes[column]
        parents = axis.links[level].parents.astype(np.int64)
        groups.append(parents if axis.carries(level) else None)
    return groups


def _keeps_margins(moving: Sequence[tuple[int, int]], others: Iterable[RequestedTable]) -> bool:
    """Whether each other table leaves an axis that moves out, or has it at a coarser level."""
    columns = {column for column, _ in moving}
    for other in others:
        if columns <= set(other.columns):
            levels = dict(zip(other.columns, other.levels, strict=True))
            if all(levels[column] <= level for column, level in moving):
                return False
    return True


def _draw_pairs(groups: Places, rng: np.random.Generator) -> Places:
    """Return the two members of each pair, drawn within groups."""
    order = rng.permutation(len(groups))
    if not groups.any():
        half = len(order) // 2
        return order[: 2 * half].reshape(2, half)
    order = order[np.argsort(groups[order], kind="stable")]
    by_group = groups[order]
    first = np.searchsorted(by_group, by_group)
    is_left = (np.arange(len(order)) - first) % 2 == 0
    left = np.flatnonzero(is_left[:-1] & (by_group[1:] == by_group[:-1]))
    return np.stack([order[left], order[left + 1]])


def _move(cells: Counts, excess: Floats, sides: Sequence[Places]) -> None:
    """Move each box to its best whole number. ``sides`` are its places along each axis."""
    number_of_axes = len(sides)
    places = np.zeros((1,) * (2 * number_of_axes), dtype=np.int64)
    signs = np.ones((1,) * number_of_axes)
    for at, side in enumerate(sides):
        shape = [1] * (2 * number_of_axes)
        shape[at], shape[number_of_axes + at] = side.shape
        places = places + side.reshape(shape)
        alternating = np.array([1.0, -1.0])[: len(side)]
        signs = signs * alternating.reshape([-1 if x == at else 1 for x in range(number_of_axes)])
    sign = signs.ravel()
    places = places.reshape(len(sign), -1)
    counts, differences = cells[places], excess[places]
    number = np.rint(sign @ differences / -len(sign)).astype(np.int64)
    np.maximum(number, -counts[sign > 0].min(axis=0), out=number)
    np.minimum(number, counts[sign < 0].min(axis=0), out=number)
    change = sign.astype(np.int64)[:, None] * number
    cells[places] = counts + change
    excess[places] = differences + change
