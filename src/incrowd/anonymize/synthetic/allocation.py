"""How the budget is shared: between stages, among tables, and what is left at the end.

Everything here is a function of declarations and of released results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Floats

ROUNDS = 8
TOTAL_SHARE = 0.02
PAIR_SHARE = 0.7  # of what the one-ways leave
TRIPLE_SHARE = 0.1  # of the same
ONE_WAY_NEED = 2.0  # of a one-way table, over that of another of its size
LEAST_PART, LARGEST_PART = 0.25, 4.0  # of one table, over the mean
MODEL_CELLS = 2**17
LARGEST_GROWTH = 4.0
_ENOUGH_FOR_A_MODEL = 8_000.0  # rows times the root of the information
_FEW_ROWS = (3300.0, 5000.0)  # from few to enough
_LITTLE_STRENGTH = (700.0, 1000.0)  # rows times the root of the information: from little to enough
_MANY_COLUMNS = (20.0, 40.0)
_SHARES = (0.35, 0.76)  # of the one-ways, where structure pays and where it hardly does
_ROWS_FOR_A_TABLE = 100.0
_USUAL_CELLS = 32.0  # of a pair, from which on a table needs that many rows


@dataclass(frozen=True)
class ChoiceCounts:
    """How many choices are paid for, whether they are made or not."""

    pairs: int
    triples: int
    batch: int  # in one round

    @property
    def total(self) -> int:
        """All of them."""
        return self.pairs + self.triples


def count_choices(columns: int) -> ChoiceCounts:
    """Return the number of choices: eight rounds, of a third of the columns each."""
    batch = -(-columns // 3)
    pairs = min(ROUNDS * batch, columns * (columns - 1))
    return ChoiceCounts(pairs, 2 * batch if columns > 2 else 0, batch)


def share_one_ways(columns: int, rows: float, information: float) -> float:
    """Return the share of the information that one-way tables get at first.

    With little information, or many columns, relations between columns cost more than they tell: an
    error of a one-way table enters every pair with its column. And where rows are few, single
    columns are what a recipient can still rely on. There the share is such that a deviation is at
    most 1.15 times that of independent columns, which get all but ``TOTAL_SHARE`` and pay for no
    choices: (0.98 / (0.78 * 0.97)) ** 0.5 = 1.14.
    """
    if columns == 1:
        return 1.0 - TOTAL_SHARE
    strength = rows * math.sqrt(information)
    weights = (
        1.0 - _find_place(rows, _FEW_ROWS),
        1.0 - _find_place(strength, _LITTLE_STRENGTH),
        _find_place(columns, _MANY_COLUMNS),
    )
    low, high = _SHARES
    return low + max(weights) * (high - low)


def _find_place(number: float, bounds: tuple[float, float]) -> float:
    """Return where a number lies between two bounds, from 0 to 1."""
    low, high = bounds
    return min(max((number - low) / (high - low), 0.0), 1.0)


def _compare_cells(cells: float, columns: int) -> float:
    """Return the cells of a pair over the usual number, at most 1; 1 where columns are many."""
    return min(cells / _USUAL_CELLS, 1.0) if columns < _MANY_COLUMNS[1] else 1.0


def find_rows_need(centered: int) -> float:
    """Return how much information the number of rows wants, beside one-way tables.

    Centered tables tell differences of counts alone: the shares of all their columns are
    differences over the number of rows, and are off where it is.
    """
    return math.sqrt(max(centered, 1))


def average_cells(leaves: Sequence[int]) -> float:
    """Return the geometric mean of the cells of all pairs of columns with so many leaves."""
    return math.exp(2 * sum(math.log(number) for number in leaves) / len(leaves))


def limit_choices(
    most: int, information: float, rows: float, columns: int, cells: float = _USUAL_CELLS
) -> int:
    """How many of the choices are made: fewer tables, measured better, where rows are few.

    None, if not even one table is worth it; of many columns, if not every column can have one.
    ``cells`` are those of a pair: noise adds up over them, so that small tables need fewer rows.
    """
    rows_for_a_table = _ROWS_FOR_A_TABLE * _compare_cells(cells, columns)
    worth = information * (rows / rows_for_a_table) ** 2
    least = columns - 1 if columns >= _MANY_COLUMNS[1] else 1
    return 0 if worth < least else min(most, max(3, int(worth)))


def allows_relations(
    rows: float, columns: int, information: float, cells: float = _USUAL_CELLS
) -> bool:
    """Say whether a table of so many rows has enough of them to choose even one table.

    The rule of :func:`limit_choices` for the first stage, before anything is measured.
    """
    one_ways = share_one_ways(columns, rows, information)
    left = PAIR_SHARE * (1 - TOTAL_SHARE - one_ways) * information
    return columns > 1 and limit_choices(1, left, rows, columns, cells) > 0


def limit_cells(rows: float, information: float) -> int:
    """Return the largest number of cells of a model; it grows with the information."""
    strength = rows * information**0.5
    return int(MODEL_CELLS * min(max(strength / _ENOUGH_FOR_A_MODEL, 1.0), LARGEST_GROWTH))


def relative_part(need: float, mean: float) -> float:
    """Return the part of one table, over the mean part."""
    return min(max(need / mean, LEAST_PART), LARGEST_PART)


def fill_up(have: Sequence[float], needs: Sequence[float], left: float) -> Floats:
    """Share what is left among tables so that information per need becomes as even as it can.

    Tables that have more already get nothing.
    """
    owned, required = np.asarray(have, dtype=np.float64), np.asarray(needs, dtype=np.float64)
    active = np.ones(len(owned), dtype=bool)
    level = 0.0
    for _ in range(len(owned)):
        level = (left + owned[active].sum()) / required[active].sum()
        lower = active & (level * required > owned)
        if (lower == active).all() or not lower.any():
            break
        active = lower
    added = np.where(active, level * required - owned, 0.0)
    # What is left may be too little to be seen beside what there is.
    shares = added if added.sum() > 0 else required
    parts: Floats = shares * (left / shares.sum())
    return parts
