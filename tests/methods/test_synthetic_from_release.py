"""Rows of all columns from a release by slices, at no cost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from ruamel.yaml import YAML
from support.cli import run_command
from support.synthetic import make_patients, make_spec
from support.tables import BUDGET as TABLES_BUDGET
from support.tables import make_residents
from support.tables import make_spec as make_tables_spec
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.errors import IncrowdError
from incrowd.methods.synthetic.from_release import synthesize_release
from incrowd.release.verify import read_certificate

NAMES = ["sex", "pregnant", "age", "smoker", "diagnosis"]
SLICES = "slices: [[sex, pregnant, age], [age, smoker], [smoker, diagnosis]]"


@pytest.fixture(scope="module", params=["counts", "sample"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("slices") / "out"
    spec = make_spec(role="identifier")
    for name in ("region", "admitted", "discharged", "weight"):
        spec = spec.with_entry(("columns", name), {"role": "drop"})
    release = (
        f"{{method: safe, epsilon: 2, delta: 1.0e-5, draw: {request.param}, {SLICES}, "
        "levels: {sex: 0, pregnant: 0, age: [1, 2], smoker: 0, diagnosis: 0}}"
    )
    spec = spec.with_entry(("release",), YAML(typ="safe").load(release))
    publish_unjudged(make_patients(20_000), spec, output=place)
    return place


def test_rows_have_the_shares_of_the_slices(folder: Path) -> None:
    certificate = read_certificate(folder)
    table, _ = synthesize_release(folder, certificate, rng=np.random.default_rng(1))
    rows, patients = table.to_frame(), make_patients(20_000)
    assert sorted(rows.columns) == sorted(NAMES)
    for name in ("sex", "pregnant", "diagnosis"):
        for value, share in patients[name].value_counts(normalize=True).rows():
            assert abs((rows[name] == value).mean() - share) < 0.04
    men = rows.filter(pl.col("sex") == "male")
    assert (men["pregnant"] == "yes").mean() < 0.02


def test_the_command_writes_a_file_and_refuses_what_does_not_hold(
    folder: Path, tmp_path: Path
) -> None:
    done = run_command("synthesize", str(folder), "-o", str(tmp_path / "rows.csv"), "--json")
    assert json.loads(done.stdout)["rows"] == len(pl.read_csv(tmp_path / "rows.csv"))
    again = run_command("synthesize", str(folder), "-o", str(tmp_path / "rows.csv"))
    assert again.returncode == 2
    assert "exists" in again.stderr


def test_the_function_counts_what_it_writes_and_refuses_an_altered_release(
    folder: Path, tmp_path: Path
) -> None:
    rows = ic.synthesize(str(folder), str(tmp_path / "rows.parquet"))
    assert rows == pl.read_parquet(tmp_path / "rows.parquet").height > 0
    with pytest.raises(IncrowdError, match="exists"):
        ic.synthesize(folder, tmp_path / "rows.parquet")
    with pytest.raises(IncrowdError, match="neither"):
        ic.synthesize(folder, tmp_path / "rows.txt")
    altered = tmp_path / "altered"
    shutil.copytree(folder, altered)
    data = sorted(altered.glob("*.parquet")) or sorted(altered.glob("*.csv"))
    data[0].write_bytes(data[0].read_bytes() + b" ")
    with pytest.raises(IncrowdError, match="does not hold"):
        ic.synthesize(altered, tmp_path / "more.csv")
    assert not (tmp_path / "more.csv").exists()


def test_another_release_is_refused(tmp_path: Path) -> None:
    publish_unjudged(make_patients(500), make_spec(), output=tmp_path / "out")
    certificate = read_certificate(tmp_path / "out")
    with pytest.raises(IncrowdError, match="is no release by slices"):
        synthesize_release(tmp_path / "out", certificate, rng=np.random.default_rng(1))


def test_rows_of_a_release_by_tables_have_its_shares(tmp_path: Path) -> None:
    residents = make_residents(3000)
    release = f"{TABLES_BUDGET}, tables: [[region, sex], [diagnosis, sex]], missing: excluded"
    publish_unjudged(residents, make_tables_spec(release), output=tmp_path / "out")
    rows = ic.synthesize(tmp_path / "out", tmp_path / "rows.parquet")
    synthetic_rows = pl.read_parquet(tmp_path / "rows.parquet")
    assert synthetic_rows.columns == ["region", "sex", "diagnosis"]
    assert rows == synthetic_rows.height == pytest.approx(2940, abs=150)
    complete = residents.drop_nulls()
    for name in ("region", "sex"):
        for value in complete[name].unique().to_list():
            before, after = ((table[name] == value).mean() for table in (complete, synthetic_rows))
            assert after == pytest.approx(before, abs=0.03)
    assert (synthetic_rows["diagnosis"] == "elsewhere").mean() == pytest.approx(0.05, abs=0.02)


def test_rows_of_hidden_numbers_are_refused(tmp_path: Path) -> None:
    release = f"{TABLES_BUDGET}, tables: [[region, sex]], hide_below: 10"
    publish_unjudged(make_residents(300), make_tables_spec(release), output=tmp_path / "out")
    with pytest.raises(IncrowdError, match="hides numbers"):
        ic.synthesize(tmp_path / "out", tmp_path / "rows.parquet")
