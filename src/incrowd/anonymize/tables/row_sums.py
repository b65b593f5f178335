"""Sums that go with whole counts: each row gets a share, within the bounds of its people.

A row that stands for w people holds between 0 and w K steps of a column whose values have K. Sums
of all tables are counted from the same rows, so they add up, none is below or above what its count
allows, and a mean lies within the bounds. The shares are those whose sums are nearest to the
estimates by generalized least squares; they are found by projected gradients with momentum, each
row's step being the largest that cannot go too far: one over the sum, over all targets, of weight
times people in the row's cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Counts, Floats, Places

_MOST_WORK = 600_000_000  # places looked up
_MOST_STEPS, _FEWEST_STEPS = 200, 10
_CLOSE = 1e-4  # of a step's length over the first: closer is of no use


@dataclass(frozen=True, eq=False)
class SumTarget:
    """Sums that a table should be near: ``places`` are the cells of the rows."""

    places: Places
    sums: Floats
    weight: float


def fit_row_sums(people: Counts, steps: int, targets: Sequence[SumTarget]) -> Counts:
    """Return for each row a whole number of steps, from 0 to ``steps`` for each of its people."""
    if not len(people) or not targets:
        return np.zeros(len(people), dtype=np.int64)
    rows = people.astype(np.float64)
    scale = np.zeros(len(rows))
    for target in targets:
        cells = np.bincount(target.places, rows, len(target.sums))
        scale += target.weight * cells[target.places]
    total = min(targets, key=lambda x: len(x.sums)).sums.sum() / rows.sum()
    shares = np.full(len(rows), min(max(float(total), 0.0), float(steps)))  # steps per person
    moved, momentum, first = shares.copy(), 1.0, 0.0
    rounds = _MOST_WORK // (2 * len(rows) * len(targets))
    for _ in range(min(max(rounds, _FEWEST_STEPS), _MOST_STEPS)):
        slope = np.zeros(len(rows))
        for target in targets:
            excess = np.bincount(target.places, rows * moved, len(target.sums)) - target.sums
            slope += target.weight * excess[target.places]
        nearer = np.clip(moved - slope / scale, 0.0, float(steps))
        change = nearer - shares
        if float(change @ (moved - nearer)) > 0:
            momentum = 1.0  # it went past: start to gather speed anew
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        moved = nearer + change * ((momentum - 1) / faster)
        shares, momentum = nearer, faster
        length = float(np.abs(change).max())
        first = max(first, length)
        if length <= _CLOSE * first:
            break
    return _round_shares(shares * rows, people * steps)


def _round_shares(numbers: Floats, most: Counts) -> Counts:
    """Return whole numbers whose running sums are those of the numbers, rounded."""
    fractions = numbers - np.floor(numbers)
    ends = np.rint(np.cumsum(fractions)).astype(np.int64)
    whole_numbers = np.floor(numbers).astype(np.int64) + np.diff(ends, prepend=0)
    return np.clip(whole_numbers, 0, most)
