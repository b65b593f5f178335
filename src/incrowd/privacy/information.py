"""A budget for synthetic rows: how much to choose with, how much to measure with, and what is left.

``information`` is the parameter of :class:`~incrowd.privacy.events.GaussianMeasurements`, the
square of mu in the terms of Gaussian differential privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from incrowd.errors import ParameterError, UnsolvableError, check_fraction, check_whole
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import BoundedChoice, Event, GaussianMeasurements
from incrowd.privacy.gaussian import LARGEST_MEASURED

CHOICES_SHARE = 0.03
_STEPS = 24
_GRID = 2**80


@dataclass(frozen=True)
class InformationPlan:
    """``choices`` choices of range ``choice_epsilon`` beside measurements of ``information``."""

    information: float
    choices: int
    choice_epsilon: float

    @property
    def events(self) -> tuple[Event, ...]:
        """What is charged: every choice, made or not, and the whole of the information."""
        choices = [BoundedChoice(self.choice_epsilon)] * self.choices if self.choices else []
        return (*choices, GaussianMeasurements(self.information))


@lru_cache(maxsize=64)
def plan_information(
    *, epsilon: float, delta: float, choices: int, choices_share: float = CHOICES_SHARE
) -> InformationPlan:
    """Return the most information, beside so many choices, within (epsilon, delta).

    The choices get a range of sqrt(3 choices_share mu^2 / choices), with mu that of measurements
    largest: about ``choices_share`` of the whole. What remains is found by bisection against the
    accountant, from below; the answer's own cost has been computed and is within the budget.

    Raises:
        UnsolvableError: if epsilon is too small for any measurement.

    """
    if not 0 < epsilon < math.inf:
        raise ParameterError("epsilon", "be a finite number above 0", epsilon)
    check_fraction("delta", delta)
    check_whole("choices", choices, least=0)
    largest = _most_information(epsilon, delta, (), 1e-12, 1e6)
    if not choices:
        return InformationPlan(largest, 0, 0.0)
    fair = math.sqrt(3 * choices_share * largest / choices)
    choice_epsilon = math.floor(fair * 1e9) / 1e9
    if not choice_epsilon > 0:
        raise UnsolvableError(
            f"With epsilon {epsilon:g} nothing is left for {choices:,} choices. Raise epsilon."
        )
    choice_events = (BoundedChoice(choice_epsilon),) * choices
    low = largest * (1 - 4 * choices_share)
    information = _most_information(epsilon, delta, choice_events, low, largest)
    return InformationPlan(information, choices, choice_epsilon)


def _most_information(
    epsilon: float, delta: float, other_events: Sequence[Event], low: float, high: float
) -> float:
    """Return the largest information, of six digits, that fits the budget with other events."""

    def is_within(information: float) -> bool:
        events = (*other_events, GaussianMeasurements(information))
        return Accountant(events).delta(epsilon=epsilon) <= delta

    while not is_within(low):
        if low <= 2e-12:
            raise UnsolvableError(
                f"No measurement is private enough for epsilon {epsilon:g} and delta {delta:g}. "
                "Raise one of them."
            )
        low, high = max(low / 4, 1e-12), low
    if is_within(high):
        return high
    for _ in range(80):
        if high <= low * (1 + 1e-6):
            break
        middle = math.sqrt(low * high)
        low, high = (middle, high) if is_within(middle) else (low, middle)
    return _round_down(low)


def _round_down(number: float) -> float:
    """Return the number with seven digits; delta grows with it, so what was within stays within."""
    digits = 6 - math.floor(math.log10(number))
    exact = Fraction(math.floor(Fraction(number) * Fraction(10) ** digits)) / Fraction(10) ** digits
    return float(exact)


class InformationBudget:
    """What is left of some information, in exact fractions.

    Parts are whole multiples of 2^-80 and never sum to more than there was, whatever they
    depend on.
    """

    def __init__(self, information: float) -> None:
        self.total = Fraction(GaussianMeasurements(information).information)
        self._left = self.total
        self._measured = 0

    @property
    def left(self) -> Fraction:
        """What has not been spent."""
        return self._left

    def spend(self, part: Fraction | float, numbers: int) -> Fraction:
        """Take a part, or what is left if that is less, for so many measured numbers; return it.

        Raises:
            ParameterError: if the part is not above 0, or nothing is left.

        """
        exact = Fraction(math.floor(Fraction(part) * _GRID), _GRID)
        amount = min(exact, self._left)
        if not amount > 0:
            raise ParameterError("part", "be above 0 and within what is left", float(part))
        self._measured += numbers
        if self._measured > LARGEST_MEASURED:
            raise ParameterError("numbers", f"be at most {LARGEST_MEASURED:,} in all", numbers)
        self._left -= amount
        return amount
