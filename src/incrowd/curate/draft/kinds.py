"""A ladder of a kind that somebody has chosen: what the draft has guessed, or the column's values.

What comes from the values is to be confirmed, as all that a draft reads is.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from incrowd.codes.hierarchy import ROOT
from incrowd.codes.values import canonical, iso_day, number, reading_order
from incrowd.curate.draft import ladders
from incrowd.curate.draft.draft import ROWS
from incrowd.curate.draft.guess import Guess
from incrowd.curate.draft.ladders import Ladder
from incrowd.engine.table import Table, TableError
from incrowd.errors import IncrowdError
from incrowd.spec import countries, icd, postcodes
from incrowd.spec.base import quoted
from incrowd.spec.hierarchies import kinds

MOST_LISTED = 500  # values that a spec lists at a click
_DIGITS = "0123456789"
_MOST_MASKED = 12  # characters: each is a level, and what is longer is no code


def ladder_of(kind: str, column: str, table: Table, guess: Guess | None = None) -> Ladder:
    """A ladder of a kind for a column, from what was guessed of it or the values of its first rows.

    Bounds that fit no value of the column, because it has none of that kind, are examples.
    """
    if kind not in kinds():
        raise IncrowdError(f"Unknown kind of hierarchy '{kind}'. See `incrowd schema`.")
    if guess is not None and guess.hierarchy and guess.hierarchy.startswith(f"{{{kind}:"):
        return Ladder(guess.hierarchy, guess.reason, "hierarchy" in guess.confirm)
    texts = _texts(column, table)
    match kind:
        case "intervals":
            return _intervals(texts)
        case "dates":
            return _dates(texts)
        case "mask":
            return _mask(texts)
        case "order" | "groups" | "flat":
            return _listed(kind, column, texts)
        case "countries":
            codes = countries.looks_like(texts) or "alpha-2"
            return Ladder(f"{{countries: {{codes: {codes}}}}}", "a public list", read=False)
        case "icd":
            version = icd.looks_like(texts) or 10
            return Ladder(f"{{icd: {{version: {version}}}}}", "a public list", read=False)
        case "postcodes":
            country = postcodes.looks_like(texts) or "GB"
            return Ladder(f"{{postcodes: {{country: {country}}}}}", "a public list", read=False)
        case _:
            raise IncrowdError("A CSV hierarchy needs a file. Import it.")


def _texts(column: str, table: Table) -> list[str]:
    """The different values of the first rows, in reading order."""
    try:
        values = table.head(ROWS).values(column) if column in table.columns else ()
    except TableError:
        return []
    found = {text for value in values if (text := canonical(value)) is not None}
    return sorted(found, key=reading_order)


def _intervals(texts: Sequence[str]) -> Ladder:
    numbers: list[Decimal] = [x for text in texts if (x := number(text)) is not None]
    if not numbers:
        fields = "from: 0, to: 99, widths: [10, 50]"
        return Ladder(f"{{intervals: {{{fields}}}}}", "example: no value is a number", False)
    whole = all(x == x.to_integral_value() for x in numbers)
    if whole and 1800 <= min(numbers) <= max(numbers) <= 2100:
        return ladders.years(numbers)
    return ladders.amounts(numbers) if ladders.is_skewed(numbers) else ladders.numbers(numbers)


def _dates(texts: Sequence[str]) -> Ladder:
    days: list[dt.date] = [day for text in texts if (day := iso_day(text)) is not None]
    if not days:
        fields = "from: 1900-01-01, to: 2029-12-31"
        return Ladder(f"{{dates: {{{fields}}}}}", "example: no value is a date", read=False)
    return ladders.days(days)


def _mask(texts: Sequence[str]) -> Ladder:
    lengths = Counter(map(len, texts))  # one 'unknown' among postcodes does not make them longer
    length = max(lengths, key=lambda one: (lengths[one], one), default=0)
    if not 0 < length <= _MOST_MASKED:
        return Ladder("{mask: {length: 5}}", "an example: values are no short codes", read=False)
    letters = "".join(sorted({*_DIGITS, *"".join(text for text in texts if len(text) == length)}))
    if letters == _DIGITS:
        return Ladder(f"{{mask: {{length: {length}}}}}", "length of most values")
    fields = f"length: {length}, alphabet: {quoted(letters)}"
    return Ladder(f"{{mask: {{{fields}}}}}", "characters from the data")


def _listed(kind: str, column: str, texts: Sequence[str]) -> Ladder:
    if kind == "flat" and len(texts) > MOST_LISTED:
        return Ladder("flat", "values that nobody has listed", read=False)
    if not texts:
        raise IncrowdError(f"Column '{column}': no values to list. Choose a hierarchy by a rule.")
    if len(texts) > MOST_LISTED:
        raise IncrowdError(
            f"Column '{column}': {len(texts):,} distinct values, and at most {MOST_LISTED} can be "
            "listed. Import a CSV hierarchy, or choose a hierarchy by a rule."
        )
    if kind == "order" and (known := ladders.order(texts)) is not None:
        return known
    values = ", ".join(map(quoted, texts))
    fields = f"{{{quoted(ROOT)}: [{values}]}}" if kind == "groups" else f"{{values: [{values}]}}"
    return Ladder(f"{{{kind}: {fields}}}", f"{len(texts):,} distinct values")
