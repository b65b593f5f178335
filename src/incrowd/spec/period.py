"""Periods of days, as a spec writes them: 2026, 2026-Q3, 2026-07, 2026-W31, 2026-07-31."""

from __future__ import annotations

import datetime as dt
import re
from typing import Literal, TypeAlias

from incrowd.codes.values import canonicalize_value, parse_iso_day

Every: TypeAlias = Literal["year", "quarter", "month", "week", "day", "value"]
EXAMPLES = {
    "year": "2026", "quarter": "2026-Q3", "month": "2026-07", "week": "2026-W31",
    "day": "2026-07-31",
}  # fmt: skip


_SHORT = re.compile(r"(\d{4})[ -]?([QqWw])(\d{1,2})")


def write_period(text: str, every: str) -> str:
    """Write a period in the one way that ledgers and certificates have; others as they are.

    >>> [write_period(text, "week") for text in ("2026w5", "2026-W05", "5")]
    ['2026-W05', '2026-W05', '5']
    """
    match = _SHORT.fullmatch(text)
    if match is None or every not in ("quarter", "week"):
        return text
    year, letter, number = match[1], match[2].upper(), int(match[3])
    return f"{year}-{letter}{number:02d}" if letter == "W" else f"{year}-{letter}{number}"


def name_period(value: object, every: str) -> str | None:
    """Return the period of a day, or of a value itself; None where there is none.

    >>> [name_period("2026-08-31", every) for every in ("year", "quarter", "month", "week")]
    ['2026', '2026-Q3', '2026-08', '2026-W36']
    """
    text = canonicalize_value(value)
    if text is None or every == "value":
        return text
    day = parse_iso_day(text[:10])
    if day is None:
        return None
    year, week, _ = day.isocalendar()
    return {
        "year": f"{day.year}", "quarter": f"{day.year}-Q{(day.month + 2) // 3}",
        "month": f"{day.year}-{day.month:02d}", "week": f"{year}-W{week:02d}",
        "day": day.isoformat(),
    }[every]  # fmt: skip


def find_first_day(period: str, every: str) -> str | None:
    """Return the first day of a period, or a value itself; None of what is no such period.

    >>> [find_first_day(EXAMPLES[every], every) for every in ("year", "quarter", "week")]
    ['2026-01-01', '2026-07-01', '2026-07-27']
    """
    if every == "value":
        return period
    match = re.fullmatch(r"(\d{4})(?:-(Q|W)?(\d{1,2})(?:-(\d{2}))?)?", period)
    if match is None:
        return None
    year, number = int(match[1]), int(match[3] or 1)
    try:
        if every == "week":
            day = dt.date.fromisocalendar(year, number, 1)
        elif every == "quarter":
            day = dt.date(year, 3 * number - 2, 1)
        else:
            day = dt.date(year, number, int(match[4] or 1))
    except ValueError:
        return None
    text = day.isoformat()
    return text if name_period(text, every) == period else None
