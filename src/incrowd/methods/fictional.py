"""Tables of people who do not exist, made from a spec alone.

The values of each column are drawn independently; the i-th value in the order of its declaration
is 1/i times as frequent as the first.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from incrowd.engine.source import local_engine
from incrowd.engine.table import Table
from incrowd.measure.forecast import OPEN_VALUES, compute_shares
from incrowd.spec.build import build_hierarchy, is_open
from incrowd.spec.file import SpecFile
from incrowd.spec.leaves import make_leaves
from incrowd.spec.model import Column, PersonId

_WORDS = tuple(f"value {number}" for number in range(1, OPEN_VALUES + 1))


def make_fictional_table(
    spec: SpecFile, size: int, draws: np.random.Generator | None = None
) -> Table:
    """Return a table of fictional people, with every column of the spec that is not dropped."""
    draws = draws or np.random.default_rng()  # of nobody: no secret hangs on it
    columns = {
        name: _draw_column(name, column, spec.folder, size, draws)
        for name, column in spec.spec.columns.items()
        if column.role != "drop"
    }
    if isinstance(spec.spec.unit, PersonId):
        columns[spec.spec.unit.id] = [f"person {number}" for number in range(1, size + 1)]
    return local_engine().from_columns(columns)


def _draw_column(
    name: str, column: Column, folder: Path, size: int, draws: np.random.Generator
) -> list[str]:
    """Draw the values of one column."""
    if column.role == "identifier":
        return [f"{name} {number}" for number in range(1, size + 1)]
    if column.role == "noisy":
        low, high = column.bounds or (0, 100)
        return [f"{x:.2f}" for x in draws.uniform(float(low), float(high), size)]
    values = _list_values(column, folder)
    if column.hierarchy is not None and column.hierarchy.mask is not None:
        mask = column.hierarchy.mask
        letters = sorted(set(mask.alphabet))
        parts = draws.choice(letters, (size, mask.length), p=compute_shares(len(letters), "skewed"))
        return ["".join(row) for row in parts]
    places = draws.choice(len(values), size, p=compute_shares(len(values), "skewed"))
    return [values[at] for at in places.tolist()]


def _list_values(column: Column, folder: Path) -> Sequence[str]:
    """Return the declared values; where none are declared, words that stand for them."""
    if column.hierarchy is None or is_open(column):
        return _WORDS
    hierarchy = build_hierarchy(column, folder=folder)
    if column.hierarchy.dates is None:
        return hierarchy.values
    leaves = make_leaves("", column, hierarchy)  # a month is the label of its days, and no day
    days = [dt.date.fromordinal(low or 1) for low in leaves.lows]
    return [day.strftime(column.hierarchy.dates.format) for day in days]
