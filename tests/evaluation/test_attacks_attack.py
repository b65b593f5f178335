from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.cli import run_command, run_successfully
from support.pinned_randomness import PinnedRandomness

import incrowd as ic
from incrowd.curate.demo_tables import make_demo_table
from incrowd.errors import IncrowdError
from incrowd.spec.file import SpecFile, load_spec

AGES = {"intervals": {"from": 0, "to": 99, "widths": [1, 5, 25, 50]}}
COLUMNS: dict[str, Any] = {
    "age": {"role": "quasi", "hierarchy": AGES},
    "sex": {"role": "quasi", "hierarchy": {"flat": {"values": ["female", "male"]}}},
    "town": {"role": "quasi", "hierarchy": {"flat": {"values": list("abcdefgh")}}},
    "ill": {"role": "sensitive", "hierarchy": {"flat": {"values": ["no", "yes", "very"]}}},
}


def population(rows: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, rows)
    ill = (rng.random(rows) < 0.2 + 0.5 * (age > 60)).astype(int) + (rng.random(rows) < 0.1)
    return pl.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["female", "male"], rows),
            "town": rng.choice(list("abcdefgh"), rows),
            "ill": np.array(["no", "yes", "very"])[ill],
        }
    )


def spec(**release: Any) -> SpecFile:
    return load_spec({"columns": COLUMNS, "release": release})


TABLE, CONTROL = population(3000, 1), population(3000, 2)


def attacked(released: Any, file: SpecFile, **more: Any) -> dict[str, Any]:
    result = ic.attack(TABLE, released, file, control=CONTROL, seed=1, **more)
    return {f"{estimate.attack}: {estimate.name}": estimate for estimate in result.estimates}


@pytest.mark.parametrize("algorithm", ["ola", "mondrian"])
def test_k_anonymity_keeps_no_secret_from_who_knows_the_others(algorithm: str) -> None:
    file = spec(method="k-anonymity", algorithm=algorithm, k=5)
    result = attacked(ic.publish(TABLE, file), file)
    estimate = result["inference: ill, knowing all other rows"]
    assert estimate.success.value > 0.9
    assert estimate.succeeds


@pytest.mark.parametrize("draw", ["sample", "counts"])
def test_a_safe_release_tells_of_its_people_what_it_tells_of_others(draw: str) -> None:
    """Intervals at 95 %, three attacks: seeded, so it is the same each time."""
    file = spec(method="safe", epsilon=0.5, delta=1e-6, draw=draw)
    result = attacked(ic.publish(TABLE, file, bits=PinnedRandomness(1)), file, knows=2)
    assert len([name for name in result if name.startswith("linkage")]) == 2
    for name, first in result.items():
        allowed = first.bound is not None and first.success.low <= first.bound
        assert not first.succeeds or allowed, name


def test_any_file_can_be_attacked(tmp_path: Path) -> None:
    """Whoever made it: here a table without a single change, and one with wide labels."""
    file = spec(method="k-anonymity", k=2)
    TABLE.write_csv(tmp_path / "whole.csv")
    unchanged = attacked(tmp_path / "whole.csv", file)
    assert unchanged["linkage: all quasi-identifiers"].success.value > 0.3
    assert unchanged["inference: ill, by matching rows"].succeeds
    wide = TABLE.with_columns(age=pl.lit("0-99"), town=pl.lit("*"))
    rough = attacked(wide, file)
    assert rough["linkage: all quasi-identifiers"].success.value < 0.01


def test_kept_columns_of_k_anonymity_are_secrets() -> None:
    """Without a hierarchy, by their own values."""
    columns = {**COLUMNS, "ill": {"role": "sensitive"}}
    file = load_spec({"columns": columns, "release": {"method": "k-anonymity", "k": 5}})
    release = ic.publish(TABLE, file)
    assert "inference: ill, knowing all other rows" in attacked(release, file)
    content = json.loads((release.curator / "attacks.json").read_text())
    assert {item["attack"] for item in content["attacks"]} >= {"linkage", "inference", "extreme"}


def test_a_kept_column_is_read_by_its_values_where_labels_of_its_hierarchy_overlap() -> None:
    """A diagnosis of three characters is a value, and the block of finer ones."""
    table = TABLE.with_columns(
        pl.col("ill").replace_strict({"no": "I10", "yes": "E11", "very": "E11.9"})
    )
    columns = {**COLUMNS, "ill": {"role": "sensitive", "hierarchy": {"icd": {"version": 10}}}}
    file = load_spec({"columns": columns, "release": {"method": "k-anonymity", "k": 5}})
    result = ic.attack(table, ic.publish(table, file), file, only=["inference"], seed=1)
    assert "ill, knowing all other rows" in [estimate.name for estimate in result.estimates]


def test_a_secret_can_be_named_and_is_then_not_known() -> None:
    file = spec(method="k-anonymity", k=5)
    result = attacked(ic.publish(TABLE, file), file, secrets=["town"])
    assert "inference: town, by matching rows" in result
    assert "town" not in result["linkage: all quasi-identifiers"].knows


def test_without_a_secret_or_a_control_it_is_said() -> None:
    file = spec(method="k-anonymity", k=5)
    result = ic.attack(TABLE, ic.publish(TABLE, file), file, secrets=[], seed=1)
    assert any("no sensitive column" in note for note in result.notes)
    assert any("control group" in note for note in result.notes)
    assert all(estimate.control is None for estimate in result.estimates)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"secrets": ["nobody"]}, "secret.*nobody"),
        ({"knows": 9}, "knows.*at most 3.*9"),
        ({"errors": 1.5}, "errors"),
        ({"only": ["magic"]}, "attack.*magic"),
        ({"tries": 0}, "tries"),
        ({"seed": -1}, "seed"),
        ({"only": ["inference"], "secrets": []}, "no sensitive column.*--secret COLUMN"),
        ({"identity": "age"}, "--id applies to `method: k-epsilon` only. Drop it."),
        ({"control": TABLE.drop("town")}, "table. Correct the table or the spec."),
    ],
)
def test_what_cannot_be_tried_is_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(IncrowdError, match=words):
        ic.attack(TABLE, TABLE, spec(method="k-anonymity", k=5), **more)


def test_the_command_says_what_was_tried(tmp_path: Path) -> None:
    file = spec(method="k-anonymity", k=5)
    (tmp_path / "spec.yaml").write_text(file.text())
    for name, table in (("table", TABLE), ("control", CONTROL)):
        table.write_csv(tmp_path / f"{name}.csv")
    ic.publish(TABLE, file, output=tmp_path / "out")
    data = next((tmp_path / "out").glob("data.*"))
    arguments = [
        "attack", "--original", f"{tmp_path}/table.csv", "--released", str(data),
        "--spec", f"{tmp_path}/spec.yaml", "--control", f"{tmp_path}/control.csv", "--seed", "1",
    ]  # fmt: skip
    successfully = run_successfully(*arguments, columns=160)
    assert "Attacked 2,000 people of the table, 2,000 people of the control group." in successfully
    assert "knowing all other rows" in successfully
    assert (
        "A gain is detected if the interval of success lies above those of guessing and of the "
        "control group."
    ) in " ".join(successfully.split())
    (line,) = [line for line in successfully.splitlines() if "ill, by matching rows" in line]
    assert line.count(" % [") == 3  # success, guessing and control group, each with its interval
    content = json.loads(run_successfully(*arguments, "--json", "--only", "linkage"))
    assert [item["attack"] for item in content["attacks"]] == ["linkage"]
    assert run_command(*arguments, "--errors", "much").returncode == 2


def test_the_report_tells_who_was_tried(tmp_path: Path) -> None:
    release = ic.publish(TABLE, spec(method="safe", epsilon=1.0, delta=1e-6), output=tmp_path / "o")
    page = str(release.report())
    assert '<h2 id="attacks">Attacks</h2>' in page
    assert "1,000 random people of the table" in page
    assert not list((tmp_path / "o").glob("*attack*"))  # for the curator alone


def test_a_sample_table_of_slices_is_attacked_slice_by_slice() -> None:
    table = make_demo_table("census", rows=4000)
    names = ("sex", "race", "marital_status", "salary_class")
    columns: dict[str, Any] = {
        name: {"role": "quasi", "hierarchy": "flat"} if name in names else {"role": "drop"}
        for name in table.columns
    }
    for name in names:
        values = sorted(str(value) for value in table.values(name))
        columns[name]["hierarchy"] = {"flat": {"values": values}}
    release = ic.publish(
        table, {"columns": columns, "release": {"epsilon": 2.0, "delta": 1e-5, "slices": 2}}
    )
    content = json.loads((release.curator / "attacks.json").read_text())
    assert [item["attack"] for item in content["attacks"]] == ["linkage", "join", "membership"]
    assert all("(slice " in item["name"] for item in content["attacks"])


def test_people_with_several_rows_are_attacked_by_the_row_that_was_used(tmp_path: Path) -> None:
    several = pl.concat([TABLE.with_columns(id=pl.int_range(3000) % 1500)])
    file = load_spec(
        {
            "unit": {"id": "id"},
            "columns": {**COLUMNS, "id": {"role": "identifier"}},
            "release": {"method": "k-anonymity", "k": 3},
        }
    )
    release = ic.publish(several, file, output=tmp_path / "out")
    report = json.loads((release.curator / "attacks.json").read_text())
    strongest = "ill, knowing all other rows"
    (in_report,) = [item for item in report["attacks"] if item["name"] == strongest]
    by_folder = ic.attack(several, tmp_path / "out", file, seed=1)
    (estimate,) = [item for item in by_folder.estimates if item.name == strongest]
    assert estimate.succeeds
    assert estimate.success.low <= in_report["success"]["value"] <= estimate.success.high
    moved = release.curator.rename(tmp_path / "elsewhere")
    by_chance = ic.attack(several, tmp_path / "out", file, seed=1)
    assert any("stronger attackers" in note for note in by_chance.notes)
    assert strongest not in [item.name for item in by_chance.estimates]
    again = ic.attack(several, tmp_path / "out", file, curator=moved, seed=1)
    assert again.estimates == by_folder.estimates


def test_noisy_values_are_linked_by_fresh_noise_and_it_is_said() -> None:
    columns = {**COLUMNS, "age": {"role": "noisy", "precision": 1, "bounds": [0, 100]}}
    file = load_spec(
        {"columns": columns, "release": {"method": "k-epsilon", "k": 5, "epsilon": 1.0}}
    )
    release = ic.publish(TABLE, file, bits=PinnedRandomness(1))
    first = ic.attack(TABLE, release, file, seed=1, only=["linkage"]).estimates[0]
    assert first.name == "by the nearest noisy values, simulated"
    assert "not measured on this file" in first.says
    assert 0 < first.guess.value < 0.2
    assert first.success.value > first.guess.value


def test_a_release_of_another_table_is_told() -> None:
    """Its counts cannot come from this one."""
    file = spec(
        method="safe", epsilon=1.0, delta=1e-6, scheme="fixed", levels={"age": 3, "town": 1}
    )
    release = ic.publish(TABLE, file, bits=PinnedRandomness(1))
    result = ic.attack(TABLE.head(500), release, file, seed=1, only=["membership"])
    assert any(
        "The optimal membership test was skipped: the release is not of this table." in note
        for note in result.notes
    )


def test_two_releases_of_one_table_are_intersected() -> None:
    """Two k-anonymous ones tell secrets that neither tells alone, of their own people above all."""
    rng = np.random.default_rng(7)
    jobs = [pl.Series("job", rng.integers(0, 60, 3000)).cast(pl.String) for _ in range(2)]
    table, others = (x.with_columns(job) for x, job in zip((TABLE, CONTROL), jobs, strict=True))
    few, columns = table.head(800), {**COLUMNS, "job": {"role": "sensitive"}}
    columns["ill"] = {**COLUMNS["ill"], "role": "quasi"}
    files = [
        load_spec(
            {"columns": columns, "release": {"method": "k-anonymity", "algorithm": x, "k": 5}}
        )
        for x in ("mondrian", "cluster")
    ]
    first, second = (ic.publish(few, file) for file in files)
    result = ic.attack(
        few, first, files[0], control=others, also=[second], seed=1, only=["inference"]
    )
    both = result.estimates[-1]
    assert both.attack == "intersection"
    assert both.succeeds
    assert both.success.value > 2 * max(float(x) for x in both.details.values())
    safe = spec(method="safe", epsilon=0.5, delta=1e-6)
    twice = [ic.publish(TABLE, safe, bits=PinnedRandomness(at)) for at in range(2)]
    safe_report = ic.attack(
        TABLE, twice[0], safe, control=CONTROL, also=twice[1:], seed=1, only=["inference"]
    )
    assert not safe_report.estimates[-1].succeeds


def test_a_classifier_and_shadows_are_tried_on_request() -> None:
    file = spec(method="k-anonymity", k=5)
    some = TABLE.head(400)
    release = ic.publish(some, file)
    result = ic.attack(
        some, release, file, control=CONTROL, seed=1, classifier=True, shadows=True,
        only=["inference"],
    )  # fmt: skip
    names = [estimate.name for estimate in result.estimates]
    assert "ill, by a classifier" in names
    assert any(name.startswith("shadow releases of ") for name in names)
    without = ic.attack(some, release, file, seed=1, classifier=True, only=["inference"])
    assert any("No classifier" in note for note in without.notes)
