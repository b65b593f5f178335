from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.scenes import build_scene

from incrowd.evaluation.attacks import inference
from incrowd.evaluation.attacks.scene import AttackScene
from incrowd.evaluation.attacks.view import sample_people
from incrowd.measure.estimate import Estimate
from incrowd.measure.labels import assign_bins

AGES = {"intervals": {"from": 0, "to": 39, "widths": [1, 10, 20]}}
ILLS = {"groups": {"lung": ["cough", "asthma"], "heart": ["angina", "stroke"]}}
COLUMNS = {"age": AGES, "ill": ILLS}
NAMES = ("cough", "asthma", "angina", "stroke")
Row = list[object]


def ten(age: int) -> str:
    return f"{age // 10 * 10}-{age // 10 * 10 + 9}"


def made_up(number: int, seed: int, chances: Sequence[float] = (0.4, 0.3, 0.2, 0.1)) -> list[Row]:
    rng = np.random.default_rng(seed)
    ills = rng.choice(NAMES, number, p=chances)
    return [
        [int(age), str(ill)] for age, ill in zip(rng.integers(0, 40, number), ills, strict=True)
    ]


def tens(rows: Sequence[Row]) -> list[Row]:
    return [[ten(int(str(age))), ill] for age, ill in rows]


def attacked(scene: AttackScene, way: str, **more: Any) -> Estimate:
    rng = np.random.default_rng(1)
    bins = assign_bins(scene.axes[1])
    view, secret = inference.split_secret(scene.release, [0], 1)
    victims = inference.make_targets(sample_people(scene.everybody, 5000, rng), [0], 1, bins)
    others = None
    if scene.control is not None:
        others = inference.make_targets(sample_people(scene.control, 5000, rng), [0], 1, bins)
    estimate = getattr(inference, way)(view, secret, victims, **more, control=others)
    assert isinstance(estimate, Estimate)
    return estimate


def test_a_table_published_whole_tells_of_those_who_are_alone() -> None:
    rows: list[Row] = [[age, NAMES[age % 4]] for age in range(40)]
    result = attacked(build_scene(COLUMNS, rows, rows, secrets=["ill"]), "infer_by_rows")
    assert (result.success.value, result.guess.value) == (1.0, 0.25)


def test_what_most_rows_alike_show_is_said() -> None:
    rows: list[Row] = [
        *[[5, "cough"]] * 6,
        *[[5, "stroke"]] * 4,
        *[[15, "angina"]] * 9,
        [15, "cough"],
    ]
    result = attacked(build_scene(COLUMNS, rows, tens(rows), secrets=["ill"]), "infer_by_rows")
    assert result.success.hits == 6 + 9
    assert result.guess.hits == 9  # angina, the most frequent


def test_what_holds_of_everybody_is_no_success() -> None:
    """The young cough and the old have strokes, in the table or not."""

    def people_like(seed: int) -> list[Row]:
        rng = np.random.default_rng(seed)
        ages = rng.integers(0, 40, 2000).tolist()
        return [[age, "cough" if age < 20 else "stroke"] for age in ages]

    rows = people_like(1)
    scene = build_scene(COLUMNS, rows, tens(rows), control=people_like(2), secrets=["ill"])
    for way in ("infer_by_rows", "infer_by_homogeneity"):
        result = attacked(scene, way)
        assert result.control is not None
        assert result.success.value == result.control.value == 1.0
        assert result.guess.value < 0.6
        assert not result.succeeds


def test_classes_that_agree_are_counted_and_no_others() -> None:
    rows: list[Row] = [*[[5, "cough"]] * 5, *[[15, "cough"]] * 4, [15, "stroke"]]
    result = attacked(
        build_scene(COLUMNS, rows, tens(rows), secrets=["ill"]), "infer_by_homogeneity"
    )
    assert (result.success.hits, result.success.tries) == (5, 10)
    assert result.details["certain"] == 0.5
    assert result.guess.hits == 5  # the most frequent value, said of the same people


def test_who_knows_everybody_else_reads_the_class() -> None:
    """Whatever the class, if it is published as it is; and nothing of people who are not there."""
    rows, others = made_up(400, 1), made_up(4000, 2)
    scene = build_scene(COLUMNS, rows, tens(rows), control=others, secrets=["ill"])
    result = attacked(scene, "infer_by_background", everybody=scene.everybody)
    assert result.success.value == 1.0
    assert result.control is not None
    assert result.control.high < 0.5
    assert result.succeeds


def test_overlapping_labels_do_not_hide_from_who_knows_everybody_else() -> None:
    rows: list[Row] = [[age, NAMES[age % 4]] for age in range(40)]
    published = [["0-19" if at % 2 else "10-29", ill] for at, (_, ill) in enumerate(rows)]
    scene = build_scene(COLUMNS, rows, published, secrets=["ill"])
    assert attacked(scene, "infer_by_background", everybody=scene.everybody).success.value == 1.0


def test_noise_hides_even_from_who_knows_everybody_else() -> None:
    """Counts with noise of a standard deviation of 6: success is that of the control group."""
    rng = np.random.default_rng(3)
    rows, others = made_up(4000, 1), made_up(4000, 2)
    published: list[Row] = []
    for age in range(0, 40, 10):
        for ill in NAMES:
            count = sum(ten(int(str(a))) == ten(age) and i == ill for a, i in rows)
            published += [[ten(age), ill]] * max(count + round(float(rng.normal(0, 6))), 0)
    blurred = build_scene(COLUMNS, rows, published, control=others, secrets=["ill"], variance=36.0)
    result = attacked(blurred, "infer_by_background", everybody=blurred.everybody)
    assert result.control is not None
    assert result.success.low <= result.control.high
    assert not result.succeeds


def test_a_sample_hides_as_far_as_it_is_one() -> None:
    """Half of the rows of large classes: nobody else's being known tells who was drawn."""
    rng = np.random.default_rng(4)
    rows, others = made_up(4000, 1), made_up(4000, 2)
    sample = [row for row in tens(rows) if rng.random() < 0.5]
    scene = build_scene(COLUMNS, rows, sample, control=others, secrets=["ill"], sample_rate=0.5)
    assert not attacked(scene, "infer_by_background", everybody=scene.everybody).succeeds


def test_a_secret_that_is_shown_by_groups_is_told_by_groups() -> None:
    """The group is read for certain; which of its two values it is can only be guessed."""
    rows: list[Row] = [[age % 40, NAMES[age % 4]] for age in range(400)]
    groups = [[ten(int(str(a))), "lung" if i in NAMES[:2] else "heart"] for a, i in rows]
    scene = build_scene(COLUMNS, rows, groups, secrets=["ill"])
    result = attacked(scene, "infer_by_background", everybody=scene.everybody)
    assert result.success.value == pytest.approx(0.5)
    assert result.guess.value == pytest.approx(0.25)


def test_an_empty_release_tells_nothing() -> None:
    rows = made_up(50, 1)
    scene = build_scene(COLUMNS, rows, [["*", "*"]], secrets=["ill"])
    assert attacked(scene, "infer_by_rows").success.value == 0.0
    assert attacked(scene, "infer_by_homogeneity").success.value == 0.0
