"""A picture of epsilon: what an attacker gains beside what readers lose."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from incrowd.curate.epsilon_curve import EpsilonCurve
from incrowd.findings import format_percent

WIDE, TALL, EDGE = 320, 120, 42  # of a picture, and left of its curve
_TICKS = (0.1, 0.3, 1.0, 3.0, 10.0)
_FIGURES = 100  # people that are drawn


@dataclass(frozen=True)
class CurvePicture:
    """One curve with a mark at the epsilon that is set."""

    title: str
    figure: str
    points: str
    x: float
    y: float
    ticks: tuple[tuple[float, str], ...]
    top: str
    words: str


@dataclass(frozen=True)
class EpsilonPicture:
    """Both curves, and how many of 100 people an attacker recognizes."""

    attacker: CurvePicture
    readers: CurvePicture
    recognized: int

    @property
    def figures(self) -> tuple[tuple[int, int, bool], ...]:
        """Return 100 people: where each stands, and whether it is recognized."""
        return tuple((at % 20, at // 20, at < self.recognized) for at in range(_FIGURES))


def draw_epsilon(curve: EpsilonCurve, epsilon: float) -> EpsilonPicture:
    """Draw a curve with its mark at an epsilon."""
    low, high = curve.points[0].epsilon, curve.points[-1].epsilon
    epsilons = [point.epsilon for point in curve.points]
    attacker = [point.attacker for point in curve.points]
    readers = [point.readers for point in curve.points]
    at = min(max(epsilon, low), high)
    gained = _interpolate(epsilons, attacker, at)
    lost = math.exp(_interpolate(epsilons, [math.log(max(loss, 1e-9)) for loss in readers], at))
    scale = max(readers)
    ticks = tuple((_find_x(tick, low, high), f"{tick:g}") for tick in _TICKS if low <= tick <= high)

    def draw(
        title: str, figure: str, values: Sequence[float], y: Callable[[float], float], mark: float,
        top: str,
    ) -> CurvePicture:  # fmt: skip
        pairs = (
            f"{_find_x(x, low, high):.1f},{y(value):.1f}"
            for x, value in zip(epsilons, values, strict=True)
        )
        words = f"{title}: {figure} at ε = {epsilon:g}"
        return CurvePicture(
            title, figure, " ".join(pairs), _find_x(at, low, high), y(mark), ticks, top, words
        )

    return EpsilonPicture(
        draw(
            "An attacker gains", f"recognizes at most {format_percent(gained, 1)} of the people",
            attacker, lambda share: TALL * (1 - share), gained, "100 %",
        ),
        draw(
            "Readers lose", f"about {_round(lost)} {curve.unit}", readers,
            lambda loss: TALL * (1 - loss / scale), lost, _round(scale),
        ),
        math.ceil(gained * _FIGURES - 1e-9),
    )  # fmt: skip


def _find_x(epsilon: float, low: float, high: float) -> float:
    """Return where an epsilon stands, on a logarithmic scale."""
    return round(EDGE + (WIDE - EDGE) * math.log(epsilon / low) / math.log(high / low), 1)


def _interpolate(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """Return the value of a curve between its points, along the logarithm."""
    for (left, y), (right, next_y) in zip(zip(xs, ys), zip(xs[1:], ys[1:]), strict=False):  # noqa: B905 - of equal length
        if x <= right:
            return y + (next_y - y) * math.log(x / left) / math.log(right / left)
    return ys[-1]


def _round(number: float) -> str:
    """Return a number with two digits, as a forecast knows it; whole from 10 on."""
    if number < 10:
        return f"{number:.2g}"
    digits = max(int(math.log10(number)) - 1, 0)
    return f"{round(number, -digits):,.0f}"
