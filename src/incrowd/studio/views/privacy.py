"""What is promised: the method, its parameters, the crowd they ask for, and the words for it.

Nothing on this page is read from the table, unless the spec says that its size is public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from incrowd.curate.planned_guarantee import PlannedGuarantee
from incrowd.errors import IncrowdError
from incrowd.findings import Finding
from incrowd.methods.expect import Expectation
from incrowd.methods.spec_ledger import (
    BudgetPreview,
    list_ledgers,
    preview_spec_budget,
    resolve_ledger,
)
from incrowd.privacy.presentation import format_parameter
from incrowd.privacy.protection import Strength, classify_guarantee
from incrowd.release.crowd import Crowd, make_crowd
from incrowd.release.ledger import Ledger
from incrowd.release.ledger_entries import RULE
from incrowd.release.statement import TECHNICAL
from incrowd.spec.model import PersonId
from incrowd.spec.release import SafeSpec, SyntheticSpec, TablesSpec
from incrowd.spec.slices import Slicing
from incrowd.studio import spec_edits
from incrowd.studio.answer_cache import RefusedAnswer, get_answer_cache
from incrowd.studio.method_advice import (
    CARDS,
    PURPOSE,
    PURPOSES,
    advise_method,
    picture_epsilon,
)
from incrowd.studio.number_form import normalize_number
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.private_files import create_private
from incrowd.studio.reader_strip import make_reader_strip
from incrowd.studio.server import Form, Studio, make_edit_route
from incrowd.studio.table_requests import list_requests, set_tables
from incrowd.studio.views.data import make_snapshot
from incrowd.studio.worker_pool import SpecSnapshot

_BRIEF = 0.02  # seconds that the page waits for a figure, after it has waited for the promise


@dataclass(frozen=True)
class DrawForecast:
    """What a sample or counts would keep by the pre-flight."""

    name: str
    known: Expectation | None
    refused: str
    waiting: bool

    @property
    def findings(self) -> list[Finding]:
        """The forecast, but for the crowd size, which the page shows itself."""
        findings = [] if self.known is None else self.known.findings()
        return [finding for finding in findings if finding.code != "CROWD_SIZE"]


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of the page and of its actions."""

    def show_page(request: Request) -> Response:
        work = studio.get_open_spec(request)
        release = work.file.spec.release
        safe = isinstance(release, SafeSpec)
        accounted = isinstance(release, SafeSpec | SyntheticSpec | TablesSpec)
        promise, waiting = _get_guarantee(studio, work)
        draws, drawing = _get_forecasts(studio, work) if safe else ([], False)
        books = list_ledgers(studio.get_workspace(request).home)
        spending, booking = (None, False)
        if accounted and isinstance(promise, PlannedGuarantee) and not waiting:
            spending, booking = _get_outlay(studio, work)
        slices = getattr(release, "slices", ())
        return studio.render_page(
            "privacy.html",
            room="privacy",
            work=work,
            cards=CARDS,
            purposes=PURPOSES,
            advice=advise_method(studio.hands, work),
            picture=(picture := picture_epsilon(studio.hands, work))[0],
            picturing=picture[1],
            tables=list_requests(studio.hands, work) if isinstance(release, TablesSpec) else None,
            release=release,
            accounted=accounted,
            technical=TECHNICAL,
            promise=promise if isinstance(promise, PlannedGuarantee) else None,
            strength=_classify_strength(promise),
            refused=promise.words if isinstance(promise, RefusedAnswer) else "",
            waiting=waiting,
            crowd=_make_crowd(promise),
            draws=draws,
            drawing=drawing,
            unit=_name_counted_unit(work),
            rule=RULE,
            books=books,
            book=_find_chosen_ledger(work),
            spending=spending,
            booking=booking,
            slices=slices.columns if isinstance(slices, Slicing) else "",
            listed=bool(slices) and not isinstance(slices, Slicing),
            size=work.file.spec.size,
            strip=make_reader_strip(studio.hands, work),
            targets=work.file.spec.columns_with_role("quasi", "sensitive"),
            noisy=[
                (name, column)
                for name, column in work.file.spec.columns.items()
                if column.role == "noisy"
            ],
            number=format_number,
            subsets=format_subsets(getattr(release, "subsets", None)),
            left=sum(len(entries) for entries in work.file.spec.unconfirmed_entries.values()),
        )

    def set_method(request: Request, form: Form) -> Response:
        work = studio.get_open_spec(request)
        work.apply_changes(spec_edits.set_method(work.file, form.get("method", "")))
        return _redirect_to_page(work)

    def set_purpose(request: Request, form: Form) -> Response:
        work, purpose = studio.get_open_spec(request), form.get("purpose", "")
        if purpose not in {entry.key for entry in PURPOSES}:
            raise IncrowdError(f"There is no purpose '{purpose}'.")
        work.kept[PURPOSE] = purpose
        return _redirect_to_page(work)

    def change_tables(request: Request, form: Form) -> Response:
        work = studio.get_open_spec(request)
        work.apply_changes(set_tables(work.file, form))
        return _redirect_to_page(work)

    def set_release_fields(request: Request, form: Form) -> Response:
        work = studio.get_open_spec(request)
        work.apply_changes(spec_edits.set_release_fields(work.file, form))
        return _redirect_to_page(work)

    def set_noisy_column(request: Request, form: Form) -> Response:
        work, name = studio.get_open_spec(request), form.get("column", "")
        if name not in work.file.spec.columns_with_role("noisy"):
            raise IncrowdError(f"The spec has no noisy column '{name}'.")
        work.apply_changes(spec_edits.set_noisy_column(work.file, name, form))
        return _redirect_to_page(work)

    def choose_ledger(request: Request, form: Form) -> Response:
        work, desk = studio.get_open_spec(request), studio.get_workspace(request)
        name = form.get("ledger", "")
        if name and desk.resolve_path(name) not in list_ledgers(desk.home):
            raise IncrowdError(f"The folder has no ledger '{name}'.")
        work.apply_changes(
            spec_edits.choose_ledger(work.file, desk.resolve_path(name) if name else None),
            undo=False,
        )
        return _redirect_to_page(work)

    def create_ledger(request: Request, form: Form) -> Response:
        work, desk = studio.get_open_spec(request), studio.get_workspace(request)
        path = desk.resolve_path(_check_ledger_name(form.get("name", "")))
        if path.exists():
            raise IncrowdError(f"'{path.name}' already exists. Choose another name.")
        epsilon, delta = (_parse_number(name, form.get(name, "")) for name in ("epsilon", "delta"))
        create_private(path).close()
        try:
            Ledger(path).set_budget(epsilon=epsilon, delta=delta)
            work.apply_changes(spec_edits.choose_ledger(work.file, path), undo=False)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return _redirect_to_page(work)

    return [
        Route("/desk/{work}/privacy", show_page),
        make_edit_route(studio, "/desk/{work}/privacy/method", set_method, show_page),
        make_edit_route(studio, "/desk/{work}/privacy/purpose", set_purpose, show_page),
        make_edit_route(studio, "/desk/{work}/privacy/tables", change_tables, show_page),
        make_edit_route(studio, "/desk/{work}/privacy/settings", set_release_fields, show_page),
        make_edit_route(studio, "/desk/{work}/privacy/noisy", set_noisy_column, show_page),
        make_edit_route(studio, "/desk/{work}/privacy/ledger", choose_ledger, show_page),
        make_edit_route(studio, "/desk/{work}/privacy/ledger/new", create_ledger, show_page),
    ]


def _redirect_to_page(work: OpenSpec) -> Response:
    return RedirectResponse(f"/desk/{work.name}/privacy", status_code=303)


def _check_ledger_name(text: str) -> str:
    """Return the name of a new ledger: a plain name of a file."""
    name = text.strip()
    if not name or Path(name).name != name or name.startswith("."):
        raise IncrowdError(f"'{text}' is not a file name. Enter one such as patients.ledger.")
    return name if "." in name else f"{name}.ledger"


def _parse_number(name: str, text: str) -> float:
    try:
        return float(normalize_number(text))
    except ValueError:
        raise IncrowdError(f"'{name}' must be a number; got '{text}'.") from None


def format_number(value: float | None) -> str:
    """Format a number as one would type it."""
    return "" if value is None else f"{value:.12g}"


def format_subsets(subsets: Mapping[int, int] | None) -> str:
    """Format the k of fewer columns as one would type them."""
    return ", ".join(f"{columns}: {k}" for columns, k in (subsets or {}).items())


def _get_guarantee(
    studio: Studio, work: OpenSpec
) -> tuple[PlannedGuarantee | RefusedAnswer | None, bool]:
    """Return the planned guarantee, and whether it is still that of earlier settings."""
    answers = get_answer_cache(work)
    if work.file.spec.release is None:
        return None, False
    answer = answers.get_answer(
        studio.hands, "promise", work.file.text(), _plan_guarantee, make_snapshot(work)
    )
    return (answers.last.get("promise"), True) if answer is None else (answer, False)


def _get_forecasts(studio: Studio, work: OpenSpec) -> tuple[list[DrawForecast], bool]:
    """Return what a sample and counts would keep, and whether one is still computed."""
    answers, forecasts = get_answer_cache(work), []
    for draw in ("counts", "sample"):
        name = f"expect {draw}"
        answer = answers.get_answer(
            studio.hands,
            name,
            work.file.text(),
            _expect_draw,
            make_snapshot(work),
            draw,
            moment=_BRIEF,
        )
        waiting = answer is None
        answer = answers.last.get(name) if waiting else answer
        expectation = answer if isinstance(answer, Expectation) else None
        refused = answer.words if isinstance(answer, RefusedAnswer) else ""
        forecasts.append(DrawForecast(draw, expectation, refused, waiting))
    return forecasts, any(forecast.waiting for forecast in forecasts)


def _find_chosen_ledger(work: OpenSpec) -> Path | None:
    """Return the file of the ledger that the spec names."""
    book = resolve_ledger(work.file)
    return None if book is None else book.path.resolve()


def _get_outlay(studio: Studio, work: OpenSpec) -> tuple[dict[str, str] | str | None, bool]:
    """Return what the ledger of the spec has left, as text; or why it cannot be used."""
    path = _find_chosen_ledger(work)
    if path is None:
        return None, False
    stamp = path.stat().st_mtime_ns if path.exists() else 0
    answer = get_answer_cache(work).get_answer(
        studio.hands,
        "outlay",
        (work.file.text(), str(path), stamp),
        _compute_outlay,
        make_snapshot(work),
        moment=_BRIEF,
    )
    if answer is None:
        return None, True
    if isinstance(answer, RefusedAnswer):
        return answer.words, False
    assert isinstance(answer, BudgetPreview)
    return _format_outlay(answer), False


def _format_outlay(preview: BudgetPreview) -> dict[str, str]:
    """Format what is spent rounded up and what is left rounded down, so that it holds."""
    cost, after = preview.cost, preview.after
    return {
        "budget": f"{preview.epsilon:g}", "delta": f"{preview.delta:g}",
        "releases": f"{preview.releases}", "spent": format_parameter("epsilon", preview.spent, 4),
        "left": format_parameter("left", preview.remaining_epsilon, 4), "refused": preview.refused,
        "cost": _format_epsilon(cost), "after": _format_epsilon(after),
        "share": f"{min(preview.spent / preview.epsilon, 1.0) if preview.epsilon else 1.0:.3f}",
    }  # fmt: skip


def _format_epsilon(value: float | None) -> str:
    if value is None:
        return ""
    return "∞" if math.isinf(value) else format_parameter("epsilon", value, 4)


def _classify_strength(promise: PlannedGuarantee | RefusedAnswer | None) -> Strength | None:
    if (
        not isinstance(promise, PlannedGuarantee)
        or promise.epsilon is None
        or promise.delta is None
    ):
        return None
    return classify_guarantee(promise.epsilon, promise.delta)


def _name_counted_unit(work: OpenSpec) -> str:
    unit = work.file.spec.unit
    return "people" if isinstance(unit, PersonId) and unit.per_group == 1 else "rows"


def _make_crowd(promise: PlannedGuarantee | RefusedAnswer | None) -> Crowd | None:
    if not isinstance(promise, PlannedGuarantee):
        return None
    return make_crowd(promise.crowd, promise.counted_unit)


def _open_public_table(snapshot: SpecSnapshot, file: Any) -> Any:
    """Return the table where its size is public, and is to be counted; else None."""
    return snapshot.open_spec_and_table()[1] if file.spec.size == "public" else None


def _plan_guarantee(snapshot: SpecSnapshot) -> PlannedGuarantee:
    from incrowd.curate.planned_guarantee import plan_guarantee

    return plan_guarantee(snapshot.parse_spec())


def _expect_draw(snapshot: SpecSnapshot, draw: str) -> Expectation:
    from incrowd.methods.expect import expect_with_draw

    file = snapshot.parse_spec()
    return expect_with_draw(draw, _open_public_table(snapshot, file), file)


def _compute_outlay(snapshot: SpecSnapshot) -> BudgetPreview | None:
    return preview_spec_budget(snapshot.parse_spec())
