"""Two k-anonymous releases together determine what neither does; two safe ones do not."""

from __future__ import annotations

import numpy as np
from support.victims import make_bits

from incrowd.arrays import Codes, Floats
from incrowd.evaluation.attacks.intersection import KnownPeople, SensitiveBoxes, intersect_boxes
from incrowd.papers.baselines import make_number_axis, recode_clusters
from incrowd.papers.safe_steps import SteppedRelease, bound_attack_success
from incrowd.privacy.events import SafeRelease

PLACES = (50, 60)
VALUES = 60


def patients(number: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
    result = np.column_stack([rng.integers(0, size, number) for size in PLACES]).astype(np.int32)
    return result, rng.integers(0, VALUES, number).astype(np.int32)


def published(codes: Codes, sensitive: Codes, k: int, weights: Floats) -> SensitiveBoxes:
    axes = [make_number_axis(size) for size in PLACES]
    clusters = recode_clusters(axes, codes, k=k, by="mondrian", weights=weights)
    return SensitiveBoxes.from_classes(clusters.boxes, clusters.members, sensitive, VALUES)


def test_what_two_releases_have_in_common_is_said() -> None:
    """Classes {a: 0, 1}, {b: 2, 3} and, in the other release, {a, b} by the second column."""
    low, high = np.array([[0, 0], [5, 0]]), np.array([[4, 9], [9, 9]])
    first = SensitiveBoxes(low, high, np.array([[1, 1, 0, 0], [0, 0, 1, 1]], dtype=bool))
    low, high = np.array([[0, 0], [0, 5]]), np.array([[9, 4], [9, 9]])
    second = SensitiveBoxes(low, high, np.array([[1, 0, 1, 1], [0, 1, 0, 1]], dtype=bool))
    points = np.array([[1, 1], [1, 8], [8, 1], [8, 8]])
    assert [np.flatnonzero(x).tolist() for x in first.list_candidates(points)] == [
        [0, 1], [0, 1], [2, 3], [2, 3],
    ]  # fmt: skip
    members = KnownPeople(points, np.array([0, 1, 2, 3]))
    others = KnownPeople(points, np.array([1, 1, 1, 3]))
    result = intersect_boxes([first, second], members, others, name="by hand")
    # left are {0}, {1}, {2, 3}, {3}
    assert result.success.hits == 3
    assert result.control is not None
    assert result.control.hits == 2
    assert result.details == {"release 1 alone": 0.0, "release 2 alone": 0.0}
    assert result.guess.hits == 1


def test_two_k_anonymous_releases_do_not_compose() -> None:
    rng = np.random.default_rng(1)
    codes, sensitive = patients(2000, rng)
    members, others = KnownPeople(codes[:500], sensitive[:500]), KnownPeople(*patients(500, rng))
    first = published(codes, sensitive, 5, np.array([50.0, 1.0]))
    second = published(codes, sensitive, 6, np.array([1.0, 50.0]))
    for release in (first, second):
        left = release.list_candidates(codes)
        assert left[np.arange(2000), sensitive].all()  # a member's value is never ruled out
    result = intersect_boxes([first, second], members, others, name="Mondrian twice")
    # With classes of 5 to 11 rows and 60 values, most others are ruled out: far from any chance.
    assert result.success.value > 0.2
    assert result.succeeds
    assert result.control is not None
    assert result.control.high < result.success.low / 3
    assert max(result.details.values()) == 0  # a class of five rows has one value: 60^-4
    again = intersect_boxes([first, first], members, others, name="the same twice")
    assert again.success.hits == 0


def test_two_safe_releases_compose() -> None:
    rng = np.random.default_rng(2)
    codes, sensitive = patients(40_000, rng)
    table = np.column_stack([codes, sensitive]).astype(np.int32)
    # Few values survive in each cell, as they are about as rare as what is dropped.
    schemes = [
        SteppedRelease((10, 60, 1), SafeRelease(k=33, beta=0.2)),
        SteppedRelease((50, 12, 1), SafeRelease(k=33, beta=0.2)),
    ]
    releases = [
        SensitiveBoxes.from_cells(scheme.publish(table, make_bits(rng)), VALUES)
        for scheme in schemes
    ]
    members, others = KnownPeople(codes[:1500], sensitive[:1500]), KnownPeople(*patients(1500, rng))
    result = intersect_boxes(releases, members, others, name="safe")
    assert result.control is not None
    # Two intervals of 95 % about the same share: they miss each other with probability below 0.01.
    assert result.success.low <= result.control.high
    assert result.control.low <= result.success.high
    assert result.success.low <= bound_attack_success(schemes, result.control.high)
    assert not result.succeeds
