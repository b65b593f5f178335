from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.attacker_views import make_box_view, make_cover
from support.scenes import build_scene

from incrowd.arrays import Codes
from incrowd.codes.frequency import Frequencies
from incrowd.evaluation.attacks import view as module
from incrowd.evaluation.attacks.view import (
    AttackerView,
    People,
    match_labels,
    sample_people,
    subsample,
)

AGES = {"intervals": {"from": 0, "to": 39, "widths": [1, 10, 20]}}
COLUMNS = {"age": AGES, "sex": {"flat": {"values": ["f", "m"]}}}
TABLE = [(age, "fm"[age % 2]) for age in range(40)] * 2


def by_levels() -> AttackerView:
    return build_scene(
        COLUMNS, TABLE, [[f"{a // 10 * 10}-{a // 10 * 10 + 9}", s] for a, s in TABLE]
    ).release


def overlapping() -> AttackerView:
    published = [["0-19", "f"], ["10-29", "f"], ["5", "m"], ["0-39", "*"], ["20-39", "m"]]
    return build_scene(COLUMNS, TABLE, published).release


def nearest(seen: AttackerView, points: Codes) -> list[tuple[int, set[int]]]:
    result: list[tuple[int, set[int]]] = []
    for near in seen.find_nearest(points):
        for at in range(len(near.most)):
            places = near.place[near.ends[at] : near.ends[at + 1]]
            result.append((int(near.most[at]), set(places.tolist())))
    return result


def brute_force(seen: AttackerView, points: Codes) -> list[tuple[int, set[int]]]:
    result = []
    for point in points:
        scores = []
        for codes in seen.codes:
            score = 0
            for at, (label, cover) in enumerate(zip(codes.tolist(), seen.covers, strict=True)):
                inside = int(cover.low[label]) <= point[at] <= int(cover.high[label])
                if label in cover.sets:
                    inside = point[at] in cover.sets[label]
                score += inside
            scores.append(score)
        best = max(scores)
        result.append((best, {at for at, score in enumerate(scores) if score == best}))
    return result


@pytest.mark.parametrize("release", [by_levels, overlapping])
@pytest.mark.parametrize("cells", [1, 7, 20_000_000])
def test_the_nearest_classes_are_those_of_brute_force(
    release: Callable[[], AttackerView], cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In parts of whatever size; people who fit no class wholly among them."""
    monkeypatch.setattr(module, "_CELLS", cells)
    seen = release()
    rng = np.random.default_rng(1)
    points = np.column_stack([rng.integers(0, 42, 60), rng.integers(0, 4, 60)]).astype(np.int32)
    assert nearest(seen, points) == brute_force(seen, points)


def boxes() -> AttackerView:
    """Classes that overlap in two columns; the first has few labels, the second one for each."""
    rng = np.random.default_rng(4)
    low = rng.integers(0, 30, (40, 2))
    low[:, 0] = low[:, 0] // 15 * 5
    return make_box_view(low, low + rng.integers(0, 12, (40, 2)), rng.integers(1, 9, 40))


def scattered() -> AttackerView:
    codes = np.array([[0, 0], [1, 1], [2, 0], [2, 1]], dtype=np.int32)
    covers = (make_cover([[0, 2], [1, 2, 3], [0, 1, 5]]), make_cover([[0, 1], [1, 2]]))
    return AttackerView(("a", "b"), codes, np.array([2, 3, 4, 5]), covers)


@pytest.mark.parametrize("release", [by_levels, overlapping, boxes, scattered])
@pytest.mark.parametrize("cells", [1, 200, 20_000_000])
def test_rows_that_fit_are_those_of_brute_force(
    release: Callable[[], AttackerView], cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CELLS", cells)
    seen = release()
    rng = np.random.default_rng(2)
    points = np.column_stack([rng.integers(0, 42, 60), rng.integers(0, 42, 60)]).astype(np.int32)
    points[::2, 1] %= 4
    expected = [
        sum(int(seen.counts[at]) for at in places) if most == 2 else 0
        for most, places in brute_force(seen, points)
    ]
    assert any(expected)
    assert seen.count_fitting_rows(points).tolist() == expected


def test_a_class_is_looked_up_where_labels_lie_apart() -> None:
    seen = by_levels()
    points = np.array([[0, 0], [39, 1], [5, 3]], dtype=np.int32)  # the last has no sex
    result = seen.find_class(points)
    assert result is not None
    assert result[2] == -1
    assert [seen.covers[0].labels[seen.codes[at, 0]] for at in result[:2]] == ["0-9", "30-39"]
    assert overlapping().find_class(points) is None


def test_sums_are_over_the_nearest_classes() -> None:
    seen = overlapping()
    points = np.array([[12, 0], [25, 1]], dtype=np.int32)
    (near,) = seen.find_nearest(points)
    assert near.sum_weights(seen.counts).tolist() == [3, 2]  # 0-19, 10-29 and 0-39; 20-39 and 0-39


def test_a_part_has_the_rows_of_the_whole() -> None:
    seen = by_levels()
    part, becomes = seen.select_columns([1])
    assert part.names == ("sex",)
    assert part.counts.tolist() == [40, 40]
    assert (part.codes[becomes, 0] == seen.codes[:, 1]).all()


def test_rows_of_stars_are_nobodys() -> None:
    published = [["*", "*"], ["0-19", "f"], ["0-19", "f"]]
    seen = build_scene(COLUMNS, TABLE, published).release
    assert (seen.rows, len(seen)) == (2, 1)
    assert [cover.labels for cover in seen.covers] == [("0-19",), ("f",)]


def test_sets_fit_their_members_alone() -> None:
    seen = build_scene({"c": {"flat": {"values": list("abcd")}}}, [["a"]], [["a,c"], ["b"]]).release
    at = seen.covers[0].labels.index("a,c")
    assert match_labels(seen.covers[0], np.arange(4, dtype=np.int32))[:, at].tolist() == [
        1,
        0,
        1,
        0,
    ]


def test_people_are_rows_and_none_is_drawn_twice() -> None:
    table = Frequencies(np.array([[0], [1], [2]], dtype=np.int32), np.array([5, 1, 4]))
    rng = np.random.default_rng(1)
    assert np.bincount(sample_people(table, 100, rng).points[:, 0]).tolist() == [5, 1, 4]
    for _ in range(50):
        counts = np.bincount(sample_people(table, 7, rng).points[:, 0], minlength=3)
        assert counts.sum() == 7
        assert (counts <= [5, 1, 4]).all()


def test_fewer_rows_are_rows_of_the_table() -> None:
    table = Frequencies(np.array([[0], [1], [2]], dtype=np.int32), np.array([5, 1, 4]))
    rng = np.random.default_rng(1)
    assert subsample(table, 10, rng) is table
    means = np.zeros(3)
    for _ in range(400):
        some = subsample(table, 4, rng)
        counts = np.zeros(3)
        counts[some.codes[:, 0]] = some.counts
        assert some.total == 4
        assert (some.counts > 0).all()
        assert (counts <= [5, 1, 4]).all()
        means += counts / 400
    assert means == pytest.approx([2.0, 0.4, 1.6], abs=0.2)  # four standard deviations and more


def test_few_rows_of_many_are_drawn_alike() -> None:
    table = Frequencies(np.array([[0], [1], [2]], dtype=np.int32), np.array([5000, 20, 4980]))
    rng = np.random.default_rng(1)
    means = np.zeros(3)
    for _ in range(200):
        some = subsample(table, 200, rng)
        assert some.total == 200
        assert (np.diff(some.codes[:, 0]) > 0).all()
        means[some.codes[:, 0]] += some.counts / 200
    assert means == pytest.approx([100, 0.4, 99.6], abs=2)  # four standard deviations and more
    every = Frequencies(np.arange(10_000, dtype=np.int32)[:, None], np.ones(10_000, dtype=np.int64))
    assert (subsample(every, 200, rng).counts == 1).all()  # none of them twice


def test_mistakes_are_as_frequent_as_said() -> None:
    rng = np.random.default_rng(1)
    many = People(np.arange(20_000, dtype=np.int32)[:, None])
    wrong = (many.with_errors(0.25, rng).points != many.points).mean()
    assert wrong == pytest.approx(0.25, abs=0.015)  # five standard deviations
    assert (many.points[:, 0] == np.arange(20_000)).all()
