"""Check what the certificate of tables of counts says: that tables and residuals can be, and cost.

The certificate alone is needed. A residual that is measured with a part tau costs tau of the
information; the parts are exact fractions, and their sum must not exceed what was charged.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from incrowd.findings import Finding, make_finding
from incrowd.release.tables_part import CertifiedResidual, TabulationPart

if TYPE_CHECKING:
    from incrowd.release.certificate import Certificate


def check_tabulation(
    certificate: Certificate, part: TabulationPart, information: float
) -> Iterator[Finding]:
    """Return what is wrong with the tables and residuals of a certificate."""
    for problem in (*_find_table_problems(certificate, part), *_find_residual_problems(part)):
        yield make_finding("TABULATION_INVALID", problem=problem)
        return
    spent = sum((residual.cost for residual in part.residuals), Fraction(0))
    if spent > Fraction(information):
        yield make_finding("MEASUREMENTS_NOT_CHARGED", spent=float(spent))


def _find_table_problems(certificate: Certificate, part: TabulationPart) -> Iterator[str]:
    if len(set(part.columns)) < len(part.columns):
        yield "a column is listed twice"
    summed = [x.column for x in part.sums or ()]
    if len(set(summed)) < len(summed) or {*summed} & {*part.columns}:
        yield "a column is summed twice, or shown as well"
    if {x.sum for x in part.tables if x.sum is not None} != {*summed}:
        yield "a table sums a column that is not listed, or none sums one that is"
    if len(part.tables) != len(certificate.tables):
        yield "there are more or fewer tables than files"
        return
    seen = set()
    for entry, table in zip(part.tables, certificate.tables, strict=True):
        levels = {name: column.level for name, column in table.scheme.items()}
        if len(entry.columns) != len(entry.levels) or levels != dict(
            zip(entry.columns, entry.levels, strict=True)
        ):
            yield f"the columns of {table.release.file} are not those of its scheme"
        if not {*entry.columns} <= {*part.columns}:
            yield f"{table.release.file} shows a column that is not listed"
        key = entry.sum, frozenset(levels.items())
        if key in seen:
            yield f"{table.release.file} repeats a table"
        seen.add(key)


def _find_residual_problems(part: TabulationPart) -> Iterator[str]:
    keys, units = set(), [1, *(summed.steps for summed in part.sums or ())]
    for residual in part.residuals:
        if not _is_possible(residual, len(part.columns), units):
            yield "a residual cannot be"
        key = (residual.quantity, *residual.columns, -1, *residual.components)
        if key in keys:
            yield "a residual was measured twice"
        keys.add(key)


def _is_possible(residual: CertifiedResidual, columns: int, units: list[int]) -> bool:
    """Whether a residual can be; ``units`` are the most that a row adds to each quantity."""
    places = residual.columns
    return (
        len(places) == len(residual.components) == len(residual.centered)
        and sorted(set(places)) == places
        and all(place < columns for place in places)
        and residual.quantity < len(units)
        and residual.unit == units[residual.quantity]
    )
