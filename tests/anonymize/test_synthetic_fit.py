"""The fit: its minimum against brute force, its gap, and descent on a known function."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from support.small_domains import fit_pairs, full_joint, nested, random_joint, small_domain

from incrowd.anonymize.synthetic.centered import make_centered_solver
from incrowd.anonymize.synthetic.descent import FitPoint, Precondition, minimize
from incrowd.anonymize.synthetic.domain import Domain, make_column
from incrowd.anonymize.synthetic.fit import fit
from incrowd.anonymize.synthetic.measurement import TableEstimate, center
from incrowd.anonymize.synthetic.model import make_structure
from incrowd.anonymize.synthetic.refit import FINAL_GAP, LEAST_GAP, find_final_gap
from incrowd.anonymize.synthetic.tree import make_graph
from incrowd.arrays import Floats


def test_the_model_agrees_with_what_it_is_fitted_to() -> None:
    domain = small_domain()
    law = random_joint(domain, 1)
    pairs = [(0, 1), (1, 2), (0, 2), (2, 3)]
    model = fit_pairs(domain, law, 1e6, pairs, [0, 0, 0, 1])
    assert model.gap <= 1e-6
    joint = full_joint(model)
    for pair in pairs:
        others = tuple(axis for axis in range(4) if axis not in pair)
        levels = (0, 1) if 3 in pair else (0, 0)
        expected = domain.roll_up(law.sum(axis=others), pair, (0, 0), levels)
        assert model.table(pair, levels) == pytest.approx(expected, abs=2e-5)
    assert joint.sum(axis=(0, 1, 2)) == pytest.approx(law.sum(axis=(0, 1, 2)), abs=2e-5)


def test_the_minimum_is_that_of_a_general_optimizer() -> None:
    """Two columns, noisy tables: the same objective over the full joint, by scipy."""
    domain = Domain((make_column(nested(3)), make_column(nested(4))))
    rng = np.random.default_rng(5)
    rows = 400.0
    ones = [rng.dirichlet(np.ones(n)) * rows for n in (3, 4)]
    pair = rng.normal(0, 20, size=(3, 4))
    estimates = [TableEstimate((x,), (0,), ones[x], 0.04, 1.0) for x in range(2)]
    estimates.append(TableEstimate((0, 1), (0, 0), pair, 0.01, 1.0))
    structure = make_structure(domain, [0, 0], make_graph(2, [(0, 1)]))
    model, _ = fit(structure, estimates, rows, gap=1e-9, steps=500)
    pair = center(pair, (0, 1))

    def objective(x: Floats) -> float:
        a, b, c = x[:3], x[3:7], center(x[7:].reshape(3, 4), (0, 1))
        logits = a[:, None] + b[None] + c
        linear = float(a @ ones[0] + b @ ones[1] + (c * pair).sum())
        slack = 5 * float(a @ a + b @ b) + 10 * float((c * c).sum())
        return rows * float(np.log(np.exp(logits).sum())) - linear + slack / 2

    best = optimize.minimize(objective, np.zeros(19), method="BFGS", options={"gtol": 1e-7}).x
    logits = best[:3, None] + best[None, 3:7] + center(best[7:].reshape(3, 4), (0, 1))
    expected = np.exp(logits) / np.exp(logits).sum()
    assert model.marginals[0] == pytest.approx(expected, abs=1e-5)


def test_single_columns_are_followed_to_a_small_part_of_their_noise() -> None:
    """With the slack of pairs, a quarter of it would be lost here."""
    domain = Domain((make_column(nested(3)),))
    counts, deviation = np.array([2100.0, 60.0, 40.0]), 1.5
    estimates = [TableEstimate((0,), (0,), counts, deviation**-2, 1.0)]
    structure = make_structure(domain, [0], make_graph(1, []))
    before, _ = fit(structure, estimates, 2200.0, gap=1e-6, steps=100)
    model, _ = fit(structure, estimates, 2200.0, before=before, gap=1e-6, steps=100)
    assert model.table((0,), (0,)) * 2200 == pytest.approx(counts, abs=deviation / 10)


def test_the_last_fit_ends_where_noise_of_single_columns_is_larger() -> None:
    """What a gap leaves undone moves a table by at most (gap / rows)^0.5 / 2."""

    def find(rows: float, deviation: float) -> float:
        ones = [
            TableEstimate((x,), (0,), np.full(size, rows / size), deviation**-2, 1.0)
            for x, size in enumerate((2, 6))
        ]
        pair = TableEstimate((0, 1), (0, 0), np.zeros((2, 6)), 1.0, 1.0)
        return find_final_gap(rows, [*ones, pair])

    noise = np.random.default_rng(3).normal(0, 1.5, (20_000, 8)) / 2000
    distance = float((np.abs(noise[:, :2]).sum(axis=1) + np.abs(noise[:, 2:]).sum(axis=1)).mean())
    assert (find(2000, 1.5) / 2000) ** 0.5 == pytest.approx(distance / 4, rel=0.01)
    assert find(2000, 30.0) == FINAL_GAP
    assert find(2000, 1e-3) == LEAST_GAP


def test_descent_reaches_the_minimum_within_the_space_and_tells_the_gap() -> None:
    rng = np.random.default_rng(0)
    basis = rng.normal(size=(12, 12))
    matrix = basis @ basis.T + np.diag(10.0 ** np.arange(0, 3, 0.25))
    goal = rng.normal(size=12)

    def project(x: Floats) -> Floats:
        result: Floats = x - x.mean()
        return result

    def evaluate(x: Floats) -> FitPoint:
        turned = matrix @ x
        value = 0.5 * float(x @ turned) - float(goal @ x)
        return FitPoint(x, value, project(turned - goal), np.diag(matrix).copy())

    def precondition(curvature: Floats) -> Precondition:
        return lambda gradient: project(gradient / curvature)

    point, gap = minimize(evaluate, np.zeros(12), precondition, gap=1e-10, steps=200)
    system = np.block([[matrix, np.ones((12, 1))], [np.ones((1, 12)), np.zeros((1, 1))]])
    best = np.linalg.solve(system, np.append(goal, 0))[:12]
    assert gap <= 1e-10
    assert point.x == pytest.approx(best, abs=1e-5)
    _, early = minimize(evaluate, np.zeros(12), precondition, gap=1e-10, steps=2)
    assert early > 1e-10


@pytest.mark.parametrize("shape", [(2, 2), (3, 5), (7, 4)])
def test_a_step_of_a_pair_is_the_best_centered_one(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    inverse = 10.0 ** rng.uniform(-4, 1, shape)
    gradient = rng.normal(size=shape)
    step = make_centered_solver(inverse, (0, 1))(gradient)
    assert np.abs(step.sum(axis=0)).max() < 1e-8
    assert np.abs(step.sum(axis=1)).max() < 1e-8
    # A basis of the centered tables, and the minimum over its coefficients.
    full = np.eye(gradient.size).reshape(-1, *shape)
    basis = np.linalg.svd([center(table, (0, 1)).ravel() for table in full])[2]
    basis = basis[: (shape[0] - 1) * (shape[1] - 1)]
    system = basis @ np.diag(1 / inverse.ravel()) @ basis.T
    best = basis.T @ np.linalg.solve(system, basis @ gradient.ravel())
    assert step.ravel() == pytest.approx(best, rel=1e-4, abs=1e-8)


@pytest.mark.parametrize("axes", [(0,), (0, 1, 2)])
def test_a_step_of_another_table_is_centered_and_symmetric(axes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    solve = make_centered_solver(10.0 ** rng.uniform(-3, 1, (2, 3, 4)), axes)
    first, second = rng.normal(size=(2, 2, 3, 4))
    assert float((solve(first) * second).sum()) == pytest.approx(
        float((first * solve(second)).sum())
    )
    for axis in axes:
        assert np.abs(solve(first).sum(axis=axis)).max() < 1e-12
