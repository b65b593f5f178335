"""Texts that a spreadsheet would run, written so that it does not, and read back.

A cell that begins with ``=``, ``+``, ``@`` or a control character may be taken for a formula. An
apostrophe before it prevents that. Numbers, and whatever begins with "-" (intervals, negative
numbers, labels), are left as they are. Written and read back, every text is what it was: one that
already looks escaped is escaped once more.
"""

from __future__ import annotations

import re

from incrowd.codes.values import parse_number

_RUNS = re.compile(r"'*[=+@\t\r\n\uff1d\uff0b\uff20]")


def escape_formula(text: str) -> str:
    """Return the text with an apostrophe before it where a spreadsheet might run it.

    >>> [escape_formula(text) for text in ("=1+1", "'=x", "-5", "+5", "@a", "a=b")]
    ["'=1+1", "''=x", '-5', '+5', "'@a", 'a=b']
    """
    return f"'{text}" if _RUNS.match(text) and parse_number(text) is None else text


def unescape_formula(text: str) -> str:
    """Return the text that :func:`escape_formula` was given.

    >>> [unescape_formula(text) for text in ("'=1+1", "''=x", "'a", "-5")]
    ['=1+1', "'=x", "'a", '-5']
    """
    return text[1:] if text.startswith("'") and escape_formula(text[1:]) == text else text
