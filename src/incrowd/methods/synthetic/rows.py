"""From codes of synthetic rows to what is published of them: labels or points, types, order.

Everything here is post-processing of released results: no privacy depends on it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from incrowd.arrays import Bools, Codes, Counts, Places
from incrowd.codes.values import make_sort_key
from incrowd.engine.table import Engine, Table
from incrowd.methods.synthetic.columns import SyntheticColumns
from incrowd.release.synthetic_part import ValueType
from incrowd.release.value_column import ValueColumn
from incrowd.spec.leaves import ISO_DAY
from incrowd.spec.row_rules import Rule, expand_orders


@dataclass(frozen=True, eq=False)
class PublishedColumn:
    """One column of published rows: its different values, as text and as typed, and each row's."""

    texts: Sequence[str | None]
    values: Sequence[object]
    codes: Codes


def choose_type(name: str, columns: SyntheticColumns, *, draw_values: bool) -> ValueType:
    """Return the type in which a column is written to Parquet; it follows from declarations.

    A label for values outside the domain makes a column one of text, and so do leaves that stand
    for several points and are shown as labels.
    """
    leaves, values = columns.leaves[name], columns.hierarchies[name].values
    if name in columns.others:
        return "text"
    if sorted(values) == ["false", "true"]:
        return "boolean"
    if leaves.kind is None or (leaves.has_spans and not draw_values):
        return "text"
    if leaves.kind == "date":
        return "date" if leaves.format == ISO_DAY else "text"
    return "integer" if leaves.step == leaves.step.to_integral_value() else "number"


def publish_columns(
    columns: SyntheticColumns,
    codes: Codes,
    types: Mapping[str, ValueType],
    *,
    draw_values: bool,
    rng: np.random.Generator,
) -> dict[str, PublishedColumn]:
    """Return what rows show; ``codes`` are of level 0, a column for each of the columns."""
    points = draw_points(columns, codes, rng) if draw_values else {}
    published = {}
    for at, (name, column) in enumerate(columns.value_columns.items()):
        value_codes = codes[:, at]
        texts = _list_texts(column, points.get(name))
        if name in points:
            value_codes = _place_points(column, points[name], value_codes)
        # Typed values are numbers and days, however a file of text would write them.
        plain = (
            texts
            if column.written is None
            else _list_texts(replace(column, written=None), points.get(name))
        )
        values = [type_value(text, types[name]) for text in plain]
        published[name] = PublishedColumn(texts, values, value_codes)
    return published


def _list_texts(column: ValueColumn, points: Counts | None) -> list[str | None]:
    """Return the different values as text; those of points, then null and ``other``."""
    if points is None:
        return [column.write_label(code) for code in range(column.size)]
    return [*map(column.write_point, np.unique(points).tolist()), None, column.other]


def _place_points(column: ValueColumn, points: Counts, codes: Codes) -> Codes:
    """Return which of the different values of :func:`_list_texts` each row has."""
    distinct, places = np.unique(points, return_inverse=True)
    beyond = codes - len(column.hierarchy.values)  # 0 for null, 1 for what is outside
    value_codes: Codes = np.where(beyond < 0, places, len(distinct) + beyond).astype(np.int32)
    return value_codes


def type_value(text: str | None, kind: ValueType) -> object:
    """Return a published text as a value of its type."""
    if text is None or kind == "text":
        return text
    if kind == "boolean":
        return text == "true"
    if kind == "date":
        return dt.date.fromisoformat(text)
    return int(text) if kind == "integer" else float(Decimal(text))


# Points ---------------------------------------------------------------------------------------


def draw_points(
    columns: SyntheticColumns, codes: Codes, rng: np.random.Generator
) -> dict[str, Counts]:
    """Draw, in each row, a point from the leaf of every column whose leaves have several.

    Uniformly on the column's grid; where rules order columns, from what they leave. Claim: every
    row can obey the orders. The model gives it no pair of leaves of ordered columns such that the
    lowest point of the first is above the highest of the second, and pairs that follow from others
    are among them (:func:`~incrowd.spec.row_rules.expand_orders`). Columns are drawn such that
    those before come first, each between the largest point drawn before it and the smallest of the
    highest points of itself and those after it. That interval holds a point: its lower end is
    some column's lowest point, or one drawn for a column before it, which is at most the highest
    point of every column after. All of them lie on one grid, which the rules ask for.
    """
    names = [name for name in columns.names if columns.leaves[name].kind is not None]
    orders = orders_of(columns.rules)
    spread = {name for name in names if columns.leaves[name].has_spans}
    involved = [name for name in names if name in spread or any(name in pair for pair in orders)]
    bounds = {name: _bounds(columns, name, codes) for name in involved}
    points_by_name: dict[str, Counts] = {}
    for name in sorted(involved, key=lambda column: sum(pair[1] == column for pair in orders)):
        low, high, has_point = bounds[name]
        low, high = low.copy(), high.copy()
        for first, second in orders:
            if second == name:
                low = np.where(bounds[first][2], np.maximum(low, points_by_name[first]), low)
            elif first == name:
                high = np.where(bounds[second][2], np.minimum(high, bounds[second][1]), high)
        points_by_name[name] = np.where(
            has_point, rng.integers(low, np.maximum(high, low) + 1), low
        )
    return {name: points for name, points in points_by_name.items() if name in spread}


def orders_of(rules: Sequence[Rule]) -> list[tuple[str, str]]:
    """Return the pairs of columns that rules order, those that follow among them."""
    return [
        (rule.order[0], rule.order[1]) for rule in expand_orders(rules) if rule.order is not None
    ]


def _bounds(
    columns: SyntheticColumns, name: str, codes: Codes
) -> tuple[Counts, Counts, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return the lowest and highest point of each row's leaf, and whether it has one."""
    leaves, column_codes = columns.leaves[name], codes[:, columns.names.index(name)]
    has_point = column_codes < len(leaves)
    lows = np.array([low or 0 for low in leaves.lows], dtype=np.int64)
    highs = np.array([high or 0 for high in leaves.highs], dtype=np.int64)
    at = np.where(has_point, column_codes, 0)
    return lows[at], highs[at], has_point


# Order ----------------------------------------------------------------------------------------


def make_tables(
    published: Mapping[str, PublishedColumn],
    keys: Sequence[str],
    references: Mapping[str, tuple[Counts, Bools]],
    order: Sequence[str],
    engine: Engine,
) -> tuple[Table, Table]:
    """Return the rows as a table of text and as one of typed values, in the order of a reader.

    Rows are sorted by what they show, the first column first, so that their order tells nothing.
    Columns of ``keys`` number the rows from 1, those of ``references`` have the numbers given,
    from the first row down. ``order`` names all columns.
    """
    rows = len(next(iter(published.values())).codes)
    ranks = [_rank(first) for name in order if (first := published.get(name)) is not None]
    by_rank: Places = np.lexsort(ranks[::-1])
    numbers = np.arange(1, rows + 1, dtype=np.int64)
    plain = {name: (numbers, np.zeros(rows, dtype=bool)) for name in keys}
    plain |= references
    sorted_codes = {name: column.codes[by_rank] for name, column in published.items()}
    text, typed = (
        engine.from_rows(
            {
                name: (getattr(column, kind), sorted_codes[name])
                for name, column in published.items()
            },
            plain,
            list(order),
        )
        for kind in ("texts", "values")
    )
    return text, typed


def _rank(column: PublishedColumn) -> Codes:
    """Return the place of each row's value in the order of a reader."""
    order = sorted(range(len(column.texts)), key=lambda code: make_sort_key(column.texts[code]))
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    return rank[column.codes]
