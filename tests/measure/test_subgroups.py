"""Groups of people by one column, against a count row by row."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from incrowd.measure.subgroups import MOST, Subgroup, SuppressionBurden, measure_burden
from incrowd.publication import publish

pytestmark = pytest.mark.usefixtures("settled_once")
AGES = {"from": 0, "to": 39, "widths": [10, 20]}
COLUMNS: dict[str, Any] = {
    "age": {"role": "quasi", "hierarchy": {"intervals": AGES}},
    "race": {"role": "quasi", "hierarchy": {"flat": {"values": ["a", "b", "c", "d"]}}},
    "code": {"role": "quasi", "hierarchy": {"flat": {"values": [f"v{at:02}" for at in range(30)]}}},
}


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    """Nearly all are of race a, and the others are rare; codes are many."""
    draw = np.random.default_rng(3)
    n = 1500
    return pl.DataFrame(
        {
            "age": draw.integers(0, 40, n),
            "race": draw.choice(["a", "b", "c", "d"], n, p=[0.8, 0.15, 0.04, 0.01]),
            "code": [f"v{at:02}" for at in np.minimum(draw.geometric(0.12, n) - 1, 29)],
            "ill": [(None, "yes", "no")[at] for at in draw.choice(3, n, p=[0.02, 0.28, 0.7])],
        }
    )


def groups_of(folder: Path) -> dict[str, list[dict[str, Any]]]:
    written = json.loads((folder / "evaluation.json").read_text())["subgroups"]
    result: dict[str, list[dict[str, Any]]] = {}
    for subgroup in written:
        result.setdefault(subgroup["column"], []).append(subgroup)
    return result


def released(people: pl.DataFrame, folder: Path, release: dict[str, Any], **more: Any) -> Any:
    columns = {**COLUMNS, "ill": {"role": "drop"}, **more}
    spec = {"columns": columns, "release": release}
    return publish(people, spec, output=folder / "out", curator=folder / "private")


def decade(age: int) -> str:
    return f"{age // 10 * 10}-{age // 10 * 10 + 9}"


@pytest.mark.parametrize("draw", ["counts", "sample"])
def test_a_safe_release_by_levels(people: pl.DataFrame, tmp_path: Path, draw: str) -> None:
    release = {
        "method": "safe", "epsilon": 1, "delta": 1e-6, "draw": draw,
        "levels": {"age": 1, "race": 0, "code": 1},
    }  # fmt: skip
    safe_release = released(people, tmp_path, release)
    published_cells = {(row["age"], row["race"]) for row in safe_release.data.to_dicts()}
    rows, hidden, after = Counter[Any](), Counter[Any](), Counter[Any]()
    for row in people.to_dicts():
        cell = decade(row["age"]), row["race"]
        for name, label in zip(("age", "race"), cell, strict=True):
            rows[name, label] += 1
            hidden[name, label] += cell not in published_cells
    for row in safe_release.data.to_dicts():
        after.update((name, row[name]) for name in ("age", "race"))
    result = groups_of(tmp_path / "private")
    assert sum(hidden.values())
    for name in ("age", "race"):
        rows_by_label = {
            subgroup["label"]: (subgroup["rows"], subgroup["hidden"], subgroup["released"])
            for subgroup in result[name]
        }
        assert rows_by_label == {
            label: (rows[key, label], hidden[key, label], after[key, label])
            for key, label in rows
            if key == name
        }
        assert {subgroup["level"] for subgroup in result[name]} == {1 if name == "age" else 0}
    (all_,) = result["code"]  # of which nothing is shown
    assert (all_["label"], all_["rows"]) == ("*", 1500)


def test_classes_and_columns_that_are_kept(people: pl.DataFrame, tmp_path: Path) -> None:
    release = {
        "method": "k-anonymity", "k": 12, "suppression": 0.2,
        "levels": {"age": 1, "race": 0, "code": 1},
    }  # fmt: skip
    k_release = released(people, tmp_path, release, ill={"role": "sensitive"})
    published_cells = {(row["age"], row["race"]) for row in k_release.data.to_dicts()}
    rows, hidden = Counter[Any](), Counter[Any]()
    for row in people.to_dicts():
        is_hidden = (decade(row["age"]), row["race"]) not in published_cells
        ages = f"{row['age'] // 10 * 10}-{row['age'] // 10 * 10 + 9}"
        for key in (("age", ages), ("race", row["race"]), ("ill", row["ill"])):
            rows[key] += 1
            hidden[key] += is_hidden
    result = groups_of(tmp_path / "private")
    assert (
        0
        < sum(subgroup["hidden"] for subgroup in result["race"])
        == k_release.evaluation.suppressed
    )
    for name in ("age", "race", "ill"):
        rows_by_label = {
            subgroup["label"]: (subgroup["rows"], subgroup["hidden"]) for subgroup in result[name]
        }
        assert rows_by_label == {
            label: (rows[key, label], hidden[key, label]) for key, label in rows if key == name
        }
        assert sum(subgroup["released"] for subgroup in result[name]) == pytest.approx(
            len(k_release.data)
        )
    codes = result["code"]  # 30 values, of which the rare are one group
    assert len(codes) == MOST
    assert codes[-1]["others"] == people["code"].n_unique() - MOST + 1
    assert sum(code["rows"] for code in codes) == 1500
    # Of a column that shows nothing, a reader takes every value to be equally likely.
    assert codes[0]["released"] == pytest.approx(len(k_release.data) / 30)


def test_where_labels_overlap_nobody_knows_who_is_hidden(
    people: pl.DataFrame, tmp_path: Path
) -> None:
    release = {"method": "k-anonymity", "k": 12, "algorithm": "mondrian"}
    released(people, tmp_path, release)
    result = groups_of(tmp_path / "private")
    assert {subgroup["hidden"] for group in result.values() for subgroup in group} == {None}
    for group in result.values():
        assert sum(subgroup["released"] for subgroup in group) == pytest.approx(1500)


def test_on_whom_it_falls() -> None:
    def of(label: str, rows: int, hidden: int | None) -> Subgroup:
        return Subgroup("race", label, rows, 0.0, hidden)

    burden = measure_burden([of("a", 900, 9), of("b", 60, 6), of("c", 40, 20)])
    assert burden == SuppressionBurden(0.035, 0.26, 0.01, of("c", 40, 20))
    assert burden.is_uneven
    other = measure_burden([of("a", 900, 90), of("b", 60, 6)])
    assert other is not None
    assert not other.is_uneven
    assert measure_burden([of("a", 5, None)]) is None
    assert measure_burden([]) is None
    nobody = measure_burden([of("a", 5, 0), of("b", 95, 0)])
    assert nobody is not None
    assert (nobody.worst, nobody.is_uneven) == (None, False)
