"""What replaced numbers change: against NumPy, row by row."""

from __future__ import annotations

import math

import numpy as np
import pytest

from incrowd.codes.frequency import merge_tuples
from incrowd.measure.number_loss import (
    compute_correlation,
    compute_il1s,
    describe_numbers,
    evaluate_numbers,
)


def test_figures_against_numpy() -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 5, 40)
    x, y = rng.normal(size=40), rng.normal(size=40)
    x[5] = math.nan
    every_x, every_y = np.repeat(x, counts), np.repeat(y, counts)
    mean, variance = describe_numbers(x, counts)
    assert mean == pytest.approx(np.nanmean(every_x))
    assert variance == pytest.approx(np.nanvar(every_x, ddof=1))
    valid = ~np.isnan(every_x)
    correlation = np.corrcoef(every_x[valid], every_y[valid])[0, 1]
    assert compute_correlation(x, y, counts) == pytest.approx(correlation)
    distance = np.abs(every_x - every_y)[valid].mean() / (math.sqrt(2) * 1.5)
    assert compute_il1s(x, y, counts, 1.5) == pytest.approx(distance)


def test_nothing_to_compare() -> None:
    none, single = np.array([math.nan]), np.array([1])
    assert describe_numbers(none, single) == (None, None)
    assert describe_numbers(np.array([2.0]), single) == (2.0, None)
    assert compute_il1s(none, none, single, 1.0) is None
    assert compute_correlation(np.ones(3), np.arange(3.0), np.ones(3, dtype=np.int64)) is None


def test_means_of_two_halves() -> None:
    """Four rows shown as two means: by hand."""
    values: dict[str, list[object]] = {"group": ["a", "b"], "x": [1, 2, 5, 8, 1.5, 6.5]}
    ones = np.ones(4, dtype=np.int64)
    before = merge_tuples(np.array([[0, 0, 0], [0, 0, 1], [0, 1, 2], [0, 1, 3]], np.int32), ones)
    after = merge_tuples(np.array([[0, 0, 4], [0, 0, 4], [0, 1, 5], [0, 1, 5]], np.int32), ones)
    paired = merge_tuples(np.array([[0, 4], [1, 4], [2, 5], [3, 5]], np.int32), ones)
    result = evaluate_numbers(["x"], values, before, after, 1, paired)
    (column,) = result.columns
    assert (column.mean_before, column.mean_after) == (4.0, 4.0)
    assert column.variance_before == pytest.approx(10.0)
    assert column.variance_after == pytest.approx(25 / 3)
    assert column.il1s == pytest.approx((0.5 + 0.5 + 1.5 + 1.5) / 4 / math.sqrt(20))
    assert result.il1s == column.il1s
    assert evaluate_numbers(["x"], values, before, after, 1).il1s is None
