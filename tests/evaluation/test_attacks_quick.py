from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.scenes import make_columns

import incrowd as ic
from incrowd.evaluation.attacks import quick, trial
from incrowd.evaluation.attacks.catalog import ATTACKS, QUICK
from incrowd.evaluation.attacks.scene import AttackScene
from incrowd.measure.estimate import AttackReport
from incrowd.privacy.randomness import SeededRandomness
from incrowd.publication import Release

COLUMNS = {
    "age": {"role": "quasi", "hierarchy": {"intervals": {"from": 0, "to": 99, "widths": [1, 10]}}},
    "ill": {"role": "sensitive", "hierarchy": {"flat": {"values": ["no", "yes"]}}},
}
ROWS = make_columns(("age", "ill"), [[at % 100, "no" if at % 3 else "yes"] for at in range(900)])


def released(**release: object) -> tuple[Release, str]:
    published = ic.publish(pl.DataFrame(ROWS), {"columns": COLUMNS, "release": release})
    return published, published.report().html


def test_a_release_does_not_fail_by_what_is_tried_against_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is made and paid for by then."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a table nobody thought of\nand more")

    monkeypatch.setattr(quick, "make_scene", broken)
    _, page = released(method="safe", epsilon=1.0, delta=1e-6)
    assert "could not be run (ZeroDivisionError: a table nobody thought of)" in page


def test_where_nothing_is_shown_nothing_is_attacked() -> None:
    release, page = released(method="safe", epsilon=0.01, delta=1e-9)
    assert release.is_empty
    assert "No attack was run: nothing is published." in page


@pytest.mark.parametrize("levels", [{"age": 2, "ill": 0}, {"age": 2, "ill": 1}])
def test_levels_above_the_values_are_attacked_by_one_value_of_each_group(
    levels: dict[str, int],
) -> None:
    """Ends of intervals apart: they would be those of the values that stand for groups."""
    release = {"method": "safe", "epsilon": 2.0, "delta": 1e-4, "scheme": "fixed", "levels": levels}
    _, page = released(**release)
    assert "linkage: all quasi-identifiers" in page
    assert "ends of intervals" not in page


def test_of_a_large_table_some_rows_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "_TUPLES", 50)
    monkeypatch.setattr(quick, "_SOME", 40)
    _, page = released(method="k-anonymity", algorithm="mondrian", k=5)
    assert "a random sample of 40 rows" in page
    assert "linkage: all quasi-identifiers" in page
    assert "ends of intervals" not in page


def test_intervals_of_slices_hold_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many slices the best is often good by chance."""
    confidences = []

    def tried(scene: AttackScene, **how: Any) -> AttackReport:
        confidences.append(how["confidence"])
        return trial.run_attacks(scene, **how)

    monkeypatch.setattr(quick, "run_attacks", tried)
    safe = {"method": "safe", "epsilon": 2.0, "delta": 1e-4}
    released(**safe, slices=[["age"], ["ill"]])
    assert confidences == pytest.approx([0.975, 0.975])
    released(**safe)
    assert confidences[2:] == pytest.approx([0.95])


@pytest.mark.parametrize("more", [{}, {"slices": [["age", "sex"], ["sex", "area"]]}])
def test_a_dossier_is_answered_by_every_attack(tmp_path: Path, more: dict[str, object]) -> None:
    """Also where no column is sensitive: one is inferred, which the other attacks know."""
    flat = {"role": "quasi", "hierarchy": {"flat": {"values": ["a", "b"]}}}
    columns = {"age": COLUMNS["age"], "sex": flat, "area": flat}
    table = pl.DataFrame(
        {"age": [at % 100 for at in range(900)], "sex": ["a", "b"] * 450, "area": ["a"] * 900}
    )
    release = {"method": "safe", "epsilon": 4.0, "delta": 1e-4, "draw": "counts", **more}
    folder = tmp_path / "out"
    for described, tried in ((["dossier"], ATTACKS), ([], QUICK)):
        spec = {"columns": columns, "release": release, "describe": described}
        ic.publish(table, spec, output=folder / str(len(described)), bits=SeededRandomness(1))
        private = folder / f"{len(described)}.curator"
        report = json.loads((private / "attacks.json").read_text())
        names = {attack["attack"] for attack in report["attacks"]}
        inferred = {"inference"} if not described else set()
        levels = {"extreme"}  # needs values, and the search may have chosen levels above them
        assert names - levels == {*tried} - inferred - levels
        knowledge = [
            attack["knows"] for attack in report["attacks"] if attack["attack"] == "linkage"
        ]
        assert more or knowledge == ["age, sex, area of each person"]
        if described:
            page = (private / "dossier-private.html").read_text()
            assert "No attack of this kind was tried" not in page


def test_work_decides_how_many_people_are_tried_and_the_report_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counted work, not a clock: the same release is attacked in the same way."""
    table = pl.DataFrame(ROWS).with_columns(size=pl.Series([at * 7 % 90 for at in range(900)]))
    columns = {**COLUMNS, "size": COLUMNS["age"], "ill": {"role": "sensitive"}}
    release = {"method": "k-anonymity", "k": 5, "algorithm": "mondrian"}
    results = {}
    for work in (10**9, 80_000, 0):
        monkeypatch.setattr(quick, "_WORK", work)
        monkeypatch.setattr(quick, "_SHARE", 0)
        released = [
            ic.publish(table, {"columns": columns, "release": release}).report().html
            for _ in range(2)
        ]
        (tried,) = {
            int(number.replace(",", ""))
            for page in released
            for number in re.findall(r"Each attack was run on ([0-9,]+) random people", page)
        }
        results[work] = tried
        assert ("instead of 1,000, because each is compared" in released[0]) == (tried < 900)
    assert results[10**9] == 900  # all there are
    assert quick.FEWEST < results[80_000] < 900
    assert results[0] == quick.FEWEST


def test_people_who_are_looked_up_are_all_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "_WORK", 6_000)
    monkeypatch.setattr(quick, "_SHARE", 0)
    columns = {**COLUMNS, "ill": {"role": "sensitive"}}
    spec = {"columns": columns, "release": {"method": "k-anonymity", "k": 5, "suppression": 0}}
    page = ic.publish(pl.DataFrame(ROWS), spec).report().html
    assert "Each attack was run on 900 random people" in page
