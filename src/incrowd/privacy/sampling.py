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

from dataclasses import dataclass

import numpy as np

from incrowd.errors import check_at_least_zero, check_fraction


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-differential privacy."""

    epsilon: float
    delta: float = 0.0


def amplified(*, epsilon: float, rate: float, delta: float = 0.0) -> Guarantee:
    """What (epsilon, delta) on the sample guarantees for the population.

    >>> round(amplified(epsilon=1.0, rate=0.1).epsilon, 3)
    0.159
    """
    epsilon, rate, delta = _checked(epsilon, rate, delta)
    up = 1 + 1e-15  # rounded up
    return Guarantee(float(np.log1p(rate * np.expm1(epsilon))) * up, rate * delta * up)


def allowed(*, epsilon: float, rate: float, delta: float = 0.0) -> Guarantee:
    """What may be spent on the sample so that (epsilon, delta) holds for the population.

    The inverse of :func:`amplified`.

    >>> round(allowed(epsilon=0.1, rate=0.01).epsilon, 2)
    2.44
    """
    epsilon, rate, delta = _checked(epsilon, rate, delta)
    down = 1 - 1e-15  # rounded down
    return Guarantee(
        float(np.log1p(np.expm1(epsilon) / rate)) * down, min(delta / rate * down, 1.0)
    )


def _checked(epsilon: float, rate: float, delta: float) -> tuple[float, float, float]:
    return (
        float(check_at_least_zero("epsilon", epsilon)),
        float(check_fraction("rate", rate)),
        0.0 if delta == 0 else float(check_fraction("delta", delta)),
    )
