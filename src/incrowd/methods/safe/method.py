"""A safe release: one table or several, what is spent on it, and what it promises."""

from __future__ import annotations

import math
from dataclasses import replace

from incrowd.codes.counted_table import CountedTable
from incrowd.codes.person_sets import PeopleTable
from incrowd.engine.count import count_people
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.methods.base import (
    MakeContext,
    PlannedRelease,
    WholeHouseholds,
    get_unit_fields,
    published_columns,
    refuse_unconfirmed,
)
from incrowd.methods.people import refuse_many_people
from incrowd.methods.safe.auto import choose_draw, choose_scheme, depends_on_size
from incrowd.methods.safe.budget import (
    split_counts_budget,
    split_fixed_budget,
    split_search_budget,
    split_single_release,
)
from incrowd.methods.safe.draw import list_draws
from incrowd.methods.safe.households import HouseholdProducts
from incrowd.methods.safe.remote_counts import RemoteCountedTable, count_local_or_remote
from incrowd.methods.safe.scheme import MondrianScheme
from incrowd.methods.safe.series import find_noisier_totals
from incrowd.methods.safe.shares import ShareCounter
from incrowd.methods.safe.slices import Slicer
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Coin
from incrowd.privacy.presentation import read_as_decimal
from incrowd.privacy.split import BudgetSplit
from incrowd.privacy.split_series import split_for_series
from incrowd.release.certificate import CertifiedGuarantee
from incrowd.release.layout import PEOPLE_PER_HOUSEHOLD, Layout
from incrowd.release.parameters import BOTH, DIFFERENTIAL_PRIVACY
from incrowd.release.product import MethodResult, Parameters
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.dependency import ColumnDependencies
from incrowd.spec.file import SpecFile
from incrowd.spec.model import Column, PersonId, Spec
from incrowd.spec.release import SafeSpec

SLICES_SHARE = 0.05


class Safe:
    """Generalize by a scheme that depends on no single person, draw, drop what is rare."""

    def __init__(self, file: SpecFile) -> None:
        refuse_unconfirmed(file)
        columns = _list_published_columns(file.spec)
        assert isinstance(file.spec.release, SafeSpec)
        unit = file.spec.unit
        self._person = unit if isinstance(unit, PersonId) and unit.rows > 1 else None
        household = file.spec.household
        self._is_linked = household is not None and household.linked
        if file.spec.release.series is not None and file.spec.part is None:
            raise IncrowdError(
                "Spec: `series` needs a unit within one period. Add `period` to `unit: {id: "
                "COLUMN}`, and `part`."
            )
        self._release, draw_reasons = choose_draw(file.spec.release, self._rows, self._per_group)
        self._declared = ColumnHierarchies(columns, file.folder)
        _refuse_target(self._release.target, self._declared.names)
        self._slicing = Slicer(
            self._release.slices,
            self._declared.names,
            ColumnDependencies.from_columns(file.spec.columns),
        )
        self._households = (
            None
            if household is None
            else HouseholdProducts(household, self._release, self._declared)
        )
        size = file.spec.size if isinstance(file.spec.size, int) else None  # never a counted one
        people = self._get_effective_size(size)
        self._counter = ShareCounter(self._release, self._declared, people)
        self._scheme, scheme_reasons = choose_scheme(self._release, self._declared, people)
        self.asserted = self._assert_size(size)
        if self._person is not None and self._is_linked:
            self.asserted[PEOPLE_PER_HOUSEHOLD] = float(self._person.rows)
        self._reasons = (*scheme_reasons, *draw_reasons)
        if self._households is not None:
            self._households.refuse_scheme(self._scheme)
            self._reasons += (self._households.reason,)
        self._split = self._split_budget()
        self.notes = find_noisier_totals(self._split)
        self.joint_guarantee: Guarantee | None = None
        if self._release.releases is not None:
            self._split, self.joint_guarantee = split_single_release(
                self._split, self._release.releases
            )
        self.events = self._split.events
        self.promise = CertifiedGuarantee(
            kind=BOTH if self._release.draw == "counts" else DIFFERENTIAL_PRIVACY,
            epsilon=self._split.epsilon,
            delta=self._split.delta,
            **get_unit_fields(file.spec),
        )

    @property
    def _rows(self) -> int:
        """The largest number of rows of one person, in cells of their own.

        A household that is published whole, with its people, is in one cell.
        """
        return 1 if self._person is None or self._is_linked else self._person.rows

    @property
    def _per_group(self) -> int:
        """The largest number of these rows that count in one group."""
        return 1 if self._person is None else self._person.per_group

    @property
    def _counted_per_group(self) -> int:
        """The same while tuples are counted: of a whole household all people are needed."""
        return self._person.rows if self._person and self._is_linked else self._per_group

    @property
    def layout(self) -> Layout | None:
        """What several tables are, if they are no slices."""
        return None if self._households is None else self._households.layout

    @property
    def _beside(self) -> int:
        """The number of tables beside that of people."""
        return 0 if self._households is None or self._is_linked else 1

    def _get_effective_size(self, size: int | None) -> int | None:
        """Return the size of a table with one row per person in which a choice is as noisy."""
        return None if size is None else math.ceil(size / self._rows)

    def _assert_size(self, size: int | None) -> Parameters:
        """Return the stated size as a parameter of the certificate, if it may have decided others.

        Only an integer in the spec moves the split of epsilon or the schemes. It is public by the
        curator's word, as the hierarchies are, so the split depends on no table.
        """
        if size is None or not depends_on_size(self._release, self._declared):
            return {}
        return {"size": float(size)}

    def _split_budget(self) -> BudgetSplit:
        """Return what is spent, on all tables of all planned releases together.

        Choices of many tables, or many choices, compose better than they add up; so each may
        spend more than its part.
        """
        release, releases = self._release, self._release.releases or 1
        if release.series is not None:
            assert release.epsilon is not None
            assert release.delta is not None
            return split_for_series(
                epsilon=release.epsilon, delta=release.delta, of=release.series.of, rows=self._rows
            )
        tables, steps = releases * self._slicing.tables, releases * self._slicing.choices
        epsilon = release.epsilon or 0.0
        measured = self._counter.list_epsilons(epsilon, releases)
        choice_epsilons = [SLICES_SHARE * epsilon / math.sqrt(steps)] * steps if steps else []
        shares = self._scheme.selection_shares()
        if not shares and release.draw == "counts":
            return split_counts_budget(
                release, choices=choice_epsilons, tables=tables, rows=self._rows,
                per_group=self._per_group, beside=self._beside, measured=measured,
            )  # fmt: skip
        if not shares:
            return split_fixed_budget(
                release, choices=choice_epsilons, tables=tables, measured=measured
            )
        selection_epsilons = [share * epsilon / math.sqrt(tables) for share in shares]
        if release.search_epsilon is not None:
            selection_epsilons = [release.search_epsilon / len(selection_epsilons)] * len(
                selection_epsilons
            )
        if release.draw == "counts":
            return split_counts_budget(
                release, selections=selection_epsilons, choices=choice_epsilons, tables=tables,
                rows=self._rows, per_group=self._per_group, beside=self._beside,
                measured=measured,
            )  # fmt: skip
        return split_search_budget(
            release, selections=selection_epsilons, choices=choice_epsilons, tables=tables,
            measured=measured,
        )  # fmt: skip

    @property
    def planned_release(self) -> PlannedRelease:
        """Of two bounds that a coin decides between, the larger; else the smallest crowds.

        Nobody chooses how a coin falls, so what is said holds either way. Where a search chooses
        how to draw, it can take what shows the smallest crowds.
        """
        choose = max if isinstance(self._split.event, Coin) else min
        draw = choose(list_draws(self._split, self._release), key=lambda draw: draw.crowd)
        parts = self._slicing.known_slices if self._households is None else self._households.tables
        tables = tuple(self._scheme.level_limits(names) for names in parts)
        return PlannedRelease(
            self._declared, tables, draw.publish_probability, draw.crowd,
            "people" if self._per_group == 1 else "rows", self._whole_households,
        )  # fmt: skip

    @property
    def _whole_households(self) -> WholeHouseholds | None:
        if self._households is None or self._person is None or not self._is_linked:
            return None
        return WholeHouseholds(self._households.names, self._person.rows)

    def find_count_error(self, column: str) -> int | None:
        """Return what the count of a value of a column beside the rows is within, in 19 of 20.

        None if the column is not counted, or groups of the values that its rows may show are.
        """
        levels = self._counter.levels
        if column not in levels or levels[column] > self._scheme.level_limits((column,))[column][0]:
            return None
        epsilon = self._split.measured[[*levels].index(column)]
        return math.ceil(math.log(20) * self._rows / epsilon)

    def count(self, table: Table, *, by_row: bool = False) -> CountedTable | RemoteCountedTable:
        """Count the tuples that the scheme works on; of slices, those of all columns.

        People who may have several rows are counted once per tuple, or a few of their rows are.
        """
        levels = self._scheme.list_counted_levels() if self._slicing.tables == 1 else None
        if levels is not None:
            levels = self._counter.lower_levels(levels)
        if self._person is not None:
            if not by_row:
                return count_people(
                    table, self._declared, self._person.id, levels=levels,
                    per_group=self._counted_per_group,
                )  # fmt: skip
            refuse_many_people(table, self._person)
            if self._households is not None:
                self._households.refuse_split_households(table, self._person.id)
        counted_table = count_local_or_remote(table, self._declared, levels)
        return (
            self._scheme.require_local(counted_table)
            if isinstance(self._scheme, MondrianScheme)
            else counted_table
        )

    def make(self, table: CountedTable | RemoteCountedTable, context: MakeContext) -> MethodResult:
        """Choose what is to be chosen, draw, drop what is rare."""
        if self._person is not None:
            if not isinstance(table, PeopleTable):
                raise TypeError("people with several rows must be counted as people")
            if table.sets.per_group != self._counted_per_group:
                raise TypeError(
                    f"rows must be cut to {self._counted_per_group} of a person per group"
                )
        measured = self._counter.measure(
            table, self._split.measured, rows=self._rows, bits=context.bits
        )
        counts = {(name, part.table.level): part.counts for name, part in measured.items()}
        context = replace(context, measured=counts)
        parts = [table]
        if self._slicing.tables > 1:
            context.step("slice")
            epsilons = [read_as_decimal(epsilon) for epsilon in self._split.choices]
            slices = self._slicing.choose_slices(
                table, epsilons, context.bits, list_draws(self._split, self._release),
                rows=self._rows,
            )  # fmt: skip
            parts = [table.select_columns(names) for names in slices]
        links = None
        if self._households is None:
            products = tuple(
                self._scheme.make_product(part, self._split, context) for part in parts
            )
        elif self._is_linked:
            assert isinstance(table, PeopleTable)
            linked = self._households.make_linked(table, self._scheme, self._split, context)
            products, links = linked.products, linked.links
        else:
            products = self._households.make_products(table, self._scheme, self._split, context)
        if len(products) == 1:
            parameters = {**products[0].parameters, **self.asserted}
            findings = (*products[0].findings, *self.notes)
            products = (replace(products[0], parameters=parameters, findings=findings),)
        return MethodResult(
            products=products,
            promise=self.promise,
            events=self.events,
            original=table if isinstance(table, CountedTable) else table.collect_sample(),
            parameters={**self._split.shared_parameters, **self.asserted},
            layout=self.layout,
            links=links,
            shares=tuple(column.table for column in measured.values()),
            reasons=tuple(filter(None, (*self._reasons, self._slicing.reason))),
        )


def _refuse_target(target: str | None, names: tuple[str, ...]) -> None:
    if target is not None and target not in names:
        raise IncrowdError(
            f"Target '{target}': it is not published. Give it the role `quasi` or `sensitive`."
        )
    if target is not None and len(names) == 1:
        raise IncrowdError(
            f"Target '{target}': no other column is published. Publish others, or remove `target`."
        )


def _list_published_columns(spec: Spec) -> dict[str, Column]:
    """Return the columns that are published, all generalized; or raise the reason why not."""
    columns = published_columns(spec, "quasi", "sensitive")
    for name, column in columns.items():
        if column.hierarchy is None:
            raise IncrowdError(
                f"Column '{name}': a safe release needs a hierarchy for every column. Add "
                "`hierarchy: flat`, or use the role `drop`."
            )
        if column.has_class_rules:
            raise IncrowdError(
                f"Column '{name}': rules on classes are for k-anonymity. Remove them; a "
                "safe release protects every column."
            )
    if not columns:
        raise IncrowdError("Spec: no column is published. Give columns the role `quasi`.")
    return columns
