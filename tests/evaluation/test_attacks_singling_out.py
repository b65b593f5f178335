"""Predicates isolate where a release is about single people, and as the control elsewhere."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.attacker_views import count_points, make_box_view, make_cover, make_value_view

from incrowd.anonymize.safe_counts import draw_noisy_counts
from incrowd.codes.frequency import Frequencies
from incrowd.errors import ParameterError
from incrowd.evaluation.attacks.singling_out import isolate_by_classes, isolate_by_rows
from incrowd.evaluation.attacks.view import AttackerView
from incrowd.evaluation.attacks.view import make_view as as_seen
from incrowd.measure.estimate import Estimate
from incrowd.privacy.events import GeometricCounts
from incrowd.privacy.randomness import SeededRandomness


def people(rng: np.random.Generator, number: int, width: int = 6, values: int = 30) -> Frequencies:
    """Independent people, half of whose columns follow the first."""
    points = rng.integers(0, values, (number, width))
    for at in range(1, width, 2):
        points[:, at] = np.minimum(points[:, 0], points[:, at])
    return count_points(points)


def shown(table: Frequencies, widths: list[int]) -> AttackerView:
    return make_value_view(np.repeat(table.codes, table.counts, axis=0), widths)


def off(first: float, second: float, tries: int) -> float:
    """How many standard deviations two shares of so many tries are apart."""
    mean = (first + second) / 2
    return abs(first - second) / math.sqrt(2 * max(mean * (1 - mean), 1 / tries) / tries)


# By rows


@pytest.mark.parametrize("ordered", [(), (30,) * 6])
def test_a_copy_isolates_for_certain_and_others_seldom(ordered: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    original, control = people(rng, 2000), people(rng, 2000)
    result = isolate_by_rows(
        shown(original, [30] * 6), original, control, columns=4, tries=500, rng=rng, ordered=ordered
    )
    assert result.success.hits == result.success.tries == 500
    assert result.control is not None
    assert result.control.value < 0.4
    assert result.succeeds
    assert result.excess[1] > 0.5


@pytest.mark.parametrize("ordered", [(), (30,) * 6])
def test_a_sample_of_other_people_isolates_as_in_the_control(ordered: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    original, control, other = (people(rng, 2000) for _ in range(3))
    result = isolate_by_rows(
        shown(other, [30] * 6), original, control, columns=3, tries=600, rng=rng, ordered=ordered
    )
    assert result.control is not None
    # Off by 4 deviations or more with a chance of 6e-5. Tries at the ends of a line are about the
    # same few people: their difference varies 1.4 times as much (seen in 17 other seeds).
    assert off(result.success.value, result.control.value, 600) < (5.6 if ordered else 4)
    assert result.success.hits > 50  # so that it could be off
    assert not result.succeeds  # it does with a chance of 0.3 %, or 2 % at the ends of lines


def test_tables_of_different_sizes_are_compared_by_as_many_people() -> None:
    rng = np.random.default_rng(3)
    small, large, other = people(rng, 1000), people(rng, 6000), people(rng, 2000)
    for original, control in ((small, large), (large, small)):
        result = isolate_by_rows(
            shown(other, [30] * 6), original, control, columns=3, tries=1000, rng=rng
        )
        assert result.control is not None
        assert result.details["people"] == 1000
        # Chance 6e-5 each. Of 6,000 people not thinned out thrice as many are hit.
        assert off(result.success.value, result.control.value, 1000) < 4
        alone = isolate_by_rows(shown(other, [30] * 6), large, None, columns=3, tries=1000, rng=rng)
        assert off(alone.success.value, result.success.value, 1000) > 6


def test_what_no_other_row_may_be_isolates_whatever_labels_show() -> None:
    """Of true rows with labels of every kind, side by side, no predicate that is kept is wrong."""
    rng = np.random.default_rng(4)
    sets = [[0], [1], [2], [3], [4], [0, 1], [2, 3], [0, 2], [1, 4], [0, 2, 4], [0, 1, 2, 3, 4]]
    members = [np.array([value in item for item in sets]) for value in range(5)]
    hits = 0
    for _ in range(150):
        points = rng.integers(0, 5, (int(rng.integers(2, 6)), 3))
        labels = np.array(
            [[rng.choice(np.flatnonzero(members[value])) for value in row] for row in points]
        )
        table = count_points(labels)
        covers = (make_cover(sets),) * 3
        seen = AttackerView(("a", "b", "c"), table.codes, table.counts, covers)
        ordered = (5, 0, 5) if rng.random() < 0.5 else ()
        columns = int(rng.integers(2, 4))
        result = isolate_by_rows(
            seen, count_points(points), None, columns=columns, tries=10, rng=rng, ordered=ordered
        )
        assert result.success.hits == result.details["predicates"]
        hits += result.success.hits
    assert hits > 200


def test_values_in_order_are_taken_from_the_near_end() -> None:
    """Ten values once each, and no value twice, at the end: only the first and the last remain."""
    rng = np.random.default_rng(5)
    points = np.append(np.arange(10), [10, 10])[:, None]
    seen, table = make_value_view(points, [11]), count_points(points)
    result = isolate_by_rows(seen, table, None, columns=1, tries=40, rng=rng, ordered=[10])
    assert (result.details["predicates"], result.success.hits) == (2, 2)
    assert result.success.tries == 2
    result = isolate_by_rows(seen, table, None, columns=1, tries=40, rng=rng)
    assert result.details["predicates"] == 10


def test_rows_that_are_never_alone_single_nobody_out() -> None:
    rng = np.random.default_rng(6)
    original = people(rng, 300)
    points = np.repeat(original.codes, 2 * original.counts, axis=0)
    stars = tuple(make_cover([*([at] for at in range(30)), range(30)], [30]) for _ in range(6))
    seen = make_value_view(points, [30] * 6)
    table = np.append(seen.codes, np.full((1, 6), 30, dtype=np.int32), axis=0)
    seen = as_seen(seen.names, Frequencies(table, np.append(seen.counts, 1)), stars)
    result = isolate_by_rows(seen, original, None, columns=6, tries=100, rng=rng)
    assert (result.success.hits, result.success.tries) == (0, 100)
    # A row without anything fits everybody, and keeps nobody from being alone.
    seen = as_seen(seen.names, Frequencies(table, np.ones(len(table), dtype=np.int64)), stars)
    result = isolate_by_rows(seen, original, None, columns=6, tries=100, rng=rng)
    assert result.success.hits == 100


def test_two_people_alike_are_not_singled_out() -> None:
    rng = np.random.default_rng(14)
    points = np.arange(30)[:, None]
    twice = np.append(points, points[:10], axis=0)
    result = isolate_by_rows(
        make_value_view(points, [30]),
        count_points(twice),
        count_points(twice),
        columns=1,
        tries=99,
        rng=rng,
    )
    assert result.control is not None
    for rate in (result.success, result.control):
        assert (rate.hits, rate.tries) == (20, 30)


def test_who_is_alone_is_found_among_many_who_are_not() -> None:
    """Three rows of 60,000 are alone, in one of 190 choices of columns or more."""
    rng = np.random.default_rng(13)
    points = np.zeros((60_000, 20), dtype=np.int64)
    points[[7, 70, 700]] = [[value] * 20 for value in (1, 2, 3)]
    result = isolate_by_rows(
        make_value_view(points, [4] * 20), count_points(points), None, columns=2, tries=300, rng=rng
    )
    assert result.details["predicates"] == 3 * 64
    assert result.success.hits == 3 * 64


def test_guesses_take_each_value_from_a_row_of_its_own() -> None:
    """Two columns that are always alike: a guess finds a person only where it draws one twice."""
    rng = np.random.default_rng(7)
    points = np.repeat(np.arange(50)[:, None], 2, axis=1)
    result = isolate_by_rows(
        make_value_view(points, [50, 50]), count_points(points), None, columns=2, tries=50, rng=rng
    )
    assert result.success.hits == 50
    assert result.guess.hits < 8  # 1 of 50 by chance; 8 or more with 2e-6
    with pytest.raises(ParameterError, match="columns"):
        isolate_by_rows(
            make_value_view(points, [50, 50]),
            count_points(points),
            None,
            columns=3,
            tries=9,
            rng=rng,
        )


# By classes


def tight(
    rng: np.random.Generator, number: int, k: int, width: int
) -> tuple[AttackerView, Frequencies]:
    """Classes of k people in the order of the first column, each shown by the box around them."""
    points = rng.integers(0, 100, (number, width))
    points = points[np.argsort(points[:, 0], kind="stable")]
    groups = points.reshape(-1, k, width)
    low, high = groups.min(axis=1), groups.max(axis=1)
    return make_box_view(low, high, np.full(len(groups), k)), count_points(points)


def value_of(estimate: Estimate) -> tuple[float, float, float]:
    assert estimate.control is not None
    return estimate.success.value, estimate.control.value, estimate.guess.value


@pytest.mark.parametrize("k", [2, 5, 10])
def test_tight_classes_single_out_by_the_law(k: int) -> None:
    rng = np.random.default_rng(8)
    seen, original = tight(rng, 1000, k, 40)
    _, control = tight(rng, 1000, k, 40)
    success, others, guess = value_of(
        isolate_by_classes(seen, original, control, tries=8000, rng=rng)
    )
    # The deviation is 0.0055: further off with a chance of 3e-5. Weights of 1/(s + 1) or 2/s would
    # give 0.444 and 0 at s = 2, 0.355 and 0.26 at s = 10.
    assert abs(success - (1 - 1 / k) ** (k - 1)) < 0.023
    assert others < 0.01
    assert guess < 0.01


@pytest.mark.parametrize("seed", [9, 10, 11])
def test_classes_of_a_safe_release_single_out_as_in_the_control(seed: int) -> None:
    rng = np.random.default_rng(seed)
    original, control = (count_points(rng.integers(0, 64, (4000, 4))) for _ in range(2))
    eighths = (np.arange(64) // 8).astype(np.int32)
    cells = original.roll_up([eighths, eighths, 0 * eighths, 0 * eighths])
    published = draw_noisy_counts(cells, GeometricCounts(14, 1.0), k=1, bits=SeededRandomness(seed))
    low = published.codes * 8
    seen = make_box_view(low, low + np.array([7, 7, 63, 63]), published.counts)
    result = isolate_by_classes(seen, original, control, tries=8000, rng=rng)
    success, others, guess = value_of(result)
    for value in (success, others, guess):  # off by 4 deviations of 0.0054 with a chance of 6e-5
        assert abs(value - 1 / math.e) < 0.006 + 0.022
    assert not result.succeeds  # chance 1 %: its true lead of 0.006 is below a deviation, 0.0076
    assert result.details["weight"] == pytest.approx(1 / 4000, rel=0.1)


def test_a_class_of_a_sample_stands_for_more_people() -> None:
    rng = np.random.default_rng(10)
    original, control = (count_points(rng.integers(0, 1000, (3000, 3))) for _ in range(2))
    low = np.array([(a, 0, 0) for a in range(0, 1000, 10)])
    seen = make_box_view(low, low + np.array([9, 999, 999]), np.full(100, 6))
    seen = AttackerView(seen.names, seen.codes, seen.counts, seen.covers, drawn=0.2)
    success, others, _ = value_of(isolate_by_classes(seen, original, control, tries=8000, rng=rng))
    assert abs(success - 1 / math.e) < 0.03  # as of 30 people; of 6 it would be 5 e^-5 = 0.03
    assert abs(others - 1 / math.e) < 0.03


def test_people_alike_are_never_told_apart_and_by_their_whole_record_are() -> None:
    rng = np.random.default_rng(11)
    points = np.array([[0, 0], [0, 1], [0, 2], [0, 2], [0, 3], [0, 3], [0, 3], [1, 0]])
    seen = make_box_view(np.array([[0]]), np.array([[0]]), np.array([7]))
    result = isolate_by_classes(seen, count_points(points), None, tries=20_000, rng=rng)
    hits = 0
    for _ in range(20_000):
        meets = rng.random(4) < 1 / 7
        hits += int((meets[points[:7, 1]]).sum() == 1)
    assert abs(result.success.value - 2 / 7 * (6 / 7) ** 3) < 0.012  # 4 deviations, 6e-5
    assert abs(hits / 20_000 - result.success.value) < 0.016
    alone = isolate_by_classes(seen, count_points(points), None, tries=20_000, rng=rng, unique=True)
    assert abs(alone.success.value - (6 / 7) ** 6) < 0.014
    # Without a control, the weight is that of the table: 7 of 8 people, 1/7 of them.
    guess = 3 * (1 / 8) * (7 / 8) ** 4
    assert abs(result.guess.value - guess) < 0.013
    assert result.control is None


def test_nothing_shown_isolates_nobody() -> None:
    rng = np.random.default_rng(12)
    points = np.arange(20)[:, None]
    covers = (make_cover([range(20)], [0]),)
    seen = as_seen(("a",), Frequencies(np.zeros((1, 1), np.int32), np.array([20])), covers)
    for item in (
        isolate_by_classes(seen, count_points(points), count_points(points), tries=50, rng=rng),
        isolate_by_rows(
            seen, count_points(points), count_points(points), columns=1, tries=50, rng=rng
        ),
    ):
        for rate in (item.success, item.guess, item.control):
            assert rate is not None
            assert (rate.hits, rate.tries) == (0, 50)
