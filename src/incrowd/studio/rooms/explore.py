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

from incrowd.curate.explore import Explored, Scheme
from incrowd.curate.tradeoff import Choice, Choices
from incrowd.errors import IncrowdError
from incrowd.evaluation.report.figures import Point, scatter
from incrowd.spec.file import SpecFile
from incrowd.spec.release import ClassesSpec, SafeSpec
from incrowd.studio import edits, lattice
from incrowd.studio.answers import Refused, answers_of
from incrowd.studio.hands import Subject
from incrowd.studio.rooms.data import subject
from incrowd.studio.server import Form, Studio, edit_route
from incrowd.studio.work import Work

_BLUE, _GREY, _PICKED = "#3c78b4", "#9aa5b1", "#c2571a"
_MOST_MADE_UP = 1_000_000
_ROWS = 8
_FAR = 2.0  # errors up to which pairs are drawn: twice the value, where nothing is left of it


@dataclass(frozen=True)
class Rehearsed:
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
    """The page and what can be done there."""

    def page(request: Request) -> Response:
        work = studio.work(request)
        release = work.file.spec.release
        method = release.method if release is not None else ""
        if method == "k-anonymity":
            return _schemes(studio, request, work)
        if method == "k-epsilon":
            return _pairs(studio, request, work)
        return _rehearsal(studio, work)

    def take(request: Request, form: Form) -> Response:
        work = studio.work(request)
        levels = lattice.levels_of(form.get("levels", ""))
        work.change(edits.scheme(work.file, levels))
        return _again(work, {"scheme": lattice.name_of(levels)})

    def again(request: Request, _form: Form) -> Response:
        work = studio.work(request)
        work.change(edits.open_scheme())
        return _again(work)

    def pair(request: Request, form: Form) -> Response:
        work = studio.work(request)
        k, epsilon = form.get("k", ""), form.get("epsilon", "")
        work.change(edits.pair(k, epsilon))
        return _again(work, {"k": k, "epsilon": epsilon})

    def rehearse(request: Request, form: Form) -> Response:
        work, text = studio.work(request), form.get("size", "").replace(",", "").strip()
        if not text.isdecimal() or not 1 <= int(text) <= _MOST_MADE_UP:
            raise IncrowdError(f"Enter a number from 1 to {_MOST_MADE_UP:,}; got '{text}'.")
        work.kept["rehearsal"] = int(text)
        return _again(work)

    return [
        Route("/desk/{work}/explore", page),
        edit_route(studio, "/desk/{work}/explore/take", take, page),
        edit_route(studio, "/desk/{work}/explore/again", again, page),
        edit_route(studio, "/desk/{work}/explore/pair", pair, page),
        edit_route(studio, "/desk/{work}/explore/rehearse", rehearse, page),
    ]


def _again(work: Work, query: Mapping[str, str] | None = None) -> Response:
    asked = f"?{urlencode(query)}" if query else ""
    return RedirectResponse(f"/desk/{work.name}/explore{asked}", status_code=303)


# k-anonymity ------------------------------------------------------------------------------------


def chosen_levels(file: SpecFile) -> tuple[int, ...]:
    """The scheme that a spec fixes; empty if it leaves any level open."""
    release = file.spec.release
    fixed = release.levels if release is not None else {}
    found = tuple(
        level for name in file.spec.with_role("quasi") if isinstance(level := fixed.get(name), int)
    )
    return found if len(found) == len(file.spec.with_role("quasi")) else ()


def _schemes(studio: Studio, request: Request, work: Work) -> Response:
    chosen, file = chosen_levels(work.file), work.file
    if chosen:  # a pick does not change what there is to pick from
        file = file.changed(("release", "levels"), None)
    found = _ask(studio, work, "explore", file)
    known = found if isinstance(found, Explored) else None
    values: dict[str, Any] = {}
    if known is not None:
        wanted = _wanted(known, request)
        shown, finding = known, False
        if wanted and not known.whole:  # of a large lattice those that are asked for are looked at
            some = _ask(studio, work, "explore some", _limited(file, known, wanted))
            shown, finding = (some if isinstance(some, Explored) else known), some is None
        values = _looked_at(shown, wanted, request, chosen)
        values |= {"columns": known.columns, "finding": finding}
    return studio.page(
        "explore.html", room="explore", work=work, found=values.get("found"), waiting=found is None,
        refused=found.words if isinstance(found, Refused) else "", chosen=chosen,
        **{name: value for name, value in values.items() if name != "found"},
    )  # fmt: skip


def _ask(studio: Studio, work: Work, name: str, file: SpecFile) -> Any:
    asked = subject(work)
    return answers_of(work).ask(
        studio.hands, name, file.text(), _explored,
        Subject(asked.place, file.text(), asked.path, asked.sheet, asked.header),
    )  # fmt: skip


def _wanted(found: Explored, request: Request) -> dict[int, int]:
    """The levels that the address asks for, by the place of their column."""
    return {
        at: int(text)
        for at, column in enumerate(found.columns)
        if (text := request.query_params.get(f"level{at}", "")).isdecimal()
        and column.low <= int(text) <= column.high
    }


def _limited(file: SpecFile, found: Explored, wanted: Mapping[int, int]) -> SpecFile:
    """The spec with the wanted levels and no others."""
    release = file.spec.release
    limits: dict[str, Any] = {}
    for name, level in (release.levels if release is not None else {}).items():
        limits[name] = level if isinstance(level, int) else list(level)
    limits |= {found.columns[at].name: [level, level] for at, level in wanted.items()}
    return file.changed(("release", "levels"), limits)


def _looked_at(
    found: Explored, wanted: Mapping[int, int], request: Request, chosen: tuple[int, ...]
) -> dict[str, Any]:
    """What the page shows of the schemes, by its address."""
    named = lattice.levels_of(request.query_params.get("scheme", ""))
    one = found.at(named) or found.at(chosen) or (found.schemes[0] if found.schemes else None)
    kept = lattice.fitting(found, wanted)
    filters = {f"level{at}": str(level) for at, level in wanted.items()}

    def address(scheme: Scheme) -> str:
        return f"?{urlencode({**filters, 'scheme': lattice.name_of(scheme.levels)})}"

    levels = one.levels if one is not None else ()
    return {
        "found": found, "picture": lattice.picture(found, kept, levels), "one": one,
        "wanted": wanted,
        "address": address, "chart": _risk_and_loss(found, kept, one, address),
        "listed": [scheme for scheme in kept if scheme.holds][:20],
        "name_of": lattice.name_of, "figure": _figure,
        "good": sum(scheme.holds for scheme in found.schemes),
    }  # fmt: skip


def _figure(loss: float) -> str:
    """A loss as a table has it: shares with four places, counts as they are."""
    return f"{loss:.4f}" if abs(loss) < 10 else f"{loss:,.4g}"


def _risk_and_loss(
    found: Explored, schemes: list[Scheme], one: Scheme | None, address: Any
) -> Markup:
    """Loss against mean risk; of many schemes those that hold and lose least."""
    shown = [scheme for scheme in schemes if scheme.holds][: lattice.MOST]
    if one is not None and one not in shown:
        shown.append(one)
    points = [
        Point(
            f"Levels {' '.join(map(str, scheme.levels))}", scheme.loss, scheme.mean_risk,
            _PICKED if scheme == one else (_BLUE if scheme.holds else _GREY), address(scheme),
        )
        for scheme in sorted(shown, key=lambda scheme: scheme == one)
    ]  # fmt: skip
    most = (
        max((point.x for point in points if point.x < float("inf")), default=1.0),
        max((point.y for point in points), default=1.0),
    )
    drawn = scatter(
        points, colour=_BLUE, title="Loss and risk of schemes", across=f"loss ({found.loss})",
        up="mean re-identification risk", most=most,
    )  # fmt: skip
    return Markup(drawn)  # noqa: S704 - every name in it is escaped where it is drawn


def _explored(asked: Subject) -> Explored:
    from incrowd.curate.explore import explore

    return explore(*asked.both())


# k-epsilon --------------------------------------------------------------------------------------


def _pairs(studio: Studio, request: Request, work: Work) -> Response:
    release = work.file.spec.release
    assert isinstance(release, ClassesSpec)
    asked = subject(work)
    # Neither k nor epsilon of the spec changes the grid of them.
    text = work.file.changed_at({("release", "k"): 5, ("release", "epsilon"): 2.0}).text()
    found = answers_of(work).ask(
        studio.hands, "pairs", text, _tried,
        Subject(asked.place, text, asked.path, asked.sheet, asked.header),
    )  # fmt: skip
    known = found if isinstance(found, Choices) else None
    own = (release.k, getattr(release, "epsilon", None))
    one = _picked(known, request, own)
    return studio.page(
            "explore_pairs.html", room="explore", work=work, found=known,
        waiting=found is None, refused=found.words if isinstance(found, Refused) else "",
        one=one, own=own, chart=_error_and_linking(known, one) if known is not None else "",
        ks=sorted({choice.k for choice in known.choices}) if known is not None else [],
        epsilons=sorted({choice.epsilon for choice in known.choices}) if known else [],
    )  # fmt: skip


def _picked(
    found: Choices | None, request: Request, own: tuple[int | None, float | None]
) -> Choice | None:
    """The pair that the address names, else that of the spec if it is on the grid."""
    if found is None:
        return None
    asked = request.query_params.get("k", ""), request.query_params.get("epsilon", "")
    by_name = {(str(choice.k), f"{choice.epsilon:g}"): choice for choice in found.choices}
    by_value = {(choice.k, choice.epsilon): choice for choice in found.choices}
    return by_name.get(asked) or by_value.get(own)  # type: ignore[arg-type]


def _error_and_linking(found: Choices, one: Choice | None) -> Markup:
    points = [
        Point(
            f"k = {choice.k}, ε = {choice.epsilon:g}", choice.error, choice.linking,
            _PICKED if choice == one else _BLUE,
            f"?{urlencode({'k': choice.k, 'epsilon': f'{choice.epsilon:g}'})}",
        )
        for choice in sorted(found.choices, key=lambda choice: choice == one)
    ]  # fmt: skip
    shown = [point for point in points if point.x <= _FAR] or points
    most = (
        max((point.x for point in shown), default=1.0),
        max((point.y for point in shown), default=1.0),
    )
    drawn = scatter(
        shown, colour=_BLUE, title="Error and linking risk by k and ε",
        across="expected relative error", up="expected share of rows linked", most=most,
    )  # fmt: skip
    return Markup(drawn)  # noqa: S704 - every name in it is escaped where it is drawn


def _tried(asked: Subject) -> Choices:
    from incrowd.curate.tradeoff import choices
    from incrowd.privacy.randomness import SystemRandomness

    file, table = asked.both()
    return choices(file.confirmed(), table, bits=SystemRandomness())


# safe -------------------------------------------------------------------------------------------


def _rehearsal(studio: Studio, work: Work) -> Response:
    size = work.kept.get("rehearsal")
    found = None
    if size is not None and work.file.spec.release is not None:
        found = answers_of(work).ask(
            studio.hands, "rehearsal", (work.file.text(), size), _rehearsed, subject(work), size
        )
    stated = work.file.spec.size
    return studio.page(
            "explore_safe.html", room="explore", work=work,
        release=work.file.spec.release, fixed=_is_fixed(work.file),
        size=size or (stated if isinstance(stated, int) else 10000),
        found=found if isinstance(found, Rehearsed) else None,
        refused=found.words if isinstance(found, Refused) else "",
        waiting=size is not None and work.file.spec.release is not None and found is None,
    )  # fmt: skip


def _is_fixed(file: SpecFile) -> bool:
    """Whether the spec settles every level, so that nothing is chosen by the table."""
    release = file.spec.release
    if not isinstance(release, SafeSpec):
        return False
    names = file.spec.with_role("quasi", "sensitive")
    given = all(isinstance(release.levels.get(name), int) for name in names)
    return release.scheme == "fixed" or given


def _rehearsed(asked: Subject, size: int) -> Rehearsed:
    from incrowd.curate.rehearse import rehearse

    release = rehearse(asked.file(), size=size)
    first = release.tables[0]
    looks: Counter[tuple[str, ...]] = Counter()
    for tally in first.tallies(first.columns):
        for codes, count in zip(tally.codes.tolist(), tally.counts.tolist(), strict=True):
            row = (tally.values[at][code] for at, code in enumerate(codes))
            looks[tuple("" if x is None else str(x) for x in row)] += count
    return Rehearsed(
        made_up=size,
        rows=sum(table.release.rows for table in release.certificate.tables),
        kinds=len(looks),
        columns=first.columns,
        most=tuple(looks.most_common(_ROWS)),
        files=len(release.tables),
        reasons=release.reasons,
    )
