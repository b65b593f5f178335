"""Find ids of people in a table: by the name of a column, by its values, by counts of all rows.

An id that several rows share decides what a release protects: a row, or a person. It is judged by
the whole table, because the first rows may show each person once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from incrowd.codes.values import BLANKS, canonicalize_value, parse_iso_day
from incrowd.engine.table import RowsPerId, Table, TableError
from incrowd.spec import identifiers

Kind: TypeAlias = Literal["person", "household", "id", "event"]  # the best unit first
KINDS: tuple[Kind, ...] = ("person", "household", "id", "event")
FEWEST = 20  # different values: fewer are categories
_FEWEST_PEOPLE, _LONG_SERIES = 6, 100  # of a column called like an id of people; rows of each
_HEAD = 20_000  # rows whose values are looked at
_SAMPLED = 1000
_MOST = 0.9  # of the values must have the form of an id
_OFTEN = 20  # rows per value, on average, from which codes are categories
_SERIAL_DIGITS, _MANY_SERIAL = 4, 200  # from which digits, and values, codes are serial numbers
_NUMBER = r"(id|ids|idnum|idno|nr|no|num|number|uuid|guid|identifier)"
_PERSON = (
    r"(p|pt|pat|patient|person|pers|subj|usubj|subject|part|participant|proband|case|resp|"
    r"respondent|user|cust|customer|member|client|individual|indiv|ind|worker|employee|emp|student|"
    r"pupil|child|mother|voter|donor|citizen|resident|insured|beneficiary)"
)
_HOUSEHOLD = r"(hh|hhold|household|fam|family)"
_EVENT = (
    r"(visit|encounter|order|transaction|event|episode|admission|stay|claim|invoice|specimen|"
    r"sample|row|obs|observation|booking|session|receipt|prescription)"
)
_PLACE = (  # ids of what many people share
    r"(hospital|clinic|school|site|center|centre|region|area|city|country|state|county|ward|dept|"
    r"department|product|item|store|shop|batch|group|cluster|class|provider|facility|practice|"
    r"company|org|organization|organization|drug|test|form|version|type|category|question|"
    r"location|zone|district|block|village|stratum|strata|psu|team|plan|device|room|bed|cohort|arm|"
    r"trial|survey|wave|round)"
)
_NAMES: tuple[tuple[Kind | None, str], ...] = (  # the first that fits decides; None: no id
    ("household", rf"(^|_){_HOUSEHOLD}_?{_NUMBER}$|^{_NUMBER}_?{_HOUSEHOLD}$|^hhidpn$"),
    (None, rf"(^|_){_PLACE}s?_?{_NUMBER}$"),
    ("event", rf"(^|_){_EVENT}s?_?{_NUMBER}$"),
    ("person", rf"(^|_){_PERSON}s?_?{_NUMBER}$|^{_NUMBER}_?{_PERSON}$"),
    ("person", (
        r"(^|_)(mrn|ssn|nhi|bsn|pesel|cpf|upn|pidp|medical_?record(_?(no|number))?|"
        r"(nhs|chi|medicare|insurance|passport|social_?security)_?(no|nr|num|number|id))$|"
        r"^(nr|pid|pidnum|seqn?|serial|recno|record)$|^id_?(code|num|number|no|nr)$|"
        r"(^|_)(patient|person|subject|participant|respondent|customer|member)_?(code|key|ref)$"
    )),
    ("id", r"(^|_)(id|uuid|guid|identifier)$"),
)  # fmt: skip
_WORD = rf"^({_PERSON}|{_HOUSEHOLD})s?$"  # an id only if its values are codes
_MEASURED = r"zip|post_?code|postal|plz|icd|diag|date|year|phone|salary|income|price|amount|cost"
_CODE = re.compile(r"([A-Za-z]{1,6})[-_]?(\d{3,})(?:[-_]\d+)?")
_IDS = ("person", "household", "id")
_ID_KINDS = ("e-mail addresses", "social security numbers", "any other unique number")


def simplify_name(column: str) -> str:
    """Write the name of a column in small letters, with underscores between its words."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", column)
    return re.sub(r"\W+", "_", words).lower()


def identify_kind_by_name(simple: str) -> Kind | None:
    """Return what the id in a column with such a name identifies; None if it is called like none.

    >>> [identify_kind_by_name(name) for name in ("patient_id", "hhid", "visit_no", "mrn")]
    ['person', 'household', 'event', 'person']
    >>> identify_kind_by_name("hospital_id")
    """
    return next((kind for kind, names in _NAMES if re.search(names, simple)), None)


def identify_kind(
    simple: str, texts: Sequence[str], rows: int, *, strict: bool = False
) -> Kind | None:
    """Return what a column identifies, by its name and its different values; None if nothing.

    ``rows`` is how many rows have one of the values. A ``strict`` judge takes codes under the name
    of an id of people for ids, however few they are.
    """
    sample = texts[:: max(len(texts) // _SAMPLED, 1)][:_SAMPLED]
    is_coded = sum(map(_has_digit, sample)) >= _MOST * len(sample)
    kind = identify_kind_by_name(simple)
    if strict and is_coded and kind in ("person", "household"):
        return kind
    if kind is None and is_coded and re.search(_WORD, simple):
        kind = "household" if re.search(rf"^{_HOUSEHOLD}", simple) else "person"
    of_people = is_coded and kind in ("person", "household") and len(texts) * _LONG_SERIES >= rows
    if len(texts) < (_FEWEST_PEOPLE if of_people else FEWEST):
        return None
    if kind is not None:
        return kind if sum(" " in text for text in sample) < _MOST * len(sample) else None
    if re.search(_MEASURED, simple) or re.search(rf"(^|_){_PLACE}(_|$)", simple):
        return None
    value_kind = identifiers.identify_by_values(texts, rows)
    if value_kind in _ID_KINDS:
        return "id"
    if is_serial_code(texts):
        return "id"
    rare = len(texts) * _OFTEN > rows
    return "id" if rare and (_has_code_form(sample) or _has_serial_form(texts, rows)) else None


def is_named_id(simple: str, texts: Sequence[str]) -> bool:
    """Return whether a column is called like an id and holds codes, however few they are.

    >>> is_named_id("patient_id", ["P1", "P2", "P3"]), is_named_id("ward", ["P1", "P2", "P3"])
    (True, False)
    """
    sample = texts[:: max(len(texts) // _SAMPLED, 1)][:_SAMPLED]
    is_coded = sum(map(_has_digit, sample)) >= _MOST * len(sample)
    return is_coded and len(texts) > 2 and identify_kind_by_name(simple) in _IDS


def _has_digit(text: str) -> bool:
    return any(letter.isdigit() for letter in text)


def _has_code_form(sample: Sequence[str]) -> bool:
    """Return whether values are codes of one form: a few prefixes, and digits of one length."""
    matches = [match for text in sample if (match := _CODE.fullmatch(text))]
    prefixes, lengths = {match[1] for match in matches}, {len(match[2]) for match in matches}
    return len(matches) >= _MOST * len(sample) and len(prefixes) <= 3 and len(lengths) <= 2


def is_serial_code(texts: Sequence[str]) -> bool:
    """Return whether values are one prefix and numbers of one length, as no list of codes has.

    A public list of codes, such as the ICD, has several letters, or few digits, or gaps.

    >>> is_serial_code([f"P{number:05d}" for number in range(300)])
    True
    >>> is_serial_code([f"E{number:03d}" for number in range(100, 200)])
    False
    """
    matches = [match for text in texts if (match := _CODE.fullmatch(text))]
    forms = {(match[1], len(match[2])) for match in matches}
    if len(texts) < FEWEST or len(matches) < len(texts) or len(forms) != 1:
        return False
    (_, digits) = forms.pop()
    numbers = [int(match[2]) for match in matches]
    dense = max(numbers) - min(numbers) < 3 * len(numbers)
    return (digits >= _SERIAL_DIGITS and dense) or (
        digits > _SERIAL_DIGITS and len(texts) >= _MANY_SERIAL
    )


def _has_serial_form(texts: Sequence[str], rows: int) -> bool:
    """Return whether values are whole numbers of one length, close together, seldom repeated."""
    if len({len(text) for text in texts}) > 1 or len(texts[0]) < 5 or len(texts) * 5 < rows:
        return False
    if not all(text.isdecimal() for text in texts) or all(map(parse_iso_day, texts[:_SAMPLED])):
        return False
    numbers = [int(text) for text in texts]
    return max(numbers) - min(numbers) < 3 * len(numbers)


@dataclass(frozen=True)
class PersonIds:
    """An id in a table: what it identifies, its counts over all rows, and rows without one."""

    kind: Kind
    counts: RowsPerId
    rows: int

    @property
    def ids(self) -> int:
        """How many different ids there are."""
        return self.counts.ids

    @property
    def median(self) -> float:
        """How many rows share an id, in the middle."""
        return self.counts.median

    @property
    def largest(self) -> int:
        """How many rows share the most frequent id."""
        return self.counts.largest

    @property
    def is_unit(self) -> bool:
        """Whether several rows share an id of a person, or of what may be one."""
        return self.counts.has_repeats and self.kind != "event"

    def describe(self) -> str:
        """Return the counts in words."""
        return f"{self.ids:,} values in {self.rows:,} rows; {describe_rows(self.counts, 'value')}"


def describe_rows(counts: RowsPerId, of: str) -> str:
    """Return in words how many rows share an id.

    >>> describe_rows(RowsPerId(9, 1.5, 4), "person")
    'rows per person: median 1.5, largest 4'
    """
    return f"rows per {of}: median {counts.median:g}, largest {counts.largest:,}"


def find_ids(
    table: Table, columns: Sequence[str] | None = None, *, strict: bool = False
) -> dict[str, PersonIds]:
    """Find the columns that look like ids, with the counts of each over the whole table.

    Names and the values of the first rows decide which are counted; ``columns`` limits the search,
    and ``strict`` is for :func:`identify_kind`.
    """
    head, ids = table.head(_HEAD), {}
    rows = head.rows()
    for name in table.columns if columns is None else columns:
        try:
            values = head.values(name)
        except TableError:  # lists or bytes
            continue
        kind = identify_kind(simplify_name(name), list_texts(values), rows, strict=strict)
        if kind is not None:
            ids[name] = PersonIds(kind, table.count_rows_per_id(name), table.rows())
    return ids


def list_texts(values: Sequence[object]) -> list[str]:
    """Return different values as texts, without blanks around them and without nulls."""
    texts = (
        text.strip(BLANKS) if isinstance(text, str) else canonicalize_value(text) for text in values
    )
    return list(dict.fromkeys(text for text in texts if text))
