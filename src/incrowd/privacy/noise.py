"""Noise on whole numbers, drawn exactly: two-sided geometric (discrete Laplace) and Gaussian.

Floating-point noise leaks: which numbers can come out at all depends on the value it was added
to. Here values and noise are whole numbers of grid steps, every probability is met exactly with
random words (:mod:`incrowd.privacy.randomness`), and each value has a scale of its own. The
samplers are those of Canonne, Kamath and Steinke, for whole arrays at a time.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from incrowd.errors import Floats, ParameterError, UnsolvableError
from incrowd.privacy.randomness import Counts, Randomness, below

_WIDEST = 1 << 52
_LARGEST_SIGMA = 1 << 26
_SUMMED = 2_000  # up to this sigma probabilities are summed, beyond it they are bounded


def laplace(t: Counts, s: int, bits: Randomness) -> Counts:
    """For each t an independent Y with P[Y = y] proportional to exp(-|y| s / t).

    Claim: exactly so, for whole t >= 1 and s >= 1. Let U be uniform below t, kept with
    probability exp(-U / t), and V the number of successes before the first failure of coins
    that succeed with probability exp(-1). Then X = U + t V has P[X = x] proportional to
    exp(-x / t), and Y = X // s to exp(-y s / t). With a fair sign, where a negative zero is
    drawn again, so that zero counts once, Y is as claimed.
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
        found, step = waiting[kept], step[kept]
        x = step + t[found] * _geometric(len(found), bits)
        y = x // s
        negative = (bits.words(len(found)) >> np.uint64(63)).astype(bool)
        good = ~(negative & (y == 0))
        drawn[found[good]] = np.where(negative, -y, y)[good]
        missed = np.ones(len(waiting), dtype=bool)
        missed[np.flatnonzero(kept)[good]] = False
        waiting = waiting[missed]
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


def _geometric(count: int, bits: Randomness) -> Counts:
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
    """The smallest whole sigma whose noise hides which of two values up to ``diameter`` apart.

    Claim: with it, adding :func:`gaussian` noise is (epsilon, delta)-indistinguishable for any
    two whole numbers at most that far apart; see :func:`gaussian_delta`.
    """
    if diameter < 1:
        raise ParameterError("diameter", "be a whole number from 1", diameter)
    if epsilon <= 0 or not 0 < delta < 1:
        raise ParameterError("delta", "come with a positive epsilon and lie between 0 and 1", delta)
    high = 1
    while gaussian_delta(diameter, high, epsilon) > delta:
        high *= 2
        if high > _LARGEST_SIGMA:
            raise UnsolvableError(
                f"Noise for a diameter of {diameter:,} steps would have to be wider than "
                f"{_LARGEST_SIGMA:,} steps. Declare a coarser precision."
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if gaussian_delta(diameter, middle, epsilon) > delta:
            low = middle
        else:
            high = middle
    return high


def gaussian_delta(diameter: int, sigma: int, epsilon: float) -> float:
    """The smallest delta for discrete Gaussian noise on values ``diameter`` apart, or more.

    P[Y > a - d/2] - e^epsilon P[Y > a + d/2] with a = epsilon sigma^2 / d, as in the continuous
    case (Canonne, Kamath, Steinke, Theorem 7). It grows with d for fixed sigma. Where sigma is
    large the first sum is bounded from above and the second from below by integrals.
    """
    low = epsilon * sigma**2 / diameter - diameter / 2
    high = epsilon * sigma**2 / diameter + diameter / 2
    # A tie is decided upwards: the first tail may take one step too many, the second one too few.
    first, second = math.floor(low - 1e-9 * (1 + abs(low))) + 1, math.floor(high + 1e-9 * high) + 1
    if sigma <= _SUMMED:
        return _upper(first, sigma) - math.exp(epsilon) * _upper(second, sigma) + 1e-15
    normal = NormalDist(0, sigma)
    # The weights fall from 0 on, so a sum from m lies between integrals from m and from m - 1;
    # the normaliser is sigma sqrt(2 pi) up to a relative 2 exp(-2 pi^2 sigma^2).
    above = normal.cdf(-(first - 1)) if first >= 1 else normal.cdf(-first) + 1 / sigma
    return above - math.exp(epsilon) * normal.cdf(-second) + 1e-15


def _upper(first: int, sigma: int) -> float:
    """P[Y >= first] of discrete Gaussian noise, by summing all that matters."""
    y = np.arange(-40 * sigma - 1, 40 * sigma + 2, dtype=np.float64)
    weights = np.exp(-(y**2) / (2.0 * sigma**2))
    return float(weights[y >= first].sum() / weights.sum())
