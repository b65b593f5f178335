"""The meaning of epsilon and delta for one person, in numbers and in one sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass

from incrowd.findings import format_percent

FALSE_POSITIVE_RATES = (0.001, 0.01, 0.05)
LARGE_EPSILON, LARGE_DELTA = 10.0, 1e-4  # larger ones get a warning
_LARGEST_EXPONENT = 700.0  # beyond this e^epsilon is no float


@dataclass(frozen=True)
class Strength:
    """The strength of a guarantee: a name, a sentence, and whether it is a warning."""

    name: str
    text: str
    is_warning: bool


_STRENGTHS = (
    (1.0, "strong", "Protection is strong (ε ≤ 1)."),
    (3.0, "moderate", "Protection is moderate (1 < ε ≤ 3)."),
    (LARGE_EPSILON, "weak", f"Protection is weak (3 < ε ≤ {LARGE_EPSILON:g})."),
)


def classify_guarantee(epsilon: float, delta: float = 0.0) -> Strength:
    """Return how much a guarantee protects. Every surface shows this classification.

    >>> classify_guarantee(1.0, 1e-6).name, classify_guarantee(100.0, 1e-6).is_warning
    ('strong', True)
    """
    if epsilon > LARGE_EPSILON:
        text = (
            f"There is hardly any protection: ε = {epsilon:.4g} is above {LARGE_EPSILON:g}, and "
            f"the probability of an outcome may change by a factor of {format_factor(epsilon)}."
        )
        return Strength("hardly any", text, is_warning=True)
    if delta > LARGE_DELTA:
        text = (
            f"Protection is weak: δ = {delta:.3g} is above {LARGE_DELTA:g}, and the probability of "
            "an outcome may change by δ, whatever ε is."
        )
        return Strength("weak", text, is_warning=True)
    return next(Strength(name, text, False) for limit, name, text in _STRENGTHS if epsilon <= limit)


def max_true_positive_rate(false_positive_rate: float, epsilon: float, delta: float) -> float:
    """Return the largest share of people in the table whom an attacker can recognize as such.

    ``false_positive_rate`` is the share of people outside the table whom the attacker takes for
    members. With P the probabilities with and Q those without a person, P(yes) <= e^epsilon Q(yes)
    + delta, and Q(no) <= e^epsilon P(no) + delta; the smaller bound counts.
    """
    if epsilon > _LARGEST_EXPONENT:
        return 1.0
    factor = math.exp(epsilon)
    rate = false_positive_rate
    return max(min(factor * rate + delta, 1 - (1 - rate - delta) / factor, 1.0), 0.0)


def describe_attacker(epsilon: float, delta: float, *, members: str = "people in the table") -> str:
    """Return the sentence on what an attacker can achieve at a false-positive rate of 1 %.

    >>> describe_attacker(1.0, 0.0)
    'An attacker who accepts a 1 % false-positive rate recognizes at most 2.72 % of the people in the table as being in it.'
    """  # noqa: E501 - the sentence
    rate = format_upper_percent(max_true_positive_rate(0.01, epsilon, delta))
    return (
        f"An attacker who accepts a 1 % false-positive rate recognizes at most {rate} of the "
        f"{members} as being in it."
    )


def format_factor(epsilon: float) -> str:
    """Return e^epsilon with four digits, rounded up."""
    if epsilon > _LARGEST_EXPONENT:
        return "more than 1e304"
    factor = math.exp(epsilon)
    unit = 10.0 ** (math.floor(math.log10(factor)) - 3)
    return f"{math.ceil(factor / unit) * unit:.4g}"


def format_upper_percent(share: float) -> str:
    """Return a share in percent, rounded up to two decimals."""
    return format_percent(min(math.ceil(share * 10_000) / 10_000, 1.0), 2)
