"""Exact tables of coded rows, dense, as :func:`.measure.measure_residuals` asks for them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from incrowd.anonymize.tables.workload import Columns, Levels, Workload
from incrowd.arrays import Codes, Counts, Places
from incrowd.errors import ParameterError

_EXACT = 2**53  # floats hold whole numbers up to here
_AT_ONCE = 2**22  # rows whose places are in memory at a time


class CodeTables:
    """Rows, or distinct rows and how often each occurs, from which any table is counted.

    Call it with a quantity, columns and levels.
    """

    def __init__(
        self,
        workload: Workload,
        codes: Sequence[Codes],
        weights: Counts | None = None,
        steps: Sequence[Counts] = (),
    ) -> None:
        """Hold the rows.

        Args:
            workload: The columns and what is asked for.
            codes: The value of each row at level 0, an array for each column of the workload.
            weights: How often each row occurs; once if left out.
            steps: For each summed column the steps of each row, summed over its occurrences.

        """
        if len(codes) != len(workload.axes) or len(steps) != len(workload.sums):
            raise ParameterError("codes", "hold every column", (len(codes), len(steps)))
        self._workload = workload
        self._codes = tuple(codes)
        self._quantities = [
            None if x is None else np.asarray(x, dtype=np.int64) for x in (weights, *steps)
        ]
        for axis, values in zip(workload.axes, codes, strict=True):
            if len(values) and not 0 <= int(values.min()) <= int(values.max()) < axis.size:
                raise ParameterError(axis.name, f"hold codes below {axis.size}", int(values.max()))

    def __call__(self, quantity: int, columns: Columns, levels: Levels) -> Counts:
        """Return the dense table of a quantity."""
        shape = self._workload.shape(columns, levels)
        size = math.prod(shape)
        numbers = self._quantities[quantity]
        counts = np.zeros(size, dtype=np.int64)
        rows = len(self._codes[0]) if self._codes else 0
        for start in range(0, rows, _AT_ONCE):
            rows_now = slice(start, start + _AT_ONCE)
            places = self._find_places(columns, levels, rows_now)
            counts += _sum_exactly(places, None if numbers is None else numbers[rows_now], size)
        return counts.reshape(shape)

    def _find_places(self, columns: Columns, levels: Levels, rows: slice) -> Places:
        """Return the cell of each row."""
        length = len(self._codes[0][rows])
        places: Places = np.zeros(length, dtype=np.int64)
        for column, level in zip(columns, levels, strict=True):
            axis = self._workload.axes[column]
            codes = self._codes[column][rows]
            places *= axis.sizes[level]
            places += codes if level == 0 else axis.map_values(level)[codes]
        return places


def _sum_exactly(places: Places, numbers: Counts | None, size: int) -> Counts:
    """Return the sum of whole numbers in each cell; floats add them if they stay exact."""
    if numbers is None:
        return np.bincount(places, minlength=size).astype(np.int64)
    if len(numbers) and int(np.abs(numbers).max()) * len(numbers) >= _EXACT:
        sums = np.zeros(size, dtype=np.int64)
        np.add.at(sums, places, numbers)
        return sums
    return np.rint(np.bincount(places, numbers.astype(np.float64), minlength=size)).astype(np.int64)
