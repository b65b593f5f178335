"""How far tables of counts are from the table that they count: errors, coverage, bias near zero.

For the curator alone: no figure here is covered by the guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from incrowd.arrays import Bools, Counts, Floats
from incrowd.measure.evaluation import Evaluation

_AT_ONCE = 1 << 22  # lines that are measured at a time
_APPLICABLE = ("rows_original", "rows_released", "tables", "excluded", "findings")


@dataclass(frozen=True)
class SumErrors:
    """The true errors of the sums of one table; of values within the bounds, in whole steps.

    Attributes:
        column: The column that is summed.
        expected: Root mean squared error of the estimates that the plan states.
        estimate: Root mean squared error of the estimates.
        sum: Root mean squared error of the whole sums.
        coverage: Share of the 95 % intervals that contain the true sum, totals included.
        mean_coverage: Share of those of means, over the lines that some row is in.
    """

    column: str
    expected: float
    estimate: float
    sum: float
    coverage: float
    mean_coverage: float


@dataclass(frozen=True)
class TableErrors:
    """The true errors of one table, over its finest cells; coverage over all of its lines.

    Attributes:
        columns: The columns of the table.
        lines: Number of its lines, totals included.
        cells: Number of its finest cells.
        empty: Share of these that no row of the input is in.
        expected: Root mean squared error of the estimates that the plan states.
        estimate: Root mean squared error of the estimates.
        count: Root mean squared error of the counts.
        largest: Largest error of a count.
        distance: Total variation distance between the true shares and those of the counts, 0 to 1.
        coverage: Share of the 95 % intervals that contain the true count, totals included.
        bias: Mean of count minus true count over cells that no row is in; None if there are none.
        sums: The errors of the sums of its cells; None without sums.
    """

    columns: tuple[str, ...]
    lines: int
    cells: int
    empty: float
    expected: float
    estimate: float
    count: float
    largest: int
    distance: float
    coverage: float
    bias: float | None
    sums: SumErrors | None = None


@dataclass(frozen=True, kw_only=True)
class TablesEvaluation(Evaluation):
    """An evaluation of tables of counts.

    Attributes:
        tables: The errors of each table.
        excluded: Rows that no table counts; None if their number is not known.
    """

    tables: tuple[TableErrors, ...] = ()
    excluded: int | None = None

    @property
    def coverage(self) -> float:
        """The share of all intervals that contain the true count; tables count alike."""
        return float(np.mean([table.coverage for table in self.tables])) if self.tables else 1.0

    def as_dict(self) -> dict[str, Any]:
        """Return the evaluation as plain values, for JSON."""
        values = super().as_dict()
        return {name: values[name] for name in _APPLICABLE if name in values}


def measure_table(
    columns: Sequence[str],
    *,
    truth: Counts,
    count: Counts,
    estimate: Floats,
    sd: Floats,
    is_finest: Bools,
    within: float,
) -> TableErrors:
    """Measure one table, all of whose lines are given; ``is_finest`` marks its cells."""
    numbers = [np.ascontiguousarray(x).reshape(-1) for x in (truth, count)]
    figures = [np.ascontiguousarray(x).reshape(-1) for x in (estimate, sd)]
    is_cell_line = np.ascontiguousarray(is_finest).reshape(-1)
    parts = [slice(start, start + _AT_ONCE) for start in range(0, truth.size, _AT_ONCE)]
    totals = [sum(int(x[part][is_cell_line[part]].sum()) for part in parts) for x in numbers]
    cells = largest = empty = covered = extra = 0
    expected = squares = count_squares = distance = 0.0
    for part in parts:
        true_counts, counts = (x[part] for x in numbers)
        estimates, deviations = (x[part] for x in figures)
        is_cell = is_cell_line[part]
        low, high = estimates - within * deviations, estimates + within * deviations
        covered += int(((low <= true_counts) & (true_counts <= high)).sum())
        if not is_cell.any():
            continue
        true_counts, counts = true_counts[is_cell], counts[is_cell]
        estimates, deviations = estimates[is_cell], deviations[is_cell]
        errors = counts - true_counts
        cells += len(errors)
        largest = max(largest, int(np.abs(errors).max()))
        empty += int((true_counts == 0).sum())
        extra += int(counts[true_counts == 0].sum())
        expected += float((deviations**2).sum())
        squares += float(((estimates - true_counts) ** 2).sum())
        count_squares += float((errors.astype(np.float64) ** 2).sum())
        true_shares, shares = true_counts / max(totals[0], 1), counts / max(totals[1], 1)
        distance += float(np.abs(true_shares - shares).sum() / 2)
    return TableErrors(
        columns=tuple(columns),
        lines=truth.size,
        cells=cells,
        empty=empty / cells,
        expected=math.sqrt(expected / cells),
        estimate=math.sqrt(squares / cells),
        count=math.sqrt(count_squares / cells),
        largest=largest,
        distance=distance,
        coverage=covered / truth.size,
        bias=extra / empty if empty else None,
    )


def measure_sums(
    column: str,
    *,
    truth: Floats,
    rows: Counts,
    whole_sums: Floats,
    estimate: Floats,
    sd: Floats,
    means: tuple[Floats, Floats],
    is_finest: Bools,
    within: float,
) -> SumErrors:
    """Measure the sums of one table, all of whose lines are given, and the intervals of means."""
    covers = np.abs(estimate - truth) <= within * sd
    is_filled = rows > 0
    true_means = truth[is_filled] / rows[is_filled]
    slack = 1e-9 * np.abs(true_means)
    low, high = (ends[is_filled] for ends in means)
    covers_mean = (low <= true_means + slack) & (true_means <= high + slack)

    def compute_error(errors: Floats) -> float:
        return math.sqrt(float((errors[is_finest] ** 2).mean()))

    return SumErrors(
        column,
        expected=compute_error(sd),
        estimate=compute_error(estimate - truth),
        sum=compute_error(whole_sums - truth),
        coverage=float(covers.mean()),
        mean_coverage=float(covers_mean.mean()) if is_filled.any() else 1.0,
    )
