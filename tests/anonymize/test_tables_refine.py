"""What whole counts are made with: moves that keep margins, rows that come near, nearest tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear, nnls

from incrowd.anonymize.tables.exchange import RowExchange, TargetTable
from incrowd.anonymize.tables.nonnegative import fit_nonnegative, rake_margins
from incrowd.anonymize.tables.plan import plan_tables
from incrowd.anonymize.tables.refine import refine_table
from incrowd.anonymize.tables.row_sums import SumTarget, fit_row_sums
from incrowd.anonymize.tables.workload import RequestedTable, TableAxis, Workload
from incrowd.arrays import Floats

AXES = (
    TableAxis("region", 6, (np.array([0, 0, 0, 1, 1, 1], np.int32),)),
    TableAxis("sex", 2),
    TableAxis("age", 5),
)
TABLE = RequestedTable((0, 1, 2), (0, 0, 0))
WORKLOAD = Workload(AXES, (TABLE,))


def test_moves_keep_margins_and_come_near() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(20, 60, (6, 2, 5))
    counts = np.rint(
        np.einsum("i,j,k->ijk", *(truth.sum(axis=x) for x in ((1, 2), (0, 2), (0, 1))))
        / truth.sum() ** 2
    ).astype(np.int64)
    moved = refine_table(WORKLOAD, TABLE, counts, truth.astype(float), (), rng)
    assert moved.min() >= 0
    for axis in range(3):
        assert np.array_equal(moved.sum(axis=axis), counts.sum(axis=axis))
    halves = counts.reshape(2, 3, 2, 5).sum(axis=1)
    assert np.array_equal(moved.reshape(2, 3, 2, 5).sum(axis=1), halves)
    assert ((moved - truth) ** 2).sum() < ((counts - truth) ** 2).sum()


def test_a_table_that_another_one_holds_stays() -> None:
    counts = np.arange(60).reshape(6, 2, 5)
    other = RequestedTable((0, 1, 2), (0, 0, 0))
    rng = np.random.default_rng(1)
    estimate: Floats = rng.random((6, 2, 5)) * 60
    assert refine_table(WORKLOAD, TABLE, counts, estimate, (other,), rng) is counts
    coarser = RequestedTable((0, 1, 2), (1, 0, 0))
    moved = refine_table(WORKLOAD, TABLE, counts, estimate, (coarser,), rng)
    assert not np.array_equal(moved, counts)
    by_group = [x.reshape(2, 3, 2, 5).sum(axis=1) for x in (moved, counts)]
    assert np.array_equal(*by_group)


def test_rows_reach_tables_that_rows_can_have() -> None:
    rng = np.random.default_rng(3)
    sizes = (6, 2, 5)
    truth = [rng.integers(0, size, 4000) * rng.integers(0, 2, 4000) for size in sizes]
    truth[2] = (truth[2] + truth[0]) % 5
    start = [rng.integers(0, size, 4000).astype(np.int32) for size in sizes]
    weights = np.ones(4000, dtype=np.int64)
    exact = RowExchange(WORKLOAD, truth, weights, ())
    targets = []
    for columns in ((0, 1), (0, 2), (1, 2)):
        maps = tuple(np.arange(sizes[x], dtype=np.int32) for x in columns)
        estimate = exact.count(columns, (0, 0)).astype(float)
        targets.append(TargetTable(columns, (0, 0), maps, estimate, 1.0))
    rows = RowExchange(WORKLOAD, start, weights, targets)
    rows.run(np.random.default_rng(1))
    for target in targets:
        difference = rows.count(target.columns, (0, 0)) - target.estimate
        assert float((difference**2).mean()) < 2


@pytest.mark.parametrize("seed", range(3))
def test_the_nearest_nonnegative_table_is_that_of_least_squares(seed: int) -> None:
    plan = plan_tables(WORKLOAD, 0.1)
    rng = np.random.default_rng(seed)
    estimate = rng.normal(4, 9, (6, 2, 5))
    covariance = compute_covariance()
    root = np.linalg.cholesky(np.linalg.inv(covariance)).T
    best, _ = nnls(root @ np.eye(60), root @ estimate.ravel())
    near = fit_nonnegative(plan, TABLE, estimate).ravel()

    def measure_distance(table: Floats) -> float:
        return float(((root @ (table - estimate.ravel())) ** 2).sum())

    clipped = np.maximum(estimate, 0).ravel()
    assert near.min() >= 0
    assert measure_distance(near) < 1.05 * measure_distance(best)
    assert measure_distance(near) < measure_distance(clipped)


def compute_covariance() -> Floats:
    """The covariance of the cells of TABLE at information 0.1, from the plan's parts."""
    plan = plan_tables(WORKLOAD, 0.1)
    covariance = np.zeros((60, 60))
    for residual in plan.residuals:
        below = dict(zip(residual.columns, residual.components, strict=True))
        factors, length = [], 1.0
        for column, axis in enumerate(AXES):
            size = axis.size
            groups = np.kron(np.eye(2), np.ones((3, 3))) / 3 if column == 0 else np.eye(size)
            everything = np.ones((size, size)) / size
            if column not in below:
                factors.append(everything / size)
            elif column == 0 and below[column] == 1:
                factors.append((groups - everything) / 3 / 4)
                length *= 2.0
            else:
                a = 3 if column == 0 else size
                factors.append((np.eye(size) - (groups if column == 0 else everything)) / a**2)
                length *= a * (a - 1)
        variance = float(residual.bound_variance(np.array(length)))
        part = np.einsum("ab,cd,ef->acebdf", *factors).reshape(60, 60)
        covariance += variance * part
    assert np.diag(covariance) == pytest.approx(plan.variance(TABLE).ravel())
    return covariance


def test_raking_meets_margins() -> None:
    rng = np.random.default_rng(2)
    near, truth = rng.random((6, 2, 5)), rng.random((6, 2, 5))
    margins = [
        (RequestedTable((0, 2), (1, 0)), truth.reshape(2, 3, 2, 5).sum(axis=(1, 2))),
        (RequestedTable((2,), (0,)), truth.sum(axis=(0, 1))),
    ]
    rake_margins(WORKLOAD, TABLE, near, margins)
    assert near.sum(axis=(0, 1)) == pytest.approx(margins[1][1])
    assert near.reshape(2, 3, 2, 5).sum(axis=(1, 2)) == pytest.approx(margins[0][1])


def test_shares_of_rows_are_those_of_bounded_least_squares() -> None:
    rng = np.random.default_rng(4)
    people = rng.integers(1, 5, 40)
    targets = [
        SumTarget(rng.integers(0, 6, 40), rng.normal(300, 200, 6), 1.0),
        SumTarget(rng.integers(0, 4, 40), rng.normal(500, 200, 4), 3.0),
    ]
    matrix = np.concatenate([np.eye(len(x.sums))[:, x.places] * x.weight**0.5 for x in targets])
    goal = np.concatenate([x.sums * x.weight**0.5 for x in targets])
    best = lsq_linear(matrix, goal, (0, people * 30.0))
    shares = fit_row_sums(people, 30, targets)
    assert (shares >= 0).all()
    assert (shares <= people * 30).all()
    reached = float(((matrix @ shares - goal) ** 2).sum())
    assert reached < 2 * best.cost * 1.02 + 40
