"""Check the columns that were counted beside the rows: events, values, and what the rows show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from incrowd.arrays import Counts
from incrowd.codes.hierarchy import Hierarchy
from incrowd.codes.values import canonicalize_value
from incrowd.engine.count import read_labels
from incrowd.engine.released import open_released
from incrowd.findings import Finding, make_finding
from incrowd.privacy.events import Composition, DeclaredCounts, Event, SampledEvent
from incrowd.release.certificate import Certificate, SchemeColumn
from incrowd.release.formulas import unescape_formula
from incrowd.release.shares_part import RowsByValue, list_shown_rows, list_values

ReadHierarchy = Callable[[Path, str, SchemeColumn], Hierarchy | None]


def check_share_events(certificate: Certificate, events: Sequence[Event]) -> list[Finding]:
    """Check that each column was charged as it was counted, and once."""
    tables = certificate.shares or []
    columns = {name for table in certificate.tables for name in table.scheme}
    for at, table in enumerate(tables):
        is_repeated = table.column in [other.column for other in tables[:at]]
        lengths = {len(table.counts), *(len(part.rows) for part in table.shown)}
        if is_repeated or table.column not in columns or lengths != {len(table.values)}:
            return [make_finding("SHARES_INVALID", name=table.column)]
    if [table.epsilon for table in tables] != _list_epsilons(events):
        return [make_finding("SHARES_NOT_CHARGED")]
    return []


def _list_epsilons(events: Sequence[Event]) -> list[float]:
    """Return what columns that were counted beside the tables are charged, in order."""
    match [*events]:
        case [SampledEvent(Composition(inner), _)]:
            return _list_epsilons(inner)
        case _:
            return [event.epsilon for event in events if isinstance(event, DeclaredCounts)]


def check_shares(folder: Path, certificate: Certificate, read: ReadHierarchy) -> list[Finding]:
    """Check that every declared value is listed, and what is said of the published rows.

    ``read`` reads the hierarchy of a column from the release.
    """
    findings = []
    listed: list[tuple[str, int, list[str | None], list[RowsByValue]]] = [
        *((table.column, table.level, table.values, table.shown)
          for table in certificate.shares or ()),
        *((table.column, table.level, table.values, table.files)
          for table in certificate.combined or ()),
    ]  # fmt: skip
    for name, level, values, files in listed:
        hierarchy = _read_hierarchy(folder, certificate, name, read)
        if (
            hierarchy is None
            or level >= hierarchy.height
            or values != list_values(hierarchy, level)
        ):
            findings.append(make_finding("SHARES_INVALID", name=name))
        elif files != _count_shown(folder, certificate, name, level, hierarchy):
            findings.append(make_finding("SHARES_ROWS_DIFFER", name=name))
    return findings


def check_combined(certificate: Certificate) -> list[Finding]:
    """Check that each column is combined once, is in several files, and is not counted besides."""
    names = [table.column for table in certificate.shares or ()]
    columns = {name for table in certificate.tables for name in table.scheme}
    for table in certificate.combined or ():
        lengths = {len(part.rows) for part in table.files}
        is_listed = table.column in names or table.column not in columns
        if is_listed or len(table.files) < 2 or lengths != {len(table.values)}:
            return [make_finding("SHARES_INVALID", name=table.column)]
        names.append(table.column)
    return []


def _read_hierarchy(
    folder: Path, certificate: Certificate, name: str, read: ReadHierarchy
) -> Hierarchy | None:
    column = next(part.scheme[name] for part in certificate.tables if name in part.scheme)
    return read(folder, name, column)


def _count_shown(
    folder: Path, certificate: Certificate, name: str, level: int, hierarchy: Hierarchy
) -> list[RowsByValue]:
    """Count again the published rows of each value of a level, file by file."""
    parts = []
    for part in certificate.tables:
        column = part.scheme.get(name)
        if column is None or column.level is None or column.level > level:
            continue
        data = open_released(folder / part.release.file)
        if part.release.formulas:
            data = data.respell_texts(unescape_formula)
        labels = hierarchy.labels[column.level]
        counts: Counts = np.zeros(len(labels), dtype=np.int64)
        if data.rows():
            published = read_labels(data, (name,), weighted=part.release.form == "counted")
            places = {label: place for place, label in reversed([*enumerate(labels)])}
            for code, rows in zip(
                published.frequencies.codes[:, 0].tolist(),
                published.frequencies.counts.tolist(),
                strict=True,
            ):
                value = published.labels[0][code]
                counts[places[None if value is None else canonicalize_value(value)]] += rows
        codes = np.arange(len(labels), dtype=np.int32)
        rows_shown = list_shown_rows(hierarchy, (column.level, level), (codes, counts))
        assert rows_shown is not None
        parts.append(RowsByValue(file=part.release.file, rows=rows_shown))
    return parts
