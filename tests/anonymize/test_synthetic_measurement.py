"""Queries, their cost, and pooling by least squares."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from support.small_domains import nested

from incrowd.anonymize.synthetic.domain import make_column
from incrowd.anonymize.synthetic.measurement import (
    CENTERED,
    combine,
    gain,
    make_query,
    measure,
    pool_one_way,
)
from incrowd.privacy.information import InformationBudget
from incrowd.privacy.randomness import SeededRandomness


@pytest.mark.parametrize("shape", [(2,), (5,), (2, 2), (3, 4), (2, CENTERED + 1), (2, 3, 2)])
def test_a_row_moves_the_query_by_its_length_wherever_it_falls(shape: tuple[int, ...]) -> None:
    table = np.random.default_rng(1).integers(0, 9, size=shape)
    before, length = make_query(table)
    for place in np.ndindex(shape):
        more = table.copy()
        more[place] += 1
        moved = make_query(more)[0] - before
        assert int((moved**2).sum()) == length
    scale = math.prod(size for size in shape if size <= CENTERED)
    assert length / scale**2 == pytest.approx(gain(shape))


def test_a_measurement_has_the_noise_that_its_part_buys() -> None:
    table = np.zeros((40, 50), dtype=np.int64)  # neither axis is centered
    budget = InformationBudget(1.0)
    item = measure(table, (0, 1), (0, 0), Fraction(1, 50), budget, SeededRandomness(3))
    assert item.variance == math.ceil(1 / item.information) + 3
    assert item.information <= Fraction(1, 50)
    assert budget.left == 1 - item.information
    ratio = float((item.cells**2).mean()) * item.precision
    assert abs(ratio - 1) < 5 * math.sqrt(2 / table.size)


def test_centered_cells_have_the_precision_that_is_stated() -> None:
    table = np.array([[30, 5], [10, 40]])
    errors = []
    for seed in range(400):
        budget = InformationBudget(1.0)
        item = measure(table, (0, 1), (0, 0), 0.05, budget, SeededRandomness(seed))
        errors.append(float((item.cells - item.cells.mean())[0, 0]) - 13.75)
    # The one contrast of two binary columns: a quarter of the cell's variance lies in it.
    assert float(np.var(errors)) * item.precision == pytest.approx(0.25, rel=0.35)
    assert abs(float(np.mean(errors))) < 5 * float(np.std(errors)) / 20


def test_measurements_of_one_table_are_weighted_by_precision() -> None:
    table = np.full((30, 30), 100)
    budget = InformationBudget(1.0)
    bits = SeededRandomness(1)
    both = [measure(table, (0, 1), (0, 0), part, budget, bits) for part in (0.01, 0.2)]
    pooled = combine(both)
    assert pooled.precision == pytest.approx(sum(item.precision for item in both))
    assert float(((pooled.cells - 100) ** 2).mean()) * pooled.precision == pytest.approx(
        1, rel=0.25
    )


def test_pooling_is_least_squares_over_the_tree() -> None:
    column = make_column(nested(6, 2, 3)[:2])
    rng = np.random.default_rng(2)
    estimates = {0: (rng.normal(50, 9, 6), 0.3), 1: (rng.normal(100, 9, 3), 0.8)}
    result = pool_one_way(column, estimates, 310.0)
    groups = np.kron(np.eye(3), np.ones((1, 2)))
    rows = np.vstack([np.eye(6) * 0.3**0.5, groups * 0.8**0.5])
    targets = np.concatenate([estimates[0][0] * 0.3**0.5, estimates[1][0] * 0.8**0.5])
    # With the sum as a constraint, by Lagrange.
    system = np.block([[rows.T @ rows, np.ones((6, 1))], [np.ones((1, 6)), np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.append(rows.T @ targets, 310.0))[:6]
    assert result.leaves == pytest.approx(solution)
