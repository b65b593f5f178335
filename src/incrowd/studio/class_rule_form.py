"""Rules on sensitive columns, and limits and weights of generalized ones, as forms state them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from incrowd.errors import IncrowdError
from incrowd.spec.file import SpecFile
from incrowd.studio.number_form import normalize_number
from incrowd.studio.spec_edits import Changes, count_levels


@dataclass(frozen=True)
class RuleField:
    """One number of a rule: where it stands in a spec, its symbol, and what it asks of a class."""

    entry: str
    key: str
    symbol: str
    meaning: str
    is_whole: bool = False

    @property
    def name(self) -> str:
        """The name of the field in a form."""
        return f"{self.entry}.{self.key}"


RULES = (
    RuleField("diversity", "distinct", "ℓ", "distinct values in every class, at least", True),
    RuleField("diversity", "entropy", "entropy ℓ", "effective number of values, at least"),
    RuleField("diversity", "alpha", "α", "largest share of one value, 0 to 1"),
    RuleField("closeness", "equal", "t", "distance from the table's shares, 0 to 1"),
    RuleField("closeness", "ordered", "t (ordered)", "distance along the order of values, 0 to 1"),
    RuleField("closeness", "hierarchical", "t (hierarchy)", "distance in the hierarchy, 0 to 1"),
    RuleField("likeness", "basic", "β", "relative gain of a value in a class, at most"),
    RuleField("disclosure", "every", "δ", "powers of 2 that a share may differ by, at most"),
)


def read_rules(file: SpecFile, name: str) -> dict[str, str]:
    """Return the numbers of a column's rules as one would type them, by the names of fields."""
    column = file.spec.columns[name]
    values = {}
    for rule in RULES:
        declared = getattr(column, rule.entry)
        number = getattr(declared, rule.key) if declared is not None else None
        values[rule.name] = "" if number is None else f"{number:g}"
    return values


def set_rules(file: SpecFile, name: str, form: Mapping[str, str]) -> Changes:
    """Set the rules of a sensitive column; an empty field removes its number.

    What a form has no field for, such as recursive diversity, stays.
    """
    column = file.spec.columns.get(name)
    if column is None or column.role != "sensitive":
        raise IncrowdError(f"The spec has no sensitive column '{name}'. Reload the page.")
    entries: dict[str, dict[str, Any]] = {}
    for rule in RULES:
        if rule.name not in form:
            continue
        if rule.entry not in entries:
            declared = getattr(column, rule.entry)
            entries[rule.entry] = {} if declared is None else declared.model_dump(exclude_none=True)
        number = _parse_number(rule.symbol, form[rule.name], is_whole=rule.is_whole)
        if number is None:
            entries[rule.entry].pop(rule.key, None)
        else:
            entries[rule.entry][rule.key] = number
    return {("columns", name, entry): numbers or None for entry, numbers in entries.items()}


def set_limits(file: SpecFile, form: Mapping[str, str]) -> Changes:
    """Set lowest and highest level, and the weight, of generalized columns.

    Fields are named ``low0``, ``high0`` and ``weight0`` by the place of the column among them; an
    empty limit is the finest or the coarsest level that there is.
    """
    changes: Changes = {}
    release = file.spec.release
    limits: dict[str, Any] = {
        name: level if isinstance(level, int) else list(level)
        for name, level in (release.levels if release is not None else {}).items()
    }
    for at, name in enumerate(file.spec.columns_with_role("quasi")):
        low, high = (
            _parse_number(f"level of {name}", form.get(f"{end}{at}", ""), is_whole=True)
            for end in ("low", "high")
        )
        if low is not None or high is not None:
            finest = 0 if low is None else low
            coarsest = int(count_levels(file, name)) - 1 if high is None else high
            if finest > coarsest:
                raise IncrowdError(f"Column '{name}': the finest level is above the coarsest one.")
            limits[name] = finest if finest == coarsest else [finest, coarsest]
        elif f"low{at}" in form:  # every level is allowed
            limits.pop(name, None)
        weight = _parse_number(f"weight of {name}", form.get(f"weight{at}", ""))
        if f"weight{at}" in form and (weight or 1) != file.spec.columns[name].weight:
            changes["columns", name, "weight"] = None if weight in (None, 1) else weight
    changes["release", "levels"] = limits or None
    return changes


def _parse_number(name: str, text: str, *, is_whole: bool = False) -> int | float | None:
    if not text.strip():
        return None
    try:
        number = float(normalize_number(text, is_count=is_whole))
    except ValueError:
        raise IncrowdError(f"'{name}' must be a number; got '{text}'.") from None
    if is_whole and not number.is_integer():
        raise IncrowdError(f"'{name}' must be a whole number; got '{text}'.")
    return int(number) if number.is_integer() else number
