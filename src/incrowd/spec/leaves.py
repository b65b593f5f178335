"""The finest values of a column as points: numbers or days, and the span that each one covers.

A leaf of ``intervals`` in steps of 5 covers five whole numbers, a leaf of ``dates`` by month the
days of a month. Synthetic rows show the leaf, or a point that is drawn from it
(``values: drawn``). Everything here follows from a declaration.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Literal, TypeAlias

from incrowd.codes.hierarchy import Hierarchy
from incrowd.codes.values import canonicalize_value, parse_iso_day, parse_number
from incrowd.errors import IncrowdError
from incrowd.spec.hierarchies import Dates, Intervals
from incrowd.spec.model import Column

Kind: TypeAlias = Literal["number", "date"]
ISO_DAY = "%Y-%m-%d"


class LeavesError(IncrowdError):
    """Points that a declaration does not give."""


@dataclass(frozen=True)
class Leaves:
    """For each value of a closed hierarchy the lowest and highest of its points.

    Points of numbers are whole multiples of ``step``, counted from 0; points of dates are days, by
    their ordinal. ``kind`` is None where values are neither, and then there are no points. A value
    without an end (``>90``) has None in place of the end.
    """

    kind: Kind | None
    lows: Sequence[int | None] = ()
    highs: Sequence[int | None] = ()
    step: Decimal = Decimal(1)
    format: str = ISO_DAY

    def __len__(self) -> int:
        return len(self.lows)

    @cached_property  # asked once for each value of a column
    def has_spans(self) -> bool:
        """Whether some value covers more than one point, or has no end."""
        pairs = zip(self.lows, self.highs, strict=True)
        return any(low is None or high is None or low < high for low, high in pairs)

    @property
    def is_bounded(self) -> bool:
        """Whether every value has two ends."""
        return None not in (*self.lows, *self.highs)

    def text(self, point: int) -> str:
        """Return a point as canonical text, a day as its ISO text."""
        if self.kind == "date":
            return dt.date.fromordinal(point).isoformat()
        return canonicalize_value(point * self.step) or "0"

    def point(self, text: str | None) -> int | None:
        """Return the point that a text stands for; None if it is none of the grid."""
        if text is None or self.kind is None:
            return None
        if self.kind == "date":
            day = parse_iso_day(text)
            return None if day is None else day.toordinal()
        number = parse_number(text)
        if number is None or number % self.step:
            return None
        return int(number / self.step)


def make_leaves(name: str, column: Column, hierarchy: Hierarchy) -> Leaves:
    """Return the points of the values of a column; see :class:`Leaves`.

    Raises:
        LeavesError: if ``precision`` does not divide the steps of the column.

    """
    declared = None if column.hierarchy is None else column.hierarchy.declaration
    if isinstance(declared, Intervals):
        return _of_intervals(name, declared, hierarchy, column.precision)
    if column.precision is not None:
        raise LeavesError(f"Column '{name}': `precision` is for `intervals`. Remove it.")
    if isinstance(declared, Dates):
        return _of_dates(declared, hierarchy)
    numbers = [parse_number(value) for value in hierarchy.values]
    decimals = [number for number in numbers if number is not None]
    if len(decimals) < len(numbers):
        return Leaves(None)
    step = _finest_step(decimals)
    points = [int(number / step) for number in decimals]
    return Leaves("number", points, points, step)


def _of_intervals(
    name: str, declared: Intervals, hierarchy: Hierarchy, precision: Decimal | None
) -> Leaves:
    integral = all(x == x.to_integral_value() for x in (declared.low, declared.high, declared.step))
    grid = precision or (Decimal(1) if integral else declared.step)
    if declared.step % grid or declared.low % grid:
        raise LeavesError(
            f"Column '{name}': precision {grid} does not divide the step {declared.step} and the "
            f"lowest value {declared.low}. Choose one that divides both."
        )
    lows: list[int | None] = []
    highs: list[int | None] = []
    start = declared.low
    for value in hierarchy.values:
        if value[:1] in ("<", ">") and parse_number(value) is None:
            below = value.startswith("<")
            lows.append(None if below else int(declared.high / grid) + 1)
            highs.append(int(declared.low / grid) - 1 if below else None)
            continue
        lows.append(int(start / grid))
        last = min(start + declared.step - grid, declared.high)
        highs.append(max(int(last // grid), int(start / grid)))
        start += declared.step
    return Leaves("number", lows, highs, grid)


def _of_dates(declared: Dates, hierarchy: Hierarchy) -> Leaves:
    if declared.levels[0] in ("hour", "weekday"):  # no day is a value, no value a run of days
        return Leaves(None)
    ends: dict[str, tuple[int, int]] = {}
    for ordinal in range(declared.low.toordinal(), declared.high.toordinal() + 1):
        label = hierarchy.locate(dt.date.fromordinal(ordinal)) or ""
        first, _ = ends.get(label, (ordinal, ordinal))
        ends[label] = first, ordinal
    pairs = [ends[value] for value in hierarchy.values]
    return Leaves(
        "date", [low for low, _ in pairs], [high for _, high in pairs], format=declared.format
    )


def _finest_step(numbers: Sequence[Decimal]) -> Decimal:
    """Return a power of ten that all numbers are multiples of."""
    places = max((-int(x.normalize().as_tuple().exponent) for x in numbers if x), default=0)
    return Decimal(1).scaleb(-max(places, 0))
