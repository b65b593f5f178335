"""Counts with noise of at most r: what they cost, and how far off they are.

**Mechanism.** The scheme depends on no single person. For every cell with n >= 1 rows draw X from
a law on the whole numbers from -r to r that is symmetric and falls from 0 on; show the cell with
the count n + X if n + X >= r + k, else show nothing of it.

**Claim 1.** Every cell that is shown has at least k rows, for certain: X <= r, so n >= k.

**Claim 2.** Write p for the law and l(j) = ln p(j) / p(j - 1). For two tables that differ by one
row, and either of them first, the smallest delta at epsilon = x >= 0 is at most

    delta(x) = p(r) + sum over -r < j <= 0 of p(j) [1 - e^(x - l(j))]_+

and it is that from a cell of 2 r + k rows on. Beyond the largest l it is p(r), whatever x is.

Proof. One row lies in one cell; all others are alike and drawn independently. Of that cell, with
n rows or n + 1, what is shown is one function of n + X or of n + 1 + X. (A cell without rows is
never looked at and shows nothing; nor would X <= r < r + k show anything, since k >= 1.) So X
against X + 1 dominates it, and is attained where everything is shown. The sum of
[p(j) - e^x p(j - 1)]_+ over j has the term p(-r) = p(r) for j = -r, and p(j) (1 - e^(x - l(j)))
where l(j) > x; as p falls from 0 on, l(j) is above 0 for j <= 0 alone. Since p is symmetric,
X + 1 against X is the same pair, mirrored.

- Two-sided geometric, p(x) ~ e^(-epsilon |x|): l is epsilon for all j <= 0, so beyond epsilon
  delta is p(r), and no smaller r has so small a delta.
- Gaussian, p(x) ~ e^(-x^2 / (2 v)): l(j) = (1 - 2 j) / (2 v). For several tables it adds up less.

The threshold must be r + k on the noisy count. Shown from r + 1 on, with true counts below k
dropped instead, it would not be private: what is dropped would depend on n, not on n + X.

Rounding: probabilities are sums of up to r terms, each off by a few units in its last place, and
nothing is subtracted; ``_UP`` is far more than what that comes to. The law that is drawn has the
decimal that epsilon, or v, is written as (:mod:`incrowd.anonymize.safe_counts`), the floats here
are computed from the binary number, one part in 10^16 apart. An exponent is at most 745 where a
float is left of the probability, so that moves it by 1.7e-13 of itself, which ``_UP`` covers;
losses are rounded up by 1e-15 of themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from incrowd.arrays import Bools, Counts, Floats
from incrowd.privacy import discrete_noise
from incrowd.privacy.events import LARGEST_R, Coin, GaussianCounts, GeometricCounts
from incrowd.privacy.profile import Profile
from incrowd.privacy.randomness import Randomness, sample_below
from incrowd.privacy.sample import SMALLEST

_UP = 1 + 1e-12
_RAREST = 2.0**-11
_AT_ONCE = 1 << 22  # so many numbers are held at a time


@dataclass(frozen=True, eq=False)
class NoiseSpread:
    """How far off a count may be: p(0), ..., p(r), alike either way."""

    tail: Floats

    def find_error_bound(self, share: float) -> int:
        """Return the smallest t with P[|X| <= t] at least a share."""
        cumulative = np.cumsum(np.append(self.tail[0], 2 * self.tail[1:]))
        return int(np.searchsorted(cumulative, share * cumulative[-1]))

    @property
    def reach(self) -> int:
        """r, the most that X can be."""
        return len(self.tail) - 1

    @property
    def variance(self) -> float:
        """The variance of X."""
        x = np.arange(len(self.tail), dtype=np.float64)
        return float(2 * (x**2 * self.tail).sum())

    def compute_tail(self, x: int) -> float:
        """Return P[X >= x]: how likely a cell that lacks x rows is to be published."""
        r = self.reach
        if x > r:
            return 0.0
        if x <= -r:
            return 1.0
        return float(self.tail[x:].sum()) if x > 0 else 1.0 - float(self.tail[1 - x :].sum())


@dataclass(frozen=True, eq=False)
class NoiseLaw(NoiseSpread):
    """A distribution of noise: p(0), ..., p(r), and the losses l(0), l(-1), ..., l(1 - r)."""

    losses: Floats

    @property
    def min_delta(self) -> float:
        """P[X = r]: the delta that no epsilon takes away; rounded up, and never 0."""
        return min(max(float(self.tail[-1]) * _UP, SMALLEST), 1.0)

    def build_profile(self) -> Profile:
        """Return delta at every epsilon, both directions alike; see the module's claim."""
        inside, losses, beyond = self.tail[:-1] * _UP, self.losses, self.min_delta
        if len(losses) and losses[0] == losses[-1]:  # they rise, or are all the same
            inside, losses = np.array([math.fsum(inside)]), losses[:1]

        def either(x: Floats) -> Floats:
            delta = np.empty(len(x))
            width = max(_AT_ONCE // max(len(losses), 1), 1)
            for start in range(0, len(x), width):
                block = x[start : start + width, None]
                share = -np.expm1(np.minimum(block - losses * (1 + 1e-15), 0.0))
                delta[start : start + width] = beyond + share @ inside
            return np.minimum(delta, 1.0)

        return Profile(either, either, float(losses.max(initial=0.0)) * (1 + 1e-14))


def build_geometric_law(epsilon: float, r: int) -> NoiseLaw:
    """Return the law P[X = x] proportional to e^(-epsilon |x|), up to r either way."""
    weights = np.exp(-epsilon * np.arange(r + 1, dtype=np.float64))
    total = weights[0] + 2 * math.fsum(weights[1:])
    return NoiseLaw(weights / total, np.full(r, epsilon))


def build_gaussian_law(variance: float, r: int) -> NoiseLaw:
    """Return the law P[X = x] proportional to e^(-x^2 / (2 variance)), up to r either way."""
    x = np.arange(r + 1, dtype=np.float64)
    weights = np.exp(-(x**2) / (2 * variance))
    total = weights[0] + 2 * math.fsum(weights[1:])
    return NoiseLaw(weights / total, (1 + 2 * x[:-1]) / (2 * variance))


def build_event_law(event: GeometricCounts | GaussianCounts) -> NoiseLaw:
    """Return the law of the noise of an event."""
    if isinstance(event, GeometricCounts):
        return build_geometric_law(event.epsilon, event.r)
    return build_gaussian_law(event.variance, event.r)


def is_even(coin: Coin) -> bool:
    """Return whether a coin takes r or r + 1 of the same noise, and delta differs by little.

    It is told how the coin fell. So that this is no bad news to anybody, delta of neither side may
    be more than twice the average, which is what is accounted. A side so rare that its float is no
    multiple of 2^-64 would not be tossed exactly.
    """
    first, second = coin.first, coin.second
    if not (isinstance(first, GeometricCounts) and isinstance(second, GeometricCounts)):
        return False
    if second != GeometricCounts(first.r + 1, first.epsilon):
        return False
    first_delta, second_delta = build_event_law(first).min_delta, build_event_law(second).min_delta
    average = coin.chance * first_delta + (1 - coin.chance) * second_delta
    return coin.chance >= _RAREST and first_delta <= 2 * average


def find_smallest_reach(epsilon: float, delta: float) -> int:
    """Return the smallest r at which geometric noise satisfies (epsilon, delta).

    With q = e^-epsilon, p(r) = q^r (1 - q) / (1 + q - 2 q^(r + 1)) is at most delta from
    r = (1 / epsilon) ln((1 - q + 2 q delta) / ((1 + q) delta)) on.
    """
    q = math.exp(-epsilon)
    bound = math.log((-math.expm1(-epsilon) + 2 * q * delta) / ((1 + q) * delta)) / epsilon
    if bound > LARGEST_R:  # too large to be drawn
        return math.ceil(bound)
    r = max(math.ceil(bound) - 1, 0)
    while build_geometric_law(epsilon, r).min_delta > delta:
        r += 1
    return r


def sample_geometric_noise(count: int, epsilon: Fraction, r: int, bits: Randomness) -> Counts:
    """Draw ``count`` independent X of the geometric law, exactly.

    Noise without a bound is drawn exactly (:func:`incrowd.privacy.discrete_noise.sample_laplace`);
    what lies beyond r is drawn again, which leaves the law of the rest as it is. Where most would
    lie beyond it, uniform numbers up to r are kept with probability e^(-epsilon |x|), which is the
    same law.
    """
    if epsilon * r < 1:
        return _sample_by_rejection(count, epsilon, r, bits)
    t = np.full(count, epsilon.denominator, dtype=np.int64)
    return _redraw_beyond(
        r, count, lambda size: discrete_noise.sample_laplace(t[:size], epsilon.numerator, bits)
    )


def _sample_by_rejection(count: int, epsilon: Fraction, r: int, bits: Randomness) -> Counts:
    noise, waiting = np.zeros(count, dtype=np.int64), np.arange(count)
    while len(waiting):
        bounds = np.full(len(waiting), 2 * r + 1, dtype=np.int64)
        x = sample_below(bounds, bits) - r
        t = np.full(len(waiting), epsilon.denominator, dtype=np.int64)
        accepted = discrete_noise.flip_exp_coins(np.abs(x) * epsilon.numerator, t, bits)
        noise[waiting[accepted]] = x[accepted]
        waiting = waiting[~accepted]
    return noise


def sample_gaussian_noise(count: int, variance: Fraction, r: int, bits: Randomness) -> Counts:
    """Draw ``count`` independent X of the Gaussian law, exactly; as above."""
    return _redraw_beyond(
        r, count, lambda size: discrete_noise.sample_rational_gaussian(variance, size, bits)
    )


def _redraw_beyond(r: int, count: int, draw: Callable[[int], Counts]) -> Counts:
    noise = draw(count)
    is_beyond: Bools = np.abs(noise) > r
    while is_beyond.any():
        noise[is_beyond] = draw(int(is_beyond.sum()))
        is_beyond = np.abs(noise) > r
    return noise
