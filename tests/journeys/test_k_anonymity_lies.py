"""k-anonymous releases that were changed or lie, and how verify finds it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.patients import COLUMNS, QUASI, released
from support.releases import forge, in_order

from incrowd.release.certificate import Certificate
from incrowd.release.statement import Sentence
from incrowd.release.verify import verify

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(scope="module")
def good(patients: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good") / "out"
    columns = COLUMNS.replace(
        "diagnosis: {role: sensitive}", "diagnosis: {role: sensitive, diversity: {distinct: 2}}"
    ).replace("weight: {role: sensitive}", "weight: {role: drop}")
    columns = columns.replace("zip: {role: quasi", "zip: {weight: 0.1, role: quasi")
    released(patients, folder, "k: 5, algorithm: mondrian, format: csv", columns)
    return folder


def certificate_of(folder: Path) -> Certificate:
    return Certificate.model_validate_json((folder / "certificate.json").read_bytes())


def resealed(
    good: Path,
    copy: Path,
    data: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame,
    parameters: dict[str, float | str] | None = None,
    **changes: Any,
) -> Path:
    """A release changed by somebody who knows the code: hashes, counts, words and seal fit."""
    shutil.copytree(good, copy)
    frame = in_order(data(pl.read_csv(copy / "data.csv", infer_schema=False)))
    frame.write_csv(copy / "data.csv")
    known = certificate_of(good)
    sizes = frame.group_by(QUASI).len()["len"]
    release = known.table.release.model_copy(
        update={
            "sha256": hashlib.sha256((copy / "data.csv").read_bytes()).hexdigest(),
            "rows": len(frame),
            "classes": len(sizes),
            "smallest_class": sizes.min(),
        }
    )
    values = {**known.parameters, **(parameters or {})}
    update = {"release": release, "parameters": values}
    changed = known.model_copy(update=update).stated().model_copy(update=changes).sealed()
    forge(copy, changed)
    return copy


def test_an_honest_copy_verifies(good: Path, tmp_path: Path) -> None:
    assert verify(good) == []
    assert verify(resealed(good, tmp_path / "copy")) == []


def test_a_changed_value_is_found(good: Path, tmp_path: Path) -> None:
    shutil.copytree(good, tmp_path / "copy")
    text = (good / "data.csv").read_text()
    (tmp_path / "copy" / "data.csv").write_text(text.replace("female", "Person", 1))
    assert verify(tmp_path / "copy") == ["The file 'data.csv' was changed: its hash does not fit."]


def smaller(frame: pl.DataFrame) -> pl.DataFrame:
    """One class cut down to four rows."""
    first = frame.select(QUASI).row(0)
    own = pl.all_horizontal(
        pl.col(name).eq_missing(value) for name, value in zip(QUASI, first, strict=True)
    )
    return pl.concat([frame.filter(~own), frame.filter(own).head(4)])


def test_a_class_smaller_than_k_is_found(good: Path, tmp_path: Path) -> None:
    (found,) = verify(resealed(good, tmp_path / "copy", smaller))
    assert found == "1 class(es) are smaller than k = 5; the smallest has 4 row(s)."


@pytest.mark.parametrize("label", ["1800-1850", "1950-1940", "1950-", "nineteen", "**"])
def test_labels_outside_the_hierarchy_are_found(good: Path, tmp_path: Path, label: str) -> None:
    def changed(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(birth_year=pl.lit(label))

    found = verify(resealed(good, tmp_path / "copy", changed))
    assert found == [f"'{label}' in column 'birth_year' is no value of its hierarchy."]


def test_a_raised_k_is_found(good: Path, tmp_path: Path) -> None:
    found = verify(resealed(good, tmp_path / "copy", parameters={"k": 50.0}))
    assert len(found) == 1
    assert "smaller than k = 50" in found[0]


LIES: list[dict[str, Any]] = [
    {"method": "safe"},
    {"kept": []},
    {"kept": ["diagnosis", "name"]},
    {"events": [{"kind": "safe release", "k": 5, "beta": 0.1}]},
]


@pytest.mark.parametrize("lie", LIES)
def test_lies_in_the_certificate_are_found(good: Path, tmp_path: Path, lie: dict[str, Any]) -> None:
    assert verify(resealed(good, tmp_path / "copy", **lie)) != []


@pytest.mark.parametrize(
    "change",
    [
        {"statement": [Sentence(key="k_anonymity", text="This is differential privacy.")]},
        {"epsilon": 1.0, "delta": 1e-6},
        {"kind": "differential privacy"},
        {"unit": "one person"},
    ],
)
def test_a_changed_guarantee_is_found(good: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    guarantee = certificate_of(good).guarantee.model_copy(update=change)
    assert verify(resealed(good, tmp_path / "copy", guarantee=guarantee)) != []


@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": 0.1},
        {"note": "differentially private"},
        {"rule of thumb. This file is differentially private with epsilon": 0.1},
        {"rule diagnosis, distinct values, at least": "many"},
        {"suppressed": "never"},
        {"algorithm": "magic"},
    ],
)
def test_parameters_that_no_release_has_are_found(
    good: Path, tmp_path: Path, parameters: dict[str, float | str]
) -> None:
    """They are read by people, and some become part of the statement."""
    try:
        copy = resealed(good, tmp_path / "copy", parameters=parameters)
    except (LookupError, ValueError):  # no statement can be made of them
        return
    assert verify(copy) != []


def test_a_rule_that_does_not_hold_is_found(good: Path, tmp_path: Path) -> None:
    """The statement says that it holds inside every class, and the file tells whether it does."""
    (rule,) = [name for name in certificate_of(good).parameters if name.startswith("rule ")]
    assert verify(resealed(good, tmp_path / "raised", parameters={rule: 6.0})) != []

    def alike(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(diagnosis=pl.lit("cancer"))

    assert verify(resealed(good, tmp_path / "alike", alike)) != []
