"""How far synthetic rows are from their table: shares of values and pairs, and rows that are equal.

For the curator alone: no figure here is covered by the guarantee.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from incrowd.arrays import Codes, Floats
from incrowd.codes.counted_table import CountedTable, PublishedTable
from incrowd.codes.frequency import Frequencies, number_tuples
from incrowd.measure.evaluation import Evaluation
from incrowd.measure.label_evaluation import build_pair, measure_utility

MOST_PAIRS = 500
_MOST_VALUES = 20
_RARE = 100  # rows: of fewer, a share is not judged by value


@dataclass(frozen=True)
class PairDistance:
    """The total variation distance between the shares of two columns' pairs, 0 to 1."""

    first: str
    second: str
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
class EqualRows:
    """Published rows that are equal to some row of the table, and how many chance explains.

    ``expected`` is the number of published rows that are equal to some row of a second table,
    drawn from the same model: nobody of the first is in that. ``unique`` are those that equal the
    only row of its kind in the table.
    """

    equal: int
    expected: int
    unique: int
    rows: int


@dataclass(frozen=True)
class OtherMethods:
    """The share of rows that other methods would have kept of the same columns, as they are.

    Counts publish groups of a ``crowd`` or more people, k-anonymity those of ``k`` or more.
    """

    crowd: int
    counts: float
    k: int
    k_anonymity: float


@dataclass(frozen=True, kw_only=True)
class SyntheticEvaluation(Evaluation):
    """What synthetic rows keep of their table: shares by column and by pair, values, equal rows.

    Distances are total variations: half the sum of the differences of shares. ``values`` has the
    values of at least 100 people whose shares differ most. Of very many pairs of columns some at
    random stand for all.
    """

    distance_by_column: dict[str, float]
    distance_by_pair: list[PairDistance]
    values: list[ValueShare]
    equal_rows: EqualRows
    others: OtherMethods | None = None

    @property
    def mean_distance(self) -> float:
        """The mean over columns."""
        return float(np.mean(list(self.distance_by_column.values())))

    @property
    def mean_pair_distance(self) -> float | None:
        """The mean over pairs of columns; None of a single column."""
        result = [item.distance for item in self.distance_by_pair]
        return float(np.mean(result)) if result else None

    @property
    def largest_error(self) -> float:
        """The largest difference of shares among values of at least 100 people."""
        return max((value.error for value in self.values), default=0.0)


def evaluate_synthetic(
    original: CountedTable, shown: PublishedTable, again: Codes, *, queries: int | None = None
) -> SyntheticEvaluation:
    """Hold synthetic rows against their table, both by the values of level 0.

    Args:
        original: the table.
        shown: the rows.
        again: the rows of a second draw from the same model, for what chance explains.
        queries: how many random counts are asked, if not the usual number.

    """
    before, after = original.frequencies, shown.frequencies
    names = original.names
    sizes = [len(hierarchy.values) + 2 for hierarchy in original.hierarchies]
    shares = [(_share(before, [at], sizes), _share(after, [at], sizes)) for at in range(len(names))]
    utility = measure_utility(build_pair(original, original.axes, shown), asked=queries)
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
        distance_by_pair=list(_pairs(names, before, after, sizes)),
        values=_values(original, shares),
        equal_rows=count_equal(before, after, again),
    )


def _share(table: Frequencies, places: Sequence[int], sizes: Sequence[int]) -> Floats:
    """Return the share of each combination of some columns' values."""
    cell = np.ravel_multi_index([table.codes[:, at] for at in places], [sizes[at] for at in places])
    counts = np.bincount(
        cell, table.counts, minlength=int(np.prod([sizes[at] for at in places]))
    ).astype(np.float64)
    result: Floats = counts / max(counts.sum(), 1.0)
    return result


def _distance(first: Floats, second: Floats) -> float:
    return float(np.abs(first - second).sum() / 2)


def _pairs(
    names: Sequence[str], before: Frequencies, after: Frequencies, sizes: Sequence[int]
) -> list[PairDistance]:
    pairs = [pair for pair in combinations(range(len(names)), 2)
             if sizes[pair[0]] * sizes[pair[1]] <= 1 << 22]  # fmt: skip
    if len(pairs) > MOST_PAIRS:
        chosen = np.random.default_rng(0).choice(len(pairs), MOST_PAIRS, replace=False)
        pairs = [pairs[at] for at in sorted(chosen.tolist())]
    return [
        PairDistance(
            names[a], names[b],
            _distance(_share(before, [a, b], sizes), _share(after, [a, b], sizes)),
        )
        for a, b in pairs
    ]  # fmt: skip


def _values(original: CountedTable, shares: Sequence[tuple[Floats, Floats]]) -> list[ValueShare]:
    """Return the values of enough people whose shares differ most."""
    rows, value_shares = original.frequencies.total, []
    for name, hierarchy, (before, after) in zip(
        original.names, original.hierarchies, shares, strict=True
    ):
        for code in np.flatnonzero(before * rows >= _RARE - 0.5).tolist():
            label = hierarchy.labels[0][code]
            value_shares.append(ValueShare(name, label, float(before[code]), float(after[code])))
    return sorted(value_shares, key=lambda one: -one.error)[:_MOST_VALUES]


def count_equal(before: Frequencies, after: Frequencies, again: Codes) -> EqualRows:
    """Count published rows that equal a row of the table, and of a second draw."""
    other = Frequencies(*np.unique(again, axis=0, return_counts=True))
    return EqualRows(
        equal=_count_met(after, before),
        expected=_count_met(after, other),
        unique=_count_met(
            after, Frequencies(before.codes[before.counts == 1], before.counts[before.counts == 1])
        ),
        rows=after.total,
    )


def _count_met(rows: Frequencies, table: Frequencies) -> int:
    """How many of the rows have a tuple that the table has."""
    both = number_tuples(np.concatenate([rows.codes, table.codes]).astype(np.int32))
    met = np.isin(both[: len(rows)], both[len(rows) :])
    return int(rows.counts[met].sum())
