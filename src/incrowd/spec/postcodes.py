"""Postcodes of countries where the first characters are a place.

Great Britain (with the Crown Dependencies): district without its trailing letter (SW1 of
SW1A 1AA), then area (SW). Canada: forward sortation area (K1A), then its first letter, a
province or part of one. The Netherlands: the four digits, then three, two and one of them.
What stands behind is dropped. Codes that no place has, like BX, are outside the domain.

The United States: the first three digits, as HIPAA's safe harbor allows (45 CFR
164.514(b)(2)(i)(B)), then the first one. An area of 20,000 people or fewer is 000. These areas are
those of ``lists/small_zip_areas.csv``: what the census of 2000 (the list in the guidance of the
Department of Health and Human Services), of 2010 or of 2020 found small, and military mail, whose
areas the census does not count. An area that was small in one of them stays 000, although the rule
asks for the current figures alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Literal, TypeAlias

from incrowd.codes.hierarchy import ROOT, Hierarchy, build_from_rows
from incrowd.codes.values import canonicalize_value
from incrowd.spec.public_list import find_distinct_texts, fits_nearly_all, read_list

Country: TypeAlias = Literal["GB", "CA", "NL", "US"]

_AREAS = [row["area"] for row in read_list("postcode_areas") if row["country"] == "GB"]
# Canada does without letters that are easily mistaken, and without W and Z in the first place.
_FIRST, _OTHER = "ABCEGHJKLMNPRSTVXY", "ABCEGHJKLMNPRSTVWXYZ"
SMALL_AREAS = frozenset(row["prefix"] for row in read_list("small_zip_areas"))
_SMALL = "000"  # in place of their first three digits
_RECOGNIZED: tuple[Country, ...] = ("GB", "CA", "NL")  # by form; digits alone may be anything
_FORMS: dict[Country, re.Pattern[str]] = {
    # A district is one or two digits, or one and a letter. A sector's digit needs its blank.
    "GB": re.compile(
        rf"(?P<area>{'|'.join(_AREAS)})(?:(?P<one>[0-9])[A-Z]|(?P<two>[0-9]{{1,2}}))"
        r"(?P<rest> ?[0-9][A-Z]{2}| [0-9])?"
    ),
    "CA": re.compile(rf"(?P<kept>[{_FIRST}][0-9][{_OTHER}])(?P<rest> ?[0-9][{_OTHER}][0-9])?"),
    "NL": re.compile(r"(?P<kept>[1-9][0-9]{3})(?P<rest> ?[A-Z]{2})?"),
    "US": re.compile(r"(?P<kept>[0-9]{3})(?P<rest>[0-9]{2}(?:[ -]?[0-9]{4})?|\*\*)?"),
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
    >>> [find_postcode(x, "US") for x in ("48104", "48104-1234", "481", "05901", "4810")]
    ['481**', '481**', '481**', '000**', None]
    """
    match = _match_postcode(text, country)
    if match is None:
        return None
    if country == "GB":
        return f"{match['area']}{int(match['one'] or match['two'])}"
    if country == "US":
        return f"{_SMALL if match['kept'] in SMALL_AREAS else match['kept']}**"
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
        case "US":
            areas = (f"{x:03}" for x in range(1, 1000))
            large = [(f"{x}**", f"{x[0]}****", ROOT) for x in areas if x not in SMALL_AREAS]
            return [(f"{_SMALL}**", f"{_SMALL}**", ROOT), *large]


def build_postcode_hierarchy(country: Country, *, other: str | None = None) -> Hierarchy:
    """Return the postcodes of a country by the larger places that they lie in."""

    def locate(value: object) -> str | None:
        is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        text = value if isinstance(value, str) else canonicalize_value(value)
        if text is None:
            return None
        text = text.zfill(5) if country == "US" and is_number else text  # zeros that it lost
        return find_postcode(text, country) or canonicalize_value(text)

    return replace(build_from_rows(_list_rows(country), other=other, exact=True), locate=locate)


def recognize_postcodes(texts: Iterable[str]) -> Country | None:
    """Return the country that nearly all of these texts are postcodes of, by their form alone.

    A letter and digits (E11), or digits alone (1234), may be anything: most must have more.
    """
    met = find_distinct_texts(texts)
    for country in _RECOGNIZED:
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
