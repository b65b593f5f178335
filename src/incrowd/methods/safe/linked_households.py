"""Whole households with their people as two tables of one release, which a key links."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from incrowd.anonymize.household_search import search_household_scheme
from incrowd.anonymize.safe_linked_households import link_households
from incrowd.arrays import Codes, Places
from incrowd.codes.counted_table import PublishedTable
from incrowd.codes.frequency import merge_tuples
from incrowd.codes.household_type import HOUSEHOLD_KEY, HouseholdMembers
from incrowd.codes.person_sets import PeopleTable
from incrowd.methods.base import MakeContext, sort_labels
from incrowd.methods.safe.draw import CellDraw, make_draws
from incrowd.methods.safe.scheme import FixedScheme, SafeScheme, SearchedScheme
from incrowd.privacy.presentation import read_as_decimal
from incrowd.privacy.split import BudgetSplit
from incrowd.release.household_links import HouseholdLinks
from incrowd.release.product import Product
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.release import SafeSpec

WHOLE_HOUSEHOLDS = (
    "Households: published whole, linked by a key. A household is published where enough others "
    "agree with it in all labels, its own and those of its people; rare households are suppressed."
)


@dataclass(frozen=True)
class LinkedProducts:
    """Both tables of a spec, and what is stated of the keys that link them."""

    products: tuple[Product, Product]
    links: HouseholdLinks


def make_linked_products(
    table: HouseholdMembers,
    scheme: SafeScheme,
    declared: ColumnHierarchies,
    release: SafeSpec,
    split: BudgetSplit,
    context: MakeContext,
) -> LinkedProducts:
    """Choose levels where they are to be chosen, draw types of households, drop what is rare."""
    draws = {draw.ramp: draw for draw in make_draws(split, release, context.bits)}
    if isinstance(scheme, FixedScheme):
        (draw,) = draws.values()
        levels = tuple(scheme.levels[name] for name in table.names)
    else:
        context.step("search")
        assert isinstance(scheme, SearchedScheme)
        chosen = search_household_scheme(
            table, scheme.make_lattice(table.names), list(draws),
            epsilon=read_as_decimal(split.selections[0]), power=release.detail_power,
            weights=np.array([declared.columns[name].weight for name in table.names]),
            bits=context.bits, progress=context.progress,
        )  # fmt: skip
        draw, levels = draws[chosen.ramp], chosen.levels
    return _draw_linked_products(table.roll_up(levels).merge_labels(), declared, draw, context)


def _draw_linked_products(
    table: HouseholdMembers, declared: ColumnHierarchies, draw: CellDraw, context: MakeContext
) -> LinkedProducts:
    """Draw the types of a table at the levels of its release, and write them as two tables."""
    context.step("draw")
    types = table.types
    published = draw.draw_published_cells(types.frequencies, context.bits)
    linked = link_households(types, published, context.bits)
    keys = np.arange(1, len(linked.households) + 1)
    own_places = [table.names.index(name) for name in table.own_columns]
    codes = table.frequencies.codes[linked.households][:, own_places]
    households = _make_product(
        table.select_columns(table.own_columns), codes, keys, declared, draw, context
    )
    people = _make_product(
        table, table.frequencies.codes[linked.people], linked.keys, declared, draw, context
    )
    links = HouseholdLinks(
        types=len(published),
        smallest_type=int(published.counts.min()) if len(published) else 0,
        largest_household=int(types.sizes[published.codes[:, 0]].max(initial=0)),
    )
    return LinkedProducts(
        (replace(households, file_name="households"), replace(people, file_name="people")), links
    )


def _make_product(
    original: PeopleTable,
    codes: Codes,
    keys: Places,
    declared: ColumnHierarchies,
    draw: CellDraw,
    context: MakeContext,
) -> Product:
    """Return one table: rows by the codes of their labels, in the order of their keys."""
    names = original.names
    labels = tuple(
        hierarchy.labels[level]
        for hierarchy, level in zip(original.hierarchies, original.levels, strict=True)
    )
    ranked = [sort_labels(texts) for texts in labels]
    ranks = [rank[codes[:, at]] for at, (_, rank) in enumerate(ranked)]
    sort_keys: list[Any] = [*reversed(ranks), keys]
    order = np.lexsort(sort_keys)
    coded = {
        name: (texts, rank[order])
        for name, (texts, _), rank in zip(names, ranked, ranks, strict=True)
    }
    has_no_key = np.zeros(len(keys), dtype=bool)
    return Product(
        data=context.engine.from_rows(
            coded, {HOUSEHOLD_KEY: (keys[order], has_no_key)}, (HOUSEHOLD_KEY, *names)
        ),
        original=original.plain,
        shown=PublishedTable(
            labels, merge_tuples(codes, np.ones(len(codes), dtype=np.int64)), original.levels
        ),
        columns=declared.columns,
        axes=original.axes,
        parameters=draw.parameters,
    )
