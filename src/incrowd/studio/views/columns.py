"""The columns as a dense table: filter, sort, select several, and change all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from incrowd.curate.describe import ColumnDescription
from incrowd.findings import Finding, Severity
from incrowd.spec.model import HARMLESS_ENTRIES, Column
from incrowd.studio import column_edits, hierarchy_form, spec_edits
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.server import Form, Studio, make_edit_route
from incrowd.studio.views.data import get_descriptions, get_findings, list_findings

ENTRIES = {"role": "role", "written": "format", "hierarchy": "hierarchy", "other": "other label",
           "precision": "precision", "bounds": "bounds",
           "function_of": "function of others"}  # fmt: skip
_PLURALS = {"hierarchy": "hierarchies", "precision": "precisions", "bounds": "bounds",
            "function_of": "functions of others"}  # fmt: skip
SHOWN = {  # which columns are listed
    "": "all columns", "confirm": "to be confirmed", "findings": "with findings",
    "identifier": "direct identifiers", "quasi": "quasi-identifiers", "sensitive": "sensitive",
    "drop": "dropped", "nulls": "with nulls",
}  # fmt: skip
_BARS = 12


@dataclass(frozen=True)
class TableRow:
    """What the table shows of one column.

    ``urgency`` says how early it should be looked at: 0 where there is nothing to do.
    """

    at: int
    name: str
    role: str
    description: ColumnDescription | None
    hierarchy: str
    weight: float
    is_counted: bool
    reason: str
    hipaa: str | None
    confirm: tuple[str, ...]
    findings: tuple[Finding, ...]
    urgency: int
    bars: tuple[tuple[float, float], ...]

    @property
    def null_share(self) -> float:
        """How many of the rows have no value."""
        described = self.description
        return described.nulls / described.rows if described and described.rows else 0.0

    @property
    def is_wrong(self) -> bool:
        """Whether something must be corrected."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of the table and of its actions."""

    def show_table(request: Request) -> Response:
        return show_page(studio, request)

    def change_columns(request: Request, form: Form) -> Response:
        work = studio.get_open_spec(request)
        columns = work.file.spec.columns
        if form.get("do"):
            names = [name for name in form.get_all("column") if name in columns]
            column_edits.apply_action(work, names, form)
        else:
            column_edits.set_roles(work, _read_changed_roles(work, form))
        query = read_query(request.query_params)
        return RedirectResponse(f"/desk/{work.name}/columns{query}", status_code=303)

    return [
        Route("/desk/{work}/columns", show_table),
        make_edit_route(studio, "/desk/{work}/columns/set", change_columns, show_table),
    ]


def _read_changed_roles(work: OpenSpec, form: Form) -> dict[str, str]:
    """Return the roles that differ from those of the spec, by their columns."""
    roles = {}
    for at, (name, column) in enumerate(work.file.spec.columns.items()):
        if (chosen := form.get(f"role-{at}", column.role)) != column.role:
            roles[name] = chosen
    return roles


def read_query(parameters: Mapping[str, str]) -> str:
    """Return what an address says of filter and order, as part of another one."""
    fields = {
        name: text
        for name in ("find", "only", "sort")
        if (text := parameters.get(name, "").strip())
    }
    return f"?{urlencode(fields)}" if fields else ""


def show_page(studio: Studio, request: Request) -> Response:
    """Show the table of the columns of an open spec."""
    work = studio.get_open_spec(request)
    described, findings = get_descriptions(studio, work), get_findings(studio, work)
    rows = make_rows(work, described, findings)
    find, only = request.query_params.get("find", "").strip(), request.query_params.get("only", "")
    sort = request.query_params.get("sort", "")
    if sort.removeprefix("-") not in _SORTS:
        sort = ""
    listed = sort_rows(filter_rows(rows, find, only), sort)
    return studio.render_page(
        "columns.html", room="data", work=work, rows=listed, number=len(rows),
        roles=spec_edits.ROLES, hierarchies=column_edits.HIERARCHIES, entries=ENTRIES,
        likes=[row.name for row in rows if row.hierarchy], shown=SHOWN, find=find, only=only,
        sort=sort, query=read_query(request.query_params), left=count_unconfirmed(rows),
        waiting=findings is None or any(row.description is None for row in rows),
        size=next((row.description.rows for row in rows if row.description is not None), None),
        make_sort_address=_make_sort_addresses(request.query_params, sort),
    )  # fmt: skip


def make_rows(
    work: OpenSpec,
    described: Mapping[str, ColumnDescription | None],
    findings: list[Finding] | None,
) -> list[TableRow]:
    """Return the row of every column, in the order of the spec."""
    guesses = {guess.column: guess for guess in work.guessed.guesses}
    by_column: dict[str, list[Finding]] = {}
    for finding in list_findings(findings):
        if finding.column is not None:
            by_column.setdefault(finding.column, []).append(finding)
    rows = []
    for at, (name, column) in enumerate(work.file.spec.columns.items()):
        guess, description = guesses.get(name), described.get(name)
        own_findings = tuple(by_column.get(name, ()))
        hipaa = guess.hipaa if guess else None
        rows.append(TableRow(
            at=at, name=name, role=column.role, description=description,
            hierarchy=_describe_hierarchy(column), weight=column.weight,
            is_counted=column.rare is not None,
            reason=guess.explanation if guess else "", hipaa=hipaa,
            confirm=column.confirm, findings=own_findings,
            urgency=_rate_urgency(column, hipaa, own_findings), bars=_make_bars(description),
        ))  # fmt: skip
    return rows


def _rate_urgency(column: Column, hipaa: str | None, findings: tuple[Finding, ...]) -> int:
    """Rate how early a column should be looked at: errors, possible identifiers, then guesses."""
    if any(finding.severity is Severity.ERROR for finding in findings):
        return 5
    if hipaa and column.role != "identifier" and "role" in column.confirm:
        return 4
    if set(column.confirm) - set(HARMLESS_ENTRIES):
        return 3
    if column.confirm:
        return 2
    return int(bool(findings))


def _describe_hierarchy(column: Column) -> str:
    """Return the hierarchy of a column in a few words; empty if it has none."""
    declared = column.hierarchy
    kind = hierarchy_form.get_kind(declared)
    if declared is None:
        return ""
    intervals = declared.intervals
    if intervals is None:
        return hierarchy_form.KINDS[kind].partition(":")[0].lower()
    by = ", ".join(map(hierarchy_form.format_decimal, intervals.widths))
    span = " to ".join(map(hierarchy_form.format_decimal, (intervals.low, intervals.high)))
    return f"{span}{f', by {by}' if by else ''}"


def _make_bars(description: ColumnDescription | None) -> tuple[tuple[float, float], ...]:
    """Return place and height of each bar of the small picture, in a box of 72 by 20."""
    bars = description.bars[:_BARS] if description is not None else ()
    most = max((count for _, count in bars), default=0)
    wide = 72 / max(len(bars), 4)
    return tuple(
        (round(at * wide, 1), round(max(20 * count / most, 1.0 if count else 0), 1))
        for at, (_, count) in enumerate(bars)
        if most
    )


def count_unconfirmed(rows: Iterable[TableRow]) -> dict[str, int]:
    """Count the entries that are to be confirmed, by their kind in words."""
    counts: dict[str, int] = {}
    for row in rows:
        for entry in row.confirm:
            counts[entry] = counts.get(entry, 0) + 1
    return {
        ENTRIES[entry] if count == 1 else _PLURALS.get(entry, f"{ENTRIES[entry]}s"): count
        for entry, count in counts.items()
    }


# Filter and order -------------------------------------------------------------------------------


def filter_rows(rows: list[TableRow], find: str, only: str) -> list[TableRow]:
    """Return the rows whose name, reason or hierarchy contains a text, and that are of a kind."""
    text = find.casefold()
    return [
        row for row in rows
        if (not text or any(text in part.casefold()
                            for part in (row.name, row.reason, row.hierarchy)))
        and _is_shown(row, only)
    ]  # fmt: skip


def _is_shown(row: TableRow, only: str) -> bool:
    if only == "confirm":
        return bool(row.confirm)
    if only == "findings":
        return bool(row.findings)
    if only == "nulls":
        return bool(row.description and row.description.nulls)
    return only not in SHOWN or not only or row.role == only


_SORTS: dict[str, Callable[[TableRow], Any]] = {
    "": lambda row: row.at,
    "name": lambda row: row.name.casefold(),
    "role": lambda row: list(spec_edits.ROLES).index(row.role),
    "type": lambda row: row.description.kind if row.description else "",
    "nulls": lambda row: -row.null_share,
    "distinct": lambda row: -(row.description.distinct if row.description else 0),
    "hierarchy": lambda row: row.hierarchy,
    "weight": lambda row: -row.weight,
    "first": lambda row: -row.urgency,
}


def sort_rows(rows: list[TableRow], sort: str) -> list[TableRow]:
    """Return rows in another order; a minus before its name turns it around."""
    return sorted(rows, key=_SORTS[sort.removeprefix("-")], reverse=sort.startswith("-"))


def _make_sort_addresses(parameters: Mapping[str, str], now: str) -> Callable[[str], str]:
    def make_address(sort: str) -> str:
        return read_query({**parameters, "sort": f"-{sort}" if sort == now else sort})

    return make_address
