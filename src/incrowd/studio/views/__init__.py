"""The rooms of the studio, each with its pages and what can be done there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import BaseRoute

from incrowd.studio.views import (
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
    start,
    verify,
)

if TYPE_CHECKING:
    from incrowd.studio.server import Studio


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of all pages."""
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
        metadata,
        publish,
        released_tables,
        verify,
        history,
        releases,
        compare,
    )
    return [route for room in every for route in room.routes(studio)]
