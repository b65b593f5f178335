"""What check finds in a spec and its table: everything at once."""

from __future__ import annotations

import json
from pathlib import Path

from support.cli import run_successfully
from support.findings import list_codes
from typer.testing import CliRunner

from incrowd.cli.commands import build_parser
from incrowd.curate.check import check, find_refusals
from incrowd.curate.draft.draft import draft
from incrowd.engine.source import local_engine
from incrowd.findings import Finding
from incrowd.spec.file import load_spec, parse_spec, read_spec_file


def test_check_lists_everything_at_once() -> None:
    table = local_engine().from_columns(
        {
            "name": ["Ann", "Bob", "Ann"],
            "age": ["39", "abc", None],
            "sexx": ["f", "m", "f"],
            "zip": ["01234", "123", "01234"],
        }
    )
    file = parse_spec(
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
    result = [(item.severity.value, item.code, item.column) for item in check(table, file)]
    assert result == [
        ("error", "COLUMN_NOT_DECLARED", "sexx"),
        ("error", "COLUMN_NOT_IN_TABLE", "sex"),
        ("error", "LEVEL_TOO_HIGH", "age"),
        ("warning", "IDENTIFIERS_REPEATED", None),
        ("warning", "COLUMN_NOT_CONFIRMED", "age"),
        ("warning", "VALUES_OUTSIDE_DOMAIN", "age"),
        ("warning", "VALUES_OUTSIDE_DOMAIN", "zip"),
        ("note", "VALUES_NULL", "age"),
    ]
    text = [str(finding) for finding in check(table, file)]
    assert text[0] == (
        "Column 'sexx': it is in the table, but not in the spec. Did you mean 'sex'? Declare "
        "it under `columns`; the role `drop` excludes it."
    )
    assert text[-2] == (
        "Column 'zip': 1 value outside the domain, in 1 row (33.3 %): '123' (1). They are "
        "published as 'elsewhere'; extend the hierarchy to keep them."
    )


def test_a_column_wholly_outside_its_domain_is_wrong() -> None:
    table = local_engine().from_columns({"x": ["1", "2", None]})
    file = parse_spec("columns: {x: {role: quasi, hierarchy: {flat: {values: [a]}}}}")
    assert list_codes(check(table, file)) == ["ALL_VALUES_OUTSIDE_DOMAIN", "VALUES_NULL"]


def test_check_counts_people() -> None:
    table = local_engine().from_columns({"id": ["1", "1.0 ", "2", None], "x": ["a"] * 4})
    file = parse_spec("unit: {id: id}\ncolumns: {id: {role: identifier}, x: {role: drop}}")
    missing, people = check(table, file)
    assert (missing.code, missing.values) == ("ROWS_WITHOUT_ID", {"rows": 1, "id": "id"})
    assert "`unit: {id: id, without_id: drop}`" in missing.remedy
    assert people.code == "PEOPLE_COUNTED"
    assert people.values == {"people": 2, "rows": 4, "median": 1.5, "largest": 2}


def test_check_warns_of_a_second_id_that_repeats() -> None:
    people = [f"p{at // 3:04d}" for at in range(900)]
    homes = [f"h{at // 9:04d}" for at in range(900)]
    table = local_engine().from_columns({"person_id": people, "hhid": homes})
    for role in ("drop", "identifier"):
        columns = f"{{person_id: {{role: identifier}}, hhid: {{role: {role}}}}}"
        file = parse_spec(f"unit: {{id: person_id}}\ncolumns: {columns}")
        codes = {finding.code: finding for finding in check(table, file)}
        assert codes["ID_REPEATED_BESIDE"].column == "hhid"
        assert "100 values" in codes["ID_REPEATED_BESIDE"].message
    other = parse_spec("unit: {id: hhid}\ncolumns: " + columns)
    assert "ID_REPEATED_BESIDE" not in {finding.code for finding in check(table, other)}


def test_a_hierarchy_that_cannot_be_built_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("a;x\na;y\n")
    (tmp_path / "spec.yaml").write_text("columns: {c: {role: quasi, hierarchy: {csv: h.csv}}}")
    (finding,) = check(
        local_engine().from_columns({"c": ["a"]}), read_spec_file(tmp_path / "spec.yaml")
    )
    assert finding.code == "HIERARCHY_INVALID"
    assert "rows 1 and 2 both list the value 'a'" in finding.message


def test_check_says_what_publishing_would_refuse(tmp_path: Path) -> None:
    file = tmp_path / "spec.yaml"
    (tmp_path / "t.csv").write_text("a,b\nx,y\n")
    flat = "{role: quasi, hierarchy: flat}"
    release = "{epsilon: 1, delta: 1.0e-6, slices: [[a], [b, a]]}"
    text = f"table: t.csv\ncolumns: {{a: {flat}, b: {flat}}}\nrelease: {release}\n"
    file.write_text(text)
    assert "No errors, " in run_successfully("check", str(file))
    file.write_text(
        text.replace("epsilon: 1, ", "epsilon: 1, draw: sample, scheme: search, k: 20, ")
    )
    done = CliRunner().invoke(build_parser(), ["check", str(file), "--json"], standalone_mode=False)
    assert done.return_value == 1
    (result,) = json.loads(done.output)["findings"]
    assert result["code"] == "RELEASE_REFUSED"
    assert result["message"] == "Release: `scheme: search` chooses k. Remove `k`."


def test_a_noisy_column_needs_a_precision() -> None:
    columns = "columns: {a: {role: noisy}, b: {role: quasi, hierarchy: flat}}"
    spec = f"{columns}\nrelease: {{method: k-epsilon, k: 2, epsilon: 1}}"
    table = local_engine().from_columns({"a": [1.5, 2.0], "b": ["x", "y"]})
    wrong = [item for item in check(table, parse_spec(spec)) if item.severity == "error"]
    assert [item.column for item in wrong] == ["a"]
    assert "1.5 is not a whole number" in wrong[0].message
    sure = spec.replace("role: noisy", "role: noisy, precision: 0.5")
    assert [item for item in check(table, parse_spec(sure)) if item.severity == "error"] == []


def test_spellings_of_one_value_are_a_warning_while_they_can_be_published(tmp_path: Path) -> None:
    lines = ["ward,size"] + ["W,low", "w,mid", "K,low", "new  town,mid", "New Town,low"] * 20
    table = tmp_path / "t.csv"
    table.write_text("\n".join(lines) + "\n")
    drafted = draft(table)
    (alike,) = drafted.findings()
    assert (alike.code, alike.column) == ("VALUES_ALIKE", "ward")
    assert alike.values["listed"] == ["'New Town' and 'new  town'", "'W' and 'w'"]
    assert "VALUES_ALIKE" in list_codes(check(table, drafted))
    groups = {"New Town": ["new  town", "New Town"], "W": ["W", "w"], "K": ["K"]}
    joined = load_spec(drafted).with_entry(("columns", "ward", "hierarchy"), {"groups": groups})
    (still,) = [item for item in check(table, joined) if item.code == "VALUES_ALIKE"]
    assert still.values["listed"] == ["'new  town' and 'New Town'", "'W' and 'w'"]
    assert still.remedy == "Use one spelling in the table and the spec."
    grouped = joined.with_entry(("release", "levels"), {"ward": 1})
    assert "VALUES_ALIKE" not in list_codes(check(table, grouped))


def test_what_is_not_confirmed_is_named_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age\n" + "31\n45\n" * 20)
    path = tmp_path / "my spec.yaml"
    path.write_text(draft(tmp_path / "t.csv").yaml().replace(str(tmp_path), "."))
    unit, column = (item for item in check(None, read_spec_file(path)) if "CONFIRM" in item.code)
    assert f"incrowd confirm '{path}'" in unit.remedy
    assert column.values["correct"] == ["role"]
    assert "range from the data" not in path.read_text()


def test_a_size_that_moves_the_budget_is_noted_as_printed(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("ward,town\n" + "a,x\nb,y\n" * 20)
    flat = "{role: quasi, hierarchy: {flat: {values: [VALUES]}}}"
    columns = f"ward: {flat.replace('VALUES', 'a, b')}, town: {flat.replace('VALUES', 'x, y')}"
    release = "release: {method: safe, epsilon: 1, delta: 1.0e-6}"

    def find(size: str) -> list[Finding]:
        text = f"table: t.csv\n{size}\ncolumns: {{{columns}}}\n{release}\n"
        return [item for item in find_refusals(parse_spec(text)) if item.code == "SIZE_PRINTED"]

    (printed,) = find("size: 6200")
    assert printed.values == {"size": 6200}
    assert "printed in the certificate" in str(printed)
    assert find("size: public") == find("") == []


YEARS = """
columns:
  year: {role: quasi, hierarchy: {flat: {values: ["80", "81"]}}}
  y81: {role: quasi, hierarchy: {flat: {values: ["0", "1"]}}, function_of: [year]}
  sex: {role: quasi, hierarchy: {flat: {values: [f, m]}}}
release: {method: safe, epsilon: 1, delta: 1.0e-6, slices: SLICES}
"""


def test_check_warns_of_listed_slices_with_functions_of_others() -> None:
    table = local_engine().from_columns(
        {"year": ["80", "81"], "y81": ["0", "1"], "sex": ["f", "m"]}
    )
    listed = parse_spec(YEARS.replace("SLICES", "[[year, y81], [sex, y81]]"))
    (finding,) = [x for x in check(table, listed) if x.code == "SLICE_REDUNDANT"]
    assert finding.column == "y81"
    assert "[year, y81]" in str(finding)
    for slices in ("[[year, sex], [sex, y81]]", "2"):
        file = parse_spec(YEARS.replace("SLICES", slices))
        assert not {"SLICE_REDUNDANT", "FUNCTION_CONTRADICTED"} & {*list_codes(check(table, file))}


def test_check_finds_a_function_that_the_table_contradicts() -> None:
    file = parse_spec(YEARS.replace("SLICES", "2"))
    table = local_engine().from_columns(
        {"year": ["80", "81", "81"], "y81": ["0", "1", "0"], "sex": ["f", "m", "m"]}
    )
    (finding,) = [x for x in check(table, file) if x.code == "FUNCTION_CONTRADICTED"]
    assert (finding.values["tuples"], finding.values["more"]) == (2, 3)
    assert finding.severity == "warning"
