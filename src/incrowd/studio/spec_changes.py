"""In a few words, what differs between two versions of a spec: what Undo would take back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from incrowd.spec.file import SpecFile

_WORDS = {
    "role": "role", "hierarchy": "hierarchy", "confirm": "confirmation", "other": "other label",
    "written": "value format", "precision": "precision", "bounds": "bounds", "weight": "weight",
    "rare": "counts beside the rows", "function_of": "functions of other columns",
    "diversity": "ℓ-diversity", "closeness": "t-closeness", "likeness": "β-likeness",
    "disclosure": "δ-disclosure", "presence": "δ-presence", "aggregate": "published values",
    "linked": "linked cells", "values": "categories", "payout": "costs and benefits",
    "population": "population", "subsets": "k for fewer columns",
    "epsilon": "ε", "delta": "δ", "k": "k", "method": "method",
    "levels": "levels", "unit": "unit", "ledger": "ledger", "size": "number of people",
}  # fmt: skip


def describe_changes(now: SpecFile, before: SpecFile) -> str:
    """Describe what a spec has that it had not before, by its columns or entries.

    Of several entries of a column the weightiest is named: a role that was changed took its
    hierarchy along, and who changes a hierarchy may confirm it.
    """
    new, old = now.document, before.document
    release = _list_changed(_as_mapping(new.get("release")), _as_mapping(old.get("release")))
    if "method" in release:  # which takes entries of columns along
        return _WORDS["method"]
    columns = _list_changed(new.get("columns", {}), old.get("columns", {}))
    if columns:
        return _describe_columns(columns, new["columns"], old["columns"])
    if release:
        names = ["payout"] if "payout" in release else release  # it takes the place of a loss
        return _list_words(names, "setting")
    return _list_words(_list_changed(new, old), "entry")


def _describe_columns(names: list[str], new: Mapping[Any, Any], old: Mapping[Any, Any]) -> str:
    entries: list[str] = []
    for name in names:
        pair = (_as_mapping(_find(columns, name)) for columns in (new, old))
        entries += _list_changed(*pair)
    entry = next((entry for entry in _WORDS if entry in entries), "")
    what = _WORDS.get(entry, "entry")
    if len(names) == 1:
        return f"{what} of '{names[0]}'"
    return f"{what} of {len(names)} columns"


def _find(columns: Mapping[Any, Any], name: str) -> Any:
    return next((value for key, value in columns.items() if str(key) == name), None)


def _as_mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _list_changed(new: Mapping[Any, Any], old: Mapping[Any, Any]) -> list[str]:
    names = dict.fromkeys(map(str, [*new, *old]))
    return [name for name in names if _find(new, name) != _find(old, name)]


def _list_words(names: list[str], kind: str) -> str:
    if len(names) == 1:
        return _WORDS.get(names[0], f"{kind} '{names[0]}'")
    return f"{len(names)} {'entries' if kind == 'entry' else f'{kind}s'}" if names else "layout"
