"""The columns of synthetic rows: from a spec, or from a certificate, to the domain of a model.

Everything here follows from declarations. Null is a value of every column. A value outside the
declared domain counts as the label ``other`` where the column declares one, and as null elsewhere,
so that a column of numbers stays one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from incrowd.anonymize.synthetic.domain import Columns as Places
from incrowd.anonymize.synthetic.domain import Domain, column_of
from incrowd.anonymize.synthetic.domain import ModelColumn as ModelColumn
from incrowd.anonymize.synthetic.model import Model
from incrowd.arrays import Bools, Codes, Floats
from incrowd.arrays import Places as Positions
from incrowd.codes.hierarchy import Hierarchy
from incrowd.errors import IncrowdError
from incrowd.methods.synthetic.orders import (
    Order,
    allow_orders,
    choose_order_levels,
    find_spans,
    obey_orders,
)
from incrowd.release.value_column import ValueColumn
from incrowd.spec.leaves import Leaves
from incrowd.spec.row_rules import Rule, allow_cells, expand_orders, refuse_all_rows
from incrowd.spec.value_format import ValueFormat


@dataclass(frozen=True, eq=False)
class SyntheticColumns:
    """The columns of a model, by name, and the rules that every row obeys.

    ``others`` are the labels for values outside the domain, by column that has one; ``formats``
    say how numbers and days are written, by column where that is not the usual way.
    """

    hierarchies: Mapping[str, Hierarchy]
    leaves: Mapping[str, Leaves]
    others: Mapping[str, str]
    rules: tuple[Rule, ...] = ()
    formats: Mapping[str, ValueFormat] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the model."""
        return tuple(self.hierarchies)

    @cached_property
    def domain(self) -> Domain:
        """The columns as a model sees them, and the rules as tables of what is allowed."""
        return Domain(self._model_columns, self._allowed)

    @cached_property
    def _model_columns(self) -> tuple[ModelColumn, ...]:
        return tuple(
            column_of(hierarchy, null=True, outside=name in self.others)
            for name, hierarchy in self.hierarchies.items()
        )

    @property
    def _allowed(self) -> dict[Places, Bools]:
        """What the rules allow: orders of very many values by groups of them."""
        if not self.has_loose_orders:
            return self._allow(expand_orders(self.rules))
        orders = allow_orders(
            self._model_columns, self._other_rules, self.orders, self.spans, self.order_levels
        )
        return {**self._other_rules, **orders}

    @cached_property
    def _other_rules(self) -> dict[Places, Bools]:
        """What the rules allow that are no orders."""
        return self._allow([rule for rule in self.rules if rule.order is None])

    def _allow(self, rules: Sequence[Rule]) -> dict[Places, Bools]:
        """Return what rules allow, all those about the same columns as one."""
        allowed_tuples: dict[Places, Bools] = {}
        for rule in rules:
            allowed = allow_cells(rule, self.hierarchies, self.leaves)
            places = [self.names.index(name) for name in rule.names]
            columns = tuple(sorted(places))
            allowed = np.transpose(allowed, [places.index(place) for place in columns])
            for axis, place in enumerate(columns):
                allowed = np.take(allowed, self._model_columns[place].codes, axis=axis)
            if not allowed.any():  # but values outside the domain, which are none here
                refuse_all_rows(rule)
            allowed_tuples[columns] = (
                allowed_tuples[columns] & allowed if columns in allowed_tuples else allowed
            )
        return allowed_tuples

    @cached_property
    def orders(self) -> tuple[Order, ...]:
        """The places of columns that rules order, two by two, those that follow among them."""
        pairs = [rule.order for rule in expand_orders(self.rules) if rule.order is not None]
        return tuple((self.names.index(pair[0]), self.names.index(pair[1])) for pair in pairs)

    @cached_property
    def spans(self) -> dict[int, tuple[Floats, Floats]]:
        """Of each column that rules order, by its place, the ends of its leaves."""
        return {
            place: find_spans(self._model_columns[place], self.leaves[self.names[place]])
            for place in sorted({place for pair in self.orders for place in pair})
        }

    @cached_property
    def order_levels(self) -> dict[int, int]:
        """The level at which the model obeys the orders of each column that has some."""
        for rule in expand_orders(self.rules):
            if rule.order is not None:
                allow_cells(rule, self.hierarchies, self.leaves)  # or the reason why not
        return choose_order_levels(self._model_columns, self._other_rules, self.orders, self.spans)

    @property
    def has_loose_orders(self) -> bool:
        """Whether values have to be drawn again so that rows obey the orders."""
        return any(self.order_levels.values())

    def obey_orders(self, model: Model, codes: Codes, rng: np.random.Generator) -> Codes:
        """Return rows that obey every order; as they are, where the model obeys all of them."""
        if not self.has_loose_orders:
            return codes
        positions = self.domain.encode(codes)
        return self.domain.decode(
            obey_orders(model, self.orders, self.spans, self.order_levels, positions, rng)
        )

    def settle_codes(self, codes: Codes) -> Codes:
        """Return codes of level 0 with what is outside a domain as ``other``, or as null."""
        settled = codes.copy()
        for at, name in enumerate(self.names):
            if name not in self.others:
                hierarchy = self.hierarchies[name]
                settled[codes[:, at] == hierarchy.outside, at] = hierarchy.null
        return settled

    @cached_property
    def value_columns(self) -> dict[str, ValueColumn]:
        """The columns as certificates and files of measured tables have them."""
        return {
            name: ValueColumn(
                name, hierarchy, self.leaves[name], self.others.get(name), self.formats.get(name)
            )
            for name, hierarchy in self.hierarchies.items()
        }

    def order_groups(self, place: int, level: int) -> Positions:
        """Return the groups of the model, at one of its levels, in their declared order."""
        model_column = self._model_columns[place]
        hierarchy = self.hierarchies[self.names[place]]
        codes = hierarchy.groups[model_column.level_numbers[level]][
            model_column.codes[model_column.starts[level]]
        ]
        return np.argsort(codes, kind="stable")

    def list_places(self, names: Sequence[str]) -> Places:
        """Return the places of some columns in the model."""
        return tuple(self.names.index(name) for name in names)


def refuse_labels(name: str, hierarchy: Hierarchy, other: str | None) -> None:
    """Refuse a label for values outside the domain that is itself a value.

    Recipients, and whoever verifies the release, could not tell the two apart.
    """
    if other is not None and other in hierarchy.values:
        raise IncrowdError(
            f"Column '{name}': its label for other values, '{other}', is also a value of the "
            "domain. Choose another label for `other`."
        )
