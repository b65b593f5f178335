"""Ask before a database is contacted: a spec from anybody may name any host."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from incrowd.engine.address import Target, find_target
from incrowd.studio.desk import Desk, UnconfirmedConnectionError
from incrowd.studio.server import Form, MissingError, Studio, form_route
from incrowd.studio.work import Work

Opening = Callable[[bool], Work]  # whether the user has agreed to a connection


def open_or_ask(desk: Desk, opening: Opening) -> str:
    """Open a work; return its address, or that of the page that asks about a connection."""
    try:
        return address_of(opening(False))
    except UnconfirmedConnectionError as question:
        name = secrets.token_hex(8)
        desk.kept["connect", name] = question.address, opening
        return f"/connect/{name}"


def address_of(work: Work) -> str:
    """Return the address of the first room of a work."""
    return f"/desk/{work.name}/data"


def routes(studio: Studio) -> list[BaseRoute]:
    """The page that asks, and the answer."""

    def pending(request: Request) -> tuple[str, Opening]:
        found = studio.desk(request).kept.get(("connect", request.path_params["name"]))
        if found is None:
            raise MissingError("This question has expired. Open the table again.")
        address: str
        opening: Opening
        address, opening = found
        return address, opening

    def page(request: Request) -> Response:
        target = find_target(pending(request)[0], os.environ)
        return studio.page(
            "connect.html", room="start", target=target, password=_describe_password(target),
            name=request.path_params["name"],
        )  # fmt: skip

    def connect(request: Request, _form: Form) -> Response:
        work = pending(request)[1](True)
        studio.desk(request).kept.pop(("connect", request.path_params["name"]), None)
        return RedirectResponse(address_of(work), status_code=303)

    return [Route("/connect/{name}", page), form_route("/connect/{name}", connect)]


def _describe_password(target: Target) -> str:
    """Say where the password comes from that the server may ask for."""
    if target.has_password:
        return "from the address"
    if os.environ.get("PGPASSWORD"):
        return "from the environment variable PGPASSWORD"
    return "from your password file, if it has an entry for this server"
