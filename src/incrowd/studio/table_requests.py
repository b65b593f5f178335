"""Tables of counts by clicks: which are asked for, and the error of each before it is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from incrowd.curate.table_plan import TablePlan
from incrowd.errors import IncrowdError
from incrowd.methods.base import published_columns
from incrowd.spec.build import is_open
from incrowd.spec.file import SpecFile
from incrowd.spec.release import TablesSpec
from incrowd.spec.table_request import TableRequest
from incrowd.studio.answer_cache import RefusedAnswer, get_answer_cache
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.server import Form
from incrowd.studio.spec_edits import Changes
from incrowd.studio.views.data import make_snapshot
from incrowd.studio.worker_pool import SpecSnapshot, WorkerPool

MOST_SHOWN = 40  # tables that a page lists
_BRIEF = 0.02


@dataclass(frozen=True)
class RequestedRow:
    """One table that is asked for; ``at`` is its place in the spec, None where all are asked for.

    ``error`` is the half-width of a 95 % interval in rows, ``independent`` that of noise of its
    own. Both are None until they are computed.
    """

    columns: tuple[str, ...]
    at: int | None
    cells: int | None = None
    error: float | None = None
    independent: float | None = None


@dataclass(frozen=True)
class TableRequests:
    """The tables of a spec, those that are shown first, and the columns that tables may have.

    ``open`` are columns without a list of values, which no table can have.
    """

    rows: tuple[RequestedRow, ...]
    number: int
    choices: tuple[str, ...]
    open: tuple[str, ...]
    total: float | None
    waiting: bool
    refused: str


def list_requests(hands: WorkerPool, work: OpenSpec) -> TableRequests | None:
    """Return the tables that are asked for, with their errors; None for another method."""
    release = work.file.spec.release
    if not isinstance(release, TablesSpec):
        return None
    columns = published_columns(work.file.spec, "quasi", "sensitive")
    choices = tuple(name for name, column in columns.items() if not is_open(column))
    unlisted = tuple(name for name in columns if name not in choices)
    answers = get_answer_cache(work)
    answer = answers.get_answer(
        hands, "tables", work.file.text(), _plan_tables, make_snapshot(work), moment=_BRIEF
    )
    refused = answer.words if isinstance(answer, RefusedAnswer) else ""
    if not isinstance(answer, TablePlan):
        rows = [RequestedRow(table.columns, at) for at, table in enumerate(release.tables)]
        return TableRequests(
            tuple(rows[:MOST_SHOWN]), len(rows), choices, unlisted, None, answer is None, refused
        )
    planned = [
        RequestedRow(
            table.columns, at if release.tables else None, table.cells, table.error,
            table.independent,
        )
        for at, table in enumerate(answer.tables)
    ]  # fmt: skip
    return TableRequests(
        tuple(planned[:MOST_SHOWN]), len(planned), choices, unlisted, answer.total,
        waiting=False, refused="",
    )  # fmt: skip


def set_tables(file: SpecFile, form: Form) -> Changes:
    """Add a table of some columns, remove one, or ask for those of every two or three columns."""
    release = file.spec.release
    if not isinstance(release, TablesSpec):
        raise IncrowdError("Choose the method 'Tables of counts' first.")
    tables = list(release.tables)
    match form.get("do", ""):
        case "add":
            return _list_tables([*tables, _make_table(file, form.get_all("column"))])
        case "remove":
            place = form.get("at", "")
            if not place.isdecimal() or int(place) >= len(tables):
                raise IncrowdError("This table is not in the spec. Reload the page.")
            del tables[int(place)]
            return _list_tables(tables) if tables else _ask_for_all(2)
        case "all":
            return _ask_for_all(3 if form.get("of") == "3" else 2)
        case "totals":
            return {("release", "totals"): None if form.get("totals") == "yes" else False}
    raise IncrowdError("Unknown action. Reload the page.")


def _make_table(file: SpecFile, names: Sequence[str]) -> TableRequest:
    choices = published_columns(file.spec, "quasi", "sensitive")
    wrong = [name for name in names if name not in choices]
    if wrong or not names:
        raise IncrowdError(
            f"No table can have the column '{wrong[0]}'." if wrong
            else "Select the columns of the table first."
        )  # fmt: skip
    return TableRequest.model_validate(list(names))


def _list_tables(tables: Sequence[TableRequest]) -> Changes:
    return {("release", "tables"): [_write_table(table) for table in tables],
            ("release", "all"): None}  # fmt: skip


def _write_table(table: TableRequest) -> Any:
    """Return a table as a spec has it: short where it has columns alone."""
    fields = table.model_dump(mode="json", exclude_defaults=True)
    return fields["columns"] if set(fields) == {"columns"} else fields


def _ask_for_all(number: int) -> Changes:
    return {("release", "tables"): None, ("release", "all"): number}


def _plan_tables(snapshot: SpecSnapshot) -> TablePlan:
    from incrowd.curate.table_plan import plan_tables

    return plan_tables(snapshot.parse_spec())
