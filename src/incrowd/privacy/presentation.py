"""Results as they are shown: figures never better than they are, answers in figures and words."""

from __future__ import annotations

import decimal
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from html import escape


class PlanResult(ABC):
    """Figures by name, and a few sentences on their meaning."""

    @abstractmethod
    def as_dict(self) -> Mapping[str, int | float | str]:
        """Return the figures as plain values, for JSON."""

    @abstractmethod
    def describe(self) -> str:
        """Return what the figures mean, in a few sentences."""

    def format_figures(self) -> list[tuple[str, str]]:
        """Return names and values for display: six digits, rounded against us."""
        return [
            (name, value if isinstance(value, str) else format_parameter(name, value, 6))
            for name, value in self.as_dict().items()
        ]

    def __str__(self) -> str:
        figures = self.format_figures()
        width = max(10, *(len(name) for name, _ in figures))
        return "\n".join(
            [*(f"{name:<{width}}  {value}" for name, value in figures), self.describe()]
        )

    def _repr_html_(self) -> str:
        cells = [(escape(name), escape(value)) for name, value in self.format_figures()]
        rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in cells)
        return f"<table>{rows}</table><p>{escape(self.describe())}</p>"


def read_as_decimal(value: float) -> Fraction:
    """Return the decimal number that a finite float is written as, exactly.

    Specs, certificates and ledgers hold decimals, and noise is drawn with them. The binary number
    that a float holds is up to half a unit in the last place larger or smaller.

    >>> read_as_decimal(0.7), Fraction(0.7) < read_as_decimal(0.7)
    (Fraction(7, 10), True)
    """
    return Fraction(repr(float(value)))


def format_parameter(name: str, value: float, digits: int) -> str:
    """Return a parameter with ``digits`` significant digits, never better than it is.

    beta and what is left of a budget are rounded down and everything else up, so that what is
    shown holds.

    >>> format_parameter("epsilon", 0.18298860, 3), format_parameter("beta", 0.25377, 4)
    ('0.183', '0.2537')
    >>> format_parameter("delta", 1e-6, 3)
    '1e-06'
    """
    way = decimal.ROUND_FLOOR if name in ("beta", "left") else decimal.ROUND_CEILING
    exact = decimal.Context(prec=digits, rounding=way).create_decimal(repr(value))
    return f"{float(exact):.{digits}g}"


def round_crowd_size(crowd: float) -> int:
    """Round a crowd, such as k / beta or r + k, to the number of people stated everywhere.

    It is rounded up, the way for which it is proved that so many people are shown at least as often
    as not: where n * beta >= k, a binomial variable has a mean, and so a median, of at least k.
    Rounded down that can be false: with k = 17 and beta = 0.9, a crowd of 18.9, 18 people are shown
    45 % of the time. What floating point leaves above a whole number does not count.

    >>> [round_crowd_size(crowd) for crowd in (14 / 0.2537, 12 / 0.2, 3 / 0.1, 19)]
    [56, 60, 30, 19]
    """
    return max(math.ceil(crowd - 1e-9), 1)
