"""Rules that every synthetic row obeys, as a spec declares them, and the tables that they allow.

A rule is public: it is written into the spec before the table is read. It becomes a table of truth
values over the values of its columns (:func:`allow_cells`); a model gives no probability to a cell
that the rule forbids, so that no row breaks it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from incrowd.arrays import Bools, Floats
from incrowd.codes.hierarchy import Hierarchy
from incrowd.codes.values import canonicalize_value
from incrowd.errors import IncrowdError
from incrowd.spec.base import SpecModel, Text

if TYPE_CHECKING:
    from incrowd.spec.leaves import Leaves

MOST_CELLS = 1 << 24  # of one rule


class RuleError(IncrowdError):
    """A rule that names what there is not, or that no row can obey."""


def _list_labels(labels: Any) -> Any:
    """Take one value or a list of them, each as its canonical text; None is a missing value."""
    listed = list(labels) if isinstance(labels, list | tuple) else [labels]
    if any(isinstance(value, dict | list | tuple) for value in listed):
        return labels  # refused by the type
    return tuple(canonicalize_value(value) for value in listed)


_SCALAR = {"type": ["string", "number", "boolean", "null"]}
Labels = Annotated[
    tuple[str | None, ...],
    Field(min_length=1),
    BeforeValidator(_list_labels),
    WithJsonSchema({"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR, "minItems": 1}]}),
]
Condition = Annotated[dict[Text, Labels], Field(min_length=1)]


class Rule(SpecModel):
    """One rule, in one of four forms.

    ``if`` and ``then``: where every column of ``if`` has one of its values, every column of
    ``then`` has one of its own. ``never``: no row has all of these. ``order``: values that do not
    fall from one column to the next. ``sum`` and ``is``: numbers that add up to another column.
    A value is a value of the column, the label of a group of them, or null. A row with a missing
    value obeys every ``order`` and every ``sum``.
    """

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 2})

    condition: Condition | None = Field(default=None, alias="if")
    then: Condition | None = None
    never: Condition | None = None
    order: Annotated[tuple[Text, ...], Field(min_length=2)] | None = None
    sum: Annotated[tuple[Text, ...], Field(min_length=2, max_length=3)] | None = None
    total: Text | None = Field(default=None, alias="is")

    @model_validator(mode="after")
    def _one_form(self) -> Rule:
        names = {name for name in type(self).model_fields if getattr(self, name) is not None}
        if names not in ({"condition", "then"}, {"never"}, {"order"}, {"sum", "total"}):
            raise ValueError(
                "a rule is {if: ..., then: ...}, {never: ...}, {order: [a, b]} or "
                "{sum: [a, b], is: c}"
            )
        if len(set(self.names)) < len(self.names):
            raise ValueError("a rule names a column twice")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that the rule is about."""
        parts = (self.condition or {}, self.then or {}, self.never or {})
        listed = [name for part in parts for name in part]
        totals = [] if self.total is None else [self.total]
        return (*listed, *(self.order or ()), *(self.sum or ()), *totals)

    def describe(self) -> str:
        """Return the rule as a spec writes it, in one line."""
        return _write_flow(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """Return the rule as a spec and a certificate write it."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def expand_orders(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return the rules with every order as orders of two columns, those that follow among them.

    From a before b and b before c follows a before c: values of a and c that leave no room for b
    are forbidden as well, so that points can be drawn in every row.

    Raises:
        RuleError: if orders go round in a circle.

    """
    after: dict[str, set[str]] = {}
    for rule in rules:
        for at, name in enumerate(rule.order or ()):
            after.setdefault(name, set()).update((rule.order or ())[at + 1 :])
    for middle in after:
        for later in after.values():
            later |= after[middle] if middle in later else set()
    for name, later in after.items():
        if name in later:
            raise RuleError(
                f"The rules put the column '{name}' before itself. Remove one of the orders of "
                f"{_listed(sorted(later))}."
            )
    pairs = [
        Rule(order=(first, second)) for first in sorted(after) for second in sorted(after[first])
    ]
    return (*(rule for rule in rules if rule.order is None), *pairs)


def allow_cells(
    rule: Rule, hierarchies: Mapping[str, Hierarchy], leaves: Mapping[str, Leaves]
) -> Bools:
    """Return where a rule allows a row: an axis for each of its columns, along the codes.

    An order is one of two columns (:func:`expand_orders`).
    Codes are those of level 0: the values, then null, then what is outside the domain.

    Raises:
        RuleError: if the rule names an unknown value, is too large, or allows nothing.

    """
    sizes = [len(hierarchies[name].values) + 2 for name in rule.names]
    if math.prod(sizes) > MOST_CELLS:
        raise RuleError(
            f"The rule about {_listed(rule.names)} joins {math.prod(sizes):,} combinations of "
            f"values, more than {MOST_CELLS:,}. Declare coarser values for the column "
            f"'{max(rule.names, key=lambda name: len(hierarchies[name].values))}': months in place "
            "of days, or wider intervals; with 'values: drawn' rows show single ones all the same."
        )
    if rule.order is not None:
        first, second = rule.order
        _refuse_grids(rule.order, leaves)
        allowed = _allow_order(_ends(first, leaves[first]), _ends(second, leaves[second]))
    elif rule.sum is not None:
        allowed = _allow_sum([_single_numbers(name, leaves[name]) for name in rule.names])
    elif rule.never is not None:
        allowed = ~_all_match(rule, rule.never, hierarchies)
    else:
        assert rule.condition is not None
        assert rule.then is not None
        allowed = ~_all_match(rule, rule.condition, hierarchies) | _all_match(
            rule, rule.then, hierarchies
        )
    if not allowed.any():
        refuse_all_rows(rule)
    return allowed


def refuse_all_rows(rule: Rule) -> NoReturn:
    """Refuse a rule that allows no row."""
    raise RuleError(f"The rule about {_listed(rule.names)} allows no row. Remove or correct it.")


def _all_match(
    rule: Rule, condition: Mapping[str, Sequence[str | None]], hierarchies: Mapping[str, Hierarchy]
) -> Bools:
    """Return where every column of a condition has one of its values; the whole rule's shape."""
    shape = tuple(len(hierarchies[name].values) + 2 for name in rule.names)
    matches = np.ones(shape, dtype=bool)
    for name, labels in condition.items():
        axis = rule.names.index(name)
        codes = np.any([find_codes(name, hierarchies[name], label) for label in labels], axis=0)
        matches &= codes.reshape([-1 if at == axis else 1 for at in range(len(shape))])
    return matches


def find_codes(name: str, hierarchy: Hierarchy, label: str | None) -> Bools:
    """Return which codes of a column a value or a label stands for.

    A value counts first, then a label of the finest level that has it, then any number or date
    that lies in a leaf.
    """
    mask = np.zeros(len(hierarchy.values) + 2, dtype=bool)
    if label is None:
        mask[hierarchy.null] = True
        return mask
    for groups, labels in zip(hierarchy.groups, hierarchy.labels, strict=True):
        codes = [code for code, text in enumerate(labels) if text == label]
        if codes:
            return np.isin(groups, codes)
    code = hierarchy.encode_value(label)
    if code == hierarchy.outside:
        raise RuleError(
            f"A rule names '{label}', which is neither a value nor a group of the column '{name}'. "
            "Correct it, or add it to the hierarchy."
        )
    mask[code] = True
    return mask


def _refuse_grids(names: Sequence[str], leaves: Mapping[str, Leaves]) -> None:
    """Refuse an order of columns whose points cannot be compared one by one."""
    grids = {(leaves[name].kind, leaves[name].step) for name in names if leaves[name].kind}
    if len(grids) > 1:
        raise RuleError(
            f"A rule orders {_listed(names)}, whose values do not lie on one grid. Declare both as "
            "dates, or as intervals with the same 'precision'."
        )


def _ends(name: str, leaves: Leaves) -> tuple[Floats, Floats]:
    """Return the lowest and highest point of each value of a column that has an order."""
    if leaves.kind is None:
        raise RuleError(
            f"A rule orders the column '{name}', whose values are neither numbers nor dates. Use "
            "`never` for combinations that cannot occur."
        )
    step = 1.0 if leaves.kind == "date" else float(leaves.step)
    lows = [-np.inf if low is None else low * step for low in leaves.lows]
    highs = [np.inf if high is None else high * step for high in leaves.highs]
    return np.array(lows), np.array(highs)


def _allow_order(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> Bools:
    """Return where a point of the one can be drawn that is not above some point of the other."""
    lows, highs = first[0], second[1]
    allowed = np.ones((len(lows) + 2, len(highs) + 2), dtype=bool)
    allowed[:-2, :-2] = lows[:, None] <= highs[None, :]
    return allowed


def _single_numbers(name: str, leaves: Leaves) -> np.ndarray[Any, Any]:
    """Return the number of each value of a column whose values are single numbers."""
    if leaves.kind != "number" or leaves.has_spans:
        raise RuleError(
            f"A rule adds the column '{name}', whose values are not single numbers. Declare "
            "intervals with steps of one value."
        )
    return np.array([leaves.lows[at] for at in range(len(leaves))])


def _allow_sum(numbers: Sequence[np.ndarray[Any, Any]]) -> Bools:
    """Return where the numbers of all columns but the last add up to that of the last."""
    count = len(numbers)
    total: Any = 0
    for axis, values in enumerate(numbers):
        shape = [-1 if at == axis else 1 for at in range(count)]
        total = total + (values if axis < count - 1 else -values).reshape(shape)
    allowed = np.ones([len(values) + 2 for values in numbers], dtype=bool)
    allowed[tuple(slice(None, -2) for _ in numbers)] = total == 0
    return allowed


def _write_flow(value: Any) -> str:
    """Return plain values as YAML writes them in one line; a list of one value as that value."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_write_flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        listed = [_write_flow(part) for part in value]
        return listed[0] if len(listed) == 1 else "[" + ", ".join(listed) + "]"
    return "null" if value is None else str(value)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
