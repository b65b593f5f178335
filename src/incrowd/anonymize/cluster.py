"""Greedy k-member clustering (Byun and others) with local recoding, and k-Duplication.

Both are baselines. Clustering: from a point far from the last cluster, take in what costs
least until the cluster has k rows; what is left over joins where it costs least. That takes
every point's distance to every cluster's first point, so a large table is first cut into
blocks by Mondrian, and each cluster chooses among the points nearest to its first one.

Both give k-anonymity and protect little: the boxes reach to single people's values, and
k-Duplication publishes one person of each cluster unchanged, k times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.mondrian import PersonPoints, partition_points
from incrowd.arrays import Bools, Codes, Counts, Floats, Members, Places
from incrowd.codes.axis import Axis, ClassBounds, bound_classes, compute_class_cost
from incrowd.measure.diversity import SensitiveColumn
from incrowd.privacy.randomness import Randomness, sample_below

_BLOCK_ROWS = 4096
_FINEST = 1024  # so many steps of a column are told apart when distances are measured
_SHORTLIST = 64


def cluster_points(
    axes: Sequence[Axis],
    points: Codes,
    counts: Counts,
    *,
    k: int,
    weights: Floats | None = None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Members:
    """Return the class of each point, numbered from 0; all points in one if they are too few."""
    shares = np.ones(len(axes)) if weights is None else weights
    distances = _DistanceTable(axes, shares / shares.sum())
    blocks = partition_points(axes, points, counts, k=max(_BLOCK_ROWS, 16 * k), weights=weights)
    order = np.argsort(blocks, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(blocks[order]) > 0)[: len(order)])
    members = np.zeros(len(points), dtype=np.int64)
    number = assigned = 0
    for block in np.split(order, starts[1:]):
        clusters = _ClusterBlock(
            distances, distances.locate_steps(points[block]), counts[block], k
        ).find_clusters()
        members[block] = number + clusters
        number += int(clusters.max(initial=-1)) + 1
        assigned += len(block)
        progress(assigned, len(points))
    return members


def merge_clusters(
    axes: Sequence[Axis],
    points: Codes,
    counts: Counts,
    members: Members,
    *,
    weights: Floats,
    owner: Places,
    row_counts: Counts,
    sensitive_columns: Sequence[SensitiveColumn],
    people: PersonPoints | None = None,
    k: int = 1,
) -> Members:
    """Return clusters that satisfy the rules: those that do not are joined to others.

    With ``people``, each needs the rows of at least k different ones, too.

    A cluster that violates a rule joins the one with which that costs least, until none is left
    that does. The whole table as one cluster must satisfy them. ``owner`` is the point of each
    tuple of all columns, ``row_counts`` its rows.
    """
    bounds = bound_classes(points, counts, members)
    low, high, sizes = bounds.low.copy(), bounds.high.copy(), bounds.sizes.astype(np.float64)
    number = len(sizes)
    spreads = [
        column.count_values(members[owner], row_counts, classes=number)
        for column in sensitive_columns
    ]
    person_sets = [] if people is None else people.group_by_class(members, number)
    joined = np.arange(number)
    is_open = np.ones(number, dtype=bool)

    def violates(places: Places) -> Bools:
        good = np.ones(len(places), dtype=bool)
        for column, spread in zip(sensitive_columns, spreads, strict=True):
            for rule in column.rules:
                good &= rule.check_classes(spread[places], column.overall)
        if person_sets:
            good &= np.array([sum(person_sets[at].values()) >= k for at in places.tolist()])
        return ~good

    waiting = np.flatnonzero(violates(np.arange(number))).tolist()[::-1]
    while waiting and is_open.sum() > 1:
        place = waiting.pop()
        others = np.flatnonzero(is_open)
        others = others[others != place]
        wide = ClassBounds(
            np.minimum(low[others], low[place]), np.maximum(high[others], high[place]),
            (sizes[others] + sizes[place]).astype(np.int64),
        )  # fmt: skip
        before = ClassBounds(low[others], high[others], wide.sizes)
        price = compute_class_cost(axes, wide, weights) * wide.sizes
        price -= compute_class_cost(axes, before, weights) * sizes[others]
        best = int(others[np.argmin(price)])
        low[best], high[best] = (
            np.minimum(low[best], low[place]),
            np.maximum(high[best], high[place]),
        )
        sizes[best] += sizes[place]
        for spread in spreads:
            spread[best] += spread[place]
        if person_sets:
            person_sets[best] |= person_sets[place]
        is_open[place] = False
        joined[place] = best
        if best not in waiting and violates(np.array([best]))[0]:
            waiting.append(best)
        elif best in waiting and not violates(np.array([best]))[0]:
            waiting.remove(best)
    while (joined[joined] != joined).any():
        joined = joined[joined]
    return np.unique(joined[members], return_inverse=True)[1].astype(np.int64)


def duplicate_rows(members: Members, counts: Counts, bits: Randomness) -> Counts:
    """Return how often each tuple is published, by k-Duplication (paper A, Algorithm 1).

    One row of each class is drawn at random, and stands for all of them.
    """
    order = np.argsort(members, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(members[order]) > 0)[: len(order)])
    upto = np.cumsum(counts[order])
    sizes = np.add.reduceat(counts[order], starts)
    first = upto[starts] - counts[order[starts]]
    draws = first + sample_below(sizes, bits)
    places = order[np.searchsorted(upto, draws, side="right")]
    times = np.zeros(len(counts), dtype=np.int64)
    times[places] = sizes
    return times


class _DistanceTable:
    """The cost of a run on each axis, as one table: from lowest to highest step."""

    def __init__(self, axes: Sequence[Axis], shares: Floats) -> None:
        self._ratios, tables, widths = [], [], []
        for axis, share in zip(axes, shares, strict=True):
            places = len(axis.positions)
            ratio = -(-places // _FINEST)
            ends = np.minimum(np.arange(0, places, ratio) + ratio - 1, places - 1).astype(np.int32)
            begins = np.arange(0, places, ratio, dtype=np.int32)
            low, high = np.meshgrid(begins, ends, indexing="ij")
            lowest, highest = np.minimum(low, high).ravel(), np.maximum(low, high).ravel()
            tables.append(share * axis.compute_cost(lowest, highest))
            widths.append(len(begins))
            self._ratios.append(ratio)
        self._table = np.concatenate(tables).astype(np.float32)
        self._widths = np.array(widths)
        self._offsets = np.cumsum([0, *(width * width for width in widths[:-1])])

    def locate_steps(self, points: Codes) -> npt.NDArray[np.int64]:
        """Return points on the steps of the table."""
        return np.asarray(points.astype(np.int64) // np.array(self._ratios))

    def compute_cost(
        self, low: npt.NDArray[np.int64], high: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float32]:
        """Return what boxes cost, from lowest to highest step on each axis (the last dimension)."""
        return self._table[self._offsets + low * self._widths + high].sum(axis=-1)  # type: ignore[no-any-return]


class _ClusterBlock:
    """Some points, to be put into clusters."""

    def __init__(
        self, distances: _DistanceTable, points: npt.NDArray[np.int64], counts: Counts, k: int
    ) -> None:
        self._distances, self._points, self._counts, self._k = distances, points, counts, k
        self._members = np.full(len(points), -1, dtype=np.int64)
        self._low: list[npt.NDArray[np.int64]] = []
        self._high: list[npt.NDArray[np.int64]] = []
        self._sizes: list[int] = []

    def find_clusters(self) -> Members:
        """Return the cluster of each point."""
        for point in np.flatnonzero(self._counts >= self._k):  # a crowd by itself
            self._add_cluster(np.array([point]), self._points[point], self._points[point])
        free_points = np.flatnonzero(self._members < 0)
        rows = int(self._counts[free_points].sum())
        anchor = self._points[free_points[0]] if len(free_points) else None
        while rows >= self._k:
            assert anchor is not None
            seed = free_points[np.argmax(self._measure_distances(anchor, free_points))]
            cluster = self._grow_cluster(int(seed), free_points)
            rows -= int(self._counts[cluster].sum())
            anchor = self._points[seed]
            free_points = free_points[self._members[free_points] < 0]
        for point in free_points:
            self._join_cluster(int(point))
        return self._members

    def _measure_distances(
        self, point: npt.NDArray[np.int64], others: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float32]:
        other_points = self._points[others]
        return self._distances.compute_cost(
            np.minimum(point, other_points), np.maximum(point, other_points)
        )

    def _grow_cluster(self, seed: int, free_points: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Grow a cluster from a point to k rows, among the points nearest to it."""
        nearest = self._find_nearest(seed, free_points)
        low = high = self._points[seed]
        cluster, rows = [seed], int(self._counts[seed])
        nearest = nearest[nearest != seed]
        points = self._points[nearest]
        free = np.ones(len(nearest), dtype=bool)
        while rows < self._k:
            lows, highs = np.minimum(low, points), np.maximum(high, points)
            best = int(np.argmin(np.where(free, self._distances.compute_cost(lows, highs), np.inf)))
            free[best] = False
            low, high = lows[best], highs[best]
            cluster.append(int(nearest[best]))
            rows += int(self._counts[nearest[best]])
        places = np.array(cluster)
        self._add_cluster(places, low, high)
        return places

    def _find_nearest(self, seed: int, free_points: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return enough points near a point to make a cluster of k rows, and a choice besides."""
        limit = max(_SHORTLIST, 4 * self._k)
        if len(free_points) <= limit:
            return free_points
        distances = self._measure_distances(self._points[seed], free_points)
        return free_points[np.argpartition(distances, limit)[:limit]]

    def _add_cluster(
        self,
        points: npt.NDArray[np.int64],
        low: npt.NDArray[np.int64],
        high: npt.NDArray[np.int64],
    ) -> None:
        self._members[points] = len(self._sizes)
        self._low.append(low)
        self._high.append(high)
        self._sizes.append(int(self._counts[points].sum()))

    def _join_cluster(self, point: int) -> None:
        """Put a point that is left over where it costs least; alone if there is no cluster."""
        position = self._points[point]
        if not self._sizes:
            self._add_cluster(np.array([point]), position, position)
            return
        lows, highs = np.array(self._low), np.array(self._high)
        new_lows, new_highs = np.minimum(lows, position), np.maximum(highs, position)
        after = self._distances.compute_cost(new_lows, new_highs)
        cost_increase = (after - self._distances.compute_cost(lows, highs)) * np.array(self._sizes)
        best = int(np.argmin(cost_increase + after * self._counts[point]))
        self._members[point] = best
        self._low[best], self._high[best] = new_lows[best], new_highs[best]
        self._sizes[best] += int(self._counts[point])
