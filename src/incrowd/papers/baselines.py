"""Anonymizers that promise too little, kept to be broken: nothing here may be published.

Paper A names them to show what k-anonymity, or a delta by itself, lets through. Each works on rows
of positions on axes, one row for each person.

- k-Duplication (Algorithm 1): every published row occurs k times, and is one person's whole record.
- CLR, clustering and local recoding (Algorithm 2): every class shows the smallest interval, or
  set, that covers its own values; so its ends are single people's values.
- Delta-sampling (Algorithm 5): each row whole with probability delta, else nothing of it. It is
  (0, delta)-private (:func:`incrowd.privacy.smooth.delta_sampling`), and shows n delta people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.anonymize.cluster import cluster_points, duplicate_rows
from incrowd.anonymize.mondrian import partition_points
from incrowd.arrays import Codes, Floats, Members
from incrowd.codes.axis import Axis, ClassBounds, bound_classes
from incrowd.codes.frequency import merge_tuples
from incrowd.codes.hierarchy import build_from_rows
from incrowd.errors import ParameterError, check_choice, check_whole
from incrowd.privacy.randomness import Randomness, sample_binomial


def make_number_axis(size: int) -> Axis:
    """Make an ordered axis of the whole numbers from 0 up to a size, itself excluded."""
    return Axis(build_from_rows([(str(value), "*") for value in range(size)]), ordered=True)


def publish_duplicates(
    axes: Sequence[Axis], points: Codes, *, k: int, bits: Randomness
) -> ClassBounds:
    """Publish by k-Duplication: clusters of k rows or more, each as one of its rows.

    Each class that is published is a single point. It is k-anonymous for certain: a cluster of
    s >= k rows becomes one row s times.
    """
    ones = np.ones(_require_enough_rows(points, k), dtype=np.int64)
    times = duplicate_rows(cluster_points(axes, points, ones, k=k), ones, bits)
    published = merge_tuples(points[times > 0], times[times > 0])
    return ClassBounds(published.codes, published.codes, published.counts)


def draw_delta_sample(points: Codes, *, delta: float, bits: Randomness) -> ClassBounds:
    """Draw by delta-sampling: each row whole with probability delta."""
    is_drawn = sample_binomial(np.ones(len(points), dtype=np.int64), delta, bits) > 0
    published = merge_tuples(points[is_drawn], np.ones(int(is_drawn.sum()), dtype=np.int64))
    return ClassBounds(published.codes, published.codes, published.counts)


@dataclass(frozen=True, eq=False)
class ClusteredRelease:
    """What CLR publishes: the class of each row, and the box of each class.

    On an ordered axis a class shows its interval; on any other the set of its values.
    """

    points: Codes
    members: Members
    boxes: ClassBounds

    def list_value_sets(self, column: int) -> list[Codes]:
        """Return the values of one column that each class shows as a set."""
        order = np.argsort(self.members, kind="stable")
        ends = np.cumsum(self.boxes.sizes)[:-1]
        return [np.unique(part) for part in np.split(self.points[order, column], ends)]


def recode_clusters(
    axes: Sequence[Axis],
    points: Codes,
    *,
    k: int,
    by: str = "cluster",
    weights: Floats | None = None,
) -> ClusteredRelease:
    """Cluster and recode locally, by greedy clusters or by Mondrian.

    It is k-anonymous for certain: rows of a class show the same, and a class has at least k.
    """
    check_choice("by", by, ("cluster", "mondrian"))
    ones = np.ones(_require_enough_rows(points, k), dtype=np.int64)
    partition = cluster_points if by == "cluster" else partition_points
    members = partition(axes, points, ones, k=k, weights=weights)
    return ClusteredRelease(points, members, bound_classes(points, ones, members))


def _require_enough_rows(points: Codes, k: int) -> int:
    """Return the number of rows, which must be at least k."""
    check_whole("k", k)
    if len(points) < k:
        raise ParameterError("k", f"be at most the number of rows ({len(points)})", k)
    return len(points)
