"""What is wrong with a spec, in words, and on which line it stands."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import BaseModel
from ruamel.yaml.comments import CommentedMap

from incrowd.errors import IncrowdError
from incrowd.spec.about import About
from incrowd.spec.hierarchies import HierarchyChoice, list_kinds
from incrowd.spec.household import HouseholdTable
from incrowd.spec.model import Column, Spec
from incrowd.spec.release import build_combined_model

Place: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a spec, and where."""

    place: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = f"line {self.line}, " if self.line else ""
        return f"{where}{self.place}: {self.message}" if self.place else f"{where}{self.message}"


class SpecError(IncrowdError):
    """All problems of a spec, together."""

    def __init__(self, source: str, problems: list[Problem]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        listed = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"{source} has {count}:\n{listed}")
        self.problems = problems


def make_problem(document: CommentedMap, detail: Any) -> Problem:
    """Return one validation error in our words, with the line it stands on."""
    place: Place = tuple(detail["loc"])
    if place[:1] == ("unit",):  # one of two forms; say so once
        message = (
            "unknown unit. Use 'one row per person', {id: COLUMN} or {id: COLUMN, rows: NUMBER}; "
            "`without_id: drop` leaves out rows without an id."
        )
        return Problem("unit", message, find_line(document, ("unit",)))
    if place[:2] == ("release", "slices"):
        message = (
            "not a list of tables. List their columns, as in [[a, b], [c, d]], or give their size, "
            "from 2: 3, {columns: 3, tables: 8} or {columns: 3, tables: all}."
        )
        return Problem("release.slices", message, find_line(document, ("release", "slices")))
    message = detail["msg"].removeprefix("Value error, ")
    context = detail.get("ctx", {})
    value = detail["input"]
    match detail["type"]:
        case "extra_forbidden":
            hint = _suggest_key(str(place[-1]), _list_known_keys(place))
            message = f"unknown key '{place[-1]}'. {hint}"
        case "missing":
            message = f"`{place[-1]}` is missing. Add it."
            place = place[:-1]
        case "literal_error":
            expected = context["expected"]
            choices = expected.replace("'", "").replace(" or ", ", ").split(", ")
            close = difflib.get_close_matches(str(value), choices, n=1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            message = f"must be {expected}, got {value!r}.{hint}"
        case "value_error":
            pass
        case "model_type" | "dict_type" | "model_attributes_type":
            message = f"must be a mapping of keys to values, got {value!r}."
        case "tuple_type":
            message = f"must be a list, got {value!r}."
        case "string_pattern_mismatch":
            message = f"has characters or a length that are not allowed, got {value!r}."
        case _:
            message = message.replace("Input should be", "must be")
            message = f"{message[0].lower()}{message[1:]}, got {value!r}."
    # Names of models and validators are ours, not the file's.
    parts = [part for part in place if not str(part).startswith(("function-", "literal["))]
    return Problem(".".join(str(part) for part in parts), message, find_line(document, place))


def _list_known_keys(place: Place) -> list[str]:
    """Return the keys that would be known where an unknown one stands."""
    models: dict[str, type[BaseModel]] = {
        "": Spec, "about": About, "release": build_combined_model(),
        "household": HouseholdTable, "hierarchy": HierarchyChoice, **list_kinds(),
    }  # fmt: skip
    parent = place[-2] if len(place) > 1 else ""
    if len(place) == 3 and place[0] == "columns":
        model: type[BaseModel] | None = Column
    else:
        model = models.get(str(parent))
    return [f.alias or name for name, f in model.model_fields.items()] if model else []


def _suggest_key(word: str, keys: list[str]) -> str:
    close = difflib.get_close_matches(word, keys, n=1)
    if close:
        return f"Did you mean '{close[0]}'?"
    return f"Known keys: {', '.join(keys)}." if keys else "Remove it."


def find_line(document: CommentedMap, place: Place) -> int | None:
    """Return the line of the deepest part of a place that is in the document, from 1."""
    node: Any = document
    line: int | None = None
    for part in place:
        try:
            mapping = isinstance(node, CommentedMap)
            position = node.lc.key(part) if mapping else node.lc.item(part)
            node = node[part]
        except (KeyError, IndexError, AttributeError, TypeError):
            continue
        line = int(position[0]) + 1
    return line
