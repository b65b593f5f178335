"""Weighted means and their standard errors: by hand, and by drawing samples."""

from __future__ import annotations

import math

import numpy as np
import pytest

from incrowd.codes.frequency import merge_tuples
from incrowd.measure.weighted import count_effective_rows, estimate_mean, evaluate_weighted


def test_equal_weights_have_the_standard_error_of_a_mean() -> None:
    values = np.array([3.0, 5.0, 9.0, 4.0])
    mean, error = estimate_mean(values, np.full(4, 7.0), np.ones(4, dtype=np.int64))
    assert mean == pytest.approx(5.25)
    assert error == pytest.approx(values.std(ddof=1) / 2)


def test_entries_stand_for_rows() -> None:
    values, weights, rows = np.array([1.0, 4.0]), np.array([2.0, 5.0]), np.array([3, 2])
    once = estimate_mean(np.repeat(values, rows), np.repeat(weights, rows), np.ones(5, dtype=int))
    assert estimate_mean(values, weights, rows) == pytest.approx(once)
    assert math.isnan(estimate_mean(values[:1], weights[:1], np.array([1]))[1])


def test_standard_error_is_the_spread_of_estimates() -> None:
    """2,000 samples of 200 people chosen with replacement, with unequal chances: within 8 %.

    The standard deviation of the estimates has a relative error of about 1.6 %, the mean of the
    standard errors less: a false alarm is beyond four standard deviations.
    """
    rng = np.random.default_rng(6)
    values = rng.gamma(2.0, 1.0, 5000)
    chances = rng.uniform(1, 4, 5000)
    chances /= chances.sum()
    means, errors = [], []
    for _ in range(2000):
        chosen = rng.choice(5000, 200, p=chances)
        mean, error = estimate_mean(values[chosen], 1 / chances[chosen], np.ones(200, dtype=int))
        means.append(mean)
        errors.append(error)
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.08)
    assert abs(np.mean(means) - values.mean()) < 4 * np.std(means) / math.sqrt(2000) + 0.01


def test_effective_rows() -> None:
    assert count_effective_rows(np.array([3.0]), np.array([40])) == pytest.approx(40)
    assert count_effective_rows(np.array([1.0, 3.0]), np.array([1, 1])) == pytest.approx(1.6)


def test_estimates_before_and_after() -> None:
    """One quasi column, weights, an amount with a null, and answers; the last row is suppressed."""
    columns: dict[str, list[object]] = {
        "w": [10.0, 20.0], "amount": [1, 5, None], "answer": ["no", "yes", None],
    }  # fmt: skip
    rows = np.array([[0, 0, 0, 1], [0, 1, 1, 0], [0, 1, 2, 2], [0, 0, 1, 1]], dtype=np.int32)
    before = merge_tuples(rows, np.ones(4, dtype=np.int64))
    after = merge_tuples(rows[:3], np.ones(3, dtype=np.int64))
    result = evaluate_weighted("w", columns, before, after, 1)
    assert result is not None
    assert (result.total_before, result.total_after) == (60, 50)
    amount, no, yes = result.estimates
    assert (amount.column, amount.value) == ("amount", None)
    assert amount.before == pytest.approx((10 * 1 + 20 * 5 + 10 * 5) / 40)
    assert amount.after == pytest.approx((10 * 1 + 20 * 5) / 30)
    assert (no.value, yes.value) == ("no", "yes")
    assert (no.before, yes.before) == pytest.approx((20 / 40, 20 / 40))
    assert (no.after, yes.after) == pytest.approx((20 / 30, 10 / 30))
    by_hand = math.sqrt(3 / 2 * (10**2 + 20**2 + 10**2) * 0.25) / 40
    assert yes.before_error == pytest.approx(by_hand)


def test_a_release_without_rows_estimates_nothing() -> None:
    rows = np.array([[0, 0], [0, 1]], dtype=np.int32)
    before = merge_tuples(rows, np.ones(2, dtype=np.int64))
    nothing = merge_tuples(rows[:0], np.zeros(0, dtype=np.int64))
    result = evaluate_weighted(
        "w",
        {"w": [2], "x": [1, 2]},
        before=merge_tuples(
            np.array([[0, 0, 0], [0, 0, 1]], dtype=np.int32), np.ones(2, dtype=np.int64)
        ),
        after=merge_tuples(np.zeros((0, 3), dtype=np.int32), np.zeros(0, dtype=np.int64)),
        first=1,
    )
    assert result is not None
    assert result.estimates[0].after is None
    assert evaluate_weighted("w", {"w": ["heavy", "light"]}, before, nothing, 1) is None
