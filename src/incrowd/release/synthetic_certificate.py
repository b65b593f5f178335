"""What can be wrong with the certificate of synthetic rows by itself.

The budget is checked against the events: the measurements cost no more than their event allows,
and no more tables were chosen than choices were charged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.findings import Finding, make_finding
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import Event, parse_event
from incrowd.release.parameters import DIFFERENTIAL_PRIVACY, synthetic_parameters

if TYPE_CHECKING:
    from incrowd.release.certificate import Certificate
    from incrowd.release.synthetic_part import MeasuredTable, SyntheticPart

_MOST_EVENTS = 20_000


def find_synthetic_faults(certificate: Certificate) -> list[Finding]:
    """Return what is wrong with the guarantee of synthetic rows."""
    known, part = certificate.guarantee, certificate.synthetic
    if len(certificate.events) > _MOST_EVENTS:
        return [make_finding("EVENTS_TOO_MANY")]
    events = [parse_event(event) for event in certificate.events]
    implied = synthetic_parameters(events)
    if (
        implied is None
        or part is None
        or certificate.slices is not None
        or certificate.kept
        or certificate.noisy
    ):
        return [make_finding("EVENTS_DIFFER", what="synthetic rows")]
    if known.kind != DIFFERENTIAL_PRIVACY or known.epsilon is None or known.delta is None:
        return [make_finding("GUARANTEE_KIND_DIFFERS")]
    synthetic_faults = []
    true = _total_delta(events, known.epsilon)
    if not true <= known.delta < 1:
        synthetic_faults.append(
            make_finding("GUARANTEE_FALSE", true=true, epsilon=known.epsilon, delta=known.delta)
        )
    if certificate.parameters != implied:
        synthetic_faults.append(make_finding("PARAMETERS_DIFFER"))
    elif known.statement != certificate.make_statement():
        synthetic_faults.append(make_finding("STATEMENT_DIFFERS", what="the events", plural=None))
    return [*synthetic_faults, *_find_bad_tables(certificate, part, int(implied["choices"]))]


def _total_delta(events: list[Event], epsilon: float) -> float:
    return float(Accountant(events).delta(epsilon=epsilon))


def _find_bad_tables(certificate: Certificate, part: SyntheticPart, choices: int) -> list[Finding]:
    """Return measured tables that cannot be: strange columns or names, or too many of them."""
    names = part.columns
    if (
        sorted(names) != sorted(certificate.table.scheme)
        or {*part.types} != {*names}
        or {*part.points, *(part.written or {})} - {*names}
        or {*part.keys} & {*names}
        or (part.written and not certificate.table.release.file.endswith(".csv"))
    ):
        return [make_finding("SYNTHETIC_COLUMNS_DIFFER")]
    seen: set[tuple[tuple[str, ...], tuple[int, ...]]] = set()
    for number, table in enumerate(part.measured):
        key = tuple(table.columns), tuple(table.levels)
        if (
            table.file != f"measured/{number:03d}.csv"
            or len(table.columns) != len(table.levels)
            or [name for name in names if name in table.columns] != table.columns
            or not set(table.centered) <= set(table.columns)
            or (not table.held and len(table.columns) < 2)
            or key in seen
        ):
            return [make_finding("MEASURED_TABLE_INVALID", file=table.file)]
        seen.add(key)
    one_way = [((), ()), *(((name,), (0,)) for name in names)]
    if any(key not in seen for key in one_way):
        return [make_finding("MEASURED_TABLES_MISSING")]
    request = [frozenset(item) for item in part.tables]
    chosen = [table for table in part.measured if len(table.columns) > 1]
    if {*request} - {frozenset(table.columns) for table in chosen}:
        return [make_finding("MEASURED_TABLES_MISSING")]
    if len(chosen) - _count_asked(chosen, request) > choices:
        return [make_finding("MEASURED_TABLES_NOT_CHARGED", tables=len(chosen), choices=choices)]
    return []


def _count_asked(chosen: list[MeasuredTable], asked: list[frozenset[str]]) -> int:
    """Return how many tables the spec has asked for; each counts once, at one level."""
    return len({frozenset(table.columns) for table in chosen} & {*asked})
