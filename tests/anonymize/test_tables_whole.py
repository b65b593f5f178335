"""Whole counts: nonnegative, they add up at every level and between tables, and they are near."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.anonymize.tables.measure import measure_residuals
from incrowd.anonymize.tables.plan import plan_tables
from incrowd.anonymize.tables.tabulate import CodeTables
from incrowd.anonymize.tables.whole import make_whole
from incrowd.anonymize.tables.workload import RequestedTable, TableAxis, Workload
from incrowd.privacy.randomness import SeededRandomness

REGION = TableAxis("region", 12, (np.repeat(np.arange(4, dtype=np.int32), 3),))
AGE = TableAxis("age", 8, (np.repeat(np.arange(2, dtype=np.int32), 4),))
AXES = (REGION, AGE, TableAxis("sex", 2), TableAxis("work", 5))
CROSSING = (
    RequestedTable((0, 1), (0, 0)),
    RequestedTable((1, 2), (0, 0)),
    RequestedTable((0, 2, 3), (1, 0, 0)),
)


def make_codes(rows: int) -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    region = (12 * rng.random(rows) ** 3).astype(np.int32)
    age = np.minimum(7, region // 2 + rng.integers(0, 4, rows)).astype(np.int32)
    sex = rng.integers(0, 2, rows).astype(np.int32)
    work = (age * sex % 5).astype(np.int32)
    return [region, age, sex, work]


@pytest.mark.parametrize(
    "tables",
    [CROSSING, (RequestedTable((0, 1, 2), (0, 0, 0)),), (RequestedTable((), ()),)],
    ids=["several", "one", "total"],
)
@pytest.mark.parametrize("rows", [0, 30, 20_000])
def test_whole_counts_add_up(tables: tuple[RequestedTable, ...], rows: int) -> None:
    workload = Workload(AXES, tables)
    plan = plan_tables(workload, 0.05)
    tabulate = CodeTables(workload, make_codes(rows))
    measured = measure_residuals(tabulate, plan, SeededRandomness(3))
    released = make_whole(plan, measured)
    total = int(released.count((), ()))
    assert total >= 0
    for table in tables:
        low = table.columns, table.levels
        counts = released.count(*low)
        assert counts.dtype == np.int64
        assert counts.min() >= 0
        assert counts.sum() == total
        for coarser in {x[1:] for x in workload.list_residuals(table)}:
            assert np.array_equal(workload.roll_up(counts, low, coarser), released.count(*coarser))
