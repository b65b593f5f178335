"""Households in a table of their own, beside the table of their members: what a spec says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from incrowd.codes.household_type import HOUSEHOLD_KEY
from incrowd.spec.base import SpecModel, Text

_HOUSEHOLD_UNIT = (
    "`household` needs a unit that is the household. Add `unit: {id: COLUMN, protects: household}`."
)
_METHOD = "`household` is for `method: safe`. Remove it, or change the method."
_MISFITS = {
    "slices": "there are two tables, of households and of people",
    "target": "a target is for one table",
    "series": "a series is for one table",
    "releases": "a planned block is of one table",
    "already_sampled": "its amplification is not offered for two tables",
}


class HouseholdTable(SpecModel):
    """A table with one row for each household, whose columns the people of the household share.

    ``table`` is its file, ``id`` its column of ids, by default named as the id of the unit.
    ``columns`` names those that belong to the household; their entries stand under ``columns`` of
    the spec. A household without people is refused unless ``without_people`` says to drop it. With
    ``linked`` households are published whole, and a key tells which people belong to which.
    """

    table: Text | None = None
    id: Text | None = None
    columns: Annotated[tuple[Text, ...], Field(min_length=1)]
    without_people: Literal["drop"] | None = None
    linked: bool = False


def find_household_conflict(
    household: HouseholdTable,
    unit: Any,
    columns: Mapping[str, Any],
    release: Any,
    *,
    has_part: bool = False,
) -> str | None:
    """Return why a table of households does not fit the rest of a spec; None if it does."""
    if getattr(unit, "protects", None) != "household":
        return _HOUSEHOLD_UNIT
    if has_part:
        return (
            "`household` excludes `part`: the columns of a household are those of all its periods. "
            "Remove one of them."
        )
    rare = next((name for name, column in columns.items() if column.rare is not None), None)
    if rare is not None:
        return (
            f"`household` excludes `rare: keep` (column '{rare}'): a column is counted beside one "
            "table. Remove one of them."
        )
    if unit.per_group > 1:
        return (
            "`household` excludes `per_group`: both tables count households, each once in a group. "
            "Remove one of them."
        )
    if len(set(household.columns)) < len(household.columns):
        return "`household` names a column twice. Name it once."
    for name in household.columns:
        if name not in columns:
            return f"`household` names the column '{name}', which has no entry. Add it."
    if unit.id in household.columns:
        return (
            f"`household` lists '{unit.id}', the id of the unit. Remove it from `columns`; another "
            "name in the second table is `id`."
        )
    if release is None:
        return None
    if release.method != "safe":
        return _METHOD
    if household.linked:
        conflict = _find_link_conflict(unit, columns, release)
        if conflict is not None:
            return conflict
    for name, reason in _MISFITS.items():
        if getattr(release, name) not in (None, ()):
            return f"`household` excludes `{name}`: {reason}. Remove one of them."
    if release.scheme == "mondrian":
        return (
            "`household` excludes `scheme: mondrian`: both tables share the levels of a column. "
            "Use `scheme: search`."
        )
    published = {name for name, column in columns.items() if column.role in ("quasi", "sensitive")}
    if not published & set(household.columns):
        return (
            "`household` lists no column that is published. List one with the role `quasi`, or "
            "remove `household`."
        )
    if not published - set(household.columns):
        return (
            "every published column belongs to the household, so the table of people has none. "
            "Publish the households alone, without `household`, or add a column of people."
        )
    return None


def _find_link_conflict(unit: Any, columns: Mapping[str, Any], release: Any) -> str | None:
    """Return why households cannot be published whole, with keys; None if they can."""
    if unit.rows < 2:
        return (
            "`linked` publishes households with their people, and `unit` uses one person of each. "
            "Add `rows: m` under `unit`, the number of people of a household that are used."
        )
    if release.rows == "counted":
        return (
            "`linked` gives each published household a key of its own, so lines cannot stand for "
            "several. Remove `rows: counted`."
        )
    if HOUSEHOLD_KEY in columns and columns[HOUSEHOLD_KEY].role in ("quasi", "sensitive"):
        return f"`linked` adds a column '{HOUSEHOLD_KEY}' to both files. Rename yours."
    return None
