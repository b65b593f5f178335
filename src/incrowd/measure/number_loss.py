"""What replacing numbers by those of their classes changes: means, variances, correlations, IL1s.

IL1s is the mean distance of a published number from its own, in units of the square root of 2 times
the standard deviation of the column (Yancey, Winkler and Creecy 2002). It needs to know which row
is whose; the other figures compare the two tables alone. Class means keep the mean of a column if
no row is suppressed, and lower its variance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Counts, Floats
from incrowd.codes.frequency import Frequencies
from incrowd.codes.values import canonicalize_value, parse_number


@dataclass(frozen=True)
class NumberLoss:
    """One column of numbers, in the table and in the release; None where there is no number.

    Attributes:
        column: The column.
        mean_before: Mean in the table.
        mean_after: Mean in the release.
        variance_before: Variance (of n - 1) in the table.
        variance_after: That in the release.
        il1s: Mean distance of a published number from its own, over the square root of 2 times the
            standard deviation; None where nobody knows which row is whose.
    """

    column: str
    mean_before: float | None
    mean_after: float | None
    variance_before: float | None
    variance_after: float | None
    il1s: float | None


@dataclass(frozen=True)
class CorrelationLoss:
    """The correlation (Pearson) of two columns of numbers, in the table and in the release."""

    first: str
    second: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class NumberEvaluation:
    """What a release does to numbers that classes show by their mean or median."""

    columns: tuple[NumberLoss, ...]
    correlations: tuple[CorrelationLoss, ...]

    @property
    def il1s(self) -> float | None:
        """The mean of IL1s over columns."""
        values = [column.il1s for column in self.columns if column.il1s is not None]
        return float(np.mean(values)) if values else None


def evaluate_numbers(
    names: Sequence[str],
    values: Mapping[str, Sequence[object]],
    before: Frequencies,
    after: Frequencies,
    first: int,
    paired: Frequencies | None = None,
) -> NumberEvaluation:
    """Compare columns of two tables whose codes stand for ``values``, from column ``first`` on.

    ``paired`` has the codes of each original row, and then of what it shows, column by column.
    """
    listed = list(values)
    numbers = {name: _read_numbers(values[name]) for name in names}
    tables = [
        (
            {name: numbers[name][t.codes[:, first + listed.index(name)]] for name in names},
            t.counts,
        )
        for t in (before, after)
    ]
    columns = []
    for at, name in enumerate(names):
        (mean, variance), (mean_after, variance_after) = (
            describe_numbers(columns_of[name], counts) for columns_of, counts in tables
        )
        il1s = None
        if paired is not None and variance:
            original, visible = (
                numbers[name][paired.codes[:, at]], numbers[name][paired.codes[:, len(names) + at]],
            )  # fmt: skip
            il1s = compute_il1s(original, visible, paired.counts, math.sqrt(variance))
        columns.append(NumberLoss(name, mean, mean_after, variance, variance_after, il1s))
    pairs = [(a, b) for at, a in enumerate(names) for b in names[at + 1 :]]
    correlations = tuple(
        CorrelationLoss(a, b, *(
            compute_correlation(columns_of[a], columns_of[b], counts)
            for columns_of, counts in tables
        ))
        for a, b in pairs
    )  # fmt: skip
    return NumberEvaluation(tuple(columns), correlations)


def describe_numbers(values: Floats, counts: Counts) -> tuple[float | None, float | None]:
    """Return mean and variance (of n - 1); entries stand for so many rows each, NaN for none.

    >>> describe_numbers(np.array([1.0, 3.0, np.nan]), np.array([1, 1, 5]))
    (2.0, 2.0)
    """
    valid = ~np.isnan(values)
    total = int(counts[valid].sum())
    if not total:
        return None, None
    mean = float(values[valid] @ counts[valid]) / total
    if total < 2:
        return mean, None
    return mean, float(((values[valid] - mean) ** 2) @ counts[valid]) / (total - 1)


def compute_il1s(
    original: Floats, visible: Floats, counts: Counts, deviation: float
) -> float | None:
    """Return the mean of |x - x'| / (sqrt(2) S) over rows that have both numbers."""
    valid = ~(np.isnan(original) | np.isnan(visible))
    total = int(counts[valid].sum())
    if not total:
        return None
    distance = float(np.abs(original - visible)[valid] @ counts[valid])
    return distance / total / (math.sqrt(2) * deviation)


def compute_correlation(first: Floats, second: Floats, counts: Counts) -> float | None:
    """Return Pearson's correlation over rows that have both numbers; None of a constant."""
    valid = ~(np.isnan(first) | np.isnan(second))
    x, y, rows = first[valid], second[valid], counts[valid]
    total = int(rows.sum())
    if total < 2:
        return None
    x, y = x - float(x @ rows) / total, y - float(y @ rows) / total
    spread = math.sqrt(float((x * x) @ rows) * float((y * y) @ rows))
    return float((x * y) @ rows) / spread if spread else None


def _read_numbers(values: Sequence[object]) -> Floats:
    numbers = (parse_number(canonicalize_value(value)) for value in values)
    return np.array([math.nan if x is None else float(x) for x in numbers])
