"""A few rows before and after, and the levels in words: for the curator alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from incrowd.codes.values import canonical, reading_order
from incrowd.engine.table import Table
from incrowd.measure.lost_values import shows_nothing
from incrowd.release.product import Product, Recoded

ROWS, _LOOKED_AT = 6, 1000


@dataclass(frozen=True)
class Example:
    """The values of some columns in one row, and the labels that it shows; None if it does not."""

    before: list[str | None]
    after: list[str | None] | None


@dataclass(frozen=True)
class Examples:
    """What a reader of the report sees of a table.

    ``levels`` says of each column in words what it shows, ``of_slices`` the same of each slice.
    Where recoding was ``local``, which row
    became which is not told: the rows after are then any rows of the release.
    """

    names: tuple[str, ...]
    levels: dict[str, str]
    rows: list[Example]
    local: bool
    of_slices: tuple[dict[str, str], ...] = ()


def some_rows(source: Table, names: Sequence[str]) -> list[list[object]]:
    """Different rows among the first of a table, spread over their order."""
    found = []
    for tally in source.head(_LOOKED_AT).tallies(names):
        orders = [list(map(reading_order, values)) for values in tally.values]
        for codes in tally.codes.tolist():
            order = [orders[at][code] for at, code in enumerate(codes)]
            found.append((order, [tally.values[at][code] for at, code in enumerate(codes)]))
    found.sort(key=itemgetter(0))
    step = max(len(found) // ROWS, 1)
    return [row for _, row in found[::step][:ROWS]]


def examples(products: Sequence[Product], before: Sequence[Sequence[object]]) -> Examples:
    """Some rows of the table, from :func:`some_rows`, and what became of them in the first."""
    product = products[0]
    names = product.original.names
    local = product.shown.local
    after = _any(product, len(before)) if local else [_shown(product, row) for row in before]
    texts = [[canonical(value) for value in row] for row in before]
    pairs = zip(texts, [*after, *[None] * len(texts)], strict=False)
    each = tuple(
        {name: in_words(recoded) for name, recoded in one.scheme.items()} for one in products
    )
    return Examples(names, each[0], [Example(one, other) for one, other in pairs], local, each)


def in_words(recoded: Recoded) -> str:
    """What a column shows, in words."""
    hierarchy, level = recoded.hierarchy, recoded.level
    if level is None:
        return "intervals or groups, class by class"
    if (level == hierarchy.height - 1 and hierarchy.rooted) or shows_nothing(
        hierarchy, hierarchy.labels[level][:-2], level
    ):
        return "nothing"
    if level == 0:
        return "each value"
    mask = recoded.column.hierarchy.mask if recoded.column.hierarchy is not None else None
    if mask is not None:
        return f"{mask.length - level} of {mask.length} characters"
    labels = [label for label in hierarchy.labels[level][:-2] if label is not None]
    return f"{len(labels):,} groups, such as {labels[len(labels) // 2]}"


def _shown(product: Product, row: Sequence[object]) -> list[str | None] | None:
    """The labels of a row at the levels of the release, if its cell is shown."""
    labels: list[str | None] = []
    alike = np.ones(len(product.shown.frequencies), dtype=bool)
    for at, (value, recoded) in enumerate(zip(row, product.scheme.values(), strict=True)):
        hierarchy, level = recoded.hierarchy, recoded.level
        assert level is not None
        label = hierarchy.labels[level][hierarchy.groups[level][hierarchy.encode([value])[0]]]
        labels.append(label)
        codes = [code for code, text in enumerate(product.shown.labels[at]) if text == label]
        alike &= np.isin(product.shown.frequencies.codes[:, at], codes)
    return labels if alike.any() else None


def _any(product: Product, number: int) -> list[list[str | None] | None]:
    """Some rows of the release."""
    codes = product.shown.frequencies.codes
    step = max(len(codes) // max(number, 1), 1)
    return [
        [canonical(labels[code]) for labels, code in zip(product.shown.labels, row, strict=True)]
        for row in codes[::step][:number].tolist()
    ]
