"""The countries and territories of ISO 3166-1, by region and continent of the UN (M 49).

A region is what M 49 calls an intermediate region where it has one (Western Africa, Caribbean)
and else a sub-region (Western Europe). M 49 leaves out Taiwan, which is in Eastern Asia here,
and gives Antarctica no region: it is a continent of its own.

Names are those in everyday use where ISO turns them around (South Korea for "Korea, Republic
of"); ISO's are understood, as are the other names of ``lists/country_names.csv``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from typing import Literal, TypeAlias

from incrowd.codes.hierarchy import ROOT, Hierarchy, build_from_rows
from incrowd.codes.values import canonicalize_value
from incrowd.spec.public_list import find_distinct_texts, fits_nearly_all, read_list

Codes: TypeAlias = Literal["alpha-2", "alpha-3", "names"]

# Codes that are not ISO's and yet in wide use: of the United Kingdom, and of Greece in the EU.
_RESERVED = {"UK": "GB", "EL": "GR"}
# Postal codes of states of the US that are codes of countries, too.
_STATES = "AL AR AZ CA CO DE GA ID IL IN KY LA MA MD ME MN MO MS MT NC NE PA SC SD TN VA"
_SILENT = re.compile(r"[.'`\u2018\u2019]")  # U.S., d'Ivoire
_SMALL = {"the", "of", "and"}
_SHORT = {
    "st": "saint", "is": "islands", "rep": "republic", "dem": "democratic", "fed": "federated",
    "sts": "states",
}  # fmt: skip
_FORMAL = re.compile(r"\b(?:republic|kingdom)\b ?")  # Republic of Poland


@cache
def _load_countries() -> dict[str, tuple[str, ...]]:
    """Return code of two letters, of three, name, region and continent, by the first."""
    return {row["alpha_2"]: tuple(row.values()) for row in read_list("countries")}


@cache
def _index_codes() -> dict[str, str]:
    """Return the code of two letters by every code."""
    both = {code: row[0] for row in _load_countries().values() for code in row[:2]}
    return {**both, **_RESERVED}


@cache
def _index_names() -> dict[str, str]:
    """Return the code of two letters by the words of every name.

    The order of words, accents and small words do not matter.
    """
    codes = {_normalize_name(row[2]): row[0] for row in _load_countries().values()}
    also = {_normalize_name(row["name"]): row["alpha_2"] for row in read_list("country_names")}
    return {**codes, **also}


def _normalize_name(name: str) -> str:
    """Return a name without accents, punctuation, small words and the order of words."""
    plain = "".join(x for x in unicodedata.normalize("NFKD", name) if not unicodedata.combining(x))
    words = re.findall(r"\w+", _SILENT.sub("", plain).casefold().replace("_", " "))
    return " ".join(sorted(_SHORT.get(word, word) for word in words if word not in _SMALL))


def find_country(text: str) -> str | None:
    """Return the two-letter code of a country, by any of its codes and names, or None.

    >>> [find_country(x) for x in ("us", "U.S.A.", "Korea, Rep. of", "cote d’ivoire")]
    ['US', 'US', 'KR', 'CI']
    """
    code = _index_codes().get(_SILENT.sub("", text.strip()).upper())
    words, names = _normalize_name(text), _index_names()
    return code or names.get(words) or names.get(_FORMAL.sub("", words).rstrip())


def build_country_hierarchy(codes: Codes, *, other: str | None = None) -> Hierarchy:
    """Return countries by region and continent, in the order of their codes."""
    field = {"alpha-2": 0, "alpha-3": 1, "names": 2}[codes]
    values = {two: row[field] for two, row in _load_countries().items()}
    rows = [(values[two], *row[3:], ROOT) for two, row in _load_countries().items()]

    def locate(value: object) -> str | None:
        text = canonicalize_value(value)
        code = find_country(text) if text is not None else None
        return text if code is None else values[code]

    return replace(build_from_rows(rows, other=other), locate=locate)


def recognize_countries(texts: Iterable[str]) -> Codes | None:
    """Return how a column of these texts would show countries, if nearly all of them are some.

    Names may have codes among them (UK, USA). Codes that are all of states of the US as well
    are not taken for countries.
    """
    met = find_distinct_texts(texts)
    if fits_nearly_all(met, partial(_is_country_code, length=2)):
        return None if {text.upper() for text in met} <= set(_STATES.split()) else "alpha-2"
    if fits_nearly_all(met, partial(_is_country_code, length=3)):
        return "alpha-3"
    longer = sum(len(text) > 3 for text in met)
    return "names" if 2 * longer > len(met) and fits_nearly_all(met, find_country) else None


def _is_country_code(text: str, *, length: int) -> bool:
    return len(text) == length and text.upper() in _index_codes()
