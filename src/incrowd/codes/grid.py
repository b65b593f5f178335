"""Noisy columns on a grid: values as whole numbers of steps, and back.

Whole numbers have steps of 1, dates of a day, decimals of their declared precision. Values
between two steps go to the nearer one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Steps
from incrowd.codes.values import canonicalize_value, parse_iso_day, parse_number
from incrowd.errors import IncrowdError

_EPOCH = dt.date(1970, 1, 1)
_FIRST, _LAST = (dt.date.min - _EPOCH).days, (dt.date.max - _EPOCH).days


@dataclass(frozen=True)
class Grid:
    """The step of a noisy column, and its declared bounds in steps."""

    kind: Literal["number", "date"]
    step: Decimal
    bounds: tuple[int, int] | None

    def decode_steps(self, steps: Steps) -> npt.NDArray[Any]:
        """Return the values at some steps: whole numbers, decimals, or days."""
        if self.kind == "date":
            return np.clip(steps, _FIRST, _LAST).astype("datetime64[D]")
        if self.step == self.step.to_integral_value():
            step = int(self.step)
            limit = np.iinfo(np.int64).max // step
            return np.clip(steps, -limit, limit) * step
        # The nearest float to each decimal, so that it is written as the decimal is.
        digits = -int(self.step.as_tuple().exponent)
        return np.round(steps * float(self.step), digits)

    def clamp_steps(self, steps: Steps) -> Steps:
        """Return steps moved into the declared bounds, where there are any."""
        return steps if self.bounds is None else np.clip(steps, *self.bounds)


def build_grid(
    name: str,
    values: Sequence[object],
    precision: Decimal | None,
    bounds: tuple[Decimal, Decimal] | None,
) -> tuple[Grid, Steps]:
    """Return the grid of a column and the step of each value; null is at step 0 (mask it).

    Without a declared precision all values must be whole numbers, or dates.
    """
    texts = [canonicalize_value(value) for value in values]
    days = [
        isinstance(value, dt.date)
        or (parse_number(text) is None and parse_iso_day(text) is not None)
        for value, text in zip(values, texts, strict=True)
        if text is not None
    ]
    if days and all(days):
        if precision is not None and precision % 1:
            raise IncrowdError(
                f"Column '{name}': the precision of dates is in whole days. Correct `precision`."
            )
        return _build_date_grid(name, bounds, texts)
    step = precision or Decimal(1)
    numbers = [None if text is None else parse_number(text) for text in texts]
    for text, number in zip(texts, numbers, strict=True):
        if text is not None and number is None:
            raise IncrowdError(
                f"Column '{name}': '{text}' is neither a number nor a date. Correct it, or drop "
                "the column."
            )
        if number is not None and precision is None and number % 1:
            raise IncrowdError(
                f"Column '{name}': {text} is not a whole number. Declare a `precision`, such as "
                "0.1."
            )
    return Grid("number", step, _convert_bounds(bounds, step)), _convert_steps(name, numbers, step)


def _build_date_grid(
    name: str, bounds: tuple[Decimal, Decimal] | None, texts: Sequence[str | None]
) -> tuple[Grid, Steps]:
    dates = [None if text is None else parse_iso_day(text) for text in texts]
    days = [None if day is None else Decimal((day - _EPOCH).days) for day in dates]
    if bounds is not None:
        raise IncrowdError(
            f"Column '{name}': bounds of noisy dates are not supported. Remove `bounds`."
        )
    return Grid("date", Decimal(1), None), _convert_steps(name, days, Decimal(1))


def _convert_bounds(
    bounds: tuple[Decimal, Decimal] | None, step: Decimal
) -> tuple[int, int] | None:
    if bounds is None:
        return None
    low, high = ((bound / step).to_integral_value(ROUND_HALF_EVEN) for bound in bounds)
    return int(low), int(high)


def _convert_steps(name: str, numbers: Sequence[Decimal | None], step: Decimal) -> Steps:
    steps = [
        0 if x is None else int((x / step).to_integral_value(ROUND_HALF_EVEN)) for x in numbers
    ]
    for at, number in enumerate(steps):
        if not -(2**63) <= number < 2**63:
            raise IncrowdError(
                f"Column '{name}': {numbers[at]} exceeds 64 bits at steps of {step}. Declare a "
                "coarser `precision`."
            )
    return np.array(steps, dtype=np.int64)
