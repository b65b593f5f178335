"""The JSON Schema of a spec, with a description and an example of every key.

``schema.toml`` holds both, by model and field; the reference of the site is made from it, too.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_suffix(".toml")


@cache
def read_descriptions() -> dict[str, Any]:
    """Return the title, the text, the fields and the examples of every model, by name."""
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


def describe_schema(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a model and those below it, with descriptions and examples."""
    models = {name: schema, **schema.get("$defs", {})}
    for model, described in read_descriptions().items():
        form = object_form(models[model])
        form["description"] = _plain(described["text"])
        for field, kind in form.get("properties", {}).items():
            kind["description"] = _plain(described["fields"][field])
            kind["examples"] = [described["examples"][field]]
    return schema


def object_form(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the form with all fields of a model that can also be written shorter."""
    forms = [form for form in schema.get("anyOf", []) if "properties" in form]
    return forms[0] if forms and "properties" not in schema else schema


def find_undescribed(models: Mapping[str, Any], texts: Mapping[str, Any]) -> list[str]:
    """Return what lacks a description or an example, and what is described and does not exist."""
    problems = [f"'{name}' is described, and is no model" for name in texts if name not in models]
    for name, model in models.items():
        entry = texts.get(name, {})
        fields = model.get("properties", {})
        if name not in texts:
            problems.append(f"the model '{name}' is not described")
        for part, lack, surplus in (
            ("fields", "is not described", "is described, and no field"),
            ("examples", "has no example", "has an example, and is no field"),
        ):
            if part == "examples" and part not in entry:
                continue  # of a certificate, which nobody writes by hand
            entries = entry.get(part, {})
            problems += [f"'{name}.{field}' {lack}" for field in fields if field not in entries]
            problems += [f"'{name}.{field}' {surplus}" for field in entries if field not in fields]
    return problems


def _plain(text: str) -> str:
    """Return a text without the links of the site."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
