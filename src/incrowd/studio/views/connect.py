"""Ask before a database is contacted: a spec from anybody may name any host."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from incrowd.engine.address import ConnectionTarget, find_target
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.server import Form, PageNotFoundError, Studio, make_form_route
from incrowd.studio.workspace import UnconfirmedConnectionError, Workspace

Opening = Callable[[bool], OpenSpec]  # whether the user has agreed to a connection


def open_or_ask(desk: Workspace, opening: Opening) -> str:
    """Open a spec; return its address, or that of the page that asks about a connection."""
    try:
        return get_first_address(opening(False))
    except UnconfirmedConnectionError as question:
        name = secrets.token_hex(8)
        desk.kept["connect", name] = question.address, opening
        return f"/connect/{name}"


MANY_COLUMNS = 40  # from which on their table is shown first


def get_first_address(work: OpenSpec) -> str:
    """Return the address of the first page: who a person is, while nobody has said so.

    Then the columns: of many of them, their table.
    """
    if work.file.spec.confirm:
        return f"/desk/{work.name}/person"
    return get_columns_address(work)


def get_columns_address(work: OpenSpec) -> str:
    """Return the address of the page of columns: of many, their table."""
    page = "columns" if len(work.file.spec.columns) > MANY_COLUMNS else "data"
    return f"/desk/{work.name}/{page}"


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of the page that asks, and of the answer."""

    def find_pending(request: Request) -> tuple[str, Opening]:
        pending = studio.get_workspace(request).kept.get(("connect", request.path_params["name"]))
        if pending is None:
            raise PageNotFoundError("This question has expired. Open the table again.")
        address: str
        opening: Opening
        address, opening = pending
        return address, opening

    def show_page(request: Request) -> Response:
        target = find_target(find_pending(request)[0], os.environ)
        return studio.render_page(
            "connect.html", room="start", target=target, password=_describe_password(target),
            name=request.path_params["name"],
        )  # fmt: skip

    def confirm_connection(request: Request, _form: Form) -> Response:
        work = find_pending(request)[1](True)
        studio.get_workspace(request).kept.pop(("connect", request.path_params["name"]), None)
        return RedirectResponse(get_first_address(work), status_code=303)

    return [
        Route("/connect/{name}", show_page),
        make_form_route("/connect/{name}", confirm_connection),
    ]


def _describe_password(target: ConnectionTarget) -> str:
    """Say where the password comes from that the server may ask for."""
    if target.has_password:
        return "from the address"
    if os.environ.get("PGPASSWORD"):
        return "from the environment variable PGPASSWORD"
    return "from your password file, if it has an entry for this server"
