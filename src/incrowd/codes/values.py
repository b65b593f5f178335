"""One meaning for a value, however it is written.

A table may hold 39, 39.0 or "39" for the same thing, depending on who wrote the file, and a
boolean, True, TRUE or true. Here every value gets one canonical text; hierarchies and tables
meet in it. Null is None and stays None. Text keeps its leading zeros: "01234" is a ZIP code,
not a number.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal

# Everything here is spelled out, so that engines can do the same to whole columns.
NUMERAL = r"[+-]?((0|[1-9][0-9]*)(\.[0-9]+)?|\.[0-9]+)"
BLANKS = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
BOOLEANS = {word: word.lower() for word in ("True", "TRUE", "False", "FALSE")}
_NUMERAL = re.compile(NUMERAL)


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


def parse_iso_day(text: str) -> dt.date | None:
    """Return the day of an ISO date or time, in any of its forms, or None."""
    time = parse_iso_time(text)
    return None if time is None else time.date()


def parse_iso_time(text: str) -> dt.datetime | None:
    """Return an ISO date or time, in any of its forms and as it is written, or None."""
    try:
        return dt.datetime.fromisoformat(text)
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
