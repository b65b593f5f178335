"""Randomized response over declared categories: PRAM with an exact local epsilon.

A row keeps its category with probability p, and otherwise shows one of the d - 1 others, each with
probability q = (1 - p) / (d - 1) (Warner 1965; Kairouz, Oh and Viswanath 2014).

**Claim.** Whatever two categories a row might have, each published category is at most
max(p / q, q / p) times as likely under one as under the other. This is local differential privacy
of the category with epsilon = ln max(p / q, q / p), whatever the rest of the row is. Proof: a
category v is published with probability p if it is the row's own, and q if not, so that two rows
differ by p / q, q / p or 1.

p is a multiple of 2**-53, rounded down from the largest one that epsilon allows, so that a float
holds it exactly and 64 random bits draw it exactly: no rounding is in our favor. Decimal arithmetic
bounds e**epsilon from below.

**Estimate.** With f the published share of a category, (f - q) / (p - q) is an unbiased estimate of
its share among these rows: E f = share p + (1 - share) q. Rows respond independently, so that its
variance is (share p (1 - p) + (1 - share) q (1 - q)) / (n (p - q)**2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from incrowd.arrays import Codes, Floats
from incrowd.errors import ParameterError
from incrowd.privacy.randomness import Randomness, sample_below

_GRAIN = 2**53
_DIGITS = Context(prec=60)


def choose_keep_rate(epsilon: Fraction, categories: int) -> float:
    """Return the largest exact probability of keeping a category that epsilon allows.

    >>> choose_keep_rate(Fraction(10), 2) > 0.9999
    True
    """
    if categories < 2:
        raise ParameterError("values", "list two categories or more", categories)
    if not epsilon > 0:
        raise ParameterError("epsilon", "be above 0", float(epsilon))
    ratio = _DIGITS.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator)).next_minus(
        context=_DIGITS
    )
    odds = Fraction(_DIGITS.exp(ratio).next_minus(context=_DIGITS))  # below e ** epsilon
    rate = Fraction(math.floor(odds / (odds + categories - 1) * _GRAIN), _GRAIN)
    if max(compute_odds(rate, categories)) > odds:
        raise ParameterError("epsilon", "not be so near 0", float(epsilon))
    return float(rate)  # exactly: a multiple of 2 ** -53


def compute_odds(keep: Fraction, categories: int) -> tuple[Fraction, Fraction]:
    """Return p / q and q / p, exactly."""
    other = (1 - keep) / (categories - 1)
    if not 0 < keep < 1:
        raise ParameterError("keep", "lie between 0 and 1", float(keep))
    return keep / other, other / keep


def round_up_epsilon(responses: Sequence[tuple[float, int]]) -> float:
    """Return an epsilon of six decimals that responses together do not exceed."""
    epsilon = math.fsum(
        math.log(max(compute_odds(Fraction(keep), categories))) for keep, categories in responses
    )
    rounded = round(epsilon, 6)
    return rounded if is_within_epsilon(responses, rounded) else round(rounded + 1e-6, 6)


def is_within_epsilon(responses: Sequence[tuple[float, int]], epsilon: float) -> bool:
    """Return whether responses together, of keep rates and categories, cost at most epsilon.

    Exactly: the product of their odds is compared with a lower bound of e ** epsilon.
    """
    odds = Fraction(1)
    for keep, categories in responses:
        odds *= max(compute_odds(Fraction(keep), categories))
    exact = Fraction(repr(epsilon))
    ratio = _DIGITS.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    ratio = ratio.next_minus(context=_DIGITS)
    return odds <= Fraction(_DIGITS.exp(ratio).next_minus(context=_DIGITS))


def randomize_categories(codes: Codes, keep: float, categories: int, bits: Randomness) -> Codes:
    """Draw what each row shows; ``codes`` has its category, from 0.

    Claim: exact. A row is kept if a uniform 64-bit word is below keep 2**64, a whole number; the
    others move on by 1 to d - 1 places, uniformly and independently of that word.
    """
    threshold = int(Fraction(keep) * 2**64)
    is_kept = bits.draw_words(len(codes)) < np.uint64(threshold)
    released = codes.astype(np.int64)
    moved = np.flatnonzero(~is_kept)
    steps = 1 + sample_below(np.full(len(moved), categories - 1, dtype=np.int64), bits)
    released[moved] = (released[moved] + steps) % categories
    return released.astype(np.int32)


def estimate_shares(shares: Floats, keep: float, rows: int) -> tuple[Floats, Floats]:
    """Return the estimated share of each category among these rows, and its standard error.

    >>> estimates, errors = estimate_shares(np.array([0.7, 0.3]), 0.9, 10_000)
    >>> estimates.round(3).tolist(), errors.round(6).tolist()
    ([0.75, 0.25], [0.00375, 0.00375])
    """
    other = (1 - keep) / (len(shares) - 1)
    if keep == other:
        return np.full(len(shares), math.nan), np.full(len(shares), math.inf)
    estimates = (shares - other) / (keep - other)
    inside = np.clip(estimates, 0.0, 1.0)
    variance = inside * keep * (1 - keep) + (1 - inside) * other * (1 - other)
    return estimates, np.sqrt(variance / max(rows, 1)) / abs(keep - other)
