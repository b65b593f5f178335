"""The tables of counts of a release that was made: heat maps with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from incrowd.errors import IncrowdError
from incrowd.release.certificate import Certificate
from incrowd.release.tables_read import PublishedCells, read_cells, read_columns
from incrowd.release.verify import read_certificate
from incrowd.studio.heat_map import draw_heat_map
from incrowd.studio.server import PageNotFoundError, Studio
from incrowd.studio.worker_pool import PublishJob


def routes(studio: Studio) -> list[BaseRoute]:
    """List the route of the page."""

    def show_tables(request: Request) -> Response:
        work = studio.get_open_spec(request)
        job: PublishJob | None = work.kept.get("job")
        if job is None or not job.ended or job.problem:
            raise PageNotFoundError("This table has no release yet.")
        certificate = read_certificate(job.output)
        if certificate.tabulation is None:
            raise PageNotFoundError("This release has no tables of counts.")
        names = [" × ".join(table.columns) for table in certificate.tabulation.tables]
        text = request.query_params.get("at", "")
        at = int(text) if text.isdecimal() and len(text) < 9 and int(text) < len(names) else 0
        return studio.render_page(
            "released_tables.html",
            room="publish",
            work=work,
            names=names,
            at=at,
            file=certificate.tables[at].release.file,
            picture=draw_heat_map(
                _read_cells(work.kept, job.output, certificate, at), request.query_params
            ),
        )

    return [Route("/desk/{work}/released", show_tables)]


def _read_cells(
    cache: dict[Any, Any], folder: Path, certificate: Certificate, at: int
) -> PublishedCells:
    """Return the figures of a table, as its file has them; those of the last one are kept."""
    stored: tuple[tuple[Path, int], PublishedCells] | None = cache.get("cells")
    if stored is None or stored[0] != (folder, at):
        try:
            cells = read_cells(folder, certificate, at, read_columns(folder, certificate))
        except ValueError as error:
            raise IncrowdError(f"The table cannot be shown: {error}.") from error
        stored = cache["cells"] = ((folder, at), cells)
    return stored[1]
