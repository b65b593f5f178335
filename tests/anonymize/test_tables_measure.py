"""The whole mechanism, enumerated on tiny domains, beside the accountant; and planted faults.

What a release draws is independent discrete Gaussian noise on whole numbers. So its exact privacy
loss follows from by how much a row moves each number and from the variance of each. Both are read
off the mechanism itself: its sampler is replaced by one that adds 0, and by one that adds the
variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from incrowd.anonymize.tables.measure import measure_residuals
from incrowd.anonymize.tables.plan import TablesPlan, plan_tables
from incrowd.anonymize.tables.tabulate import CodeTables
from incrowd.anonymize.tables.workload import RequestedTable, SumColumn, TableAxis, Workload
from incrowd.arrays import Counts, Floats
from incrowd.errors import ParameterError
from incrowd.privacy import discrete_noise
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.randomness import SeededRandomness

EPSILONS = (0.05, 0.2, 0.5, 1.0, 2.0)
GRID = 2e-4  # losses are rounded up to it
AXES = (
    TableAxis("region", 4, (np.array([0, 0, 0, 1], np.int32),)),
    TableAxis("sex", 2),
    TableAxis("age", 3),
)
WORKLOADS = {
    "one": Workload(AXES, (RequestedTable((0, 1), (0, 0)),)),
    "several": Workload(
        AXES, (RequestedTable((0, 1), (1, 0)), RequestedTable((1, 2), (0, 0), weight=4.0))
    ),
    "sums": Workload(
        AXES,
        (RequestedTable((1,), (0,)), RequestedTable((1, 2), (0, 0), quantity=1)),
        (SumColumn("income", -20.0, 10.0, 5),),
    ),
}
Row = tuple[int, ...]  # the code of each column, then the steps of each sum
Tabulate = Callable[[int, tuple[int, ...], tuple[int, ...]], Counts]


def make_tables(workload: Workload, rows: Sequence[Row]) -> CodeTables:
    columns = np.array(rows, dtype=np.int64).reshape(-1, len(workload.axes) + len(workload.sums)).T
    codes = [x.astype(np.int32) for x in columns[: len(workload.axes)]]
    return CodeTables(workload, codes, steps=list(columns[len(workload.axes) :]))


def observe(
    plan: TablesPlan, tabulate: Tabulate, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Counts], list[Counts]]:
    """Return the numbers of each residual without noise, and the variance of the noise of each."""
    runs = []
    for factor in (0, 1):
        with monkeypatch.context() as patch:

            def add(variance: object, count: int, bits: object, factor: int = factor) -> Counts:
                return np.full(count, factor * int(variance), dtype=np.int64)  # type: ignore[call-overload]

            patch.setattr(discrete_noise, "sample_rational_gaussian", add)
            runs.append([x.numbers for x in measure_residuals(tabulate, plan, SeededRandomness(0))])
    return runs[0], [b - a for a, b in zip(*runs, strict=True)]


def exact_delta(shifts: Counts, variances: Counts, epsilons: Sequence[float]) -> Floats:
    """Return delta of numbers that a row moves, never below the true one by more than 1e-12.

    Of numbers with one variance v the loss is (2 t + |s|^2) / (2 v), where t = s y is whole.
    """
    assert variances[shifts != 0].min(initial=1) > 0
    law, low = np.ones(1), 0  # the law of the loss, from low times the grid
    for variance in np.unique(variances[shifts != 0]).tolist():
        steps = shifts[(variances == variance) & (shifts != 0)]
        reach = int(9.5 * np.sqrt(variance)) + 1
        y = np.arange(-reach, reach + 1)
        noise = np.exp(-(y**2) / (2 * variance))
        t_law, t_low = np.ones(1), 0
        for step in np.abs(steps).tolist():
            spread = np.zeros(2 * reach * step + 1)
            spread[::step] = noise / noise.sum()
            t_law, t_low = np.convolve(t_law, spread), t_low - reach * step
        t = t_low + np.arange(len(t_law))
        losses = (2 * t + int((steps**2).sum())) / (2 * variance)
        places = np.ceil(losses / GRID).astype(np.int64)
        law = np.convolve(law, np.bincount(places - places.min(), t_law))
        low += int(places.min())
    losses = (low + np.arange(len(law))) * GRID
    return np.array([law @ np.maximum(-np.expm1(e - losses), 0) for e in epsilons])


def worst_ratio(
    plan: TablesPlan,
    make: Callable[[Sequence[Row]], Tabulate],
    monkeypatch: pytest.MonkeyPatch,
    charged: TablesPlan | None = None,
) -> float:
    """Return the largest exact delta over the accountant's, over all rows that may be added."""
    workload = plan.workload
    sizes = [range(axis.size) for axis in workload.axes]
    values = [(0, 2, column.steps) for column in workload.sums]
    rows = list(product(*sizes, *values))
    base = [rows[0], rows[-1], rows[len(rows) // 2]]
    accountant = Accountant((charged or plan).events)
    allowed = np.array([accountant.delta(epsilon=e) for e in EPSILONS])
    before, variances = observe(plan, make(base), monkeypatch)
    worst = 0.0
    seen = set()
    for row in rows:
        after, again = observe(plan, make([*base, row]), monkeypatch)
        assert all(np.array_equal(a, b) for a, b in zip(variances, again, strict=True))
        shifts = [(b - a).ravel() for a, b in zip(before, after, strict=True)]
        key = tuple(tuple(sorted(np.abs(x).tolist())) for x in shifts)
        if key not in seen:
            seen.add(key)
            flat = np.concatenate([x.ravel() for x in variances])
            ratio = exact_delta(np.concatenate(shifts), flat, EPSILONS) / allowed
            worst = max(worst, float(ratio.max()))
    return worst


@pytest.mark.parametrize("objective", ["sum", "max"])
@pytest.mark.parametrize("name", WORKLOADS)
def test_the_whole_mechanism_costs_no_more_than_the_accountant_says(
    name: str, objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = WORKLOADS[name]
    plan = plan_tables(workload, 0.05, objective, totals=objective == "sum")
    worst = worst_ratio(plan, lambda rows: make_tables(workload, rows), monkeypatch)
    assert 0.5 < worst <= 1


def test_a_table_that_is_not_charged_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: each of two tables gets the whole information."""
    first, second = (
        plan_tables(Workload(AXES, (table,)), 0.05) for table in WORKLOADS["several"].tables
    )
    united = replace(
        plan_tables(WORKLOADS["several"], 0.05),
        residuals=tuple({x.key: x for x in (*first.residuals, *second.residuals)}.values()),
    )
    workload = united.workload
    assert worst_ratio(united, lambda rows: make_tables(workload, rows), monkeypatch) > 1.2


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_residual_charged_twice_too_little_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted fault: of each residual in turn the noise is that of twice its part."""
    workload = WORKLOADS[name]
    plan = plan_tables(workload, 0.05, totals=True)
    largest = max(plan.residuals, key=lambda x: x.part)
    residuals = tuple(replace(x, part=2 * x.part) if x is largest else x for x in plan.residuals)
    faulty = replace(plan, residuals=residuals)
    assert worst_ratio(faulty, lambda rows: make_tables(workload, rows), monkeypatch) > 1.02


def test_rounding_before_the_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: counts are rounded to even numbers first, so a row may move them by 2."""
    workload = WORKLOADS["one"]
    plan = plan_tables(workload, 0.05)

    def make(rows: Sequence[Row]) -> Tabulate:
        exact = make_tables(workload, rows)
        return lambda *key: (exact(*key) + 1) // 2 * 2

    assert worst_ratio(plan, make, monkeypatch) > 1.5


def test_a_sum_beyond_its_bounds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = WORKLOADS["sums"]
    plan = plan_tables(workload, 0.05)
    tabulate = make_tables(workload, [(0, 0, 0, 6)])
    with pytest.raises(ParameterError, match="add 0 to 5 steps for each row"):
        measure_residuals(tabulate, plan, SeededRandomness(0))


def test_a_domain_taken_from_the_data_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: only groups that occur are counted. A new one changes what is released."""
    workload = WORKLOADS["one"]
    plan = plan_tables(workload, 0.05)

    def make(rows: Sequence[Row]) -> Tabulate:
        exact = make_tables(workload, rows)
        occurring = np.unique([row[0] for row in rows])
        return lambda *key: exact(*key)[occurring]

    with pytest.raises(ParameterError, match="return dense tables"):
        worst_ratio(plan, make, monkeypatch)


def test_codes_outside_the_domain_are_refused() -> None:
    with pytest.raises(ParameterError, match="'sex' parameter must hold codes below 2"):
        make_tables(WORKLOADS["one"], [(0, 2, 0)])
