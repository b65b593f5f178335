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
from incrowd.privacy.sample import SMALLEST, check_definition, unwrap_scalar


@dataclass(frozen=True)
class SmoothBound:
    """An f-smooth bound on delta, as in section 6 of paper A.

    Attributes:
        epsilon: The smallest epsilon of the bound.
        delta: Delta at that epsilon.
        f: A function of arrays with f(1) = 1; delta at ``z * epsilon`` is at most ``delta * f(z)``.
    """

    epsilon: float
    delta: float
    f: Callable[[Floats], Floats]

    def delta_at(self, epsilon: npt.ArrayLike) -> float | Floats:
        """Return the bound on delta at an epsilon of at least ``self.epsilon``.

        Args:
            epsilon: One or several values of at least ``self.epsilon``.

        Returns:
            The bound, as a number for a number, an array for an array.

        Raises:
            ParameterError: An epsilon lies below that of the bound.
        """
        at = check_at_least_zero("epsilon", epsilon)
        if np.any(at < self.epsilon):
            requirement = f"be at least the bound's own epsilon, {self.epsilon:g}"
            raise ParameterError("epsilon", requirement, float(np.min(at)))
        z = at / self.epsilon if self.epsilon else np.ones_like(at)
        return unwrap_scalar(np.maximum(self.delta * self.f(z) * (1 + 1e-12), SMALLEST))

    def compose(self, other: SmoothBound) -> SmoothBound:
        """Return the bound for both algorithms on the same table (the paper's Theorem 5).

        At x (epsilon_1 + epsilon_2) the deltas add to delta_1 f_1(x) + delta_2 f_2(x), which is at
        most (delta_1 + delta_2) max(f_1, f_2)(x).

        Args:
            other: The bound of the other algorithm.

        Returns:
            The bound for both.
        """
        return SmoothBound(
            self.epsilon + other.epsilon,
            self.delta + other.delta,
            lambda z: np.maximum(self.f(z), other.f(z)),
        )


def smooth_bound(*, k: int, beta: float, epsilon: float) -> SmoothBound:
    """Return the f-smooth bound of a safe release from ``epsilon`` on (the paper's Theorem 6).

    Claim: delta(z) = exp(-k (ln(g/beta) - (g - beta)/g)), with g = 1 - (1 - beta) e^(-epsilon z),
    is at least the paper's delta at epsilon z. For each j >= k, Chernoff's bound gives
    P[Binomial(n, beta) >= j] <= exp(-(j ln(j / (beta n)) - j + beta n)); it grows with n while beta
    n < j, so over the n with g n < j it is at most its value at n = j/g, exp(-j (ln(g/beta) - (g -
    beta)/g)), which is largest at j = k. (The printed delta_0 has a misprint: its last numerator is
    gamma(1) - beta.)

    Args:
        k: Threshold: groups with fewer sampled rows are suppressed.
        beta: Sampling rate.
        epsilon: The smallest epsilon of the bound.

    Returns:
        The bound.

    Raises:
        ParameterError: A parameter is out of range.

    Examples:
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
    return SmoothBound(float(start), first, lambda z: np.exp(log_chernoff(z) - log_start))


def delta_sampling(*, delta: float, epsilon: float) -> SmoothBound:
    """Return the warning example: each row published whole with probability delta, else not.

    It satisfies (0, delta) and therefore every (epsilon, delta), yet no f that goes to 0 bounds it:
    its f is 1 throughout. Among 50 million people, delta = 1e-7 exposes 5 of them completely.

    Args:
        delta: Probability with which a row is published.
        epsilon: The smallest epsilon of the bound.

    Returns:
        The bound.

    Raises:
        ParameterError: A parameter is out of range.

    Examples:
        >>> round(delta_sampling(delta=1e-7, epsilon=1.0).delta_at(10.0), 12)
        1e-07
    """
    rate = float(check_fraction("delta", delta))
    return SmoothBound(float(check_at_least_zero("epsilon", epsilon)), rate, np.ones_like)


def expected_failures(*, delta: float, n: int) -> float:
    """Return delta times n: a bound on the expected number of people for whom epsilon fails.

    This reads delta as the probability of an outcome beyond e^epsilon. Use the paper's delta
    (``definition="paper"``): the tight one does not bound that probability.

    Args:
        delta: The delta of a release.
        n: Number of people.

    Returns:
        The expected number of people.

    Raises:
        ParameterError: A parameter is out of range.

    Examples:
        >>> round(expected_failures(delta=1e-7, n=50_000_000), 9)
        5.0
    """
    return float(check_fraction("delta", delta)) * float(check_whole("n", n))
