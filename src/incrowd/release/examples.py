"""A few rows before and after, and the levels in words: for the curator alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from incrowd.codes.hierarchy import SUPPRESSED
from incrowd.codes.values import canonicalize_value, make_sort_key
from incrowd.engine.table import Table
from incrowd.measure.lost_values import shows_nothing
from incrowd.release.product import ColumnRecoding, Product
from incrowd.spec.build import describe_level, is_open

ROWS, _LOOKED_AT = 6, 1000
_SEARCHED = 200_000  # rows of a release that are searched for those that look like an example


@dataclass(frozen=True)
class Example:
    """The values of some columns in one row, and the labels that it shows; None if it does not."""

    before: list[str | None]
    after: list[str | None] | None


@dataclass(frozen=True)
class Examples:
    """What a reader of the report sees of a table.

    ``levels`` says of each column in words what it shows, ``of_slices`` the same of each slice.
    Where recoding was ``local``, which row became which is not told: the rows after are then any
    rows of the release. In ``noisy`` columns a row after shows the value of some row of its class.
    """

    names: tuple[str, ...]
    levels: dict[str, str]
    rows: list[Example]
    local: bool
    of_slices: tuple[dict[str, str], ...] = ()
    noisy: tuple[str, ...] = ()


def list_example_columns(product: Product) -> tuple[str, ...]:
    """Return the columns of a table that examples have: generalized, kept, with noise."""
    return (*product.original.names, *product.kept, *product.noisy)


def sample_rows(source: Table, names: Sequence[str]) -> list[list[object]]:
    """Return different rows among the first of a table, spread over their order."""
    candidates = []
    for tally in source.head(_LOOKED_AT).iter_tallies(names):
        orders = [list(map(make_sort_key, values)) for values in tally.values]
        for codes in tally.codes.tolist():
            order = [orders[at][code] for at, code in enumerate(codes)]
            candidates.append((order, [tally.values[at][code] for at, code in enumerate(codes)]))
    candidates.sort(key=itemgetter(0))
    step = max(len(candidates) // ROWS, 1)
    return [row for _, row in candidates[::step][:ROWS]]


def make_examples(products: Sequence[Product], before: Sequence[Sequence[object]]) -> Examples:
    """Return rows from :func:`sample_rows`, and what became of them in the first product.

    Rows have the columns of :func:`list_example_columns`.
    """
    product = products[0]
    local, width = product.shown.is_local, len(product.original.names)
    texts = [[canonicalize_value(value) for value in row] for row in before]
    looks = (
        _sample_released_rows(product, len(before))
        if local
        else [_find_shown_labels(product, row) for row in before]
    )
    kept_values = [None if local else row[width : width + len(product.kept)] for row in texts]
    after = _complete_rows(product, looks, kept_values)
    pairs = zip(texts, [*after, *[None] * len(texts)], strict=False)
    schemes = tuple(
        {
            name: in_words(recoded) if table.suppression is None else _SOME_CELLS
            for name, recoded in table.scheme.items()
        }
        for table in products
    )
    rows = [Example(first, other) for first, other in pairs]
    return Examples(
        list_example_columns(product), schemes[0], rows, local, schemes, tuple(product.noisy)
    )


def _complete_rows(
    product: Product,
    looks: Sequence[list[str | None] | None],
    kept_values: Sequence[list[str | None] | None],
) -> list[list[str | None] | None]:
    """Return labels of rows, with what such rows of the release show in other columns.

    ``kept_values`` are the values that a row has in the columns that are kept, where that is known.
    """
    width, kept_count = len(product.original.names), len(product.kept)
    if not product.kept and not product.noisy:
        return list(looks)
    same: dict[tuple[str | None, ...], list[list[str | None]]] = {
        tuple(look): [] for look in looks if look is not None
    }
    for tally in product.data.head(_SEARCHED).iter_tallies(list_example_columns(product)):
        named = [[canonicalize_value(value) for value in values] for values in tally.values]
        for codes in tally.codes.tolist():
            row = [named[at][code] for at, code in enumerate(codes)]
            if tuple(row[:width]) in same:
                same[tuple(row[:width])].append(row[width:])
    complete_rows: list[list[str | None] | None] = []
    for number, (first, values) in enumerate(zip(looks, kept_values, strict=False)):
        if first is None:
            complete_rows.append(None)
            continue
        rows = same[tuple(first)]
        fitting = [at for at, row in enumerate(rows) if values in (None, row[:kept_count])]
        # Rows are in order: the first ones alone would show the lowest values.
        at = (2 * number + 1) * len(fitting) // (2 * len(looks))
        released = rows.pop(fitting[at]) if fitting else [None] * (kept_count + len(product.noisy))
        further_values = [
            *(released[:kept_count] if values is None else values),
            *released[kept_count:],
        ]
        complete_rows.append([*first, *further_values])
    return complete_rows


_SOME_CELLS = "single cells suppressed"


def in_words(recoded: ColumnRecoding) -> str:
    """Return what a column shows, in words."""
    hierarchy, level = recoded.hierarchy, recoded.level
    if level is None:
        return "intervals or groups, by class"
    if (level == hierarchy.height - 1 and hierarchy.is_rooted) or shows_nothing(
        hierarchy, hierarchy.labels[level][:-2], level
    ):
        return SUPPRESSED
    labels = () if is_open(recoded.column) else hierarchy.labels[level][:-2]
    return describe_level(recoded.column, level, labels)


def _find_shown_labels(product: Product, row: Sequence[object]) -> list[str | None] | None:
    """Return the labels of a row at the levels of the release, if its cell is shown."""
    labels: list[str | None] = []
    alike = np.ones(len(product.shown.frequencies), dtype=bool)
    for at, (value, recoded) in enumerate(zip(row, product.scheme.values(), strict=False)):
        hierarchy, level = recoded.hierarchy, recoded.level
        assert level is not None
        label = hierarchy.labels[level][hierarchy.groups[level][hierarchy.encode([value])[0]]]
        labels.append(label)
        codes = [code for code, text in enumerate(product.shown.labels[at]) if text == label]
        alike &= np.isin(product.shown.frequencies.codes[:, at], codes)
    return labels if alike.any() else None


def _sample_released_rows(product: Product, number: int) -> list[list[str | None] | None]:
    """Return some rows of the release."""
    codes = product.shown.frequencies.codes
    step = max(len(codes) // max(number, 1), 1)
    return [
        [
            canonicalize_value(labels[code])
            for labels, code in zip(product.shown.labels, row, strict=True)
        ]
        for row in codes[::step][:number].tolist()
    ]
