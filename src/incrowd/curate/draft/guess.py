"""What a column probably is: its role, how it is written, and a hierarchy, from its values.

Rules are asked one after the other; the first that knows the column decides. What comes from the
data is to be confirmed; what is public knowledge, such as the codes of countries, is not.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property

from incrowd.codes.values import canonicalize_value, make_sort_key, parse_iso_day, parse_number
from incrowd.curate.draft import hierarchy_proposal, public_values
from incrowd.curate.draft import value_format as forms
from incrowd.curate.draft.hierarchy_proposal import HierarchyProposal
from incrowd.engine.table import UNNAMED, RowsPerId
from incrowd.methods.person_id import (
    Kind,
    identify_kind,
    is_named_id,
    is_serial_code,
    list_texts,
    simplify_name,
)
from incrowd.spec import countries, icd, identifiers, postcodes
from incrowd.spec.base import quote_scalar
from incrowd.spec.value_format import ValueFormat

_FEW_TEXTS, _FEW_NUMBERS = 40, 12
_OLDEST = 125  # years; what lies beyond is a mistake, or a code
_MANY_TEXTS, _OFTEN = 200, 20  # more texts are listed where each occurs so often
_SENSITIVE = (
    r"diagnos|disease|condition|icd|medication|treatment|income|salary|religion|vote|party|"
    r"(^|_)(hiv|std|diag|dx|results?)(_?\d+)?(_|$)"
)
_NOMINAL = (  # categories without an order, whatever their codes
    r"(^|_)(sex|gender|race|ethnic\w*|region|state|country|province|county|district|city|language|"
    r"religion|party|marital\w*|occupation|industry|site|clinic|hospital|type)(_|$)"
)
_INDEX = r"^(Unnamed: 0(\.\d+)?|\.\.\.1|rownames|row\.names|X|index|level_0)$"  # of pandas and R
_MOST_DIGITS = 300  # of a number: as many as a floating point number has
_AGE = r"(^|_)(age|alter|leeftijd|edad)(_|$)|^age\d*$|(^|_)age_?(in_?)?(years?|yrs?|at_\w+)$"
_YEAR = r"(^|_)(year|yr|yob|jahr|annee)(_|$)|birth_?year|year_?of"
_WEIGHT = (  # of surveys; a plain "weight" may be that of a body
    r"(sampl\w*|survey|design|person|household|hh|final|calibrated|expansion|prob\w*)_?"
    r"(weight|wgt|wt|factor)s?(_|$)|^(fnlwgt|pweight|wgt|perwt|hhwt|wtfinl|finalwgt)$"
)
_SCALES = (  # words that have an order
    "low medium high", "low middle high", "small medium large", "mild moderate severe",
    "none mild moderate severe", "poor fair good excellent", "poor fair good very_good excellent",
    "never rarely sometimes often always", "i ii iii iv", "i ii iii iv v",
    "strongly_disagree disagree neutral agree strongly_agree",
)  # fmt: skip


@dataclass(frozen=True)
class Guess:
    """The guess for a column: the YAML of its entry, the reason, and what came from the data.

    ``identifies`` says what an id is one of, ``counts`` how many rows of the whole table share one;
    ``nulls`` that some rows have no value, ``hipaa`` the identifier that it looks like.
    ``function_of`` has the columns that determine it in every row looked at. Further entries are
    ``settings``, as YAML.
    """

    column: str
    role: str
    hierarchy: str | None
    reason: str
    confirm: tuple[str, ...]
    hipaa: str | None = None
    identifies: Kind | None = None
    counts: RowsPerId | None = None
    nulls: bool = False
    written: ValueFormat | None = None
    origin: str = ""
    settings: tuple[str, ...] = ()
    function_of: tuple[str, ...] = ()

    @property
    def explanation(self) -> str:
        """The reason, and from where a range comes."""
        return "; ".join(filter(None, (self.reason, self.origin)))

    @property
    def has_repeated_ids(self) -> bool:
        """Whether several rows share an id of a person, or of what may be one."""
        person = self.identifies not in (None, "event")
        return person and self.counts is not None and self.counts.has_repeats

    def with_counts(self, counts: RowsPerId, rows: int) -> Guess:
        """Return the guess with the counts of its ids over the whole table of so many rows."""
        guess = replace(self, counts=counts)
        if not guess.has_repeated_ids:  # then it is left out, however it is written
            rest = tuple(entry for entry in self.confirm if entry != "written")
            return replace(guess, written=None, confirm=rest)
        reason = f"id shared by several rows: {counts.ids:,} values in {rows:,} rows"
        hipaa = self.hipaa or "any other unique number"
        return replace(guess, role="identifier", reason=reason, hipaa=hipaa)

    def yaml(self) -> str:
        """Return the line of the spec; what is dropped has a role and nothing else."""
        parts, confirm = [f"role: {self.role}"], self.confirm
        if self.role == "drop":
            confirm = tuple(entry for entry in confirm if entry == "role")
        else:
            if self.written is not None:
                parts.append(f"written: {forms.format_as_yaml(self.written)}")
            if self.hierarchy:
                parts.append(f"hierarchy: {self.hierarchy}")
            parts += self.settings
            if self.function_of:
                parts.append(f"function_of: [{', '.join(map(quote_scalar, self.function_of))}]")
                confirm = (*confirm, "function_of")
        if confirm:
            parts.append(f"confirm: [{', '.join(confirm)}]")
        reason = " ".join(self.reason.split())
        return f"  {quote_scalar(self.column)}: {{{', '.join(parts)}}}  # {reason}"


@dataclass(frozen=True)
class ColumnSummary:
    """What the rules look at: a column's name, simplified, and its different values as texts.

    ``raw`` are those as they are written, ``typed`` says that the column is one of numbers, and
    ``order`` has the values in the order that the table declares, if it does.
    """

    column: str
    simple: str
    hipaa: str | None
    texts: list[str]
    rows: int
    raw: list[str]
    typed: bool = False
    order: tuple[str, ...] = ()

    def make_guess(
        self, role: str, reason: str, proposal: HierarchyProposal | None = None
    ) -> Guess:
        """Make a guess; a hierarchy from public knowledge needs no confirmation."""
        read = proposal is not None and proposal.read
        confirm = ("role", "hierarchy") if read else ("role",)
        guess = Guess(self.column, role, None, reason, confirm, self.hipaa)
        if proposal is None:
            return guess
        return replace(guess, hierarchy=proposal.hierarchy, origin=proposal.origin)

    def guess_by_hierarchy(self, proposal: HierarchyProposal, hipaa: str | None = None) -> Guess:
        """Make a guess from a proposed hierarchy, which is its reason."""
        role = "sensitive" if re.search(_SENSITIVE, self.simple) else "quasi"
        return replace(self, hipaa=hipaa or self.hipaa).make_guess(role, proposal.reason, proposal)

    @cached_property
    def numbers(self) -> list[Decimal]:
        """All values as numbers, or none at all; what no computer holds is none."""
        read = (parse_number(text) for text in self.texts)
        numbers = [x for x in read if x is not None and abs(x.adjusted()) <= _MOST_DIGITS]
        return numbers if len(numbers) == len(self.texts) else []

    @cached_property
    def days(self) -> list[dt.date]:
        """All values as days, or none at all."""
        days = [parse_iso_day(text) for text in self.texts]
        return [day for day in days if day] if all(days) else []


def guess_column(
    column: str, values: Sequence[object], rows: int, label: str = "", order: Sequence[str] = ()
) -> Guess:
    """Guess a column from its name, description, different values, and how many rows have one.

    ``order`` has the values in the order that the table itself declares.
    """
    raw = list_texts(values)
    written = forms.propose_format(raw)
    read = raw if written is None else map(written.make_reader(), raw)
    plain = list(dict.fromkeys(text for value in read if (text := canonicalize_value(value))))
    simple = simplify_name(column)
    kinds = {type(value) for value in values if value is not None}
    typed = bool(kinds) and kinds <= {int, float, Decimal}
    ordered = tuple(canonicalize_value(text) or "" for text in order)
    look = ColumnSummary(
        column, simple, identifiers.identify_by_name(simple), plain, rows, raw, typed, ordered
    )
    guess = next(answer for rule in _RULES if (answer := rule(look)))
    reason = f"{guess.reason}; '{label}'" if label else guess.reason
    unread = guess.role in ("drop", "identifier") and guess.identifies is None
    if written is None or unread:
        return replace(guess, reason=reason)
    if forms.has_ambiguous_dates(written, raw):
        reason += "; day and month may be swapped"
    first, *rest = guess.confirm
    confirm = (first, "written", *rest)
    return replace(guess, reason=reason, written=written, confirm=confirm)


def _guess_empty(look: ColumnSummary) -> Guess | None:
    return None if look.texts else look.make_guess("drop", "only nulls")


def _guess_row_number(look: ColumnSummary) -> Guess | None:
    """Recognize numbers from the first row to the last, and columns without a name."""
    numbers = set(look.numbers)
    each = len(numbers) == len(look.texts) == look.rows
    if each and re.search(_INDEX, look.column):
        return replace(look, hipaa=None).make_guess("drop", "row numbers")
    ends = max(numbers, default=Decimal(0)) - min(numbers, default=Decimal(0))
    consecutive = each and look.rows == ends + 1
    if look.column == UNNAMED or (look.rows >= 20 and consecutive):
        guess = replace(look, hipaa=None).make_guess("drop", "row numbers")
        return replace(guess, identifies="id" if consecutive else None)
    return None


def _guess_person_id(look: ColumnSummary) -> Guess | None:
    """Recognize an id by its name and its values; repetitions are counted later."""
    kind = identify_kind(look.simple, look.raw, look.rows)
    if kind is None:
        return None
    alike = identifiers.identify_by_values(look.raw, look.rows)
    specific = None if look.hipaa in identifiers.GENERAL else look.hipaa
    look = replace(look, hipaa=alike or specific or "any other unique number")
    each = len(look.texts) == look.rows
    reason = "id, a different one in each row" if each else "id shared by several rows"
    return replace(look.make_guess("identifier", reason), identifies=kind)


def _guess_named_id(look: ColumnSummary) -> Guess | None:
    """Recognize an id by its name alone, of too few people to be the unit."""
    if not is_named_id(look.simple, look.raw):
        return None
    summary = replace(look, hipaa=look.hipaa or "any other unique number")
    return summary.make_guess("identifier", "called like an id")


def _guess_identifier(look: ColumnSummary) -> Guess | None:
    alike = identifiers.identify_by_values(look.raw, look.rows)
    if alike is not None:
        return replace(look, hipaa=alike).make_guess("identifier", f"looks like {alike}")
    named = look.hipaa is not None and look.hipaa not in (
        *identifiers.GENERAL, "any other unique number",
    )  # fmt: skip
    street = re.search(r"address|street", look.simple)
    if (named or street) and len(look.texts) > 2:
        return look.make_guess("identifier", f"column name suggests {look.hipaa}")
    unique = look.rows >= 20 and len(look.texts) > 0.9 * look.rows
    decimals = any("." in text for text in look.texts[:200] if parse_number(text) is not None)
    if not unique or decimals or look.days or _propose_public_list(look):
        return None
    if _is_measured(look):
        return None
    summary = replace(look, hipaa=look.hipaa or "any other unique number")
    return summary.make_guess("identifier", "a different value in almost every row")


def _is_measured(look: ColumnSummary) -> bool:
    """Return whether values that hardly repeat are amounts: of several lengths, with gaps."""
    numbers = look.numbers
    if not numbers or look.hipaa is not None:
        return False
    gaps = max(numbers) - min(numbers) > 3 * len(numbers)
    return gaps and len({len(text) for text in look.texts}) > 1


def _guess_survey_weight(look: ColumnSummary) -> Guess | None:
    """Recognize survey weights by their name, and by being positive numbers."""
    numbers = look.numbers
    if not numbers or min(numbers) <= 0 or not re.search(_WEIGHT, look.simple):
        return None
    return replace(look, hipaa=None).make_guess("weight", "survey weights, by name")


def _guess_postcode(look: ColumnSummary) -> Guess | None:
    country = postcodes.recognize_postcodes(look.texts)
    if country is not None:
        proposal = HierarchyProposal(
            f"{{postcodes: {{country: {country}}}}}", f"postcodes ({country})", read=False
        )
        return look.guess_by_hierarchy(proposal, "geographic subdivisions")
    if not re.search(r"zip|post_?code|postal|plz", look.simple):
        return None
    lengths = {len(text) for text in look.texts}
    length = max(lengths)
    if length > 12 or (len(lengths) > 1 and not look.typed):  # only numbers get zeros back
        return None
    fields = ""
    if not all(text.isdigit() for text in look.texts):
        letters = "".join(sorted({*"0123456789", *"".join(look.texts)}))
        fields = f", alphabet: {quote_scalar(letters)}"
    length = max(length, 5) if "zip" in look.simple and look.typed else length
    read = bool(fields) or (length != 5 and len(lengths) > 1)
    proposal = HierarchyProposal(f"{{mask: {{length: {length}{fields}}}}}", "postal code", read)
    return look.guess_by_hierarchy(proposal, "geographic subdivisions")


def _propose_public_list(look: ColumnSummary) -> HierarchyProposal | None:
    """Propose a hierarchy for codes that are public lists."""
    codes = countries.recognize_countries(look.texts)
    if codes is not None:
        return HierarchyProposal(
            f"{{countries: {{codes: {codes}}}}}", f"countries ({codes})", read=False
        )
    serial = is_serial_code(look.raw) and not re.search(_SENSITIVE, look.simple)
    version = None if serial else icd.recognize_icd(look.texts)
    if version is not None:
        return HierarchyProposal(
            f"{{icd: {{version: {version}}}}}", f"diagnoses (ICD-{version})", read=False
        )
    return None


def _guess_public_list(look: ColumnSummary) -> Guess | None:
    states = public_values.propose_states(look.simple, look.texts)
    if states is not None:
        return look.guess_by_hierarchy(states, "geographic subdivisions")
    proposal = (
        _propose_public_list(look)
        or public_values.propose_public_range(look.simple, look.numbers)
        or public_values.propose_scale(look.simple, look.numbers)
    )
    return None if proposal is None else look.guess_by_hierarchy(proposal)


def _guess_date(look: ColumnSummary) -> Guess | None:
    return (
        look.guess_by_hierarchy(hierarchy_proposal.propose_days(look.days), "dates")
        if look.days
        else None
    )


def _guess_age(look: ColumnSummary) -> Guess | None:
    numbers = look.numbers
    if not numbers or not re.search(_AGE, look.simple) or len(numbers) < 3:
        return None
    odd = [x for x in numbers if not 0 <= x <= _OLDEST]
    if not odd:
        return look.guess_by_hierarchy(hierarchy_proposal.propose_ages())
    few = len(odd) <= max(1, len(numbers) // 50) and len(numbers) >= 20
    if not few:
        return None
    proposal = hierarchy_proposal.propose_ages()
    listed = ", ".join(canonicalize_value(x) or "" for x in sorted(odd))
    return look.guess_by_hierarchy(
        replace(proposal, reason=f"{proposal.reason}; not an age: {listed}")
    )


def _guess_year(look: ColumnSummary) -> Guess | None:
    numbers = look.numbers
    if not numbers or any(x != x.to_integral_value() for x in numbers):
        return None
    if not 1800 <= min(numbers) <= max(numbers) <= 2100:
        return None
    named = re.search(_YEAR, look.simple) is not None
    close = min(numbers) >= 1900 and max(numbers) <= 2035 and len(numbers) >= 5
    return (
        look.guess_by_hierarchy(hierarchy_proposal.propose_years(numbers), "dates")
        if named or close
        else None
    )


def _guess_coordinate(look: ColumnSummary) -> Guess | None:
    numbers = look.numbers
    named = re.search(r"(^|_)(lat|latitude|lon|lng|long|longitude)(_|$)", look.simple)
    fits = numbers and max(map(abs, numbers)) <= 180 and any("." in text for text in look.texts)
    if fits and (named or identifiers.is_coordinate(look.texts)):
        return look.guess_by_hierarchy(
            hierarchy_proposal.propose_degrees(numbers), "geographic subdivisions"
        )
    return None


def _guess_declared_order(look: ColumnSummary) -> Guess | None:
    """Recognize values whose order the table declares, unless they are nominal."""
    values = look.order
    if not 3 <= len(set(values)) == len(values) <= _MANY_TEXTS or not set(look.texts) <= {*values}:
        return None
    return (
        None
        if re.search(_NOMINAL, look.simple)
        else look.guess_by_hierarchy(hierarchy_proposal.propose_listed_order(values))
    )


def _guess_few_values(look: ColumnSummary) -> Guess | None:
    numbers, count = look.numbers, len(look.texts)
    often = count <= _MANY_TEXTS and count * _OFTEN <= look.rows and not numbers
    if count > (_FEW_NUMBERS if numbers else _FEW_TEXTS) and not often:
        return None
    ordered = hierarchy_proposal.propose_number_order(look.texts) or _propose_scale(look.texts)
    if ordered is not None:
        return look.guess_by_hierarchy(ordered)
    is_common_set = public_values.is_known_set(look.texts)
    listed = ", ".join(quote_scalar(text) for text in sorted(look.texts, key=make_sort_key))
    reason = f"{count} distinct values" if count > 1 else "one value"
    proposal = HierarchyProposal(f"{{flat: {{values: [{listed}]}}}}", reason, not is_common_set)
    return look.guess_by_hierarchy(proposal)


def _propose_scale(texts: Sequence[str]) -> HierarchyProposal | None:
    """Propose a hierarchy for words that have an order."""
    simple = {re.sub(r"\W+", "_", text.lower()): text for text in texts}
    for scale in _SCALES:
        words = scale.split()
        if len(simple) == len(texts) >= 3 and set(simple) <= set(words):
            values = ", ".join(quote_scalar(simple[word]) for word in words if word in simple)
            return HierarchyProposal(
                f"{{order: {{values: [{values}]}}}}", f"{len(texts)} values in order"
            )
    return None


def _guess_number(look: ColumnSummary) -> Guess | None:
    numbers = look.numbers
    if not numbers:
        return None
    return look.guess_by_hierarchy(
        hierarchy_proposal.propose_amounts(numbers)
        if hierarchy_proposal.is_skewed(numbers)
        else hierarchy_proposal.propose_numbers(numbers)
    )


def _guess_many_texts(look: ColumnSummary) -> Guess:
    return look.make_guess("drop", "too many distinct texts to generalize")


_RULES: tuple[Callable[[ColumnSummary], Guess | None], ...] = (
    _guess_empty,
    _guess_row_number,
    _guess_survey_weight,
    _guess_person_id,
    _guess_named_id,
    _guess_identifier,
    _guess_postcode,
    _guess_public_list,
    _guess_date,
    _guess_coordinate,
    _guess_age,
    _guess_year,
    _guess_declared_order,
    _guess_few_values,
    _guess_number,
    _guess_many_texts,
)
