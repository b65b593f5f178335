"""What a click changes in a spec: pure, from what a form says to entries of the document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML

from incrowd.spec.file import Place, SpecFile
from incrowd.spec.model import Spec
from incrowd.tasks.draft.draft import Draft

Changes = dict[Place, Any]
ROLES = {
    "identifier": "Identifier: names somebody, left out",
    "quasi": "Quasi: known of people, generalised",
    "sensitive": "Sensitive: must not be told of anybody",
    "noisy": "Noisy: shown with noise (k-epsilon)",
    "drop": "Drop: left out",
}
_OF_ROLE = {  # what a column with another role cannot have
    "hierarchy": ("quasi", "sensitive"), "other": ("quasi", "sensitive"),
    "precision": ("noisy",), "bounds": ("noisy",), "weight": ("noisy",),
    "diversity": ("sensitive",), "closeness": ("sensitive",),
}  # fmt: skip


def role(file: SpecFile, guessed: Draft, name: str, chosen: str) -> Changes:
    """A column gets another role, which somebody chose and so has confirmed.

    What belongs to its old role goes; a quasi column gets the ladder that was guessed for it, which
    is to be confirmed if it was read from the data, or else the value itself and nothing of it.
    """
    column = file.spec.columns[name]
    entry = entry_of(file, name)
    changes: Changes = {("columns", name, "role"): chosen}
    for key, roles in _OF_ROLE.items():
        if key in entry and chosen not in roles:
            changes["columns", name, key] = None
    left = [one for one in column.confirm if one != "role"]
    if chosen not in _OF_ROLE["hierarchy"]:
        left = [one for one in left if one != "hierarchy"]
    elif chosen == "quasi" and column.hierarchy is None:
        guess = next((one for one in guessed.guesses if one.column == name), None)
        if guess is not None and guess.hierarchy:
            changes["columns", name, "hierarchy"] = YAML(typ="safe").load(guess.hierarchy)
            left += ["hierarchy"] if "hierarchy" in guess.confirm else []
        else:
            changes["columns", name, "hierarchy"] = "flat"
    changes["columns", name, "confirm"] = left or None
    return changes


def confirmed(file: SpecFile, name: str, entry: str) -> Changes:
    """One question of a column is answered with yes."""
    left = [one for one in file.spec.columns[name].confirm if one != entry]
    return {("columns", name, "confirm"): left or None}


def unit(file: SpecFile, column: str) -> Changes:
    """Whose rows they are: one person each, or those of the id in a column."""
    if not column:
        return {("unit",): "one row per person"}
    return {("unit",): {"id": column, **_without_id(file.spec)}}


def _without_id(spec: Spec) -> dict[str, str]:
    kept = getattr(spec.unit, "without_id", None)
    return {"without_id": kept} if kept else {}


def entry_of(file: SpecFile, name: str) -> Mapping[str, Any]:
    """A column as the document has it."""
    columns = file.document["columns"]
    found = next(value for key, value in columns.items() if str(key) == name)
    return found if isinstance(found, Mapping) else {}
