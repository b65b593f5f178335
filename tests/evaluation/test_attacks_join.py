"""Two halves of a record meet in a released row as often as all choices of rows say."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from support.attacker_views import make_cover, make_value_view

from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.errors import ParameterError
from incrowd.evaluation.attacks import join
from incrowd.evaluation.attacks.join import compute_join_chances, join_by_nearest
from incrowd.evaluation.attacks.view import AttackerView, People
from incrowd.evaluation.attacks.view import make_view as as_seen

SETS = [[0], [1], [2], [0, 1], [0, 2], [0, 1, 2]]
RUNS = [[0], [1], [2], [0, 1], [1, 2], [0, 1, 2]]
HALVES = ([0, 2], [1, 3])


def brute(rows: list[list[int]], person: list[int], sets: list[list[int]]) -> float:
    """The share of all choices of a nearest row for each half that take the same."""

    def nearest(half: list[int]) -> list[int]:
        fits = [sum(person[at] in sets[row[at]] for at in half) for row in rows]
        return [at for at, item in enumerate(fits) if item == max(fits)]

    choices = list(product(*(nearest(half) for half in HALVES)))
    return sum(first == other for first, other in choices) / len(choices)


@pytest.mark.parametrize("sets", [SETS, RUNS])
@pytest.mark.parametrize("cells", [1, 20, 10_000_000])
def test_chances_are_those_of_all_choices(
    cells: int, sets: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join, "_CELLS", cells)
    rng = np.random.default_rng(1)
    for _ in range(12):
        rows = rng.integers(0, len(SETS), (int(rng.integers(1, 7)), 4))
        rows[-1] = rows[0]  # a class of two rows
        table = merge_tuples(rows.astype(np.int32), np.ones(len(rows), dtype=np.int64))
        seen = AttackerView(
            ("a", "b", "c", "d"), table.codes, table.counts, (make_cover(sets),) * 4
        )
        points = rng.integers(0, 3, (8, 4)).astype(np.int32)
        expected = [brute(rows.tolist(), person, sets) for person in points.tolist()]
        assert compute_join_chances(seen, HALVES, points) == pytest.approx(expected)


def test_a_copy_joins_who_is_unique_in_both_halves() -> None:
    rng = np.random.default_rng(2)
    points = rng.integers(0, 12, (150, 4)).astype(np.int32)
    seen = make_value_view(points, [12] * 4)
    sizes = [
        np.array([(points[:, half] == row[half]).all(axis=1).sum() for row in points])
        for half in HALVES
    ]
    both = np.array([(points == row).all(axis=1).sum() for row in points])
    join_chances = compute_join_chances(seen, HALVES, points)
    assert join_chances == pytest.approx(both / (sizes[0] * sizes[1]))
    unique = (sizes[0] == 1) & (sizes[1] == 1)
    assert 10 < unique.sum() < 140
    assert (join_chances == 1).tolist() == unique.tolist()  # nobody has a double here


def test_a_copy_joins_its_people_and_a_sample_of_others_nobody() -> None:
    rng = np.random.default_rng(3)
    tables = [rng.integers(0, 40, (2000, 4)).astype(np.int32) for _ in range(3)]
    target, control, other = (People(points) for points in tables)
    copy = join_by_nearest(make_value_view(tables[0], [40] * 4), HALVES, target, control, rng=rng)
    assert copy.control is not None
    assert copy.success.value > 0.15  # 1 / 2.25^2 on average and more
    assert copy.succeeds
    assert copy.guess.value == pytest.approx(1 / 2000)
    apart = join_by_nearest(
        make_value_view(other.points, [40] * 4), HALVES, target, control, rng=rng
    )
    assert apart.control is not None
    assert abs(apart.success.hits - apart.control.hits) < 25  # of about 5 in 2,000 each
    assert not apart.succeeds


def test_vague_rows_join_nobody() -> None:
    """All rows are nearest to both halves, and which is whose nobody can say."""
    rng = np.random.default_rng(5)
    points = np.repeat(np.array([[0, 0], [1, 1]], dtype=np.int32), 1000, axis=0)
    result = join_by_nearest(
        make_value_view(points, [2, 2]), ([0], [1]), People(points), None, rng=rng
    )
    assert result.success.hits < 12  # one in a thousand each, of 2,000: 12 or more with 1e-5
    assert result.guess.value == 1 / 2000


def test_rows_that_show_nothing_join_nobody() -> None:
    rng = np.random.default_rng(4)
    covers = (make_cover([[0], [1], [0, 1]], [2]),) * 2
    points = np.array([[0, 0], [1, 1]], dtype=np.int32)
    codes = np.array([[0, 0], [1, 1], [2, 2]], dtype=np.int32)
    seen = as_seen(("a", "b"), Frequencies(codes, np.array([1, 1, 5])), covers)
    result = join_by_nearest(seen, ([0], [1]), People(points), None, rng=rng)
    assert (result.success.hits, result.control) == (2, None)
    nothing = as_seen(("a", "b"), Frequencies(codes[2:], np.array([5])), covers)
    result = join_by_nearest(nothing, ([0], [1]), People(points), People(points), rng=rng)
    assert (result.success.hits, result.success.tries) == (0, 2)


@pytest.mark.parametrize("halves", [([0], [0, 1]), ([], [1])])
def test_halves_have_columns_of_their_own(halves: tuple[list[int], list[int]]) -> None:
    seen = make_value_view(np.array([[0, 0]]), [1, 1])
    with pytest.raises(ParameterError, match="halves"):
        compute_join_chances(seen, halves, np.zeros((1, 2), np.int32))
