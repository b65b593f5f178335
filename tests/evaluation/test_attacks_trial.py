"""What must not hide from attacks, and what must not be taken for one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.scenes import build_scene

from incrowd.errors import IncrowdError
from incrowd.evaluation.attacks.catalog import ATTACKS
from incrowd.evaluation.attacks.scene import AttackScene
from incrowd.evaluation.attacks.trial import run_attacks
from incrowd.measure.estimate import AttackReport, Estimate
from incrowd.privacy.events import SampledEvent, Selection

AGES = {"intervals": {"from": 0, "to": 99, "widths": [1, 10]}}
TOWNS = {"flat": {"values": ["a", "b"]}}
ILLS = {"flat": {"values": ["no", "yes"]}}
COLUMNS = {"age": AGES, "town": TOWNS, "ill": ILLS}
Row = list[object]


def people_like(number: int, seed: int) -> list[Row]:
    rng = np.random.default_rng(seed)
    return [
        [int(rng.integers(100)), "ab"[rng.integers(2)], ["no", "yes"][rng.integers(2)]]
        for _ in range(number)
    ]


TABLE, OTHERS = people_like(400, 1), people_like(400, 2)


def attacked(scene: AttackScene, **more: Any) -> AttackReport:
    return run_attacks(scene, rng=np.random.default_rng(1), **more)


def named(scene: AttackScene, name: str, **more: Any) -> Estimate:
    return next(estimate for estimate in attacked(scene, **more).estimates if name in estimate.name)


@pytest.mark.parametrize("name", ["all quasi-identifiers", "homogeneous classes", "a matching row"])
def test_rows_that_show_secrets_alone_hide_nobody(name: str) -> None:
    """Suppressed rows as some tools write them: nothing but the secret."""
    stars: list[Row] = [["*", "*", "no"]] * 5
    plain = build_scene(COLUMNS, TABLE, TABLE, control=OTHERS, secrets=["ill"])
    texts: list[Row] = [[str(age), *rest] for age, *rest in TABLE]
    starred = build_scene(COLUMNS, TABLE, [*texts, *stars], control=OTHERS, secrets=["ill"])
    item, other = (named(scene, name).success.value for scene in (plain, starred))
    assert other == pytest.approx(item, abs=0.05)


def test_a_label_for_what_is_outside_covers_nothing_else() -> None:
    """At a level that is known; as the root it would fit everybody, and hide the class."""
    rows: list[Row] = [*TABLE, *[[5, "zz", "yes"]] * 20]
    published = [
        [f"{int(str(a)) // 10 * 10}-{int(str(a)) // 10 * 10 + 9}", "*" if t == "zz" else t, i]
        for a, t, i in rows
    ]
    scene = build_scene(
        COLUMNS, rows, published, secrets=["ill"], levels={"age": 1, "town": 0, "ill": 0}
    )
    assert scene.release.find_class(scene.everybody.codes) is not None
    assert named(scene, "knowing all other rows").success.value == 1.0


def test_missing_rows_do_not_make_an_attacker_worse_than_guessing() -> None:
    """Labels overlap, and one row in fifty is not shown: then he says what is most frequent."""
    published: list[Row] = [
        ["0-99" if at % 2 else "10-99", "*", ill] for at, (_, _, ill) in enumerate(TABLE) if at % 50
    ]
    scene = build_scene(COLUMNS, TABLE, published, secrets=["ill"])
    result = named(scene, "knowing all other rows")
    assert result.success.value >= result.guess.value - 0.02


def test_a_small_control_group_is_no_measure_of_numbers_of_people() -> None:
    scene = build_scene(COLUMNS, TABLE, TABLE, control=OTHERS[:40], secrets=["ill"])
    result = attacked(scene)
    for item in result.estimates:
        if item.attack in ("singling-out", "extreme"):
            assert item.control is None
    assert any("smaller than half of the table" in note for note in result.notes)
    large = attacked(build_scene(COLUMNS, TABLE, TABLE, control=OTHERS, secrets=["ill"]))
    assert all(
        estimate.control is not None
        for estimate in large.estimates
        if estimate.attack == "singling-out"
    )


def test_a_promise_about_a_population_is_not_one_about_the_table() -> None:
    """Who is attacked is known to be in it; so the bound is that of the release alone."""
    scene = build_scene(COLUMNS, TABLE, TABLE, control=OTHERS, secrets=["ill"])
    sampled = replace(scene, promise=(0.1, 0.0), events=(SampledEvent(Selection(2.0), 0.01),))
    result = named(sampled, "by matching rows")
    assert result.bound == 1.0  # e^2 times the control, not e^0.1
    direct = replace(scene, promise=(0.1, 0.0), events=(Selection(0.1),))
    bound = named(direct, "by matching rows").bound
    assert bound is not None
    assert bound < 0.8


def test_columns_are_chosen_on_other_people_than_they_are_tried_on() -> None:
    scene = build_scene(COLUMNS, TABLE, TABLE, secrets=["ill"])
    every, some = (estimate for estimate in attacked(scene, knows=1, only=["linkage"]).estimates)
    assert (every.success.tries, some.success.tries) == (400, 200)


def test_the_confidence_is_that_of_every_interval() -> None:
    scene = build_scene(COLUMNS, TABLE, TABLE, control=OTHERS, secrets=["ill"])
    wide, narrow = (attacked(scene, confidence=x).estimates for x in (0.999, 0.5))
    assert {item.attack for item in wide} == set(ATTACKS) - {"extreme"}  # nothing shows an interval
    for first, other in zip(wide, narrow, strict=True):
        if 0 < first.success.value < 1:
            assert first.success.high - first.success.low > other.success.high - other.success.low


def test_of_an_empty_table_nobody_can_be_attacked() -> None:
    scene = build_scene(COLUMNS, TABLE, TABLE)
    nobody = replace(
        scene, everybody=replace(scene.everybody, codes=scene.everybody.codes[:0],
                                counts=scene.everybody.counts[:0])
    )  # fmt: skip
    with pytest.raises(IncrowdError, match="no rows"):
        attacked(nobody)
