"""How far synthetic rows are from their table: shares of values, pairs and triples, equal rows.

For the curator alone: no figure here is covered by the guarantee.

Distances are total variations: half the sum of the differences of shares, from 0 to 1. They are
taken over all pairs and triples of columns, or over so many at random as ``MOST_PAIRS`` and
``MOST_TRIPLES`` say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import comb, prod
from typing import Any

import numpy as np

from incrowd.arrays import Codes, Floats
from incrowd.codes.counted_table import CountedTable, PublishedTable
from incrowd.codes.frequency import Frequencies, number_tuples
from incrowd.measure.evaluation import Evaluation
from incrowd.measure.label_evaluation import build_pair, locate_tuples, measure_utility
from incrowd.measure.subgroups import Subgroup, group_by_labels
from incrowd.measure.utility import TablePair

MOST_PAIRS = 500
MOST_TRIPLES = 200
RARE = 100  # rows: of fewer, a share is not judged by value
_MOST_CELLS = 1 << 22  # of a pair of columns; larger ones are not compared
_MOST_TRIPLE_CELLS = 1 << 20
_MOST_VALUES = 20
_APPLICABLE = (
    "rows_original", "rows_released", "distance_by_column", "distance_by_pair",
    "distance_by_triple", "pairs", "triples", "values", "cells", "subgroup_distances",
    "subgroups", "equal_rows", "others", "utility", "findings", "target", "apart_from_target",
)  # fmt: skip
_MOST_PAIR_CELLS = 300
_OF_A_PAIR = 5  # cells that one pair of columns contributes to the list


@dataclass(frozen=True)
class PairDistance:
    """The total variation distance between the shares of two columns' pairs, 0 to 1."""

    first: str
    second: str
    distance: float


@dataclass(frozen=True)
class TripleDistance:
    """The total variation distance between the shares of three columns' triples, 0 to 1."""

    columns: tuple[str, str, str]
    distance: float


@dataclass(frozen=True)
class ValueShare:
    """The share of one value of a column, in the table and in the rows."""

    column: str
    value: str | None
    original: float
    released: float

    @property
    def error(self) -> float:
        """The difference."""
        return abs(self.released - self.original)


@dataclass(frozen=True)
class CellShare:
    """The share of a pair of values of two columns, in the table and in the rows."""

    columns: tuple[str, str]
    values: tuple[str | None, str | None]
    original: float
    released: float

    @property
    def error(self) -> float:
        """The difference."""
        return abs(self.released - self.original)


@dataclass(frozen=True)
class SubgroupDistance:
    """How well the rows of one value describe its people, by all other columns.

    ``distance`` is the mean, over the other columns, of the distance between the shares among the
    people of the value and those among its synthetic rows.
    """

    column: str
    value: str | None
    rows: int
    released: int
    distance: float


@dataclass(frozen=True)
class EqualRows:
    """Published rows that are equal to some row of the table, and how many chance explains.

    ``expected`` is the number of published rows that are equal to some row of a second table,
    drawn from the same model: nobody of the first is in that. It is None where the model is not
    known. ``unique`` are those that equal the only row of its kind in the table.
    """

    equal: int
    expected: int | None
    unique: int
    rows: int


@dataclass(frozen=True)
class MethodOutcome:
    """What a method keeps of the table: rows, columns that are not suppressed, shares of pairs.

    ``rows`` is the share of the rows that are published, ``pair_distance`` the mean distance of
    pairs of columns at the finest values, where a reader takes values to be uniform within a label.
    ``problem`` says why nothing was measured. Levels that are not ``searched`` privately were
    chosen by the table, which keeps more than a release may.
    """

    method: str
    columns: int
    informative: int | None = None
    rows: float | None = None
    pair_distance: float | None = None
    suppressed: tuple[str, ...] = ()
    problem: str | None = None
    searched: bool = True


@dataclass(frozen=True, kw_only=True)
class SyntheticEvaluation(Evaluation):
    """What synthetic rows keep of their table, by column, pair, triple, value and subgroup.

    ``values`` are the values of at least 100 people whose shares differ most, in all and in each
    column, ``cells`` such pairs of values, ``subgroup_distances`` the values whose people are
    described worst. ``pairs`` and ``triples`` are how many there are; those that were compared are
    listed. ``others`` is what other methods would have kept of the same table.
    ``apart_from_target`` are the columns that no measured table has together with the target.
    """

    distance_by_column: dict[str, float]
    distance_by_pair: list[PairDistance]
    distance_by_triple: list[TripleDistance] = field(default_factory=list)
    pairs: int = 0
    triples: int = 0
    values: list[ValueShare]
    cells: list[CellShare] = field(default_factory=list)
    subgroup_distances: list[SubgroupDistance] = field(default_factory=list)
    equal_rows: EqualRows
    others: list[MethodOutcome] = field(default_factory=list)
    apart_from_target: tuple[str, ...] = ()

    @property
    def target_advice(self) -> str:
        """The columns that were not measured with the target, and what to add; else nothing."""
        if not self.apart_from_target:
            return ""
        pair = f"[{self.apart_from_target[0]}, {self.target}]"
        return (
            f"Not measured with the target: {', '.join(self.apart_from_target)}. Add `tables: "
            f"[{pair}]`."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the evaluation as plain values, for JSON, without what does not apply to it."""
        every = super().as_dict()
        means = ("mean_distance", "mean_pair_distance", "mean_triple_distance", "largest_error")
        return {name: every[name] for name in _APPLICABLE} | {x: getattr(self, x) for x in means}

    @property
    def mean_distance(self) -> float:
        """The mean over columns."""
        return float(np.mean(list(self.distance_by_column.values())))

    @property
    def mean_pair_distance(self) -> float | None:
        """The mean over pairs of columns; None of a single column."""
        distances = [pair.distance for pair in self.distance_by_pair]
        return float(np.mean(distances)) if distances else None

    @property
    def mean_triple_distance(self) -> float | None:
        """The mean over triples of columns; None of fewer than three columns."""
        distances = [triple.distance for triple in self.distance_by_triple]
        return float(np.mean(distances)) if distances else None

    @property
    def largest_error(self) -> float | None:
        """The largest difference of shares among values of at least 100 people; None of none."""
        return max((value.error for value in self.values), default=None)


def evaluate_synthetic(
    original: CountedTable,
    published: PublishedTable,
    second_draw: Codes | None,
    *,
    queries: int | None = None,
) -> SyntheticEvaluation:
    """Hold synthetic rows against their table, both by the values of level 0.

    Args:
        original: the table.
        published: the rows.
        second_draw: the rows of a second draw from the same model, for what chance explains.
        queries: how many random counts are asked, if not the usual number.

    """
    before, after = original.frequencies, published.frequencies
    names = original.names
    sizes = [len(hierarchy.values) + 2 for hierarchy in original.hierarchies]
    shares = [(_share(before, [at], sizes), _share(after, [at], sizes)) for at in range(len(names))]
    utility = measure_utility(build_pair(original, original.axes, published), query_count=queries)
    pairs = _PairComparison(original, after, sizes)
    return SyntheticEvaluation(
        rows_original=before.total,
        rows_released=after.total,
        suppressed=0,
        classes=len(after),
        smallest_class=int(after.counts.min()) if len(after) else 0,
        loss=0.0,
        utility=utility,
        distance_by_column={
            name: _distance(*pair) for name, pair in zip(names, shares, strict=True)
        },
        distance_by_pair=pairs.distances,
        distance_by_triple=list(_compare_triples(names, before, after, sizes)),
        pairs=comb(len(names), 2),
        triples=comb(len(names), 3),
        values=_values(original, shares),
        cells=sorted(pairs.cells, key=lambda cell: -cell.error)[:_MOST_PAIR_CELLS],
        subgroup_distances=pairs.list_subgroups()[:_MOST_VALUES],
        equal_rows=count_equal(before, after, second_draw),
        subgroups=_group_rows(original, published),
    )


def _group_rows(original: CountedTable, published: PublishedTable) -> list[Subgroup]:
    """Return the rows of each category before and after, at a higher level if there are many."""
    points, _, covers = locate_tuples(original, original.axes, published)
    groups = group_by_labels(
        original.names, original.axes, np.column_stack(points).astype(np.int32),
        original.frequencies.counts, published.frequencies, covers,
    )  # fmt: skip
    return [replace(group, hidden=None) for group in groups]  # nothing is suppressed


def mean_pair_distance(pair: TablePair) -> float | None:
    """Return the mean distance over pairs of columns, of any release, at the finest values.

    Of very many pairs so many at random stand for all.
    """
    distances = []
    for a, b in _choose(list(combinations(range(len(pair.names)), 2)), MOST_PAIRS):
        sizes = [pair.shares[at].shape for at in (a, b)]
        if sizes[0][1] * sizes[1][1] > _MOST_CELLS or sizes[0][0] * sizes[1][0] > _MOST_CELLS:
            continue
        first = _share(pair.original, [a, b], {a: sizes[0][1], b: sizes[1][1]})
        labels = _share(pair.released, [a, b], {a: sizes[0][0], b: sizes[1][0]})
        implied = pair.shares[a].T @ labels.reshape(sizes[0][0], sizes[1][0]) @ pair.shares[b]
        distances.append(_distance(first, implied.ravel()))
    return float(np.mean(distances)) if distances else None


def _choose(sets: list[tuple[int, ...]], most: int) -> list[tuple[int, ...]]:
    """Return all of some sets of columns, or so many at random."""
    if len(sets) <= most:
        return sets
    chosen = np.random.default_rng(0).choice(len(sets), most, replace=False)
    return [sets[at] for at in sorted(chosen.tolist())]


def _share(
    table: Frequencies, places: Sequence[int], sizes: Sequence[int] | dict[int, int]
) -> Floats:
    """Return the share of each combination of some columns' values."""
    shape = [sizes[at] for at in places]
    cell = np.ravel_multi_index([table.codes[:, at] for at in places], shape)
    counts = np.bincount(cell, table.counts, minlength=prod(shape)).astype(np.float64)
    shares: Floats = counts / max(counts.sum(), 1.0)
    return shares


def _distance(first: Floats, second: Floats) -> float:
    return float(np.abs(first - second).sum() / 2)


class _PairComparison:
    """Pairs of columns, compared once: distances, cells that differ most, and subgroups."""

    def __init__(self, original: CountedTable, after: Frequencies, sizes: Sequence[int]) -> None:
        before = original.frequencies
        self._original, self._rows = original, (before.total, after.total)
        self._sums = [np.zeros(size) for size in sizes]  # of distances, for each value of a column
        self._times = [0] * len(sizes)
        self._people = [np.bincount(before.codes[:, at], before.counts, minlength=size)
                        for at, size in enumerate(sizes)]  # fmt: skip
        self._shown = [np.bincount(after.codes[:, at], after.counts, minlength=size)
                       for at, size in enumerate(sizes)]  # fmt: skip
        self.distances: list[PairDistance] = []
        self.cells: list[CellShare] = []
        every: list[tuple[int, ...]] = [
            pair for pair in combinations(range(len(sizes)), 2)
            if sizes[pair[0]] * sizes[pair[1]] <= _MOST_CELLS
        ]  # fmt: skip
        for a, b in _choose(every, MOST_PAIRS):
            shape = sizes[a], sizes[b]
            self._compare(
                a, b, _share(before, [a, b], sizes).reshape(shape),
                _share(after, [a, b], sizes).reshape(shape),
            )  # fmt: skip

    def _compare(self, a: int, b: int, first: Floats, second: Floats) -> None:
        names = self._original.names
        self.distances.append(PairDistance(names[a], names[b], _distance(first, second)))
        for column, before, after in ((a, first, second), (b, first.T, second.T)):
            self._sums[column] += _compare_rows(before, after)
            self._times[column] += 1
        errors = np.where(first * self._rows[0] >= RARE - 0.5, np.abs(first - second), 0.0)
        largest = np.argsort(-errors, axis=None, kind="stable")[:_OF_A_PAIR]
        for x, y in zip(*np.unravel_index(largest, errors.shape), strict=True):
            if errors[x, y] > 0:
                values = self._label(a, int(x)), self._label(b, int(y))
                shares = float(first[x, y]), float(second[x, y])
                self.cells.append(CellShare((names[a], names[b]), values, *shares))

    def _label(self, column: int, code: int) -> str | None:
        return self._original.hierarchies[column].labels[0][code]

    def list_subgroups(self) -> list[SubgroupDistance]:
        """Return the values of enough people, those that are described worst first."""
        subgroups = [
            SubgroupDistance(
                name, self._label(at, code), int(self._people[at][code]),
                int(self._shown[at][code]), float(self._sums[at][code] / self._times[at]),
            )
            for at, name in enumerate(self._original.names) if self._times[at]
            for code in np.flatnonzero(self._people[at] >= RARE).tolist()
        ]  # fmt: skip
        return sorted(subgroups, key=lambda subgroup: -subgroup.distance)


def _compare_rows(first: Floats, second: Floats) -> Floats:
    """Return the distance of each row of a table from that of another, as shares of the row."""
    sums = [table.sum(axis=1, keepdims=True) for table in (first, second)]
    shares = [table / np.where(total > 0, total, 1.0)
              for table, total in zip((first, second), sums, strict=True)]  # fmt: skip
    distances = np.abs(shares[0] - shares[1]).sum(axis=1) / 2
    # A value that the rows do not have is described by nothing.
    row_distances: Floats = np.where((sums[1] > 0)[:, 0], distances, 1.0)
    return row_distances


def _compare_triples(
    names: Sequence[str], before: Frequencies, after: Frequencies, sizes: Sequence[int]
) -> Iterator[TripleDistance]:
    every: list[tuple[int, ...]] = [
        triple for triple in combinations(range(len(names)), 3)
        if prod(sizes[at] for at in triple) <= _MOST_TRIPLE_CELLS
    ]  # fmt: skip
    for triple in _choose(every, MOST_TRIPLES):
        distance = _distance(_share(before, triple, sizes), _share(after, triple, sizes))
        a, b, c = (names[at] for at in triple)
        yield TripleDistance((a, b, c), distance)


def _values(original: CountedTable, shares: Sequence[tuple[Floats, Floats]]) -> list[ValueShare]:
    """Return the values of enough people whose shares differ most."""
    rows, value_shares = original.frequencies.total, []
    for name, hierarchy, (before, after) in zip(
        original.names, original.hierarchies, shares, strict=True
    ):
        for code in np.flatnonzero(before * rows >= RARE - 0.5).tolist():
            label = hierarchy.labels[0][code]
            value_shares.append(ValueShare(name, label, float(before[code]), float(after[code])))
    value_shares.sort(key=lambda share: -share.error)
    worst = {share.column: share for share in reversed(value_shares)}  # of each column
    return [
        share
        for at, share in enumerate(value_shares)
        if at < _MOST_VALUES or share is worst[share.column]
    ]


def count_equal(before: Frequencies, after: Frequencies, again: Codes | None) -> EqualRows:
    """Count published rows that equal a row of the table, and of a second draw."""
    expected = None
    if again is not None:
        expected = _count_met(after, Frequencies(*np.unique(again, axis=0, return_counts=True)))
    single = before.counts == 1
    return EqualRows(
        equal=_count_met(after, before),
        expected=expected,
        unique=_count_met(after, Frequencies(before.codes[single], before.counts[single])),
        rows=after.total,
    )


def _count_met(rows: Frequencies, table: Frequencies) -> int:
    """How many of the rows have a tuple that the table has."""
    both = number_tuples(np.concatenate([rows.codes, table.codes]).astype(np.int32))
    met = np.isin(both[: len(rows)], both[len(rows) :])
    return int(rows.counts[met].sum())
