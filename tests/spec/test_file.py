from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.specs import GOOD

from incrowd.spec.file import load_spec, parse_spec, read_spec_file
from incrowd.spec.problem import Place, SpecError
from incrowd.spec.release import SafeSpec

PROBLEMS = [
    ("tabel: x\n" + GOOD, "line 1, tabel: unknown key 'tabel'. Did you mean 'table'?"),
    (
        GOOD.replace("role: identifier", "role: identifer"),
        "line 4, columns.name.role: must be 'identifier', 'quasi', 'noisy', 'sensitive', "
        "'keep', 'weight', 'key' or 'drop', got 'identifer'. Did you mean 'identifier'?",
    ),
    (GOOD.replace("length: 5", "lenght: 5"), "unknown key 'lenght'. Did you mean 'length'?"),
    (GOOD.replace("{role: sensitive}", "{}"), "line 10, columns.diagnosis: `role` is missing"),
    (
        GOOD.replace("hierarchy: {mask: {length: 5}}", "weight: 2"),
        "columns.zip: a quasi column needs a hierarchy. Add one",
    ),
    (
        GOOD.replace("{mask: {length: 5}}", "{mask: {length: 5}, flat: {}}"),
        "got mask, flat. Give exactly one of intervals, mask, groups, dates, order, csv, flat, ",
    ),
    (GOOD.replace("from: 1900", "from: 2900"), "`to` (2026) is below `from` (2900)"),
    (
        GOOD.replace("epsilon: 1.0", "epsilon: 1.0, levels: {birth_yaer: 2}"),
        "line 11, release.levels.birth_yaer: the column 'birth_yaer' has no entry. "
        "Did you mean 'birth_year'?",
    ),
    (
        GOOD.replace("one row per person", "{id: patient}"),
        "line 2, unit.id: the column 'patient' has no entry",
    ),
    (
        GOOD.replace("role: sensitive", "role: noisy"),
        "line 10, columns.diagnosis.role: `method: safe` cannot publish a noisy column.",
    ),
    (GOOD.replace("epsilon: 1.0", "epsilon: -1"), "release.epsilon: must be greater than"),
    (
        GOOD.replace("epsilon: 1.0", "keep: 0.5, beta: 0.5"),
        "`keep` and `beta` both set the sampling rate. Give one",
    ),
    (
        GOOD.replace("epsilon: 1.0", "suppression: 0.1"),
        "`suppression` is not a setting of `method: safe`",
    ),
    (
        GOOD.replace("{role: identifier}", "{role: identifier, bounds: [1, 2]}"),
        "`bounds` is for role `noisy`",
    ),
    (
        GOOD.replace("widths: [2, 4, 8]", "step: 5, widths: [7]"),
        "width 7 is not a multiple of the",
    ),
    (
        GOOD.replace("widths: [2, 4, 8]", "step: 5, cuts: [[18]]"),
        "cut 18 is not a number of steps",
    ),
    (GOOD.replace("length: 5", "length: 5, alphabet: 0123456789"), "valid string, got 123456789"),
    (
        GOOD.replace("one row per person", "{idd: zip}"),
        "unit: unknown unit. Use 'one row per person', {id: COLUMN} or",
    ),
    *(
        (GOOD.replace("epsilon: 1.0", f"slices: {item}"), message)
        for item, message in (
            ("1", "release.slices: not a list of tables. List their columns, as in"),
            (
                "{columns: 2, tables: some}",
                "release.slices: not a list of tables. List their columns",
            ),
            ("[zip, sex]", "release.slices: not a list of tables. List their columns"),
            ("[[zip, sex]]", "one slice is one table"),
            ("[[zip, sex], [sex, zip]]", "two slices have the same columns"),
            ("[[zip, zip], [sex]]", "a slice names a column twice: zip, zip"),
            ("[[zip, sexx], [sex]]", "sexx"),
        )
    ),
    (GOOD.replace("{role: sensitive}", "{role: sensitive, other: [a]}"), "other: must be"),
    (
        GOOD.replace("{mask: {length: 5}}", "{dates: {from: 2020-02-30, to: 2021-01-01}}"),
        "not valid YAML: day is out of range for month",
    ),
    (
        GOOD.replace("{mask: {length: 5}}", "{dates: {from: 0001-01-01, to: 9999-12-31}}"),
        "more than a thousand years",
    ),
    (
        GOOD.replace(
            "{mask: {length: 5}}",
            "{dates: {from: 2020-01-01, to: 2021-01-01, levels: [year, month]}}",
        ),
        "`levels` must go from fine to coarse, each within the next. Take them from one of these",
    ),
    (
        GOOD.replace(
            "{mask: {length: 5}}", "{dates: {from: 2020-01-01, to: 2021-01-01, format: '%Q'}}"
        ),
        "`format` is not a format of dates: %Q",
    ),
    ("columns: {'height [cm]': {rol: drop}}", "columns.height [cm].rol: unknown key 'rol'"),
    ("a: " + "[" * 1500 + "]" * 1500, "not valid YAML"),
    ("columns: [", "line 1, not valid YAML:"),
    ("columns: {a: {role: drop}}\ncolumns: {}\n", "line 2, not valid YAML: found duplicate key"),
    ("- 1\n", "it is not a mapping"),
    ("table: x\n", "`columns` is missing"),
]


@pytest.mark.parametrize(("text", "part"), PROBLEMS)
def test_each_problem_has_its_place_and_a_way_out(text: str, part: str) -> None:
    with pytest.raises(SpecError) as error:
        parse_spec(text)
    assert part in str(error.value)


def test_all_problems_are_listed_together() -> None:
    text = GOOD.replace("role: identifier", "role: identifer").replace("length: 5", "length: 0")
    text = text.replace("epsilon: 1.0", "epsilon: -1, levels: {sexx: 1}, keep: 0.5, beta: 0.5")
    with pytest.raises(SpecError) as error:
        parse_spec(text)
    assert len(error.value.problems) == 5
    assert str(error.value).startswith("The spec has 5 problems:\n  line 4, columns.name.role")
    assert all(problem.line for problem in error.value.problems)


def test_comments_survive_a_change(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(GOOD)
    changed = read_spec_file(path).with_entry(("release", "epsilon"), 2.0)
    assert isinstance(changed.spec.release, SafeSpec)
    assert changed.spec.release.epsilon == 2.0
    assert changed.text() == GOOD.replace("epsilon: 1.0", "epsilon: 2.0")
    assert parse_spec(GOOD).with_entry(("columns", "race"), None).spec.columns_with_role(
        "quasi"
    ) == (
        "zip",
        "sex",
        "birth_year",
    )


def test_a_preview_is_the_changed_spec_without_its_comments() -> None:
    file = parse_spec(f"# of last year\n{GOOD}")
    first: dict[Place, Any] = {("release", "epsilon"): 2.0, ("columns", "race"): None}
    second: dict[Place, Any] = {("size",): 4_000}
    tried = file.preview_entries(first).preview_entries(second)
    changed = file.with_entries(first).with_entries(second)
    assert tried.spec == changed.spec
    assert parse_spec(tried.text()).spec == changed.spec
    assert "race" in file.spec.columns
    with pytest.raises(SpecError, match="line 12, release.epsilon: must be greater than"):
        file.preview_entries({("release", "epsilon"): -1})


def test_aliases_cannot_explode() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    with pytest.raises(SpecError, match="more than 2,000,000 entries"):
        parse_spec("\n".join(lines))


def test_numeric_keys_can_be_changed() -> None:
    changed = parse_spec("columns: {2020: {role: drop}}").with_entry(
        ("columns", "2020", "role"), "identifier"
    )
    assert changed.spec.columns["2020"].role == "identifier"
    assert list(changed.spec.columns) == ["2020"]


def test_a_file_that_is_no_spec(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes("columns: {größe: {role: drop}}".encode("latin-1"))
    with pytest.raises(Exception, match="': not UTF-8 text"):
        read_spec_file(tmp_path / "latin.yaml")
    with pytest.raises(Exception, match="none.yaml': cannot be read .No such file"):
        read_spec_file(tmp_path / "none.yaml")


def test_a_spec_may_be_given_as_yaml_text(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(GOOD, encoding="utf-8")
    assert load_spec(GOOD).spec == load_spec(str(path)).spec == load_spec(path).spec
    with pytest.raises(SpecError, match="line 1, tabel: unknown key"):
        load_spec("tabel: x\n" + GOOD)
