"""Check the published table against its certificate: values, classes, order, rules.

Every value lies at its level, every class is a crowd, rows stand in an order that tells nothing,
rules on sensitive columns hold, and numbers are as certified.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np

from incrowd.arrays import Counts
from incrowd.codes.axis import Axis
from incrowd.codes.counted_table import COUNT
from incrowd.codes.frequency import Frequencies, number_tuples
from incrowd.codes.hierarchy import ROOT, Hierarchy, build_from_rows
from incrowd.codes.household_type import HOUSEHOLD_KEY
from incrowd.codes.label_form import Form, find_axis_form, find_level_form, parse_number_label
from incrowd.codes.values import canonicalize_value, make_sort_key, parse_iso_day, parse_number
from incrowd.engine.count import read_labels
from incrowd.engine.released import ReleasedTable, find_hidden_content, open_released
from incrowd.engine.table import Coder, Table
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, make_finding
from incrowd.measure.diversity import (
    AlphaRule,
    DistinctRule,
    DiversityRule,
    EntropyRule,
    RecursiveRule,
    SensitiveColumn,
    ShareRule,
)
from incrowd.measure.labels import LabelReader
from incrowd.release.certificate import AbsentLabels, Certificate, NoisyColumn, SchemeColumn
from incrowd.release.formulas import unescape_formula
from incrowd.release.parameters import (
    RULES,
    has_free_labels,
    has_wildcards,
    list_rules,
    parse_recursive_rule,
    parse_share_rule,
)
from incrowd.release.scheme_words import (
    describe_listed,
    describe_rule,
    find_absent,
    refuse_other_words,
)
from incrowd.release.verify_cells import (
    find_class_numbers,
    find_shown_links,
    find_small_sets,
)
from incrowd.spec.arx import format_rows, read_rows
from incrowd.spec.hierarchies import HierarchyChoice, Mask


def check_data(folder: Path, certificate: Certificate) -> list[Finding]:
    """Check every value at its level, every class a crowd, every number as certified."""
    if certificate.synthetic is not None:
        from incrowd.release.synthetic_verify import check_rows

        return check_rows(folder, certificate)
    release = certificate.table.release
    findings = list(find_hidden_content(folder / release.file))
    table = open_released(folder / release.file)
    if release.formulas:
        table = table.respell_texts(unescape_formula)
    expected = [*certificate.table.scheme, *certificate.kept, *certificate.noisy]
    expected += [*(certificate.randomized or {})]
    expected += [COUNT] if release.form == "counted" else []
    expected += [HOUSEHOLD_KEY] if certificate.links is not None else []
    if sorted(table.columns) != sorted(expected):
        return [make_finding("DATA_COLUMNS_DIFFER", columns=list(table.columns))]
    findings += _find_foreign_values(folder, table, certificate)
    sizes, stars = _count_class_rows(table, certificate)
    if has_wildcards(certificate.parameters):
        findings += find_small_sets(table, certificate)
    else:
        findings += _find_small_classes(sizes, certificate)
    findings += find_shown_links(table, certificate)
    findings += find_class_numbers(table, certificate)
    findings += _find_broken_rules(table, certificate)
    findings += _find_data_oddities(table, certificate)
    rows = sum(sizes.tolist()) + stars
    totals = (rows, len(sizes), int(sizes.min()) if len(sizes) else 0)
    if totals != (release.rows, release.classes, release.smallest_class):
        certified = f"{release.rows:,}, {release.classes:,} and {release.smallest_class:,}"
        findings.append(
            make_finding(
                "COUNTS_DIFFER", rows=totals[0], classes=totals[1], smallest=totals[2],
                certified=certified,
            )
        )  # fmt: skip
    return findings


def _find_foreign_values(
    folder: Path, table: ReleasedTable, certificate: Certificate
) -> list[Finding]:
    """Find values that their scheme does not have, or that lie off their grid."""
    findings = []
    has_stars = certificate.parameters.get("suppressed") in ("starred", "cells")
    starred = {ROOT} if has_stars else set()
    for name, scheme in certificate.table.scheme.items():
        hierarchy = read_hierarchy(folder, name, scheme)
        is_free = has_free_labels(certificate.parameters)
        allowed = _make_value_check(name, scheme, hierarchy, is_free=is_free)
        values = [value for value in table.values(name) if value not in starred]
        strange = sorted(str(value) for value in values if not allowed(value))
        if strange:
            what = "its hierarchy" if scheme.level is None else f"level {scheme.level}"
            findings.append(
                make_finding("VALUE_NOT_IN_SCHEME", value=strange[0], name=name, level=what)
            )
        elif not _has_label_form(
            scheme.labels, list(table.values(name)), certificate.table.release.file
        ):
            findings.append(make_finding("LABELS_FORM_DIFFERS", name=name, form=scheme.labels))
        elif _find_absent_labels(scheme, hierarchy, values) != scheme.absent:
            findings.append(make_finding("ABSENT_LABELS_DIFFER", name=name))
    for name, grid in certificate.noisy.items():
        off = [value for value in table.values(name) if not _is_on_grid(value, grid)]
        if off:
            value = str(off[0])
            findings.append(make_finding("VALUE_OFF_GRID", value=value, name=name, step=grid.step))
    for name, response in (certificate.randomized or {}).items():
        strange = sorted(str(x) for x in table.values(name) if str(x) not in response.values)
        if strange:
            findings.append(make_finding("CATEGORY_UNKNOWN", value=strange[0], name=name))
    return findings


def _find_small_classes(sizes: Counts, certificate: Certificate) -> list[Finding]:
    """Find classes below the threshold of their certificate."""
    least, what = certificate.threshold, "k"
    if certificate.has_noisy_counts:
        what = certificate.threshold_formula
    small = int((sizes < least).sum())
    if not small:
        return []
    smallest = int(sizes.min())
    return [make_finding(
        "CLASSES_TOO_SMALL", classes=small, what=what, least=least, smallest=smallest
    )]  # fmt: skip


def _find_data_oddities(table: ReleasedTable, certificate: Certificate) -> list[Finding]:
    """Find what a release does not have, and a reader would not notice."""
    data_oddities = []
    weighted = certificate.table.release.form == "counted"
    names = [name for name in table.columns if not (weighted and name == COUNT)]
    if not _is_ordered(table, names):
        data_oddities.append(make_finding("ROWS_UNORDERED"))
    for name in certificate.noisy:
        odd = [value for value in table.values(name) if not _is_plainly_written(value)]
        if odd:
            data_oddities.append(make_finding("VALUE_WRITTEN_ODDLY", value=str(odd[0]), name=name))
    if certificate.parameters.get("suppressed") == "starred" and table.rows():
        quasi = tuple(certificate.table.scheme)
        published = read_labels(table, (*quasi, *certificate.kept), weighted=weighted)
        marks = [
            np.array([label == ROOT for label in published.labels[at]])[codes]
            for at, codes in enumerate(published.frequencies.codes.T[: len(quasi)])
        ]
        starred = published.frequencies.codes[np.all(marks, axis=0)]
        for at, name in enumerate(certificate.kept, len(quasi)):
            if any(published.labels[at][code] is not None for code in np.unique(starred[:, at])):
                data_oddities.append(make_finding("SUPPRESSED_ROWS_SHOW_VALUES", name=name))
    return data_oddities


def _is_plainly_written(value: object) -> bool:
    """Return whether a noisy value is written in the one way that a release has."""
    if not isinstance(value, str):
        return value is None or not isinstance(value, dt.datetime)
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        return True
    return value in (canonicalize_value(value), f"{canonicalize_value(value)}.0")


def _is_ordered(table: ReleasedTable, names: list[str]) -> bool:
    """Return whether rows stand in the order of what they show, so the order tells nothing."""

    def coder(name: str) -> Coder:
        listed = sorted(table.values(name), key=make_sort_key)
        places = {value: at for at, value in enumerate(listed)}
        # A reader of files may ask for null where there is none.
        return lambda values: np.array([places.get(value, 0) for value in values], np.int32)

    return not table.rows() or table.has_ascending_rows(
        names, {name: coder(name) for name in names}
    )


def _count_class_rows(table: Table, certificate: Certificate) -> tuple[Counts, int]:
    """Count the rows of each class, and the rows that stand for suppressed ones.

    A class is told by the generalized columns. A table with counts has one row for each class,
    or, with columns that are kept as they are, for each of their values in it.
    """
    names = list(certificate.table.scheme)
    if not table.rows():
        return np.zeros(0, dtype=np.int64), 0
    weighted = certificate.table.release.form == "counted"
    published = read_labels(table, tuple(names), weighted=weighted)
    if weighted:
        _refuse_bad_counts(table, [*names, *certificate.kept])
    sizes = published.frequencies.counts
    if certificate.parameters.get("suppressed") != "starred":
        return sizes, 0
    stars = np.ones(len(sizes), dtype=bool)
    for at, labels in enumerate(published.labels):
        starred = np.array([label == ROOT for label in labels])
        stars &= starred[published.frequencies.codes[:, at]]
    return sizes[~stars], int(sizes[stars].sum())


def _make_rule(kind: str, value: float, labels: Sequence[object]) -> DiversityRule | None:
    """Return a rule that the release shows, on the places of labels; None of another rule.

    A value that no row has is at the place after the last label.
    """
    rare, share = parse_recursive_rule(kind), parse_share_rule(kind)
    if rare is not None:
        return RecursiveRule(value, rare)
    if share is not None:
        texts = [canonicalize_value(label) for label in labels]
        place = texts.index(share[0]) if share[0] in texts else len(texts)
        return ShareRule(place, **{share[1]: value})
    rules: dict[str, DiversityRule] = {
        RULES[0]: DistinctRule(value), RULES[1]: EntropyRule(value), RULES[5]: AlphaRule(value)
    }  # fmt: skip
    return rules.get(kind)


def _find_broken_rules(table: Table, certificate: Certificate) -> list[Finding]:
    """Find rules on sensitive columns that fail in some class; of those that the release shows."""
    broken_rules = []
    names = list(certificate.table.scheme)
    for column, kind, value in list_rules(certificate.parameters):
        if not table.rows():
            continue
        weighted = certificate.table.release.form == "counted"
        published = read_labels(table, (*names, column), weighted=weighted)
        rule = _make_rule(kind, value, published.labels[-1])
        if rule is None:
            continue
        codes = published.frequencies.codes
        if certificate.parameters.get("suppressed") == "starred":
            stars = [
                np.array([x == ROOT for x in published.labels[at]]) for at in range(len(names))
            ]
            starred = np.all([star[codes[:, at]] for at, star in enumerate(stars)], axis=0)
            published = replace(published, frequencies=Frequencies(
                codes[~starred], published.frequencies.counts[~starred]))  # fmt: skip
            codes = published.frequencies.codes
        if not len(codes):
            continue
        _, at_ = np.unique(number_tuples(codes[:, :-1]), return_inverse=True)
        values = len(published.labels[-1]) + 1
        protected = SensitiveColumn(codes[:, -1], np.ones(values, dtype=np.int64), (rule,))
        spread = protected.count_values(
            at_, published.frequencies.counts, classes=int(at_.max()) + 1
        )
        if not rule.check_classes(spread, protected.overall).all():
            broken_rules.append(
                make_finding("RULE_BROKEN", name=column, rule=kind, value=repr(value))
            )
    return broken_rules


def _is_on_grid(value: object, grid: NoisyColumn) -> bool:
    """Return whether a noisy value is null, or lies on its grid and within its bounds."""
    text = canonicalize_value(value)
    if text is None:
        return True
    if grid.kind == "date":
        return parse_iso_day(text) is not None
    x = parse_number(text)
    low, high = map(Decimal, grid.bounds or ("-Infinity", "Infinity"))
    return x is not None and x % Decimal(grid.step) == 0 and low <= x <= high


def _refuse_bad_counts(table: Table, names: list[str]) -> None:
    for value in table.values(COUNT):
        if not re.fullmatch(r"[1-9]\d{0,14}", str(value)):
            raise IncrowdError("a count is not a whole number of at least 1")
    labels = {name: {x: at for at, x in enumerate(table.values(name))} for name in names}

    def coder(name: str) -> Coder:
        return lambda values: np.array([labels[name].get(value, 0) for value in values], np.int32)

    if (table.count(names, {name: coder(name) for name in names}).counts > 1).any():
        raise IncrowdError("a class occurs in several rows of a release with counts")


def read_hierarchy(folder: Path, name: str, column: SchemeColumn) -> Hierarchy | None:
    """Return the listed hierarchy of a column, written as a release writes it; None for a rule."""
    if column.file is None:
        return None
    rows = read_rows(folder / column.file, ";", ours=True)
    hierarchy = build_from_rows(rows, other=column.other, exact=True)
    if format_rows(hierarchy).encode() != (folder / column.file).read_bytes():
        raise IncrowdError(f"the scheme of '{name}' is not in the form that a release has")
    refuse_other_words(name, column, describe_listed(hierarchy, column.level))
    return hierarchy


def _find_absent_labels(
    column: SchemeColumn, hierarchy: Hierarchy | None, values: list[object]
) -> AbsentLabels | None:
    """Return the listed labels that no row of the data shows."""
    if hierarchy is None:
        return None
    labels = {None if value is None else canonicalize_value(value) for value in values}
    if column.labels != "numbers":
        labels = {value for value in values if isinstance(value, str)}
    return find_absent(hierarchy, column.level, labels)


def _make_value_check(
    name: str, column: SchemeColumn, hierarchy: Hierarchy | None, *, is_free: bool = False
) -> Callable[[object], bool]:
    """Return which values a column may show: at its level, or, recoded locally, any readable.

    A label must be the one that a release writes.
    """
    if hierarchy is not None:
        if column.level is None:
            axis = Axis(hierarchy, bool(column.ordered))
            _refuse_wrong_form(name, column, find_axis_form(axis, is_free=is_free))
            return _make_label_check(axis, name, is_free=is_free and not axis.ordered)
        _refuse_wrong_form(name, column, find_level_form(hierarchy, column.level))
        labels = set(hierarchy.labels[column.level])
        if column.labels == "numbers":
            return lambda value: (value if value is None else canonicalize_value(value)) in labels
        return lambda value: value in labels
    declared = HierarchyChoice.model_validate(column.rule)
    refuse_other_words(name, column, describe_rule(declared))
    _refuse_wrong_form(name, column, "text" if declared.mask is None else "masked")
    if declared.mask is not None:
        levels = [column.level] if column.level is not None else range(declared.mask.length + 1)
        allowed = [_make_mask_check(declared.mask, level, column.other) for level in levels]
        return lambda value: any(fits(value) for fits in allowed)
    if declared.flat is None:
        raise IncrowdError("a column has neither a listed hierarchy nor a known rule")
    if column.level == 1:
        return lambda value: value == ROOT
    return lambda value: canonicalize_value(value) == value


def _refuse_wrong_form(name: str, column: SchemeColumn, form: Form) -> None:
    """Refuse a form that labels of such a scheme do not have."""
    fits = (form, "numbers or text") if form == "numbers" else (form,)
    if column.labels not in fits:
        raise IncrowdError(f"the labels of '{name}' have the form '{form}', not '{column.labels}'")


def _has_label_form(form: Form, values: list[object], file: str) -> bool:
    """Return whether numbers stand as numbers where nothing else is shown, else all as text."""
    texts = [value for value in values if isinstance(value, str)]
    if form == "numbers":
        return (
            all(parse_number_label(text) is not None for text in texts)
            if file.endswith(".csv")
            else not texts
        )
    if form == "numbers or text" and all(parse_number_label(text) is not None for text in texts):
        return False  # it would have been written as numbers
    return len(texts) == sum(value is not None for value in values)


def _make_label_check(axis: Axis, name: str, *, is_free: bool) -> Callable[[object], bool]:
    reader = LabelReader(name, axis)

    def is_allowed(value: object) -> bool:
        try:
            places, _ = reader.read_label(value)
        except IncrowdError:
            return False
        if value in (axis.hierarchy.root, ROOT):
            return True
        if is_free:
            return axis.describe_set(places.astype(np.int32)) == value
        ends = (np.array([end], dtype=np.int32) for end in (places.min(), places.max()))
        return bool(axis.make_labels(*ends)[0][0] == value)

    return is_allowed


def _list_mask_patterns(mask: Mask, hidden: int) -> Iterator[str]:
    """Yield the patterns of texts with so many characters hidden, by the characters that show."""
    letter = f"[{re.escape(mask.alphabet)}]"
    for visible in sorted({min(length, mask.length - hidden) for length in mask.lengths}):
        stars = re.escape(ROOT * (mask.length - visible if hidden else 0))
        letters = f"{letter}{{{visible}}}"
        yield letters + stars if mask.hide == "right" else stars + letters


def _make_mask_check(mask: Mask, hidden: int, other: str | None) -> Callable[[object], bool]:
    """Return which values a mask may show with so many characters hidden."""
    pattern = re.compile("|".join(_list_mask_patterns(mask, hidden)))
    always = {ROOT * mask.length, other}
    if hidden < mask.length:
        always.add(None)
    return lambda value: (
        value in always or (isinstance(value, str) and pattern.fullmatch(value) is not None)
    )
