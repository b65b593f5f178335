"""Steps within the space of tables whose sums along some axes are 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from incrowd.anonymize.synthetic.measurement import center
from incrowd.arrays import Floats


def make_centered_solver(inverse: Floats, axes: Sequence[int]) -> Callable[[Floats], Floats]:
    """Return the map from a table g to the centered s of least s (s / inverse) / 2 - g s.

    Args:
        inverse: a positive weight for each cell, one over its curvature.
        axes: those along which s has sums of 0.

    For a table of two axes, both centered, s = inverse (g - a - b) with a number for each row and
    each column, such that all sums are 0: linear equations, solved exactly. Multiplying by the
    weights and then taking off means would not do: rare cells have large weights, and their means
    would move all others. For other tables it does, and is symmetric as well: means are taken off
    before and after.

    """
    if not axes:
        return lambda gradient: inverse * gradient
    if inverse.ndim != 2 or len(axes) != 2:
        return lambda gradient: center(inverse * center(gradient, axes), axes)
    turned = inverse.shape[0] < inverse.shape[1]
    weights = inverse.T if turned else inverse  # as many columns as rows, or fewer
    rows, columns = weights.sum(axis=1), weights.sum(axis=0)
    scaled = weights / rows[:, None]
    # Of the columns' numbers one is free: the last is 0, and the others are determined.
    system = (np.diag(columns) - weights.T @ scaled)[:-1, :-1]
    solution = np.zeros((len(columns), len(columns)))
    solution[:-1, :-1] = np.linalg.inv(system)

    def solve(gradient: Floats) -> Floats:
        step = weights * (gradient.T if turned else gradient)
        across = step.sum(axis=1)
        along = solution @ (step.sum(axis=0) - scaled.T @ across)
        step -= weights * along
        step -= scaled * (across - weights @ along)[:, None]
        return step.T if turned else step

    return solve
