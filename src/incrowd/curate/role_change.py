"""Give a column another role: what of its entry goes, what comes, and what is left to confirm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML

from incrowd.curate.draft.draft import Draft
from incrowd.curate.draft.guess import Guess
from incrowd.spec.class_rules import CLASS_RULES
from incrowd.spec.file import SpecFile
from incrowd.spec.problem import Place

Changes = dict[Place, Any]
_OF_ROLE = {  # what a column with another role cannot have
    "hierarchy": ("quasi", "sensitive"), "other": ("quasi", "sensitive", "noisy"),
    "precision": ("noisy",), "values": ("noisy",), "bounds": ("noisy",),
    "weight": ("noisy", "quasi", "sensitive"), "rare": ("quasi", "sensitive"),
    "references": ("key",),
    **dict.fromkeys((*CLASS_RULES, "linked", "aggregate"), ("sensitive",)),
}  # fmt: skip


def set_role(file: SpecFile, guessed: Draft, name: str, chosen: str) -> Changes:
    """Give a column another role, which is confirmed by being chosen.

    What belongs to its old role goes. A column that is to be generalized gets the hierarchy that
    was guessed for it, to be confirmed if it was read from the data, or else the value itself and
    nothing of it. If it was dropped as a function of others, that is declared, to be confirmed.
    """
    column = file.spec.columns[name]
    entry = find_entry(file, name)
    guess = next((candidate for candidate in guessed.guesses if candidate.column == name), None)
    changes: Changes = {("columns", name, "role"): chosen}
    release = file.spec.release
    synthetic = release is not None and release.method == "synthetic"
    of_role = _OF_ROLE | ({"precision": ("quasi", "sensitive")} if synthetic else {})
    for key, roles in of_role.items():
        if key in entry and chosen not in roles:
            changes["columns", name, key] = None
    left = [
        confirmable
        for confirmable in column.confirm
        if confirmable != "role"
        and chosen != "drop"
        and chosen in of_role.get(confirmable, (chosen,))
    ]
    keeps_sensitive = release is not None and release.keeps_sensitive
    is_generalized = chosen == "quasi" or (chosen == "sensitive" and not keeps_sensitive)
    if is_generalized and column.hierarchy is None:
        if guess is not None and guess.hierarchy:
            changes["columns", name, "hierarchy"] = YAML(typ="safe").load(guess.hierarchy)
            left += ["hierarchy"] if "hierarchy" in guess.confirm else []
        else:
            changes["columns", name, "hierarchy"] = "flat"
    if chosen == "drop" and "function_of" in column.confirm:
        changes["columns", name, "function_of"] = None
    if is_generalized and column.role == "drop" and _has_sources(guess, file):
        assert guess is not None
        changes["columns", name, "function_of"] = list(guess.function_of)
        left.append("function_of")
    if chosen == "noisy" and column.precision is None:
        step = _find_guessed_step(guessed, name)
        if step is not None:
            changes["columns", name, "precision"] = step
            left.append("precision")
    changes["columns", name, "confirm"] = left or None
    return changes


def _has_sources(guess: Guess | None, file: SpecFile) -> bool:
    """Return whether a column is guessed to be a function of others, and the spec has these."""
    sources = () if guess is None else guess.function_of
    return bool(sources) and file.spec.columns.keys() >= set(sources)


def _find_guessed_step(guessed: Draft, name: str) -> Any:
    """Return what the values of a column are multiples of, where they are not whole."""
    guess = next((candidate for candidate in guessed.guesses if candidate.column == name), None)
    text = YAML(typ="safe").load(guess.hierarchy) if guess and guess.hierarchy else None
    intervals = text.get("intervals", {}) if isinstance(text, dict) else {}
    return intervals.get("step") if isinstance(intervals, dict) else None


def find_entry(file: SpecFile, name: str) -> Mapping[str, Any]:
    """Return a column as the document has it."""
    columns = file.document["columns"]
    entry = next(value for key, value in columns.items() if str(key) == name)
    return entry if isinstance(entry, Mapping) else {}
