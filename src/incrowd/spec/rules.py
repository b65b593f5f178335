"""Rules that every synthetic row obeys, as a spec declares them, and the tables that they allow.

A rule is public: it is written into the spec before the table is read. It becomes a table of truth
values over the values of its columns (:func:`allow_cells`); a model gives no probability to a cell
that the rule forbids, so that no row breaks it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from incrowd.arrays import Bools
from incrowd.codes.hierarchy import Hierarchy
from incrowd.codes.values import canonical
from incrowd.errors import IncrowdError
from incrowd.spec.base import Model, Text

if TYPE_CHECKING:
    from incrowd.spec.leaves import Leaves

MOST_CELLS = 1 << 24  # of one rule


class RuleError(IncrowdError):
    """A rule that names what there is not, or that no row can obey."""


def _list_labels(given: Any) -> Any:
    """Take one value or a list of them, each as its canonical text; None is a missing value."""
    listed = list(given) if isinstance(given, list | tuple) else [given]
    if any(isinstance(value, dict | list | tuple) for value in listed):
        return given  # refused by the type
    return tuple(canonical(value) for value in listed)


Labels = Annotated[tuple[str | None, ...], Field(min_length=1), BeforeValidator(_list_labels)]
Condition = Annotated[dict[Text, Labels], Field(min_length=1)]


class Rule(Model):
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
    order: Annotated[tuple[Text, ...], Field(min_length=2, max_length=4)] | None = None
    sum: Annotated[tuple[Text, ...], Field(min_length=2, max_length=3)] | None = None
    total: Text | None = Field(default=None, alias="is")

    @model_validator(mode="after")
    def _one_form(self) -> Rule:
        given = {name for name in type(self).model_fields if getattr(self, name) is not None}
        if given not in ({"condition", "then"}, {"never"}, {"order"}, {"sum", "total"}):
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

    def as_dict(self) -> dict[str, Any]:
        """Return the rule as a spec and a certificate write it."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def allow_cells(
    rule: Rule, hierarchies: Mapping[str, Hierarchy], leaves: Mapping[str, Leaves]
) -> Bools:
    """Return where a rule allows a row: an axis for each of its columns, along the codes.

    Codes are those of level 0: the values, then null, then what is outside the domain.

    Raises:
        RuleError: if the rule names an unknown value, is too large, or allows nothing.

    """
    sizes = [len(hierarchies[name].values) + 2 for name in rule.names]
    if math.prod(sizes) > MOST_CELLS:
        raise RuleError(
            f"The rule about {_listed(rule.names)} joins {math.prod(sizes):,} combinations of "
            f"values, more than {MOST_CELLS:,}. Declare coarser values for one of the columns."
        )
    if rule.order is not None:
        allowed = _allow_order([_spans(name, leaves[name]) for name in rule.order])
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
        raise RuleError(f"The rule about {_listed(rule.names)} allows no row.")
    return allowed


def _all_match(
    rule: Rule, condition: Mapping[str, Sequence[str | None]], hierarchies: Mapping[str, Hierarchy]
) -> Bools:
    """Return where every column of a condition has one of its values; the whole rule's shape."""
    shape = tuple(len(hierarchies[name].values) + 2 for name in rule.names)
    found = np.ones(shape, dtype=bool)
    for name, labels in condition.items():
        axis = rule.names.index(name)
        codes = np.any([find_codes(name, hierarchies[name], label) for label in labels], axis=0)
        found &= codes.reshape([-1 if at == axis else 1 for at in range(len(shape))])
    return found


def find_codes(name: str, hierarchy: Hierarchy, label: str | None) -> Bools:
    """Return which codes of a column a value or a label stands for.

    A value counts first, then a label of the finest level that has it, then any number or date
    that lies in a leaf.
    """
    found = np.zeros(len(hierarchy.values) + 2, dtype=bool)
    if label is None:
        found[hierarchy.null] = True
        return found
    for groups, labels in zip(hierarchy.groups, hierarchy.labels, strict=True):
        codes = [code for code, text in enumerate(labels) if text == label]
        if codes:
            return np.isin(groups, codes)
    code = hierarchy.code(label)
    if code == hierarchy.outside:
        raise RuleError(
            f"A rule names '{label}', which is neither a value nor a group of the column '{name}'. "
            "Correct it, or add it to the hierarchy."
        )
    found[code] = True
    return found


def _spans(name: str, leaves: Leaves) -> np.ndarray[Any, Any]:
    """Return the lowest and highest point of each value of a column that has an order."""
    if leaves.kind is None:
        raise RuleError(
            f"A rule orders the column '{name}', whose values are neither numbers nor dates. Use "
            "`never` for combinations that cannot occur."
        )
    return np.array([[leaves.lows[at], leaves.highs[at]] for at in range(len(leaves))])


def _allow_order(spans: Sequence[np.ndarray[Any, Any]]) -> Bools:
    """Return where points can be drawn, one from each column, that do not fall.

    They can if no column's lowest point lies above the highest point of a later column: the first
    takes its lowest, and each further one the largest of the lowest points so far.
    """
    number = len(spans)
    allowed = np.ones([len(span) + 2 for span in spans], dtype=bool)
    for first in range(number):
        for second in range(first + 1, number):
            lows, highs = spans[first][:, 0], spans[second][:, 1]
            pair = np.ones((len(lows) + 2, len(highs) + 2), dtype=bool)
            pair[:-2, :-2] = lows[:, None] <= highs[None, :]
            shape = [1] * number
            shape[first], shape[second] = pair.shape
            allowed &= pair.reshape(shape)
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


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
