"""The rows from which an exchange starts: drawn along a tree of the strongest pairs of columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from incrowd.anonymize.tables.exchange import TargetTable
from incrowd.arrays import Codes, Counts, Floats


def draw_start(
    sizes: Sequence[int], targets: Sequence[TargetTable], number: int, rng: np.random.Generator
) -> list[Codes]:
    """Draw rows whose columns, and pairs along the tree, have the estimated shares.

    Args:
        sizes: The number of values of each column.
        targets: Estimated tables; those of one and of two columns at the finest levels are used.
        number: The number of rows.
        rng: Decides what the shares leave open.

    """
    finest = [x for x in targets if x.estimate.shape == tuple(sizes[y] for y in x.columns)]
    ones = {x.columns[0]: x.estimate for x in finest if len(x.columns) == 1}
    pairs = {(x.columns[0], x.columns[1]): x.estimate for x in finest if len(x.columns) == 2}
    codes = [np.zeros(number, dtype=np.int32) for _ in sizes]
    parents = _find_tree(len(sizes), {key: _compute_information(x) for key, x in pairs.items()})
    for column, parent in parents:
        if parent is None:
            shares = ones.get(column, np.ones(sizes[column]))
            codes[column][:] = _draw_values(shares, number, rng)
            continue
        table = pairs[column, parent] if column < parent else pairs[parent, column].T
        order = np.argsort(codes[parent], kind="stable")
        ends = np.cumsum(np.bincount(codes[parent], minlength=sizes[parent]))
        start = 0
        for value, end in enumerate(ends.tolist()):
            codes[column][order[start:end]] = _draw_values(table[:, value], end - start, rng)
            start = end
    return codes


def _draw_values(shares: Floats, number: int, rng: np.random.Generator) -> Codes:
    """Draw values in an order at random, each as often as its share says, up to rounding."""
    weights = np.maximum(shares, 0.0)
    weights = weights if weights.sum() > 0 else np.ones(len(weights))
    ends = np.rint(np.cumsum(weights) * (number / weights.sum())).astype(np.int64)
    ends[-1] = number
    counts: Counts = np.diff(np.minimum(ends, number), prepend=0)
    values = np.repeat(np.arange(len(weights), dtype=np.int32), counts)
    return rng.permutation(values)


def _compute_information(table: Floats) -> float:
    """Return the mutual information of a pair, negative estimates taken as 0."""
    shares = np.maximum(table, 0.0)
    if not shares.sum() > 0:
        return 0.0
    shares = shares / shares.sum()
    expected = shares.sum(axis=1, keepdims=True) * shares.sum(axis=0, keepdims=True)
    inside = shares > 0
    return float((shares[inside] * np.log(shares[inside] / expected[inside])).sum())


def _find_tree(
    number: int, strengths: dict[tuple[int, int], float]
) -> list[tuple[int, int | None]]:
    """Return columns with the parent of each, parents first: the strongest tree of pairs."""
    reached: list[tuple[int, int | None]] = []
    left = set(range(number))
    while left:
        links = [
            (strength, (low, high) if low in left else (high, low))
            for (low, high), strength in strengths.items()
            if (low in left) != (high in left)
        ]
        if links:
            _, (column, parent) = max(links)
            reached.append((column, parent))
        else:
            column = min(left)
            reached.append((column, None))
        left.remove(column)
    return reached
