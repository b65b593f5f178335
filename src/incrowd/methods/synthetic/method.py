"""Synthetic rows of a table: what is spent on them, how they are made, and what they promise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from incrowd.anonymize.synthetic.domain import Domain, RulesError
from incrowd.anonymize.synthetic.measurement import Measurement
from incrowd.anonymize.synthetic.synthesize import (
    check_request,
    measure_tables,
    plan_synthesis,
    synthesize,
)
from incrowd.arrays import Floats
from incrowd.codes.counted_table import CountedTable
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError, ParameterError
from incrowd.methods.base import (
    MakeContext,
    PlannedRelease,
    get_unit_fields,
    published_columns,
    refuse_unconfirmed,
)
from incrowd.methods.safe.remote_counts import RemoteCountedTable, count_local_or_remote
from incrowd.methods.synthetic.columns import SyntheticColumns, refuse_labels
from incrowd.methods.synthetic.product import make_part, make_product
from incrowd.methods.synthetic.references import read_references
from incrowd.methods.synthetic.tables import make_counter
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Event
from incrowd.release.certificate import CertifiedGuarantee
from incrowd.release.parameters import DIFFERENTIAL_PRIVACY, Parameters
from incrowd.release.product import MethodResult
from incrowd.release.synthetic_part import SyntheticPart
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import SpecFile
from incrowd.spec.leaves import Leaves, make_leaves
from incrowd.spec.model import Column, Spec
from incrowd.spec.release import SyntheticSpec
from incrowd.spec.row_rules import Rule
from incrowd.spec.value_format import ValueFormat

MOST_LEAVES = 1_000_000  # of all columns together


class Synthetic:
    """Measure small tables with noise, fit a model to them, draw rows from it.

    What is released is the measured tables; the model, the rows and everything else are computed
    from them (:mod:`incrowd.anonymize.synthetic.synthesize` has the claim and its proof). The
    events are planned from epsilon, delta, the number of columns and a stated size, before the
    table is read, and all of them are charged, whatever the table turns out to be.
    """

    def __init__(self, file: SpecFile) -> None:
        assert isinstance(file.spec.release, SyntheticSpec)
        self._file = file
        self._release = file.spec.release
        self._spec = file.spec
        refuse_unconfirmed(file)
        self.references = read_references(file)
        chosen = _modeled(file.spec)
        _refuse_open(chosen)
        self._declared = ColumnHierarchies(chosen, file.folder)
        self.columns = self._make_columns(chosen)
        _refuse_size(self.columns)
        self._refuse_unbounded()
        self._check_request()
        size = file.spec.size if isinstance(file.spec.size, int) else None  # never a counted one
        self.asserted: Parameters = {} if size is None else {"size": float(size)}
        self.plan = plan_synthesis(self.domain, epsilon=self._epsilon, delta=self._delta, size=size)
        self.events: list[Event] = list(self.plan.events)
        self.joint_guarantee: Guarantee | None = None
        self.promise = CertifiedGuarantee(
            kind=DIFFERENTIAL_PRIVACY,
            epsilon=self._epsilon,
            delta=self._delta,
            **get_unit_fields(file.spec),
        )

    @property
    def _epsilon(self) -> float:
        assert self._release.epsilon is not None
        return self._release.epsilon

    @property
    def _delta(self) -> float:
        assert self._release.delta is not None
        return self._release.delta

    def _make_columns(self, chosen: dict[str, Column]) -> SyntheticColumns:
        hierarchies = {name: self._declared.get_hierarchy(name, tuple) for name in chosen}
        others = {name: column.other for name, column in chosen.items() if column.other is not None}
        for name, hierarchy in hierarchies.items():
            refuse_labels(name, hierarchy, others.get(name))
        leaves = {
            name: make_leaves(name, column, hierarchies[name]) for name, column in chosen.items()
        }
        for name in self._release.named_columns:
            if name not in hierarchies:
                raise IncrowdError(
                    f"Column '{name}': `release` names it, but synthetic rows do not have it. Give "
                    "it the role `quasi` or `sensitive`."
                )
        return SyntheticColumns(
            hierarchies, leaves, others, self._release.rules, self._list_formats(chosen, leaves)
        )

    def _list_formats(
        self, chosen: dict[str, Column], leaves: dict[str, Leaves]
    ) -> dict[str, ValueFormat]:
        """Return how a CSV writes numbers and days; Parquet has types for them."""
        if self._release.format != "csv":
            return {}
        return {
            name: form
            for name, column in chosen.items()
            if column.written is not None and leaves[name].kind
            for form in [column.written.of_values]
            if form is not None
        }

    def _refuse_unbounded(self) -> None:
        for name, leaves in self.columns.leaves.items():
            if self._release.values == "drawn" and leaves.kind and not leaves.is_bounded:
                raise IncrowdError(
                    f"Column '{name}': no number can be drawn from an interval without an end. "
                    "Remove `open` from its intervals, or use `values: labels`."
                )

    def _check_request(self) -> None:
        """Refuse rules that contradict each other and tables that no model can hold."""
        places = [self.columns.list_places(part) for part in self._release.tables]
        target = self._release.target
        try:
            check_request(
                self.columns.domain, places, None if target is None else self._target_place
            )
        except RulesError as error:
            rules = "; ".join(rule.describe() for rule in self._find_refused_rules())
            raise IncrowdError(f"{error} The rules are: {rules}.") from error
        except ParameterError as error:
            listed = "; ".join(", ".join(part) for part in self._release.tables)
            raise IncrowdError(
                f"Spec: one model cannot hold all of `tables` ({listed}). Remove some, or declare "
                "coarser values."
            ) from error

    def _find_refused_rules(self) -> list[Rule]:
        """Return rules that are refused together, and without any one of which the rest is not."""
        refused = list(self._release.rules)
        for rule in self._release.rules:
            fewer = [other for other in refused if other is not rule]
            try:
                check_request(replace(self.columns, rules=tuple(fewer)).domain, (), None)
            except RulesError:
                refused = fewer
        return refused

    @property
    def _target_place(self) -> int | None:
        target = self._release.target
        return None if target is None else self.columns.names.index(target)

    @property
    def part(self) -> SyntheticPart:
        """What the certificate will say of the rows, but for what is measured."""
        return make_part(self.columns, self._spec, self.references)

    @property
    def domain(self) -> Domain:
        """The columns as the model sees them."""
        return self.columns.domain

    @property
    def planned_release(self) -> PlannedRelease:
        """Nothing is suppressed: every column is shown at its finest values."""

        def likely(rows: Floats) -> Floats:
            return np.ones(np.shape(rows))

        limits = dict.fromkeys(self.columns.names, (0, 0))
        return PlannedRelease(self._declared, (limits,), likely, 1.0)

    def count(self, table: Table, *, by_row: bool = False) -> CountedTable | RemoteCountedTable:  # noqa: ARG002
        """Return the distinct tuples of all columns; where they are, if they are too many."""
        return count_local_or_remote(table, self._declared)

    def measure(self, table: CountedTable, context: MakeContext) -> list[Measurement]:
        """All measurements of a release, without its model and rows, which follow from them."""
        released = measure_tables(
            self.domain,
            make_counter(table, self.columns),
            self.plan,
            bits=context.bits,
            tables=[self.columns.list_places(part) for part in self._release.tables],
            target=self._target_place,
        )
        return released.measurements

    def make(self, table: CountedTable | RemoteCountedTable, context: MakeContext) -> MethodResult:
        """Measure, choose, fit, draw."""
        context.step("synthesize")
        synthesis = synthesize(
            self.domain,
            make_counter(table, self.columns),
            self.plan,
            bits=context.bits,
            tables=[self.columns.list_places(part) for part in self._release.tables],
            target=self._target_place,
        )
        context.step("draw")
        original = table if isinstance(table, CountedTable) else table.collect_sample()
        product, extra = make_product(
            self.columns, synthesis, original, self._spec, context, self.references
        )
        parameters = {**product.parameters, **self.asserted}
        product = replace(product, file=self._file, parameters=parameters)
        return MethodResult((product,), self.promise, self.events, original, synthetic=extra)


def _modeled(spec: Spec) -> dict[str, Column]:
    """Return the columns that rows are drawn for; or the reason why not."""
    published_columns(spec, "quasi", "sensitive", "key")
    columns = published_columns(spec, "quasi", "sensitive")
    for name, column in columns.items():
        if column.hierarchy is None:
            raise IncrowdError(
                f"Column '{name}': it has no hierarchy, and synthetic rows need the values of each "
                "column. List them (`hierarchy: {flat: {values: [a, b]}}`), or drop the column."
            )
        if column.has_class_rules:
            raise IncrowdError(
                f"Column '{name}': rules on classes are for k-anonymity. Remove them; "
                "differential privacy protects every column."
            )
    if not columns:
        raise IncrowdError("Spec: no column is published. Give some the role `quasi`.")
    return columns


def _refuse_open(columns: dict[str, Column]) -> None:
    """Refuse columns whose values nobody has listed: a model needs all of them beforehand."""
    for name, column in columns.items():
        if column.hierarchy is not None and column.hierarchy.declaration.open_height is not None:
            raise IncrowdError(
                f"Column '{name}': its domain is open, and values read from the table would reveal "
                "who is in it. List them (`flat: {values: [...]}`, or `csv: FILE` with groups), or "
                "drop the column."
            )


def _refuse_size(columns: SyntheticColumns) -> None:
    values = {name: len(hierarchy.values) for name, hierarchy in columns.hierarchies.items()}
    if sum(values.values()) > MOST_LEAVES:
        largest = max(values, key=lambda name: values[name])
        raise IncrowdError(
            f"Spec: its columns have {sum(values.values()):,} values together, and a model holds "
            f"{MOST_LEAVES:,}. Declare coarser values: '{largest}' has {values[largest]:,}."
        )
