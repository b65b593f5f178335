"""What publishing households whole keeps, before it is done: by the stated size, and by the table.

What is read from the table is for the curator alone, and only said where the spec fixes every
level, so that nothing remains to be chosen by looking at it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from incrowd.codes.household_type import HouseholdMembers
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, format_percent, make_finding
from incrowd.methods.expect import expect
from incrowd.methods.people import count_by_unit, draw_rows, refuse_many_people
from incrowd.methods.registry import make_method
from incrowd.privacy.randomness import SystemRandomness
from incrowd.spec.file import SpecFile
from incrowd.spec.model import PersonId

_FEW = 0.5  # a smaller share of households that are published whole is warned of


def find_kept_households(file: SpecFile, table: Table) -> Iterator[Finding]:
    """Yield how many households are published whole; nothing where files share no key."""
    household, unit = file.spec.household, file.spec.unit
    if household is None or not household.linked or not isinstance(unit, PersonId):
        return
    yield _forecast_households(file, unit.rows)
    with suppress(IncrowdError):  # what does not fit is found elsewhere
        yield from _count_households(file, unit, table)


def _forecast_households(file: SpecFile, people: int) -> Finding:
    """Return the forecast for the stated size, beside that of files without a key."""
    if not isinstance(file.spec.size, int):
        return make_finding("HOUSEHOLDS_WHOLE", people=people)
    whole_share = expect(None, file).each[0].rows or 0.0
    apart = None
    with suppress(IncrowdError):  # a sample of two tables is refused
        apart = expect(None, file.preview_entries({("household", "linked"): False})).each[0].rows
    share = None if apart is None else format_percent(apart)
    if whole_share < _FEW:
        return make_finding(
            "HOUSEHOLDS_LIKELY_LOST", size=file.spec.size, people=people, rows=whole_share,
            apart=share,
        )  # fmt: skip
    return make_finding(
        "HOUSEHOLDS_LIKELY_KEPT", size=file.spec.size, people=people, rows=whole_share, apart=share
    )


def _count_households(file: SpecFile, unit: PersonId, table: Table) -> Iterator[Finding]:
    """Yield the expected share of the households of a table, at fixed levels."""
    planned = make_method(file.with_all_confirmed()).planned_release
    limits = planned.tables[-1]
    if any(low != high for low, high in limits.values()):
        return
    refuse_many_people(table, unit)
    rows = draw_rows(table, file.spec, SystemRandomness())
    members = count_by_unit(rows, planned.declared, file.spec)
    assert isinstance(members, HouseholdMembers)
    levels = tuple(limits[name][0] for name in members.names)
    counts = members.roll_up(levels).merge_labels().types.counts
    if len(counts):
        kept_share = float(planned.likely(counts.astype(float)) @ counts / counts.sum())
        yield make_finding("HOUSEHOLDS_EXPECTED_LOST", rows=1 - kept_share)
