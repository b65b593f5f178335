"""Tables of counts that add up: what is spent on them, how they are made, and what they promise."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from incrowd.anonymize.tables.measure import measure_residuals
from incrowd.anonymize.tables.plan import TablesPlan, plan_tables
from incrowd.anonymize.tables.whole import make_whole
from incrowd.arrays import Floats
from incrowd.codes.counted_table import CountedTable
from incrowd.engine.table import Table
from incrowd.engine.workbook import require_workbooks
from incrowd.errors import IncrowdError
from incrowd.methods.base import (
    MakeContext,
    PlannedRelease,
    get_unit_fields,
    published_columns,
    refuse_unconfirmed,
)
from incrowd.methods.safe.remote_counts import RemoteCountedTable
from incrowd.methods.tables.count import make_cell_counter
from incrowd.methods.tables.product import TabulationContext, make_part, make_product
from incrowd.methods.tables.request import (
    TablesRequest,
    list_table_columns,
    make_request,
    refuse_undeclared,
)
from incrowd.methods.tables.summed import count_with_sums
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Event, GaussianMeasurements
from incrowd.privacy.information import plan_information
from incrowd.release.certificate import CertifiedGuarantee
from incrowd.release.parameters import DIFFERENTIAL_PRIVACY
from incrowd.release.product import MethodResult, TrueCounts
from incrowd.release.tables_part import TabulationPart
from incrowd.release.tables_sdmx import require_sdmx
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.file import SpecFile
from incrowd.spec.model import Spec
from incrowd.spec.release import TablesSpec


class Tables:
    """Measure differences with noise, and estimate every cell of the declared tables from them.

    What is measured, and with which variance, follows from the spec; the claim and its proof stand
    in :mod:`incrowd.anonymize.tables.plan`. Everything published is computed from the measured
    numbers.
    """

    def __init__(self, file: SpecFile) -> None:
        assert isinstance(file.spec.release, TablesSpec)
        refuse_unconfirmed(file)
        self._spec: Spec = file.spec
        self.release = file.spec.release
        publishable = published_columns(file.spec, "quasi", "sensitive")
        names = list_table_columns(file.spec, tuple(publishable))
        chosen = {name: publishable[name] for name in names}
        refuse_undeclared(chosen)
        self._declared = ColumnHierarchies(chosen, file.folder)
        self.request: TablesRequest = make_request(file.spec, self._declared)
        if "xlsx" in self.release.exports:
            require_workbooks()
        if "sdmx" in self.release.exports:
            require_sdmx()
        assert self.release.epsilon is not None
        assert self.release.delta is not None
        self.information = plan_information(
            epsilon=self.release.epsilon, delta=self.release.delta, choices=0
        ).information
        self.events: list[Event] = [GaussianMeasurements(self.information)]
        self.joint_guarantee: Guarantee | None = None
        self.promise = CertifiedGuarantee(
            kind=DIFFERENTIAL_PRIVACY,
            epsilon=self.release.epsilon,
            delta=self.release.delta,
            **get_unit_fields(file.spec),
        )

    @cached_property
    def plan(self) -> TablesPlan:
        """What is measured with which part of the information."""
        return make_plan(self.request, self.release, self.information)

    @property
    def part(self) -> TabulationPart:
        """What the certificate will say of the tables, but for the hashes of files."""
        return make_part(self.request, self.plan, self.release)

    @property
    def planned_release(self) -> PlannedRelease:
        """Nothing is suppressed: every cell has a count."""

        def likely(rows: Floats) -> Floats:
            return np.ones(np.shape(rows))

        limits = dict.fromkeys(self.request.names, (0, 0))
        return PlannedRelease(self._declared, (limits,), likely, 1.0)

    def count(self, table: Table, *, by_row: bool = False) -> CountedTable | RemoteCountedTable:  # noqa: ARG002
        """Return the distinct tuples of all columns; where they are, if they are too many."""
        return count_with_sums(table, self._declared, self.request.sums)

    def make_counter(self, table: CountedTable | RemoteCountedTable) -> TrueCounts:
        """Return what counts the cells of the private table, exactly."""
        return make_cell_counter(table, self.request.columns)

    def make(self, table: CountedTable | RemoteCountedTable, context: MakeContext) -> MethodResult:
        """Measure, estimate, make whole."""
        context.step("tabulate")
        counter, plan = self.make_counter(table), self.plan
        measured = measure_residuals(counter, plan, context.bits)
        context.step("draw")
        whole_tables = make_whole(plan, measured)
        tabulation = TabulationContext(self.request, plan, self.release, whole_tables, measured)
        product = make_product(tabulation, self._spec, context)
        original = table if isinstance(table, CountedTable) else table.collect_sample()
        return MethodResult(
            (), self.promise, self.events, original, tabulation=product,
            true_counts=counter,
        )  # fmt: skip


def make_plan(request: TablesRequest, release: TablesSpec, information: float) -> TablesPlan:
    """Return the plan of some tables: with totals, their errors count as well."""
    workload = request.workload_with_totals if release.totals else request.workload
    return plan_tables(workload, information, release.objective or "sum")


def require_tables(method: object) -> Tables:
    """Return a method of tables; refuse any other."""
    if not isinstance(method, Tables):
        raise IncrowdError("Spec: its method is not `tables`. Name a spec with `method: tables`.")
    return method
