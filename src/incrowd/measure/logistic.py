"""Logistic regression on labels: as scikit-learn fits it (C = 1), without loading it.

It minimizes sum_i s_i loss_i + |W|^2 / 2 over the weights W and a start that costs nothing. Columns
are described by one row of features per label, so that scores are looked up and gradients are sums
by label: no matrix of all rows is built. Loading scikit-learn takes longer than all of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Codes, Floats

_MEMORY = 10  # pairs of steps that L-BFGS remembers
_TOLERANCE = 1e-4  # of the largest slope, where the loss is a mean
_LEAST_STEP = 1e-10


@dataclass(frozen=True, eq=False)
class LogisticModel:
    """Says, of ``classes``, the one with the highest of the scores ``x @ weights + start``."""

    classes: Codes
    weights: Floats
    start: Floats


def fit_logistic(
    features: Sequence[Floats], codes: Codes, target: Codes, weights: Floats, *, iterations: int
) -> LogisticModel:
    """Return the regression of a target on labels.

    Args:
        features: For each column one row of features per label.
        codes: The label of each example (down) in each column (across).
        target: The class of each example; at least two classes.
        weights: What each example counts.
        iterations: The most steps; a model that is stopped predicts as well as it can.

    """
    problem = _Problem(features, codes, target, weights)
    point = np.zeros((problem.width + 1) * problem.outputs)
    point = _minimize(problem, point, iterations)
    table = point.reshape(problem.width + 1, problem.outputs)
    factors, start = table[:-1], table[-1]
    if problem.outputs == 1:  # scores of the second class against 0 for the first
        factors, start = np.hstack([0 * factors, factors]), np.append(0.0, start)
    return LogisticModel(problem.classes, factors, start)


class _Problem:
    """The mean loss and its slope; of two classes one score decides."""

    def __init__(
        self, features: Sequence[Floats], codes: Codes, target: Codes, weights: Floats
    ) -> None:
        self.classes, self._place = np.unique(target, return_inverse=True)
        self.outputs = 1 if len(self.classes) == 2 else len(self.classes)
        self._features, self._codes = [], []
        for column, part in enumerate(features):  # labels that no example has are left out
            used_codes, numbers = np.unique(codes[:, column], return_inverse=True)
            self._features.append(np.ascontiguousarray(part[used_codes], dtype=np.float64))
            self._codes.append(numbers)
        self.width = sum(part.shape[1] for part in self._features)
        self._ends = np.cumsum([part.shape[1] for part in self._features])[:-1]
        self._weights = weights / weights.sum()
        self._penalty = 1 / float(weights.sum())

    def evaluate(self, point: Floats) -> tuple[float, Floats]:
        """Return the mean loss at a point, and its slope."""
        table = point.reshape(self.width + 1, self.outputs)
        scores = np.tile(table[-1], (len(self._place), 1))
        parts = np.split(table[:-1], self._ends)
        for part, numbers, factors in zip(self._features, self._codes, parts, strict=True):
            scores += (part @ factors)[numbers]
        loss, residuals = self._compare(scores)
        slope = np.empty_like(table)
        at = 0
        for part, numbers in zip(self._features, self._codes, strict=True):
            sums = np.column_stack(
                [np.bincount(numbers, column, minlength=len(part)) for column in residuals.T]
            )
            slope[at : at + part.shape[1]] = part.T @ sums
            at += part.shape[1]
        slope[:-1] += self._penalty * table[:-1]
        slope[-1] = residuals.sum(axis=0)
        loss += self._penalty * float((table[:-1] ** 2).sum()) / 2
        return loss, slope.ravel()

    def _compare(self, scores: Floats) -> tuple[float, Floats]:
        """Return the mean loss of scores, and its slope by each of them."""
        if self.outputs == 1:
            signs = np.where(self._place == 1, 1.0, -1.0)
            margins = signs * scores[:, 0]
            loss = float((self._weights * np.logaddexp(0, -margins)).sum())
            chances = np.exp(-np.logaddexp(0, margins))
            return loss, (-self._weights * signs * chances)[:, None]
        scores = scores - scores.max(axis=1, keepdims=True)
        sums = np.log(np.exp(scores).sum(axis=1))
        examples = np.arange(len(scores))
        loss = float((self._weights * (sums - scores[examples, self._place])).sum())
        residuals = np.exp(scores - sums[:, None])
        residuals[examples, self._place] -= 1
        return loss, residuals * self._weights[:, None]


def _minimize(problem: _Problem, point: Floats, iterations: int) -> Floats:
    """Return where the loss is least: L-BFGS with steps that are halved until they pay."""
    loss, slope = problem.evaluate(point)
    steps: list[Floats] = []
    changes: list[Floats] = []
    for _ in range(iterations):
        if float(np.abs(slope).max()) <= _TOLERANCE:
            break
        direction = _turn_slope(slope, steps, changes)
        descent = float(direction @ slope)
        size = 1.0 if steps else min(1.0, 1 / float(np.abs(slope).sum()))
        while size > _LEAST_STEP:
            new_loss, new_slope = problem.evaluate(point + size * direction)
            if new_loss <= loss + 1e-4 * size * descent:
                break
            size /= 2
        else:
            break
        step, change = size * direction, new_slope - slope
        if float(step @ change) > 0:
            steps, changes = [*steps[-_MEMORY + 1 :], step], [*changes[-_MEMORY + 1 :], change]
        point, loss, slope = point + step, new_loss, new_slope
    return point


def _turn_slope(slope: Floats, steps: Sequence[Floats], changes: Sequence[Floats]) -> Floats:
    """Return the direction of the next step, by the curvature that the last steps met."""
    direction = -slope
    parts = []
    for step, change in zip(reversed(steps), reversed(changes), strict=True):
        part = float(step @ direction) / float(step @ change)
        direction = direction - part * change
        parts.append(part)
    if steps:
        direction = direction * (float(steps[-1] @ changes[-1]) / float(changes[-1] @ changes[-1]))
    for step, change, part in zip(steps, changes, reversed(parts), strict=True):
        back = float(change @ direction) / float(step @ change)
        direction = direction + (part - back) * step
    return direction
