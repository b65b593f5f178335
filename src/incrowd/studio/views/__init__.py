"""The rooms of the studio, each with its pages and what can be done there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Route

from incrowd.studio.views import (
    calibration,
    columns,
    compare,
    confirmations,
    connect,
    data,
    explore,
    explore_choices,
    hierarchies,
    history,
    metadata,
    person,
    privacy,
    publish,
    released_tables,
    releases,
    risk,
    start,
    verify,
)

if TYPE_CHECKING:
    from incrowd.studio.server import Studio


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of all pages, or of verification alone."""
    if studio.only_verify:
        home = Route("/", lambda _request: RedirectResponse("/verify", status_code=303))
        return [home, *verify.routes(studio)]
    every = (
        start,
        connect,
        person,
        data,
        columns,
        hierarchies,
        confirmations,
        privacy,
        explore,
        explore_choices,
        risk,
        metadata,
        publish,
        released_tables,
        verify,
        history,
        releases,
        calibration,
        compare,
    )
    return [route for room in every for route in room.routes(studio)]
