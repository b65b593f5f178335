"""Binomial tails to full relative accuracy, in logarithms, elementwise on arrays.

``n`` and ``j`` are whole numbers held in floats; past 2**53 n is the nearest float, which
shifts it by less than one part in 1e15. A probability comes as the pair ``p``, ``q = 1 - p``:
the caller knows the small one of the two exactly, and one of them is always small where
accuracy is hard.
"""

from __future__ import annotations

import math

import numpy as np

from incrowd.arrays import Floats

_NEGLIGIBLE = 1e-16
_BLOCK_CELLS = 200_000
_SMALL = 16
_STIRLING_TABLE = np.array(
    [0.0]
    + [
        math.log(math.factorial(n)) - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2 * math.pi)
        for n in range(1, _SMALL)
    ]
)


def _stirling_error(n: Floats) -> Floats:
    """Return ln n! minus Stirling's formula for it; n >= 1."""
    small = _STIRLING_TABLE[np.minimum(n, _SMALL - 1).astype(np.int64)]
    inverse = 1 / np.maximum(n, _SMALL)
    square = inverse * inverse
    series = inverse * (
        1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))
    )
    return np.where(n < _SMALL, small, series)


def _deviance(x: Floats, mean: Floats, difference: Floats) -> Floats:
    """Return x ln(x / mean) - (x - mean) for x, mean > 0, given ``difference = x - mean``.

    Near x = mean the plain formula cancels; there a series in (x - mean) / (x + mean)
    with only positive terms past the first is used.
    """
    v = difference / (x + mean)
    is_small = np.abs(v) < 0.1
    v = np.where(is_small, v, 0.0)
    total = difference * v
    power = 2 * x * v
    for odd in range(3, 23, 2):
        power = power * v * v
        total = total + power / odd
    return np.where(is_small, total, x * np.log(x / mean) - difference)


def log_pmf(j: Floats, n: Floats, p: Floats, q: Floats) -> Floats:
    """Return ln P[Binomial(n, p) = j] for 0 <= j <= n, by Loader's saddle-point expansion.

    The error is a few units in the last place of the result, plus about 1e-14: the large
    logarithms of the factorials never appear, so nothing cancels, however large n is.
    """
    inside = (j > 0) & (j < n)
    x = np.where(inside, j, 1.0)
    y = np.where(inside, n - j, 1.0)
    size = x + y
    difference = np.where(p < q, x - size * p, size * q - y)
    middle = (
        _stirling_error(size)
        - _stirling_error(x)
        - _stirling_error(y)
        - _deviance(x, size * p, difference)
        - _deviance(y, size * q, -difference)
        - 0.5 * np.log(2 * math.pi * x * (y / size))
    )
    edge = np.where(j > 0, n * _log_probability(p, q), n * _log_probability(q, p))
    return np.where(inside, middle, edge)


def _log_probability(p: Floats, q: Floats) -> Floats:
    """Return ln p, by way of the complement q where p is close to 1."""
    with np.errstate(divide="ignore"):
        return np.where(p < 0.5, np.log(p), np.log1p(-q))


def log_survival(j: Floats, n: Floats, p: Floats, q: Floats) -> Floats:
    """Return ln P[Binomial(n, p) >= j] for j > n p, rounded up by the truncated rest."""
    sums, _ = _bound_outward_sums(n - j, j, p / q)
    return log_pmf(j, n, p, q) + np.log(sums)


def log_excess(n: Floats, p: Floats, q: Floats, g: Floats, h: Floats) -> Floats:
    """Return ln E[(mean - g)_+] of the mean of n Bernoulli(p) draws; p <= g < 1, h = 1 - g.

    All terms of the sum are positive, so nothing cancels; the part cut off is bounded and
    added. Where g n is a whole number up to rounding, the term in doubt is zero up to
    rounding, so its side does not matter.
    """
    j = np.minimum(np.floor(np.where(g < h, g * n, n - h * n)) + 1, n)
    above = np.where(g < h, j - g * n, h * n - (n - j))
    sums, moments = _bound_outward_sums(n - j, j, p / q)
    mean: Floats = (np.maximum(above, 0.0) * sums + moments) / n
    return log_pmf(j, n, p, q) + np.log(mean)


def log_shortfall(n: Floats, p: Floats, q: Floats, h: Floats) -> Floats:
    """Return ln E[(h - mean)_+] for the mean of n Bernoulli(p) draws, where 0 < h <= p.

    The same, downwards from the last count below h n. The counts stay small however large
    n is, so nothing is lost even where n itself is no longer exact.
    """
    j = np.maximum(np.ceil(h * n) - 1, 0.0)
    below = h * n - j
    sums, moments = _bound_outward_sums(j, n - j, q / p)
    mean: Floats = (below * sums + moments) / n
    return log_pmf(j, n, p, q) + np.log(mean)


def _bound_outward_sums(left: Floats, gone: Floats, odds: Floats) -> tuple[Floats, Floats]:
    """Return upper bounds on sum_i r_1...r_i and sum_i i r_1...r_i over i >= 0.

    r_i = (left - i + 1) / (gone + i) odds is the ratio of neighboring binomial terms on the
    way out from the mean. It falls with i and is below 1, so the rest after any term is at
    most geometric; that bound is added when the terms stop mattering.
    """
    last, total, moment = np.ones_like(gone), np.ones_like(gone), np.zeros_like(gone)
    offset, block = 0, 16
    while True:
        i = np.arange(offset + 1, offset + block + 1, dtype=np.float64)[:, None]
        ratio = np.maximum(left - (i - 1), 0.0) / (gone + i) * odds
        term = last * np.cumprod(ratio, axis=0)
        total = total + term.sum(axis=0)
        moment = moment + (i * term).sum(axis=0)
        last, step = term[-1], np.minimum(ratio[-1], 1 - 1e-9)
        offset += block
        rest = last * step / (1 - step)
        rest_moment = rest * (offset + 1 / (1 - step))
        if np.all((rest <= _NEGLIGIBLE * total) & (rest_moment <= _NEGLIGIBLE * (moment + total))):
            return total + rest, moment + rest_moment
        block = min(2 * block, max(16, _BLOCK_CELLS // gone.size))
