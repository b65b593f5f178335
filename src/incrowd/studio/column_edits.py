"""What a click changes in several columns at once: role, hierarchy, weight, confirmations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ruamel.yaml import YAML

from incrowd.errors import IncrowdError
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import SpecFile
from incrowd.spec.model import HARMLESS_ENTRIES
from incrowd.studio import hierarchy_edits, hierarchy_form, spec_edits
from incrowd.studio.number_form import normalize_number
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.spec_edits import Changes

_GENERALIZED = ("quasi", "sensitive")
HIERARCHIES = {  # what several columns may be given at once
    "guess": "as guessed for each column",
    "flat": "flat: the value, or suppressed",
    "intervals": "intervals: a range of numbers, and widths",
    "like": "the same as another column",
}


def apply_action(work: OpenSpec, names: Sequence[str], form: Mapping[str, str]) -> None:
    """Do what a button asks for with the selected columns.

    Raises:
        IncrowdError: No column is selected, or one of them cannot be changed like this; then
            nothing is changed.
    """
    if not names:
        raise IncrowdError("Select one or more columns first.")
    match form.get("do", ""):
        case "role":
            set_roles(work, dict.fromkeys(names, form.get("all_role", "")))
        case "hierarchy":
            set_hierarchies(work, names, form)
        case "weight":
            set_weights(work, names, form.get("weight", ""))
        case "count" | "count-not" as action:
            set_counted(work, names, is_counted=action == "count")
        case "confirm":
            work.apply_changes(spec_edits.confirm_entries(work.file, names, HARMLESS_ENTRIES))
        case other:
            raise IncrowdError(f"There is no action '{other}'.")


def set_roles(work: OpenSpec, roles: Mapping[str, str]) -> None:
    """Give columns other roles in one step; who chooses a role has confirmed it."""
    changes: Changes = {}
    for name, role in roles.items():
        if role not in spec_edits.ROLES:
            raise IncrowdError(f"There is no role '{role}'. Choose one of the list.")
        changes |= spec_edits.set_role(work.file, work.guessed, name, role)
    work.apply_changes(changes)


def set_hierarchies(work: OpenSpec, names: Sequence[str], form: Mapping[str, str]) -> None:
    """Give columns a hierarchy in one step: guessed, flat, intervals, or that of another column.

    What was read from the data remains to be confirmed; a range that is typed in is the curator's.
    """
    chosen = form.get("hierarchy", "")
    if chosen not in HIERARCHIES:
        raise IncrowdError("Choose a hierarchy for the selected columns.")
    columns = work.file.spec.columns
    other = next((name for name in names if columns[name].role not in _GENERALIZED), None)
    if other is not None:
        raise IncrowdError(
            f"Column '{other}' has the role '{columns[other].role}', which has no hierarchy. Make "
            "it a quasi-identifier first, or do not select it."
        )
    changes: Changes = {}
    for name in names:
        declared, read = _declare_hierarchy(work, name, chosen, form)
        changes["columns", name, "hierarchy"] = hierarchy_edits.put_lists_inline(declared)
        changes["columns", name, "confirm"] = hierarchy_edits.list_unconfirmed(
            work, name, read=read, keep_unconfirmed=False
        )
    work.apply_changes(changes, check=lambda file: _build_all(file, names))


def _build_all(file: SpecFile, names: Sequence[str]) -> None:
    """Refuse hierarchies that cannot be built."""
    ColumnHierarchies({name: file.spec.columns[name] for name in names}, file.folder)


def _declare_hierarchy(
    work: OpenSpec, name: str, chosen: str, form: Mapping[str, str]
) -> tuple[Any, bool]:
    """Return a declaration, and whether it was read from the data."""
    if chosen == "flat":
        return "flat", False
    if chosen == "intervals":
        low, high = form.get("low", ""), form.get("high", "")
        if not low.strip() or not high.strip():
            raise IncrowdError("Enter the smallest and the largest public value of the intervals.")
        declared: dict[str, Any] = {
            "from": hierarchy_form.parse_number(low), "to": hierarchy_form.parse_number(high),
        }  # fmt: skip
        if step := form.get("step", "").strip():
            declared["step"] = hierarchy_form.parse_number(step)
        declared["widths"] = hierarchy_form.parse_numbers(form.get("widths", ""))
        return {"intervals": declared}, False
    if chosen == "like":
        return _copy_hierarchy(work.file, form.get("like", ""))
    guess = next((guess for guess in work.guessed.guesses if guess.column == name), None)
    if guess is None or not guess.hierarchy:
        raise IncrowdError(f"No hierarchy was guessed for column '{name}'. Choose another kind.")
    return YAML(typ="safe").load(guess.hierarchy), "hierarchy" in guess.confirm


def _copy_hierarchy(file: SpecFile, name: str) -> tuple[Any, bool]:
    """Return the hierarchy of another column as the document has it."""
    column = file.spec.columns.get(name)
    if column is None or column.hierarchy is None:
        raise IncrowdError(f"Column '{name}' has no hierarchy to copy. Choose another column.")
    entry = spec_edits.find_entry(file, name)["hierarchy"]
    return entry, "hierarchy" in column.confirm


def set_weights(work: OpenSpec, names: Sequence[str], text: str) -> None:
    """Set the importance of columns in a search; an empty text is the usual one."""
    try:
        weight = float(normalize_number(text)) if text.strip() else 1.0
    except ValueError:
        raise IncrowdError(f"'weight' must be a number above 0; got '{text}'.") from None
    columns = work.file.spec.columns
    allowed = (*_GENERALIZED, "noisy")
    other = next((name for name in names if columns[name].role not in allowed), None)
    if other is not None:
        raise IncrowdError(
            f"Column '{other}' has the role '{columns[other].role}': a weight has no effect on it. "
            "Do not select it."
        )
    written = None if weight == 1 else int(weight) if weight.is_integer() else weight
    work.apply_changes({("columns", name, "weight"): written for name in names})


def set_counted(work: OpenSpec, names: Sequence[str], *, is_counted: bool) -> None:
    """Have the values of columns counted beside the rows of a safe release, or not."""
    columns = work.file.spec.columns
    other = next((name for name in names if columns[name].role not in _GENERALIZED), None)
    if other is not None:
        raise IncrowdError(
            f"Column '{other}' has the role '{columns[other].role}': its values are not counted. "
            "Do not select it."
        )
    work.apply_changes(
        {("columns", name, "rare"): "keep" if is_counted else None for name in names}
    )
