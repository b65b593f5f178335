"""Noise on whole numbers, drawn exactly: two-sided geometric (discrete Laplace) and Gaussian.

Floating-point noise leaks: which numbers can come out at all depends on the value it was added
to. Here values and noise are whole numbers of grid steps, every probability is met exactly with
random words (:mod:`incrowd.privacy.randomness`), and each value has a scale of its own. The
samplers are those of Canonne, Kamath and Steinke, for whole arrays at a time.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Counts, Floats
from incrowd.errors import ParameterError, UnsolvableError
from incrowd.privacy.large_coins import flip_large_exp
from incrowd.privacy.randomness import Randomness, sample_below
from incrowd.privacy.sample import SMALLEST

_WIDEST = 1 << 52
_LARGEST_SIGMA = 1 << 26
_LARGEST_EPSILON = 1e6
_SMALLEST_DELTA = 1e-300
_SUMMED = 200  # up to this sigma probabilities are summed, beyond it sums are bounded by integrals


def sample_geometric(t: Counts, s: int, bits: Randomness) -> Counts:
    """Draw for each t an independent Y >= 0 with P[Y = y] proportional to exp(-y s / t).

    Claim: exactly so, for whole t >= 1 and s >= 1. Let U be uniform below t, kept with
    probability exp(-U / t), and V the number of successes before the first failure of coins
    that succeed with probability exp(-1). Then X = U + t V has P[X = x] proportional to
    exp(-x / t), and Y = X // s to exp(-y s / t). (64 bits hold X unless V is 2,047 or more, which
    has a probability below 1e-888.)
    """
    if len(t) and (int(t.min()) < 1 or int(t.max()) > _WIDEST):
        raise ParameterError(
            "precision",
            f"leave between 1 and {_WIDEST:,} steps of noise",
            int(t.max()),
            "Declare a coarser precision, or closer bounds.",
        )
    samples = np.zeros(len(t), dtype=np.int64)
    waiting = np.arange(len(t))
    while len(waiting):
        step = sample_below(t[waiting], bits)
        accepted = flip_exp_coins(step, t[waiting], bits)
        places = waiting[accepted]
        samples[places] = (step[accepted] + t[places] * _count_successes(len(places), bits)) // s
        waiting = waiting[~accepted]
    return samples


def sample_laplace(t: Counts, s: int, bits: Randomness) -> Counts:
    """Draw for each t an independent Y with P[Y = y] proportional to exp(-|y| s / t).

    Claim: exactly so. It is :func:`sample_geometric` with a fair sign, where a negative zero is
    drawn again, so that zero counts once.
    """
    samples = np.zeros(len(t), dtype=np.int64)
    waiting = np.arange(len(t))
    while len(waiting):
        y = sample_geometric(t[waiting], s, bits)
        negative = (bits.draw_words(len(waiting)) >> np.uint64(63)).astype(bool)
        good = ~(negative & (y == 0))
        samples[waiting[good]] = np.where(negative, -y, y)[good]
        waiting = waiting[~good]
    return samples


def sample_gaussian(sigma: Counts, bits: Randomness) -> Counts:
    """Draw per whole sigma an independent Y, P[Y = y] proportional to exp(-y^2/(2 sigma^2)).

    Claim: exactly so. Y is drawn with probability proportional to exp(-|y| / sigma) and kept
    with probability exp(-(|y| - sigma)^2 / (2 sigma^2)); the product is proportional to
    exp(-y^2 / (2 sigma^2)). Up to 40 sigma the square is below 39^2 2^52, which 64 bits hold;
    further out it is taken of a whole number without bound.
    """
    if len(sigma) and (int(sigma.min()) < 1 or int(sigma.max()) > _LARGEST_SIGMA):
        raise ParameterError(
            "precision",
            f"leave noise between 1 and {_LARGEST_SIGMA:,} steps",
            int(sigma.max()),
            "Declare a coarser precision, or closer bounds.",
        )
    samples = np.zeros(len(sigma), dtype=np.int64)
    waiting = np.arange(len(sigma))
    while len(waiting):
        scale = sigma[waiting]
        y = sample_laplace(scale, 1, bits)
        quotient, remainder = _divide_square(y, 1, scale, 2 * scale * scale, 40 * scale)
        good = flip_exp_coins(remainder, 2 * scale * scale, bits)
        good &= _flip_exp_powers(quotient, bits)
        samples[waiting[good]] = y[good]
        waiting = waiting[~good]
    return samples


def sample_rational_gaussian(variance: Fraction, count: int, bits: Randomness) -> Counts:
    """Draw ``count`` independent Y with P[Y = y] proportional to exp(-y^2 / (2 variance)).

    Claim: exactly so, for any variance above 0 that is a fraction a / b. Let t be the whole part of
    its root, plus 1, and Y two-sided geometric of scale t, kept with probability
    exp(-(|Y| - a / (b t))^2 b / (2 a)). Then P[Y = y] is proportional to
    exp(-|y| / t) exp(-(|y| - a / (b t))^2 b / (2 a)), and all of the exponent but y^2 b / (2 a) is
    constant. In whole numbers it is (|y| b t - a)^2 over 2 a b t^2: in 64 bits where they are
    enough, else without bound.
    """
    a, b = variance.numerator, variance.denominator
    t = math.isqrt(a // b) + 1 if a > 0 else 0
    if not 0 < t <= _WIDEST:
        raise ParameterError("variance", f"be above 0 and at most {_WIDEST**2:,}", str(variance))
    below_ = 2 * a * b * t * t
    # Beyond the limit 64 bits are not enough.
    limit = min(60 * t, (math.isqrt(2**63 - 1) - a) // (b * t))
    large = limit < t or below_ >= 2**62
    samples = np.zeros(count, dtype=np.int64)
    waiting = np.arange(count)
    scale = np.full(count, t, dtype=np.int64)
    constants = (0, 0, 0) if large else (a, below_, limit)
    minus, under, limits = (np.full(count, value, dtype=np.int64) for value in constants)
    while len(waiting):
        n = len(waiting)
        y = sample_laplace(scale[:n], 1, bits)
        if large:
            good = flip_exp((np.abs(y).astype(object) * (b * t) - a) ** 2, below_, bits)
        else:
            quotient, remainder = _divide_square(y, b * t, minus[:n], under[:n], limits[:n])
            good = flip_exp_coins(remainder, under[:n], bits)
            good &= _flip_exp_powers(quotient, bits)
        samples[waiting[good]] = y[good]
        waiting = waiting[~good]
    return samples


def _divide_square(
    y: Counts, factor: int, minus: Counts, under: Counts, limit: Counts
) -> tuple[Counts, Counts]:
    """Divide each (|y| factor - minus)^2 by ``under``: whole parts and rests, exactly.

    Beyond ``limit`` the square would not fit into 64 bits, so there it is computed without bound.
    """
    size = np.abs(y)
    quotient, remainder = np.divmod((np.minimum(size, limit) * factor - minus) ** 2, under)
    for at in np.flatnonzero(size > limit):
        square = (int(size[at]) * factor - int(minus[at])) ** 2
        quotient[at], remainder[at] = divmod(square, int(under[at]))
    return quotient, remainder


def flip_exp(over: npt.NDArray[Any], under: int, bits: Randomness) -> npt.NDArray[np.bool_]:
    """For each whole number over >= 0 a coin that is true with probability exp(-over / under).

    Claim: exactly so. exp(-over / under) is the product of exp(-1), as often as under goes into
    over, and exp(-remainder / under): coins that must all be true. ``over`` holds 64-bit numbers,
    or Python's whole numbers of any size.
    """
    if over.dtype != object and under < 2**62:
        quotient, remainder = np.divmod(over, under)
        good = flip_exp_coins(remainder, np.full(len(over), under, dtype=np.int64), bits)
    else:
        parts = [divmod(int(number), under) for number in over]
        quotient = np.array([min(part[0], 2**62) for part in parts], dtype=np.int64)
        good = flip_large_exp([part[1] for part in parts], under, bits)
    return good & _flip_exp_powers(quotient, bits)


def flip_exp_coins(u: Counts, t: Counts, bits: Randomness) -> npt.NDArray[np.bool_]:
    """Flip for each pair 0 <= u <= t a coin that is true with probability exactly exp(-u / t).

    Coins of probability (u / t) / 1, (u / t) / 2, ... are thrown until one is false; the number
    of throws is odd with probability 1 - g + g^2/2! - ... = exp(-g), g = u / t.
    """
    odd = np.zeros(len(u), dtype=bool)
    alive = np.arange(len(u))
    throw = 1
    while len(alive):
        go_on = sample_below(t[alive], bits) < u[alive]
        if throw > 1:
            go_on &= sample_below(np.full(len(alive), throw, dtype=np.int64), bits) == 0
        odd[alive[~go_on]] = throw % 2 == 1
        alive = alive[go_on]
        throw += 1
    return odd


def _flip_exp_one_coins(count: int, bits: Randomness) -> npt.NDArray[np.bool_]:
    """Flip ``count`` coins true with probability exp(-1): :func:`flip_exp_coins` for u = t.

    There the first throw never fails, and each later one is the coin of 1 / 2, 1 / 3, ... alone.
    """
    odd = np.zeros(count, dtype=bool)
    alive = np.arange(count)
    throw = 2
    while len(alive):
        go_on = sample_below(np.full(len(alive), throw, dtype=np.int64), bits) == 0
        odd[alive[~go_on]] = throw % 2 == 1
        alive = alive[go_on]
        throw += 1
    return odd


def _count_successes(count: int, bits: Randomness) -> Counts:
    """Count the coins of probability exp(-1) that come true before the first that does not."""
    successes = np.zeros(count, dtype=np.int64)
    alive = np.arange(count)
    while len(alive):
        alive = alive[_flip_exp_one_coins(len(alive), bits)]
        successes[alive] += 1
    return successes


def _flip_exp_powers(powers: Counts, bits: Randomness) -> npt.NDArray[np.bool_]:
    """Flip for each whole number n a coin that is true with probability exp(-n)."""
    coins = np.ones(len(powers), dtype=bool)
    for throw in range(int(powers.max(initial=0))):
        alive = np.flatnonzero(coins & (powers > throw))
        if not len(alive):
            break
        coins[alive] = _flip_exp_one_coins(len(alive), bits)
    return coins


def compute_laplace_mean(t: Counts, s: int) -> Floats:
    """Return the mean of |Y|: 1 / sinh(s / t), which is close to t / s where that is large."""
    rate = s / t.astype(np.float64)
    return 1 / np.sinh(np.minimum(rate, 700.0))


def compute_gaussian_mean(sigma: Counts) -> Floats:
    """Return the mean of |Y|: summed for small sigma, by Euler-Maclaurin's formula for large."""
    wide = sigma.astype(np.float64)
    means = 2 * (wide**2 - 1 / 12) / (wide * math.sqrt(2 * math.pi))
    for small in np.unique(sigma[sigma <= 64]):
        y = np.arange(1, 12 * int(small) + 12)
        weights = np.exp(-(y**2) / (2.0 * float(small) ** 2))
        means[sigma == small] = 2 * (y * weights).sum() / (1 + 2 * weights.sum())
    return means


def find_sigma(diameter: int, *, epsilon: float, delta: float) -> int:
    """Return a whole sigma that makes values up to ``diameter`` apart indistinguishable.

    Claim: with it, adding :func:`sample_gaussian` noise is (epsilon, delta)-indistinguishable for
    any two whole numbers at most that far apart; see :func:`compute_gaussian_delta`. It is the
    smallest near the one that continuous noise would need.
    """
    if diameter < 1:
        raise ParameterError("diameter", "be a whole number from 1", diameter)
    if not 0 < epsilon < math.inf:
        raise ParameterError("epsilon", "be a finite number above 0 for Gaussian noise", epsilon)
    if not _SMALLEST_DELTA <= delta < 1:
        requirement = f"be at least {_SMALLEST_DELTA:g} and below 1 for Gaussian noise"
        raise ParameterError("delta", requirement, delta)
    continuous = _find_continuous_sigma(epsilon, delta) * diameter
    low = high = max(math.ceil(continuous), 1) if continuous <= _LARGEST_SIGMA else _LARGEST_SIGMA
    step = 1
    while compute_gaussian_delta(diameter, high, epsilon) > delta:
        if high >= _LARGEST_SIGMA:
            raise UnsolvableError(
                f"Noise for a diameter of {diameter:,} steps would have to be wider than "
                f"{_LARGEST_SIGMA:,} steps. Declare a coarser precision."
            )
        low, high, step = high, min(high + step, _LARGEST_SIGMA), 2 * step
    if low == high:
        low -= 1
        while low and compute_gaussian_delta(diameter, low, epsilon) <= delta:
            low, high = low - 1, low
    while high - low > 1:
        middle = (low + high) // 2
        is_enough = compute_gaussian_delta(diameter, middle, epsilon) <= delta
        low, high = (low, middle) if is_enough else (middle, high)
    return high


@lru_cache(maxsize=64)
def _find_continuous_sigma(epsilon: float, delta: float) -> float:
    """Return by bisection the sigma that continuous noise needs at distance 1: a first guess.

    Inf if it is more than the largest of all.
    """
    epsilon = min(epsilon, _LARGEST_EPSILON)

    def compute_needed_delta(sigma: float) -> float:
        return _compute_normal_excess(epsilon * sigma - 0.5 / sigma, 1 / sigma)[0]

    low, high = 1e-6, float(2 * _LARGEST_SIGMA)
    if compute_needed_delta(high) > delta:
        return math.inf
    while high - low > 1e-13 * high:
        middle = math.sqrt(low * high) if high > 2 * low else (low + high) / 2
        low, high = (middle, high) if compute_needed_delta(middle) > delta else (low, middle)
    return high


def compute_gaussian_delta(diameter: int, sigma: int, epsilon: float) -> float:
    """Return the least delta, or just above, of discrete Gaussian noise at this ``diameter``.

    Write w(y) = exp(-y^2 / (2 sigma^2)), y counted away from the other value, d for the
    diameter. Delta is the sum of [w(y) - e^epsilon w(y + d)]_+ over the sum of all weights
    (Canonne, Kamath, Steinke, Theorem 7). With c = d / sigma^2 and
    y0 = epsilon sigma^2 / d - d / 2, its terms are, for y > y0,

        f(y) = w(y) (1 - e^(-c (y - y0)))

    which nothing cancels in, and which e^epsilon does not appear in. Delta grows with d: by
    Neyman and Pearson the best test of one value against another is a threshold, and its power
    grows with the distance. All weights together are at least sigma sqrt(2 pi), by Poisson's
    summation formula. Never below the truth; a delta too small for a float is 2.2e-308.
    """
    epsilon = min(epsilon, _LARGEST_EPSILON)  # delta only falls with epsilon
    start = Fraction(epsilon) * sigma**2 / diameter - Fraction(diameter, 2)
    a, h = float(start) / sigma, diameter / sigma
    if a < -9:
        return 1.0  # within 1e-18
    if a > 38:
        return SMALLEST  # w(y0) is below 1e-313
    bound = _sum_terms if sigma <= _SUMMED else _bound_by_integral
    # a, b = a + h and the exponents, up to b^2 / 2 and 40 more, are off by a few units in the
    # last place; |d ln(delta) / da| < |a| + b + 2. Measured against 60 digits: a tenth of it.
    rounding = 1e-15 * ((a + h) ** 2 + 20)
    return min(max(bound(start, diameter, sigma) * (1 + rounding), SMALLEST), 1.0)


def _sum_terms(start: Fraction, diameter: int, sigma: int) -> float:
    """Return the sum of f over the sum of all weights, term by term.

    f is log-concave, so the rest after the last term is at most geometric.
    """
    first = math.floor(start) + 1
    last = math.ceil(math.sqrt(max(first, 0) ** 2 + 80 * sigma**2)) + 2
    y = np.arange(first, last + 1, dtype=np.float64)
    beyond = float(first - start) + (y - first)
    with np.errstate(under="ignore"):
        terms = np.exp(-(y**2) / (2.0 * sigma**2)) * -np.expm1(-diameter / sigma**2 * beyond)
    # From one term to the next 1 - e^(-c t) grows by less than 1 / t of itself.
    ratio = math.exp(-(2 * last + 1) / (2 * sigma**2)) * (1 + 1 / float(beyond[-1]))
    total = float(terms.sum()) + float(terms[-1]) * ratio / (1 - ratio)
    # The first two terms of Poisson's formula; the others are positive too.
    return total / (
        sigma * math.sqrt(2 * math.pi) * (1 + 2 * math.exp(-2 * (math.pi * sigma) ** 2))
    )


def _bound_by_integral(start: Fraction, diameter: int, sigma: int) -> float:
    """Return the integral of f over sigma sqrt(2 pi), plus what the sum may exceed it by.

    Let P be periodic with P' = x - 1/2 on [0, 1). The sum of f over whole numbers exceeds its
    integral by that of f' P', which is minus that of P df'. P has a range of 1/8, and f' comes
    from 0 and goes back to 0, so that is at most 1/8 of all that f' rises by.

    At y0, f' rises by c w(y0). From there on f' = c v - (y / sigma^2) f, v = w - f, where
    0 <= v <= w and f <= c (y - y0) w.

    - If y0 >= sigma, f'' then is negative, and positive from some point on: its sign is that of
      e^(c (y - y0)) - ((y + d)^2 - sigma^2) / (y^2 - sigma^2), which grows. So f' rises once more,
      to 0, from at least -(y / sigma^2) f >= -2 q e^-q c w(y0) >= -(2/e) c w(y0), with
      q = (y^2 - y0^2) / (2 sigma^2).
    - If not, f'' has at most five zeros (three derivatives of its sign's function leave e^(c y)
      times a polynomial of degree two), so f' rises at most three times, each time by at most
      c (1 + 2/e + 2 u), u = e^-1/2 max(-y0, 0) / sigma.
    """
    a, h = float(start) / sigma, diameter / sigma
    excess, tail = _compute_normal_excess(a, h)
    if a >= 1:
        rise = 0.217 * math.exp(-a * a / 2) / math.sqrt(2 * math.pi)  # (1 + 2/e) / 8
    else:
        rise = 0.31 + 0.19 * max(-a, 0.0)  # (1 + 3 (1 + 2/e + 2 u)) / 8 / sqrt(2 pi)
    # R(a) - R(b) is a difference of numbers that are off by a few units in their last place.
    return excess + rise * h / sigma**2 + 1e-14 * tail


def _compute_normal_excess(a: float, h: float) -> tuple[float, float]:
    """Return Q(a) - e^epsilon Q(a + h), epsilon = a h + h^2 / 2, and Q(a); Q the normal tail.

    With the normal density g, Q(x) = g(x) R(x) and e^epsilon g(a + h) = g(a): the difference is
    g(a) (R(a) - R(a + h)), in which no large number multiplies a small one.
    """
    from scipy.special import erfcx

    density = math.exp(-min(a * a / 2, 800.0)) / math.sqrt(2 * math.pi)
    further = math.sqrt(math.pi / 2) * float(erfcx((a + h) / math.sqrt(2)))
    if a < 0:
        tail = math.erfc(a / math.sqrt(2)) / 2
        return tail - density * further, tail
    near = math.sqrt(math.pi / 2) * float(erfcx(a / math.sqrt(2)))
    return density * (near - further), density * near
