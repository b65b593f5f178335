"""Slow and certain: the release of one cell, and a noisy choice, to many digits or exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import comb
from typing import Any

import mpmath

Weights = list[int]


def compute_outcomes(n: int, k: int, beta: Fraction) -> Weights:
    """Nothing shown, k shown, k + 1 shown, ... for n rows: probabilities times d**n, beta = a/d."""
    a, d = beta.numerator, beta.denominator
    pmf = [comb(n, j) * a**j * (d - a) ** (n - j) for j in range(n + 1)]
    return [sum(pmf[:k]), *pmf[k:]]


@dataclass(frozen=True)
class OutcomePair:
    """The outcomes with n rows and with n - 1 rows, as whole weights of a common total."""

    present: Weights
    absent: Weights
    total: int

    def swap_sides(self) -> OutcomePair:
        return OutcomePair(self.absent, self.present, self.total)

    def compute_divergence(self, t: Fraction) -> Fraction:
        """sum [present - t absent]_+."""
        u, v = t.numerator, t.denominator
        above = sum(max(v * x - u * y, 0) for x, y in zip(self.present, self.absent, strict=True))
        return Fraction(above, v * self.total)

    def compute_bad_mass(self, t: Fraction, *, ties: bool) -> Fraction:
        """P[an outcome whose ratio leaves [1/t, t]]; with ``ties`` also one that touches t."""
        u, v = t.numerator, t.denominator
        bad = [
            x
            for x, y in zip(self.present, self.absent, strict=True)
            if v * x > u * y or v * y > u * x or (ties and v * x == u * y)
        ]
        return Fraction(sum(bad), self.total)


@cache
def make_neighbors(n: int, k: int, beta: Fraction) -> OutcomePair:
    """A cell of n rows beside the same cell without one of them."""
    present = compute_outcomes(n, k, beta)
    absent = [x * beta.denominator for x in compute_outcomes(n - 1, k, beta)]
    absent += [0] * (len(present) - len(absent))
    return OutcomePair(present, absent, beta.denominator**n)


def compute_mp_divergences(n: int, k: int, beta: float, epsilon: float) -> tuple[Any, Any]:
    """Both divergences of a cell of n rows, to 50 digits, by summing over the outcomes.

    Sums run outwards from the dropped outcome and stop when the terms no longer matter.
    """
    with mpmath.workdps(50):
        b, t = mpmath.mpf(beta), mpmath.exp(mpmath.mpf(epsilon))
        low_n, low_m = _compute_mp_cdf(k, n, b), _compute_mp_cdf(k, n - 1, b)
        present = max(low_n - t * low_m, mpmath.mpf(0))
        absent = max(low_m - t * low_n, mpmath.mpf(0))
        j, f = k, _compute_mp_pmf(k, n, b)
        while j <= n:
            g = f * (n - j) / (n * (1 - b))  # f(j; n - 1)
            present += max(f - t * g, 0)
            absent += max(g - t * f, 0)
            if j > b * n and f < (present + absent) * mpmath.mpf(10) ** -25:
                break
            f *= mpmath.mpf(n - j) / (j + 1) * b / (1 - b)
            j += 1
        return present, absent


def _compute_mp_pmf(j: int, n: int, b: Any) -> Any:
    if not 0 <= j <= n:
        return mpmath.mpf(0)
    return mpmath.binomial(n, j) * b**j * (1 - b) ** (n - j)


def _compute_mp_cdf(k: int, n: int, b: Any) -> Any:
    """P[Binomial(n, b) < k], summed downwards from k - 1, or as a complement."""
    if k > n:
        return mpmath.mpf(1)
    if k - 1 > b * n:
        return 1 - _sum_mp_tail(k, n, b)
    total, j, f = mpmath.mpf(0), k - 1, _compute_mp_pmf(k - 1, n, b)
    while j >= 0 and (total == 0 or f > total * mpmath.mpf(10) ** -60):
        total += f
        f *= mpmath.mpf(j) / (n - j + 1) * (1 - b) / b
        j -= 1
    return total


def _sum_mp_tail(k: int, n: int, b: Any) -> Any:
    total, j, f = mpmath.mpf(0), k, _compute_mp_pmf(k, n, b)
    while j <= n and (total == 0 or f > total * mpmath.mpf(10) ** -60):
        total += f
        f *= mpmath.mpf(n - j) / (j + 1) * b / (1 - b)
        j += 1
    return total


def compute_mp_tail(k: int, n: int, beta: float) -> Any:
    """P[Binomial(n, beta) >= k] to 50 digits."""
    with mpmath.workdps(50):
        return _sum_mp_tail(k, n, mpmath.mpf(beta))


def compute_choice_law(scores: list[int] | tuple[int, ...], rate: Any) -> list[float]:
    """The probability of each candidate where P[X >= x] = exp(-x rate), to many digits.

    With noise x candidate i beats j if X_j < g_j + x, g_j = s_i - s_j, plus 1 where j comes
    later. Nothing is won while some g_j + x <= 0; from then on the product of
    1 - q**(g_j + x) is a polynomial in q**x, and each of its terms a geometric series.
    """
    with mpmath.workdps(60):
        q = mpmath.exp(-rate)
        choice_law = []
        for i, score in enumerate(scores):
            gaps = [score - s + (i < j) for j, s in enumerate(scores) if j != i]
            start = max([0, *(-gap for gap in gaps)])
            terms = [mpmath.mpf(1)]
            for gap in gaps:
                share = q ** (gap + start)
                terms = [a - share * b for a, b in zip([*terms, 0], [0, *terms], strict=True)]
            series = (term / (1 - q ** (n + 1)) for n, term in enumerate(terms))
            choice_law.append(float(q**start * (1 - q) * sum(series)))
    assert abs(sum(choice_law) - 1) < 1e-12
    return choice_law
