"""Sample tables, drafts and checks: the way in, as a custodian walks it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner
from ui.test_cli import run

from incrowd.engine.count import count
from incrowd.engine.source import local_engine
from incrowd.errors import IncrowdError
from incrowd.spec.build import Declared
from incrowd.spec.file import SpecFile, load, parse
from incrowd.tasks.check import check
from incrowd.tasks.draft import draft, draft_from_arx, quoted
from incrowd.tasks.sample import sample
from incrowd.ui.cli import app


def frame(kind: str, rows: int, seed: int = 1) -> pl.DataFrame:
    table = sample(kind, rows=rows, seed=seed)
    return table.frame()  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", ["voters", "patients", "census"])
def test_samples_are_decided_by_their_seed(kind: str) -> None:
    assert frame(kind, 500).equals(frame(kind, 500))
    assert not frame(kind, 500).equals(frame(kind, 500, seed=2))


def test_samples_have_the_documented_distributions() -> None:
    voters = frame("voters", 60_000)
    women = voters.filter(pl.col("sex") == "female", pl.col("birth_year") > 1990)["height"]
    men = voters.filter(pl.col("sex") == "male", pl.col("birth_year") > 1990)["height"]
    # standard errors are below 0.06 and the tolerance is five of them
    assert abs(float(women.mean() or 0) - 162.1) < 0.3  # type: ignore[arg-type]
    assert abs(float(men.mean() or 0) - 175.7) < 0.3  # type: ignore[arg-type]
    assert abs(len(voters.filter(pl.col("sex") == "female")) / 60_000 - 0.53) < 0.01
    assert voters["zip"].str.len_chars().unique().to_list() == [5]
    assert voters["email"].n_unique() == 60_000
    patients = frame("patients", 60_000)
    logs = patients.filter(pl.col("sex") == "male")["weight"].log()
    assert abs(float(logs.skew() or 0)) < 0.1  # log-normal  # type: ignore[arg-type]
    census = frame("census", 60_000)
    rich = census.group_by("education").agg((pl.col("salary_class") == ">50K").mean())
    shares = dict(rich.iter_rows())
    assert shares["Doctorate"] > 2 * shares["HS-grad"]
    assert sample("voters").rows() == 134_791
    assert sample("patients").rows() == 72_825
    assert sample("census").rows() == 32_440


@pytest.mark.parametrize("kind", ["voters", "patients", "census"])
def test_a_draft_of_a_sample_is_a_valid_spec_that_fits(kind: str) -> None:
    table = sample(kind, rows=3000)
    file = parse(draft(table, name="x.csv").yaml())
    assert [finding for finding in check(file, table) if finding.kind == "wrong"] == []
    assert set(file.spec.unconfirmed) == set(table.columns)  # everything waits to be confirmed
    columns = {name: c for name, c in file.spec.columns.items() if c.hierarchy}
    assert count(table, Declared(columns)).frequencies.total == 3000


def test_a_draft_knows_identifiers_when_it_sees_them() -> None:
    n = 100
    table = local_engine().from_columns(
        {
            "Contact": [f"p{i}@mail.example.org" for i in range(n)],
            "PatientName": [f"Person {i % 60}" for i in range(n)],
            "mrn": [f"M{i:05}" for i in range(n)],
            "ZIP": [f"{i % 40 + 501:05}" for i in range(n)],
            "date_of_birth": [f"19{i % 80 + 10}-03-04" for i in range(n)],
            "diagnosis": [["flu", "cold", "yes"][i % 3] for i in range(n)],
            "remark": [f"note {i} {i * i}" for i in range(n)],
            "empty": [None] * n,
            "bmi": [18 + i / 10 for i in range(n)],
            "weird: thing": ["a", "b"] * (n // 2),
        }
    )
    got = draft(table, name="t.csv")
    roles = {guess.column: guess.role for guess in got.guesses}
    assert roles == {
        "Contact": "identifier",
        "PatientName": "identifier",
        "mrn": "identifier",
        "ZIP": "quasi",
        "date_of_birth": "quasi",
        "diagnosis": "sensitive",
        "remark": "identifier",
        "empty": "drop",
        "bmi": "quasi",
        "weird: thing": "quasi",
    }
    spec = parse(got.yaml()).spec
    assert spec.columns["weird: thing"].hierarchy is not None
    assert "mask: {length: 5}" in got.yaml()
    assert "dates: {from: 1910-01-01, to: 1989-12-31}" in got.yaml()
    found = dict(got.checklist())
    assert found["e-mail addresses"] == ("Contact",)
    assert found["names"] == ("PatientName",)
    assert found["medical record numbers"] == ("mrn",)
    assert len(found) == 18


@pytest.mark.parametrize(
    "text", ["a: b", "yes", "", " x", "39", "#x", "[x]", 'say "hi"', "ü\n", "x y"]
)
def test_text_survives_yaml(text: str) -> None:
    assert list(parse(f"columns: {{{quoted(text)}: {{role: drop}}}}").spec.columns) == [text]


def spec(text: str) -> SpecFile:
    return parse(text)


def test_check_lists_everything_at_once() -> None:
    table = local_engine().from_columns(
        {
            "name": ["Ann", "Bob", "Ann"],
            "age": ["39", "abc", None],
            "sexx": ["f", "m", "f"],
            "zip": ["01234", "123", "01234"],
        }
    )
    file = spec(
        """
        columns:
          name: {role: identifier}
          age:
            role: quasi
            hierarchy: {intervals: {from: 0, to: 99, widths: [10]}}
            confirm: [role]
          sex: {role: quasi, hierarchy: {groups: {Person: [f, m]}}}
          zip: {role: quasi, hierarchy: {mask: {length: 5}}, other: elsewhere}
        release: {method: safe, epsilon: 1, delta: 1.0e-6, levels: {age: 7}}
        """
    )
    said = [(finding.kind, str(finding)) for finding in check(file, table)]
    assert said == [
        ("wrong", "sexx: is in the table but has no role in the spec. Did you mean 'sex'?"),
        ("wrong", "sex: is in the spec but not in the table. Did you mean 'sexx'?"),
        ("wrong", "age: level 7 is asked for, but the highest is 2"),
        (
            "doubtful",
            "1 of 3 rows repeat all identifiers of another (name). If several rows can belong to "
            "one person, say 'unit: {id: COLUMN}'.",
        ),
        ("doubtful", "age: read from the data, not confirmed: role"),
        (
            "doubtful",
            "age: 1 rows (33.3%) hold 1 values outside the domain: 'abc' (1). They will be "
            "published as the root.",
        ),
        (
            "doubtful",
            "zip: 1 rows (33.3%) hold 1 values outside the domain: '123' (1). They will be "
            "published as 'elsewhere'.",
        ),
        ("note", "age: 1 rows are null, which is a value of its own"),
    ]


def test_a_column_wholly_outside_its_domain_is_wrong() -> None:
    table = local_engine().from_columns({"x": ["1", "2", None]})
    file = spec("columns: {x: {role: quasi, hierarchy: {flat: {values: [a]}}}}")
    assert [finding.kind for finding in check(file, table)] == ["wrong", "note"]


def test_lists_and_bytes_are_not_generalised() -> None:
    table = local_engine().from_columns({"tags": [["a"], ["b"]], "raw": [b"x", b"y"]})
    got = draft(table, name="t.parquet")
    assert [guess.role for guess in got.guesses] == ["drop", "drop"]
    file = spec("columns: {tags: {role: quasi, hierarchy: flat}, raw: {role: drop}}")
    (finding,) = check(file, table)
    assert finding.kind == "wrong"
    assert "not single values" in finding.message


def test_drafts_of_awkward_columns_fit_their_tables() -> None:
    n = 60
    table = local_engine().from_columns(
        {
            "balance": [i - 57 for i in range(n)],
            "code": ["250.00", "250.0", "401 "] * (n // 3),
            "visited": [f"20{i % 20 + 10}-01-02 10:00:00" for i in range(n)],
            "sentinel": ["0001-01-01", "2020-05-06"] * (n // 2),
            "odd": ["\x7f", "a\x85b"] * (n // 2),
        }
    )
    file = parse(draft(table, name="t.csv").yaml())
    found = [finding for finding in check(file, table) if "not confirmed" not in str(finding)]
    # the sentinel lies a thousand years before the other dates and stays outside
    assert [finding.column for finding in found] == ["sentinel"]


def test_check_counts_people() -> None:
    table = local_engine().from_columns({"id": ["1", "1.0 ", "2", None], "x": ["a"] * 4})
    file = spec("unit: {id: id}\ncolumns: {id: {role: identifier}, x: {role: drop}}")
    said = [str(finding) for finding in check(file, table)]
    assert said == [
        "id: 1 rows have no id. Give them one, or leave them out: unit: {id: id, without_id: drop}",
        "id: 2 people in 4 rows",
    ]


def test_a_hierarchy_that_cannot_be_built_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("a;x\na;y\n")
    (tmp_path / "spec.yaml").write_text("columns: {c: {role: quasi, hierarchy: {csv: h.csv}}}")
    (finding,) = check(load(tmp_path / "spec.yaml"), local_engine().from_columns({"c": ["a"]}))
    assert finding.kind == "wrong"
    assert "The value 'a' is in the hierarchy twice" in finding.message


def test_the_walk_at_the_command_line(tmp_path: Path) -> None:
    table, file = tmp_path / "voters.csv", tmp_path / "spec.yaml"
    assert "Wrote 2,000 voters" in run("sample", "voters", "--rows", "2000", "-o", str(table))
    said = run("init", str(table), "-o", str(file))
    assert "zip         quasi: a postal code" in said
    assert "e-mail addresses (email)" in said
    assert "table: voters.csv" in file.read_text()
    assert "The spec fits the table." in run("check", str(file))
    found = json.loads(run("check", str(file), "--json"))
    assert found["ok"] is True
    assert {finding["kind"] for finding in found["findings"]} == {"doubtful"}
    assert "1920-1924" in run("hierarchy", "preview", str(file), "birth_year")
    counted = json.loads(run("hierarchy", "preview", str(file), "sex", "--counts", "--json"))
    assert sum(counted["counts"]) == 2000
    assert run("hierarchy", "convert", str(file), "sex") == "female;*\nmale;*\n"
    arx = tmp_path / "sex.csv"
    run("hierarchy", "convert", str(file), "sex", "-o", str(arx))
    assert run("hierarchy", "convert", str(arx)) == "hierarchy: {flat: {values: [female, male]}}\n"
    assert json.loads(run("schema"))["properties"]["columns"]


def test_check_says_what_publishing_would_refuse(tmp_path: Path) -> None:
    file = tmp_path / "spec.yaml"
    (tmp_path / "t.csv").write_text("a,b\nx,y\n")
    flat = "{role: quasi, hierarchy: flat}"
    release = "{epsilon: 1, delta: 1.0e-6, slices: [[a], [b, a]]}"
    text = f"table: t.csv\ncolumns: {{a: {flat}, b: {flat}}}\nrelease: {release}\n"
    file.write_text(text)
    assert "The spec fits the table." in run("check", str(file))
    file.write_text(text.replace("epsilon: 1, ", "epsilon: 1, scheme: search, k: 20, "))
    done = CliRunner().invoke(app, ["check", str(file), "--json"], standalone_mode=False)
    assert done.return_value == 1
    (found,) = json.loads(done.output)["findings"]
    assert found["message"] == "release: 'scheme: search' finds k itself; leave 'k' out."


def test_an_arx_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "arx"
    folder.mkdir()
    (folder / "people.csv").write_text("sex;age\nMale;1\nFemale;2\nMale;\n")
    (folder / "people_hierarchy_sex.csv").write_text("Male;*\nFemale;*\n")
    (folder / "people_hierarchy_age.csv").write_text("1;1-2;*\n2;1-2;*\n")
    file = tmp_path / "spec.yaml"
    run("init", "--arx", str(folder), "-o", str(file))
    assert "table: arx/people.csv" in file.read_text()
    loaded = load(file)
    assert loaded.spec.with_role("quasi") == ("sex", "age")
    assert [finding.kind for finding in check(loaded)] == ["doubtful", "doubtful", "note"]
    assert set(loaded.spec.unconfirmed.values()) == {("role", "hierarchy")}
    shutil.rmtree(folder)
    with pytest.raises(IncrowdError, match="No such file"):
        check(loaded)


def test_a_table_and_a_folder_of_arx_files_together(tmp_path: Path) -> None:
    folder = tmp_path / "arx"
    folder.mkdir()
    (tmp_path / "people.csv").write_text("sex,age,town\n" + "Male,1,A\nFemale,2,B\nMale,,A\n" * 9)
    (folder / "people_hierarchy_sex.csv").write_text("Male;*\nFemale;*\n")
    (folder / "people_hierarchy_job.csv").write_text("a;*\n")
    (folder / "other_hierarchy_age.csv").write_text("1;*\n2;*\n")
    table, file = str(tmp_path / "people.csv"), tmp_path / "spec.yaml"
    said = run("init", table, "--arx", str(folder), "-o", str(file))
    assert f"Hierarchies taken from {folder}: people_hierarchy_sex.csv." in said
    assert "fit no column: other_hierarchy_age.csv, people_hierarchy_job.csv." in said
    loaded = load(file)
    assert loaded.spec.table == "people.csv"
    assert list(loaded.spec.columns) == ["sex", "age", "town"]
    assert loaded.spec.unconfirmed["sex"] == ("role", "hierarchy")
    assert "csv: arx/people_hierarchy_sex.csv" in file.read_text()
    assert {finding.kind for finding in check(loaded)} == {"doubtful", "note"}
    # another name of the table: the only one that the folder has is meant, else none
    shutil.move(table, tmp_path / "t.csv")
    with pytest.raises(IncrowdError, match="no files t_hierarchy_COLUMN.csv .* other, people"):
        draft_from_arx(folder, beside=tmp_path, table=str(tmp_path / "t.csv"))
    (folder / "other_hierarchy_age.csv").unlink()
    got = draft_from_arx(folder, beside=tmp_path, table=str(tmp_path / "t.csv"))
    assert (got.table, got.used) == ("t.csv", ("people_hierarchy_sex.csv",))
    with pytest.raises(IncrowdError, match="If the table lies elsewhere, name it, too"):
        draft_from_arx(folder, beside=tmp_path)
    with pytest.raises(IncrowdError, match="is no folder"):
        draft_from_arx(tmp_path / "none", beside=tmp_path, table=table)


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
        done = CliRunner().invoke(app, command, standalone_mode=False)
        assert isinstance(done.exception, IncrowdError)
        assert f"The hierarchy of '{column}' lists no values" in str(done.exception)
        assert "--values-are-public" in str(done.exception)
        assert not out.exists()
    run("hierarchy", "convert", str(file), "zip", "-o", str(out), "--values-are-public")
    assert out.read_text().startswith("01234;0123*;")
    file.write_text(file.read_text().replace("flat}", "{flat: {values: [f, m]}}}"))
    assert run("hierarchy", "convert", str(file), "sex") == "f;*\nm;*\n"  # listed: as before


def test_codes_are_small_integers() -> None:
    table = sample("voters", rows=1000)
    columns = parse(draft(table, name="x").yaml()).spec.columns
    counted = count(table, Declared({name: columns[name] for name in ("zip", "sex", "birth_year")}))
    assert counted.frequencies.codes.dtype == np.int32
    assert [h.height for h in counted.hierarchies] == [6, 2, 4]
