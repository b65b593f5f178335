"""Orders of columns with very many values: by groups in the model, by a conditional draw below.

A model that forbids every pair of days that falls would need a cell for each pair. Where that is
too many, it forbids pairs of groups alone (months in which no day of the first column is before any
of the second), and a row whose values still fall has them drawn again within its groups.

**Claim.** Every row can obey the orders. Groups are runs of points without gaps. Write low and high
for the ends of a group or value. The model gives a row no groups with low(g_j) > high(g_k) where j
is ordered before k, and orders that follow from others are among them. Columns are drawn such that
those before come first: k gets a value of g_k that ends at L or later, and begins at H or before,
with L the largest beginning of a value drawn before it and H the smallest end of the groups after
it. Such a value exists: let p be the larger of L and low(g_k). It is at most high(g_k), since the
values before were drawn to begin there at the latest, and at most H, for the same reason and by
the model; so p is a point of g_k, and the value that covers it will do.

Values within a group carry no relation but that of their own column, so what is drawn again keeps
the tables that the model holds, at the levels of these groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from incrowd.anonymize.synthetic.allocation import MODEL_CELLS
from incrowd.anonymize.synthetic.domain import Columns, Domain, ModelColumn
from incrowd.anonymize.synthetic.model import Model
from incrowd.anonymize.synthetic.released import Released
from incrowd.arrays import Bools, Codes, Floats, Places
from incrowd.spec.leaves import Leaves

Order = tuple[int, int]  # the places of two columns, the one before first
Spans = Mapping[int, tuple[Floats, Floats]]  # of each ordered column: the ends of its leaves

_FIRST_LIMIT, _LAST_LIMIT = MODEL_CELLS // 8, 16  # cells of one order


def find_spans(column: ModelColumn, leaves: Leaves) -> tuple[Floats, Floats]:
    """Return the lowest and highest point of each leaf, by position; NaN for null and outside."""
    lows = [-np.inf if low is None else low for low in leaves.lows]
    highs = [np.inf if high is None else high for high in leaves.highs]
    unknown = [np.nan] * 2
    return np.array([*lows, *unknown])[column.codes], np.array([*highs, *unknown])[column.codes]


def choose_order_levels(
    columns: Sequence[ModelColumn], others: Mapping[Columns, Bools], orders: Sequence[Order],
    spans: Spans,
) -> dict[int, int]:  # fmt: skip
    """Return the level at which the model obeys the orders of each column.

    Level 0 where a model can hold that; otherwise the finest of which it can. ``others`` are the
    rules that are no orders: they hold at the levels of orders too, so that what is drawn again
    within a group keeps them.
    """
    highest = Domain(tuple(columns), others).rule_levels
    usable = {
        place: [level for level in _list_levels(columns[place], *ends) if level <= highest[place]]
        for place, ends in spans.items()
    }
    exact = dict.fromkeys(spans, 0)
    if _fits(columns, others, orders, spans, exact):
        return exact
    limit = _FIRST_LIMIT
    while limit >= _LAST_LIMIT:
        levels = _coarsen(columns, orders, usable, limit)
        if _fits(columns, others, orders, spans, levels):
            return levels
        limit //= 4
    return exact


def _coarsen(
    columns: Sequence[ModelColumn], orders: Sequence[Order], usable: Mapping[int, list[int]],
    limit: int,
) -> dict[int, int]:  # fmt: skip
    """Return levels at which no order joins more groups than the limit, if there are such."""
    levels = dict.fromkeys(usable, 0)
    while True:
        sizes = {place: columns[place].sizes[level] for place, level in levels.items()}
        wide = {place for pair in orders if sizes[pair[0]] * sizes[pair[1]] > limit
                for place in pair}  # fmt: skip
        above = {
            place: level for place in wide
            for level in [next((other for other in usable[place] if other > levels[place]), None)]
            if level is not None
        }  # fmt: skip
        if not above:
            return levels
        largest = max(above, key=lambda place: (sizes[place], -place))
        levels[largest] = above[largest]


def _list_levels(column: ModelColumn, lows: Floats, highs: Floats) -> Iterator[int]:
    """Return the levels whose groups are runs of points, apart from null and what is outside."""
    for level, groups in enumerate(column.groups):
        unknown = np.isnan(lows)
        if set(groups[unknown].tolist()) & set(groups[~unknown].tolist()):
            continue
        order = np.lexsort((lows, groups))
        inside = groups[order][1:] == groups[order][:-1]
        if (lows[order][1:] == highs[order][:-1] + 1)[inside & ~unknown[order][1:]].all():
            yield level


def _fits(
    columns: Sequence[ModelColumn], others: Mapping[Columns, Bools], orders: Sequence[Order],
    spans: Spans, levels: Mapping[int, int],
) -> bool:  # fmt: skip
    rules = {**others, **allow_orders(columns, others, orders, spans, levels)}
    return Released(Domain(tuple(columns), rules)).fits((), (), MODEL_CELLS)


def allow_orders(
    columns: Sequence[ModelColumn], others: Mapping[Columns, Bools], orders: Sequence[Order],
    spans: Spans, levels: Mapping[int, int],
) -> dict[Columns, Bools]:  # fmt: skip
    """Return what orders allow of leaves, alike for all of a group; with other rules about them."""
    allowed_pairs: dict[Columns, Bools] = {}
    for first, second in orders:
        low = _spread(columns[first].groups[levels[first]], spans[first][0], np.minimum)
        high = _spread(columns[second].groups[levels[second]], spans[second][1], np.maximum)
        allowed: Bools = ~(low[:, None] > high[None, :])  # NaN is before and after everything
        places = (first, second)
        if first > second:
            places, allowed = (second, first), allowed.T
        for rules in (allowed_pairs, others):
            allowed = rules[places] & allowed if places in rules else allowed
        allowed_pairs[places] = allowed
    return allowed_pairs


def _spread(groups: Codes, ends: Floats, merge: np.ufunc) -> Floats:
    """Return for each leaf the end of its group."""
    group_ends = np.full(int(groups.max()) + 1, np.inf if merge is np.minimum else -np.inf)
    merge.at(group_ends, groups[~np.isnan(ends)], ends[~np.isnan(ends)])
    return np.where(np.isnan(ends), np.nan, group_ends[groups])


def obey_orders(
    model: Model, orders: Sequence[Order], spans: Spans, levels: Mapping[int, int],
    positions: Codes, rng: np.random.Generator,
) -> Codes:  # fmt: skip
    """Return rows of positions that obey every order; see the module's claim."""
    broken = np.zeros(len(positions), dtype=bool)
    for first, second in orders:
        broken |= spans[first][0][positions[:, first]] > spans[second][1][positions[:, second]]
    obeying, rows = positions.copy(), np.flatnonzero(broken)
    if not len(rows):
        return obeying
    ends = {
        place: _spread(_groups(model, place, levels), spans[place][1], np.maximum)
        for place in spans
    }
    for place in sorted(spans, key=lambda column: sum(second == column for _, second in orders)):
        least, most = np.full(len(rows), -np.inf), np.full(len(rows), np.inf)
        for first, second in orders:
            if second == place:
                least = np.fmax(least, spans[first][0][obeying[rows, first]])
            elif first == place:
                most = np.fmin(most, ends[second][positions[rows, second]])
        obeying[rows, place] = _draw_leaves(
            model, place, _groups(model, place, levels), spans[place], positions[rows, place],
            (least, most), rng,
        )  # fmt: skip
    return obeying


def _groups(model: Model, place: int, levels: Mapping[int, int]) -> Codes:
    return model.structure.domain.columns[place].groups[levels[place]]


def _draw_leaves(
    model: Model, place: int, groups: Codes, span: tuple[Floats, Floats], positions: Codes,
    bounds: tuple[Floats, Floats], rng: np.random.Generator,
) -> Codes:  # fmt: skip
    """Draw a leaf of each row's group, by the model's shares, among those within its bounds."""
    shares = model.table((place,), (0,)) + 1e-12
    leaf_positions, row_groups = positions.copy(), groups[positions]
    order: Places = np.argsort(row_groups, kind="stable")
    starts = np.flatnonzero(np.diff(row_groups[order], prepend=-1))
    for start, end in pairwise([*starts.tolist(), len(order)]):
        rows = order[start:end]
        leaves = np.flatnonzero(groups == row_groups[rows[0]])
        if np.isnan(span[0][leaves]).any():
            continue  # null, which obeys every order
        fitting = (span[1][leaves] >= bounds[0][rows, None]) & (
            span[0][leaves] <= bounds[1][rows, None]
        )
        weights = np.cumsum(fitting * shares[leaves], axis=1)
        cuts = rng.random(len(rows))[:, None] * weights[:, -1:]
        cuts = np.minimum(cuts, np.nextafter(weights[:, -1:], 0.0))
        leaf_positions[rows] = leaves[(weights <= cuts).sum(axis=1)]
    return leaf_positions
