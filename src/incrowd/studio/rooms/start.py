"""The way in: open a table, or go on with a spec."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from incrowd.curate.demo_tables import SPECS as SAMPLES
from incrowd.curate.demo_tables import sample
from incrowd.engine.address import is_address
from incrowd.errors import IncrowdError
from incrowd.studio.desk import SPECS, Desk
from incrowd.studio.private import create_private, write_private
from incrowd.studio.rooms import data
from incrowd.studio.rooms.connect import address_of, open_or_ask
from incrowd.studio.server import Form, Studio, back_of, edit_route, form_route, land
from incrowd.studio.work import Work


def routes(studio: Studio) -> list[BaseRoute]:
    """The first page, and every way to open something."""

    def start(request: Request) -> Response:
        desk = studio.desk(request)
        if not desk.begun:
            desk.begun = True
            if studio.sample is not None:
                return _go(address_of(_sample(desk, studio.sample)))
            if studio.table is not None:
                return _go(_begin(desk, studio.table))
        return studio.page(
            "start.html", room="start",
            works=desk.works(), shelf=list(desk.shelf()), samples=list(SAMPLES),
        )  # fmt: skip

    def opened(request: Request, form: Form) -> Response:
        desk, place = studio.desk(request), form.get("place", "").strip()
        if not place:
            raise IncrowdError("Enter a file or the address of a table.")
        return _go(_begin(desk, place, *_of_workbook(form)))

    def sampled(request: Request, form: Form) -> Response:
        return _go(address_of(_sample(studio.desk(request), form.get("sample", ""))))

    async def uploaded(request: Request) -> Response:
        """What is dropped: a table, or a spec; it is written as it comes, whatever its size."""
        desk = studio.desk(request)
        target = desk.landing(request.query_params.get("name", ""))
        try:
            given = _of_workbook(request.query_params)
            await land(request, target)
            address = await asyncio.to_thread(_landed, desk, target, *given)
        except BaseException:
            shutil.rmtree(target.parent, ignore_errors=True)
            raise
        return JSONResponse({"go": address})

    def back(request: Request, _form: Form) -> Response:
        work = studio.work(request)
        work.go_back()
        return RedirectResponse(back_of(request, address_of(work)), status_code=303)

    def refused(request: Request) -> Response:
        return data.show_page(studio, request)

    def replace(request: Request, _form: Form) -> Response:
        work = studio.work(request)
        if work.conflict:
            work.replace_disk()
        return RedirectResponse(back_of(request, address_of(work)), status_code=303)

    return [
        Route("/", start),
        form_route("/open", opened),
        form_route("/sample", sampled),
        Route("/upload", uploaded, methods=["PUT"]),
        edit_route(studio, "/desk/{work}/undo", back, refused),
        form_route("/desk/{work}/replace", replace),
    ]


def _begin(desk: Desk, place: str, sheet: str | None = None, header: int | None = None) -> str:
    """Begin with a table, or go on with a spec; return the address of the next page."""
    if not is_address(place) and place.lower().endswith(SPECS):
        spec = desk.inside(place)
        return open_or_ask(desk, lambda connect: desk.resume(spec, connect=connect))
    return open_or_ask(
        desk, lambda connect: desk.open(place, sheet=sheet, header=header, connect=connect)
    )


def _of_workbook(given: Mapping[str, str]) -> tuple[str | None, int | None]:
    """The sheet of a workbook and the row that holds the names, where they are given."""
    sheet, header = given.get("sheet", "").strip(), given.get("header", "").strip()
    if header and not (header.isascii() and header.isdigit() and len(header) < 10):
        raise IncrowdError(f"The header row must be a number; got '{header}'.")
    return sheet or None, int(header) if header else None


def _landed(desk: Desk, path: Path, sheet: str | None, header: int | None) -> str:
    """Begin with what was uploaded; a spec is taken into the folder of the project."""
    if path.suffix.lower() not in SPECS:
        return open_or_ask(desk, lambda _connect: desk.open(str(path), sheet=sheet, header=header))
    return open_or_ask(desk, lambda connect: _take_spec(desk, path, connect=connect))


def _take_spec(desk: Desk, path: Path, *, connect: bool) -> Work:
    """Copy a spec that was uploaded into the folder of the project, and go on with it."""
    spec = desk.inside(path.name)
    try:
        with create_private(spec) as file:
            file.write(path.read_bytes())
    except FileExistsError:
        raise IncrowdError(
            f"'{path.name}' already exists in the folder. Open it there, or rename it."
        ) from None
    try:
        return desk.resume(spec, connect=connect)
    except BaseException:
        spec.unlink()
        raise


def _sample(desk: Desk, kind: str) -> Work:
    """The sample table with the spec that comes with it, as files of the project."""
    if kind not in SAMPLES:
        raise IncrowdError(f"There is no sample '{kind}'. Choose one of {', '.join(SAMPLES)}.")
    path, spec = desk.inside(f"{kind}.parquet"), desk.inside(f"{kind}.yaml")
    if not path.exists():
        sample(kind).write(path)
    if not spec.exists():
        write_private(spec, SAMPLES[kind], new=True)
    return desk.resume(spec)


def _go(address: str) -> Response:
    return RedirectResponse(address, status_code=303)
