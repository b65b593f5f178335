"""Who a person is: the first question about a table, from counts of all its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from incrowd.curate.person_rows import GROUP_CHOICES, RowsPerPerson
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


@dataclass(frozen=True)
class _Costs:
    """What rows of a person cost: how many are used, and how many count in one group."""

    per_person: list[RowsOption]
    per_group: list[RowsOption]
    is_pricing: bool = False


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of the page and of its actions."""

    def show_person(request: Request) -> Response:
        work = studio.get_open_spec(request)
        unit = work.file.spec.unit
        other = request.query_params.get("column", "")
        other = other if other in work.table.columns else ""
        chosen = other or (unit.id if isinstance(unit, PersonId) else "")
        choice = _get_choice(studio, work, chosen)
        costs = _get_costs(studio, work)
        return studio.render_page(
            "person.html",
            room="person",
            work=work,
            choice=choice if isinstance(choice, UnitChoice) and not costs.is_pricing else None,
            refused=choice.words if isinstance(choice, RefusedAnswer) else "",
            chosen=chosen,
            is_guessed=bool(work.file.spec.confirm),
            rows=unit.rows if isinstance(unit, PersonId) else 1,
            per_group=unit.per_group if isinstance(unit, PersonId) else 1,
            without_id=isinstance(unit, PersonId) and unit.without_id is not None,
            costs=costs.per_person,
            group_costs=costs.per_group,
            people=read_people(work),
            people_fixed=isinstance(work.file.spec.size, int),
            takes_rows=_takes_rows(work),
            counts_rows=_counts_rows(work),
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
    rows = _read_number(form, "rows") if _takes_rows(work) else 1
    per_group = _read_number(form, "per_group") if _counts_rows(work) else 1
    changes = spec_edits.set_unit(
        chosen, without_id="without_id" in form, rows=rows, per_group=per_group
    )
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


def _counts_rows(work: OpenSpec) -> bool:
    """Return whether the method may count rows in place of people."""
    release = work.file.spec.release
    return release is None or (isinstance(release, SafeSpec) and release.series is None)


def _read_number(form: Form, name: str) -> int:
    return int(form[name]) if form.get(name, "").isdecimal() else 1


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


def _get_costs(studio: Studio, work: OpenSpec) -> _Costs:
    """Return what numbers of rows per person cost, and whether that is still computed."""
    unit = work.file.spec.unit
    unknown = _Costs(
        [RowsOption(rows, _name_rows(rows)) for rows in _ROWS],
        [RowsOption(rows, _name_counted(rows)) for rows in GROUP_CHOICES],
    )
    if not isinstance(unit, PersonId) or not isinstance(work.file.spec.release, SafeSpec):
        return unknown
    answer = get_answer_cache(work).get_answer(
        studio.hands, "rows per person", work.file.text(), _compare_rows, make_snapshot(work)
    )
    if not isinstance(answer, tuple):
        return replace(unknown, is_pricing=answer is None)
    per_person: tuple[RowsPerPerson, ...]
    per_group: tuple[RowsPerPerson, ...]
    per_person, per_group = answer
    options = _price(per_person, _name_rows, [cost.rows for cost in per_person])
    if unit.rows == 1:  # what counting rows costs depends on how many are used
        return replace(unknown, per_person=options)
    numbers = [cost.per_group for cost in per_group]
    return _Costs(options, _price(per_group, _name_counted, numbers))


def _price(
    costs: Sequence[RowsPerPerson], name: Callable[[int], str], numbers: Sequence[int]
) -> list[RowsOption]:
    return [
        RowsOption(
            number,
            f"{name(number)}: noise ±{cost.noise}, groups of {cost.crowd} {cost.counted_unit}",
        )
        for cost, number in zip(costs, numbers, strict=True)
    ]


def _name_rows(rows: int) -> str:
    return "one row" if rows == 1 else f"up to {rows} rows"


def _name_counted(per_group: int) -> str:
    return "once, so counts are people" if per_group == 1 else f"up to {per_group} rows"


def _count_choice(snapshot: SpecSnapshot, column: str) -> UnitChoice:
    from incrowd.curate.unit_choice import count_unit_choice

    return count_unit_choice(snapshot.open_spec_and_table()[1], column)


def _compare_rows(
    snapshot: SpecSnapshot,
) -> tuple[tuple[RowsPerPerson, ...], tuple[RowsPerPerson, ...]]:
    from incrowd.curate.person_rows import compare_rows_per_group, compare_rows_per_person

    file = snapshot.parse_spec()
    return compare_rows_per_person(file, choices=_ROWS), compare_rows_per_group(file)
