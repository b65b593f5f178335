"""The table, column by column: what it holds, what it is, and what is wrong with it."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from incrowd.codes.values import canonicalize_value
from incrowd.curate.describe import ColumnDescription
from incrowd.curate.draft.guess import Guess
from incrowd.engine.table import TableError
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, Severity, make_finding
from incrowd.spec.model import HARMLESS_ENTRIES, PersonId
from incrowd.spec.value_format import ValueFormat
from incrowd.studio import spec_edits
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.server import Form, Studio, make_edit_route
from incrowd.studio.worker_pool import CRASHED, SpecSnapshot

T = TypeVar("T")
_FIRST = 6  # rows that are shown
_POINTS = {",": "a decimal comma", ".": "a decimal point"}
_MOMENT = 0.08  # seconds that a page waits for what may be there at once


@dataclass(frozen=True)
class ColumnRow:
    """What the page shows of one column."""

    at: int
    name: str
    role: str
    known: ColumnDescription | None
    reason: str
    hipaa: str | None
    confirm: tuple[str, ...]
    written: str
    findings: tuple[Finding, ...]


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of the page and of its actions."""

    def show_data(request: Request) -> Response:
        return show_page(studio, request)

    def set_role(request: Request, form: Form) -> Response:
        work, name = studio.get_open_spec(request), form.get("column", "")
        if name not in work.file.spec.columns or form.get("role") not in spec_edits.ROLES:
            raise IncrowdError(f"The spec has no column '{name}', or no such role.")
        work.apply_changes(spec_edits.set_role(work.file, work.guessed, name, form["role"]))
        return _redirect_to_page(work)

    def confirm_roles(request: Request, form: Form) -> Response:
        work = studio.get_open_spec(request)
        names = form.get_all("column") or list(work.file.spec.columns)
        work.apply_changes(spec_edits.confirm_entries(work.file, names, HARMLESS_ENTRIES))
        return _redirect_to_page(work)

    return [
        Route("/desk/{work}/data", show_data),
        make_edit_route(studio, "/desk/{work}/data/role", set_role, show_data),
        make_edit_route(studio, "/desk/{work}/data/confirm", confirm_roles, show_data),
    ]


def show_page(studio: Studio, request: Request) -> Response:
    """Show the page of an open spec."""
    work = studio.get_open_spec(request)
    described = get_descriptions(studio, work)
    page = get_findings(studio, work)
    rows, waiting = _make_rows(work, described, page)
    unit = work.file.spec.unit
    return studio.render_page(
        "data.html",
        room="data",
        work=work,
        rows=rows,
        roles=spec_edits.ROLES,
        unit=unit.id if isinstance(unit, PersonId) else "",
        unit_guessed=bool(work.file.spec.confirm),
        whole=[finding for finding in list_findings(page) if finding.column is None],
        size=next(
            (description.rows for description in described.values() if description is not None),
            None,
        ),
        notes=work.table.origin.notes,
        personal=work.guessed.describe_identifiers(),
        first=_read_first_rows(work),
        waiting=waiting or page is None,
        guessed=sum(1 for row in rows for entry in row.confirm if entry in HARMLESS_ENTRIES),
    )


def _read_first_rows(work: OpenSpec) -> list[list[str | None]]:
    """Return some of the first rows, as written; none where a column has no single values."""
    first_rows: list[list[str | None]] | None = work.kept.get("first")
    if first_rows is None:
        head = work.table.head(_FIRST)
        try:
            first_rows = [
                [
                    canonicalize_value(values[at])
                    for values, at in zip(tally.values, codes, strict=True)
                ]
                for tally in head.iter_tallies(work.table.columns)
                for codes in tally.codes.tolist()
            ]
        except TableError:
            first_rows = []
        work.kept["first"] = first_rows
    return first_rows


def _redirect_to_page(work: OpenSpec) -> Response:
    return RedirectResponse(f"/desk/{work.name}/data", status_code=303)


def _make_rows(
    work: OpenSpec, described: dict[str, ColumnDescription | None], findings: list[Finding] | None
) -> tuple[list[ColumnRow], bool]:
    guesses: dict[str, Guess] = {guess.column: guess for guess in work.guessed.guesses}
    rows = []
    for at, (name, column) in enumerate(work.file.spec.columns.items()):
        guess = guesses.get(name)
        rows.append(ColumnRow(
            at=at, name=name, role=column.role, known=described.get(name),
            reason=guess.explanation if guess and guess.role == column.role else "",
            hipaa=guess.hipaa if guess else None, confirm=column.confirm,
            written=describe_written(column.written) if column.written else "",
            findings=tuple(
                finding for finding in list_findings(findings) if finding.column == name
            ),
        ))  # fmt: skip
    return rows, any(description is None for description in described.values())


def list_findings(findings: list[Finding] | None) -> list[Finding]:
    """Return what a page lists: without what has a button of its own, and without forecasts.

    What to expect has its place on the Privacy page; a warning of it is listed elsewhere, too.
    """
    return [
        finding
        for finding in findings or ()
        if finding.topic != "confirmation"
        and not (finding.topic == "forecast" and finding.severity is Severity.NOTE)
    ]


def describe_written(written: ValueFormat) -> str:
    """Return in a line how values are written."""
    parts = []
    if written.dates is not None:
        parts.append(f"dates in the order {written.dates.replace('-', ', ')}")
    if written.decimal is not None:
        parts.append(f"numbers with {_POINTS[written.decimal]}")
    if written.thousands is not None:
        parts.append(f"thousands separated by '{written.thousands}'")
    if written.sign is not None:
        parts.append(f"amounts in '{written.sign}'")
    if written.nulls:
        listed = ", ".join(f"'{text}'" for text in written.nulls)
        parts.append(f"{listed} for missing values")
    return "; ".join(parts)


def make_snapshot(work: OpenSpec) -> SpecSnapshot:
    """Return an open spec as it is sent to another process."""
    spec = work.file.spec
    return SpecSnapshot(work.place, work.file.text(), str(work.path), spec.sheet, spec.header)


def get_descriptions(studio: Studio, work: OpenSpec) -> dict[str, ColumnDescription | None]:
    """Return what each column holds; None until it is known."""
    request: dict[tuple[str, str], Future[ColumnDescription]] = work.kept.setdefault(
        "described", {}
    )
    futures = {}
    for name in work.table.columns:
        column = work.file.spec.columns.get(name)
        written = column.written.model_dump_json() if column and column.written else ""
        key = name, written
        if key not in request:
            request[key] = studio.hands.submit_task(_describe_column, make_snapshot(work), name)
        futures[name] = request[key]
    wait(futures.values(), timeout=_MOMENT)
    return {name: wait_for_answer(future, 0) for name, future in futures.items()}


def get_findings(studio: Studio, work: OpenSpec) -> list[Finding] | None:
    """Return what `check` finds of the spec as it is now; None until it is known."""
    text = work.file.text()
    pending: tuple[str, Future[list[Finding]]] | None = work.kept.get("findings")
    if pending is None or pending[0] != text:
        if pending is not None:
            pending[1].cancel()  # nobody waits for it any more
        pending = text, studio.hands.submit_task(_check_spec, make_snapshot(work), same=True)
        work.kept["findings"] = pending
    return wait_for_answer(pending[1])


def wait_for_answer(future: Future[T], moment: float = _MOMENT) -> T | None:
    """Return what another process has answered; None if it has not within a moment."""
    try:
        return future.result(timeout=moment)
    except (TimeoutError, CancelledError):  # canceled for one that is asked anew
        return None
    except IncrowdError:
        raise
    except Exception as error:
        raise IncrowdError(CRASHED) from error


def _describe_column(snapshot: SpecSnapshot, name: str) -> ColumnDescription:
    from incrowd.curate.describe import describe_column

    return describe_column(snapshot.open_spec_and_table()[1], name)


def _check_spec(snapshot: SpecSnapshot) -> list[Finding]:
    from incrowd.curate.check import check

    file, table = snapshot.open_spec_and_table()
    try:
        return check(table, file)
    except IncrowdError as error:
        return [make_finding("TABLE_NOT_READ", problem=str(error))]
