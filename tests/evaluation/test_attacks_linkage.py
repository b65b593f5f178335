from __future__ import annotations

import numpy as np
import pytest
from support.scenes import build_scene

from incrowd.evaluation.attacks.linkage import attack_linkage, find_worst_columns
from incrowd.evaluation.attacks.scene import AttackScene
from incrowd.evaluation.attacks.view import AttackerView, People, sample_people
from incrowd.measure.estimate import Estimate

AGES = {"intervals": {"from": 0, "to": 39, "widths": [1, 10, 20]}}
SEXES = {"flat": {"values": ["f", "m"]}}
COLUMNS = {"age": AGES, "sex": SEXES}
EVERYBODY = [[age, sex] for age in range(40) for sex in "fm"]


def tens(rows: list[list[object]]) -> list[list[object]]:
    return [[f"{int(str(a)) // 10 * 10}-{int(str(a)) // 10 * 10 + 9}", s] for a, s in rows]


def linked(
    scene: AttackScene, known_columns: tuple[int, ...] = (0, 1), *, errors: float = 0.0
) -> Estimate:
    rng = np.random.default_rng(1)
    return attack_linkage(
        scene.release,
        sample_people(scene.everybody, 10_000, rng),
        known_columns=known_columns,
        errors=errors,
        rng=rng,
        control=None if scene.control is None else sample_people(scene.control, 10_000, rng),
    )


def test_who_is_alone_in_a_table_published_whole_is_always_found() -> None:
    result = linked(build_scene(COLUMNS, EVERYBODY, EVERYBODY))
    assert result.success.value == 1.0
    assert result.guess.value == pytest.approx(1 / 80)
    assert result.succeeds


def test_in_classes_of_k_one_of_k_is_found() -> None:
    """Twenty thousand people in classes of ten: within four standard deviations of a tenth."""
    scene = build_scene(COLUMNS, EVERYBODY * 25, tens(EVERYBODY * 25))
    result = linked(scene)
    assert result.details["expected"] == pytest.approx(1 / 250)
    item = linked(build_scene(COLUMNS, EVERYBODY, tens(EVERYBODY)))
    assert item.details["expected"] == pytest.approx(1 / 10)


def test_a_row_that_was_not_drawn_is_not_found() -> None:
    half = build_scene(COLUMNS, EVERYBODY, tens(EVERYBODY[:40]), sample_rate=0.5)
    result = linked(half)
    assert result.details["expected"] == pytest.approx(0.5 * (0.5 / 10))  # half have no class


def test_fewer_columns_find_fewer() -> None:
    scene = build_scene(COLUMNS, EVERYBODY, tens(EVERYBODY))
    assert linked(scene, (0,)).details["expected"] == pytest.approx(1 / 20)
    assert linked(scene, (1,)).details["expected"] == pytest.approx(1 / 40)


def test_people_who_are_not_there_are_named_as_surely_and_it_is_said() -> None:
    """Of a table's own kind of people he is as sure; of others, who fit no row, of none."""
    same = linked(
        build_scene(COLUMNS, EVERYBODY * 50, tens(EVERYBODY * 50), control=EVERYBODY * 50)
    )
    assert same.control is None  # nobody of them could be found
    assert same.details["named_outside"] == pytest.approx(1 / 500)
    scene = build_scene(COLUMNS, EVERYBODY * 50, tens(EVERYBODY * 50), control=EVERYBODY * 50)
    rng = np.random.default_rng(1)
    some, others = (
        sample_people(scene.everybody, 4000, rng),
        sample_people(scene.everybody, 4000, rng),
    )
    estimate = attack_linkage(
        scene.release, some, known_columns=(0, 1), control=others, private=True, rng=rng
    )
    assert estimate.control is not None
    assert estimate.control.low < 1 / 500 < estimate.control.high
    assert not estimate.succeeds
    young = [row for row in EVERYBODY if int(str(row[0])) < 20]
    other = linked(build_scene(COLUMNS, young, tens(young), control=EVERYBODY[40:]))
    assert other.details["named_outside"] == 0.0


def test_of_a_cell_that_is_shown_rows_are_there_as_they_are_shown() -> None:
    """Of forty people alike ten rows are shown: each of them is named with one in forty."""
    rows: list[list[object]] = [[5, "f"]] * 40
    few = build_scene(COLUMNS, rows, tens(rows[:10]), sample_rate=0.9)
    rng = np.random.default_rng(1)
    some = sample_people(few.everybody, 100, rng)
    linkage = attack_linkage(
        few.release, some, known_columns=(0, 1), everybody=few.everybody, rng=rng
    )
    assert linkage.details["expected"] == pytest.approx(1 / 40)
    many = build_scene(COLUMNS, rows, tens(rows * 2))  # more rows than there are people
    linkage = attack_linkage(
        many.release, some, known_columns=(0, 1), everybody=many.everybody, rng=rng
    )
    assert linkage.details["expected"] == pytest.approx(1 / 80)


def by_hand(seen: AttackerView, truth: People, stated: People) -> float:
    """The mean chance, person by person: own rows, near rows, those in both."""
    chances = []
    for point, text in zip(truth.points, stated.points, strict=True):
        scores: dict[str, list[int]] = {"own": [], "near": []}
        for codes in seen.codes.tolist():
            for name, values in (("own", point), ("near", text)):
                fit = sum(
                    cover.low[label] <= values[at] <= cover.high[label]
                    for at, (label, cover) in enumerate(zip(codes, seen.covers, strict=True))
                )
                scores[name].append(fit)
        matching = {at for at, score in enumerate(scores["own"]) if score == 2}
        near = {at for at, score in enumerate(scores["near"]) if score == max(scores["near"])}
        rows = {at: int(count) for at, count in enumerate(seen.counts)}
        total = sum(rows[at] for at in matching)
        both = sum(rows[at] for at in matching & near)
        chances.append(both / total / sum(rows[at] for at in near) if total else 0.0)
    return float(np.mean(chances))


def test_with_errors_the_row_must_be_among_those_that_look_right() -> None:
    rng = np.random.default_rng(5)
    rows = [[int(rng.integers(40)), "fm"[int(rng.integers(2))]] for _ in range(300)]
    scene = build_scene(COLUMNS, rows, tens(rows))
    result = linked(scene, errors=0.5)
    again = np.random.default_rng(1)
    everybody = sample_people(scene.everybody, 10_000, again)
    stated = everybody.with_errors(0.5, again)
    assert result.details["expected"] == pytest.approx(by_hand(scene.release, everybody, stated))
    assert result.details["expected"] < linked(scene).details["expected"]  # type: ignore[operator]
    assert "wrong with probability 0.5" in result.knows


@pytest.mark.parametrize("subsets", [300, 0])
def test_the_columns_that_help_most_are_found(
    subsets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four, the two of many values; all choices are tried, or one column after another."""
    import incrowd.evaluation.attacks.linkage as module

    monkeypatch.setattr(module, "_SUBSETS", subsets)
    rng = np.random.default_rng(2)
    columns = {"a": SEXES, "b": AGES, "c": SEXES, "d": AGES}
    rows = [
        ["fm"[rng.integers(2)], int(rng.integers(40)), "fm"[rng.integers(2)], int(rng.integers(40))]
        for _ in range(400)
    ]
    scene = build_scene(columns, rows, rows)
    everybody = sample_people(scene.everybody, 400, rng)
    assert find_worst_columns(scene.release, everybody, 2, rng=rng) == (1, 3)


def test_an_empty_release_finds_nobody() -> None:
    result = linked(build_scene(COLUMNS, EVERYBODY, [["*", "*"]], control=EVERYBODY))
    assert result.success.value == result.details["named_outside"] == 0.0
    assert not result.succeeds
