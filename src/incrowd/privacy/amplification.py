"""Amplification: what a guarantee is worth when the table is itself a random sample.

If a mechanism satisfies (epsilon, delta) on every table, and the table holds each member of
a population independently with probability ``rate``, then for the population it satisfies
(ln(1 + rate (e^epsilon - 1)), rate delta). The premise: each person's own membership of the
table is unknown to the attacker, who may know everybody else's. (Where everybody's were
secret, a release with beta would do as well as one with rate times beta; respondents know
their own, so that is never accounted.) In the words of the paper, from sampling rate beta_1
to a smaller beta_2 the rate is beta_2 / beta_1; there both samples are the algorithm's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Floats
from incrowd.errors import check_at_least_zero, check_fraction

_ROUNDING = 2e-15  # twice what the functions below may be off by, of their results


@dataclass(frozen=True)
class Guarantee:
    """A guarantee of (epsilon, delta)-differential privacy.

    Attributes:
        epsilon: The privacy loss.
        delta: The probability that is added.
    """

    epsilon: float
    delta: float = 0.0


def amplify_guarantee(*, epsilon: float, rate: float, delta: float = 0.0) -> Guarantee:
    """Return what (epsilon, delta) on the sample guarantees for the population.

    Args:
        epsilon: Epsilon on the sample.
        rate: Probability with which each person of the population is in the sample, independently.
        delta: Delta on the sample.

    Returns:
        The guarantee for a person whose membership in the sample is unknown.

    Raises:
        ParameterError: A parameter is out of range.

    Examples:
        >>> round(amplify_guarantee(epsilon=1.0, rate=0.1).epsilon, 3)
        0.159
    """
    epsilon, rate, delta = _check_parameters(epsilon, rate, delta)
    amplified = float(amplify_epsilon(np.array([epsilon]), rate)[0])
    return Guarantee(amplified, math.nextafter(rate * delta, 1.0) if delta else 0.0)


def invert_amplification(*, epsilon: float, rate: float, delta: float = 0.0) -> Guarantee:
    """Return the budget on the sample under which (epsilon, delta) holds for the population.

    The inverse of :func:`amplify_guarantee`.

    Args:
        epsilon: Epsilon for the population.
        rate: Probability with which each person of the population is in the sample, independently.
        delta: Delta for the population.

    Returns:
        The guarantee on the sample.

    Raises:
        ParameterError: A parameter is out of range.

    Examples:
        >>> round(invert_amplification(epsilon=0.1, rate=0.01).epsilon, 2)
        2.44
    """
    epsilon, rate, delta = _check_parameters(epsilon, rate, delta)
    inside = float(invert_epsilon(np.array([epsilon]), rate)[0])
    return Guarantee(inside, min(math.nextafter(delta / rate, 0.0), 1.0))


def amplify_epsilon(epsilon: Floats, rate: float) -> Floats:
    """Return ln(1 + rate (e^epsilon - 1)), never below it.

    Where e^epsilon leaves the floats it is ln((1 - rate) + e^(epsilon + ln rate)), whose parts
    are as exact as their sizes allow.
    """
    is_far = epsilon > 600
    near = np.log1p(rate * np.expm1(np.minimum(epsilon, 600.0)))
    log = np.log(rate)
    further = np.logaddexp(np.log1p(-rate), epsilon + log) + 5e-16 * (epsilon - log)
    return np.where(is_far, further, near) * (1 + _ROUNDING)


def invert_epsilon(epsilon: Floats, rate: float) -> Floats:
    """Return ln(1 + (e^epsilon - 1) / rate), the inverse, never above it.

    From 1 on as epsilon - ln rate + ln(1 - (1 - rate) e^-epsilon), of which the last part is
    small beside the first: nothing overflows.
    """
    with np.errstate(over="ignore"):  # at rates below 1e-307
        near = np.log1p(np.expm1(np.minimum(epsilon, 1.0)) / rate)
    further = epsilon - np.log(rate) + np.log1p(-(1 - rate) * np.exp(-np.maximum(epsilon, 1.0)))
    return np.where(epsilon > 1, further, near) * (1 - _ROUNDING)


def _check_parameters(epsilon: float, rate: float, delta: float) -> tuple[float, float, float]:
    return (
        float(check_at_least_zero("epsilon", epsilon)),
        float(check_fraction("rate", rate)),
        0.0 if delta == 0 else float(check_fraction("delta", delta)),
    )
