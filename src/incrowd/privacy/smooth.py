"""f-smooth differential privacy: one curve that bounds delta at every epsilon at once.

An algorithm is f-smooth (epsilon_0, delta_0)-private if it satisfies
(epsilon, delta_0 f(epsilon / epsilon_0)) for every epsilon >= epsilon_0, where f(1) = 1 and
f falls. Plain (epsilon, delta) lets a violation be total; under a falling f the graver
violation is the rarer one. (Li, Qardaji, Su, section 6.) For a safe release f falls by
orders of magnitude but not to 0: beta**k is a floor of its delta at every epsilon.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Floats
from incrowd.errors import ParameterError, check_at_least_zero, check_fraction, check_whole
from incrowd.privacy.binomial import SMALLEST, as_given, check_definition


@dataclass(frozen=True)
class Smooth:
    """An f-smooth (``epsilon``, ``delta``) bound; ``f`` takes and returns arrays, f(1) = 1."""

    epsilon: float
    delta: float
    f: Callable[[Floats], Floats]

    def delta_at(self, epsilon: npt.ArrayLike) -> float | Floats:
        """The bound on delta at an epsilon of at least ``self.epsilon``."""
        at = check_at_least_zero("epsilon", epsilon)
        if np.any(at < self.epsilon):
            requirement = f"be at least the bound's own epsilon, {self.epsilon:g}"
            raise ParameterError("epsilon", requirement, float(np.min(at)))
        z = at / self.epsilon if self.epsilon else np.ones_like(at)
        return as_given(np.maximum(self.delta * self.f(z) * (1 + 1e-12), SMALLEST))

    def composed(self, other: Smooth) -> Smooth:
        """The bound for both algorithms on the same table (the paper's Theorem 5).

        At x (epsilon_1 + epsilon_2) the deltas add to delta_1 f_1(x) + delta_2 f_2(x),
        which is at most (delta_1 + delta_2) max(f_1, f_2)(x).
        """
        return Smooth(
            self.epsilon + other.epsilon,
            self.delta + other.delta,
            lambda z: np.maximum(self.f(z), other.f(z)),
        )


def smooth_bound(*, k: int, beta: float, epsilon: float) -> Smooth:
    """The f-smooth bound of a safe release from ``epsilon`` on (the paper's Theorem 6).

    Claim: delta(z) = exp(-k (ln(g/beta) - (g - beta)/g)), with
    g = 1 - (1 - beta) e^(-epsilon z), is at least the paper's delta at epsilon z.
    For each j >= k, Chernoff's bound gives P[Binomial(n, beta) >= j] <=
    exp(-(j ln(j / (beta n)) - j + beta n)); it grows with n while beta n < j, so over the
    n with g n < j it is at most its value at n = j/g, exp(-j (ln(g/beta) - (g - beta)/g)),
    which is largest at j = k. (The printed delta_0 has a misprint: its last numerator is
    gamma(1) - beta.)

    >>> bound = smooth_bound(k=20, beta=0.1, epsilon=0.5)
    >>> f"{bound.delta:.2e} {bound.delta_at(1.0):.2e}"
    '4.26e-07 7.59e-10'
    """
    size = float(check_whole("k", k))
    rate = check_fraction("beta", beta)
    start = check_at_least_zero("epsilon", epsilon)
    check_definition("paper", beta=rate, epsilon=start)

    def log_chernoff(z: Floats) -> Floats:
        g = rate - (1 - rate) * np.expm1(-start * z)
        return -size * (np.log(g / rate) - (g - rate) / g)

    log_start = float(log_chernoff(np.array(1.0)))
    first = max(float(np.exp(log_start)), SMALLEST)
    return Smooth(float(start), first, lambda z: np.exp(log_chernoff(z) - log_start))


def delta_sampling(*, delta: float, epsilon: float) -> Smooth:
    """The warning example: publish each row whole with probability delta, else nothing of it.

    It satisfies (0, delta) and therefore any (epsilon, delta), yet no f that goes to 0
    bounds it: its f is 1 throughout. Among 50 million people delta = 1e-7 exposes
    ``expected_failures(delta=1e-7, n=50_000_000)`` = 5 of them completely.
    """
    rate = float(check_fraction("delta", delta))
    return Smooth(float(check_at_least_zero("epsilon", epsilon)), rate, np.ones_like)


def expected_failures(*, delta: float, n: int) -> float:
    """delta times n: of how many people among n the epsilon bound is expected to fail at most.

    This reads delta as the probability of an outcome that tells too much, so it must be
    the paper's delta (``definition="paper"``); the tight one promises less.

    >>> round(expected_failures(delta=1e-7, n=50_000_000), 9)
    5.0
    """
    return float(check_fraction("delta", delta)) * float(check_whole("n", n))
