"""The extreme value is read off data-dependent intervals, always, and off public ones never."""

from __future__ import annotations

import numpy as np
from support.scenes import build_scene

from incrowd.evaluation.attacks.extreme import attack_interval_ends
from incrowd.measure.estimate import Estimate

AGES = {"intervals": {"from": 0, "to": 99, "widths": [1, 10]}}
TOWNS = {"flat": {"values": ["a", "b"]}}


def at_ends_of(rows: list[list[object]], published: list[list[object]], **more: object) -> Estimate:
    scene = build_scene({"age": AGES, "town": TOWNS}, rows, published, **more)  # type: ignore[arg-type]
    rng = np.random.default_rng(1)
    interval_ends = attack_interval_ends(
        scene.release, scene.everybody, ordered=[0], control=scene.control, tries=500, rng=rng
    )
    assert interval_ends is not None
    return interval_ends


def people_of(number: int, seed: int) -> list[list[object]]:
    rng = np.random.default_rng(seed)
    return [[int(rng.integers(100)), "ab"[rng.integers(2)]] for _ in range(number)]


def around(rows: list[list[object]], size: int) -> list[list[object]]:
    """Classes of neighbors of a town, each shown by its lowest and highest age."""
    published: list[list[object]] = []
    for place in "ab":
        ages = sorted(int(str(age)) for age, where in rows if where == place)
        for start in range(0, len(ages) - size + 1, size):
            class_ages = ages[start : start + size]
            published += [[f"{class_ages[0]}-{class_ages[-1]}", place]] * size
    return published


def test_ends_drawn_around_people_are_theirs() -> None:
    rows = people_of(60, 1)
    result = at_ends_of(rows, around(rows, 10), control=people_of(60, 2))
    assert result.success.value == 1.0
    assert result.control is not None
    assert result.control.value < 0.6
    assert result.guess.value < 0.9


def test_public_ends_are_those_of_people_by_chance_alone() -> None:
    """Thirty people in steps of ten: some have the first or last age of one, others as often."""
    rows = people_of(30, 1)
    published = [[f"{int(str(a)) // 10 * 10}-{int(str(a)) // 10 * 10 + 9}", t] for a, t in rows]
    result = at_ends_of(rows, published, control=people_of(3000, 2))  # thinned to thirty
    assert not result.succeeds
    assert result.control is not None
    assert 0 < result.success.value < 0.6
    exact = {(int(str(a)), t) for a, t in rows}
    classes = {(int(str(a)) // 10 * 10, t) for a, t in rows}
    hits = sum((low + end, t) in exact for low, t in classes for end in (0, 9))
    assert (result.success.hits, result.success.tries) == (hits, 2 * len(classes))


def test_without_intervals_there_are_no_ends() -> None:
    rows = people_of(20, 1)
    scene = build_scene({"age": AGES, "town": TOWNS}, rows, rows)
    rng = np.random.default_rng(1)
    assert (
        attack_interval_ends(scene.release, scene.everybody, ordered=[0], tries=10, rng=rng) is None
    )
