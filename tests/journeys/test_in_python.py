"""Releases in Python: data frames, warnings, one line in a notebook, and folders to keep."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from support.releases import files, spec

import incrowd as ic
from incrowd.privacy.randomness import SeededRandomness
from incrowd.tasks.publish import publish


def test_the_public_names_are_listed_and_there() -> None:
    shown = dir(ic)
    assert {"publish", "verify", "plan", "Ledger", "evaluate", "__version__"} <= set(shown)
    assert all(hasattr(ic, name) for name in shown)
    assert not [name for name in shown if name.startswith("_") and name != "__version__"]
    assert "import_module" not in shown


def test_pandas_in_pandas_out_polars_in_polars_out(voters: pl.DataFrame) -> None:
    pandas = pytest.importorskip("pandas")
    assert isinstance(publish(voters, spec()).data, pl.DataFrame)
    made = publish(voters.to_pandas(), spec())
    assert isinstance(made.data, pandas.DataFrame)
    assert len(made.data) == made.certificate.table.release.rows
    slices = "release: {epsilon: 1, delta: 1.0e-6, slices: [[zip, sex], [birth_year, race]]}"
    both = publish(voters.to_pandas(), spec(slices)).data
    assert [type(frame) for frame in both] == [pandas.DataFrame] * 2


def test_what_is_to_be_known_is_warned_of(voters: pl.DataFrame) -> None:
    with pytest.warns(ic.IncrowdWarning, match="come from a seed") as seen:
        made = publish(voters.head(500), spec(), bits=SeededRandomness(1))
    assert [str(one.message) for one in seen] == list(made.warnings)
    assert all(one.filename == __file__ for one in seen)


def test_a_release_is_one_line(voters: pl.DataFrame) -> None:
    made = publish(voters, spec())
    shown = repr(made)
    assert "\n" not in shown
    assert len(shown) < 300
    assert f"{made.certificate.table.release.rows:,} rows" in shown
    assert "differential privacy and k-anonymity, epsilon 1, delta 1e-06" in shown
    settings = "release: {method: k-anonymity, k: 5, levels: {zip: 3, sex: 0, birth_year: 4}}"
    assert ": k-anonymity; " in repr(publish(voters, spec(settings)))


def test_a_release_is_kept(voters: pl.DataFrame, tmp_path: Path) -> None:
    made = publish(voters, spec())
    assert made.save(tmp_path / "kept") == tmp_path / "kept"
    assert ic.verify(tmp_path / "kept") == []
    assert files(tmp_path / "kept") == files(made.folder)
    assert files(tmp_path / "kept.curator") == ["attacks.json", "evaluation.json", "report.html"]
    made.save(tmp_path / "again", curator=tmp_path / "mine")
    assert (tmp_path / "mine" / "report.html").exists()
    with pytest.raises(ic.IncrowdError, match="kept"):
        made.save(tmp_path / "kept")
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
