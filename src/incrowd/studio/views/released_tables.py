"""The tables of counts of a release: heat maps with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from incrowd.errors import IncrowdError
from incrowd.release.certificate import Certificate
from incrowd.release.tables_read import PublishedCells, read_cells, read_columns
from incrowd.release.verify import read_certificate
from incrowd.studio.heat_map import draw_heat_map
from incrowd.studio.server import PageNotFoundError, Studio
from incrowd.studio.views.releases import find_release
from incrowd.studio.worker_pool import PublishJob


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of the page, of a release just made and of one of the folder."""

    def show_tables(request: Request) -> Response:
        work = studio.get_open_spec(request)
        job: PublishJob | None = work.kept.get("job")
        if job is None or not job.ended or job.problem:
            raise PageNotFoundError("This table has no release yet.")
        picture = make_heat_view(work.kept, job.output, request.query_params)
        return studio.render_page(
            "released_tables.html", room="publish", work=work,
            here=f"/desk/{work.name}/released", back=f"/desk/{work.name}/publish", hidden={},
            **picture,
        )  # fmt: skip

    def show_past_tables(request: Request) -> Response:
        release, _ = find_release(studio.home, request)
        cache = studio.get_workspace(request).kept
        picture = make_heat_view(cache, release.folder, request.query_params)
        return studio.render_page(
            "released_tables.html", room="start", here="/release/tables",
            back=f"/release?{urlencode({'of': release.name})}", hidden={"of": release.name},
            **picture,
        )  # fmt: skip

    return [Route("/desk/{work}/released", show_tables), Route("/release/tables", show_past_tables)]


def make_heat_view(
    cache: dict[Any, Any], folder: Path, fields: Mapping[str, str]
) -> dict[str, Any]:
    """Return what a page shows of the tables of a release, by its address.

    Raises:
        PageNotFoundError: The release has no tables of counts.
    """
    certificate = read_certificate(folder)
    if certificate.tabulation is None:
        raise PageNotFoundError("This release has no tables of counts.")
    names = [" × ".join(table.columns) for table in certificate.tabulation.tables]
    text = fields.get("at", "")
    at = int(text) if text.isdecimal() and len(text) < 9 and int(text) < len(names) else 0
    return {
        "names": names, "at": at, "file": certificate.tables[at].release.file,
        "picture": draw_heat_map(_read_cells(cache, folder, certificate, at), fields),
    }  # fmt: skip


def _read_cells(
    cache: dict[Any, Any], folder: Path, certificate: Certificate, at: int
) -> PublishedCells:
    """Return the figures of a table, as its file has them; those of the last one are kept."""
    key = folder, at, certificate.seal
    stored: tuple[object, PublishedCells] | None = cache.get("cells")
    if stored is None or stored[0] != key:
        try:
            cells = read_cells(folder, certificate, at, read_columns(folder, certificate))
        except ValueError as error:
            raise IncrowdError(f"The table cannot be shown: {error}.") from error
        stored = cache["cells"] = (key, cells)
    return stored[1]
