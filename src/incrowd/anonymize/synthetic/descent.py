"""Minimizing a smooth convex function by limited-memory BFGS with a diagonal start."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from incrowd.arrays import Floats

MEMORY = 50
_REMEMBERED = 2_500_000  # numbers, beyond which remembering costs more time than it saves
_SUFFICIENT = 1e-4
_SHRINK = 0.4
_TRIES = 25
_REFRESHED = 10  # steps after which the diagonal is taken anew


@dataclass(frozen=True, eq=False)
class FitPoint:
    """A function's value and gradient at x, and a diagonal that its second derivative is near."""

    x: Floats
    value: float
    gradient: Floats
    curvature: Floats


Precondition: TypeAlias = Callable[[Floats], Floats]


class _Pair(NamedTuple):
    """How a step changed the gradient: its second derivative along the step."""

    change: Floats
    turn: Floats
    curved: float


def minimize(
    evaluate: Callable[[Floats], FitPoint],
    start: Floats,
    precondition: Callable[[Floats], Precondition],
    *,
    gap: float,
    steps: int,
) -> tuple[FitPoint, float]:
    """Minimize from a start, within a linear space, until the gap is small or steps run out.

    The gap is the gradient times the next step: about twice what the function can still fall by.
    Start, gradients and preconditioned steps all lie in the space: outside it, the quasi-Newton
    pairs would tell of curvature that is not there.

    Args:
        evaluate: the function at a point of the space.
        start: a point of the space.
        precondition: from a curvature, the map that takes a gradient to the step that would be
            best if the second derivative were that diagonal, within the space.
        gap: when to end.
        steps: the most steps.

    Returns:
        The point reached, and its gap.

    """
    point = evaluate(start)
    first, scale = precondition(point.curvature), 1.0
    memory = min(max(_REMEMBERED // max(len(start), 1), 12), MEMORY)
    pairs: deque[_Pair] = deque(maxlen=memory)
    for number in range(1, steps + 1):
        if number % _REFRESHED == 0:
            first = precondition(point.curvature)
        if pairs:
            scale = pairs[-1].curved / _dot(pairs[-1].turn, first(pairs[-1].turn))
        step = _find_step(point.gradient, pairs, first, scale)
        slope = _dot(point.gradient, step)
        if slope <= gap:
            return point, max(slope, 0.0)
        moved = _search_line(evaluate, point, step, slope)
        if moved is None:
            if not pairs:
                return point, slope
            pairs.clear()  # what is remembered misleads: begin again from the diagonal
            continue
        change, turn = moved.x - point.x, moved.gradient - point.gradient
        curved = _dot(change, turn)
        if curved > 0:
            pairs.append(_Pair(change, turn, curved))
        point = moved
    slope = _dot(point.gradient, _find_step(point.gradient, pairs, first, scale))
    return point, max(slope, 0.0)


def _find_step(gradient: Floats, pairs: deque[_Pair], first: Precondition, scale: float) -> Floats:
    """Return the inverse second derivative, as far as it is known, times the gradient."""
    step = gradient.copy()
    scratch = np.empty_like(step)
    shares = []
    for pair in reversed(pairs):
        share = _dot(pair.change, step) / pair.curved
        shares.append(share)
        step -= np.multiply(pair.turn, share, out=scratch)
    step = first(step) * scale
    for pair, share in zip(pairs, reversed(shares), strict=True):
        step += np.multiply(pair.change, share - _dot(pair.turn, step) / pair.curved, out=scratch)
    return step


def _dot(first: Floats, second: Floats) -> float:
    """Return the inner product, on one core: threads cost time and change the sum."""
    return float(np.einsum("i,i->", first, second))


def _search_line(
    evaluate: Callable[[Floats], FitPoint], point: FitPoint, step: Floats, slope: float
) -> FitPoint | None:
    """Shorten a step until the function falls enough, and return that point."""
    length = 1.0
    for _ in range(_TRIES):
        moved = evaluate(point.x - length * step)
        if moved.value <= point.value - _SUFFICIENT * length * slope + 1e-12 * abs(point.value):
            return moved
        length *= _SHRINK
    return None
