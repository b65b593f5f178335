"""Parameters as they are shown: never better than they are."""

from __future__ import annotations

import decimal


def rounded(name: str, value: float, digits: int) -> str:
    """A parameter with so many significant digits, never better than it is.

    beta and what is left of a budget are rounded down and everything else up, so that what is
    shown holds.

    >>> rounded("epsilon", 0.18298860, 3), rounded("beta", 0.25377, 4), rounded("delta", 1e-6, 3)
    ('0.183', '0.2537', '1e-06')
    """
    way = decimal.ROUND_FLOOR if name in ("beta", "left") else decimal.ROUND_CEILING
    exact = decimal.Context(prec=digits, rounding=way).create_decimal(repr(value))
    return f"{float(exact):.{digits}g}"
