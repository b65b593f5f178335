"""Findings: what a check, a release, an evaluation or a verification has to say, each with a code.

``findings.toml`` lists every code once, with its severity and its sentences. A program that finds
something calls :func:`make_finding` with a code and values; the terminal, the studio, the report
and JSON render that same finding. Nothing is recognized by its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, TypeAlias

Value: TypeAlias = str | int | float | list[str] | None
_FILE = Path(__file__).with_suffix(".toml")
_HIDDEN_AS = "$"  # stands for the value within an optional part of a sentence


class Severity(StrEnum):
    """An ``error`` must be corrected, a ``warning`` needs attention, a ``note`` informs."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class CatalogEntry:
    """The entry of a code in the catalog.

    ``message``, ``remedy`` and ``studio_remedy`` are templates; without a ``studio_remedy`` the
    studio shows the remedy. ``topic`` groups the codes, and ``explanation`` is for the reference.
    """

    code: str
    topic: str
    severity: Severity
    message: str
    remedy: str
    explanation: str
    studio_remedy: str | None = None

    def fields(self) -> set[str]:
        """Return the names of the values that the templates ask for."""
        texts = (self.message, self.remedy, self.studio_remedy or "")
        return {name for text in texts for _, name, _, _ in Formatter().parse(text) if name}


@dataclass(frozen=True)
class Finding:
    """A finding for a curator or a recipient, about one column or the whole table."""

    code: str
    severity: Severity
    column: str | None = None
    values: Mapping[str, Value] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.code, self.severity, self.column))

    def __str__(self) -> str:
        return " ".join(filter(None, (self.message, self.remedy)))

    @property
    def entry(self) -> CatalogEntry:
        """The entry of the catalog."""
        return catalog()[self.code]

    @property
    def topic(self) -> str:
        """The group of codes that this one belongs to."""
        return self.entry.topic

    @property
    def text(self) -> str:
        """The problem, without the name of the column."""
        return fill_template(self.entry.message, self.values)

    @property
    def message(self) -> str:
        """The place and the problem."""
        return f"Column '{self.column}': {_uncapitalize(self.text)}" if self.column else self.text

    @property
    def remedy(self) -> str:
        """The way out, for a spec or a command line; empty where there is nothing to do."""
        return fill_template(self.entry.remedy, self.values)

    @property
    def studio_remedy(self) -> str:
        """The way out in the studio."""
        template = self.entry.studio_remedy
        return self.remedy if template is None else fill_template(template, self.values)

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as plain values, for JSON."""
        return {
            "code": self.code, "severity": self.severity.value, "column": self.column,
            "values": dict(self.values), "message": self.message, "remedy": self.remedy,
        }  # fmt: skip


def _uncapitalize(text: str) -> str:
    """Return a sentence as it stands after a colon; abbreviations and symbols stay."""
    return text if text[1:2].isupper() else f"{text[:1].lower()}{text[1:]}"


def make_finding(code: str, column: str | None = None, /, **values: Value) -> Finding:
    """Return a finding with the severity of its code."""
    return Finding(code, catalog()[code].severity, column, values)


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return errors first, then warnings, then notes; each in the order given."""
    order = list(Severity)
    return sorted(findings, key=lambda finding: order.index(finding.severity))


def count_findings(findings: Iterable[Finding]) -> str:
    """Say how many errors and warnings there are.

    >>> count_findings([])
    'No errors, no warnings.'
    """
    severities = [finding.severity for finding in findings]
    errors, warnings = (
        f"{number or 'no'} {word}{'' if number == 1 else 's'}"
        for word in ("error", "warning")
        for number in [severities.count(Severity(word))]
    )
    return f"{errors[0].upper()}{errors[1:]}, {warnings}."


@cache
def catalog() -> Mapping[str, CatalogEntry]:
    """Return every code with its entry, in the order of the file."""
    import tomllib  # only a command with something to say needs it

    with _FILE.open("rb") as file:
        topics = tomllib.load(file)
    return {
        code: CatalogEntry(
            code=code, topic=topic, severity=Severity(entry["severity"]),
            message=entry["message"], remedy=entry.get("remedy", ""),
            studio_remedy=entry.get("studio_remedy"), explanation=entry["explanation"],
        )
        for topic, entries in topics.items()
        for code, entry in entries.items()
    }  # fmt: skip


class _TemplateFormatter(Formatter):
    """Templates whose fields say how a value is written.

    ``{rows}`` separates thousands, ``{rows:row|rows}`` adds the noun, ``{share:%}`` is a
    percentage, ``{gap:points}`` a difference of percentages; ``{near:? Did you mean '$'?}``
    appears only where there is a value.
    """

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec.startswith("?"):
            text = self.format_field(value, "")
            return format_spec[1:].replace(_HIDDEN_AS, text) if value else ""
        if value is None:
            return ""
        if "|" in format_spec:
            return format_count(value, *format_spec.split("|"))
        if format_spec == "%":
            return format_percent(value)
        if format_spec == "points":
            return format_points(value)
        if isinstance(value, list):
            return ", ".join(value)
        if isinstance(value, str):
            return value
        return format(value, format_spec or ("," if isinstance(value, int) else ".4g"))


def format_count(number: int, noun: str, plural: str) -> str:
    """Return a number with its noun.

    >>> format_count(1, "row", "rows"), format_count(1234, "row", "rows")
    ('1 row', '1,234 rows')
    """
    return f"{number:,} {noun if number == 1 else plural}"


def format_percent(share: float, digits: int = 1) -> str:
    """Return a share as a percentage of some decimals; none where all of them are zero.

    >>> format_percent(0.5), format_percent(0.1234), format_percent(12.5)
    ('50 %', '12.3 %', '1,250 %')
    >>> format_percent(0.00021, 2)
    '0.02 %'
    """
    text = f"{100 * share:,.{digits}f}"
    return f"{text.removesuffix('.' + '0' * digits)} %"


def format_points(difference: float) -> str:
    """Return a difference of shares in percentage points of at most two decimals.

    >>> format_points(0.5), format_points(0.01234)
    ('50 points', '1.23 points')
    """
    return f"{format_percent(difference, 2).removesuffix(' %')} points"


def fill_template(template: str, values: Mapping[str, Value]) -> str:
    """Return a sentence of the catalog with its values."""
    return _TemplateFormatter().vformat(template, (), values)
