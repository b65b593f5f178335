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
from typing import TypeAlias

import numpy as np

from incrowd.anonymize.synthetic.domain import Columns
from incrowd.anonymize.synthetic.model import Model
from incrowd.anonymize.synthetic.tree import JunctionTree
from incrowd.arrays import Codes, Floats, Places

# A table's excess, the cells that rows leave, and those that they come to.
_Touched: TypeAlias = tuple[Floats, list[Places], list[Places]]

SWEEPS = 6
_CHUNKS = 16  # of a sweep: rows of a chunk are exchanged at once
_MOST_CELLS = 2**24  # of all tables together
_MOST_WORK = 2**28  # cells that are looked at, in all


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
                own = structure.domain.columns[column].groups[level][tables.values[column]]
                groups = groups * structure.sizes[column] + own
            first, second = _pair_up(groups, rng)
            step = max(-(-len(first) // _CHUNKS), 1)
            for start in range(0, len(first), step):
                some = slice(start, start + step)
                tables.exchange(first[some], second[some], moved)
    return np.column_stack(tables.values).astype(np.int32)


def _list_moves(model: Model) -> list[tuple[Columns, Columns]]:
    """Columns that two rows must agree on, and those whose values they may then exchange."""
    structure = model.structure
    below = _list_below(structure.tree)
    moves = [(structure.tree.separators[at], below[at]) for at in structure.tree.order[1:]]
    leaves = [((x,), (x,)) for x, level in enumerate(structure.levels) if level]
    return [*moves, *leaves]


def _list_below(tree: JunctionTree) -> dict[int, Columns]:
    """For each clique the columns in and below it that its parent does not hold."""
    result: dict[int, set[int]] = {at: set() for at in tree.order}
    for at in reversed(tree.order):
        result[at] |= set(tree.cliques[at]) - set(tree.separators[at])
        if tree.parents[at] >= 0:
            result[tree.parents[at]] |= result[at]
    return {at: tuple(sorted(columns)) for at, columns in result.items()}


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
    """The values of all rows, and by how much each count of two columns exceeds the model's."""

    def __init__(self, model: Model, rows: Codes, sizes: Sequence[int]) -> None:
        self.values = [part.astype(np.int64) for part in rows.T]
        self._sizes = sizes
        self._excess: dict[tuple[int, int], Floats] = {}
        for a, b in combinations(range(len(sizes)), 2):
            counts = np.bincount(self._find_cells(a, b), minlength=sizes[a] * sizes[b])
            self._excess[a, b] = counts - model.table((a, b), (0, 0)).ravel() * len(rows)

    def _find_cells(self, a: int, b: int) -> Places:
        places: Places = self.values[a] * self._sizes[b] + self.values[b]
        return places

    def exchange(self, first: Places, second: Places, moved: Columns) -> None:
        """Exchange the values of some columns within those pairs of rows where it helps."""
        gain = np.zeros(len(first))
        touched: list[_Touched] = []
        for column in moved:
            mine, yours = self.values[column][first], self.values[column][second]
            for other in range(len(self._sizes)):
                if other in moved:
                    continue
                beside = self.values[other][first], self.values[other][second]
                low, high = min(column, other), max(column, other)
                factors = (self._sizes[high], 1) if column == low else (1, self._sizes[high])
                left = [value * factors[0] for value in (mine, yours)]
                right = [value * factors[1] for value in beside]
                excess = self._excess[low, high]
                leaving = [left[0] + right[0], left[1] + right[1]]
                coming = [left[1] + right[0], left[0] + right[1]]
                change = np.zeros(len(first))
                for out, into in zip(leaving, coming, strict=True):
                    change += _fall(excess[out]) + _fall(-excess[into])
                gain += np.where((mine != yours) & (beside[0] != beside[1]), change, 0.0)
                touched.append((excess, leaving, coming))
        better = np.flatnonzero(gain > 0)
        while len(better) and not _update(touched, better):
            better = better[: len(better) // 2]
        for column in moved:
            own = self.values[column]
            own[first[better]], own[second[better]] = own[second[better]], own[first[better]]


def _update(touched: Sequence[_Touched], better: Places) -> bool:
    """Exchange in the tables, if that lowers what is beyond a row in all of them together."""
    fall, changes = 0.0, []
    for excess, leaving, coming in touched:
        out = np.concatenate([at[better] for at in leaving])
        into = np.concatenate([at[better] for at in coming])
        cells, places = np.unique(np.concatenate([out, into]), return_inverse=True)
        weights = np.repeat([-1.0, 1.0], len(out))
        after = excess[cells] + np.bincount(places, weights, minlength=len(cells))
        fall += float((_beyond(excess[cells]) - _beyond(after)).sum())
        changes.append((excess, cells, after))
    if fall <= 0:
        return False
    for excess, cells, after in changes:
        excess[cells] = after
    return True


def _beyond(excess: Floats) -> Floats:
    """Return what is beyond a row of an excess."""
    result: Floats = np.maximum(np.abs(excess) - 1, 0)
    return result


def _fall(excess: Floats) -> Floats:
    """Return what is beyond a row of an excess, less what is beyond it with a row fewer."""
    return _beyond(excess) - _beyond(excess - 1)
