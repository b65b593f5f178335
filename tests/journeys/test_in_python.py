"""Releases in Python: data frames, warnings, one line in a notebook, and folders to keep."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.releases import list_files, make_voter_spec

import incrowd as ic
from incrowd.engine.source import open_table
from incrowd.privacy.randomness import SeededRandomness
from incrowd.publication import publish


def test_the_public_names_are_listed_and_there() -> None:
    names = dir(ic)
    assert {"publish", "verify", "plan", "Ledger", "evaluate", "__version__"} <= set(names)
    assert all(hasattr(ic, name) for name in names)
    assert not [name for name in names if name.startswith("_") and name != "__version__"]
    assert "import_module" not in names


def test_pandas_in_pandas_out_polars_in_polars_out(voters: pl.DataFrame) -> None:
    pandas = pytest.importorskip("pandas")
    assert isinstance(publish(voters, make_voter_spec()).data, pl.DataFrame)
    release = publish(voters.to_pandas(), make_voter_spec())
    assert isinstance(release.data, pandas.DataFrame)
    assert len(release.data) == release.certificate.table.release.rows
    slices = "release: {epsilon: 1, delta: 1.0e-6, slices: [[zip, sex], [birth_year, race]]}"
    both = publish(voters.to_pandas(), make_voter_spec(slices)).data
    assert [type(frame) for frame in both] == [pandas.DataFrame] * 2


def test_what_is_to_be_known_is_warned_of(voters: pl.DataFrame) -> None:
    with pytest.warns(ic.IncrowdWarning, match="come from a seed") as seen:
        release = publish(voters.head(500), make_voter_spec(), bits=SeededRandomness(1))
    assert [getattr(item.message, "finding", None) for item in seen] == list(release.findings)
    assert all(item.filename == __file__ for item in seen)


def test_a_release_is_one_line(voters: pl.DataFrame) -> None:
    release = publish(voters, make_voter_spec())
    line = repr(release)
    assert "\n" not in line
    assert len(line) < 300
    assert f"{release.certificate.table.release.rows:,} rows" in line
    assert "differential privacy and k-anonymity, epsilon 1, delta 1e-06" in line
    settings = "release: {method: k-anonymity, k: 5, levels: {zip: 3, sex: 0, birth_year: 4}}"
    assert ": k-anonymity; " in repr(publish(voters, make_voter_spec(settings)))


def test_a_release_is_kept(voters: pl.DataFrame, tmp_path: Path) -> None:
    release = publish(voters, make_voter_spec())
    assert release.save(tmp_path / "kept") == tmp_path / "kept"
    assert ic.verify(tmp_path / "kept") == []
    assert list_files(tmp_path / "kept") == list_files(release.folder)
    assert list_files(tmp_path / "kept.curator") == [
        "attacks.json",
        "evaluation.json",
        "origin.json",
        "report.html",
    ]
    release.save(tmp_path / "again", curator=tmp_path / "mine")
    assert (tmp_path / "mine" / "report.html").exists()
    with pytest.raises(ic.IncrowdError, match="kept"):
        release.save(tmp_path / "kept")
    assert ic.verify(tmp_path / "kept") == []


@pytest.mark.parametrize(
    "hierarchy",
    [
        {"csv": "none.csv"},
        {"groups": {"g": [["x"]]}},
        {"intervals": {"from": 0, "to": 9, "widths": [2, 3]}},
        {"flat": {"values": ["x", "x"]}},
        {"flat": {"values": ["nobody has it"]}},
        {"icd": {"version": 11}},
    ],
)
def test_errors_name_the_column(hierarchy: dict[str, object]) -> None:
    table = pl.DataFrame({"a": [1, 2, 3] * 20, "the one": ["x", "y", "z"] * 20})
    columns = {
        "a": {"role": "quasi", "hierarchy": "flat"},
        "the one": {"role": "quasi", "hierarchy": hierarchy},
    }
    with pytest.raises(ic.IncrowdError, match="the one"):
        ic.publish(table, {"columns": columns, "release": {"epsilon": 1, "delta": 1e-6}})


@pytest.mark.parametrize("task", [ic.check, ic.expect, ic.publish])
def test_the_table_comes_before_the_spec(
    voters: pl.DataFrame, tmp_path: Path, task: Callable[..., Any]
) -> None:
    """Swapped, they are refused by a message that says so, whatever either is given as."""
    file = make_voter_spec()
    task(voters.head(50), file)
    voters.head(50).write_csv(tmp_path / "voters.csv")
    (tmp_path / "spec.yaml").write_text(file.text(), encoding="utf-8")
    tables = [voters.head(50), voters.to_pandas(), tmp_path / "voters.csv", open_table(voters)]
    specs = [file, tmp_path / "spec.yaml", str(tmp_path / "spec.yaml"), ic.draft(voters.head(50))]
    for table in tables:
        for wrong in specs:
            with pytest.raises(ic.ParameterError, match=r"'spec'.*table comes first"):
                task(wrong, table)
    with pytest.raises(ic.ParameterError, match=r"'spec'.*table comes first"):
        task("spec.yaml", None)


@pytest.mark.parametrize("task", [ic.evaluate, ic.attack])
def test_the_spec_comes_last(voters: pl.DataFrame, task: Callable[..., Any]) -> None:
    with pytest.raises(ic.ParameterError, match=r"'spec'.*table comes first"):
        task(make_voter_spec(), voters, voters)


def test_a_draft_is_published_once_it_is_confirmed(voters: pl.DataFrame) -> None:
    table = voters.select("sex", "race", "birth_year")
    draft = ic.draft(table)
    for unconfirmed in (draft, ic.confirm(draft, ["sex", ("race", "role")])):
        with pytest.raises(ic.IncrowdError, match="confirm"):
            ic.publish(table, unconfirmed)
    step = ic.confirm(draft, ["sex", ("race", "role")])
    assert "sex" not in step.spec.unconfirmed_entries
    assert "role" not in step.spec.unconfirmed_entries["race"]
    assert set(step.spec.unconfirmed_entries["race"]) | {"role"} == set(
        ic.confirm(draft, []).spec.unconfirmed_entries["race"]
    )
    every = ic.confirm(step, all=True)
    assert not every.spec.unconfirmed_entries
    with pytest.raises(ic.IncrowdError, match="unit"):  # it is a decision of its own
        ic.publish(table, every)
    every = ic.confirm(every, unit=True)
    assert ic.publish(table, every).certificate.table.release.rows > 0
    listed = ic.confirm(draft, ["sex", "race", "birth_year"], unit=True)
    assert not listed.spec.unconfirmed_entries
    assert listed.text() == every.text() == ic.confirm(every, ["sex"]).text()


def test_what_cannot_be_confirmed_is_named(voters: pl.DataFrame) -> None:
    draft = ic.draft(voters.select("sex", "race"))
    with pytest.raises(ic.IncrowdError, match=r"Column 'rase': not in the spec.*'race'"):
        ic.confirm(draft, ["rase"])
    with pytest.raises(ic.IncrowdError, match=r"'sex'.*'rolle'.*role"):
        ic.confirm(draft, [("sex", "rolle")])
    with pytest.raises(ic.IncrowdError, match=r"all=True.*sex.*race"):
        ic.confirm(draft)
    with pytest.raises(ic.ParameterError, match="'answers'"):
        ic.confirm(draft, "sex")
