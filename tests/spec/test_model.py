from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML
from support.random_cases import draw_case
from support.specs import GOOD

from incrowd.curate.demo_tables import SPECS, make_demo_table
from incrowd.curate.draft.draft import draft
from incrowd.spec.file import load_spec, parse_spec
from incrowd.spec.model import _list_rule_names, build_json_schema
from incrowd.spec.problem import SpecError


def test_columns_may_have_any_name() -> None:
    got = parse_spec(
        "columns: {39: {role: drop}, true: {role: drop}, Age: {role: drop, confirm: [role]}}"
    )
    assert list(got.spec.columns) == ["39", "true", "Age"]
    assert got.spec.unconfirmed_entries == {"Age": ("role",)}
    with pytest.raises(SpecError, match="columns.Age.role: must be"):
        parse_spec("columns: {Age: {role: dropp}}")


def test_the_schema_knows_the_spec() -> None:
    schema = build_json_schema()
    assert schema["$schema"].endswith("2020-12/schema")
    assert set(schema["properties"]) == {
        "table", "sheet", "header", "ledger", "size", "unit", "part", "confirm", "columns",
        "release", "purpose", "hipaa", "about", "describe", "household",
    }  # fmt: skip
    assert "from" in schema["$defs"]["Intervals"]["properties"]


def examples() -> Iterator[str]:
    """Every YAML of the docs, made whole where it is a part of a spec."""
    home = Path(__file__).parents[2]
    for guide in (home / "README.md", *sorted((home / "docs").rglob("*.md"))):
        for text in re.findall(r"```yaml\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL):
            loaded = YAML(typ="safe").load(text)
            keys = set(loaded)
            if keys <= {"release"}:
                rules = loaded["release"].get("rules", ())
                names = ["a", *(name for rule in rules for name in _list_rule_names(rule))]
                columns = ", ".join(f"{name}: {{role: drop}}" for name in dict.fromkeys(names))
                yield f"columns: {{{columns}}}\n{text}"
            elif keys <= {"unit", "part", "about", "describe"}:
                yield f"columns: {{patient: {{role: identifier}}, visit: {{role: drop}}}}\n{text}"
            elif "columns" not in keys:
                yield "columns:\n" + textwrap.indent(text, "  ")
            else:
                yield text


def test_the_examples_are_found() -> None:
    assert len(list(examples())) >= 6


@pytest.mark.parametrize("text", [GOOD, *examples(), *SPECS.values()])
def test_the_schema_accepts_what_is_good(text: str) -> None:
    parse_spec(text)
    plain = json.loads(json.dumps(YAML(typ="safe").load(text), default=str))
    Draft202012Validator(build_json_schema()).validate(plain)


def test_the_schema_accepts_drafts_and_scalars() -> None:
    drafts = [
        draft(make_demo_table(kind, rows=500), name="x").yaml() for kind in ("voters", "census")
    ]
    for text in (*drafts, "columns: {a: {role: quasi, hierarchy: flat, other: 99}}"):
        test_the_schema_accepts_what_is_good(text)


def test_the_schema_accepts_specs_of_every_kind() -> None:
    schema = Draft202012Validator(build_json_schema())
    for number in range(100):
        spec = draw_case(number)[1]
        load_spec(spec)
        schema.validate(json.loads(json.dumps(spec, default=str)))


@pytest.mark.parametrize(
    "text",
    [
        "columns: {a: {role: quasi, hierarchy: {}}}",
        "columns: {a: {role: quasi, hierarchy: {mask: {length: 5}, flat: {}}}}",
        "columns: {a: {role: quasi, hierarchy: {groups: {}}}}",
        "columns: {a: {role: quasi}}",
        "columns: {a: {role: drop, weigth: 1}}",
        "columns: {a: {role: drop}}\nrelease: {method: k-anonymty, k: 5}",
        "columns: {a: {role: drop}}\nrelease: {k: 5, suppression: 0.1}",
    ],
)
def test_the_schema_refuses_what_is_not(text: str) -> None:
    assert not Draft202012Validator(build_json_schema()).is_valid(YAML(typ="safe").load(text))
    with pytest.raises(SpecError):
        parse_spec(text)


def test_the_schema_tells_the_methods_apart() -> None:
    schema = build_json_schema()
    release = [part["$ref"] for part in schema["properties"]["release"]["anyOf"] if "$ref" in part]
    models = [schema["$defs"][ref.removeprefix("#/$defs/")] for ref in release]
    methods = {model["properties"]["method"]["const"]: model for model in models}
    assert set(methods) == {"safe", "k-anonymity", "k-epsilon", "synthetic", "tables"}
    required = {name for name, model in methods.items() if "method" in model.get("required", [])}
    assert required == {"k-anonymity", "k-epsilon", "synthetic", "tables"}
    assert "noise" in methods["k-epsilon"]["properties"]
    assert not {"noise", "beta", "epsilon"} & set(methods["k-anonymity"]["properties"])


def test_a_header_is_a_row_and_a_sheet_has_a_name() -> None:
    columns = "columns: {a: {role: drop}}"
    got = parse_spec(f"table: t.xlsx\nsheet: '2020'\nheader: 3\n{columns}").spec
    assert (got.sheet, got.header) == ("2020", 3)
    for wrong in ("header: 0", "header: 1.5", "header: a", "sheet: [a]"):
        with pytest.raises(SpecError, match=f"line 1, {wrong.partition(':')[0]}: "):
            parse_spec(f"{wrong}\n{columns}")
