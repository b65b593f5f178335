"""Hold the published columns of a spec against the list of HIPAA's safe harbor.

The rule, 45 CFR 164.514(b)(2), names eighteen identifiers that are removed, with three that may
stay in part: of ZIP codes the first three digits, of dates the year, and ages up to 89. What is
published is judged by the name of a column, by how it is declared, and by the first rows.

**Claim.** None about privacy: the list bounds no risk. A column that hides an identifier under
another name and another form is not found, and neither is what the curator knows besides, which the
rule asks for as well (no actual knowledge that the rest could identify a person).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass

from incrowd.codes.values import parse_iso_time, parse_number
from incrowd.engine.table import Table, TableError
from incrowd.findings import Finding, make_finding
from incrowd.methods.exposure import is_free_text
from incrowd.methods.person_id import list_texts, simplify_name
from incrowd.spec import identifiers
from incrowd.spec.hierarchies import (
    Countries,
    Dates,
    Declaration,
    Flat,
    Geo,
    Groups,
    Intervals,
    Order,
    Postcodes,
)
from incrowd.spec.model import Column, Spec
from incrowd.spec.named_hierarchies import expand_name
from incrowd.spec.release import TablesSpec

OLDEST = 89  # years: the last age that may be told from others
_PUBLISHED = ("quasi", "sensitive", "keep", "noisy", "weight")
_HEAD = 20_000  # rows whose values are looked at
_MOST = 0.8  # of the values must look alike
_YEARS = ("year", "decade")
_AGE = re.compile(r"(^|_)(age|ages|age_?(in_?)?(years?|yrs?)|age_?at_\w+)(_|\d|$)")
BORN = re.compile(
    r"(^|_)(dob|yob|born)(_|$)|birth_?(date|day|year|yr|dt)|(date|day|year|yr)_?(of_?)?birth"
)
_DAY = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\d{4}-(\d{2}|Q[1-4]|W\d{2})")
_PART_OF_DATE = re.compile(
    r"(^|_)(month|weekday|day_of_(week|month|year)|quarter)(_?(name|of_\w+))?$"
)
_YEAR = re.compile(r"(^|_)yob(_|$)|year|yr")
_CENTURY = 100  # below it a year has two digits
_FIRST_YEAR = 1800  # smaller numbers are no years


@dataclass(frozen=True)
class _PublishedColumn:
    """A published column: how it is declared, the lowest level it may have, its first values.

    It ``is_kept`` if its method shows what is no quasi-identifier as it is.
    """

    name: str
    column: Column
    level: int
    texts: list[str]
    rows: int
    is_kept: bool

    @property
    def simple(self) -> str:
        return simplify_name(self.name)

    @property
    def declaration(self) -> Declaration | None:
        """Its hierarchy, if that decides what is shown."""
        if self.column.hierarchy is None or (self.is_kept and self.column.role != "quasi"):
            return None
        return self.column.hierarchy.declaration

    @property
    def shows_days(self) -> bool:
        """Whether its values are days, times, months, weeks or quarters."""
        days = sum(bool(parse_iso_time(text) or _DAY.fullmatch(text)) for text in self.texts)
        return bool(self.texts) and days >= _MOST * len(self.texts)

    @property
    def listed_numbers(self) -> list[float]:
        """The numbers among its values or those that it lists, and both ends of ranges."""
        declared = self.declaration
        values = declared.values if isinstance(declared, Flat | Order) else ()
        numbers = []
        for text in values or self.texts:
            ends = re.fullmatch(r"(\d+) ?(?:-|–|to) ?(\d+)", text)
            parts = [text] if ends is None else [ends[1], ends[2]]
            numbers += [float(x) for part in parts if (x := parse_number(part)) is not None]
        return numbers


def find_violations(spec: Spec, table: Table, *, year: int | None = None) -> Iterator[Finding]:
    """Find published columns that break the list, where the spec says ``hipaa: safe-harbor``.

    Whoever was born in ``year`` - 90 or before is older than 89; ``year`` is the current one.
    """
    if spec.hipaa is None:
        return
    release, head = spec.release, table.head(_HEAD)
    is_kept = release is not None and release.keeps_sensitive
    sums = release.sums if isinstance(release, TablesSpec) else {}
    year = dt.datetime.now(dt.UTC).year if year is None else year
    for name, column in spec.columns.items():
        if column.role not in _PUBLISHED or "hipaa" in column.allow or name in sums:
            continue
        if name not in table.columns:
            continue
        try:
            texts, rows = list_texts(head.values(name)), head.rows() - head.count_missing(name)
        except TableError:  # lists or bytes, which are refused elsewhere
            continue
        low = 0 if release is None else release.levels.get(name, 0)
        level = low if isinstance(low, int) else low[0]
        published = _PublishedColumn(name, column, level, texts, rows, is_kept)
        yield from _find_violation(published, year)


def _find_violation(published: _PublishedColumn, year: int) -> Iterator[Finding]:
    """Yield what is wrong with a column: the first rule that it breaks."""
    name = published.name
    kind = _identify(published)
    if kind is not None:
        yield make_finding("HIPAA_IDENTIFIER_PUBLISHED", name, kind=kind)
    elif _is_place(published):
        yield make_finding("HIPAA_PLACE_PUBLISHED", name)
    elif BORN.search(published.simple) and _shows_old_births(published, year):
        yield make_finding("HIPAA_BIRTH_PUBLISHED", name, year=str(year - OLDEST))
    elif _shows_days(published):
        yield make_finding("HIPAA_DATE_PUBLISHED", name)
    elif _AGE.search(published.simple) and _shows_old_ages(published):
        yield make_finding("HIPAA_AGE_PUBLISHED", name)
    elif published.declaration is None and is_free_text(published.texts, published.rows):
        yield make_finding("HIPAA_TEXT_PUBLISHED", name)


def _identify(published: _PublishedColumn) -> str | None:
    """Return the identifier that a column holds and that has no part that may stay."""
    kind = identifiers.identify_by_values(published.texts, published.rows)
    if kind is not None:
        return kind
    if len(published.texts) <= 2:  # whether there is a telephone is no telephone number
        return None
    named = identifiers.identify_by_name(published.simple)
    loose = (*identifiers.GENERAL, "any other unique number")  # ids are found by their values
    return None if named in loose else named


def _is_place(published: _PublishedColumn) -> bool:
    """Return whether a column shows places below a state, but for three digits of ZIP codes."""
    declared = published.declaration
    if isinstance(declared, Postcodes):
        return declared.country != "US"
    if isinstance(declared, Geo):
        return True
    if isinstance(declared, Countries) or (isinstance(declared, Groups) and _is_states(declared)):
        return False
    named = identifiers.identify_by_name(published.simple) == "geographic subdivisions"
    return named or identifiers.is_coordinate(published.texts)


def _is_states(declared: Groups) -> bool:
    return any(
        declared.root == expand_name(name)["groups"] for name in ("us_states", "us_state_names")
    )


def _shows_days(published: _PublishedColumn) -> bool:
    """Return whether more of a date is shown than its year."""
    declared = published.declaration
    if isinstance(declared, Dates):
        finest = declared.levels[published.level :]
        return bool(finest) and finest[0] not in _YEARS
    return published.shows_days or _PART_OF_DATE.search(published.simple) is not None


def _shows_old_ages(published: _PublishedColumn) -> bool:
    """Return whether ages above 89 are told from each other."""
    declared, column = published.declaration, published.column
    if isinstance(declared, Intervals):
        return declared.high > OLDEST
    if column.role == "noisy":
        return column.bounds is None or column.bounds[1] > OLDEST
    return max(published.listed_numbers, default=0) > OLDEST


def _shows_old_births(published: _PublishedColumn, year: int) -> bool:
    """Return whether years of birth of people above 89 are told from each other."""
    declared, first = published.declaration, year - OLDEST
    if _YEAR.search(published.simple):  # 27 may be 1927
        ends = (declared.low, declared.high) if isinstance(declared, Intervals) else ()
        numbers = [float(x) for x in ends] or published.listed_numbers
        if numbers and 0 <= min(numbers) <= max(numbers) < _CENTURY:
            return True
    if isinstance(declared, Dates):
        return declared.low.year < first
    if isinstance(declared, Intervals):  # which may begin long before anybody was born
        return declared.low < first and declared.high >= _FIRST_YEAR
    return any(_FIRST_YEAR <= x < first for x in published.listed_numbers)
