"""Privacy-loss distributions on a grid: profiles in, compositions and their delta out.

The privacy loss of an output is ln P/Q. Losses add under composition, so their
distributions convolve. Every step here errs on the safe side:

- **Grid.** A profile is convex in e^epsilon. Connecting its values at the grid points by
  straight lines lies above it, and that polygon is itself the profile of a distribution on
  the grid points and infinity (Doroshenko and others 2022, "connect the dots").
- **Cutting.** Mass cut off above counts as an infinite loss; mass cut off below is moved up
  to the lowest loss kept.
- **Rounding.** Masses are never negative and are convolved directly, not by Fourier
  transforms: a sum of N positive products is right to N units in the last place of itself,
  whereas a transform leaves noise of 1e-17 of the *largest* mass everywhere, which would
  drown a delta of 1e-20. ``ROUNDING`` covers what is left, a thousand times over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from incrowd.errors import Floats
from incrowd.privacy.profile import Profile

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Losses:
    """Mass ``masses[i]`` on the loss ``(lowest + i) * step``, and ``infinite`` on infinity."""

    step: float
    lowest: int
    masses: Floats
    infinite: float

    @property
    def values(self) -> Floats:
        """The losses that carry the masses."""
        return (self.lowest + np.arange(self.masses.size, dtype=np.float64)) * self.step

    @property
    def variance(self) -> float:
        """The variance of the finite part."""
        weight = self.masses.sum()
        mean = (self.masses @ self.values) / weight
        return float(self.masses @ (self.values - mean) ** 2 / weight)

    def delta(self, epsilon: Floats) -> Floats:
        """An upper bound on sum [P - e^epsilon Q]_+ for each epsilon."""
        values = self.values
        finite = [
            self.masses[first:] @ -np.expm1(x - values[first:])
            for x, first in zip(
                epsilon, np.searchsorted(values, epsilon, side="right"), strict=True
            )
        ]
        return np.minimum((np.array(finite) + self.infinite) * (1 + ROUNDING), 1.0)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon >= 0 with ``self.delta`` at most delta; inf if there is none.

        Between two grid points delta is A - e^epsilon B with A and B sums over the losses
        above, so the crossing has a closed form.
        """
        if self.infinite * (1 + ROUNDING) > delta:
            return np.inf
        values = np.append(self.values, np.inf)
        target = delta / (1 + ROUNDING) - self.infinite
        above = np.append(np.cumsum(self.masses[::-1])[::-1], 0.0)
        shrunk = np.append(np.cumsum((self.masses * np.exp(-self.values))[::-1])[::-1], 0.0)
        at_grid = above - np.exp(np.minimum(values, 700.0)) * shrunk
        at_grid[-1] = 0.0
        first = int(np.argmax(at_grid <= target))  # delta is reached at or before this loss
        if shrunk[first] == 0.0:
            crossing = values[first - 1] if first else 0.0
        else:
            crossing = np.log(max(above[first] - target, 1e-300) / shrunk[first])
        result = max(float(crossing), 0.0)
        while float(self.delta(np.array([result]))[0]) > delta:
            result = result * (1 + 1e-12) + 1e-14
        return result


def discretise(profile: Profile, step: float, tail: float) -> Losses:
    """The losses of P against Q on a grid, with at most about ``tail`` cut off at each end."""
    top = max(_first_below(profile.present, profile.reach, step, tail), 1)
    bottom = _first_below(profile.absent, profile.reach, step, tail)
    up = profile.present(np.arange(top + 1, dtype=np.float64) * step)
    down = profile.absent(np.arange(bottom, 0, -1, dtype=np.float64) * step)
    # What the profile has above [1 - e^epsilon]_+, which every profile has: no cancellation.
    excess = np.append(down * np.exp(np.arange(-bottom, 0) * step), up) * (1 + ROUNDING)
    rise = np.diff(excess) / np.expm1(step)
    masses = np.append(rise, 0.0) - np.append(excess[0], rise * np.exp(step))
    masses[bottom] += 1.0
    return Losses(step, -bottom, np.maximum(masses, 0.0), float(excess[-1]))


def _first_below(side: Callable[[Floats], Floats], reach: float, step: float, tail: float) -> int:
    """The first grid point at which one side of a profile has fallen to its end, up to tail."""
    last = int(np.ceil(reach / step))
    floor = float(side(np.array([last * step]))[0]) + tail
    low, high = 0, last
    while low < high:
        points = np.unique(np.linspace(low, high, 65).astype(np.int64))
        reached = side(points.astype(np.float64) * step) <= floor
        first = int(np.argmax(reached))
        high = int(points[first])
        low = int(points[first - 1]) + 1 if first else high
    return high


def compose(one: Losses, other: Losses, tail: float) -> Losses:
    """The losses of both mechanisms on the same table, independent given the table."""
    masses = np.convolve(one.masses, other.masses)
    infinite = one.infinite + other.infinite - one.infinite * other.infinite
    return _cut(Losses(one.step, one.lowest + other.lowest, masses, infinite), tail)


def power(losses: Losses, times: int, tail: float) -> Losses:
    """``losses`` composed with itself ``times`` times, by repeated squaring."""
    result: Losses | None = None
    square = losses
    while True:
        if times & 1:
            result = square if result is None else compose(result, square, tail)
        times >>= 1
        if not times:
            assert result is not None
            return result
        square = compose(square, square, tail)


def _cut(losses: Losses, tail: float) -> Losses:
    """Losses without the outermost grid points that hold at most ``tail`` at each end."""
    masses = losses.masses
    first = int(np.searchsorted(np.cumsum(masses), tail, side="right"))
    last = masses.size - int(np.searchsorted(np.cumsum(masses[::-1]), tail, side="right"))
    first = min(first, masses.size - 1)
    last = max(last, first + 1)
    kept = masses[first:last].copy()
    kept[0] += masses[:first].sum()
    beyond = float(masses[last:].sum())
    return Losses(losses.step, losses.lowest + first, kept, losses.infinite + beyond)
