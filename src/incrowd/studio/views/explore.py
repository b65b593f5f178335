"""What each choice costs: the schemes of k-anonymity, and the pairs of k and epsilon.

All of it is read from the table, for the curator alone. A safe release may not be chosen by its
result, so there the page says why, and offers a rehearsal with people who do not exist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from incrowd.curate.explore import Exploration, SchemeFigures
from incrowd.curate.tradeoff import TradeoffGrid, TradeoffPoint
from incrowd.errors import IncrowdError
from incrowd.evaluation.report.figures import Point, draw_scatter
from incrowd.measure.table_risk import TableRisk
from incrowd.spec.file import SpecFile
from incrowd.spec.release import ClassesSpec, SafeSpec
from incrowd.studio import pictures, spec_edits
from incrowd.studio.answer_cache import RefusedAnswer, get_answer_cache
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.ranked_schemes import find_beside, rank_schemes
from incrowd.studio.server import Form, Studio, make_edit_route
from incrowd.studio.views.data import make_snapshot
from incrowd.studio.views.explore_choices import ask_for_set_risk, make_choice_view
from incrowd.studio.worker_pool import SpecSnapshot

_BLUE, _GREY, _PICKED = "#3c78b4", "#9aa5b1", "#c2571a"
_MOST_MADE_UP = 1_000_000
_ROWS = 8
_MOST_LISTED = 12  # schemes in words
_FAR = 2.0  # errors up to which pairs are drawn: twice the value, where nothing is left of it


@dataclass(frozen=True)
class RehearsalSummary:
    """What a release of made-up people looks like: the rows of its first file, the most frequent.

    ``kinds`` is how many different rows that file has.
    """

    made_up: int
    rows: int
    kinds: int
    columns: tuple[str, ...]
    most: tuple[tuple[tuple[str, ...], int], ...]
    files: int
    reasons: tuple[str, ...]


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of the page and of its actions."""

    def show_page(request: Request) -> Response:
        return show_explore(studio, request)

    def fix_scheme(request: Request, form: Form) -> Response:
        work = studio.get_open_spec(request)
        levels = pictures.parse_levels(form.get("levels", ""))
        work.apply_changes(spec_edits.fix_scheme(work.file, levels))
        return _redirect_to_page(work, {"scheme": pictures.format_levels(levels)})

    def reopen_scheme(request: Request, _form: Form) -> Response:
        work = studio.get_open_spec(request)
        work.apply_changes(spec_edits.reopen_scheme())
        return _redirect_to_page(work)

    def set_pair(request: Request, form: Form) -> Response:
        work = studio.get_open_spec(request)
        k, epsilon = form.get("k", ""), form.get("epsilon", "")
        work.apply_changes(spec_edits.set_k_and_epsilon(k, epsilon))
        return _redirect_to_page(work, {"k": k, "epsilon": epsilon})

    def start_rehearsal(request: Request, form: Form) -> Response:
        work, text = studio.get_open_spec(request), form.get("size", "").replace(",", "").strip()
        if not text.isdecimal() or not 1 <= int(text) <= _MOST_MADE_UP:
            raise IncrowdError(f"Enter a number from 1 to {_MOST_MADE_UP:,}; got '{text}'.")
        work.kept["rehearsal"] = int(text)
        return _redirect_to_page(work)

    return [
        Route("/desk/{work}/explore", show_page),
        make_edit_route(studio, "/desk/{work}/explore/take", fix_scheme, show_page),
        make_edit_route(studio, "/desk/{work}/explore/again", reopen_scheme, show_page),
        make_edit_route(studio, "/desk/{work}/explore/pair", set_pair, show_page),
        make_edit_route(studio, "/desk/{work}/explore/rehearse", start_rehearsal, show_page),
    ]


def show_explore(studio: Studio, request: Request) -> Response:
    """Show the page of the method of a spec."""
    work = studio.get_open_spec(request)
    release = work.file.spec.release
    method = release.method if release is not None else ""
    if method == "k-anonymity":
        return _show_schemes(studio, request, work)
    if method == "k-epsilon":
        return _show_pairs(studio, request, work)
    return _show_rehearsal(studio, work)


def _redirect_to_page(work: OpenSpec, query: Mapping[str, str] | None = None) -> Response:
    response = f"?{urlencode(query)}" if query else ""
    return RedirectResponse(f"/desk/{work.name}/explore{response}", status_code=303)


# k-anonymity ------------------------------------------------------------------------------------


def find_chosen_levels(file: SpecFile) -> tuple[int, ...]:
    """Return the scheme that a spec fixes; empty if it leaves any level open."""
    release = file.spec.release
    fixed = release.levels if release is not None else {}
    chosen_levels = tuple(
        level
        for name in file.spec.columns_with_role("quasi")
        if isinstance(level := fixed.get(name), int)
    )
    return chosen_levels if len(chosen_levels) == len(file.spec.columns_with_role("quasi")) else ()


def _show_schemes(studio: Studio, request: Request, work: OpenSpec) -> Response:
    chosen, file = find_chosen_levels(work.file), work.file
    if chosen:  # a pick does not change what there is to pick from
        file = file.with_entry(("release", "levels"), None)
    response = _ask_for_schemes(studio, work, "explore", file)
    exploration = response if isinstance(response, Exploration) else None
    values: dict[str, Any] = {}
    if exploration is not None:
        wanted_levels = _read_wanted_levels(exploration, request)
        selection, finding = exploration, False
        if (
            wanted_levels and not exploration.is_complete
        ):  # of a large lattice those that are asked for are looked at
            some = _ask_for_schemes(
                studio, work, "explore some", _limit_levels(file, exploration, wanted_levels)
            )
            selection, finding = (
                (some if isinstance(some, Exploration) else exploration),
                some is None,
            )
        values = _make_scheme_view(selection, wanted_levels, request, chosen)
        values |= {"columns": exploration.columns, "finding": finding}
    risk = None if response is None else ask_for_set_risk(studio, work, file)
    return studio.render_page(
        "explore.html",
        room="explore",
        work=work,
        found=values.get("found"),
        waiting=response is None,
        refused=response.words if isinstance(response, RefusedAnswer) else "",
        chosen=chosen,
        risk=risk if isinstance(risk, TableRisk) else None,
        **make_choice_view(work.file),
        **{name: value for name, value in values.items() if name != "found"},
    )


def _ask_for_schemes(studio: Studio, work: OpenSpec, name: str, file: SpecFile) -> Any:
    snapshot = make_snapshot(work)
    return get_answer_cache(work).get_answer(
        studio.hands, name, file.text(), _explore_schemes,
        SpecSnapshot(snapshot.place, file.text(), snapshot.path, snapshot.sheet, snapshot.header),
    )  # fmt: skip


def _read_wanted_levels(exploration: Exploration, request: Request) -> dict[int, int]:
    """Return the levels that the address asks for, by the place of their column."""
    return {
        at: int(text)
        for at, column in enumerate(exploration.columns)
        if (text := request.query_params.get(f"level{at}", "")).isdecimal()
        and column.low <= int(text) <= column.high
    }


def _limit_levels(
    file: SpecFile, exploration: Exploration, wanted_levels: Mapping[int, int]
) -> SpecFile:
    """Return the spec with the wanted levels and no others."""
    release = file.spec.release
    limits: dict[str, Any] = {}
    for name, level in (release.levels if release is not None else {}).items():
        limits[name] = level if isinstance(level, int) else list(level)
    limits |= {exploration.columns[at].name: [level, level] for at, level in wanted_levels.items()}
    return file.with_entry(("release", "levels"), limits)


def _make_scheme_view(
    exploration: Exploration,
    wanted_levels: Mapping[int, int],
    request: Request,
    chosen: tuple[int, ...],
) -> dict[str, Any]:
    """Return what the page shows of the schemes, by its address."""
    named = pictures.parse_levels(request.query_params.get("scheme", ""))
    scheme_view = (
        exploration.find_scheme(named)
        or exploration.find_scheme(chosen)
        or (exploration.schemes[0] if exploration.schemes else None)
    )
    selected_schemes = pictures.select_schemes(exploration, wanted_levels)
    filters = {f"level{at}": str(level) for at, level in wanted_levels.items()}

    def make_address(scheme: SchemeFigures) -> str:
        return f"?{urlencode({**filters, 'scheme': pictures.format_levels(scheme.levels)})}"

    levels = scheme_view.levels if scheme_view is not None else ()
    return {
        "found": exploration,
        "picture": pictures.draw_lattice(exploration, selected_schemes, levels),
        "one": scheme_view,
        "wanted": wanted_levels,
        "address": make_address,
        "chart": _draw_risk_and_loss(exploration, selected_schemes, scheme_view, make_address),
        "listed": rank_schemes(
            exploration, [scheme for scheme in selected_schemes if scheme.holds][:_MOST_LISTED]
        ),
        "beside": find_beside(
            exploration, request.query_params.getlist("beside"), pictures.parse_levels
        ),
        "name_of": pictures.format_levels,
        "figure": _format_loss,
        "good": sum(scheme.holds for scheme in exploration.schemes),
    }


def _format_loss(loss: float) -> str:
    """Format a loss as a table has it: shares with four places, counts as they are."""
    return f"{loss:.4f}" if abs(loss) < 10 else f"{loss:,.4g}"


def _draw_risk_and_loss(
    exploration: Exploration,
    schemes: list[SchemeFigures],
    picked_scheme: SchemeFigures | None,
    address: Any,
) -> Markup:
    """Draw loss against mean risk; of many schemes those that hold and lose least."""
    drawn_schemes = [scheme for scheme in schemes if scheme.holds][: pictures.MOST]
    if picked_scheme is not None and picked_scheme not in drawn_schemes:
        drawn_schemes.append(picked_scheme)
    points = [
        Point(
            f"Levels {' '.join(map(str, scheme.levels))}", scheme.loss, scheme.mean_risk,
            _PICKED if scheme == picked_scheme else (_BLUE if scheme.holds else _GREY),
            address(scheme),
        )
        for scheme in sorted(drawn_schemes, key=lambda scheme: scheme == picked_scheme)
    ]  # fmt: skip
    most = (
        max((point.x for point in points if point.x < float("inf")), default=1.0),
        max((point.y for point in points), default=1.0),
    )
    chart = draw_scatter(
        points, color=_BLUE, title="Loss and risk of schemes", across=f"loss ({exploration.loss})",
        up="mean re-identification risk", most=most,
    )  # fmt: skip
    return Markup(chart)  # noqa: S704 - every name in it is escaped where it is drawn


def _explore_schemes(snapshot: SpecSnapshot) -> Exploration:
    from incrowd.curate.explore import explore_schemes

    return explore_schemes(*snapshot.open_spec_and_table())


# k-epsilon --------------------------------------------------------------------------------------


def _show_pairs(studio: Studio, request: Request, work: OpenSpec) -> Response:
    release = work.file.spec.release
    assert isinstance(release, ClassesSpec)
    snapshot = make_snapshot(work)
    # Neither k nor epsilon of the spec changes the grid of them.
    text = work.file.with_entries({("release", "k"): 5, ("release", "epsilon"): 2.0}).text()
    answer = get_answer_cache(work).get_answer(
        studio.hands, "pairs", text, _compute_tradeoff,
        SpecSnapshot(snapshot.place, text, snapshot.path, snapshot.sheet, snapshot.header),
    )  # fmt: skip
    pairs = answer if isinstance(answer, TradeoffGrid) else None
    spec_pair = (release.k, getattr(release, "epsilon", None))
    picked_pair = _find_picked_pair(pairs, request, spec_pair)
    return studio.render_page(
        "explore_pairs.html",
        room="explore",
        work=work,
        found=pairs,
        waiting=answer is None,
        refused=answer.words if isinstance(answer, RefusedAnswer) else "",
        one=picked_pair,
        own=spec_pair,
        chart=_draw_error_and_linking(pairs, picked_pair) if pairs is not None else "",
        ks=sorted({choice.k for choice in pairs.choices}) if pairs is not None else [],
        epsilons=sorted({choice.epsilon for choice in pairs.choices}) if pairs else [],
        **make_choice_view(work.file, only_rules=True),
    )


def _find_picked_pair(
    grid: TradeoffGrid | None, request: Request, spec_pair: tuple[int | None, float | None]
) -> TradeoffPoint | None:
    """Return the pair that the address names, else that of the spec if it is on the grid."""
    if grid is None:
        return None
    picked_pair = request.query_params.get("k", ""), request.query_params.get("epsilon", "")
    by_name = {(str(choice.k), f"{choice.epsilon:g}"): choice for choice in grid.choices}
    by_value = {(choice.k, choice.epsilon): choice for choice in grid.choices}
    return by_name.get(picked_pair) or by_value.get(spec_pair)  # type: ignore[arg-type]


def _draw_error_and_linking(grid: TradeoffGrid, picked_pair: TradeoffPoint | None) -> Markup:
    points = [
        Point(
            f"k = {choice.k}, ε = {choice.epsilon:g}", choice.error, choice.linking,
            _PICKED if choice == picked_pair else _BLUE,
            f"?{urlencode({'k': choice.k, 'epsilon': f'{choice.epsilon:g}'})}",
        )
        for choice in sorted(grid.choices, key=lambda choice: choice == picked_pair)
    ]  # fmt: skip
    near_points = [point for point in points if point.x <= _FAR] or points
    most = (
        max((point.x for point in near_points), default=1.0),
        max((point.y for point in near_points), default=1.0),
    )
    chart = draw_scatter(
        near_points, color=_BLUE, title="Error and linking risk by k and ε",
        across="expected relative error", up="expected share of rows linked", most=most,
    )  # fmt: skip
    return Markup(chart)  # noqa: S704 - every name in it is escaped where it is drawn


def _compute_tradeoff(snapshot: SpecSnapshot) -> TradeoffGrid:
    from incrowd.curate.tradeoff import compute_tradeoff
    from incrowd.privacy.randomness import SystemRandomness

    file, table = snapshot.open_spec_and_table()
    return compute_tradeoff(file.with_all_confirmed(), table, bits=SystemRandomness())


# safe -------------------------------------------------------------------------------------------


def _show_rehearsal(studio: Studio, work: OpenSpec) -> Response:
    size = work.kept.get("rehearsal")
    answer = None
    if size is not None and work.file.spec.release is not None:
        answer = get_answer_cache(work).get_answer(
            studio.hands,
            "rehearsal",
            (work.file.text(), size),
            _rehearse_release,
            make_snapshot(work),
            size,
        )
    stated = work.file.spec.size
    return studio.render_page(
            "explore_safe.html", room="explore", work=work,
        release=work.file.spec.release, fixed=_is_fixed(work.file),
        size=size or (stated if isinstance(stated, int) else 10000),
        found=answer if isinstance(answer, RehearsalSummary) else None,
        refused=answer.words if isinstance(answer, RefusedAnswer) else "",
        waiting=size is not None and work.file.spec.release is not None and answer is None,
    )  # fmt: skip


def _is_fixed(file: SpecFile) -> bool:
    """Return whether the spec settles every level, so that the table chooses nothing."""
    release = file.spec.release
    if not isinstance(release, SafeSpec):
        return False
    names = file.spec.columns_with_role("quasi", "sensitive")
    all_fixed = all(isinstance(release.levels.get(name), int) for name in names)
    return release.scheme == "fixed" or all_fixed


def _rehearse_release(snapshot: SpecSnapshot, size: int) -> RehearsalSummary:
    from incrowd.curate.rehearse import rehearse

    release = rehearse(snapshot.parse_spec(), size=size)
    first = release.tables[0]
    looks: Counter[tuple[str, ...]] = Counter()
    for tally in first.iter_tallies(first.columns):
        for codes, count in zip(tally.codes.tolist(), tally.counts.tolist(), strict=True):
            row = (tally.values[at][code] for at, code in enumerate(codes))
            looks[tuple("" if x is None else str(x) for x in row)] += count
    return RehearsalSummary(
        made_up=size,
        rows=sum(table.release.rows for table in release.certificate.tables),
        kinds=len(looks),
        columns=first.columns,
        most=tuple(looks.most_common(_ROWS)),
        files=len(release.tables),
        reasons=release.reasons,
    )
