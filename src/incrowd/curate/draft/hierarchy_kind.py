"""A hierarchy of a kind that somebody has chosen: by the draft's guess, or by the values.

What comes from the values is to be confirmed, as all that a draft reads is.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from incrowd.codes.hierarchy import ROOT
from incrowd.codes.values import canonicalize_value, make_sort_key, parse_iso_day, parse_number
from incrowd.curate.draft import hierarchy_proposal
from incrowd.curate.draft.draft import ROWS
from incrowd.curate.draft.guess import Guess
from incrowd.curate.draft.hierarchy_proposal import HierarchyProposal
from incrowd.engine.table import Table, TableError
from incrowd.errors import IncrowdError
from incrowd.spec import countries, icd, postcodes
from incrowd.spec.base import quote_scalar
from incrowd.spec.hierarchies import list_kinds

MOST_LISTED = 500  # values that a spec lists at a click
_DIGITS = "0123456789"
_MOST_MASKED = 12  # characters: each is a level, and what is longer is no code


def propose_hierarchy(
    kind: str, column: str, table: Table, guess: Guess | None = None
) -> HierarchyProposal:
    """Propose a hierarchy of a kind for a column, by its guess or its first rows.

    Bounds that fit no value of the column, because it has none of that kind, are examples.
    """
    if kind not in list_kinds():
        raise IncrowdError(f"Unknown kind of hierarchy '{kind}'. See `incrowd schema`.")
    if guess is not None and guess.hierarchy and guess.hierarchy.startswith(f"{{{kind}:"):
        return HierarchyProposal(
            guess.hierarchy, guess.reason, "hierarchy" in guess.confirm, guess.origin
        )
    texts = _list_texts(column, table)
    match kind:
        case "intervals":
            return _propose_intervals(texts)
        case "dates":
            return _propose_dates(texts)
        case "mask":
            return _propose_mask(texts)
        case "order" | "groups" | "flat":
            return _propose_listed(kind, column, texts)
        case "countries":
            codes = countries.recognize_countries(texts) or "alpha-2"
            return HierarchyProposal(
                f"{{countries: {{codes: {codes}}}}}", "a public list", read=False
            )
        case "icd":
            version = icd.recognize_icd(texts) or 10
            return HierarchyProposal(
                f"{{icd: {{version: {version}}}}}", "a public list", read=False
            )
        case "postcodes":
            country = postcodes.recognize_postcodes(texts) or "GB"
            return HierarchyProposal(
                f"{{postcodes: {{country: {country}}}}}", "a public list", read=False
            )
        case "geo":
            raise IncrowdError(
                "Squares need two columns of coordinates. Declare them in the spec (`geo`)."
            )
        case _:
            raise IncrowdError("A CSV hierarchy needs a file. Import it.")


def _list_texts(column: str, table: Table) -> list[str]:
    """Return the different values of the first rows, in reading order."""
    try:
        values = table.head(ROWS).values(column) if column in table.columns else ()
    except TableError:
        return []
    distinct_texts = {text for value in values if (text := canonicalize_value(value)) is not None}
    return sorted(distinct_texts, key=make_sort_key)


def _propose_intervals(texts: Sequence[str]) -> HierarchyProposal:
    numbers: list[Decimal] = [x for text in texts if (x := parse_number(text)) is not None]
    if not numbers:
        fields = "from: 0, to: 99, widths: [10, 50]"
        return HierarchyProposal(
            f"{{intervals: {{{fields}}}}}", "example: no value is a number", False
        )
    integral = all(x == x.to_integral_value() for x in numbers)
    if integral and 1800 <= min(numbers) <= max(numbers) <= 2100:
        return hierarchy_proposal.propose_years(numbers)
    return (
        hierarchy_proposal.propose_amounts(numbers)
        if hierarchy_proposal.is_skewed(numbers)
        else hierarchy_proposal.propose_numbers(numbers)
    )


def _propose_dates(texts: Sequence[str]) -> HierarchyProposal:
    days: list[dt.date] = [day for text in texts if (day := parse_iso_day(text)) is not None]
    if not days:
        fields = "from: 1900-01-01, to: 2029-12-31"
        return HierarchyProposal(
            f"{{dates: {{{fields}}}}}", "example: no value is a date", read=False
        )
    return hierarchy_proposal.propose_days(days)


def _propose_mask(texts: Sequence[str]) -> HierarchyProposal:
    lengths = Counter(map(len, texts))  # one 'unknown' among postcodes does not make them longer
    length = max(lengths, key=lambda size: (lengths[size], size), default=0)
    if not 0 < length <= _MOST_MASKED:
        return HierarchyProposal(
            "{mask: {length: 5}}", "an example: values are no short codes", read=False
        )
    letters = "".join(sorted({*_DIGITS, *"".join(text for text in texts if len(text) == length)}))
    if letters == _DIGITS:
        return HierarchyProposal(f"{{mask: {{length: {length}}}}}", "length of most values")
    fields = f"length: {length}, alphabet: {quote_scalar(letters)}"
    return HierarchyProposal(f"{{mask: {{{fields}}}}}", "characters from the data")


def _propose_listed(kind: str, column: str, texts: Sequence[str]) -> HierarchyProposal:
    if kind == "flat" and len(texts) > MOST_LISTED:
        return HierarchyProposal("flat", "values that nobody has listed", read=False)
    if not texts:
        raise IncrowdError(f"Column '{column}': no values to list. Choose a hierarchy by a rule.")
    if len(texts) > MOST_LISTED:
        raise IncrowdError(
            f"Column '{column}': {len(texts):,} distinct values, and at most {MOST_LISTED} can be "
            "listed. Import a CSV hierarchy, or choose a hierarchy by a rule."
        )
    if (
        kind == "order"
        and (number_order := hierarchy_proposal.propose_number_order(texts)) is not None
    ):
        return number_order
    values = ", ".join(map(quote_scalar, texts))
    fields = (
        f"{{{quote_scalar(ROOT)}: [{values}]}}" if kind == "groups" else f"{{values: [{values}]}}"
    )
    return HierarchyProposal(f"{{{kind}: {fields}}}", f"{len(texts):,} distinct values")
