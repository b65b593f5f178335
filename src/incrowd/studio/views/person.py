"""Who a person is: the first question about a table, from counts of all its rows."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from incrowd.curate.person_rows import RowsPerPerson
from incrowd.curate.unit_choice import UnitChoice
from incrowd.errors import IncrowdError
from incrowd.spec.model import PersonId
from incrowd.spec.release import ClassesSpec, SafeSpec
from incrowd.studio import spec_edits
from incrowd.studio.answer_cache import RefusedAnswer, get_answer_cache
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.reader_strip import read_people, set_people
from incrowd.studio.server import Form, Studio, find_back_address, make_edit_route
from incrowd.studio.views.connect import get_columns_address
from incrowd.studio.views.data import make_snapshot
from incrowd.studio.worker_pool import SpecSnapshot

_PATIENCE = 120.0  # seconds that an answer to the question waits for the counts
_ROWS = (1, 2, 3, 4, 6, 8, 12)


@dataclass(frozen=True)
class RowsOption:
    """How many rows of a person may be used, and what that costs by the spec."""

    rows: int
    words: str


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of the page and of its actions."""

    def show_person(request: Request) -> Response:
        work = studio.get_open_spec(request)
        unit = work.file.spec.unit
        other = request.query_params.get("column", "")
        other = other if other in work.table.columns else ""
        chosen = other or (unit.id if isinstance(unit, PersonId) else "")
        choice = _get_choice(studio, work, chosen)
        costs, pricing = _get_costs(studio, work)
        return studio.render_page(
            "person.html",
            room="person",
            work=work,
            choice=choice if isinstance(choice, UnitChoice) and not pricing else None,
            refused=choice.words if isinstance(choice, RefusedAnswer) else "",
            chosen=chosen,
            is_guessed=bool(work.file.spec.confirm),
            rows=unit.rows if isinstance(unit, PersonId) else 1,
            without_id=isinstance(unit, PersonId) and unit.without_id is not None,
            costs=costs,
            people=read_people(work),
            people_fixed=isinstance(work.file.spec.size, int),
            takes_rows=_takes_rows(work),
        )

    def set_unit(request: Request, form: Form) -> Response:
        work, chosen = studio.get_open_spec(request), form.get("unit", "")
        if chosen and chosen not in work.file.spec.columns:
            raise IncrowdError(f"The spec has no column '{chosen}'.")
        answer = _get_choice(studio, work, chosen, moment=_PATIENCE)
        if answer is None or isinstance(answer, RefusedAnswer):
            words = answer.words if isinstance(answer, RefusedAnswer) else "It takes too long."
            raise IncrowdError(f"The rows of each person could not be counted. {words}")
        doubt = answer.find_contradiction(chosen)
        if doubt and "certain" not in form:
            raise IncrowdError(f"{doubt} Choose another unit, or state that this one is right.")
        if "people" in form and not isinstance(work.file.spec.size, int):
            set_people(work, form["people"])
        work.apply_changes(_make_changes(work, chosen, form))
        return RedirectResponse(get_columns_address(work), status_code=303)

    def set_people_number(request: Request, form: Form) -> Response:
        work = studio.get_open_spec(request)
        if isinstance(work.file.spec.size, int):
            work.apply_changes(spec_edits.set_size(form.get("people", "")))
        else:
            set_people(work, form.get("people", ""))
        back = find_back_address(request, f"/desk/{work.name}/privacy")
        return RedirectResponse(back, status_code=303)

    return [
        Route("/desk/{work}/person", show_person),
        make_edit_route(studio, "/desk/{work}/person", set_unit, show_person),
        make_edit_route(studio, "/desk/{work}/people", set_people_number, show_person),
    ]


def _make_changes(work: OpenSpec, chosen: str, form: Form) -> spec_edits.Changes:
    """Return the changes of a spec whose unit is chosen; the id of the unit is not published."""
    old = work.file.spec.unit
    rows = int(form["rows"]) if form.get("rows", "").isdecimal() and _takes_rows(work) else 1
    changes = spec_edits.set_unit(chosen, without_id="without_id" in form, rows=rows)
    if isinstance(old, PersonId) and old.id == chosen:
        kept_entries = old.model_dump(include={"period", "protects"}, exclude_none=True)
        changes["unit",] = {**changes["unit",], **kept_entries}
    if chosen:
        changes = {**spec_edits.set_role(work.file, work.guessed, chosen, "identifier"), **changes}
    return changes


def _takes_rows(work: OpenSpec) -> bool:
    """Return whether the method may use several rows of a person."""
    release = work.file.spec.release
    return release is None or isinstance(release, SafeSpec | ClassesSpec)


def _get_choice(
    studio: Studio, work: OpenSpec, column: str, moment: float = 0.08
) -> UnitChoice | RefusedAnswer | None:
    """Return the counts of each possible unit; None while they are being counted."""
    snapshot = make_snapshot(work)
    written = tuple(
        (name, entry.written.model_dump_json())
        for name, entry in work.file.spec.columns.items()
        if entry.written is not None
    )
    answer: UnitChoice | RefusedAnswer | None = get_answer_cache(work).get_answer(
        studio.hands, "unit", (column, written), _count_choice, snapshot, column, moment=moment
    )
    return answer


def _get_costs(studio: Studio, work: OpenSpec) -> tuple[list[RowsOption], bool]:
    """Return what each number of rows per person costs, and whether that is still computed."""
    unit = work.file.spec.unit
    if not isinstance(unit, PersonId) or not isinstance(work.file.spec.release, SafeSpec):
        return [RowsOption(rows, _name_rows(rows)) for rows in _ROWS], False
    answer = get_answer_cache(work).get_answer(
        studio.hands, "rows per person", work.file.text(), _compare_rows, make_snapshot(work)
    )
    if not isinstance(answer, tuple):
        return [RowsOption(rows, _name_rows(rows)) for rows in _ROWS], answer is None
    listed: tuple[RowsPerPerson, ...] = answer
    return [
        RowsOption(
            cost.rows,
            f"{_name_rows(cost.rows)}: noise ±{cost.noise}, groups of {cost.crowd} people",
        )
        for cost in listed
    ], False


def _name_rows(rows: int) -> str:
    return "one row" if rows == 1 else f"up to {rows} rows"


def _count_choice(snapshot: SpecSnapshot, column: str) -> UnitChoice:
    from incrowd.curate.unit_choice import count_unit_choice

    return count_unit_choice(snapshot.open_spec_and_table()[1], column)


def _compare_rows(snapshot: SpecSnapshot) -> tuple[RowsPerPerson, ...]:
    from incrowd.curate.person_rows import compare_rows_per_person

    return compare_rows_per_person(snapshot.parse_spec(), choices=_ROWS)
