"""Minimizing a smooth convex function by limited-memory BFGS with a diagonal start."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Floats

MEMORY = 50
_REMEMBERED = 2_500_000  # numbers, beyond which remembering costs more time than it saves
_SUFFICIENT = 1e-4
_SHRINK = 0.4
_TRIES = 25


@dataclass(frozen=True, eq=False)
class Point:
    """A function's value and gradient at x, and a diagonal that its second derivative is near."""

    x: Floats
    value: float
    gradient: Floats
    curvature: Floats


def minimize(
    evaluate: Callable[[Floats], Point],
    start: Floats,
    project: Callable[[Floats], Floats],
    *,
    gap: float,
    steps: int,
) -> tuple[Point, float]:
    """Minimize from a start, within a linear space, until the gap is small or steps run out.

    The gap is the gradient times the next step: about twice what the function can still fall by.
    Start, gradients and preconditioned steps are all projected on the space: outside it, the
    quasi-Newton pairs would tell of curvature that is not there.

    Returns:
        The point reached, and its gap.

    """
    here = evaluate(project(start))
    memory = min(max(_REMEMBERED // max(len(start), 1), 12), MEMORY)
    pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=memory)
    for _ in range(steps):
        step = _precondition(here, pairs, project)
        slope = float(here.gradient @ step)
        if slope <= gap:
            return here, max(slope, 0.0)
        moved = _search_line(evaluate, here, step, slope)
        if moved is None:
            if not pairs:
                return here, slope
            pairs.clear()  # what is remembered misleads: begin again from the diagonal
            continue
        change, turn = moved.x - here.x, moved.gradient - here.gradient
        curved = float(change @ turn)
        if curved > 0:
            pairs.append((change, turn, 1 / curved))
        here = moved
    slope = float(here.gradient @ _precondition(here, pairs, project))
    return here, max(slope, 0.0)


def _precondition(
    here: Point,
    pairs: deque[tuple[Floats, Floats, float]],
    project: Callable[[Floats], Floats],
) -> Floats:
    """The inverse second derivative, as far as it is known, times the gradient."""
    step = here.gradient.copy()
    scratch = np.empty_like(step)
    shares = []
    for change, turn, inverse in reversed(pairs):
        share = inverse * float(change @ step)
        shares.append(share)
        step -= np.multiply(turn, share, out=scratch)
    diagonal = 1 / here.curvature
    if pairs:
        _, turn, inverse = pairs[-1]
        diagonal *= 1 / (inverse * float(turn @ (diagonal * turn)))
    step = project(step * diagonal)
    for (change, turn, inverse), share in zip(pairs, reversed(shares), strict=True):
        step += np.multiply(change, share - inverse * float(turn @ step), out=scratch)
    return step


def _search_line(
    evaluate: Callable[[Floats], Point], here: Point, step: Floats, slope: float
) -> Point | None:
    """The first point along a step, ever shorter, at which the function has fallen enough."""
    length = 1.0
    for _ in range(_TRIES):
        moved = evaluate(here.x - length * step)
        if moved.value <= here.value - _SUFFICIENT * length * slope + 1e-12 * abs(here.value):
            return moved
        length *= _SHRINK
    return None
