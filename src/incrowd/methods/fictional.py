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
from incrowd.spec.model import Column, PersonId
from incrowd.spec.period import find_first_day

_SAME = 0.5  # of the values of a person's further rows, that repeat those of the first
_WORDS = tuple(f"value {number}" for number in range(1, OPEN_VALUES + 1))


def make_fictional_table(
    spec: SpecFile,
    size: int,
    draws: np.random.Generator | None = None,
    *,
    typical: float | None = None,
) -> Table:
    """Return a table of fictional people, with every column of the spec that is not dropped.

    It has places instead of the coordinates that they are made of.

    Where a person may have several rows, numbers of rows are geometric, with the median
    ``typical``, by default as many as the release uses of a person; half of the values of a further
    row are those of the person's first row. All people of a household have its own columns.
    """
    draws = draws or np.random.default_rng()  # of nobody: no secret hangs on it
    unit = spec.spec.unit
    coordinates = {name for geo in spec.spec.places.values() for name in (geo.lat, geo.lon)}
    fictional_names = {name for name, column in spec.spec.columns.items() if column.role != "drop"}
    fictional_names -= coordinates
    several = isinstance(unit, PersonId) and (typical is not None or unit.rows > 1)
    people = np.arange(size)
    if isinstance(unit, PersonId) and several:
        people = np.repeat(people, draws.geometric(1 - 2 ** (-1 / (typical or unit.rows)), size))
    columns = {
        name: _draw_column(name, column, spec.folder, len(people), draws)
        for name, column in spec.spec.columns.items()
        if name in fictional_names
        and (spec.spec.household is None or name not in spec.spec.household.columns)
    }
    if several:
        first = np.searchsorted(people, people)
        for name, values in columns.items():
            same = draws.random(len(people)) < _SAME
            columns[name] = [
                values[at] if is_same else value
                for value, at, is_same in zip(values, first.tolist(), same.tolist(), strict=True)
            ]
    part = spec.spec.part
    if part is not None and isinstance(unit, PersonId) and unit.period is not None:
        day = find_first_day(part.value, unit.period.every) or part.value
        columns[part.column] = [day] * len(people)
    if isinstance(unit, PersonId):
        columns[unit.id] = [f"person {number}" for number in (people + 1).tolist()]
    table, household = local_engine().from_columns(columns), spec.spec.household
    if household is None or not isinstance(unit, PersonId):
        return table
    shared: dict[str, list[str]] = {unit.id: [f"person {number}" for number in range(1, size + 1)]}
    for name in household.columns:
        if name in fictional_names:
            shared[name] = _draw_column(name, spec.spec.columns[name], spec.folder, size, draws)
    return table.join_table(unit.id, local_engine().from_columns(shared), unit.id)


def _draw_column(
    name: str, column: Column, folder: Path, size: int, draws: np.random.Generator
) -> list[str]:
    """Draw the values of one column."""
    if column.role == "identifier":
        return [f"{name} {number}" for number in range(1, size + 1)]
    if column.values:
        return [column.values[at] for at in draws.integers(0, len(column.values), size).tolist()]
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
    declared = column.hierarchy.dates
    if declared.levels[0] == "hour":
        return hierarchy.values  # which are read as times
    firsts: dict[str, dt.date] = {}  # a month is the label of its days, and no day
    for ordinal in range(declared.low.toordinal(), declared.high.toordinal() + 1):
        day = dt.date.fromordinal(ordinal)
        firsts.setdefault(hierarchy.locate(day) or "", day)
    return [firsts[value].strftime(declared.format) for value in hierarchy.values]
