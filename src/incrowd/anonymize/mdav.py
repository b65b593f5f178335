"""Groups of near rows by MDAV (maximum distance to average vector), for means of groups.

While 3k rows are left, the row farthest from the mean of those left is grouped with the k - 1
nearest to it, and then the row farthest from that row with the k - 1 nearest to it. Of 2k to
3k - 1 rows the farthest from the mean takes its k - 1 nearest, and the others are the last group;
fewer are the last group (Domingo-Ferrer and Torra 2005).

**Claim.** Every group has k to 2k - 1 rows, if there are k rows. Proof: a group is made of k rows,
or is the last one. Before it, fewer than 3k rows are left, and at least k: a round takes 2k of at
least 3k. Of 2k to 3k - 1 rows one group takes k, which leaves k to 2k - 1; of k to 2k - 1 rows all
are the group.

Which rows are grouped depends on all values: an extreme value moves the mean of its group, and an
attacker who knows the other rows of the group computes it.
"""

from __future__ import annotations

import numpy as np

from incrowd.arrays import Floats, Members, Places, Progress


def group_near_rows(
    points: Floats, k: int, *, progress: Progress = lambda _done, _all: None
) -> Members:
    """Return the group of each row, numbered from 0; ``points`` has a row for each.

    Takes n² / k steps. Of equally far rows the first is taken.
    """
    total = len(points)
    members = np.full(total, -1, dtype=np.int64)
    left = np.arange(total)
    groups = 0
    while len(left) >= 2 * k:
        progress(total - len(left), total)
        farthest = _find_farthest(points[left], points[left].mean(axis=0))
        corner = points[left[farthest]]
        left = _take_nearest(points, left, corner, k, members, groups)
        groups += 1
        if len(left) >= 2 * k:
            opposite = points[left[_find_farthest(points[left], corner)]]
            left = _take_nearest(points, left, opposite, k, members, groups)
            groups += 1
    members[left] = groups
    return members


def _find_farthest(points: Floats, center: Floats) -> int:
    return int(np.argmax(((points - center) ** 2).sum(axis=1)))


def _take_nearest(
    points: Floats, left: Places, center: Floats, k: int, members: Members, group: int
) -> Places:
    """Put the k rows nearest to a center into a group; return the others."""
    distances = ((points[left] - center) ** 2).sum(axis=1)
    nearest = np.argsort(distances, kind="stable")[:k] if k * 8 > len(left) else _sort_few(
        distances, k
    )  # fmt: skip
    members[left[nearest]] = group
    is_left = np.ones(len(left), dtype=bool)
    is_left[nearest] = False
    return left[is_left]


def _sort_few(distances: Floats, k: int) -> Places:
    """Return the k smallest, the first of equal ones, without sorting all."""
    limit = np.partition(distances, k - 1)[k - 1]
    near = np.flatnonzero(distances <= limit)
    return near[np.argsort(distances[near], kind="stable")[:k]]
