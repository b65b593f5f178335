"""Postcodes with letters in them, of countries where the first characters are a place.

Great Britain (with the Crown Dependencies): district without its trailing letter (SW1 of
SW1A 1AA), then area (SW). Canada: forward sortation area (K1A), then its first letter, a
province or part of one. The Netherlands: the four digits, then three, two and one of them.
What stands behind is dropped. Codes that no place has, like BX, are outside the domain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Literal, TypeAlias

from incrowd.codes.hierarchy import ROOT, Hierarchy, build_from_rows
from incrowd.codes.values import canonicalize_value
from incrowd.spec.public_list import find_distinct_texts, fits_nearly_all, read_list

Country: TypeAlias = Literal["GB", "CA", "NL"]

_AREAS = [row["area"] for row in read_list("postcode_areas") if row["country"] == "GB"]
# Canada does without letters that are easily mistaken, and without W and Z in the first place.
_FIRST, _OTHER = "ABCEGHJKLMNPRSTVXY", "ABCEGHJKLMNPRSTVWXYZ"
_FORMS: dict[Country, re.Pattern[str]] = {
    # A district is one or two digits, or one and a letter. A sector's digit needs its blank.
    "GB": re.compile(
        rf"(?P<area>{'|'.join(_AREAS)})(?:(?P<one>[0-9])[A-Z]|(?P<two>[0-9]{{1,2}}))"
        r"(?P<rest> ?[0-9][A-Z]{2}| [0-9])?"
    ),
    "CA": re.compile(rf"(?P<kept>[{_FIRST}][0-9][{_OTHER}])(?P<rest> ?[0-9][{_OTHER}][0-9])?"),
    "NL": re.compile(r"(?P<kept>[1-9][0-9]{3})(?P<rest> ?[A-Z]{2})?"),
}


def _match_postcode(text: str, country: Country) -> re.Match[str] | None:
    return _FORMS[country].fullmatch(" ".join(re.split(r"[\s-]+", text.strip().upper())))


def find_postcode(text: str, country: Country) -> str | None:
    """Return what the domain holds of a postcode, whole or bare; None if it is none.

    >>> [find_postcode(x, "GB") for x in ("SW1A 1AA", "sw1a1aa", "SW1", "M1 1AE", "BX1 1LT")]
    ['SW1', 'SW1', 'SW1', 'M1', None]
    >>> find_postcode("k1a 0b1", "CA"), find_postcode("D1A 0B1", "CA")
    ('K1A', None)
    >>> find_postcode("1234AB", "NL"), find_postcode("0123", "NL")
    ('1234', None)
    """
    match = _match_postcode(text, country)
    if match is None:
        return None
    if country == "GB":
        return f"{match['area']}{int(match['one'] or match['two'])}"
    return match["kept"]


def _list_rows(country: Country) -> list[tuple[str, ...]]:
    match country:
        case "GB":
            return [(f"{area}{x}", area, ROOT) for area in _AREAS for x in range(100)]
        case "CA":
            ends = [f"{digit}{letter}" for digit in range(10) for letter in _OTHER]
            return [(f"{first}{end}", first, ROOT) for first in _FIRST for end in ends]
        case "NL":
            codes = map(str, range(1000, 10000))
            return [(x, f"{x[:3]}*", f"{x[:2]}**", f"{x[0]}***", ROOT) for x in codes]


def build_postcode_hierarchy(country: Country, *, other: str | None = None) -> Hierarchy:
    """Return the postcodes of a country by the larger places that they lie in."""

    def locate(value: object) -> str | None:
        text = canonicalize_value(value)
        return text if text is None else find_postcode(text, country) or text

    return replace(build_from_rows(_list_rows(country), other=other, exact=True), locate=locate)


def recognize_postcodes(texts: Iterable[str]) -> Country | None:
    """Return the country that nearly all of these texts are postcodes of, by their form alone.

    A letter and digits (E11), or digits alone (1234), may be anything: most must have more.
    """
    met = find_distinct_texts(texts)
    for country in _FORMS:
        if fits_nearly_all(met, partial(find_postcode, country=country)):
            telling = sum(_is_distinctive(text, country) for text in met)
            return country if 2 * telling > len(met) else None
    return None


def _is_distinctive(text: str, country: Country) -> bool:
    """Return whether a postcode has more than a letter and digits, or digits alone."""
    match = _match_postcode(text, country)
    if match is None or match["rest"] is not None:
        return match is not None
    return country == "CA" or (country == "GB" and len(match["area"]) == 2)
