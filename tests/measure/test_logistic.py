"""The logistic regression of labels, against the least loss that scikit-learn finds."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.measure.logistic import _Problem, fit_logistic


def draw_examples(classes: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(classes)
    sizes = [9, 5, 3]
    codes = np.column_stack([draw.integers(0, size, 800) for size in sizes])
    target = (codes[:, 0] // 2 + draw.integers(0, 2, 800) * codes[:, 2]) % classes
    features = [np.hstack([np.eye(size), np.linspace(0, 1, size)[:, None]]) for size in sizes]
    return features, codes, target * 3, draw.integers(1, 5, 800).astype(float)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_loss_is_that_of_scikit_learn(classes: int) -> None:
    from sklearn.linear_model import (  # type: ignore[import-untyped, unused-ignore]
        LogisticRegression,
    )

    features, codes, target, weights = draw_examples(classes)
    model = fit_logistic(features, codes, target, weights, iterations=200)
    assert model.classes.tolist() == [3 * number for number in range(classes)]
    rows = np.hstack([part[column] for part, column in zip(features, codes.T, strict=True)])
    oracle = LogisticRegression(tol=1e-8, max_iter=5000).fit(rows, target, sample_weight=weights)
    problem = _Problem(features, codes, target, weights)

    def compute_loss(factors: np.ndarray, start: np.ndarray) -> float:
        if classes == 2:
            factors, start = factors[:, -1:] - factors[:, :1], start[-1:] - start[:1]
        return problem.evaluate(np.vstack([factors, start]).ravel())[0]

    coefficients = (
        oracle.coef_.T if classes > 2 else np.hstack([0 * oracle.coef_.T, oracle.coef_.T])
    )
    start = oracle.intercept_ if classes > 2 else np.append(0.0, oracle.intercept_)
    least = compute_loss(coefficients, start)
    assert compute_loss(model.weights, model.start) <= least * (1 + 1e-4)
    assert compute_loss(0 * model.weights, 0 * model.start) > least * 1.1
    scores = rows @ model.weights + model.start
    same = model.classes[np.argmax(scores, axis=1)] == oracle.predict(rows)
    assert np.mean(same) > 0.98


@pytest.mark.parametrize("classes", [2, 4])
def test_the_slope_is_that_of_the_loss(classes: int) -> None:
    features, codes, target, weights = draw_examples(classes)
    problem = _Problem(features, codes, target, weights)
    point = np.random.default_rng(0).normal(size=(problem.width + 1) * problem.outputs)
    _, slope = problem.evaluate(point)
    for at in range(0, len(point), 7):
        step = np.zeros(len(point))
        step[at] = 1e-5
        rise = problem.evaluate(point + step)[0] - problem.evaluate(point - step)[0]
        assert rise / 2e-5 == pytest.approx(slope[at], rel=1e-4, abs=1e-8)
