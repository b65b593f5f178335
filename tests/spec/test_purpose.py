"""A purpose is enough for a release, and follows from the declared columns alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.cli import run_command, run_successfully
from support.unjudged import publish_unjudged

from incrowd.errors import IncrowdError
from incrowd.methods.registry import make_method
from incrowd.spec.file import load_spec, parse_spec, read_spec_file
from incrowd.spec.purpose import PURPOSES, make_release


def flat(role: str = "quasi") -> dict[str, Any]:
    return {"role": role, "hierarchy": {"flat": {"values": ["a", "b", "c"]}}}


def columns(number: int) -> dict[str, Any]:
    return {**{f"c{at}": flat() for at in range(number - 1)}, "ill": flat("sensitive")}


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize("number", [4, 12, 24])
def test_a_purpose_is_a_release_that_can_be_planned(purpose: str, number: int) -> None:
    file = load_spec({"purpose": purpose, "columns": columns(number)})
    assert file.spec.release is not None
    assert file.spec.purpose == purpose
    make_method(file)
    assert parse_spec(file.text()).spec == file.spec  # what is written says it


def test_each_purpose_has_its_method_objective_and_form() -> None:
    releases = {purpose: make_release(purpose, columns(4)) for purpose in PURPOSES}
    assert releases["explore"]["method"] == "safe"
    assert releases["explore"]["objective"] == "balanced"
    assert (releases["model"]["method"], releases["model"]["target"]) == ("synthetic", "ill")
    assert (releases["statistics"]["method"], releases["statistics"]["all"]) == ("tables", 2)
    assert releases["test-data"]["values"] == "drawn"
    for purpose in PURPOSES:
        assert make_release(purpose, columns(24))["method"] == "synthetic"


def test_what_is_asked_for_wins_over_the_purpose() -> None:
    release = {"method": "k-anonymity", "k": 7}
    file = load_spec({"purpose": "model", "columns": columns(4), "release": release})
    assert file.spec.release is not None
    assert file.spec.release.method == "k-anonymity"


def test_an_unknown_purpose_is_refused() -> None:
    with pytest.raises(IncrowdError, match="purpose: must be 'explore', 'model'"):
        load_spec({"purpose": "modell", "columns": columns(3)})


def make_rows(rows: int = 900) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "patient_id": [f"P{at:06}" for at in range(rows)],
            "born": [
                f"{1 + at % 28:02}.{1 + at % 12:02}.{1950 + at * 7 % 60}" for at in range(rows)
            ],
            "costs": [f"{at * 37 % 9000 / 100:.2f}".replace(".", ",") for at in range(rows)],
            "smoker": [("yes", "no", None)[at * 5 % 11 % 3] for at in range(rows)],
        }
    )


def test_init_drafts_test_data_that_look_like_production(tmp_path: Path) -> None:
    """Types, formats, keys and nulls are those of the table; no id of it is published."""
    rows = make_rows()
    rows.write_csv(tmp_path / "t.csv")
    spec = tmp_path / "spec.yaml"
    output = run_successfully(
        "init", str(tmp_path / "t.csv"), "-o", str(spec), "--purpose", "test-data", "--size", "900"
    )
    assert "Recommended method for 900 people" in output
    (tmp_path / "answers.yaml").write_text("unit: true\nroles: true\nformats: true\npublic: all\n")
    run_successfully("confirm", str(spec), "--answers", str(tmp_path / "answers.yaml"))
    file = read_spec_file(spec)
    assert file.spec.columns["patient_id"].role == "key"
    assert file.spec.size == 900
    data = publish_unjudged(pl.read_csv(tmp_path / "t.csv"), file).data
    assert isinstance(data, pl.DataFrame)
    assert data["patient_id"].n_unique() == data.height  # a key, made up
    assert not {*map(str, data["patient_id"])} & {*rows["patient_id"]}
    assert data["born"].cast(pl.String).str.contains(r"^\d\d\.\d\d\.\d{4}$|^\d{4}-\d\d-\d\d$").all()
    assert 0 < data["smoker"].null_count() < data.height
    assert {*data["smoker"].drop_nulls()} == {"yes", "no"}


def test_init_recommends_for_a_stated_size_whatever_the_values(tmp_path: Path) -> None:
    lines = []
    for name, rows in (("a", make_rows()), ("b", make_rows().reverse().head(880))):
        rows.drop("costs", "patient_id").write_csv(tmp_path / f"{name}.csv")
        result = run_command(
            "init", str(tmp_path / f"{name}.csv"), "-o", str(tmp_path / f"{name}.yaml"),
            "--size", "4000",
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        lines.append(result.stdout.partition("Recommended method")[2].partition("Next:")[0])
    assert "(recommended)" in lines[0]
    assert lines[0] == lines[1]


def test_an_unknown_purpose_of_init_is_refused(tmp_path: Path) -> None:
    make_rows().write_csv(tmp_path / "t.csv")
    result = run_command("init", str(tmp_path / "t.csv"), "--purpose", "fun", "-o", "x.yaml")
    assert result.returncode > 1
    assert "No purpose 'fun'" in result.stderr
