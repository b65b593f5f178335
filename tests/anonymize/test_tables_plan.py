"""The division of the information, beside optima that are found otherwise."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from incrowd.anonymize.tables.plan import compare_independent, plan_tables
from incrowd.anonymize.tables.workload import RequestedTable, SumColumn, TableAxis, Workload
from incrowd.arrays import Floats
from incrowd.errors import ParameterError
from incrowd.privacy.events import GaussianMeasurements

SIZES = (2, 5, 3, 7)


def flat_workload(ways: int, weights: tuple[float, ...] = (1.0,)) -> Workload:
    axes = tuple(TableAxis(f"c{at}", size) for at, size in enumerate(SIZES))
    chosen = list(combinations(range(len(SIZES)), ways))
    tables = (
        RequestedTable(columns, (0,) * ways, weights[at % len(weights)])
        for at, columns in enumerate(chosen)
    )
    return Workload(axes, tuple(tables))


def residual_planner_costs(workload: Workload) -> np.ndarray:
    """Variance of a cell by table and residual, for a privacy cost of 1: the paper's formulas.

    A residual A of noise s^2 costs prod (n - 1) / n / s^2, and adds s^2 prod_{A} (n - 1) / n
    prod_{others} 1 / n^2 to a cell.
    """
    subsets = sorted(
        {
            subset
            for table in workload.tables
            for subset in chain.from_iterable(
                combinations(table.columns, size) for size in range(len(table.columns) + 1)
            )
        }
    )
    costs = np.zeros((len(workload.tables), len(subsets)))
    for row, table in enumerate(workload.tables):
        for at, subset in enumerate(subsets):
            if set(subset) <= set(table.columns):
                noise = math.prod((SIZES[x] - 1) / SIZES[x] for x in subset)
                others = math.prod(SIZES[x] ** -2 for x in table.columns if x not in subset)
                costs[row, at] = noise * noise * others
    return costs


@pytest.mark.parametrize("ways", [1, 2, 3])
def test_the_sum_is_that_of_residual_planner(ways: int) -> None:
    workload = flat_workload(ways, (1.0, 4.0))
    sizes = [math.prod(SIZES[x] for x in table.columns) for table in workload.tables]
    weights = np.array([table.weight for table in workload.tables]) * sizes
    best = np.sqrt(weights @ residual_planner_costs(workload)).sum() ** 2 / 0.05
    plan = plan_tables(workload, 0.05)
    reached = sum(
        w * plan.mean_variance(table) for w, table in zip(weights, workload.tables, strict=True)
    )
    assert best * (1 - 1e-9) <= reached <= 1.05 * best


def test_the_largest_is_that_of_a_general_optimizer() -> None:
    workload = flat_workload(2, (1.0, 2.0, 0.5))
    costs = residual_planner_costs(workload)
    costs *= np.array([table.weight for table in workload.tables])[:, None]

    def constraint(x: Floats) -> Floats:
        values: Floats = x[-1] - np.log(costs @ np.exp(-x[:-1]))
        return values

    count = costs.shape[1]
    start = np.append(np.full(count, -math.log(count)), math.log((costs * count).sum(axis=1).max()))
    solution = minimize(
        lambda x: x[-1],
        start,
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": constraint},
            {"type": "ineq", "fun": lambda x: 1 - np.exp(x[:-1]).sum()},
        ],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    best = math.exp(solution.x[-1]) / 0.01
    plan = plan_tables(workload, 0.01, "max")
    reached = max(table.weight * plan.mean_variance(table) for table in workload.tables)
    assert solution.success
    assert plan.gap <= 1e-4
    assert best * (1 - 1e-4) <= reached <= 1.03 * best


def test_parts_never_sum_to_more_than_the_information() -> None:
    for objective in ("sum", "max"):
        plan = plan_tables(flat_workload(3), 0.37, objective)
        total = sum(residual.part for residual in plan.residuals)
        assert Fraction(0.37) * Fraction(999, 1000) < total <= Fraction(0.37)
        assert plan.events == (GaussianMeasurements(0.37),)


def test_independent_noise_is_worse() -> None:
    workload = flat_workload(2)
    for objective in ("sum", "max"):
        plan = plan_tables(workload, 0.05, objective)
        alone = compare_independent(workload, 0.05, objective)
        means = [plan.mean_variance(table) for table in workload.tables]
        assert max(means) < max(alone)
        assert sum(means) < sum(alone)
    assert sum(1 / x for x in alone) == pytest.approx(0.05)


def test_a_wide_axis_is_left_as_it_is_and_costs_little() -> None:
    groups = np.repeat(np.arange(3, dtype=np.int32), (2, 200, 5))
    axes = (TableAxis("wide", 207, (groups,)), TableAxis("narrow", 40))
    plan = plan_tables(Workload(axes, (RequestedTable((0, 1), (0, 0)),)), 0.01)
    assert plan.by_key[0, (0, 1), (0, 0)].centered == (5, 40)
    assert plan.by_key[0, (1,), (0,)].centered == (40,)
    assert plan.by_key[0, (), ()].centered == ()


def test_a_column_of_one_value_carries_nothing() -> None:
    axes = (TableAxis("one", 1), TableAxis("two", 2))
    plan = plan_tables(Workload(axes, (RequestedTable((0, 1), (0, 0)),)), 0.01)
    assert set(plan.by_key) == {(0, (), ()), (0, (1,), (0,))}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (RequestedTable((1, 0), (0, 0)), "different columns in order"),
        (RequestedTable((0, 9), (0, 0)), "numbered from 0 to 3"),
        (RequestedTable((0,), (1,)), "Column 'c0' has levels 0 to 0"),
        (RequestedTable((0, 1), (0,)), "a level for each column"),
        (RequestedTable((0,), (0,), 0.0), "above 0"),
    ],
)
def test_what_cannot_be_is_refused(table: RequestedTable, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Workload(flat_workload(1).axes, (table,))


def test_levels_that_do_not_nest_are_refused() -> None:
    crossing = (np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 1, 0], np.int32))
    with pytest.raises(ParameterError, match="'region' parameter must have levels that nest"):
        TableAxis("region", 4, crossing)
    with pytest.raises(ParameterError, match="number its groups from 0"):
        TableAxis("region", 4, (np.array([0, 0, 2, 2], np.int32),))


@pytest.mark.parametrize("objective", ["sum", "max"])
def test_totals_count_as_if_they_were_asked_for(objective: str) -> None:
    region = TableAxis("region", 6, (np.array([0, 0, 1, 1, 1, 2], np.int32),))
    axes = (region, TableAxis("sex", 2), TableAxis("age", 5))
    table = RequestedTable((0, 2), (0, 0))
    listed = [
        RequestedTable(columns, levels)
        for columns, levels in (
            ((0, 2), (0, 0)), ((0, 2), (1, 0)), ((2,), (0,)), ((0,), (0,)), ((0,), (1,)), ((), ()),
        )
    ]  # fmt: skip
    short = plan_tables(Workload(axes, (table,)), 0.1, objective, totals=True)
    longer = plan_tables(Workload(axes, tuple(listed)), 0.1, objective)
    assert set(short.by_key) == set(longer.by_key)
    for key, residual in short.by_key.items():
        assert float(residual.part) == pytest.approx(float(longer.by_key[key].part), rel=0.02)


def test_a_sum_costs_as_much_as_noise_on_the_values_themselves() -> None:
    """Of a lowest value of 0: half of the largest for the differences, half for the counts."""
    axes = (TableAxis("sex", 2), TableAxis("age", 5))
    column = SumColumn("income", 0.0, 10.0, 400)
    tables = (RequestedTable((0, 1), (0, 0)), RequestedTable((0, 1), (0, 0), quantity=1))
    plan = plan_tables(Workload(axes, (tables[1],), (column,)), 0.01)
    counts = plan_tables(Workload(axes, (tables[0],)), 0.01)
    ratio = plan.mean_variance(tables[1]) / column.upper**2 / counts.mean_variance(tables[0])
    assert ratio == pytest.approx(1, rel=0.02)
    assert sum(float(x.part) for x in plan.residuals if x.quantity) == pytest.approx(0.005, rel=0.1)
    with pytest.raises(ParameterError, match="have 1 to 1,000,000 steps"):
        SumColumn("income", 0.0, 1.0, 10**7)
    with pytest.raises(ParameterError, match="name a declared sum"):
        Workload(axes, tables)
