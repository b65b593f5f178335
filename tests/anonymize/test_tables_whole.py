"""Whole counts: nonnegative, they add up at every level and between tables, and they are near."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.anonymize.tables.estimate import estimate_tables
from incrowd.anonymize.tables.measure import load_measured, measure_residuals
from incrowd.anonymize.tables.plan import plan_tables
from incrowd.anonymize.tables.tabulate import CodeTables
from incrowd.anonymize.tables.whole import make_whole
from incrowd.anonymize.tables.workload import RequestedTable, SumColumn, TableAxis, Workload
from incrowd.errors import ParameterError
from incrowd.privacy.randomness import SeededRandomness

REGION = TableAxis("region", 12, (np.repeat(np.arange(4, dtype=np.int32), 3),))
AGE = TableAxis("age", 8, (np.repeat(np.arange(2, dtype=np.int32), 4),))
AXES = (REGION, AGE, TableAxis("sex", 2), TableAxis("work", 5))
INCOME = SumColumn("income", -200.0, 10.0, 1000)
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


@pytest.mark.parametrize("information", [0.05, 1.0])
@pytest.mark.parametrize("together", [False, True], ids=["several", "one"])
def test_whole_counts_are_as_near_as_estimates(together: bool, information: float) -> None:
    tables = (RequestedTable((0, 1, 2), (0, 0, 0)),) if together else CROSSING
    workload = Workload(AXES, tables)
    plan = plan_tables(workload, information, totals=True)
    tabulate = CodeTables(workload, make_codes(20_000))
    squares: dict[tuple[tuple[int, ...], tuple[int, ...]], list[tuple[float, float]]] = {}
    for seed in range(4):
        measured = measure_residuals(tabulate, plan, SeededRandomness(seed))
        released = make_whole(plan, measured)
        for residual in plan.residuals:
            low = residual.columns, residual.components
            (estimate,) = estimate_tables(plan, measured, [RequestedTable(*low)])
            truth = tabulate(0, *low)
            pair = ((released.count(*low) - truth) ** 2).mean(), ((estimate - truth) ** 2).mean()
            squares.setdefault(low, []).append((float(pair[0]), float(pair[1])))
    ratios = []
    for pairs in squares.values():
        reached, expected = np.mean(pairs, axis=0)
        ratios.append(reached / (expected + 1))
    assert np.mean(ratios) < 1.2
    assert max(ratios) < 1.8


@pytest.mark.parametrize("rows", [0, 40, 20_000])
@pytest.mark.parametrize("together", [False, True], ids=["several", "one"])
def test_whole_sums_go_with_whole_counts(together: bool, rows: int) -> None:
    sums = (
        (RequestedTable((0, 1), (0, 0), quantity=1),)
        if together
        else (*CROSSING[:2], RequestedTable((1, 3), (0, 0), quantity=1))
    )
    workload = Workload(AXES, sums, (INCOME,))
    plan = plan_tables(workload, 0.2, totals=True)
    codes = make_codes(rows)
    steps = np.minimum(codes[1] * 100 + codes[0] * 10, INCOME.steps).astype(np.int64)
    tabulate = CodeTables(workload, codes, steps=[steps])
    measured = measure_residuals(tabulate, plan, SeededRandomness(5))
    released = make_whole(plan, measured)
    table = sums[-1]
    low = table.columns, table.levels
    cells = released.sum_steps(1, *low)
    assert cells.dtype == np.int64
    assert (cells >= 0).all()
    assert (cells <= INCOME.steps * released.count(*low)).all()
    for _, *coarser in workload.list_residuals(table):
        rolled = workload.roll_up(cells, low, (coarser[0], coarser[1]))
        assert np.array_equal(rolled, released.sum_steps(1, *coarser))
    values = INCOME.lower * released.count(*low) + INCOME.step * cells
    truth = INCOME.lower * tabulate(0, *low) + INCOME.step * tabulate(1, *low)
    assert float(((values - truth) ** 2).mean()) < 1.5 * plan.mean_variance(table)


def test_the_same_numbers_give_the_same_counts() -> None:
    workload = Workload(AXES, CROSSING)
    plan = plan_tables(workload, 0.1)
    measured = measure_residuals(CodeTables(workload, make_codes(500)), plan, SeededRandomness(1))
    again = load_measured(plan, [x.numbers for x in measured])
    first, second = make_whole(plan, measured), make_whole(plan, again)
    for a, b in zip(first.cells, second.cells, strict=True):
        assert np.array_equal(a, b)
    with pytest.raises(ParameterError, match="have the plan's shapes"):
        load_measured(plan, [x.numbers for x in measured][1:])


def test_what_no_table_covers_is_refused() -> None:
    workload = Workload(AXES, CROSSING)
    plan = plan_tables(workload, 0.1)
    measured = measure_residuals(CodeTables(workload, make_codes(9)), plan, SeededRandomness(1))
    with pytest.raises(ParameterError, match="be covered by a table"):
        make_whole(plan, measured).count((1, 3), (0, 0))
