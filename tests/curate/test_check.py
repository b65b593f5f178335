"""What check finds in a spec and its table: everything at once."""

from __future__ import annotations

import json
from pathlib import Path

from support.cli import run
from typer.testing import CliRunner

from incrowd.cli.commands import command_line
from incrowd.curate.check import check
from incrowd.engine.source import local_engine
from incrowd.spec.file import load, parse


def test_check_lists_everything_at_once() -> None:
    table = local_engine().from_columns(
        {
            "name": ["Ann", "Bob", "Ann"],
            "age": ["39", "abc", None],
            "sexx": ["f", "m", "f"],
            "zip": ["01234", "123", "01234"],
        }
    )
    file = parse(
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
    said = [(finding.kind, str(finding)) for finding in check(table, file)]
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
    file = parse("columns: {x: {role: quasi, hierarchy: {flat: {values: [a]}}}}")
    assert [finding.kind for finding in check(table, file)] == ["wrong", "note"]


def test_check_counts_people() -> None:
    table = local_engine().from_columns({"id": ["1", "1.0 ", "2", None], "x": ["a"] * 4})
    file = parse("unit: {id: id}\ncolumns: {id: {role: identifier}, x: {role: drop}}")
    said = [str(finding) for finding in check(table, file)]
    assert said == [
        "id: 1 rows have no id. Give them one, or leave them out: unit: {id: id, without_id: drop}",
        "id: 2 people in 4 rows; rows per person: median 1.5, largest 2",
    ]


def test_a_hierarchy_that_cannot_be_built_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("a;x\na;y\n")
    (tmp_path / "spec.yaml").write_text("columns: {c: {role: quasi, hierarchy: {csv: h.csv}}}")
    (finding,) = check(local_engine().from_columns({"c": ["a"]}), load(tmp_path / "spec.yaml"))
    assert finding.kind == "wrong"
    assert "The value 'a' is in the hierarchy twice" in finding.message


def test_check_says_what_publishing_would_refuse(tmp_path: Path) -> None:
    file = tmp_path / "spec.yaml"
    (tmp_path / "t.csv").write_text("a,b\nx,y\n")
    flat = "{role: quasi, hierarchy: flat}"
    release = "{epsilon: 1, delta: 1.0e-6, slices: [[a], [b, a]]}"
    text = f"table: t.csv\ncolumns: {{a: {flat}, b: {flat}}}\nrelease: {release}\n"
    file.write_text(text)
    assert "The spec fits the table." in run("check", str(file))
    file.write_text(
        text.replace("epsilon: 1, ", "epsilon: 1, draw: sample, scheme: search, k: 20, ")
    )
    done = CliRunner().invoke(command_line(), ["check", str(file), "--json"], standalone_mode=False)
    assert done.return_value == 1
    (found,) = json.loads(done.output)["findings"]
    assert found["message"] == "release: 'scheme: search' finds k itself; leave 'k' out."


def test_a_noisy_column_needs_a_precision() -> None:
    columns = "columns: {a: {role: noisy}, b: {role: quasi, hierarchy: flat}}"
    spec = f"{columns}\nrelease: {{method: k-epsilon, k: 2, epsilon: 1}}"
    table = local_engine().from_columns({"a": [1.5, 2.0], "b": ["x", "y"]})
    wrong = [one for one in check(table, parse(spec)) if one.kind == "wrong"]
    assert [one.column for one in wrong] == ["a"]
    assert "holds 1.5, which is no whole number" in wrong[0].message
    sure = spec.replace("role: noisy", "role: noisy, precision: 0.5")
    assert [one for one in check(table, parse(sure)) if one.kind == "wrong"] == []
