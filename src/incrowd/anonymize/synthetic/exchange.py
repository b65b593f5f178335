"""Exchanging values between rows, so that tables of two columns come near the model's counts.

Rows drawn down a junction tree meet the table of every clique within a row or so, but a pair of
columns that no clique holds gets the error of a random draw. Two rows that agree on a separator may
exchange all that hangs below it, and two rows with the same group of a column may exchange its
leaf: no clique's table changes. An exchange is made where it lowers the sum, over the tables of two
columns at their leaves, of what a count is more than one row away from the model's. A row more or
less is free: which of many rare combinations have a row stays a matter of chance.

Many exchanges are made at once. Each would lower the sum alone; together they may overshoot. If
they do not lower it together, half of them are tried, and so on: the sum never rises.

Everything here is post-processing of released results: no privacy depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from incrowd.anonymize.synthetic.domain import Columns
from incrowd.anonymize.synthetic.model import Model
from incrowd.anonymize.synthetic.tree import JunctionTree
from incrowd.arrays import Codes, Floats, Places

SWEEPS = 6
_CHUNKS = 16  # of a sweep: rows of a chunk are exchanged at once
_MOST_CELLS = 2**24  # of all tables together
_MOST_WORK = 2**28  # cells that are looked at, in all
_MOST_AT_ONCE = 2**19  # values beside others, in one chunk


def exchange_values(model: Model, rows: Codes, rng: np.random.Generator) -> Codes:
    """Exchange values between rows of leaves drawn from a model; see the module."""
    structure = model.structure
    count, width = rows.shape
    sizes = [column.sizes[0] for column in structure.domain.columns]
    moves = _list_moves(model)
    pairs = sum(len(moved) * (width - len(moved)) for _, moved in moves)
    cells = sum(a * b for a, b in combinations(sizes, 2))
    sweeps = min(SWEEPS, _MOST_WORK // max(2 * count * pairs, 1))
    if not sweeps or cells > _MOST_CELLS:
        return rows
    tables = _ExcessTables(model, rows, sizes)
    for _ in range(sweeps):
        for separator, moved in moves:
            groups = np.zeros(count, dtype=np.int64)
            for column in separator:
                level = structure.levels[column]
                column_groups = structure.domain.columns[column].groups[level][
                    tables.values[:, column]
                ]
                groups = groups * structure.sizes[column] + column_groups
            first, second = _pair_up(groups, rng)
            beside = len(moved) * (width - len(moved))
            step = max(min(-(-len(first) // _CHUNKS), _MOST_AT_ONCE // max(beside, 1)), 1)
            for start in range(0, len(first), step):
                some = slice(start, start + step)
                tables.exchange(first[some], second[some], moved)
    return tables.values.astype(np.int32)


def _list_moves(model: Model) -> list[tuple[Columns, Columns]]:
    """Columns that two rows must agree on, and those whose values they may then exchange."""
    structure = model.structure
    below = _list_below(structure.tree)
    moves = [(structure.tree.separators[at], below[at]) for at in structure.tree.order[1:]]
    leaves = [((x,), (x,)) for x, level in enumerate(structure.levels) if level]
    return [*moves, *leaves]


def _list_below(tree: JunctionTree) -> dict[int, Columns]:
    """For each clique the columns in and below it that its parent does not hold."""
    below: dict[int, set[int]] = {at: set() for at in tree.order}
    for at in reversed(tree.order):
        below[at] |= set(tree.cliques[at]) - set(tree.separators[at])
        if tree.parents[at] >= 0:
            below[tree.parents[at]] |= below[at]
    return {at: tuple(sorted(columns)) for at, columns in below.items()}


def _pair_up(groups: Places, rng: np.random.Generator) -> tuple[Places, Places]:
    """Pair rows of the same group at random; a row of an odd group may stay alone."""
    order = np.lexsort((rng.random(len(groups)), groups))
    sorted_groups = groups[order]
    starts = np.flatnonzero(np.diff(sorted_groups, prepend=-1))
    place = np.arange(len(groups)) - np.repeat(starts, np.diff(np.append(starts, len(groups))))
    left = np.flatnonzero((place[:-1] % 2 == 0) & (sorted_groups[1:] == sorted_groups[:-1]))
    left = rng.permutation(left)
    return order[left], order[left + 1]


class _ExcessTables:
    """The values of all rows, and by how much each count of two columns exceeds the model's.

    The tables stand one after the other in one vector: the cell of values v and w of columns a and
    b is at ``starts[a, b] + v * strides[a, b] + w * strides[b, a]``, whichever comes first.
    """

    def __init__(self, model: Model, rows: Codes, sizes: Sequence[int]) -> None:
        self.values = rows.astype(np.int64)
        width = len(sizes)
        self._starts = np.zeros((width, width), dtype=np.int64)
        self._strides = np.ones((width, width), dtype=np.int64)
        parts, cells = [], 0
        for a, b in combinations(range(width), 2):
            self._starts[a, b] = self._starts[b, a] = cells
            self._strides[a, b] = sizes[b]
            cells += sizes[a] * sizes[b]
            keys = self.values[:, a] * sizes[b] + self.values[:, b]
            counts = np.bincount(keys, minlength=sizes[a] * sizes[b])
            parts.append(counts - model.table((a, b), (0, 0)).ravel() * len(rows))
        self._excess = np.concatenate(parts) if parts else np.zeros(0)
        self._change = np.zeros(cells)
        self._place = np.zeros(cells, dtype=np.int64)

    def exchange(self, first: Places, second: Places, moved: Columns) -> None:
        """Exchange the values of some columns within those pairs of rows where it helps."""
        columns = np.array(moved)
        others = np.setdiff1d(np.arange(self.values.shape[1]), columns)
        starts = self._starts[np.ix_(columns, others)]
        mine, yours = (
            self.values[np.ix_(at, columns)][:, :, None] * self._strides[np.ix_(columns, others)]
            for at in (first, second)
        )
        left, right = (
            self.values[np.ix_(at, others)][:, None, :] * self._strides[np.ix_(others, columns)].T
            + starts
            for at in (first, second)
        )
        leaving, coming = (mine + left, yours + right), (yours + left, mine + right)
        gain = np.zeros(mine.shape)
        for out, into in zip(leaving, coming, strict=True):
            gain += _fall(self._excess[out]) + _fall(-self._excess[into])
        gain *= (mine != yours) & (left != right)
        better = np.flatnonzero(gain.sum(axis=(1, 2)) > 0)
        while len(better) and not self._update(
            np.concatenate([cells[better].ravel() for cells in leaving]),
            np.concatenate([cells[better].ravel() for cells in coming]),
        ):
            better = better[: len(better) // 2]
        left_rows, right_rows = np.ix_(first[better], columns), np.ix_(second[better], columns)
        self.values[left_rows], self.values[right_rows] = (
            self.values[right_rows],
            self.values[left_rows],
        )

    def _update(self, leaving: Places, coming: Places) -> bool:
        """Exchange in the tables, if that lowers what is beyond a row in all of them together."""
        touched = np.concatenate([leaving, coming])
        np.add.at(self._change, leaving, -1.0)
        np.add.at(self._change, coming, 1.0)
        numbers = np.arange(len(touched))
        self._place[touched] = numbers
        cells = touched[self._place[touched] == numbers]  # each of them once
        before, after = self._excess[cells], self._excess[cells] + self._change[cells]
        self._change[cells] = 0.0
        fall = float((_beyond(before) - _beyond(after)).sum())
        if fall <= 0:
            return False
        self._excess[cells] = after
        return True


def _beyond(excess: Floats) -> Floats:
    """Return what is beyond a row of an excess."""
    beyond: Floats = np.maximum(np.abs(excess) - 1, 0)
    return beyond


def _fall(excess: Floats) -> Floats:
    """Return what is beyond a row of an excess, less what is beyond it with a row fewer."""
    return _beyond(excess) - _beyond(excess - 1)
