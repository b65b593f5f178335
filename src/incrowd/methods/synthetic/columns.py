"""The columns of synthetic rows: from a spec, or from a certificate, to the domain of a model.

Everything here follows from declarations. Null is a value of every column. A value outside the
declared domain counts as the label ``other`` where the column declares one, and as null elsewhere,
so that a column of numbers stays one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from incrowd.anonymize.synthetic.domain import Columns as Places
from incrowd.anonymize.synthetic.domain import Domain, column_of
from incrowd.anonymize.synthetic.domain import ModelColumn as ModelColumn
from incrowd.arrays import Bools, Codes
from incrowd.arrays import Places as Positions
from incrowd.codes.hierarchy import Hierarchy
from incrowd.errors import IncrowdError
from incrowd.release.value_column import ValueColumn
from incrowd.spec.leaves import Leaves
from incrowd.spec.row_rules import Rule, allow_cells, expand_orders


@dataclass(frozen=True, eq=False)
class SyntheticColumns:
    """The columns of a model, by name, and the rules that every row obeys.

    ``others`` are the labels for values outside the domain, by column that has one.
    """

    hierarchies: Mapping[str, Hierarchy]
    leaves: Mapping[str, Leaves]
    others: Mapping[str, str]
    rules: tuple[Rule, ...] = ()

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

    @cached_property
    def _allowed(self) -> dict[Places, Bools]:
        """What the rules allow, all those about the same columns as one."""
        result: dict[Places, Bools] = {}
        for rule in expand_orders(self.rules):
            allowed = allow_cells(rule, self.hierarchies, self.leaves)
            places = [self.names.index(name) for name in rule.names]
            columns = tuple(sorted(places))
            allowed = np.transpose(allowed, [places.index(place) for place in columns])
            for axis, place in enumerate(columns):
                allowed = np.take(allowed, self._model_columns[place].codes, axis=axis)
            result[columns] = result[columns] & allowed if columns in result else allowed
        return result

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
            name: ValueColumn(name, hierarchy, self.leaves[name], self.others.get(name))
            for name, hierarchy in self.hierarchies.items()
        }

    def order_groups(self, place: int, level: int) -> Positions:
        """Return the groups of the model, at one of its levels, in their declared order."""
        own = self._model_columns[place]
        hierarchy = self.hierarchies[self.names[place]]
        codes = hierarchy.groups[own.level_numbers[level]][own.codes[own.starts[level]]]
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
            f"The column '{name}' shows values outside its domain as '{other}', which is also a "
            "value of the domain. Choose another label for 'other'."
        )
