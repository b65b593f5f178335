"""Means: near, within the bounds, and in their intervals as often as these say."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.anonymize.tables.estimate import estimate_tables
from incrowd.anonymize.tables.mean import estimate_means
from incrowd.anonymize.tables.measure import measure_residuals
from incrowd.anonymize.tables.plan import plan_tables
from incrowd.anonymize.tables.tabulate import CodeTables
from incrowd.anonymize.tables.workload import RequestedTable, SumColumn, TableAxis, Workload
from incrowd.errors import ParameterError
from incrowd.privacy.randomness import SeededRandomness

INCOME = SumColumn("income", 100.0, 10.0, 90)
AXES = (TableAxis("region", 5), TableAxis("sex", 2))
TABLE = RequestedTable((0, 1), (0, 0), quantity=1)
WORKLOAD = Workload(AXES, (TABLE,), (INCOME,))


def test_sums_and_means_are_unbiased_and_covered() -> None:
    """1,000 releases of 10 cells, from 12 to 700 rows each; 95 % within 94 and 96."""
    rng = np.random.default_rng(2)
    region = np.repeat(np.arange(5, dtype=np.int32), (24, 50, 200, 500, 1400))
    sex = (np.arange(len(region)) % 2).astype(np.int32)
    steps = np.minimum(90, rng.poisson(8 + 7 * region)).astype(np.int64)
    tabulate = CodeTables(WORKLOAD, [region, sex], steps=[steps])
    counts = tabulate(0, (0, 1), (0, 0))
    truth = 100 * counts + 10 * tabulate(1, (0, 1), (0, 0))
    plan = plan_tables(WORKLOAD, 0.3)
    bits = SeededRandomness(3)
    sums, hits = [], []
    for _ in range(1000):
        measured = measure_residuals(tabulate, plan, bits)
        sums.append(estimate_tables(plan, measured)[0])
        means = estimate_means(plan, measured, TABLE)
        assert (means.low >= 100).all()
        assert (means.high <= 1000).all()
        hits.append((means.low <= truth / counts) & (truth / counts <= means.high))
    deviation = np.sqrt(plan.variance(TABLE))
    errors = (np.array(sums) - truth) / deviation
    assert np.abs(errors.mean(axis=0)).max() < 4.5 / np.sqrt(1000)
    assert np.abs((errors**2).mean(axis=0) - 1).max() < 4.5 * np.sqrt(2 / 1000)
    assert 0.94 <= float((np.abs(errors) <= 1.96).mean()) <= 0.96
    assert 0.94 <= float(np.mean(hits)) <= 0.96


def test_a_mean_needs_a_sum() -> None:
    plan = plan_tables(WORKLOAD, 0.1)
    with pytest.raises(ParameterError, match="be that of a sum"):
        estimate_means(plan, (), RequestedTable((0, 1), (0, 0)))
