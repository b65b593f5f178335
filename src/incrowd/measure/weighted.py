"""Weighted means and shares, with their standard errors, before and after a release.

**Standard error** of the weighted mean m = sum w y / sum w, by linearization with rows drawn with
replacement (the usual first-order variance of a survey of one stage):

    V = n / (n - 1) * sum (w (y - m))^2 / (sum w)^2.

A design with strata or clusters has another variance, which is not known here. With equal weights
it is the standard error of a mean. The one after a release is that of the published rows and
weights; that calibration to known totals lowers the true one is not credited.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Codes, Counts, Floats
from incrowd.codes.frequency import Frequencies
from incrowd.codes.values import canonicalize_value, parse_number

_MOST_VALUES = 20  # of a column whose shares are estimated


@dataclass(frozen=True)
class SurveyEstimate:
    """A weighted mean, or share of a value, in the table and in the release.

    Attributes:
        column: The column.
        value: The value whose share it is; None for a mean of numbers.
        before: Estimate from the table.
        before_error: Its standard error.
        after: Estimate from the release; None if no row of the release has the column.
        after_error: Its standard error.
    """

    column: str
    value: str | None
    before: float
    before_error: float
    after: float | None
    after_error: float | None


@dataclass(frozen=True)
class WeightedEvaluation:
    """What survey weights estimate before and after a release.

    Attributes:
        weight: The column of weights.
        total_before: Sum of the weights of the table: the estimated population.
        total_after: Sum of the weights of the release.
        effective_before: Effective number of rows of the table, (sum w)^2 / sum w^2.
        effective_after: That of the release.
        estimates: Means and shares of the columns that are published unchanged.
    """

    weight: str
    total_before: float
    total_after: float
    effective_before: float
    effective_after: float
    estimates: tuple[SurveyEstimate, ...]


def estimate_mean(values: Floats, weights: Floats, rows: Counts) -> tuple[float, float]:
    """Return the weighted mean and its standard error; entries stand for so many rows each.

    >>> estimate_mean(np.array([1.0, 3.0]), np.ones(2), np.array([50, 50]))
    (2.0, 0.10050378152592121)
    """
    total = float(weights @ rows)
    mean = float((weights * values) @ rows) / total
    count = int(rows.sum())
    if count < 2:
        return mean, math.nan
    squares = float(((weights * (values - mean)) ** 2) @ rows)
    return mean, math.sqrt(count / (count - 1) * squares) / total


def count_effective_rows(weights: Floats, rows: Counts) -> float:
    """Return the number of equally weighted rows that estimate as well."""
    return float(weights @ rows) ** 2 / max(float((weights * weights) @ rows), 1e-300)


def evaluate_weighted(
    weight: str,
    columns: Mapping[str, Sequence[object]],
    before: Frequencies,
    after: Frequencies,
    first: int,
) -> WeightedEvaluation | None:
    """Return what the weights estimate of all other kept columns; None if they are no numbers.

    ``columns`` lists the values behind the codes of each column that is kept; theirs are the
    columns of both tables from ``first`` on.
    """
    places = {name: first + at for at, name in enumerate(columns)}
    weights = _read_numbers(columns[weight])
    tables = [_select_rows(table, places[weight], weights) for table in (before, after)]
    (codes, w, rows), (codes_after, w_after, rows_after) = tables
    if not rows.sum():
        return None
    estimates: list[SurveyEstimate] = []
    for name, values in columns.items():
        if name == weight:
            continue
        for value, numbers in _list_variables(values, codes[:, places[name]]):
            estimate = _estimate(numbers[codes[:, places[name]]], w, rows)
            later = _estimate(numbers[codes_after[:, places[name]]], w_after, rows_after)
            if estimate is not None:
                mean, error = estimate
                estimates.append(SurveyEstimate(name, value, mean, error, *(later or (None, None))))
    return WeightedEvaluation(
        weight=weight,
        total_before=float(w @ rows),
        total_after=float(w_after @ rows_after),
        effective_before=count_effective_rows(w, rows),
        effective_after=count_effective_rows(w_after, rows_after),
        estimates=tuple(estimates),
    )


def _read_numbers(values: Sequence[object]) -> Floats:
    """Return values as numbers, those that are none as NaN."""
    numbers = (parse_number(canonicalize_value(value)) for value in values)
    return np.array([math.nan if x is None else float(x) for x in numbers])


def _select_rows(table: Frequencies, at: int, weights: Floats) -> tuple[Codes, Floats, Counts]:
    """Return the entries with a positive weight: codes, weights and rows."""
    chosen = weights[table.codes[:, at]]
    valid = np.nan_to_num(chosen) > 0
    return table.codes[valid], chosen[valid], table.counts[valid]


def _list_variables(values: Sequence[object], used: Codes) -> list[tuple[str | None, Floats]]:
    """Return what is estimated of a column: its mean if it has numbers, or the share of values."""
    numbers = _read_numbers(values)
    texts = [canonicalize_value(value) for value in values]
    met = sorted(set(used.tolist()))
    if all(texts[code] is None or not math.isnan(numbers[code]) for code in met):
        return [(None, numbers)]
    if len(met) > _MOST_VALUES:
        return []
    named = sorted({texts[code] for code in met if texts[code] is not None}, key=str)
    is_null = np.array([text is None for text in texts])
    shares = []
    for value in named:
        indicator = np.array([float(text == value) for text in texts])
        indicator[is_null] = math.nan
        shares.append((value, indicator))
    return list(shares)


def _estimate(values: Floats, weights: Floats, rows: Counts) -> tuple[float, float] | None:
    """Return the estimate from the entries that have a value; None of fewer than two rows."""
    valid = ~np.isnan(values)
    if rows[valid].sum() < 2:
        return None
    return estimate_mean(values[valid], weights[valid], rows[valid])
