"""Noise on whole numbers, drawn exactly: two-sided geometric (discrete Laplace) and Gaussian.

Floating-point noise leaks: which numbers can come out at all depends on the value it was added
to. Here values and noise are whole numbers of grid steps, every probability is met exactly with
random words (:mod:`incrowd.privacy.randomness`), and each value has a scale of its own. The
samplers are those of Canonne, Kamath and Steinke, for whole arrays at a time.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from incrowd.errors import Floats, ParameterError, UnsolvableError
from incrowd.privacy.randomness import Counts, Randomness, below

_WIDEST = 1 << 52
_LARGEST_SIGMA = 1 << 26
_SUMMED = 2_000  # up to this sigma probabilities are summed, beyond it they are bounded


def geometric(t: Counts, s: int, bits: Randomness) -> Counts:
    """For each t an independent Y >= 0 with P[Y = y] proportional to exp(-y s / t).

    Claim: exactly so, for whole t >= 1 and s >= 1. Let U be uniform below t, kept with
    probability exp(-U / t), and V the number of successes before the first failure of coins
    that succeed with probability exp(-1). Then X = U + t V has P[X = x] proportional to
    exp(-x / t), and Y = X // s to exp(-y s / t).
    """
    if len(t) and (int(t.min()) < 1 or int(t.max()) > _WIDEST):
        raise ParameterError(
            "precision",
            f"leave between 1 and {_WIDEST:,} steps of noise",
            int(t.max()),
            "Declare a coarser precision, or closer bounds.",
        )
    drawn = np.zeros(len(t), dtype=np.int64)
    waiting = np.arange(len(t))
    while len(waiting):
        step = below(t[waiting], bits)
        kept = _with_exp(step, t[waiting], bits)
        found = waiting[kept]
        drawn[found] = (step[kept] + t[found] * _successes(len(found), bits)) // s
        waiting = waiting[~kept]
    return drawn


def laplace(t: Counts, s: int, bits: Randomness) -> Counts:
    """For each t an independent Y with P[Y = y] proportional to exp(-|y| s / t).

    Claim: exactly so. It is :func:`geometric` with a fair sign, where a negative zero is drawn
    again, so that zero counts once.
    """
    drawn = np.zeros(len(t), dtype=np.int64)
    waiting = np.arange(len(t))
    while len(waiting):
        y = geometric(t[waiting], s, bits)
        negative = (bits.words(len(waiting)) >> np.uint64(63)).astype(bool)
        good = ~(negative & (y == 0))
        drawn[waiting[good]] = np.where(negative, -y, y)[good]
        waiting = waiting[~good]
    return drawn


def gaussian(sigma: Counts, bits: Randomness) -> Counts:
    """For each whole sigma an independent Y, P[Y = y] proportional to exp(-y^2 / (2 sigma^2)).

    Claim: exactly so. Y is drawn with probability proportional to exp(-|y| / sigma) and kept
    with probability exp(-(|y| - sigma)^2 / (2 sigma^2)); the product is proportional to
    exp(-y^2 / (2 sigma^2)).
    """
    if len(sigma) and (int(sigma.min()) < 1 or int(sigma.max()) > _LARGEST_SIGMA):
        raise ParameterError(
            "precision",
            f"leave noise between 1 and {_LARGEST_SIGMA:,} steps",
            int(sigma.max()),
            "Declare a coarser precision, or closer bounds.",
        )
    drawn = np.zeros(len(sigma), dtype=np.int64)
    waiting = np.arange(len(sigma))
    while len(waiting):
        here = sigma[waiting]
        y = laplace(here, 1, bits)
        whole, rest = np.divmod((np.abs(y) - here) ** 2, 2 * here * here)
        good = _with_exp(rest, 2 * here * here, bits)
        good &= _all_exp(whole, bits)
        drawn[waiting[good]] = y[good]
        waiting = waiting[~good]
    return drawn


def _with_exp(u: Counts, t: Counts, bits: Randomness) -> npt.NDArray[np.bool_]:
    """For each pair 0 <= u <= t a coin that is true with probability exp(-u / t), exactly.

    Coins of probability (u / t) / 1, (u / t) / 2, ... are thrown until one is false; the number
    of throws is odd with probability 1 - g + g^2/2! - ... = exp(-g), g = u / t.
    """
    odd = np.zeros(len(u), dtype=bool)
    alive = np.arange(len(u))
    throw = 1
    while len(alive):
        go_on = below(t[alive], bits) < u[alive]
        if throw > 1:
            go_on &= below(np.full(len(alive), throw, dtype=np.int64), bits) == 0
        odd[alive[~go_on]] = throw % 2 == 1
        alive = alive[go_on]
        throw += 1
    return odd


def _successes(count: int, bits: Randomness) -> Counts:
    """How many coins of probability exp(-1) come true before the first that does not."""
    found = np.zeros(count, dtype=np.int64)
    alive = np.arange(count)
    while len(alive):
        one = np.ones(len(alive), dtype=np.int64)
        alive = alive[_with_exp(one, one, bits)]
        found[alive] += 1
    return found


def _all_exp(whole: Counts, bits: Randomness) -> npt.NDArray[np.bool_]:
    """For each whole number a coin that is true with probability exp(-it)."""
    true = np.ones(len(whole), dtype=bool)
    for throw in range(int(whole.max(initial=0))):
        alive = np.flatnonzero(true & (whole > throw))
        if not len(alive):
            break
        one = np.ones(len(alive), dtype=np.int64)
        true[alive] = _with_exp(one, one, bits)
    return true


def mean_laplace(t: Counts, s: int) -> Floats:
    """The mean of |Y|: 1 / sinh(s / t), which is close to t / s where that is large."""
    rate = s / t.astype(np.float64)
    return 1 / np.sinh(np.minimum(rate, 700.0))


def mean_gaussian(sigma: Counts) -> Floats:
    """The mean of |Y|: summed for small sigma, by Euler and Maclaurin's formula for large."""
    wide = sigma.astype(np.float64)
    means = 2 * (wide**2 - 1 / 12) / (wide * math.sqrt(2 * math.pi))
    for small in np.unique(sigma[sigma <= 64]):
        y = np.arange(1, 12 * int(small) + 12)
        weights = np.exp(-(y**2) / (2.0 * float(small) ** 2))
        means[sigma == small] = 2 * (y * weights).sum() / (1 + 2 * weights.sum())
    return means


def sigma_for(diameter: int, *, epsilon: float, delta: float) -> int:
    """A whole sigma whose noise hides which of two values up to ``diameter`` apart it was added to.

    Claim: with it, adding :func:`gaussian` noise is (epsilon, delta)-indistinguishable for any
    two whole numbers at most that far apart; see :func:`gaussian_delta`. It is the smallest near
    the one that continuous noise would need.
    """
    if diameter < 1:
        raise ParameterError("diameter", "be a whole number from 1", diameter)
    if epsilon <= 0 or not 0 < delta < 1:
        raise ParameterError("delta", "come with a positive epsilon and lie between 0 and 1", delta)
    sigma = max(math.ceil(_continuous_sigma(epsilon, delta) * diameter), 1)
    if sigma > _LARGEST_SIGMA:
        raise UnsolvableError(
            f"Noise for a diameter of {diameter:,} steps would have to be wider than "
            f"{_LARGEST_SIGMA:,} steps. Declare a coarser precision."
        )
    while gaussian_delta(diameter, sigma, epsilon) > delta:
        sigma += 1 + sigma // 1000
    while sigma > 1 and gaussian_delta(diameter, sigma - 1, epsilon) <= delta:
        sigma -= 1
    return sigma


@lru_cache(maxsize=64)
def _continuous_sigma(epsilon: float, delta: float) -> float:
    """The sigma that continuous noise needs at distance 1 (Balle and Wang), by bisection."""
    normal = NormalDist()

    def needed(sigma: float) -> float:
        first = normal.cdf(0.5 / sigma - epsilon * sigma)
        return first - math.exp(epsilon) * normal.cdf(-0.5 / sigma - epsilon * sigma)

    low, high = 1e-6, 1.0
    while needed(high) > delta:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if needed(middle) > delta else (low, middle)
    return high


def gaussian_delta(diameter: int, sigma: int, epsilon: float) -> float:
    """The smallest delta for discrete Gaussian noise on values ``diameter`` apart; or just above.

    The sum over y of what P[Y = y] has more than e^epsilon P[Y = y + d]; the difference is
    positive from y > epsilon sigma^2 / d - d / 2 on (Canonne, Kamath, Steinke, Theorem 7), with
    y counted away from the other value. It grows with d. Where sigma is large, sums are bounded
    by integrals: the weights are convex beyond sigma, so the sum from m is at most the integral
    from m - 1/2, and at least the one from m plus half the first weight; nearer to the middle
    they still fall, so it lies between the integrals from m - 1 and from m.
    """
    first = math.floor(epsilon * sigma**2 / diameter - diameter / 2) + 1
    second = first + diameter
    if sigma <= _SUMMED:
        reach = 14 * sigma
        y = np.arange(-reach, reach + diameter + 1, dtype=np.float64)
        weights = np.exp(-(y**2) / (2.0 * sigma**2))
        further = np.exp(-((y + diameter) ** 2) / (2.0 * sigma**2))
        excess = np.maximum(weights - math.exp(epsilon) * further, 0).sum() / weights.sum()
        return float(excess) + 1e-15
    normal = NormalDist(0, sigma)
    # The normaliser is sigma sqrt(2 pi) up to a relative 2 exp(-2 pi^2 sigma^2): nothing.
    start = first - 0.5 if first - 0.5 > sigma else first - 1.0
    above = normal.cdf(-start) if first >= 1 else normal.cdf(-start) + 1 / sigma
    half = normal.pdf(second) / 2 if second > sigma else 0.0
    beyond = normal.cdf(-second) + half if second >= 1 else normal.cdf(-second)
    return above - math.exp(epsilon) * beyond + 1e-15
