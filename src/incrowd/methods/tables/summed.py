"""The distinct tuples of a table together with the sums of numeric columns over their rows.

A value is a whole number of steps, from 0 to ``steps``: it is moved to the nearest step and into
the declared bounds before anything is added, row by row, so a row adds no more than that whatever
it holds. Rows without a number in a summed column are left out of everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np

from incrowd.arrays import Codes, Counts
from incrowd.codes.counted_table import CountedTable
from incrowd.codes.frequency import Frequencies
from incrowd.codes.values import canonicalize_value, parse_number
from incrowd.engine.count import build_hierarchies, make_coders
from incrowd.engine.table import RemoteTuples, Table, TooManyTuplesError
from incrowd.methods.safe.remote_counts import RemoteCountedTable, count_local_or_remote
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.table_request import SumRequest


@dataclass(frozen=True)
class StepCoder:
    """From values of a summed column to whole steps; ``steps`` + 1 is no number."""

    lower: Decimal
    step: Decimal
    steps: int

    def __call__(self, values: Sequence[object]) -> Codes:
        """Return the steps of each value."""
        return np.array([self._find_step(value) for value in values], dtype=np.int32)

    def _find_step(self, value: object) -> int:
        number = parse_number(canonicalize_value(value))
        if number is None:
            return self.steps + 1
        if number <= self.lower:
            return 0
        if number >= self.lower + self.step * self.steps:
            return self.steps
        return int(((number - self.lower) / self.step).to_integral_value(ROUND_HALF_EVEN))


@dataclass(frozen=True, eq=False)
class SummedTable(CountedTable):
    """Distinct tuples, and for each summed column the steps of the rows of each tuple, in all.

    ``without`` counts the rows that are left out, because a number is missing.
    """

    steps: tuple[Counts, ...]
    without: int


@dataclass(frozen=True, eq=False)
class RemoteSummedTable(RemoteCountedTable):
    """The same, where they are: ``with_steps`` has a further code for each summed column."""

    with_steps: RemoteTuples
    sums: tuple[SumRequest, ...]


def count_with_sums(
    table: Table, declared: ColumnHierarchies, sums: tuple[SumRequest, ...]
) -> CountedTable | RemoteCountedTable:
    """Count the distinct tuples of a table, and add up the steps of its summed columns."""
    if not sums:
        return count_local_or_remote(table, declared)
    width = len(declared.names)
    names = (*declared.names, *(request.column for request in sums))
    table = table.gather_columns(names)
    hierarchies, levels = build_hierarchies(table, declared), (0,) * width
    nothing = Frequencies(np.zeros((0, width), dtype=np.int32), np.zeros(0, dtype=np.int64))
    coders = make_coders(CountedTable(declared.names, hierarchies, levels, nothing))
    for request in sums:
        coders[request.column] = StepCoder(request.bounds[0], request.size, request.steps)
    try:
        frequencies = table.count(names, coders)
    except TooManyTuplesError as error:
        if error.spread is None:
            raise
        remote = error.spread
        plain = remote.select_columns(range(width))
        return RemoteSummedTable(
            declared.names, hierarchies, levels, levels, plain, with_steps=remote, sums=sums
        )
    return SummedTable(declared.names, hierarchies, levels, *add_steps(frequencies, width, sums))


def add_steps(
    frequencies: Frequencies, width: int, sums: Sequence[SumRequest]
) -> tuple[Frequencies, tuple[Counts, ...], int]:
    """Return the tuples of the first columns, the steps of each, and how many rows have none."""
    steps = frequencies.codes[:, width:]
    is_whole = (steps <= np.array([request.steps for request in sums])).all(axis=1)
    codes, steps = frequencies.codes[is_whole, :width], steps[is_whole].astype(np.int64)
    counts = frequencies.counts[is_whole]
    without = int(frequencies.counts[~is_whole].sum())
    # Tuples are in order, so those alike in the first columns are neighbors.
    is_new = np.append(True, (codes[1:] != codes[:-1]).any(axis=1))[: len(codes)]
    starts = np.flatnonzero(is_new)

    def add(numbers: Counts) -> Counts:
        return np.add.reduceat(numbers, starts) if len(starts) else numbers

    summed = tuple(add(steps[:, at] * counts) for at in range(len(sums)))
    return Frequencies(codes[starts], add(counts)), summed, without
