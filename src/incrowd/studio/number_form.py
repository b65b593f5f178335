"""Numbers as people type them: with a decimal comma or point, and with separated thousands."""

from __future__ import annotations

import re

from incrowd.errors import IncrowdError

_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
_BLANKS = "    _'’"


def normalize_number(text: str, *, is_count: bool = False) -> str:
    """Return a number with a decimal point and no separators; other text as it is.

    With both signs, the last one is the decimal sign. One comma alone is decimal, except in a count
    where three digits follow it.

    Raises:
        IncrowdError: A comma may be either, as in 1,000.

    >>> [normalize_number(text) for text in ("0,5", "1.234,5", "1,234.5", "1 000,25", "1e-6")]
    ['0.5', '1234.5', '1234.5', '1000.25', '1e-6']
    """
    plain = text.strip().translate({ord(blank): None for blank in _BLANKS})
    if "," not in plain:
        return plain
    if "." in plain:
        decimal = max(",.", key=plain.rindex)
        other = "." if decimal == "," else ","
        return plain.replace(other, "").replace(decimal, ".")
    if _THOUSANDS.fullmatch(plain):
        joined, pointed = plain.replace(",", ""), plain.replace(",", ".")
        if is_count or plain.count(",") > 1:
            return joined
        raise IncrowdError(f"'{text.strip()}' may be {joined} or {pointed}. Write it without ','.")
    return plain.replace(",", ".") if plain.count(",") == 1 else plain
