"""What a release is for: enough for a draft to have a method, an objective and a form.

A spec with a ``purpose`` and no ``release`` gets the release of this module. It follows from the
purpose and the declared columns alone, never from the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

from ruamel.yaml.comments import CommentedMap

Purpose: TypeAlias = Literal["explore", "model", "statistics", "test-data"]
PURPOSES: tuple[str, ...] = get_args(Purpose)
_BUDGET = {"epsilon": 1.0, "delta": 1e-6}
_MOST_GROUPED = 10  # columns that groups of whole rows can show together
_MOST_TABULATED = 20  # columns of which every two have a table


def complete_release(document: CommentedMap, plain: dict[str, Any]) -> None:
    """Write the release that a purpose stands for into a spec that names none itself."""
    columns = plain.get("columns")
    if plain.get("purpose") in PURPOSES and "release" not in plain and isinstance(columns, dict):
        plain["release"] = make_release(plain["purpose"], columns)
        document["release"] = CommentedMap(plain["release"])
        document["release"].fa.set_flow_style()  # on one line


def make_release(purpose: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the release of a purpose, as a spec writes it.

    >>> make_release("statistics", {"age": {"role": "quasi"}, "ill": {"role": "sensitive"}})
    {'method': 'tables', 'epsilon': 1.0, 'delta': 1e-06, 'all': 2}
    >>> make_release("model", {"age": {"role": "quasi"}, "ill": {"role": "sensitive"}})["target"]
    'ill'
    """
    roles = [
        (str(name), column.get("role")) for name, column in columns.items()
        if isinstance(column, Mapping)
    ]  # fmt: skip
    published = sum(role in ("quasi", "sensitive") for _, role in roles)
    sensitive = [name for name, role in roles if role == "sensitive"]
    if purpose == "statistics" and 2 <= published <= _MOST_TABULATED:
        return {"method": "tables", **_BUDGET, "all": 2}
    if purpose == "explore" and published <= _MOST_GROUPED:
        return {"method": "safe", **_BUDGET, "objective": "balanced"}
    release: dict[str, Any] = {"method": "synthetic", **_BUDGET}
    if purpose == "model" and len(sensitive) == 1:
        release["target"] = sensitive[0]
    if purpose == "test-data":
        release["values"] = "drawn"
    return release
