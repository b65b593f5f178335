"""The parameters that say which unchanged columns need no protection, as the curator asserts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

KEEP: Final = "keep"  # the role of columns that need no protection, as the curator asserts


def name_role(column: str) -> str:
    """Return the parameter that says that a column has the role ``keep``."""
    return f"role of {column}"


def list_unprotected_columns(parameters: Mapping[str, object]) -> list[str]:
    """Return the columns that need no protection, as the curator asserts."""
    prefix = name_role("")
    return sorted(name.removeprefix(prefix) for name in parameters if name.startswith(prefix))


def name_roles(parameters: Mapping[str, object], kept_columns: Collection[str]) -> set[str]:
    """Return the parameters that assert columns to need no protection; refuse bad ones."""
    names = set(map(name_role, list_unprotected_columns(parameters)))
    if not set(list_unprotected_columns(parameters)) <= set(kept_columns):
        raise ValueError("a column with the role 'keep' is not kept")
    if any(parameters[name] != KEEP for name in names):
        raise ValueError("the role of a kept column is 'keep', or not stated")
    return names
