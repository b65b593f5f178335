from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML
from support.specs import GOOD

from incrowd.spec.file import SpecError, parse
from incrowd.spec.model import json_schema
from incrowd.tasks.draft import draft
from incrowd.tasks.sample import sample


def test_columns_may_have_any_name() -> None:
    got = parse(
        "columns: {39: {role: drop}, true: {role: drop}, Age: {role: drop, confirm: [role]}}"
    )
    assert list(got.spec.columns) == ["39", "true", "Age"]
    assert got.spec.unconfirmed == {"Age": ("role",)}
    with pytest.raises(SpecError, match="columns.Age.role: must be"):
        parse("columns: {Age: {role: dropp}}")


def test_the_schema_knows_the_spec() -> None:
    schema = json_schema()
    assert schema["$schema"].endswith("2020-12/schema")
    assert set(schema["properties"]) == {"table", "unit", "columns", "release"}
    assert "from" in schema["$defs"]["Intervals"]["properties"]


def test_the_schema_accepts_what_is_good_and_refuses_what_is_not() -> None:
    schema = Draft202012Validator(json_schema())
    yaml = YAML(typ="safe")
    guide = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
    example = guide.split("```yaml")[1].split("```")[0]
    drafts = [draft(sample(kind, rows=500), name="x").yaml() for kind in ("voters", "census")]
    for text in (GOOD, example, *drafts, "columns: {a: {role: quasi, hierarchy: flat, other: 99}}"):
        parse(text)
        schema.validate(json.loads(json.dumps(yaml.load(text), default=str)))
    for text in (
        "columns: {a: {role: quasi, hierarchy: {}}}",
        "columns: {a: {role: quasi, hierarchy: {mask: {length: 5}, flat: {}}}}",
        "columns: {a: {role: quasi}}",
        "columns: {a: {role: drop, weigth: 1}}",
    ):
        assert not schema.is_valid(yaml.load(text))
        with pytest.raises(SpecError):
            parse(text)
