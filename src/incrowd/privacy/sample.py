"""Delta of one safe release: sample with beta, generalize, drop what occurs fewer than k times.

**Setting.** The scheme does not depend on the data. Two neighboring tables differ by one
row, and that row falls in one cell; all other cells are alike and independent. Let n be the
number of rows of the table with the row, in that cell. The release shows j rows of the
cell, where j is 0 (dropped) or at least k:

    P_n(0) = P[Binomial(n, beta) < k],     P_n(j) = f(j; n, beta) for j >= k.

``present`` is the divergence of P_n from P_{n-1} (somebody who is in the table),
``absent`` that of P_{n-1} from P_n. Both are hockey-stick divergences
sum_j [P(j) - e^epsilon Q(j)]_+, and (epsilon, delta)-differential privacy holds exactly
when neither exceeds delta for any n.

**Claim (the worst n, in closed form).** Write mean_n for the mean of n independent
Bernoulli(beta) draws, and let epsilon >= 0. With g = 1 - (1 - beta) e^-epsilon,

    max over n of present = e^epsilon / (1 - beta) * E[(mean_n - g)_+]  at n = ceil((k - 1) / g)

and with h = 1 - (1 - beta) e^epsilon, if h > 0,

    max over n of absent  = 1 / (1 - beta) * E[(h - mean_n)_+]          at n = ceil((k - 1) / h)

(n = 1 where k = 1). If h <= 0, that is epsilon >= -ln(1 - beta), absent is 0 for every n.

**Proof sketch.** For j >= k the ratio P_n(j) / P_{n-1}(j) is n (1 - beta) / (n - j). It
grows with j, it exceeds e^epsilon exactly where j > g n, and the ratio at 0 is at most 1.
So present(n) sums f(j; n, beta) e^epsilon (j/n - g) / (1 - beta) over the j that are at
least k and above g n.

- While g n < k - 1, adding a row changes present by
  beta f(k-1; n-1, beta) (n (1 - beta) / (n - k + 1) - e^epsilon), which is positive: it rises.
- From g n >= k - 1 on, the j above g n are all at least k, so present(n) is
  e^epsilon / (1 - beta) E[(mean_n - g)_+]. The means form a reverse martingale and
  x -> (x - g)_+ is convex, so by Jensen's inequality it falls with n.

The largest value is therefore at the first n with g n >= k - 1. For absent the same two
steps hold with (h - x)_+: the ratios that lie below e^-epsilon are a prefix of
0, k, k+1, ... that ends before h n, and the dropped outcome 0 sums the j below k. []

Where (k - 1) / g is a whole number up to rounding, the two n in question have the same
value up to rounding, so the ceiling needs no care.

**The paper's delta** (Li, Qardaji, Su, Theorem 1) bounds the probability of an outcome
whose ratio is out of bounds, max over n of P[Binomial(n, beta) > g n]. It is never below
the tight one, and is defined for epsilon >= -ln(1 - beta) only.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Floats
from incrowd.errors import (
    OutsideDefinitionError,
    check_at_least_zero,
    check_choice,
    check_fraction,
    check_whole,
)
from incrowd.privacy.tails import log_excess, log_shortfall, log_survival

Definition: TypeAlias = Literal["tight", "paper"]

SMALLEST = float(np.finfo(np.float64).tiny)
# ln(delta) is computed to about 1e-14 of its size plus 1e-14 (measured against 60 digits in
# tests/privacy/test_tails.py). A hundred times that is added before anyone sees a delta.
_ROUND_UP = 1e-12
# Delta only falls with epsilon, so at a smaller one it is an upper bound, and for k below e^300
# it is delta itself: the worst cell has k rows. Further on, (1 - beta) e^-epsilon comes near
# numbers that floats hold with few digits only (below 2.2e-308).
_LARGEST_EPSILON = 300.0
# By how much of their sizes epsilon + ln(1 - beta) may be off: a unit in the last place, twice.
_BORDER = 5e-16
# Below it the worst n leaves the floats, and absent is far below the smallest float.
_SMALLEST_H = 1e-280


@overload
def delta(*, k: float, beta: float, epsilon: float, definition: Definition = "tight") -> float: ...
@overload
def delta(
    *,
    k: npt.ArrayLike,
    beta: npt.ArrayLike,
    epsilon: npt.ArrayLike,
    definition: Definition = "tight",
) -> Floats: ...
def delta(
    *,
    k: npt.ArrayLike,
    beta: npt.ArrayLike,
    epsilon: npt.ArrayLike,
    definition: Definition = "tight",
) -> float | Floats:
    """Return the delta of a safe release with the given k, beta and epsilon, rounded up.

    Args:
        k: Threshold: groups with fewer sampled rows are suppressed.
        beta: Sampling rate.
        epsilon: Epsilon at which delta is computed.
        definition: "tight" for the smallest valid delta, "paper" for Theorem 1 of the paper.

    Returns:
        Delta, as a number for numbers and an array for arrays, which are broadcast. A delta
        that is too small for a float is 2.2e-308, never 0.

    Raises:
        ParameterError: A parameter is out of range.

    Examples:
        >>> f"{delta(k=20, beta=0.1, epsilon=1.0):.3e}"
        '2.761e-15'
        >>> f"{delta(k=20, beta=0.1, epsilon=1.0, definition='paper'):.3e}"
        '4.073e-14'
    """
    k, beta, epsilon = (
        check_whole("k", k),
        check_fraction("beta", beta),
        check_at_least_zero("epsilon", epsilon),
    )
    check_definition(definition, beta=beta, epsilon=epsilon)
    shape = np.broadcast_shapes(k.shape, beta.shape, epsilon.shape)
    k, beta, epsilon = (np.broadcast_to(x, shape).ravel() for x in (k, beta, epsilon))
    value = np.maximum(round_up_exp(log_delta(k, beta, epsilon, definition)), SMALLEST)
    return unwrap_scalar(value.reshape(shape))


def check_definition(definition: str, *, beta: Floats, epsilon: Floats) -> None:
    """Refuse an unknown definition, and the paper's where the paper proves nothing."""
    check_choice("definition", definition, ("tight", "paper"))
    if definition == "paper":
        lower_bound = -np.log1p(-beta)
        beta, lower_bound, epsilon = np.broadcast_arrays(beta, lower_bound, epsilon)
        bad = epsilon < lower_bound * (1 - 1e-12)  # the bound itself, however rounded, is allowed
        if np.any(bad):
            bound, rate = float(lower_bound[bad][0]), float(beta[bad][0])
            raise OutsideDefinitionError(
                "epsilon",
                f"be at least -ln(1 - beta) = {bound:.6g} for beta = {rate:g} under the paper's "
                "definition",
                float(epsilon[bad][0]),
                "Use definition='tight', which has no such limit, or a smaller beta.",
            )


def log_delta(k: Floats, beta: Floats, epsilon: Floats, definition: str) -> Floats:
    """Return ln(delta), elementwise, not yet rounded up."""
    if definition == "paper":
        return _log_paper_delta(k, beta, epsilon)
    return np.maximum(
        log_present_divergence(k, beta, epsilon), log_absent_divergence(k, beta, epsilon)
    )


def round_up_exp(log: Floats) -> Floats:
    """Return exp(log), never below the true value although ``log`` carries rounding errors."""
    size = np.where(np.isfinite(log), np.abs(log), 0.0)
    with np.errstate(under="ignore"):
        return np.exp(np.minimum(log + _ROUND_UP * (1 + size), 0.0))


def unwrap_scalar(values: Floats) -> float | Floats:
    """Return a zero-dimensional result as a plain number, others as they are."""
    return float(values) if values.ndim == 0 else values


def log_present_divergence(k: Floats, beta: Floats, epsilon: Floats) -> Floats:
    """Return ln of the largest divergence of the release with the row from that without it."""
    epsilon = np.minimum(epsilon, _LARGEST_EPSILON)
    complement = (1 - beta) * np.exp(-epsilon)
    g = beta - (1 - beta) * np.expm1(-epsilon)
    n = np.maximum(np.ceil((k - 1) / g), k)  # g < 1, whatever rounding says
    return epsilon - np.log1p(-beta) + log_excess(n, beta, 1 - beta, g, complement)


def log_absent_divergence(k: Floats, beta: Floats, epsilon: Floats) -> Floats:
    """Return ln of the largest divergence of the release without the row from that with it."""
    border = -np.log1p(-beta)
    # Near the border h is as small as the rounding errors of its parts; it must not be too small.
    h = -np.expm1(np.minimum(epsilon - border - _BORDER * (epsilon + border), 1.0))
    possible = h > k * _SMALLEST_H
    h = np.where(possible, h, beta)
    n = np.maximum(np.ceil((k - 1) / h), k)
    log = log_shortfall(n, beta, 1 - beta, h) - np.log1p(-beta)
    return np.where(possible, log, -np.inf)


def _log_paper_delta(k: Floats, beta: Floats, epsilon: Floats) -> Floats:
    """Return ln of max over n >= ceil(k/g - 1) of P[Binomial(n, beta) > g n].

    Between two whole values of g n the tail only grows with n, so for each j >= k the one n
    to look at is the last with g n < j; a tie up to rounding counts as below, which gives
    the larger delta. By Chernoff's bound, the value at any n is at most
    exp(-n KL(g, beta)), which falls with n: the search over j stops once that bound is
    below the best value seen.
    """
    g = beta - (1 - beta) * np.expm1(-epsilon)
    divergence = g * np.log(g / beta) - (1 - g) * epsilon
    best = np.full_like(beta, -np.inf)
    j = k.copy()
    active = np.arange(beta.size)
    while active.size:
        x, p = j[active], beta[active]
        n = np.ceil(x / g[active] * (1 + 1e-14)) - 1
        best[active] = np.maximum(best[active], log_survival(x, n, p, 1 - p))
        active = active[-n * divergence[active] + 1e-9 > best[active]]
        j[active] += 1
    return best
