"""Check the guarantee of a certificate: recompute (ε, δ) from its events.

The certificate alone is needed. Its events say which mechanisms ran. They must be events of its
method, the certified δ must not be below the δ that they cost at the certified ε, and parameters
and statement must follow from them. Of synthetic rows, no more tables may be measured than choices
were charged.
"""

from __future__ import annotations

from collections.abc import Sequence

from incrowd.errors import IncrowdError
from incrowd.findings import Finding, make_finding
from incrowd.privacy.draw_parameters import ROWS_PER_PERSON
from incrowd.privacy.events import Event, parse_event
from incrowd.privacy.randomized_response import is_within_epsilon
from incrowd.release.certificate import Certificate
from incrowd.release.event_parameters import (
    parameters_from_events,
    synthetic_parameters,
    tabulation_parameters,
)
from incrowd.release.layout import LINKED_HOUSEHOLDS, PEOPLE_PER_HOUSEHOLD
from incrowd.release.parameters import (
    BOTH,
    DIFFERENTIAL_PRIVACY,
    METHODS,
    Parameters,
    allows_parameters,
    check_parameters,
    check_whole_number,
    get_class_kind,
)
from incrowd.release.shares_verify import check_combined, check_share_events
from incrowd.release.synthetic_part import MeasuredTable, SyntheticPart
from incrowd.release.tables_guarantee import check_tabulation

_MOST_CHOICES = 100  # a search chooses among seven pairs; to account for many takes long
_MOST_EVENTS = 20_000  # of synthetic rows


def check_guarantee(certificate: Certificate) -> list[Finding]:
    """Return what is wrong with the guarantee of a certificate, recomputed from its events."""
    try:
        if not METHODS[certificate.method].events:
            return _check_without_events(certificate)
        if certificate.method == "synthetic":
            return _check_synthetic(certificate)
        if certificate.method == "tables":
            return _check_tables(certificate)
        return _check_safe(certificate)
    except (IncrowdError, ValueError, ArithmeticError) as error:
        return [make_finding("EVENTS_INVALID", problem=str(error))]


def _check_safe(certificate: Certificate) -> list[Finding]:
    """Check one table of method safe, or its slices."""
    if max(map(_count_choices, certificate.events), default=0) > _MOST_CHOICES:
        return [make_finding("EVENTS_TOO_MANY")]
    events = [parse_event(event) for event in certificate.events]
    implied = parameters_from_events(events, certificate.layout)
    tables = [table.parameters for table in certificate.tables]
    has_slices = certificate.slices is not None
    if (
        implied is None
        or certificate.kept
        or certificate.noisy
        or len(implied.tables) != len(tables)
        or any("r" in alternatives[0] for alternatives in implied.tables)
        != _has_counts_by_levels(certificate)
        or has_slices != (len(tables) != 1)
    ):
        what = certificate.layout or ("these slices" if has_slices else "one safe release")
        return [make_finding("EVENTS_DIFFER", what=what)]
    kind = BOTH if certificate.has_noisy_counts else METHODS[certificate.method].kind
    if not _has_kind(certificate, kind):
        return [make_finding("GUARANTEE_KIND_DIFFERS")]
    findings = _check_delta(certificate, events)
    shared = _drop_people(certificate, _drop_size(certificate.parameters))
    if not has_slices:
        tables = [shared]
    several = any(ROWS_PER_PERSON in parameters for parameters in tables)
    if several and certificate.guarantee.unit != "one person":
        return [make_finding("GUARANTEE_KIND_DIFFERS")]
    follows = all(map(allows_parameters, implied.tables, tables)) and (
        not has_slices or shared == implied.shared
    )
    return [
        *findings,
        *_check_statement(certificate, follows),
        *check_share_events(certificate, events),
        *check_combined(certificate),
    ]


def _check_synthetic(certificate: Certificate) -> list[Finding]:
    """Check synthetic rows."""
    if len(certificate.events) > _MOST_EVENTS:
        return [make_finding("EVENTS_TOO_MANY")]
    events = [parse_event(event) for event in certificate.events]
    implied, part = synthetic_parameters(events), certificate.synthetic
    if (
        implied is None
        or part is None
        or certificate.slices is not None
        or certificate.kept
        or certificate.noisy
    ):
        return [make_finding("EVENTS_DIFFER", what="synthetic rows")]
    if not _has_kind(certificate, DIFFERENTIAL_PRIVACY):
        return [make_finding("GUARANTEE_KIND_DIFFERS")]
    return [
        *_check_delta(certificate, events),
        *_check_statement(certificate, _drop_size(certificate.parameters) == implied),
        *_check_measured_tables(certificate, part, int(implied["choices"])),
    ]


def _check_tables(certificate: Certificate) -> list[Finding]:
    """Check tables of counts."""
    events = [parse_event(event) for event in certificate.events]
    implied, part = tabulation_parameters(events), certificate.tabulation
    table_parameters = (
        [table.parameters for table in certificate.tables] if certificate.slices else []
    )
    if (
        implied is None
        or part is None
        or any(table_parameters)
        or certificate.kept
        or certificate.noisy
    ):
        return [make_finding("EVENTS_DIFFER", what="tables of counts")]
    if not _has_kind(certificate, DIFFERENTIAL_PRIVACY):
        return [make_finding("GUARANTEE_KIND_DIFFERS")]
    return [
        *_check_delta(certificate, events),
        *_check_statement(certificate, certificate.parameters == implied),
        *check_tabulation(certificate, part, float(implied["information"])),
    ]


def _check_without_events(certificate: Certificate) -> list[Finding]:
    """Check a k-anonymous table, with noisy columns or without."""
    guarantee, terms = certificate.guarantee, METHODS[certificate.method]
    if certificate.events or guarantee.epsilon is not None or guarantee.delta is not None:
        return [make_finding("EVENTS_UNEXPECTED")]
    if certificate.slices is not None:
        return [make_finding("SLICES_UNEXPECTED")]
    columns = list(certificate.table.scheme)
    check_parameters(certificate.parameters, terms, columns, certificate.kept)
    kind = terms.kind if terms.noisy else get_class_kind(certificate.parameters)
    if (
        guarantee.kind != kind
        or (ROWS_PER_PERSON in certificate.parameters and guarantee.unit != "one person")
        or not certificate.has_own_statement()
        or terms.noisy != bool(certificate.noisy or certificate.randomized)
    ):
        return [make_finding("STATEMENT_DIFFERS", what=kind, plural=1)]
    responses = [(each.keep, len(each.values)) for each in (certificate.randomized or {}).values()]
    if responses and not is_within_epsilon(responses, float(certificate.parameters["epsilon"])):
        return [make_finding("RESPONSE_COSTS_MORE", epsilon=certificate.parameters["epsilon"])]
    return []


def _has_kind(certificate: Certificate, kind: str) -> bool:
    """Return whether a guarantee is of a kind, and has both ε and δ."""
    guarantee = certificate.guarantee
    return guarantee.kind == kind and guarantee.epsilon is not None and guarantee.delta is not None


def _check_delta(certificate: Certificate, events: Sequence[Event]) -> list[Finding]:
    """Recompute δ at the certified ε; a certified δ may be larger, never smaller."""
    epsilon, delta = certificate.guarantee.epsilon, certificate.guarantee.delta
    assert epsilon is not None
    assert delta is not None
    from incrowd.privacy.accountant import Accountant  # not every release has events

    true = float(Accountant(events).delta(epsilon=epsilon))
    if true <= delta < 1:
        return []
    return [make_finding("GUARANTEE_FALSE", true=true, epsilon=epsilon, delta=delta)]


def _check_statement(certificate: Certificate, follows: bool) -> list[Finding]:
    """Check that the statement follows from the parameters, if these follow from the events."""
    if not follows:
        return [make_finding("PARAMETERS_DIFFER")]
    if not certificate.has_own_statement():
        return [make_finding("STATEMENT_DIFFERS", what="the events", plural=None)]
    return []


def _has_counts_by_levels(certificate: Certificate) -> bool:
    """Return whether these are counts, with one level for each column."""
    columns = [column for table in certificate.tables for column in table.scheme.values()]
    return certificate.has_noisy_counts and all(column.level is not None for column in columns)


def _drop_size(parameters: Parameters) -> Parameters:
    """Return parameters without the asserted size, which no event implies; refuse a bad one."""
    if "size" not in parameters:
        return parameters
    check_whole_number("size", parameters["size"])
    return {name: value for name, value in parameters.items() if name != "size"}


def _drop_people(certificate: Certificate, parameters: Parameters) -> Parameters:
    """Return parameters without the people used of a linked household, which no event implies."""
    if certificate.layout != LINKED_HOUSEHOLDS:
        return parameters
    check_whole_number(PEOPLE_PER_HOUSEHOLD, parameters.get(PEOPLE_PER_HOUSEHOLD))
    return {name: value for name, value in parameters.items() if name != PEOPLE_PER_HOUSEHOLD}


def _count_choices(event: object) -> int:
    """Return the most choices that a part of an event is one of, as it is written."""
    if not isinstance(event, dict):
        return 0
    parts = event.get("events", [event.get("event")])
    listed = parts if isinstance(parts, list) else []
    choices = len(listed) if event.get("kind") == "one of" else 0
    return max([choices, *map(_count_choices, listed)])


def _check_measured_tables(
    certificate: Certificate, part: SyntheticPart, choices: int
) -> list[Finding]:
    """Check the measured tables: their columns and names, and that each was charged."""
    names = part.columns
    if (
        sorted(names) != sorted(certificate.table.scheme)
        or {*part.types} != {*names}
        or {*part.points, *(part.written or {})} - {*names}
        or {*part.keys, *(part.references or {})} & {*names}
        or {*part.keys} & {*(part.references or {})}
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
    request = [frozenset(columns) for columns in part.tables]
    chosen = [table for table in part.measured if len(table.columns) > 1]
    if {*request} - {frozenset(table.columns) for table in chosen}:
        return [make_finding("MEASURED_TABLES_MISSING")]
    if len(chosen) - _count_requested(chosen, request) > choices:
        return [make_finding("MEASURED_TABLES_NOT_CHARGED", tables=len(chosen), choices=choices)]
    return []


def _count_requested(chosen: list[MeasuredTable], requested: list[frozenset[str]]) -> int:
    """Return how many tables the spec has asked for; each counts once, at one level."""
    return len({frozenset(table.columns) for table in chosen} & {*requested})
