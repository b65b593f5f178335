"""Drawing rows from a model, so that the rows add little error of their own.

Cliques are drawn from the root down, and their columns one by one. The count of each value is
within one of what the model expects. Rows that agree on what the clique has drawn form a group; the
counts are divided among groups in whole numbers near the model's probabilities
(:mod:`incrowd.anonymize.synthetic.rounded_table`). Within a group, values are interleaved along an
order by other columns, so that they are spread evenly over those as well. In the end rows exchange
values where that serves pairs of columns (:mod:`incrowd.anonymize.synthetic.exchange`), which
leaves the counts of single columns as they are.

Everything here is post-processing of released results: no privacy depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from incrowd.anonymize.synthetic.exchange import exchange_values
from incrowd.anonymize.synthetic.model import Model
from incrowd.anonymize.synthetic.rounded_table import round_table
from incrowd.arrays import Codes, Counts, Floats, Places

ORDERED_BY = 4
_BLOCK = 2_000_000


def draw_rows(model: Model, count: int, rng: np.random.Generator) -> Codes:
    """Draw rows from a model, as positions of leaves: one row each, one column per column."""
    structure = model.structure
    tree, sizes = structure.tree, structure.sizes
    rows = np.zeros((count, len(structure.domain)), dtype=np.int32)
    done: list[int] = []
    for at in tree.order:
        clique, separator = tree.cliques[at], tree.separators[at]
        drawn = list(separator)
        for column in sorted(set(clique) - set(separator), key=lambda x: -sizes[x]):
            inside = [x for x in clique if x in drawn or x == column]
            table = model.marginals[at].sum(
                axis=tuple(axis for axis, x in enumerate(clique) if x not in inside)
            )
            table = np.transpose(table, [inside.index(x) for x in (*drawn, column)])
            table = table.reshape(-1, sizes[column])
            groups = _group_rows(rows, drawn, [sizes[x] for x in drawn])
            others = [x for x in done if x not in drawn][-ORDERED_BY:]
            rows[:, column] = _draw_column(groups, table, rows[:, others], rng)
            drawn.append(column)
            done.append(column)
    for column, model_column in enumerate(structure.domain.columns):
        level = structure.levels[column]
        if level:
            table = np.zeros((sizes[column], model_column.sizes[0]))
            table[model_column.groups[level], np.arange(model_column.sizes[0])] = model.shares[
                column
            ]
            beside = {x for clique in tree.cliques if column in clique for x in clique} - {column}
            others = sorted(beside, key=lambda x: -sizes[x])[-ORDERED_BY:]
            rows[:, column] = _draw_groups(
                rows[:, column].astype(np.int64), table, rows[:, others], rng
            )
    return exchange_values(model, rows, rng)


def _group_rows(rows: Codes, columns: Sequence[int], sizes: Sequence[int]) -> Places:
    """Return the number of each row's combination of some columns."""
    if not columns:
        return np.zeros(len(rows), dtype=np.int64)
    return np.ravel_multi_index([rows[:, column] for column in columns], sizes).astype(np.int64)


def _draw_column(groups: Places, table: Floats, others: Codes, rng: np.random.Generator) -> Places:
    """Return a value for each row, each as often as the model expects it, give or take one.

    Rows of group g get values in proportion to ``table[g]``; a value of weight 0 nobody.
    """
    sizes = np.bincount(groups, minlength=len(table))
    present = np.flatnonzero(sizes)
    weights, sizes = table[present], sizes[present]
    expected = _expect(weights, sizes)
    totals = _deal(table.sum(axis=0, keepdims=True), np.array([len(groups)]), rng)[0]
    dealt = round_table(expected, sizes, totals, rng)
    wrong = ((dealt > 0) & (expected <= 0)).any(axis=1)
    if wrong.any():
        dealt[wrong] = _deal(weights[wrong], sizes[wrong], rng)
    values = np.empty(len(groups), dtype=np.int64)
    values[_order_rows(groups, others, rng)] = _interleave(dealt, rng)
    return values


def _draw_groups(groups: Places, table: Floats, others: Codes, rng: np.random.Generator) -> Places:
    """Return a value for each row: those of group g in proportion to ``table[g]``."""
    sizes = np.bincount(groups, minlength=len(table))
    present = np.flatnonzero(sizes)
    dealt = []
    step = max(1, _BLOCK // table.shape[1])
    for first in range(0, len(present), step):
        some = present[first : first + step]
        dealt.append(_interleave(_deal(table[some], sizes[some], rng), rng))
    values = np.empty(len(groups), dtype=np.int64)
    values[_order_rows(groups, others, rng)] = np.concatenate(dealt) if dealt else 0
    return values


def _order_rows(groups: Places, others: Codes, rng: np.random.Generator) -> Places:
    """Return the rows by group, then by other columns, the last one first.

    Ties are broken at random.
    """
    key = groups
    for part in others.T[::-1]:  # one number for all, while 64 bits hold it: one sort, not many
        size = int(part.max(initial=0)) + 1
        if int(key.max(initial=0)) >= 2**62 // size:
            break
        key = key * size + part
    shuffled = rng.permutation(len(groups))
    return shuffled[np.argsort(key[shuffled], kind="stable")]


def _deal(weights: Floats, sizes: Counts, rng: np.random.Generator) -> Counts:
    """Whole numbers near ``weights[g]``, scaled so that row g sums to ``sizes[g]`` exactly.

    A value of weight 0 gets nothing.
    """
    expected = _expect(weights, sizes)
    dealt = np.floor(expected + 1e-9).astype(np.int64)
    missing = sizes - dealt.sum(axis=1)
    # In their own order, so that sums over neighbors are met as well.
    rest = np.maximum(expected - dealt, 0.0)
    rest[rest < 1e-9] = 0.0
    heaps = np.cumsum(rest, axis=1)
    heaps *= (missing / np.maximum(heaps[:, -1], 1e-300))[:, None]
    passed = np.floor(heaps + rng.random((len(sizes), 1)) - 1e-12)
    dealt += np.diff(passed, axis=1, prepend=0.0).astype(np.int64)
    for group in np.flatnonzero(sizes - dealt.sum(axis=1)):
        # Rounding of floats: give or take it where there is most.
        dealt[group, np.argmax(expected[group])] += sizes[group] - dealt[group].sum()
    return dealt


def _expect(weights: Floats, sizes: Counts) -> Floats:
    """Return ``weights[g]``, scaled to sum to ``sizes[g]``; even ones, where all are 0."""
    totals = weights.sum(axis=1, keepdims=True)
    shares = np.divide(
        weights, totals, out=np.full(weights.shape, 1 / weights.shape[1]), where=totals > 0
    )
    expected: Floats = shares * sizes[:, None]
    return expected


def _interleave(counts: Counts, rng: np.random.Generator) -> Places:
    """Each value as often as it is counted, group after group, evenly spread within its group."""
    flat = counts.ravel()
    some = np.flatnonzero(flat)
    times = flat[some]
    group = np.repeat(some // counts.shape[1], times)
    value = np.repeat(some % counts.shape[1], times)
    number = np.arange(len(value)) - np.repeat(np.cumsum(times) - times, times)
    place = (number + np.repeat(rng.random(len(times)), times)) / np.repeat(times, times)
    return value[np.lexsort((place, group))]
