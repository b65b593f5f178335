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

from incrowd.anonymize.cluster import cluster, duplicate
from incrowd.anonymize.mondrian import mondrian
from incrowd.arrays import Codes, Floats, Members
from incrowd.codes.axis import Axis, Boxes, boxes
from incrowd.codes.frequency import merged
from incrowd.codes.hierarchy import from_rows
from incrowd.errors import ParameterError, check_choice, check_whole
from incrowd.privacy.randomness import Randomness, thinned


def line(size: int) -> Axis:
    """An ordered column of the whole numbers from 0 up to a size, itself excluded."""
    return Axis(from_rows([(str(value), "*") for value in range(size)]), ordered=True)


def k_duplication(axes: Sequence[Axis], points: Codes, *, k: int, bits: Randomness) -> Boxes:
    """k-Duplication: clusters of at least k rows, of each one row at random for all of them.

    Each class that is published is a single point. It is k-anonymous for certain: a cluster of
    s >= k rows becomes one row s times.
    """
    ones = np.ones(_enough(points, k), dtype=np.int64)
    times = duplicate(cluster(axes, points, ones, k=k), ones, bits)
    shown = merged(points[times > 0], times[times > 0])
    return Boxes(shown.codes, shown.codes, shown.counts)


def delta_sample(points: Codes, *, delta: float, bits: Randomness) -> Boxes:
    """Delta-sampling: each row whole with probability delta."""
    drawn = thinned(np.ones(len(points), dtype=np.int64), delta, bits) > 0
    shown = merged(points[drawn], np.ones(int(drawn.sum()), dtype=np.int64))
    return Boxes(shown.codes, shown.codes, shown.counts)


@dataclass(frozen=True, eq=False)
class Clustered:
    """What CLR publishes: the class of each row, and the box of each class.

    On an ordered axis a class shows its interval; on any other the set of its values.
    """

    points: Codes
    members: Members
    boxes: Boxes

    def sets(self, column: int) -> list[Codes]:
        """The values of one column that each class shows as a set."""
        order = np.argsort(self.members, kind="stable")
        ends = np.cumsum(self.boxes.sizes)[:-1]
        return [np.unique(part) for part in np.split(self.points[order, column], ends)]


def clustered(
    axes: Sequence[Axis],
    points: Codes,
    *,
    k: int,
    by: str = "cluster",
    weights: Floats | None = None,
) -> Clustered:
    """Clustering and local recoding, by greedy clusters or by Mondrian.

    It is k-anonymous for certain: rows of a class show the same, and a class has at least k.
    """
    check_choice("by", by, ("cluster", "mondrian"))
    ones = np.ones(_enough(points, k), dtype=np.int64)
    partition = cluster if by == "cluster" else mondrian
    members = partition(axes, points, ones, k=k, weights=weights)
    return Clustered(points, members, boxes(points, ones, members))


def _enough(points: Codes, k: int) -> int:
    """The number of rows, which must be at least k."""
    check_whole("k", k)
    if len(points) < k:
        raise ParameterError("k", f"be at most the number of rows ({len(points)})", k)
    return len(points)
