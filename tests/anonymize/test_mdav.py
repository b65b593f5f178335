"""Groups of near rows: sizes, and the groups themselves against the words of the algorithm."""

from __future__ import annotations

import math

import numpy as np
import pytest

from incrowd.anonymize.mdav import group_near_rows
from incrowd.arrays import Floats


def group_by_words(points: list[tuple[float, ...]], k: int) -> list[set[int]]:
    """The algorithm as the paper says it, row by row."""
    left, groups = list(range(len(points))), []

    def distance(a: tuple[float, ...], b: tuple[float, ...]) -> float:
        return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))

    def average() -> tuple[float, ...]:
        columns = zip(*(points[at] for at in left), strict=True)
        return tuple(math.fsum(column) / len(left) for column in columns)

    def farthest(center: tuple[float, ...]) -> tuple[float, ...]:
        return points[max(left, key=lambda at: distance(points[at], center))]

    def take(center: tuple[float, ...]) -> None:
        nearest = sorted(left, key=lambda at: distance(points[at], center))[:k]
        groups.append(set(nearest))
        for at in nearest:
            left.remove(at)

    while len(left) >= 3 * k:
        corner = farthest(average())
        take(corner)
        take(farthest(corner))
    if len(left) >= 2 * k:
        take(farthest(average()))
    return [*groups, set(left)]


@pytest.mark.parametrize("seed", range(12))
def test_groups_are_those_of_the_algorithm(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, k = int(rng.integers(2, 40)), int(rng.integers(1, 6))
    points = rng.normal(size=(rows, int(rng.integers(1, 4))))
    members = group_near_rows(points, k)
    groups = [set(np.flatnonzero(members == at).tolist()) for at in range(members.max() + 1)]
    assert groups == group_by_words([tuple(row) for row in points.tolist()], k)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_every_group_has_k_to_twice_k_less_one(k: int) -> None:
    rng = np.random.default_rng(k)
    for rows in range(k, 8 * k):
        points: Floats = rng.integers(0, 3, size=(rows, 2)).astype(np.float64)  # many are alike
        sizes = np.bincount(group_near_rows(points, k))
        assert sizes.sum() == rows
        assert k <= sizes.min() <= sizes.max() < 2 * k


def test_few_of_many_are_those_of_a_sort() -> None:
    points = np.random.default_rng(1).integers(0, 5, size=(200, 2)).astype(np.float64)
    members = group_near_rows(points, 3)
    words = group_by_words([tuple(row) for row in points.tolist()], 3)
    assert [set(np.flatnonzero(members == at).tolist()) for at in range(len(words))] == words
