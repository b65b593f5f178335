"""Made-up rows whose tables come near to targets: values of rows are exchanged for better ones.

The distance is the sum over targets of weight times squared difference. A row that changes its
value of one column moves one person from a cell to another, in every target with this column. For a
batch of rows the gain of every value is found at once; rows that gain take their best value. Moves
of one batch are looked at apart from each other, so together they may go too far: the distance is
computed again, and a batch that has made it larger is taken back.

What is counted from rows adds up, is whole, and is not negative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.tables.workload import Columns, Levels, Workload
from incrowd.arrays import Codes, Counts, Floats, Places

_WORK = 1_500_000_000  # numbers looked up before the search ends, however far it is
_BATCH = 16_384
_FEWEST = 1 / 2_000  # of all rows: if fewer change in a round, the search ends


@dataclass(frozen=True, eq=False)
class TargetTable:
    """A table that counts should be near: ``maps`` lead from codes of rows to its groups."""

    columns: Columns
    levels: Levels
    maps: tuple[Codes, ...]
    estimate: Floats
    weight: float


def find_finest_levels(workload: Workload) -> Levels:
    """Return the finest level of each column that a table asks for; the root where none does."""
    finest = [axis.root for axis in workload.axes]
    for table in workload.tables:
        for column, level in zip(table.columns, table.levels, strict=True):
            finest[column] = min(finest[column], level)
    return tuple(finest)


class RowExchange:
    """Rows of codes at the finest level asked for, how many people each stands for, and targets."""

    def __init__(
        self, workload: Workload, codes: Codes, weights: Counts, targets: Sequence[TargetTable]
    ) -> None:
        self._workload = workload
        self._finest = find_finest_levels(workload)
        self.codes = codes
        self._weights = weights
        self._targets = [x for x in targets if x.columns]
        self._excess = [
            self._count(x.columns, x.maps, x.estimate.shape) - x.estimate for x in self._targets
        ]
        self._work = 0

    def count(self, columns: Columns, levels: Levels) -> Counts:
        """Return the whole counts of some columns at some levels."""
        maps = tuple(
            self._workload.axes[x].ancestors(self._finest[x], level)
            for x, level in zip(columns, levels, strict=True)
        )
        return self._count(columns, maps, self._workload.shape(columns, levels))

    def _count(self, columns: Columns, maps: Sequence[Codes], shape: tuple[int, ...]) -> Counts:
        places = np.zeros(len(self.codes), dtype=np.int64)
        for column, groups, size in zip(columns, maps, shape, strict=True):
            places *= size
            places += groups[self.codes[:, column]]
        sums = np.bincount(places, self._weights, minlength=math.prod(shape))
        counts: Counts = np.rint(sums).astype(np.int64).reshape(shape)
        return counts

    def run(self, rng: np.random.Generator) -> None:
        """Exchange values until hardly a row changes, or the work is done."""
        columns = [
            x for x, axis in enumerate(self._workload.axes)
            if axis.sizes[self._finest[x]] > 1 and any(x in y.columns for y in self._targets)
        ]  # fmt: skip
        shares = dict.fromkeys(columns, 0.5)
        changed = len(self.codes)
        while columns and self._work < _WORK and changed > len(self.codes) * _FEWEST:
            changed = 0
            order = rng.permutation(len(self.codes))
            for start in range(0, len(order), _BATCH):
                rows = order[start : start + _BATCH]
                for column in rng.permutation(columns).tolist():
                    moved = self._exchange(column, rows, shares[column], rng)
                    shares[column] = min(shares[column] * (1.1 if moved >= 0 else 0.5), 1.0)
                    changed += max(moved, 0)
                if self._work >= _WORK:
                    break

    def _exchange(self, column: int, rows: Places, share: float, rng: np.random.Generator) -> int:
        """Give rows better values of a column; return how many changed, -1 if none should."""
        members = [x for x, target in enumerate(self._targets) if column in target.columns]
        old = self.codes[rows, column]
        costs, step = self._compute_costs(column, rows, members)
        best = costs.argmin(axis=1).astype(np.int32)
        every = np.arange(len(rows))
        gains = costs[every, old] - costs[every, best] - step * self._weights[rows]
        picked = np.flatnonzero((gains > 0) & (rng.random(len(rows)) < share))
        if not len(picked):
            return 0
        rows, old, new = rows[picked], old[picked], best[picked]
        before = self._move(column, rows, old, new, members)
        if before <= 0:
            return len(rows)
        self._move(column, rows, new, old, members)
        return -1

    def _compute_costs(
        self, column: int, rows: Places, members: Sequence[int]
    ) -> tuple[npt.NDArray[np.float32], float]:
        """Return what each value costs each row, and what a move costs besides, per person."""
        size = self._workload.axes[column].sizes[self._finest[column]]
        costs = np.zeros((len(rows), size), dtype=np.float32)
        step = 0.0
        for x in members:
            target, excess = self._targets[x], self._excess[x]
            at = target.columns.index(column)
            others = np.zeros(len(rows), dtype=np.int64)
            for axis, (name, groups) in enumerate(zip(target.columns, target.maps, strict=True)):
                if axis != at:
                    others *= excess.shape[axis]
                    others += groups[self.codes[rows, name]]
            slopes = np.moveaxis(excess, at, -1).reshape(-1, excess.shape[at])
            if len(slopes) > 4 * len(rows):
                costs += slopes[others][:, target.maps[at]] * np.float32(target.weight)
            else:
                slopes = (slopes[:, target.maps[at]] * target.weight).astype(np.float32)
                costs += slopes[others]
            step += target.weight
        self._work += costs.size * len(members)
        return costs, step

    def _move(
        self, column: int, rows: Places, old: Codes, new: Codes, members: Sequence[int]
    ) -> float:
        """Change values, and return by how much the distance grows."""
        growth = 0.0
        weights = self._weights[rows].astype(np.float64)
        for x in members:
            target, excess = self._targets[x], self._excess[x].reshape(-1)
            sources = np.zeros(len(rows), dtype=np.int64)
            goals = np.zeros(len(rows), dtype=np.int64)
            for name, groups, size in zip(
                target.columns, target.maps, self._excess[x].shape, strict=True
            ):
                codes = groups[self.codes[rows, name]]
                for places, value in ((sources, old), (goals, new)):
                    places *= size
                    places += groups[value] if name == column else codes
            touched = np.unique(np.concatenate([sources, goals]))
            before = float((excess[touched] ** 2).sum())
            np.subtract.at(excess, sources, weights)
            np.add.at(excess, goals, weights)
            growth += target.weight * (float((excess[touched] ** 2).sum()) - before)
        self.codes[rows, column] = new
        return growth
