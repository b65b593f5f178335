"""The pages beside the data, README.md and certificate.html, made from the certificate alone.

Anyone who verifies a release makes them again and compares. The prose is in the templates; names
come from anywhere, and are written so that HTML, Markdown, and the languages of the examples take
them for nothing but names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2.nodes import EvalContext

from incrowd.codes.counted_table import COUNT
from incrowd.codes.hierarchy import ROOT
from incrowd.codes.household_type import HOUSEHOLD_KEY
from incrowd.codes.level_words import NOTHING
from incrowd.privacy.draw_parameters import build_noise_spread, get_threshold
from incrowd.privacy.protection import (
    FALSE_POSITIVE_RATES,
    Strength,
    classify_guarantee,
    describe_attacker,
    format_upper_percent,
    max_true_positive_rate,
)
from incrowd.release.certificate import PAGE, README, Certificate, CertifiedResponse, SchemeColumn
from incrowd.release.code_examples import (
    RANGES,
    list_load_examples,
    list_use_examples,
    quote_text,
)
from incrowd.release.kept_roles import KEEP, list_unprotected_columns
from incrowd.release.noise_sentences import format_exact, noise_within
from incrowd.release.render import make_environment
from incrowd.release.shares_files import make_share_files
from incrowd.release.shares_pages import fill_shares
from incrowd.release.statement import TECHNICAL

if TYPE_CHECKING:
    from incrowd.release.parameters import Parameters

_CONTROL = "[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"


def make_pages(certificate: Certificate) -> dict[str, bytes]:
    """Return the pages of a release, by file name."""
    # As a reader of the file sees it: keys are in the order in which they are written.
    model = _make_model(Certificate.model_validate_json(certificate.to_canonical_json()))
    names = {README: "readme.md", PAGE: "certificate.html"}
    if certificate.synthetic is not None:
        from incrowd.release.synthetic_pages import fill_synthetic

        names[README] = "readme_synthetic.md"
        model |= {
            **fill_synthetic(model["certificate"], quote_text, _format_cell, _format_prose),
        }
    if certificate.tabulation is not None:
        from incrowd.release.tables_pages import fill_tables

        names[README] = "readme_tables.md"
        model |= fill_tables(model["certificate"], quote_text, _format_code, _format_prose)
    pages = {name: _render_template(template, model) for name, template in names.items()}
    return pages | {path: content for path, content, _ in make_share_files(certificate)}


def _render_template(template: str, model: dict[str, Any]) -> bytes:
    return _make_templates().get_template(template).render(model).encode()


# What epsilon means ---------------------------------------------------------------------------


def describe_strength(certificate: Certificate) -> Strength | None:
    """Return how much the guarantee protects; None where nothing is guaranteed, or no epsilon."""
    guarantee = certificate.guarantee
    if guarantee.epsilon is None or guarantee.delta is None or not certificate.is_private:
        return None
    return classify_guarantee(guarantee.epsilon, guarantee.delta)


def describe_success(certificate: Certificate) -> str:
    """Return the sentence on what an attacker can achieve; empty where none can be given."""
    guarantee = certificate.guarantee
    if guarantee.epsilon is None or guarantee.delta is None or not certificate.is_private:
        return ""
    return describe_attacker(
        guarantee.epsilon, guarantee.delta, members=describe_protected_people(certificate)
    )


def describe_protected_people(certificate: Certificate) -> str:
    """Return the people whom the guarantee protects, as a noun phrase."""
    place = "table"
    if certificate.is_sampled:
        place = "population from which the table was sampled"
    row = "" if certificate.guarantee.unit == "one person" else "with one row "
    return f"people {row}in the {place}"


def list_success_rates(certificate: Certificate) -> list[tuple[str, str]]:
    """Return false-positive rates of an attacker, each with the largest true-positive rate."""
    guarantee = certificate.guarantee
    if guarantee.epsilon is None or guarantee.delta is None:
        return []
    return [
        (
            format_upper_percent(rate),
            format_upper_percent(max_true_positive_rate(rate, guarantee.epsilon, guarantee.delta)),
        )
        for rate in FALSE_POSITIVE_RATES
    ]


# The model ------------------------------------------------------------------------------------

_LONGEST_MASK = 40
_HEADLINE = frozenset(  # the sentences that a recipient reads first
    {
        "rehearsal",
        "not_private",
        "differential_privacy",
        "population",
        "k_anonymity",
        "k_epsilon_anonymity",
        "not_differential_privacy",
    }
)


def _make_model(certificate: Certificate) -> dict[str, Any]:
    """Return the values that both templates are filled with."""
    first = certificate.tables[0]
    return {
        "certificate": certificate,
        "known": certificate.guarantee,
        "tables": certificate.tables,
        "first": {**certificate.parameters, **first.parameters},
        "algorithm": first.parameters.get("algorithm"),
        "starred": first.parameters.get("suppressed") == "starred",
        "counted": first.release.form == "counted",
        "headline": [
            sentence for sentence in certificate.guarantee.statement if sentence.key in _HEADLINE
        ],
        "sentences": [
            sentence
            for sentence in certificate.guarantee.statement
            if sentence.key not in TECHNICAL
        ],
        "technical": [
            sentence for sentence in certificate.guarantee.statement if sentence.key in TECHNICAL
        ],
        "ranges": sorted(
            {
                column.labels
                for table in certificate.tables
                for column in table.scheme.values()
                if column.labels in RANGES
            }
        ),
        "by_person": certificate.guarantee.unit == "one person",
        "rows_per_person": certificate.rows_per_person,
        "rows_per_group": certificate.rows_per_group,
        "counted_unit": certificate.counted_unit,
        "strength": describe_strength(certificate),
        "success": describe_success(certificate),
        "rates": list_success_rates(certificate),
        "people": describe_protected_people(certificate),
        "hierarchies": {
            column.file: column.sha256
            for table in certificate.tables
            for column in table.scheme.values()
            if column.file is not None
        },
        "columns": list(_list_columns(certificate)),
        "parameters": _explain_parameters(certificate),
        "accuracy": _group_files(certificate, _compute_accuracy),
        "thresholds": _group_files(certificate, _get_threshold),
        "examples": list(list_load_examples(certificate)),
        "uses": list(list_use_examples(certificate)),
        "forms": _group_forms(certificate),
        "count": COUNT,
        "household_key": HOUSEHOLD_KEY,
        **fill_shares(certificate.shares or (), certificate.rows_per_person),
    }


def _group_files(
    certificate: Certificate, describe: Callable[[Parameters], tuple[Any, ...]]
) -> list[tuple[list[str], tuple[Any, ...]]]:
    """Return the files that have the same values, with these values."""
    if certificate.method != "safe":
        return []
    groups: dict[tuple[Any, ...], list[str]] = {}
    for table in certificate.tables:
        groups.setdefault(describe(table.parameters), []).append(table.release.file)
    return [(files, values) for values, files in groups.items()]


def _compute_accuracy(parameters: Parameters) -> tuple[Any, ...]:
    """Return r and standard deviation of counts; beta, its inverse and the error of a sample."""
    if "r" in parameters:
        spread = build_noise_spread(parameters).variance ** 0.5
        return int(parameters["r"]), f"{spread:.3g}", noise_within(parameters)
    beta = float(parameters["beta"])
    return repr(beta), f"{1 / beta:.6g}", f"{(1 - beta) ** 0.5 / beta:.3g}"


def _get_threshold(parameters: Parameters) -> tuple[int]:
    return (get_threshold(parameters) if "r" in parameters else int(parameters["k"]),)


@dataclass(frozen=True)
class _ColumnEntry:
    """What a column contains, and by which rule or file."""

    name: str
    file: str = ""
    content: str = ""
    place: str = ""
    source: str = ""
    rule: str = ""
    other: str | None = None
    absent: tuple[str, ...] = ()
    absence: str = ""
    kind: str = ""
    step: str = ""
    bounds: tuple[str, str] | None = None
    response: CertifiedResponse | None = None


@dataclass(frozen=True)
class _LabelForm:
    """The columns whose labels have a form, and what else occurs among these labels."""

    form: str
    names: list[str]
    open_ends: list[str]
    mixed: bool
    hidden: str
    all_hidden: bool


def _group_forms(certificate: Certificate) -> list[_LabelForm]:
    """Return the forms of labels that occur, each with its columns."""
    groups: dict[tuple[str, bool], dict[str, SchemeColumn]] = {}
    for table in certificate.tables:
        for name, column in table.scheme.items():
            key = column.labels, _describe_content(column) == NOTHING
            groups.setdefault(key, {})[name] = column
    return [
        _LabelForm(
            form, list(columns),
            list(dict.fromkeys(end for column in columns.values() for end in column.open_ends)),
            any(column.level is None for column in columns.values()),
            max((ROOT * _get_mask_length(column) for column in columns.values()), key=len),
            all_hidden,
        )
        for (form, all_hidden), columns in groups.items()
    ]  # fmt: skip


def _get_mask_length(column: SchemeColumn) -> int:
    mask = (column.rule or {}).get("mask")
    length = mask.get("length") if isinstance(mask, dict) else None
    return min(length, _LONGEST_MASK) if isinstance(length, int) else 1


def _list_columns(certificate: Certificate) -> Iterator[_ColumnEntry]:
    several = len(certificate.tables) > 1
    unprotected = list_unprotected_columns(certificate.parameters)
    for table in certificate.tables:
        for name, column in table.scheme.items():
            file = table.release.file if several else ""
            replaced = table.parameters.get("algorithm") == "duplicate"
            yield _make_column_entry(name, column, file, replaced=replaced)
    for name in certificate.kept:
        plain = KEEP if name in unprotected else "kept"
        yield _ColumnEntry(name, kind=certificate.aggregates.get(name, plain))
    for name, response in (certificate.randomized or {}).items():
        yield _ColumnEntry(name, kind="category", response=response)
    for name, grid in certificate.noisy.items():
        yield _ColumnEntry(name, kind=grid.kind, step=grid.step, bounds=grid.bounds)


def _make_column_entry(
    name: str, column: SchemeColumn, file: str, *, replaced: bool
) -> _ColumnEntry:
    return _ColumnEntry(
        name,
        file,
        _describe_content(column),
        "" if column.level is None else f"level {column.level} of ",
        column.file or "",
        "" if column.rule is None else json.dumps(column.rule, sort_keys=True),
        column.other,
        () if column.absent is None else tuple(column.absent.first),
        _describe_absence(column, replaced=replaced),
    )


def _describe_content(column: SchemeColumn) -> str:
    """Return what a column shows, in words."""
    if column.level is None:
        return "labels of several levels"
    return column.shows[column.level] if column.level < len(column.shows) else "labels"


def _describe_absence(column: SchemeColumn, *, replaced: bool) -> str:
    """Return what is said of the first listed labels that no row shows, after their names.

    A label may be absent because nobody has it: that nothing is known is all that can be said.
    Rows may also be ``replaced`` by other rows of their class.
    """
    if column.absent is None:
        return ""
    number, named = column.absent.number, len(column.absent.first)
    verb, owner = ("occurs", "its") if number == 1 else ("occur", "their")
    if number > named:
        listed = column.sizes[column.level or 0]
        verb = f"and {number - named:,} more of {listed:,} listed labels occur"
    removal = "replaced or suppressed" if replaced else "suppressed"
    return (
        f"{verb} in no published row; {owner} groups, if any, were {removal}. Do not read this as "
        "zero."
    )


def _explain_parameters(certificate: Certificate) -> list[tuple[str, str, str]]:
    """Return every parameter with its value and its meaning; where files differ, of each."""
    rows: dict[tuple[str, str, str], None] = {}
    for parameters in (certificate.parameters, *(table.parameters for table in certificate.tables)):
        for name, value in sorted(parameters.items()):
            meaning = _MEANINGS.get(name, "")
            if name.startswith("rule "):
                meaning = "a rule for every class"
            elif name == "k" and certificate.rows_per_group > 1:
                meaning = "the least number of people in a published group"
            elif name == "k" and certificate.links is not None:
                meaning = "the least number of households of a published type"
            elif name == "k" and certificate.has_noisy_counts:
                meaning = "the least number of input rows in a published group"
            text = value if isinstance(value, str) else format_exact(value)
            rows[name, text, meaning] = None
    return list(rows)


_MEANINGS = {
    "k": "the least number of equal rows in a published group",
    "beta": "the probability with which each row was drawn (β)",
    "r": "the bound of the noise of a count",
    "rows_per_group": "the largest number of used rows of one person that count in a group",
    "noise": "the distribution of the noise",
    "noise_epsilon": "the parameter of geometric noise: the larger, the less noise",
    "noise_variance": "the variance of Gaussian noise, before it is truncated",
    "basic_r": "the bound of the basic noise of a series",
    "series": "a name that all releases of the series share",
    "series_of": "the number of releases of the series",
    "series_number": "the number of this release in the series",
    "coin": "the probability with which r was set to coin_r - 1, independently of the input",
    "coin_r": "the larger of the two values that r could have",
    "search_epsilon": "the part of ε that was spent on choosing the generalization",
    "slices_epsilon": "the part of ε that was spent on choosing the columns of each file",
    "already_sampled": "the probability with which each member of the population was included in "
    "the input, as the curator asserts",
    "people_per_household": "the largest number of people of a household that were used",
    "size": "the table size that decided parameters, public knowledge as the curator asserts",
    "information": "the total precision of the measured tables: a measurement costs the squared "
    "length by which one row moves it, over the variance of its noise",
    "choices": "the number of private choices of tables that were charged",
    "choice_epsilon": "the range of each private choice",
    "algorithm": "how classes were formed",
    "labels": "free labels: a column without an order shows the set of values that a class has",
    "suppressed": "how suppressed rows appear",
    "epsilon": "the parameter of the noise in the noisy columns: the larger, the less noise",
    "delta": "the δ of the Gaussian noise in the noisy columns",
    "bounds": "what the noise is scaled to: the values of a class, or the declared bounds",
    "confidence": "rows were suppressed whose noisy value would have pointed, with this "
    "confidence, to fewer than k rows of their class",
}


# Names that come from anywhere ----------------------------------------------------------------


@cache
def _make_templates() -> jinja2.Environment:
    environment = make_environment("incrowd.release").overlay(
        autoescape=lambda name: name is None or name.endswith(".html"),
        finalize=_finalize_value,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "code": _format_code,
        "cell": _format_cell,
        "prose": _format_prose,
        "plain": _format_plain,
        "codes": _format_codes,
        "cells": _format_cells,
        "exact": format_exact,
    }
    return environment


@jinja2.pass_eval_context
def _finalize_value(context: EvalContext, value: Any) -> Any:
    """Spell out control characters in whatever HTML shows."""
    return _spell_controls(value) if context.autoescape and type(value) is str else value


def _spell_controls(text: str) -> str:
    """Return text with control characters, and those that turn text around, spelled out."""
    return re.sub(_CONTROL, lambda match: f"\\x{ord(match[0]):02x}", text)


def _format_codes(names: Iterable[str]) -> str:
    return ", ".join(map(_format_code, names))


def _format_cells(texts: Iterable[str]) -> str:
    return ", ".join(map(_format_cell, texts))


def _format_code(text: str) -> str:
    """Return Markdown code on one line, between as many backticks as it takes."""
    spelled = _spell_controls(text)
    longest = max((len(run) for run in re.findall("`+", spelled)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest or spelled != spelled.strip() else ""
    return f"{fence}{space}{spelled}{space}{fence}"


def _format_cell(text: str) -> str:
    """Return code in a cell of a Markdown table, where a bar would end it."""
    return _format_code(text).replace("|", "\\|")


def _format_plain(text: str) -> str:
    """Return text on one line, without what Markdown takes for the end of a cell or a link."""
    return _spell_controls(text).replace("|", "\\|").replace("<", "%3C").replace(">", "%3E")


def _format_prose(text: str) -> str:
    """Return text that Markdown takes for nothing but text."""
    return re.sub(r"([\\`*_\[\]<>&|#~$!])", r"\\\1", _spell_controls(text))
