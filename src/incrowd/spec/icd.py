"""Diagnoses by the International Classification of Diseases: categories, tens, chapters.

The domain lists categories, the first three characters of a code (four of ICD-9's E codes);
what stands behind them is dropped. Editions differ in where chapters end: WHO's ICD-10 has E90
and F00, the US modification (CM) has D49, O9A and QA0, the German one (GM) has D90. A chapter
here reaches as far as it does in any of them, and what is in no chapter is no category.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from string import ascii_uppercase, digits
from typing import Literal, TypeAlias

from incrowd.codes.hierarchy import ROOT, Hierarchy, build_from_rows
from incrowd.codes.values import canonicalize_value
from incrowd.spec.public_list import find_distinct_texts, fits_nearly_all, read_list

Version: TypeAlias = Literal[10, 9]

_CODES = {
    # Behind the code may stand what WHO marks it with, or a hyphen for the rest of it.
    10: re.compile(r"([A-Z][0-9][0-9AB]|QA0)\.?[0-9A-Z]{0,4}[-*+†!]?"),
    9: re.compile(
        r"(?:([0-9]{3})[0-9]{0,2}|([0-9]{1,3})(?:\.[0-9]{0,2})?"
        r"|(V[0-9]{2})\.?[0-9]{0,2}|(E[0-9]{3})\.?[0-9]?)"
    ),
}
_TELLING = re.compile(r"[VE]|0[0-9]{2}\.")


def _iterate_categories(version: Version) -> Iterator[str]:
    """Yield everything that has the form of a category."""
    if version == 9:
        yield from (f"{x:03}" for x in range(1000))
        yield from (f"V{x:02}" for x in range(100))
        yield from (f"E{x:03}" for x in range(1000))
    else:
        yield from map("".join, itertools.product(ascii_uppercase, digits, f"{digits}AB"))
        yield "QA0"


@cache
def _index_rows(version: Version) -> dict[str, tuple[str, ...]]:
    """Return category, ten, chapter and root, by the category."""
    listed = (row for row in read_list("icd_chapters") if row["version"] == str(version))
    starts, ends = zip(*sorted((row["first"], row["last"]) for row in listed), strict=True)
    within: dict[str, str] = {}
    for category in _iterate_categories(version):
        at = bisect.bisect_right(starts, category) - 1
        if at >= 0 and _make_place_key(category) <= _make_place_key(ends[at]):
            within[category] = f"{starts[at]}-{ends[at]}"
    tens: dict[str, list[str]] = {}
    for category in within:
        if category[-1].isdecimal():  # C7A is in C70-C79
            tens.setdefault(category[:-1], []).append(category)
    labels = {ten: "-".join(dict.fromkeys((x[0], x[-1]))) for ten, x in tens.items()}
    return {x: (x, labels[x[:-1]], chapter, ROOT) for x, chapter in within.items()}


def _make_place_key(category: str) -> str:
    """Return a category with a last letter read as 9: C7A and C7B come with C79."""
    return category if category[-1].isdecimal() else f"{category[:-1]}9"


def find_category(text: str, version: Version) -> str | None:
    """Return the category of a code, with or without its dot; None if it is none.

    >>> [find_category(x, 10) for x in ("E11.9", "e119", "E11", "C7A.0", "250.01", "E95")]
    ['E11', 'E11', 'E11', 'C7A', None, None]
    >>> [find_category(x, 9) for x in ("250.01", "25001", "8.45", "V30.0", "e849.0", "E11")]
    ['250', '250', '008', 'V30', 'E849', None]
    """
    match = _CODES[version].fullmatch(text.strip().upper())
    if match is None:
        return None
    (stem,) = filter(None, match.groups())
    # Digits in front of a dot, or fewer than three, are all of the category: it lost its zeros.
    category = stem.zfill(3)
    return category if category in _index_rows(version) else None


def build_icd_hierarchy(version: Version, *, other: str | None = None) -> Hierarchy:
    """Return categories by ten and chapter."""

    def locate(value: object) -> str | None:
        text = canonicalize_value(value)
        return text if text is None else find_category(text, version) or text

    rows = list(_index_rows(version).values())
    return replace(build_from_rows(rows, other=other, exact=True), locate=locate)


def recognize_icd(texts: Iterable[str]) -> Version | None:
    """Return the version that nearly all of these texts are codes of, by their form alone.

    Numbers, with or without a dot, are not taken for ICD-9 unless there are codes with letters
    or with a leading zero and a dot among them: weights and prices look the same.
    """
    met = find_distinct_texts(texts)
    if fits_nearly_all(met, partial(find_category, version=10)):
        return 10
    has_telling_code = any(_TELLING.match(text.upper()) and find_category(text, 9) for text in met)
    return (
        9 if has_telling_code and fits_nearly_all(met, partial(find_category, version=9)) else None
    )
