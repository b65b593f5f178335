"""Check that a table fits its spec: columns that are not declared or not there, rows without id.

``incrowd check`` lists every finding; a publication refuses the table at the first error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from incrowd.engine.table import Table, TableError
from incrowd.errors import FindingError
from incrowd.findings import Finding, Severity, make_finding
from incrowd.spec.base import quote_scalar
from incrowd.spec.model import PersonId, Spec
from incrowd.spec.period import name_period

_NAMED = 4  # periods that are listed


class UnfitTableError(FindingError, TableError):
    """A table that does not fit its spec; ``finding`` has the code and the values."""


def find_unmatched_columns(spec: Spec, table: Table) -> Iterator[Finding]:
    """Find columns of the table that are not declared, and declared ones that it does not have."""
    for name in table.columns:
        if name not in spec.columns:
            near = _find_near_name(name, spec.columns)
            yield make_finding("COLUMN_NOT_DECLARED", name, near=near)
    # A table that has places already needs no coordinates.
    unneeded = {
        x for y, geo in spec.places.items() if y in table.columns for x in (geo.lat, geo.lon)
    }
    for name, column in spec.columns.items():
        if name in table.columns or column.role == "key":  # keys are made up
            continue
        near = _find_near_name(name, table.columns)
        if column.role == "drop":
            yield make_finding("DROPPED_COLUMN_NOT_IN_TABLE", name, near=near)
        elif name not in unneeded:
            yield make_finding("COLUMN_NOT_IN_TABLE", name, near=near)


def find_missing_ids(spec: Spec, table: Table) -> Iterator[Finding]:
    """Find rows of no known person, unless the spec drops them."""
    unit = spec.unit
    if not isinstance(unit, PersonId) or unit.without_id or unit.id not in table.columns:
        return
    missing = table.count_missing(unit.id)
    if missing:
        yield make_finding("ROWS_WITHOUT_ID", unit.id, rows=missing, id=quote_scalar(unit.id))


def find_other_parts(spec: Spec, table: Table) -> Iterator[Finding]:
    """Find rows of other periods than the part of the spec, or of none.

    Parallel composition rests on it: a unit is a person within one period, and lies in one part.
    """
    unit, part = spec.unit, spec.part
    if part is None or not isinstance(unit, PersonId) or unit.period is None:
        return
    if part.column not in table.columns:
        return
    periods = {name_period(value, unit.period.every) for value in table.values(part.column)}
    others = sorted(period or "no period" for period in periods - {part.value})
    if others:
        yield make_finding(
            "ROWS_OF_OTHER_PARTS", part.column, part=part.value, others=others[:_NAMED],
            more=max(len(others) - _NAMED, 0),
        )  # fmt: skip


def find_unmatched_households(spec: Spec, table: Table) -> Iterator[Finding]:
    """Find people without their household, households that are there twice or have no people.

    That a household is in one cell of the table of households rests on it: each household has one
    row, and all of its people carry that row's values.
    """
    household, match = spec.household, table.origin.match
    if household is None or match is None or not isinstance(spec.unit, PersonId):
        return
    # Places are the household's own if both of their coordinates are.
    place_columns = [x for x, geo in spec.places.items() if {geo.lat, geo.lon} <= {*match.columns}]
    shared = [*match.columns, *(name for name in place_columns if name not in match.columns)]
    for name in household.columns:
        if name in table.columns and name not in shared:
            yield make_finding("HOUSEHOLD_COLUMN_OF_PEOPLE", name)
    for name in shared:
        role = None if name not in spec.columns else spec.columns[name].role
        if role in ("quasi", "sensitive") and name not in household.columns:
            yield make_finding("HOUSEHOLD_COLUMN_NOT_LISTED", name)
    id_column = household.id or spec.unit.id
    if match.repeated:
        yield make_finding("HOUSEHOLDS_REPEATED", id_column, rows=match.repeated)
    if match.missing and not spec.unit.without_id:
        yield make_finding("HOUSEHOLDS_WITHOUT_ID", id_column, rows=match.missing)
    if match.unmatched:
        yield make_finding("PEOPLE_WITHOUT_HOUSEHOLD", spec.unit.id, rows=match.unmatched)
    if match.unused and not household.without_people:
        yield make_finding("HOUSEHOLDS_WITHOUT_PEOPLE", id_column, households=match.unused)


def refuse_unfit_table(spec: Spec, table: Table) -> None:
    """Raise an error for the first column that does not match, or for rows that may not be used."""
    refuse_errors(find_unmatched_columns(spec, table))
    refuse_errors(find_unmatched_households(spec, table))
    refuse_errors(find_missing_ids(spec, table))
    refuse_errors(find_other_parts(spec, table))


def refuse_errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Raise the first finding that is an error; return the others."""
    others = []
    for finding in findings:
        if finding.severity is Severity.ERROR:
            raise UnfitTableError(finding)
        others.append(finding)
    return tuple(others)


def _find_near_name(name: str, names: Iterable[str]) -> str | None:
    """Return the name that was probably meant."""
    from difflib import get_close_matches  # takes time to load, and most tables fit

    return next(iter(get_close_matches(name, list(names), n=1)), None)
