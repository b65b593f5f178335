"""A budget split between private choices and counts: the law of noise that needs the least crowd.

**One table.** Choices that satisfy epsilon_1, epsilon_2, ... and geometric noise of what is left,
epsilon - sum of epsilon_i, satisfy (epsilon, p(r)) together: past its own epsilon the noise costs
p(r), whatever happened before. Nothing is gained by a larger epsilon of the noise, since below it
the profile jumps far above any useful delta. As r is whole, p(r) lies below delta; a coin that sees
no data takes r - 1 where the average of both still fits, and uses delta up; not where delta of
r - 1 would be more than twice the average (:func:`incrowd.privacy.counts.is_even`).

**Several tables.** Either each has geometric noise of an equal part, or Gaussian noise, which adds
up less: from about three tables on it needs the smaller crowd. Its variance is found by the
formulas of the law without bound, r then by the accountant, which has the last word on both. (A
coin would gain less than one person of a crowd of dozens.)

Where the table is itself a sample, all of it is amplified together: geometric noise is settled for
what may be spent on the sample, and both laws are accounted as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from incrowd.arrays import Floats
from incrowd.errors import ParameterError, UnsolvableError
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.amplification import Guarantee, allowed
from incrowd.privacy.counts import geometric_law, is_even, smallest_reach
from incrowd.privacy.events import (
    LARGEST_R,
    Coin,
    Composition,
    GaussianCounts,
    GeometricCounts,
)
from incrowd.privacy.solver import smallest_whole
from incrowd.privacy.split import LAST_DIGITS, Split, refuse_if_spent, signs

_LEAST_DELTA = 1e-300
_WIDEST = 1_000_000  # the largest variance that is drawn
_TRIES = 8


def counted(
    *,
    epsilon: float,
    delta: float,
    selections: Sequence[float] = (),
    choices: Sequence[float] = (),
    tables: int = 1,
    population: float | None = None,
) -> Split:
    """A budget with the counts of smallest bound r: within (epsilon, delta), all together."""
    if delta < _LEAST_DELTA:
        raise ParameterError("delta", f"be at least {_LEAST_DELTA:g} for counts", delta)
    chosen = (*choices, *tuple(selections) * tables)
    refuse_if_spent(chosen, epsilon=epsilon, delta=delta, population=population)
    empty = Split(
        epsilon, delta, Composition(()), tuple(selections), tuple(choices), tables, population
    )  # fmt: skip
    inside = Guarantee(epsilon, delta)
    if population is not None:
        inside = allowed(epsilon=epsilon, delta=delta, rate=population)
    geometric = _geometric(empty, inside, chosen)
    gaussian = _gaussian(empty, inside, chosen) if tables > 1 else None
    found = [split for split in (geometric, gaussian) if split is not None]
    if not found:
        raise UnsolvableError(
            f"No noisy counts with noise of at most {LARGEST_R:,} reach ε = {epsilon:g}, δ = "
            f"{delta:g} (tables: {tables}). Use a larger ε or δ, or fewer tables."
        )
    return min(found, key=lambda split: split.draws[-1].r)  # type: ignore[union-attr]


def _fits(split: Split) -> bool:
    found = Accountant(split.events).delta(epsilon=split.epsilon)
    return found * (1 + LAST_DIGITS) <= split.delta


def _geometric(empty: Split, inside: Guarantee, chosen: Sequence[float]) -> Split | None:
    """Geometric noise of an equal part of what choices leave; None where they leave nothing."""
    left = (Fraction(inside.epsilon) - sum(map(Fraction, chosen))) / empty.tables
    millionths = round(left * 1_000_000)
    while Fraction(millionths / 1e6) > left:  # floats add up exactly, and to no more than that
        millionths -= 1
    part = min(-math.expm1(math.log1p(-min(inside.delta, 0.5)) / empty.tables), 0.5)
    for _ in range(_TRIES):
        own = millionths / 1e6
        if own <= 0:
            return None
        r = max(smallest_reach(own, part * (1 - 2 * LAST_DIGITS)), 1)
        if r > LARGEST_R:
            return None
        split = replace(empty, event=GeometricCounts(r, own))
        if _fits(split):
            return _with_coin(split, part) if empty.tables == 1 else split
        millionths -= 1
    return None


def _with_coin(split: Split, delta: float) -> Split:
    """The same with a coin between r - 1 and r, where delta leaves room for it."""
    (event,) = split.draws
    assert isinstance(event, GeometricCounts)
    if event.r < 2:
        return split
    less, more = (geometric_law(event.epsilon, r).beyond for r in (event.r - 1, event.r))
    spent = more
    if split.population is None:  # delta of r itself, and what reading epsilon either way may cost
        spent = max(spent, Accountant(split.events).delta(epsilon=split.epsilon))
    chance = math.floor((delta * (1 - 2 * LAST_DIGITS) - spent) / (less - more) * 1e6) / 1e6
    if not 0 < chance < 1:
        return split
    coin = Coin(GeometricCounts(event.r - 1, event.epsilon), event, chance)
    tossed = replace(split, event=coin)
    return tossed if is_even(coin) and _fits(tossed) else split


def _gaussian(empty: Split, inside: Guarantee, chosen: Sequence[float]) -> Split | None:
    """Gaussian noise of the variance at which r is least."""
    guess = _guessed(empty.tables, inside, chosen)
    if guess is None:
        return None
    variance, near = guess

    def split(r: int) -> Split:
        return replace(empty, event=GaussianCounts(r, variance))

    r = smallest_whole(lambda r: _fits(split(r)), near, LARGEST_R)
    return split(int(r)) if math.isfinite(r) else None


def _guessed(tables: int, inside: Guarantee, chosen: Sequence[float]) -> tuple[float, int] | None:
    """The variance at which r is least, and that r, by the formulas of the law without bound.

    Gaussian noise of variance v on so many tables has the profile of one Gaussian whose mean is
    mu = sqrt(tables / v) of its spread; the choices shift epsilon to either side. What is left of
    delta goes to p(r) in every table.
    """
    from scipy.special import log_ndtr

    variances = np.geomspace(0.05, _WIDEST, 2000)
    sums, shares = signs(chosen)
    mu = np.sqrt(tables / variances)[:, None]
    at = inside.epsilon - sums[None, :]
    tails = np.exp(log_ndtr(mu / 2 - at / mu)) - np.exp(at + log_ndtr(-mu / 2 - at / mu))
    left = inside.delta - tails @ shares
    with np.errstate(invalid="ignore", divide="ignore"):
        odds: Floats = np.log(tables / (np.sqrt(2 * math.pi * variances) * left))
        reach = np.sqrt(2 * variances * np.maximum(odds, 0.0))
    reach[~(left > 0)] = math.inf
    best = int(np.argmin(reach))
    if not math.isfinite(reach[best]):
        return None
    digits = max(2 - math.floor(math.log10(variances[best])), 0)
    return round(float(variances[best]), min(digits, 3)), max(math.ceil(reach[best]), 1)
