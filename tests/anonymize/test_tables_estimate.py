"""Estimates: unbiased, with the variance that is stated, and consistent."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.anonymize.tables.estimate import estimate_tables
from incrowd.anonymize.tables.measure import measure_residuals
from incrowd.anonymize.tables.plan import plan_tables
from incrowd.anonymize.tables.workload import RequestedTable, TableAxis, Workload
from incrowd.arrays import Codes, Counts
from incrowd.errors import ParameterError
from incrowd.privacy.randomness import SeededRandomness

REGION = TableAxis("region", 5, (np.array([1, 0, 0, 1, 2], np.int32),))  # 2, 2 and 1 children
AGE = TableAxis("age", 4, (np.array([0, 0, 0, 1], np.int32),))
SEX = TableAxis("sex", 2)
WORKLOAD = Workload(
    (REGION, AGE, SEX),
    (
        RequestedTable((0, 1), (0, 0), 1.0),
        RequestedTable((1, 2), (0, 0), 3.0),
        RequestedTable((0, 2), (1, 0), 1.0),
        RequestedTable((), (), 1.0),
    ),
)
JOINT = np.random.default_rng(5).integers(0, 40, (5, 4, 2))


def tabulate(quantity: int, columns: tuple[int, ...], levels: tuple[int, ...]) -> Counts:
    return count_joint(columns, levels)


def count_joint(columns: tuple[int, ...], levels: tuple[int, ...]) -> Counts:
    return WORKLOAD.roll_up(JOINT, ((0, 1, 2), (0, 0, 0)), (columns, levels))


def sum_by(table: np.ndarray, axis: int, groups: Codes) -> np.ndarray:
    parts = [table.compress(groups == g, axis=axis).sum(axis=axis) for g in range(groups.max() + 1)]
    return np.stack(parts, axis=axis)


def test_rolling_up_is_summing_by_group() -> None:
    counts = count_joint((0, 2), (1, 0))
    assert np.array_equal(counts, sum_by(JOINT.sum(axis=1), 0, REGION.parents[0]))


@pytest.mark.parametrize("objective", ["sum", "max"])
def test_estimates_are_unbiased_with_the_stated_variance_and_coverage(objective: str) -> None:
    plan = plan_tables(WORKLOAD, 0.2, objective)
    tables = (*WORKLOAD.tables, RequestedTable((0,), (0,)), RequestedTable((0, 1), (1, 1)))
    truths = [count_joint(table.columns, table.levels) for table in tables]
    bits = SeededRandomness(8)
    errors: list[list[np.ndarray]] = [[] for _ in tables]
    runs = 1000
    for _ in range(runs):
        estimates = estimate_tables(plan, measure_residuals(tabulate, plan, bits), tables)
        for at, estimate in enumerate(estimates):
            errors[at].append(estimate - truths[at])
    hits = []
    for table, samples in zip(tables, errors, strict=True):
        variance = plan.variance(table)
        assert variance.mean() == pytest.approx(plan.mean_variance(table))
        ratio = (np.array(samples) ** 2).mean(axis=0) / variance
        assert np.abs(ratio - 1).max() < 4.5 * np.sqrt(2 / runs)
        bias = np.array(samples).mean(axis=0) / np.sqrt(variance / runs)
        assert np.abs(bias).max() < 4.5
        hits.append((np.abs(samples) <= 1.96 * np.sqrt(variance)).mean())
    assert all(0.94 <= hit <= 0.96 or tables[at].columns == () for at, hit in enumerate(hits))
    assert min(hits) >= 0.93


def test_totals_are_sums_and_tables_agree() -> None:
    plan = plan_tables(WORKLOAD, 0.5)
    measured = measure_residuals(tabulate, plan, SeededRandomness(1))
    region_age, age_sex, groups_sex, total = estimate_tables(plan, measured)
    assert region_age.sum(axis=0) == pytest.approx(age_sex.sum(axis=1))
    assert sum_by(region_age.sum(axis=1), 0, REGION.parents[0]) == pytest.approx(
        groups_sex.sum(axis=1)
    )
    assert total == pytest.approx(region_age.sum())
    (margin,) = estimate_tables(plan, measured, [RequestedTable((1,), (1,))])
    assert margin == pytest.approx(sum_by(age_sex.sum(axis=1), 0, AGE.parents[0]))


def test_what_was_not_asked_for_is_refused() -> None:
    plan = plan_tables(WORKLOAD, 0.5)
    with pytest.raises(ParameterError, match="Ask for it in the workload"):
        plan.variance(RequestedTable((0, 2), (0, 0)))
