"""Two or three releases of one table side by side; not a way to choose one by its result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from incrowd.errors import IncrowdError
from incrowd.evaluation.comparison import CHOICE_WARNING, ComparedRelease, Comparison, FigureKind
from incrowd.findings import format_percent
from incrowd.studio.projects import PastRelease, list_past_releases
from incrowd.studio.server import Studio
from incrowd.studio.views.data import wait_for_answer
from incrowd.studio.views.verify import list_releases

MOST_RELEASES = 3
_MOMENT = 0.3  # seconds that the page waits for what may be there at once


def routes(studio: Studio) -> list[BaseRoute]:
    """List the route of the page."""

    def show_page(request: Request) -> Response:
        desk = studio.get_workspace(request)
        known_origin = [
            release for release in list_past_releases(list_releases(studio.home)) if release.table
        ]
        names = list(dict.fromkeys(request.query_params.getlist("of")))[:MOST_RELEASES]
        chosen = [release for release in known_origin if release.name in names]
        values: dict[str, Any] = {"comparison": None, "waiting": False, "refused": ""}
        if len(chosen) > 1:
            try:
                values |= ask_for_comparison(studio, desk.kept, chosen)
            except IncrowdError as error:
                values["refused"] = str(error)
        return studio.render_page(
            "compare.html", room="start", releases=known_origin, names=names,
            few=bool(names) and len(chosen) < 2, warning=CHOICE_WARNING,
            figure=format_figure, **values,
        )  # fmt: skip

    return [Route("/compare", show_page)]


def ask_for_comparison(
    studio: Studio, answers: dict[Any, Any], chosen: list[PastRelease]
) -> dict[str, Any]:
    """Return the comparison of some releases, or that it is waited for.

    Raises:
        IncrowdError: They are not of one table, or the table is not in the folder.
    """
    table = find_original(studio.home, chosen)
    key = ("compare", *((release.name, release.certificate.seal) for release in chosen))
    if key not in answers:
        specs = [(release.spec, release.spec_file) for release in chosen]
        answers[key] = studio.hands.submit_task(
            compare_releases, str(table), [str(release.folder) for release in chosen], specs
        )
    try:
        comparison = wait_for_answer(answers[key], _MOMENT)
    except IncrowdError:
        del answers[key]  # whoever asks again is answered anew
        raise
    return {"comparison": comparison, "waiting": comparison is None}


def find_original(home: Path, chosen: list[PastRelease]) -> Path:
    """Return the table that all releases were made of; refuse several, and one that is not here."""
    tables = {release.table for release in chosen}
    if len(tables) > 1:
        raise IncrowdError("These releases are of different tables. Choose releases of one table.")
    (name,) = tables
    path = (home / name).resolve()
    if not path.is_file() or not path.is_relative_to(home):
        raise IncrowdError(
            f"The table '{name}' is not a file of this folder. Compare in a terminal: "
            "incrowd compare RELEASE RELEASE --original TABLE."
        )
    return path


def compare_releases(table: str, folders: list[str], specs: list[tuple[str, str]]) -> Comparison:
    """Compare releases by their own specs; run in another process."""
    from incrowd.evaluation.comparison import compare
    from incrowd.spec.file import parse_spec

    home = Path(table).parent
    files = [parse_spec(text, path=home / name) for text, name in specs]
    return compare(table, folders, files)


def format_figure(kind: FigureKind, release: ComparedRelease) -> str:
    """Format a figure of a release as a table has it."""
    value = release.figures[kind.name]
    if value is None:
        return "–"
    if kind.form == "count":
        return f"{value:,.0f}"
    return format_percent(value) if kind.form == "percent" else f"{value:.4g}"
