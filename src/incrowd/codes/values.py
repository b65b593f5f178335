"""One meaning for a value, however it is written.

A table may hold 39, 39.0 or "39" for the same thing, depending on who wrote the file, and a
boolean, True, TRUE or true. Here every value gets one canonical text; hierarchies and tables
meet in it. Null is None and stays None. Text keeps its leading zeros: "01234" is a ZIP code,
not a number.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
import re
from collections.abc import Iterable
from decimal import Decimal

# Everything here is spelled out, so that engines can do the same to whole columns.
NUMERAL = r"[+-]?((0|[1-9][0-9]*)(\.[0-9]+)?|\.[0-9]+)"
BLANKS = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
BOOLEANS = {word: word.lower() for word in ("True", "TRUE", "False", "FALSE")}
_NUMERAL = re.compile(NUMERAL)
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_SPAN = re.compile(r"(0|-?[1-9][0-9]*)(?:-| to )(0|-?[1-9][0-9]*)")


def canonicalize_value(value: object) -> str | None:
    """Return the canonical text of a value, or None for null and for text without characters.

    >>> [canonicalize_value(x) for x in (39, 39.0, "39.00", " 39 ", None, "039", 2.5, 5e-05)]
    ['39', '39', '39', '39', None, '039', '2.5', '0.00005']
    >>> [canonicalize_value(x) for x in (True, "True", "TRUE", "false", "yes", "tRUE")]
    ['true', 'true', 'true', 'false', 'yes', 'tRUE']
    """
    match value:
        case None:
            return None
        case str():
            return _canonicalize_text(value) or None
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if math.isnan(value):
            return None
        case float() if value.is_integer():
            return str(int(value))
        case float():
            return _canonicalize_text(format(Decimal(str(value)), "f"))
        case Decimal():
            return _canonicalize_text(format(value, "f"))
        case dt.datetime() if value.time() == dt.time():
            return value.date().isoformat()
        case dt.date() | dt.datetime():
            return value.isoformat()
        case _:
            return _canonicalize_text(str(value)) or None


def _canonicalize_text(text: str) -> str:
    text = text.strip(BLANKS)
    if not _NUMERAL.fullmatch(text):
        return BOOLEANS.get(text, text)
    text = text.removeprefix("+")
    if "." in text:
        text = text.rstrip("0").rstrip(".").replace("-.", "-0.")
        text = f"0{text}" if text.startswith(".") else text
    return "0" if text in ("-0", "-", "") else text


def parse_number(text: str | None) -> Decimal | None:
    """Return the number that a canonical text denotes, or None."""
    if text is None or not _NUMERAL.fullmatch(text):
        return None
    return Decimal(text)


class SpanLabeler:
    """The labels of everything from one value of a column to another: of one form in a column.

    They have a dash where all values are whole and none is below 0, so that no dash can be taken
    for a minus. Values may be spans themselves, one after the other, or what lies beyond a number
    (>89); where they are neither, a label names both values as they are.

    >>> SpanLabeler(["0", "18", "64"])("18", "64")
    '18-64'
    >>> SpanLabeler(["0-4", "5-9", "10-14"])("0-4", "10-14")
    '0-14'
    >>> [SpanLabeler(["-5", "5", "9"])("5", "9"), SpanLabeler(["low", "high"])("low", "high")]
    ['5 to 9', 'low to high']
    >>> SpanLabeler(["60-79", "40-59"])("60-79", "40-59")  # no run of numbers
    '60-79 to 40-59'
    """

    def __init__(self, values: Iterable[str]) -> None:
        texts = list(values)
        self._reaches = {value: parse_span(value) for value in texts}
        spans = [self._reaches[value] for value in texts]
        plain = all(low == high for low, high in spans if low is not None and high is not None)
        self.whole = None not in itertools.chain(*spans) and (plain or _is_ascending(spans))
        self.dash = self.whole and not any(value.lstrip("<>").startswith("-") for value in texts)

    def __call__(self, first: str, last: str) -> str:
        """Return the label of everything between two values, both included."""
        if first == last:
            return first
        ends = (first, last)
        if self.whole:
            ends = (first if first[0] in "<>" else _SPAN.sub(r"\1", first),
                    last if last[0] in "<>" else _SPAN.sub(r"\2", last))  # fmt: skip
        return ("-" if self.dash else " to ").join(ends)


def parse_span(text: str) -> tuple[float | None, float | None]:
    """Return the ends of a whole number, a span of them, or what lies beyond one.

    >>> parse_span("7"), parse_span("5-9"), parse_span(">89"), parse_span("2020-03")
    ((7, 7), (5, 9), (90, inf), (None, None))
    """
    if _WHOLE.fullmatch(text):
        return int(text), int(text)
    span = _SPAN.fullmatch(text)
    if span and int(span[1]) < int(span[2]):
        return int(span[1]), int(span[2])
    if text[:1] in ("<", ">") and _WHOLE.fullmatch(text[1:]):
        edge = int(text[1:])
        return (-math.inf, edge - 1) if text[0] == "<" else (edge + 1, math.inf)
    return None, None


def _is_ascending(spans: list[tuple[float | None, float | None]]) -> bool:
    """Return whether each of several spans ends before the next begins."""
    ends = [end for span in spans for end in span if end is not None]
    return all(stop < start for stop, start in zip(ends[1::2], ends[2::2], strict=False))


def parse_iso_day(text: str) -> dt.date | None:
    """Return the day of an ISO date or time, in any of its forms, or None."""
    try:
        return dt.datetime.fromisoformat(text).date()
    except ValueError:
        return None


_LEADING = re.compile(r"[\[(<>]?(-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,4})?)")


def make_sort_key(value: object) -> tuple[bool, bool, Decimal, str, str]:
    """Return a key that sorts values and labels as people do: numbers by size, text, null.

    Values that mean the same are told apart by how they are written.

    >>> sorted(["10-14", "b", None, "5-9", "[0.5, 1)", "a"], key=make_sort_key)
    ['[0.5, 1)', '5-9', '10-14', 'a', 'b', None]
    """
    text = canonicalize_value(value)
    number = _LEADING.match(text or "")
    size = Decimal(number[1]) if number else Decimal(0)
    return (text is None, number is None, size, text or "", str(value))
