"""What a click changes in a spec: pure, from what a form says to entries of the document."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from incrowd.curate.role_change import Changes, find_entry, set_role
from incrowd.errors import IncrowdError
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import SpecFile
from incrowd.spec.model import PersonId
from incrowd.spec.release import METHODS, ClassesSpec, KEpsilonSpec
from incrowd.studio.number_form import normalize_number

__all__ = ["Changes", "find_entry", "set_role"]
ROLES = {  # in short, and how the column is published
    "identifier": ("Direct identifier", "Identifies a person. It is not published."),
    "quasi": ("Quasi-identifier", "An attacker may know it. It is generalized."),
    "sensitive": (
        "Sensitive",
        "What an attacker must not learn. k-anonymity publishes it unchanged.",
    ),
    "keep": (
        "Keep",
        "Needs no protection, even if it becomes known. k-anonymity publishes it unchanged.",
    ),
    "noisy": ("Noisy", "Numbers that k-epsilon publishes with noise."),
    "weight": (
        "Survey weight",
        "How many people a row stands for. k-anonymity publishes it unchanged; safe does not.",
    ),
    "key": ("Made-up key", "Synthetic rows replace it by made-up numbers."),
    "drop": ("Drop", "Not published."),
}


def confirm_entries(file: SpecFile, names: Iterable[str], entries: Collection[str]) -> Changes:
    """Confirm some entries of some columns."""
    changes: Changes = {}
    for name in names:
        unconfirmed_entries = file.spec.unconfirmed_entries.get(name, ())
        left = [entry for entry in unconfirmed_entries if entry not in entries]
        if len(left) < len(unconfirmed_entries):
            changes["columns", name, "confirm"] = left or None
    return changes


def set_unit(
    column: str, *, without_id: bool = False, rows: int = 1, per_group: int = 1
) -> Changes:
    """Set the unit: one person per row, or the rows that share the id of a column.

    ``without_id`` leaves out the rows that have no id; at most ``rows`` of a person are used, and
    at most ``per_group`` of them count in one group.
    Whoever chooses the unit has confirmed it.
    """
    if not column:
        return {("unit",): "one row per person", ("confirm",): None}
    chosen: dict[str, Any] = {"id": column}
    if rows > 1:
        chosen["rows"] = rows
    if per_group > 1:
        chosen["per_group"] = per_group
    if without_id:
        chosen["without_id"] = "drop"
    return {("unit",): chosen, ("confirm",): None}


def set_size(text: str) -> Changes:
    """Set the number of people that a spec states; nothing takes it out."""
    return {("size",): _parse_field("size", text.strip())}


# The release ------------------------------------------------------------------------------------

_USUAL: dict[str, dict[str, Any]] = {  # what a method begins with
    "safe": {"epsilon": 1.0, "delta": 1e-6},
    "synthetic": {"epsilon": 1.0, "delta": 1e-6},
    "k-anonymity": {"k": 5},
    "k-epsilon": {"k": 5, "epsilon": 2.0},
    "tables": {"epsilon": 1.0, "delta": 1e-6, "all": 2},
}
_FILES = ("format", "rows", "formulas")  # what every method takes, with the same meaning
_CLASSES = (
    *_FILES, "k", "levels", "loss", "candidates", "cut", "suppression", "suppressed", "algorithm",
    "reading", "labels",
)  # fmt: skip
_NOT_WITH_NOISE = {
    "rows": ("counted",), "suppressed": ("starred",), "reading": ("category", "wildcard"),
    "labels": ("hierarchy", "free"),
    "algorithm": ("cluster", "mdav", "suppress", "duplicate"),
}  # fmt: skip
_OF_ALGORITHM = {
    "loss": "ola", "candidates": "ola", "suppression": "ola", "levels": "ola", "cut": "mondrian",
    "reading": "suppress", "subsets": "suppress", "labels": "mondrian",
    "payout": "ola", "search_seconds": "ola",
}  # fmt: skip
_WHOLE = frozenset({"k", "slices", "population"})
_NUMBERS = frozenset({
    "epsilon", "delta", "beta", "keep", "already_sampled", "search_epsilon", "suppression",
    "confidence", "search_seconds",
})  # fmt: skip
_WORDS = frozenset({
    "draw", "scheme", "objective", "target", "algorithm", "loss", "candidates", "cut",
    "suppressed", "reading", "labels", "noise", "bounds", "values",
})  # fmt: skip


def set_method(file: SpecFile, chosen: str) -> Changes:
    """Give the release another method, with what both take and else the usual values.

    Levels that were picked by what they keep of the table never become those of a safe release.
    """
    if chosen not in METHODS:
        raise IncrowdError(f"There is no method '{chosen}'. Choose one of {', '.join(METHODS)}.")
    noisy = file.spec.columns_with_role("noisy")
    if noisy and chosen != "k-epsilon":
        raise IncrowdError(
            f"Column '{noisy[0]}' has the role 'noisy', which only k-epsilon supports. Make it a "
            "quasi-identifier or drop it on the Data page, then choose this method."
        )
    keys = file.spec.columns_with_role("key")
    if keys and chosen != "synthetic":
        raise IncrowdError(
            f"Column '{keys[0]}' has the role 'key', which only synthetic rows support. Make it an "
            "identifier or drop it on the Data page, then choose this method."
        )
    old = file.spec.release
    changes: Changes = {}
    unit = file.spec.unit
    if chosen in ("synthetic", "tables") and isinstance(unit, PersonId) and unit.rows > 1:
        changes["unit", "rows"] = None  # they use one row of each person
    if chosen != "safe" and isinstance(unit, PersonId) and unit.per_group > 1:
        changes["unit", "per_group"] = None  # their k, and their rows, are of people
    if chosen != "safe":
        changes |= {("columns", name, "rare"): None for name in file.spec.columns_with_shares}
    if chosen != "k-anonymity":  # whose classes alone have means, and cells of their own
        changes |= {
            ("columns", name, key): None
            for name, column in file.spec.columns.items()
            for key in ("aggregate", "linked")
            if getattr(column, key) is not None
        }
    if old is None or "release" not in file.document:
        return {**changes, ("release",): {"method": chosen, **_USUAL[chosen]}}
    if old.method == chosen:
        return {}
    both = not {"safe", "synthetic", "tables"} & {old.method, chosen}
    document = file.document["release"]
    kept_keys = {
        str(key) for key in document
        if str(key) in (_CLASSES if both else _FILES)
        and not (chosen == "k-epsilon" and document[key] in _NOT_WITH_NOISE.get(str(key), ()))
        and not (chosen in ("synthetic", "tables") and str(key) == "rows")
        and str(key) != "levels"  # they were chosen by what they keep under the old method
    }  # fmt: skip
    changes |= {
        ("release", str(key)): None for key in document if str(key) not in {"method", *kept_keys}
    }
    changes["release", "method"] = chosen
    for name, value in _USUAL[chosen].items():
        if name not in kept_keys:
            changes["release", name] = value
    return changes


def set_release_fields(file: SpecFile, form: Mapping[str, str]) -> Changes:
    """Set what a form says of the release; an empty field removes its entry.

    Entries that the form does not name stay. What cannot stand beside a new choice goes.
    """
    release = file.spec.release
    if release is None:
        raise IncrowdError("Choose a method first.")
    fields = type(release).model_fields
    changes: Changes = {}
    for name, text in form.items():
        if name in fields and name in _WHOLE | _NUMBERS | _WORDS:
            value = _parse_field(name, text.strip())
            if value != getattr(release, name):
                changes["release", name] = value
        elif name == "clamp" and name in fields:
            changes["release", name] = True if text == "yes" else None
        elif name == "subsets" and name in fields:
            changes["release", name] = _parse_subsets(text)
    if "size" in form or "size_public" in form:
        size = "public" if form.get("size_public") else _parse_field("size", form.get("size", ""))
        if size != file.spec.size:
            changes[("size",)] = size
    if isinstance(release, ClassesSpec) and ("release", "algorithm") in changes:
        algorithm = changes["release", "algorithm"] or "ola"
        for name, owner in _OF_ALGORITHM.items():
            if owner != algorithm:
                changes["release", name] = None
        if algorithm == "suppress":
            changes["release", "suppressed"] = None
        key = "aggregate" if algorithm == "suppress" else "linked"
        names = [name for name, column in file.spec.columns.items() if getattr(column, key)]
        changes |= {("columns", name, key): None for name in names}
    if changes.get(("release", "reading"), "") is None:  # k of fewer columns is of wildcards
        changes["release", "subsets"] = None
    if isinstance(release, KEpsilonSpec) and ("release", "noise") in changes:
        gaussian = changes["release", "noise"] == "gaussian"
        changes["release", "delta"] = (release.delta or 1e-6) if gaussian else None
    if changes.get(("release", "draw")) == "counts":
        changes |= {("release", name): None for name in ("beta", "keep")}
    return changes


def _parse_subsets(text: str) -> dict[int, int] | None:
    """Return the k of any so many columns, from a text such as `2: 20, 3: 10`."""
    ks: dict[int, int] = {}
    for part in re.split(r"[,;\n]", text):
        if not part.strip():
            continue
        columns, colon, k = (piece.strip() for piece in part.partition(":"))
        if not colon or not columns.isdecimal() or not k.isdecimal():
            raise IncrowdError(
                f"'{part.strip()}' is not a number of columns and its k. Write 2: 20 for a k of 20 "
                "in any two columns."
            )
        if int(columns) in ks:
            raise IncrowdError(f"Two k are given for {columns} columns. Give one.")
        ks[int(columns)] = int(k)
    return ks or None


def fix_scheme(file: SpecFile, levels: Sequence[int]) -> Changes:
    """Fix the scheme that is published: the level of every quasi column."""
    names = file.spec.columns_with_role("quasi")
    if len(names) != len(levels):
        raise IncrowdError("This scheme belongs to other columns. Reload the page.")
    return {("release", "levels"): dict(zip(names, levels, strict=True))}


def find_stale_levels(file: SpecFile) -> list[str]:
    """Return the columns whose fixed levels a release would refuse.

    Levels stay in a spec when the role or the hierarchy of a column changes; one that is not
    generalized any more, or has fewer levels now, cannot be published at them.
    """
    release = file.spec.release
    if release is None or not release.levels:
        return []
    roles = ("quasi",) if isinstance(release, ClassesSpec) else ("quasi", "sensitive")
    names = file.spec.columns_with_role(*roles)
    return [
        name for name, level in release.levels.items()
        if name not in names
        or max((level,) if isinstance(level, int) else level) >= count_levels(file, name)
    ]  # fmt: skip


def count_levels(file: SpecFile, name: str) -> float:
    """Return the number of levels of a column; infinite where its hierarchy cannot be built."""
    try:
        return ColumnHierarchies({name: file.spec.columns[name]}, file.folder).height(name)
    except IncrowdError:
        return math.inf


def choose_ledger(file: SpecFile, path: Path | None) -> Changes:
    """Name the ledger that counts releases by the spec, relative to it; None takes it out."""
    if path is None:
        return {("ledger",): None}
    return {("ledger",): Path(os.path.relpath(path, file.folder)).as_posix()}


def reopen_scheme() -> Changes:
    """Let the search choose the scheme again."""
    return {("release", "levels"): None}


def set_k_and_epsilon(k: str, epsilon: str) -> Changes:
    """Set a k and an epsilon that were picked together."""
    return {
        ("release", "k"): _parse_field("k", k),
        ("release", "epsilon"): _parse_field("epsilon", epsilon),
    }


def set_noisy_column(file: SpecFile, name: str, form: Mapping[str, str]) -> Changes:
    """Set the precision of a noisy column, and the bounds of its values.

    Whoever enters them has thereby confirmed them. A column that lists categories has neither.
    """
    if "values" in form:
        return _set_categories(file, name, form)
    low, high = form.get("low", "").strip(), form.get("high", "").strip()
    if bool(low) != bool(high):
        raise IncrowdError(f"Enter both bounds of '{name}': the smallest and the largest value.")
    bounds = (
        [
            _drop_empty_fraction(_parse_field("bound", low)),
            _drop_empty_fraction(_parse_field("bound", high)),
        ]
        if low
        else None
    )
    left = [
        entry for entry in file.spec.columns[name].confirm if entry not in ("precision", "bounds")
    ]
    return {
        ("columns", name, "precision"): _drop_empty_fraction(
            _parse_field("precision", form.get("precision", ""))
        ),
        ("columns", name, "bounds"): bounds,
        ("columns", name, "confirm"): left or None,
    }


def _set_categories(file: SpecFile, name: str, form: Mapping[str, str]) -> Changes:
    """Set the categories of a noisy column, which randomized response protects; none: numbers."""
    values = [line.strip() for line in form["values"].splitlines() if line.strip()]
    left = [
        entry for entry in file.spec.columns[name].confirm if entry not in ("precision", "bounds")
    ]
    changes: Changes = {
        ("columns", name, "values"): values or None,
        ("columns", name, "other"): (form.get("other", "").strip() or None) if values else None,
    }
    if values:
        changes |= {("columns", name, key): None for key in ("precision", "bounds")}
        changes["columns", name, "confirm"] = left or None
    return changes


def _drop_empty_fraction(value: Any) -> Any:
    """Return a number without a point where it has none."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _parse_field(name: str, text: str) -> Any:
    """Return what a field says; None if it is empty."""
    if not text:
        return None
    if name in _WORDS:
        return text
    try:
        number = float(normalize_number(text, is_count=name == "size" or name in _WHOLE))
    except ValueError:
        raise IncrowdError(f"'{name}' must be a number; got '{text}'.") from None
    if name in _WHOLE or name == "size":
        if number != number // 1:
            raise IncrowdError(f"'{name}' must be a whole number; got '{text}'.")
        return int(number)
    return number
