"""Hierarchies for numbers and dates, with the levels that people of the field would draw.

Each is the YAML of a hierarchy, with the reason for it and whether its range was read from the
data, and so is to be confirmed.
"""

from __future__ import annotations

import datetime as dt
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from incrowd.codes.values import canonicalize_value
from incrowd.spec.base import quote_scalar

_MOST_STEPS = 5  # at most ten to that power at level 0
_ROUNDED = "range from the data, rounded outward"
_SKEWED = 30  # how far the largest lies above the middle


@dataclass(frozen=True)
class HierarchyProposal:
    """A hierarchy as YAML, the reason for it, and whether it was read from the data.

    ``origin`` says from where a range comes; a spec does not repeat it, so that nothing false is
    left in it once a curator has replaced the range.
    """

    hierarchy: str
    reason: str
    read: bool = True
    origin: str = ""


def propose_ages() -> HierarchyProposal:
    """Propose ages from 0 to 89, with 90 or more as one group, as HIPAA has it."""
    fields = "from: 0, to: 89, widths: [5, 10, 30], open: upper"
    return HierarchyProposal(
        f"{{intervals: {{{fields}}}}}", "ages; 90 and above are one group", read=False
    )


def propose_years(numbers: Sequence[Decimal]) -> HierarchyProposal:
    """Propose years, lustres, decades and so on up to about half, from one decade to another."""
    low = int(min(numbers)) // 10 * 10
    decades = (int(max(numbers)) - low) // 10 + 1
    widths = [5, *(10 * width for width in list_widths(decades))] if decades > 1 else [5]
    high = low + 10 * decades - 1
    high = _cut_at_this_year(high, int(max(numbers))) if decades > 1 else high
    fields = f"from: {low}, to: {high}, widths: {widths}"
    return HierarchyProposal(
        f"{{intervals: {{{fields}}}}}", "years", origin="range from the data, rounded to decades"
    )


def propose_degrees(numbers: Sequence[Decimal]) -> HierarchyProposal:
    """Propose intervals of coordinates: a hundredth of a degree is about a kilometer."""
    low, high = (int(x.to_integral_value(ROUND_FLOOR)) for x in (min(numbers), max(numbers)))
    wide = high + 1 - low
    degrees = list_widths(wide) if wide > 1 else []
    widths = ["0.25", "0.5", *map(str, degrees)]
    end = _round_end(Decimal(high + 1), Decimal("0.01"), max(numbers))
    fields = f"from: {low}, to: {_format_decimal(end)}, step: 0.01, widths: [{', '.join(widths)}]"
    reason = "degrees, in steps of 0.01 (about 1 km)"
    return HierarchyProposal(f"{{intervals: {{{fields}}}}}", reason, origin="range from the data")


def is_skewed(numbers: Sequence[Decimal]) -> bool:
    """Return whether even intervals would hold nearly all numbers in one."""
    if len(numbers) < 20 or min(numbers) < 0:
        return False
    middle = statistics.median(numbers)
    return bool(middle > 0 and max(numbers) > _SKEWED * middle)


def propose_amounts(numbers: Sequence[Decimal]) -> HierarchyProposal:
    """Propose intervals for amounts far apart: 1, 2, 5 times powers of ten, then powers."""
    top = max(numbers).adjusted()
    middle = statistics.median_low([x for x in numbers if x > 0]).adjusted()
    first = max(min(middle - 1, top - 1), top - _MOST_STEPS + 1)
    step = Decimal(1).scaleb(first)
    fine = [Decimal(x).scaleb(power) for power in range(first, top + 1) for x in (1, 2, 5)]
    coarse = [Decimal(1).scaleb(power) for power in range(first, top + 1)]
    fine = [x for x in fine if x <= max(numbers)]
    last = min(step, max(_find_finest_step(numbers), step / 1000))
    high = _round_end(Decimal(10).scaleb(top), last, max(numbers))
    levels = [fine, coarse, [coarse[(len(coarse) + 1) // 2]]] if len(coarse) > 2 else [fine, coarse]
    cuts = ", ".join(f"[{', '.join(map(_format_decimal, level))}]" for level in levels)
    fields = f"from: 0, to: {_format_decimal(high)}, step: {_format_decimal(step)}, cuts: [{cuts}]"
    reason = "amounts, few of them large"
    return HierarchyProposal(f"{{intervals: {{{fields}}}}}", reason, origin=_ROUNDED)


def propose_numbers(numbers: Sequence[Decimal]) -> HierarchyProposal:
    """Propose round widths of the column's own scale, from fine to half the range."""
    finest = _find_finest_step(numbers)
    spread = max(max(numbers) - min(numbers), finest)
    unit = Decimal(1).scaleb(spread.adjusted())
    if spread < 2 * unit:
        unit /= 10
    order = spread.adjusted() + (spread != Decimal(1).scaleb(spread.adjusted()))
    step = max(finest, Decimal(1).scaleb(order - _MOST_STEPS))
    unit = max(unit, step)
    low = (min(numbers) / unit).to_integral_value(ROUND_FLOOR) * unit
    parts = max(((max(numbers) + finest - low) / unit).to_integral_value(ROUND_CEILING), Decimal(1))
    # Whole numbers are counted to the last one: 0-999999 also where a step is 10.
    high = _round_end(low + parts * unit, finest if finest == 1 else step, max(numbers))
    widths = [
        width
        for width in (unit / 4, unit / 2, *(unit * units for units in list_widths(int(parts))))
        if width > step and width % step == 0 and width < high - low
    ]
    listed = ", ".join(_format_decimal(width) for width in dict.fromkeys(widths))
    steps = "" if step == 1 else f"step: {_format_decimal(step)}, "
    fields = f"from: {_format_decimal(low)}, to: {_format_decimal(high)}, {steps}widths: [{listed}]"
    return HierarchyProposal(f"{{intervals: {{{fields}}}}}", "numbers", origin=_ROUNDED)


def list_widths(parts: int) -> list[int]:
    """List widths from 1 to about half of so many parts, each two or three times the one before.

    Without a gap between two of them a column need not go from fine to hardly anything.

    >>> [list_widths(parts) for parts in (2, 5, 9, 10, 13, 20)]
    [[1], [1, 3], [1, 2, 6], [1, 2, 6], [1, 2, 4, 8], [1, 2, 4, 12]]
    """
    powers = [2**twos * 3**threes for twos in range(11) for threes in range(7)]
    last = min(width for width in powers if 2 * width >= parts)
    widths = [last]
    while widths[0] > 1:
        widths.insert(0, widths[0] // (3 if widths[0] % 3 == 0 else 2))
    return widths


def propose_days(days: Sequence[dt.date]) -> HierarchyProposal:
    """Propose days by decades, or by years where all lie in three."""
    first, last = min(days).year, max(days).year
    if last - first <= 2:
        low, high, levels = first, last, ", levels: [day, month, quarter, year]"
    else:
        low, high, levels = first // 10 * 10, min(last // 10 * 10 + 9, 9999), ""
    low, high = max(low, 1, last - 1000), _cut_at_this_year(high, last)
    fields = f"from: {low:04}-01-01, to: {high:04}-12-31{levels}"
    by = "years" if levels else "decades"
    return HierarchyProposal(
        f"{{dates: {{{fields}}}}}", "dates", origin=f"range from the data, rounded to {by}"
    )


def _cut_at_this_year(high: int, last: int) -> int:
    """Return the end of a range of years; it lies in the future only where values do."""
    now = dt.datetime.now(dt.UTC).year
    return high if last > now else min(high, now)


def propose_number_order(texts: Sequence[str]) -> HierarchyProposal | None:
    """Propose an order of texts by the number that they begin with: 18-24, 25-34, 65+."""
    places = [re.match(r"\D{0,2}?(-?\d+(?:\.\d+)?)", text) for text in texts]
    sizes = [Decimal(place[1]) for place in places if place]
    if len(sizes) < len(texts) or len(set(sizes)) < len(sizes) or len(sizes) < 3:
        return None
    ordered = [text for _, text in sorted(zip(sizes, texts, strict=True))]
    return replace(
        propose_listed_order(ordered), reason=f"{len(texts)} distinct values, in numerical order"
    )


def propose_listed_order(values: Sequence[str]) -> HierarchyProposal:
    """Propose an order of values that is given."""
    runs: list[int] = []
    while len(values) > 3 and (not runs or len(values) > 3 * runs[-1]):
        runs.append(2 * (runs[-1] if runs else 1))
    listed = ", ".join(map(quote_scalar, values))
    fields = f"values: [{listed}]" + (f", runs: {runs}" if runs else "")
    return HierarchyProposal(
        f"{{order: {{{fields}}}}}", f"{len(values)} values in the order of the file"
    )


def _round_end(edge: Decimal, step: Decimal, largest: Decimal) -> Decimal:
    """Return the end of a range below an edge: a step below it, or less where a number is nearer.

    >>> [str(_round_end(Decimal(300), Decimal("0.01"), Decimal(x))) for x in ("299.5", "299.9951")]
    ['299.99', '299.999']
    """
    while edge - step < largest:
        step /= 10
    return edge - step


def _find_finest_step(numbers: Sequence[Decimal]) -> Decimal:
    """Return the last decimal place of any of the numbers; 1 for whole ones."""
    return Decimal(1).scaleb(min(min(int(x.as_tuple().exponent) for x in numbers), 0))


def _format_decimal(x: Decimal) -> str:
    return canonicalize_value(x) or "0"
