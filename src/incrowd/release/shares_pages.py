"""What the page of a release says of the columns that were counted beside its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from incrowd.codes.hierarchy import ROOT
from incrowd.findings import Finding, format_percent, format_points, make_finding
from incrowd.release.shares_part import ShareTable, estimate_shares, find_lost_shares

_MOST_VALUES = 20  # that the page lists of a column
_MOST_NAMED = 4  # that a finding names


@dataclass(frozen=True)
class _ShareEntry:
    """A counted column: its file, its most frequent values with share and error, and the rest."""

    name: str
    file: str
    estimates: list[tuple[str, str, str]]
    more: int


def fill_shares(tables: Sequence[ShareTable], rows: int) -> dict[str, Any]:
    """Return the values that the page is filled with; ``rows`` is the most rows of one person."""
    lost = [
        (
            each.column, _name_value(each.value), each.file, f"{100 * each.shown:.2f} %",
            f"{100 * each.estimate:.2f} % ±{100 * each.error:.2f}",
        )
        for each in find_lost_shares(tables, rows)
    ]  # fmt: skip
    return {
        "shares": [_make_entry(table, rows) for table in tables],
        "lost_shares": lost,
        "coarser_shares": [table.column for table in tables if not table.shown],
    }


def find_share_losses(tables: Sequence[ShareTable], rows: int) -> list[Finding]:
    """Find the values of which the rows show less than was counted; all of it is published."""
    lost = [each for each in find_lost_shares(tables, rows) if each.shown < each.estimate]
    if not lost:
        return []
    listed = [
        f"{each.column} '{_name_value(each.value)}' {format_percent(each.shown)} for "
        f"{format_percent(each.estimate)} ±{format_points(each.error)}"
        for each in lost[:_MOST_NAMED]
    ]
    files = list(dict.fromkeys(table.file for table in tables))
    more = max(len(lost) - _MOST_NAMED, 0)
    return [make_finding("SHARES_LOST", listed=listed, more=more, files=", ".join(files))]


def _make_entry(table: ShareTable, rows: int) -> _ShareEntry:
    estimate = estimate_shares(table, rows)
    largest = sorted(range(len(table.values)), key=lambda at: (-estimate.shares[at], at))
    estimates = [
        (
            _name_value(table.values[at]),
            f"{100 * estimate.shares[at]:.2f} %",
            f"±{100 * estimate.errors[at]:.2f}",
        )
        for at in largest[:_MOST_VALUES]
    ]
    return _ShareEntry(table.column, table.file, estimates, max(len(largest) - _MOST_VALUES, 0))


def _name_value(value: str | None) -> str:
    if value is None:
        return "missing"
    return "any other value" if value == ROOT else value
