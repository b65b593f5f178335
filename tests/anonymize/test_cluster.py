"""Greedy k-member clustering and k-Duplication, against a plain writing of both."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from incrowd.anonymize import cluster as module
from incrowd.anonymize.cluster import cluster_points, duplicate_rows
from incrowd.anonymize.mondrian import partition_points
from incrowd.arrays import Members
from incrowd.codes.axis import Axis, bound_classes, compute_class_cost
from incrowd.codes.hierarchy import build_from_rows
from incrowd.privacy.randomness import SeededRandomness, SystemRandomness

FALSE_ALARM = 1e-6
Point = tuple[int, ...]
Held = dict[Point, int]


def numbers(size: int) -> Axis:
    """Numbers from 0: a run of n of them costs (n - 1) / (size - 1)."""
    return Axis(build_from_rows([(str(x), "*") for x in range(size)]), ordered=True)


def halves() -> Axis:
    """Nine values: the first five are A, the others B; they cost 4/8, 3/8, and together 1."""
    rows = [(f"v{x}", "A" if x < 5 else "B", "*") for x in range(9)]
    return Axis(build_from_rows(rows), ordered=False)


def arrays(point_counts: Held) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.int32]], Members]:
    return np.array(list(point_counts), np.int32), np.array(list(point_counts.values()), np.int64)


@st.composite
def tables(draw: st.DrawFn) -> Held:
    """Points on nine numbers, and on the tree of nine values; some are outside or null."""
    point = st.tuples(st.integers(0, 10), st.integers(0, 10))
    return draw(st.dictionaries(point, st.sampled_from([1, 1, 2, 3, 7]), min_size=1, max_size=40))


AXES = [numbers(9), halves()]


def box_cost(points: list[Point]) -> float:
    """What the smallest box around points costs; all terms are eighths, so sums are exact."""
    first, second = ([point[at] for point in points] for at in (0, 1))
    if min(first) == max(first):
        result = float(first[0] == 10)  # outside is shown as the root
    else:
        result = 1.0 if max(first) > 8 else (max(first) - min(first)) / 8
    if min(second) == max(second):
        two = float(second[0] == 10)
    elif max(second) < 5:
        two = 4 / 8
    else:
        two = 3 / 8 if min(second) >= 5 and max(second) < 9 else 1.0
    return (result + two) / 2


def greedy(point_counts: Held, k: int) -> list[list[Point]]:
    """k-member clustering as described, of few points: ties go to the first point."""
    pointses = [[point] for point, count in point_counts.items() if count >= k]
    left = [point for point, count in point_counts.items() if count < k]
    anchors = left[:1]
    while sum(point_counts[point] for point in left) >= k:
        anchors = [max(left, key=lambda point: box_cost([*anchors, point]))]
        inside = list(anchors)
        left.remove(inside[0])
        while sum(point_counts[point] for point in inside) < k:
            nearest = min(left, key=lambda point: box_cost([*inside, point]))
            inside.append(nearest)
            left.remove(nearest)
        pointses.append(inside)
    for point in left:
        if not pointses:
            pointses.append([point])
            continue

        def raised(inside: list[Point], point: Point = point) -> float:
            rows = sum(point_counts[x] for x in inside)
            after = box_cost([*inside, point])
            return (after - box_cost(inside)) * rows + after * point_counts[point]

        min(pointses, key=raised).append(point)
    return pointses


def classes(point_counts: Held, members: Members) -> set[frozenset[Point]]:
    pointses: dict[int, set[Point]] = {}
    for point, member in zip(point_counts, members.tolist(), strict=True):
        pointses.setdefault(member, set()).add(point)
    assert sorted(pointses) == list(range(len(pointses)))
    return {frozenset(inside) for inside in pointses.values()}


@settings(max_examples=80)
@given(point_counts=tables(), k=st.integers(1, 6))
def test_clusters_are_those_of_the_plain_algorithm(point_counts: Held, k: int) -> None:
    points, counts = arrays(point_counts)
    members = cluster_points(AXES, points, counts, k=k)
    assert classes(point_counts, members) == {
        frozenset(inside) for inside in greedy(point_counts, k)
    }
    assert np.array_equal(members, cluster_points(AXES, points, counts, k=k))
    sizes = np.bincount(members, weights=counts)
    assert sizes.min() >= min(k, counts.sum())
    assert sizes.sum() == counts.sum()
    if counts.sum() < k:
        assert len(sizes) == 1
    crowds = members[counts >= k]
    assert len(set(crowds.tolist())) == len(crowds)  # two crowds are never put together


def test_a_cluster_worked_by_hand() -> None:
    """From 0, the farthest is 16; it takes in its neighbors. 5 is left over, and near 0 to 4."""
    point_counts: Held = {(0,): 1, (1,): 1, (4,): 1, (5,): 1, (15,): 1, (14,): 1, (16,): 1}
    points, counts = arrays(point_counts)
    members = cluster_points([numbers(17)], points, counts, k=3)
    assert classes(point_counts, members) == {
        frozenset({(16,), (15,), (14,)}), frozenset({(0,), (1,), (4,), (5,)}),
    }  # fmt: skip


def test_weights_decide_what_is_near() -> None:
    point_counts: Held = {(0, 0): 1, (0, 8): 1, (8, 0): 1, (8, 8): 1}
    points, counts = arrays(point_counts)
    axes = [numbers(9), numbers(9)]
    for weights, pair in (([3.0, 1.0], {(0, 0), (0, 8)}), ([1.0, 3.0], {(0, 0), (8, 0)})):
        members = cluster_points(axes, points, counts, k=2, weights=np.array(weights))
        assert frozenset(pair) in classes(point_counts, members)


def large(seed: int) -> Held:
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 60, (900, 2)).tolist()
    return dict(Counter((x, y) for x, y in points))


@pytest.mark.parametrize("rows", [1, 100, 4096])
@pytest.mark.parametrize("shortlist", [1, 64])
def test_blocks_and_shortlists_keep_k_and_every_row(
    rows: int, shortlist: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK_ROWS", rows)
    monkeypatch.setattr(module, "_SHORTLIST", shortlist)
    point_counts, k = large(1), 4
    points, counts = arrays(point_counts)
    axes = [numbers(60), numbers(60)]
    members = cluster_points(axes, points, counts, k=k)
    sizes = np.bincount(members, weights=counts)
    assert sizes.min() >= k
    assert sizes.sum() == 900
    assert len(sizes) == members.max() + 1 > 900 / (2 * k)
    assert np.array_equal(members, cluster_points(axes, points, counts, k=k))
    blocks = partition_points(axes, points, counts, k=max(rows, 16 * k))
    assert (len(set(blocks.tolist())) > 1) == (rows < 900 / 2)
    for number in range(len(sizes)):  # no class is in two blocks
        assert len(set(blocks[members == number].tolist())) == 1


def test_clusters_lose_less_than_classes_by_chance() -> None:
    point_counts, k = large(2), 5
    points, counts = arrays(point_counts)
    axes = [numbers(60), numbers(60)]
    members = cluster_points(axes, points, counts, k=k)
    result = bound_classes(points, counts, members)
    paid = float((compute_class_cost(axes, result) * result.sizes).sum() / result.sizes.sum())
    mixed = bound_classes(points, counts, np.random.default_rng(3).permutation(members))
    chance = float((compute_class_cost(axes, mixed) * mixed.sizes).sum() / mixed.sizes.sum())
    assert paid < chance / 4


def test_a_column_of_more_values_than_are_told_apart() -> None:
    """Three thousand values are measured in steps, and far is still far."""
    point_counts: Held = {(x,): 1 for x in (0, 1, 2, 1500, 1501, 1502, 2997, 2998, 2999)}
    points, counts = arrays(point_counts)
    members = cluster_points([numbers(3000)], points, counts, k=3)
    assert classes(point_counts, members) == {
        frozenset({(0,), (1,), (2,)}), frozenset({(1500,), (1501,), (1502,)}),
        frozenset({(2997,), (2998,), (2999,)}),
    }  # fmt: skip


def test_no_points_have_no_clusters() -> None:
    assert (
        cluster_points(AXES, np.zeros((0, 2), np.int32), np.zeros(0, np.int64), k=3).tolist() == []
    )


@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9)), min_size=1, max_size=20),
    seed=st.integers(0, 2**32),
)
def test_one_tuple_of_each_class_stands_for_its_rows(
    rows: list[tuple[int, int]], seed: int
) -> None:
    members = np.unique([member for member, _ in rows], return_inverse=True)[1]
    counts = np.array([count for _, count in rows])
    published = duplicate_rows(members, counts, SeededRandomness(seed))
    for number in range(int(members.max()) + 1):
        inside = published[members == number]
        assert np.count_nonzero(inside) == 1
        assert inside.sum() == counts[members == number].sum()


def test_the_tuple_is_drawn_by_rows() -> None:
    """Fails once in a million runs; tuples drawn alike, or off by a row, would be noticed."""
    repeats, class_counts = 30_000, np.array([1, 2, 7])
    turned = np.random.default_rng(4).permutation(3 * repeats)
    members, counts = np.repeat(np.arange(repeats), 3), np.tile(class_counts, repeats)
    published = np.zeros(3 * repeats, np.int64)
    published[turned] = duplicate_rows(members[turned], counts[turned], SystemRandomness())
    times = published.reshape(repeats, 3)
    assert (times.sum(axis=1) == 10).all()
    observed = (times > 0).sum(axis=0)

    def p_value(shares: list[float]) -> float:
        return float(stats.chisquare(observed, np.array(shares) * repeats).pvalue)

    assert p_value([0.1, 0.2, 0.7]) > FALSE_ALARM
    for wrong in ([1 / 3] * 3, [0.12, 0.2, 0.68], [0.1, 0.18, 0.72]):
        assert p_value(wrong) < FALSE_ALARM
