"""From a table to a spec at the command line, as a curator walks it."""

from __future__ import annotations

import json
from pathlib import Path

from support.cli import run_successfully
from typer.testing import CliRunner

from incrowd.cli.commands import build_parser
from incrowd.errors import IncrowdError


def test_the_walk_at_the_command_line(tmp_path: Path) -> None:
    table, file = tmp_path / "voters.csv", tmp_path / "spec.yaml"
    assert "Wrote 2,000 fictional rows (voters)" in run_successfully(
        "sample", "voters", "--rows", "2000", "-o", str(table)
    )
    successfully = run_successfully("init", str(table), "-o", str(file))
    assert "zip         quasi       postal code" in successfully
    assert "e-mail addresses (email)" in successfully
    assert "table: voters.csv" in file.read_text()
    assert "No errors, " in run_successfully("check", str(file))
    result = json.loads(run_successfully("check", str(file), "--json"))
    assert result["ok"] is True
    kinds = {finding["severity"]: finding["code"] for finding in result["findings"]}
    assert kinds == {"warning": "COLUMN_NOT_CONFIRMED", "note": "CROWD_SIZE"}
    assert "1920-1924" in run_successfully("hierarchy", "preview", str(file), "birth_year")
    counts = json.loads(
        run_successfully("hierarchy", "preview", str(file), "sex", "--counts", "--json")
    )
    assert sum(counts["counts"]) == 2000
    assert run_successfully("hierarchy", "convert", str(file), "sex") == "female;*\nmale;*\n"
    arx = tmp_path / "sex.csv"
    run_successfully("hierarchy", "convert", str(file), "sex", "-o", str(arx))
    assert (
        run_successfully("hierarchy", "convert", str(arx))
        == "hierarchy: {flat: {values: [female, male]}}\n"
    )
    assert json.loads(run_successfully("schema"))["properties"]["columns"]


def test_values_met_do_not_become_a_list_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("zip,sex\n" + "01234,m\n" * 30 + "99999,f\n")
    file, out = tmp_path / "spec.yaml", tmp_path / "zip.csv"
    file.write_text(
        "table: t.csv\ncolumns:\n"
        "  zip: {role: quasi, hierarchy: {mask: {length: 5}}}\n"
        "  sex: {role: quasi, hierarchy: flat}\n"
    )
    for column in ("zip", "sex"):
        command = ["hierarchy", "convert", str(file), column, "-o", str(out)]
        done = CliRunner().invoke(build_parser(), command, standalone_mode=False)
        assert isinstance(done.exception, IncrowdError)
        assert f"Column '{column}': the hierarchy lists no values" in str(done.exception)
        assert "--values-are-public" in str(done.exception)
        assert not out.exists()
    run_successfully(
        "hierarchy", "convert", str(file), "zip", "-o", str(out), "--values-are-public"
    )
    assert out.read_text().startswith("01234;0123*;")
    file.write_text(file.read_text().replace("flat}", "{flat: {values: [f, m]}}}"))
    assert (
        run_successfully("hierarchy", "convert", str(file), "sex") == "f;*\nm;*\n"
    )  # listed: as before
