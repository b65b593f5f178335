"""Made-up rows whose tables come near to targets: rows exchange a value for another.

The distance is the sum over targets of weight times squared difference. A row that changes its
value of one column moves its people from a cell to another, in every target with this column. Many
rows are tried at once, each with one other value; those that would bring the distance down move.
Pairs of rows are tried as well, each with the value of the other: that leaves single columns as
they are, which may be near already.
Together they may go too far: along the way that they go the distance is a parabola, and only the
share of them that ends at its lowest point moves.

What is counted from rows adds up, is whole, and is not negative.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.tables.workload import Columns, Levels, Workload
from incrowd.arrays import Codes, Counts, Floats, Places

_MOST_WORK = 1_200_000_000  # places looked up before the search ends, however far it is
_FEWEST = 2_000  # rows tried at once
_LEAST_GAIN = 0.005  # of the distance: a round that gains less is the last
_NEAR = 0.02  # mean squared differences in multiples of the noise: nearer is of no use
_DENSE = 8  # a table of so many times more cells than moves is changed place by place
_MARKED = 32  # and of so many times more, these places are found by sorting


@dataclass(frozen=True, eq=False)
class TargetTable:
    """A table that counts should be near.

    ``maps`` lead from codes of rows to its groups; ``weight`` is 1 over the mean variance, and
    ``relevance``, up to 1, says how much the target counts.
    """

    columns: Columns
    levels: Levels
    maps: tuple[Codes, ...]
    estimate: Floats
    weight: float
    relevance: float = 1.0

    @property
    def importance(self) -> float:
        """The weight that counts."""
        return self.weight * self.relevance


def find_finest_levels(workload: Workload) -> Levels:
    """Return the finest level of each column that a table asks for; the root where none does."""
    finest = [axis.root for axis in workload.axes]
    for table in workload.tables:
        for column, level in zip(table.columns, table.levels, strict=True):
            finest[column] = min(finest[column], level)
    return tuple(finest)


@dataclass(frozen=True, eq=False)
class _Excess:
    """A target, and by how much the rows' counts exceed it, cell by cell."""

    target: TargetTable
    places: dict[int, Places]  # by column: what each code adds to a place in ``cells``
    steps: dict[int, int]  # the same of columns in which each code adds as much again
    cells: npt.NDArray[np.float32]

    def locate(self, column: int, codes: Places) -> Places:
        """Return what codes of a column add to a place."""
        step = self.steps.get(column)
        return self.places[column][codes] if step is None else codes * step


class RowExchange:
    """Rows of codes at the finest level asked for, how many people each stands for, and targets."""

    def __init__(
        self,
        workload: Workload,
        codes: Sequence[Codes],
        weights: Counts,
        targets: Sequence[TargetTable],
    ) -> None:
        self._workload = workload
        self._finest = find_finest_levels(workload)
        # The codes of a row lie together: many rows are looked up at a time, in any order.
        self._rows = np.zeros((len(weights), len(codes)), dtype=np.int32)
        for column, values in enumerate(codes):
            self._rows[:, column] = values
        self.weights = weights
        self._is_light = bool((weights == 1).all())
        self._people = weights.astype(np.float32)
        self._excess = [self._subtract(target) for target in targets if target.columns]
        self._work = 0

    def find_places(self, columns: Columns, levels: Levels) -> Places:
        """Return the cell of each row in the table of some columns at some levels."""
        places = np.zeros(len(self.weights), dtype=np.int64)
        for column, level in zip(columns, levels, strict=True):
            axis = self._workload.axes[column]
            places *= axis.sizes[level]
            places += axis.ancestors(self._finest[column], level)[self._rows[:, column]]
        return places

    def count(self, columns: Columns, levels: Levels, numbers: Counts | None = None) -> Counts:
        """Return the counts of some columns at some levels, or sums of other whole numbers."""
        shape = self._workload.shape(columns, levels)
        places = self.find_places(columns, levels)
        if numbers is None and self._is_light:
            return np.bincount(places, minlength=math.prod(shape)).astype(np.int64).reshape(shape)
        numbers = self.weights if numbers is None else numbers
        sums = np.zeros(math.prod(shape), dtype=np.int64)
        np.add.at(sums, places, numbers)
        return sums.reshape(shape)

    def _subtract(self, target: TargetTable) -> _Excess:
        """Return how much the rows exceed a target."""
        shape = target.estimate.shape
        places = {
            column: groups.astype(np.int64) * math.prod(shape[at + 1 :])
            for at, (column, groups) in enumerate(zip(target.columns, target.maps, strict=True))
        }
        steps = {
            column: int(x[1])
            for column, x in places.items()
            if len(x) > 1 and np.array_equal(x, np.arange(len(x)) * x[1]) and x[1]
        }
        cells = self.count(target.columns, target.levels) - target.estimate
        return _Excess(target, places, steps, cells.ravel().astype(np.float32))

    def run(self, rng: np.random.Generator) -> None:
        """Exchange values until a round gains little, or the work is done."""
        columns = [
            x for x, axis in enumerate(self._workload.axes)
            if axis.sizes[self._finest[x]] > 1 and any(x in y.target.columns for y in self._excess)
        ]  # fmt: skip
        if not columns or not len(self.weights):
            return
        batches = dict.fromkeys(columns, max(len(self.weights) // 16, _FEWEST))
        near = _NEAR * sum(len(x.cells) * x.target.relevance for x in self._excess)
        distance, gain = self._measure_distance(), math.inf
        while self._work < _MOST_WORK and distance > near and gain > _LEAST_GAIN * distance:
            gain = 0.0
            for column in rng.permutation(columns).tolist():
                tried = 0
                while tried < len(self.weights) and self._work < _MOST_WORK:
                    gained, share = self._exchange(column, batches[column], rng)
                    gain += gained + self._swap(column, batches[column] // 2, rng)[0]
                    tried += batches[column]
                    size = batches[column] * (1.3 if share >= 1 else 0.7)
                    batches[column] = int(min(max(size, _FEWEST), len(self.weights)))
            distance -= gain

    def _measure_distance(self) -> float:
        """Return the distance from all targets."""
        return sum(x.target.importance * float(x.cells @ x.cells) for x in self._excess)

    def _exchange(self, column: int, size: int, rng: np.random.Generator) -> tuple[float, float]:
        """Offer other values of a column to some rows; return what is gained, by which share."""
        rows = rng.integers(0, len(self.weights), size)
        others = rng.integers(0, len(self.weights), size)
        new = self._rows[others, column].astype(np.int64)
        number = self._workload.axes[column].sizes[self._finest[column]]
        new[: size // 4] = rng.integers(0, number, size // 4)
        differs = new != self._rows[rows, column]
        rows, new = rows[differs], new[differs]
        people = self._people[rows]
        gains = np.zeros(len(rows), dtype=np.float32)
        for excess, sources, goals in self._find_places(column, rows, new):
            step = excess.cells[sources] - excess.cells[goals]
            step -= people if column in excess.steps else people * (sources != goals)
            step *= np.float32(excess.target.importance)
            gains += step
            self._work += len(rows)
        chosen = np.flatnonzero(gains > 0)
        # A row that was drawn twice moves once.
        rows, first = np.unique(rows[chosen], return_index=True)
        new = new[chosen][first]
        if not len(rows):
            return 0.0, 1.0
        order = rng.permutation(len(rows))
        return self._move(column, rows[order], new[order])

    def _swap(self, column: int, pairs: int, rng: np.random.Generator) -> tuple[float, float]:
        """Let pairs of rows swap values of a column; return what is gained, by which share."""
        rows = rng.permutation(np.unique(rng.integers(0, len(self.weights), 2 * pairs)))
        both = rows[: len(rows) // 2 * 2].reshape(-1, 2)
        codes = self._rows[both, column]
        differs = codes[:, 0] != codes[:, 1]
        both = both[differs]
        new = codes[differs][:, ::-1].astype(np.int64).ravel()
        people = self._people[both]
        gains = np.zeros(len(both), dtype=np.float32)
        # Sums of two, which numpy adds up far more slowly along an axis.
        of_both = people[:, 0] ** 2 + people[:, 1] ** 2
        of_difference = (people[:, 0] - people[:, 1]) ** 2
        for excess, *places in self._find_places(column, both.ravel(), new):
            sources, goals = (x.reshape(-1, 2) for x in places)
            linear = people * (excess.cells[sources] - excess.cells[goals])
            squares = np.where(sources[:, 0] == goals[:, 1], of_difference, of_both)
            squares[sources[:, 0] == goals[:, 0]] = 0
            gains += np.float32(excess.target.importance) * (linear[:, 0] + linear[:, 1] - squares)
            self._work += 2 * len(both)
        chosen = gains > 0
        if not chosen.any():
            return 0.0, 1.0
        new = new.reshape(-1, 2)[chosen]
        return self._move(column, both[chosen].ravel(), new.ravel(), together=2)

    def _find_places(
        self, column: int, rows: Places, new: Places
    ) -> Iterator[tuple[_Excess, Places, Places]]:
        """Yield each target of a column with the cells that rows would leave and go to."""
        moved = np.take(self._rows, rows, axis=0)
        old = moved[:, column].astype(np.int64)
        codes: dict[int, Places] = {}
        for excess in self._excess:
            if column not in excess.places:
                continue
            sources, goals = excess.locate(column, old), excess.locate(column, new)
            for other in excess.places:
                if other != column:
                    if other not in codes:
                        codes[other] = moved[:, other].astype(np.int64)
                    base = excess.locate(other, codes[other])
                    sources += base
                    goals += base
            yield excess, sources, goals

    def _move(
        self, column: int, rows: Places, new: Places, together: int = 1
    ) -> tuple[float, float]:
        """Move the share of the rows that gains most; return what is gained, and the share."""
        share = 1.0
        while True:
            changes = [
                (excess, *_sum_changes(sources, goals, self._people[rows], len(excess.cells)))
                for excess, sources, goals in self._find_places(column, rows, new)
            ]
            slope = curve = 0.0
            for excess, places, numbers in changes:
                slope -= 2 * excess.target.importance * float(excess.cells[places] @ numbers)
                curve += excess.target.importance * float(numbers @ numbers)
            best = slope / (2 * curve) if curve else 1.0
            if best >= 0.75:
                break
            if best <= 0 or len(rows) == together:
                return 0.0, 0.0
            share *= best
            fewer = max(int(len(rows) * best) // together, 1) * together
            rows, new = rows[:fewer], new[:fewer]
        for excess, places, numbers in changes:
            excess.cells[places] += numbers
        self._rows[rows, column] = new
        return slope - curve, share


def _sum_changes(
    sources: Places, goals: Places, people: npt.NDArray[np.float32], size: int
) -> tuple[Places | slice, npt.NDArray[np.float32]]:
    """Return the cells that change, and by how much."""
    if size <= _DENSE * len(sources):
        change = np.bincount(goals, people, size) - np.bincount(sources, people, size)
        return slice(None), change.astype(np.float32)
    both = np.concatenate([sources, goals])
    if size <= _MARKED * len(sources):
        is_changed = np.zeros(size, dtype=bool)
        is_changed[both] = True
        places = np.flatnonzero(is_changed)
        ranks = np.empty(size, dtype=np.int64)
        ranks[places] = np.arange(len(places))
        inverse = ranks[both]
    else:
        places, inverse = np.unique(both, return_inverse=True)
    change = np.bincount(inverse.ravel(), np.concatenate([-people, people]), len(places))
    return places, change.astype(np.float32)
