"""The files of measured tables: numbers with noise, counts with standard deviations, the model.

A file has a line for each cell: the labels of its groups, the whole numbers that were measured
(``measured``; several of them if the table was measured again), the estimated ``count`` of rows
with its standard deviation ``sd``, and what the ``model`` expects.

**Claim.** ``count`` is unbiased, and ``sd`` is its standard deviation: count +- 1.96 sd covers the
true count with probability 0.95 (the noise is a sum of independent discrete Gaussians, normal to
far beyond the digits shown).

**Proof.** A table T is the sum of its parts P_A T, over all sets A of its centered axes C: P_A
centers along A and takes means along C without A. The measurement gives P_C T, with noise that
centering leaves the share of (1 - 1/a) along each axis. A part P_A T with A smaller than C is, up
to the factor 1 / (product of a over C without A), the centered margin along A, and that is the
query of another measured table: one of fewer columns. Of one column it may be summed up from the
column's finest values, which the one-way table measures; if that one is centered, its mean is the
number of rows over the number of values. Noise of different tables is independent, so variances
add; the number of rows may enter several times, and its coefficients are summed before they are
squared. Where a margin was not measured, as of three columns, nothing is estimated.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from incrowd.arrays import Codes, Floats
from incrowd.release.synthetic_part import MeasuredNumbers
from incrowd.release.value_column import ValueColumn

EXTRA = ("count", "sd", "model")
_DIGITS = 3


class CountEstimates:
    """Estimated counts of measured tables, from all of them together.

    ``columns`` tells the groups of each column's values.
    """

    def __init__(
        self, tables: Sequence[MeasuredNumbers], columns: Mapping[str, ValueColumn]
    ) -> None:
        self._tables = {(table.columns, table.levels): table for table in tables}
        self._columns = columns
        self._total = self._tables[(), ()]

    def estimate(self, table: MeasuredNumbers) -> tuple[Floats, Floats] | None:
        """Return the count of each cell and its standard deviation; None if a margin is unknown."""
        shape = table.shape
        count, variance = np.zeros(shape), np.zeros(shape)
        rows = np.zeros(shape)  # the coefficient of the number of rows in each cell
        for size in range(len(table.centered) + 1):
            for along in combinations(table.centered, size):
                part = self._estimate_part(table, along)
                if part is None:
                    return None
                count = count + part[0]
                variance = variance + part[1]
                rows = rows + part[2]
        total = float(self._total.mean)
        return count + rows * total, np.sqrt(variance + rows**2 * self._total.variance)

    def _estimate_part(
        self, table: MeasuredNumbers, along: tuple[int, ...]
    ) -> tuple[Floats, Floats, Floats] | None:
        """Return P_A T but for the number of rows, its variance, and the coefficient of that."""
        missing = [axis for axis in table.centered if axis not in along]
        kept_axes = [axis for axis in range(len(table.shape)) if axis not in missing]
        factor = 1 / math.prod(table.shape[axis] for axis in missing)
        shape = [n if axis in kept_axes else 1 for axis, n in enumerate(table.shape)]
        if not kept_axes:
            if not table.shape:
                return np.array(0.0), np.array(0.0), np.array(1.0)
            return np.zeros(shape), np.zeros(shape), np.full(shape, factor)
        columns = tuple(table.columns[axis] for axis in kept_axes)
        levels = tuple(table.levels[axis] for axis in kept_axes)
        source = self._tables.get((columns, levels))
        if source is not None:
            axes = [kept_axes.index(axis) for axis in along]
            estimate = _center(source.mean, axes)
            spread = source.variance * math.prod(1 - 1 / source.shape[axis] for axis in axes)
            return (
                factor * estimate.reshape(shape),
                np.full(shape, factor**2 * spread),
                np.zeros(shape),
            )
        if len(kept_axes) > 1:
            return None
        estimate, spreads, rows = self._sum_up(columns[0], levels[0], centered=bool(along))
        parts = (factor * estimate, factor**2 * spreads, factor * rows)
        return parts[0].reshape(shape), parts[1].reshape(shape), parts[2].reshape(shape)

    def _sum_up(self, column: str, level: int, *, centered: bool) -> tuple[Floats, Floats, Floats]:
        """Return the groups of a column from its finest values; as :meth:`_estimate_part`."""
        source = self._tables[(column,), (0,)]
        leaves, groups = source.shape[0], self._columns[column].list_groups(level)
        number = int(groups.max()) + 1
        if not source.centered:
            return _sum_groups(source.mean, source.variance, groups, centered=centered)
        weights = (np.arange(number)[:, None] == groups[None, :]).astype(np.float64)
        rows = weights.sum(axis=1) / leaves
        weights = weights - weights.mean(axis=1, keepdims=True)
        if centered:
            weights, rows = _center(weights, [0]), _center(rows, [0])
        return weights @ source.mean, source.variance * (weights**2).sum(axis=1), rows


def _sum_groups(
    counts: Floats, variance: float, groups: Codes, *, centered: bool
) -> tuple[Floats, Floats, Floats]:
    """Return groups summed up from values that were not centered, of which there may be very many.

    Centered, a value has the weight 1 - 1/g in its own group, of g, and -1/g in every other.
    """
    sums = np.bincount(groups, counts).astype(np.float64)
    sizes = np.bincount(groups).astype(np.float64)
    number = len(sums)
    if not centered:
        return sums, variance * sizes, np.zeros(number)
    spreads = sizes * (1 - 1 / number) ** 2 + (len(groups) - sizes) / number**2
    return sums - sums.mean(), variance * spreads, np.zeros(number)


def _center(table: Floats, axes: Sequence[int]) -> Floats:
    for axis in axes:
        table = table - table.mean(axis=axis, keepdims=True)
    return table


# Files ----------------------------------------------------------------------------------------


def list_headers(columns: Sequence[str], measurements: int, *, estimated: bool) -> list[str]:
    """Return the names of the columns of a file; ours give way to those of the data."""
    headers = [f"measured_{at}" for at in range(1, measurements + 1)]
    headers = headers if measurements > 1 else ["measured"]
    headers += list(EXTRA) if estimated else ["model"]
    while set(headers) & set(columns):
        headers = [f"{name}_" for name in headers]
    return [*columns, *headers]


def write_measured(table: MeasuredNumbers, estimates: CountEstimates) -> str:
    """Return the file of a measured table."""
    estimate = estimates.estimate(table)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    measurements = len(table.variances)
    writer.writerow(list_headers(table.columns, measurements, estimated=estimate is not None))
    columns: list[Sequence[object]] = [numbers.ravel().tolist() for numbers in table.numbers]
    real = [table.model] if estimate is None else [*estimate, table.model]
    columns += [[f"{x:.{_DIGITS}f}" for x in np.ravel(numbers).tolist()] for numbers in real]
    cells = np.stack(np.unravel_index(np.arange(math.prod(table.shape)), table.shape or (1,)))
    for number, place in enumerate(cells.T.tolist()):
        labels = [table.labels[axis][at] for axis, at in enumerate(place) if table.shape]
        writer.writerow([*("" if x is None else x for x in labels), *(c[number] for c in columns)])
    return text.getvalue()


def read_measured(text: str, expected: MeasuredNumbers) -> MeasuredNumbers:
    """Read a file of a measured table whose columns, labels and variances are known.

    Raises:
        ValueError: if it is not the file of such a table.

    """
    lines = list(csv.reader(io.StringIO(text, newline="")))
    width = len(expected.columns)
    if not lines or len(lines) - 1 != math.prod(expected.shape):
        raise ValueError("it does not have a line for each cell")
    header, rows = lines[0], lines[1:]
    estimated = len(header) - width - len(expected.variances) > 1
    headers = list_headers(expected.columns, len(expected.variances), estimated=estimated)
    if header != headers:
        raise ValueError("its columns are not those of a measured table")
    if any(len(row) != len(header) for row in rows):
        raise ValueError("a line is longer or shorter than the first")
    cells = np.stack(np.unravel_index(np.arange(len(rows)), expected.shape or (1,)))
    for row, place in zip(rows, cells.T.tolist(), strict=True):
        labels = [expected.labels[axis][at] or "" for axis, at in enumerate(place[:width])]
        if row[:width] != labels:
            raise ValueError(f"a line has {row[:width]} where {labels} are declared")
    ends = width + len(expected.variances)
    numbers = [[_whole(row[at]) for row in rows] for at in range(width, ends)]
    model = [float(row[-1]) for row in rows]
    return MeasuredNumbers(
        expected.columns, expected.levels, expected.centered,
        tuple(np.array(number, dtype=np.int64).reshape(expected.shape) for number in numbers),
        expected.variances, expected.held, expected.labels,
        np.array(model).reshape(expected.shape),
    )  # fmt: skip


def _whole(text: str) -> int:
    number = int(text)
    if str(number) != text or abs(number) >= 2**62:
        raise ValueError(f"'{text}' is no whole number")
    return number
