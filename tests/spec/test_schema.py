"""Every key of the JSON Schema has a description and a valid example, from one source."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from incrowd.spec.model import Spec, build_json_schema
from incrowd.spec.schema import find_undescribed, object_form, read_descriptions


def _models(schema: dict[str, Any]) -> dict[str, Any]:
    return {"Spec": schema} | {name: object_form(item) for name, item in schema["$defs"].items()}


SCHEMA = build_json_schema()
KEYS = [
    (model, key) for model, form in _models(SCHEMA).items() for key in form.get("properties", {})
]


@pytest.mark.parametrize(("model", "key"), KEYS)
def test_every_key_has_a_description_and_an_example_that_is_valid(model: str, key: str) -> None:
    kind = _models(SCHEMA)[model]["properties"][key]
    assert kind["description"].endswith(".")
    assert "](" not in kind["description"]
    (example,) = kind["examples"]
    Draft202012Validator({**kind, "$defs": SCHEMA["$defs"]}).validate(example)


def test_nothing_is_described_that_is_no_key() -> None:
    models = _models(Spec.model_json_schema(by_alias=True))
    assert find_undescribed(models, read_descriptions()) == []


@pytest.mark.parametrize("part", ["fields", "examples"])
def test_a_key_without_a_description_or_an_example_is_named(part: str) -> None:
    models = _models(Spec.model_json_schema(by_alias=True))
    texts = read_descriptions()
    poorer = {**texts, "Mask": {**texts["Mask"], part: {"length": 5, "depth": 1}}}
    undescribed = find_undescribed(models, poorer)
    assert any("'Mask.hide'" in problem for problem in undescribed)
    assert any("'Mask.depth'" in problem for problem in undescribed)
