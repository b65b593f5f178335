"""Households and their people as two tables of one release, by noisy counts."""

from __future__ import annotations

from dataclasses import replace

from incrowd.anonymize.household_search import refuse_many_schemes
from incrowd.anonymize.safe_households import select_households
from incrowd.codes.counted_table import CountedTable
from incrowd.codes.household_type import HouseholdMembers
from incrowd.codes.person_sets import PeopleTable
from incrowd.engine.count import count_people
from incrowd.engine.table import Table, TableError
from incrowd.errors import IncrowdError
from incrowd.methods.base import MakeContext
from incrowd.methods.safe.draw import make_draws
from incrowd.methods.safe.linked_households import (
    WHOLE_HOUSEHOLDS,
    LinkedProducts,
    make_linked_products,
)
from incrowd.methods.safe.remote_counts import RemoteCountedTable
from incrowd.methods.safe.scheme import SafeScheme, SearchedScheme, draw_leveled_product
from incrowd.privacy.split import BudgetSplit
from incrowd.release.layout import HOUSEHOLDS_AND_PEOPLE, LINKED_HOUSEHOLDS, Layout
from incrowd.release.product import Product
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.household import HouseholdTable
from incrowd.spec.release import SafeSpec

TWO_TABLES = (
    "Households: two tables without a common key. Under noisy counts no published row is a "
    "household, so there is nothing that a key could point to."
)


class HouseholdProducts:
    """The two tables of a spec: what each shows, and how they are made."""

    def __init__(
        self, household: HouseholdTable, release: SafeSpec, declared: ColumnHierarchies
    ) -> None:
        if release.draw == "sample" and not household.linked:
            raise IncrowdError(
                "`household` needs `draw: counts`; two samples of households and of people are not "
                "offered. Remove `draw: sample`, `beta` and `keep`, and give ε and δ. For a sample "
                "of whole households, add `linked: true` under `household`."
            )
        self._release, self._declared = release, declared
        self.is_linked = household.linked
        self.names = tuple(name for name in declared.names if name in household.columns)

    @property
    def tables(self) -> list[tuple[str, ...]]:
        """The columns of each table: of households, and of people."""
        return [self.names, self._declared.names]

    def refuse_split_households(self, table: Table, person: str) -> None:
        """Refuse a table in which people of one household differ in a column of the household.

        Asked of all rows before anything is booked, :func:`select_households` refuses none of the
        rows that are chosen of them after.
        """
        declared = self._declared.select_columns(self.names)
        try:
            select_households(count_people(table, declared, person), self.names)
        except ValueError as error:
            raise TableError(
                f"Columns {', '.join(map(repr, self.names))}: {error}. Write the id of a household "
                "in one way, and give each household one row."
            ) from error

    @property
    def reason(self) -> str:
        """Why the files have a key, or none."""
        return WHOLE_HOUSEHOLDS if self.is_linked else TWO_TABLES

    @property
    def layout(self) -> Layout:
        """What the two files are."""
        return LINKED_HOUSEHOLDS if self.is_linked else HOUSEHOLDS_AND_PEOPLE

    def refuse_scheme(self, scheme: SafeScheme) -> None:
        """Refuse more schemes than whole households can be counted at."""
        if self.is_linked and isinstance(scheme, SearchedScheme):
            refuse_many_schemes(scheme.make_lattice(self._declared.names))

    def make_linked(
        self,
        table: PeopleTable,
        scheme: SafeScheme,
        split: BudgetSplit,
        context: MakeContext,
    ) -> LinkedProducts:
        """Make both tables of whole households, with the keys that link them."""
        members = HouseholdMembers.from_people(table, self.names)
        return make_linked_products(members, scheme, self._declared, self._release, split, context)

    def make_products(
        self,
        table: CountedTable | RemoteCountedTable,
        scheme: SafeScheme,
        split: BudgetSplit,
        context: MakeContext,
    ) -> tuple[Product, Product]:
        """Make both tables; the levels of the people are those of their households, too."""
        households = (
            select_households(table, self.names)
            if isinstance(table, CountedTable)
            else table.select_columns(self.names)
        )
        people = scheme.make_product(table, split, context)
        assert people.shown.levels is not None
        levels = dict(zip(people.original.names, people.shown.levels, strict=True))
        shared_levels = tuple(levels[name] or 0 for name in self.names)
        (draw,) = make_draws(split.split_beside, self._release, context.bits)
        beside = draw_leveled_product(
            households.roll_up(shared_levels), self._declared, self._release, draw, context
        )
        return replace(beside, file_name="households"), replace(people, file_name="people")
