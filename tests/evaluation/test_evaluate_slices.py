"""A release as a whole, measured from its folder: one table, or slices together."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.cli import run_command
from support.releases import make_voter_spec

import incrowd as ic
from incrowd.privacy.randomness import SeededRandomness
from incrowd.publication import Release

SLICES = "slices: [[zip, sex], [birth_year, race], [sex, birth_year]]"
WAYS = {
    "sample": f"release: {{epsilon: 1, delta: 1.0e-6, draw: sample, {SLICES}}}",
    "counts": f"release: {{epsilon: 1, delta: 1.0e-6, draw: counts, {SLICES}}}",
    "counted": f"release: {{epsilon: 1, delta: 1.0e-6, draw: counts, rows: counted, {SLICES}}}",
}


def published(table: pl.DataFrame, release: str, folder: Path) -> Release:
    return ic.publish(table, make_voter_spec(release), output=folder, bits=SeededRandomness(3))


def same(first: Any, second: Any) -> bool:
    return bool(first == pytest.approx(second, rel=1e-9))


@pytest.mark.parametrize("way", WAYS)
def test_slices_are_measured_as_a_whole(way: str, voters: pl.DataFrame, tmp_path: Path) -> None:
    """From the folder, from the release, and when it was published: the same figures."""
    release = published(voters, WAYS[way], tmp_path / "out")
    evaluation = release.evaluation
    for released in (release, tmp_path / "out", str(tmp_path / "out")):
        result = ic.evaluate(voters, released, make_voter_spec(WAYS[way]))
        assert result.columns == evaluation.columns
        assert result.rows_original == evaluation.rows_original == len(voters)
        assert result.rows_released == evaluation.rows_released
        assert (result.suppressed, result.surplus) == (evaluation.suppressed, evaluation.surplus)
        assert same(result.loss, evaluation.loss)
        assert same(result.association_error, evaluation.association_error)
        assert [
            (association.first, association.second, association.slice)
            for association in result.associations
        ] == [
            (association.first, association.second, association.slice)
            for association in evaluation.associations
        ]
        assert [item.rows_released for item in result.slices] == [
            table.release.rows for table in release.certificate.tables
        ]
        assert all(item.risk and item.utility and item.losses for item in result.slices)


def test_the_command_takes_the_folder_of_a_release(voters: pl.DataFrame, tmp_path: Path) -> None:
    voters.write_parquet(tmp_path / "voters.parquet")
    for name, release in {"one": None, "many": WAYS["counts"]}.items():
        file = make_voter_spec() if release is None else make_voter_spec(release)
        ic.publish(voters, file, output=tmp_path / name)
        (tmp_path / f"{name}.yaml").write_text(file.text(), encoding="utf-8")

    def asked(name: str, released: Path, *more: str) -> Any:
        return run_command(
            "evaluate", "--original", str(tmp_path / "voters.parquet"),
            "--released", str(released), "--spec", str(tmp_path / f"{name}.yaml"), *more,
        )  # fmt: skip

    by_folder = json.loads(asked("one", tmp_path / "one", "--json").stdout)
    by_file = json.loads(asked("one", tmp_path / "one" / "data.parquet", "--json").stdout)
    assert by_folder == by_file
    sliced = json.loads(asked("many", tmp_path / "many", "--json").stdout)
    assert len(sliced["slices"]) == 3
    output = asked("many", tmp_path / "many").stdout
    for number, names in enumerate(["zip, sex", "birth_year, race", "sex, birth_year"], 1):
        assert f"Table {number}: {names}" in output
    assert "Cramér's V" in output
    first = asked("many", tmp_path / "many" / "data-2.parquet", "--json")
    assert json.loads(first.stdout)["rows_released"] == sliced["slices"][1]["rows_released"]


def test_a_folder_of_one_table_can_be_attacked(voters: pl.DataFrame, tmp_path: Path) -> None:
    few = voters.head(3000)
    release = ic.publish(few, make_voter_spec(), output=tmp_path / "out")
    report = ic.attack(few, release, make_voter_spec(), only=["linkage"], tries=50, seed=1)
    result = ic.attack(few, tmp_path / "out", make_voter_spec(), only=["linkage"], tries=50, seed=1)
    assert result.estimates == report.estimates


def test_what_is_asked_of_one_table_is_refused_of_slices(
    voters: pl.DataFrame, tmp_path: Path
) -> None:
    file = make_voter_spec(WAYS["counts"])
    release = published(voters.head(3000), WAYS["counts"], tmp_path / "out")
    with pytest.raises(ic.IncrowdError, match=r"several tables.*'data-1.parquet'"):
        ic.evaluate(voters, release, file, target="race")
    with pytest.raises(ic.IncrowdError, match=r"several tables.*'data-1.parquet'"):
        ic.attack(voters.head(3000), release, file)


def test_a_folder_without_a_certificate_is_refused(voters: pl.DataFrame, tmp_path: Path) -> None:
    release = ic.publish(voters.head(3000), make_voter_spec(), output=tmp_path / "out")
    shutil.copytree(release.folder, tmp_path / "bare")
    (tmp_path / "bare" / "certificate.json").unlink()
    with pytest.raises(ic.IncrowdError, match=r"bare' is a folder"):
        ic.evaluate(voters, tmp_path / "bare", make_voter_spec())
    (tmp_path / "bare" / "certificate.json").write_text("{}")
    with pytest.raises(ic.IncrowdError, match=r"'.*bare'.*certificate.json"):
        ic.evaluate(voters, tmp_path / "bare", make_voter_spec())
