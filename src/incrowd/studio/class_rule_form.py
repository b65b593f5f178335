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
    """One entry of a rule: where it stands in a spec, its symbol, and what it asks of a class.

    A ``key`` with a point is nested. ``usual`` is what a spec means that does not state it.
    """

    entry: str
    key: str
    symbol: str
    meaning: str
    is_whole: bool = False
    is_text: bool = False
    usual: float | None = None

    @property
    def name(self) -> str:
        """The name of the field in a form."""
        return f"{self.entry}.{self.key}"


@dataclass(frozen=True)
class RuleGroup:
    """Rules that ask the same kind of thing of a class."""

    title: str
    fields: tuple[RuleField, ...]

    def count_stated(self, values: Mapping[str, str]) -> int:
        """Count the fields that a column states, by what :func:`read_rules` returns."""
        return sum(bool(values[rule.name]) for rule in self.fields)


GROUPS = (
    RuleGroup("Variety in each class", (
        RuleField("diversity", "distinct", "ℓ", "distinct values, at least", True),
        RuleField("diversity", "entropy", "entropy ℓ", "effective number of values, at least"),
        RuleField("diversity", "alpha", "α", "largest share of one value, 0 to 1"),
        RuleField("diversity", "recursive.c", "recursive c",
                  "the most frequent value has fewer than c times the rows …"),
        RuleField("diversity", "recursive.l", "recursive ℓ",
                  "… of the ℓ-th most frequent and all rarer values", True),
    )),
    RuleGroup("Distance from the whole table", (
        RuleField("closeness", "equal", "t", "distance from the table's shares, 0 to 1"),
        RuleField("closeness", "ordered", "t (ordered)", "along the order of values, 0 to 1"),
        RuleField("closeness", "hierarchical", "t (hierarchy)", "along the hierarchy, 0 to 1"),
        RuleField("likeness", "basic", "β", "relative gain of a value, at most"),
        RuleField("likeness", "enhanced", "β (enhanced)", "the same, less for frequent values"),
        RuleField("disclosure", "every", "δ",
                  "powers of 2 that a share may differ by; each class has each value"),
        RuleField("disclosure", "present", "δ (present)",
                  "the same, for the values that a class has"),
    )),
    RuleGroup("Presence in a study (δ-presence)", (
        RuleField("presence", "value", "value of members",
                  "such as yes, in a table of the whole population", is_text=True),
        RuleField("presence", "least", "smallest share", "of this value in a class; empty: 0",
                  usual=0.0),
        RuleField("presence", "most", "largest share", "of this value in a class; empty: 1",
                  usual=1.0),
    )),
)  # fmt: skip
RULES = tuple(rule for group in GROUPS for rule in group.fields)
_RECURSIVE = "diversity.recursive.c", "diversity.recursive.l"
_SHARES = "presence.least", "presence.most"
AGGREGATES = {"": "its values", "mean": "the mean of each class", "median": "the class median"}


def read_rules(file: SpecFile, name: str) -> dict[str, str]:
    """Return the rules of a column as one would type them, by the names of fields."""
    column = file.spec.columns[name]
    values = {"aggregate": column.aggregate or "", "linked": column.linked or ""}
    for rule in RULES:
        value = getattr(column, rule.entry)
        for key in rule.key.split("."):
            value = getattr(value, key, None)
        if value is None or value == rule.usual:
            values[rule.name] = ""
        else:
            values[rule.name] = value if isinstance(value, str) else f"{value:.12g}"
    return values


def set_rules(file: SpecFile, name: str, form: Mapping[str, str]) -> Changes:
    """Set the rules of a sensitive column; an empty field removes its entry.

    What a form does not send stays.

    Raises:
        IncrowdError: The column is not sensitive, or a rule is stated in part.
    """
    column = file.spec.columns.get(name)
    if column is None or column.role != "sensitive":
        raise IncrowdError(f"The spec has no sensitive column '{name}'. Reload the page.")
    texts = read_rules(file, name) | {key: text.strip() for key, text in form.items()}
    _refuse_parts(name, texts)
    changes: Changes = {}
    for entry in dict.fromkeys(rule.entry for rule in RULES if rule.name in form):
        declared: dict[str, Any] = {}
        for rule in RULES:
            if rule.entry == entry and texts[rule.name]:
                *above, key = rule.key.split(".")
                place = declared.setdefault(above[0], {}) if above else declared
                place[key] = _parse_rule(rule, texts[rule.name])
        changes["columns", name, entry] = declared or None
    for key in ("aggregate", "linked"):
        if key in form:
            changes["columns", name, key] = texts[key] or None
    return changes


def _refuse_parts(name: str, texts: Mapping[str, str]) -> None:
    """Refuse entries that mean nothing without another one."""
    if len({bool(texts[key]) for key in _RECURSIVE}) > 1:
        raise IncrowdError(
            f"Recursive diversity of '{name}' needs both c and ℓ. Enter both, or neither."
        )
    has_share = any(texts[key] for key in _SHARES)
    if has_share and not texts["presence.value"]:
        raise IncrowdError(
            f"δ-presence of '{name}' needs the value of members, such as yes. Enter it, or remove "
            "the shares."
        )
    if texts["presence.value"] and not has_share:
        raise IncrowdError(
            f"δ-presence of '{name}' needs a smallest or a largest share. Enter one, or remove "
            "the value of members."
        )


def _parse_rule(rule: RuleField, text: str) -> str | int | float:
    if rule.is_text:
        return text
    number = _parse_number(rule.symbol, text, is_whole=rule.is_whole)
    assert number is not None
    return number


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
