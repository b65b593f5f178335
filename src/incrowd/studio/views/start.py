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
from incrowd.curate.demo_tables import make_demo_table
from incrowd.engine.address import is_address
from incrowd.errors import IncrowdError
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.private_files import create_private, write_private
from incrowd.studio.projects import list_past_releases, list_projects
from incrowd.studio.server import (
    Form,
    Studio,
    find_back_address,
    make_edit_route,
    make_form_route,
    save_upload,
)
from incrowd.studio.views import data
from incrowd.studio.views.connect import get_first_address, open_or_ask
from incrowd.studio.views.publish import WORDS
from incrowd.studio.views.verify import list_releases
from incrowd.studio.worker_pool import PublishJob
from incrowd.studio.workspace import PROJECTS, SPECS, Workspace


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of the first page, and of every way to open something."""

    def show_start(request: Request) -> Response:
        desk = studio.get_workspace(request)
        if not desk.begun:
            desk.begun = True
            if studio.sample is not None:
                return _redirect_to(get_first_address(_open_demo_table(desk, studio.sample)))
            if studio.table is not None:
                return _redirect_to(_open_place(desk, studio.table))
        files = [*desk.list_project_files()]
        tables, others = list_projects(
            [entry for entry in files if entry[1] != "project"],
            list_past_releases(list_releases(desk.home)),
        )
        return studio.render_page(
            "start.html",
            room="start",
            works=desk.list_open_specs(),
            tables=tables,
            others=others,
            jobs=list_jobs(studio),
            words=WORDS,
            samples=list(SAMPLES),
            projects=[path.name for path, kind in files if kind == "project"],
        )

    def open_place(request: Request, form: Form) -> Response:
        desk, place = studio.get_workspace(request), form.get("place", "").strip()
        if not place:
            raise IncrowdError("Enter a file or the address of a table.")
        address = _open_place(desk, place, *_read_sheet_options(form))
        if form.get("page") == "publish" and address.startswith("/desk/"):
            address = f"{address.rpartition('/')[0]}/publish"
        return _redirect_to(address)

    def open_demo(request: Request, form: Form) -> Response:
        return _redirect_to(
            get_first_address(
                _open_demo_table(studio.get_workspace(request), form.get("sample", ""))
            )
        )

    async def receive_upload(request: Request) -> Response:
        """Return what is dropped: a table, or a spec.

        It is written as it comes, whatever its size.
        """
        desk = studio.get_workspace(request)
        target = desk.make_upload_path(request.query_params.get("name", ""))
        try:
            sheet_options = _read_sheet_options(request.query_params)
            await save_upload(request, target)
            address = await asyncio.to_thread(_open_upload, desk, target, *sheet_options)
        except BaseException:
            shutil.rmtree(target.parent, ignore_errors=True)
            raise
        return JSONResponse({"go": address})

    def undo_change(request: Request, _form: Form) -> Response:
        work = studio.get_open_spec(request)
        work.undo_change()
        return RedirectResponse(
            find_back_address(request, get_first_address(work)), status_code=303
        )

    def show_data(request: Request) -> Response:
        return data.show_page(studio, request)

    def overwrite_file(request: Request, _form: Form) -> Response:
        work = studio.get_open_spec(request)
        if work.conflict:
            work.overwrite_file()
        return RedirectResponse(
            find_back_address(request, get_first_address(work)), status_code=303
        )

    return [
        Route("/", show_start),
        make_form_route("/open", open_place),
        make_form_route("/sample", open_demo),
        Route("/upload", receive_upload, methods=["PUT"]),
        make_edit_route(studio, "/desk/{work}/undo", undo_change, show_data),
        make_form_route("/desk/{work}/replace", overwrite_file),
    ]


def list_jobs(studio: Studio) -> list[tuple[OpenSpec, PublishJob]]:
    """Return the releases that are being made, whichever browser has begun them."""
    jobs = [(work, work.kept.get("job")) for work in studio.works.list_specs()]
    return [(work, job) for work, job in jobs if isinstance(job, PublishJob) and not job.ended]


def _open_place(
    desk: Workspace, place: str, sheet: str | None = None, header: int | None = None
) -> str:
    """Begin with a table, or go on with a spec; return the address of the next page."""
    if not is_address(place) and place.lower().endswith(PROJECTS):
        return get_first_address(desk.start_from_arx(desk.resolve_path(place)))
    if not is_address(place) and place.lower().endswith(SPECS):
        spec = desk.resolve_path(place)
        return open_or_ask(desk, lambda connect: desk.open_spec(spec, connect=connect))
    return open_or_ask(
        desk,
        lambda connect: desk.start_from_table(place, sheet=sheet, header=header, connect=connect),
    )


def _read_sheet_options(fields: Mapping[str, str]) -> tuple[str | None, int | None]:
    """Return the sheet of a workbook and the row of the names, where they are given."""
    sheet, header = fields.get("sheet", "").strip(), fields.get("header", "").strip()
    if header and not (header.isascii() and header.isdigit() and len(header) < 10):
        raise IncrowdError(f"The header row must be a number; got '{header}'.")
    return sheet or None, int(header) if header else None


def _open_upload(desk: Workspace, path: Path, sheet: str | None, header: int | None) -> str:
    """Begin with what was uploaded; a spec is copied into the folder of the project."""
    if path.suffix.lower() in PROJECTS:
        work = desk.start_from_arx(path)
        shutil.rmtree(path.parent, ignore_errors=True)  # its parts are in the folder now
        return get_first_address(work)
    if path.suffix.lower() not in SPECS:
        return open_or_ask(
            desk, lambda _connect: desk.start_from_table(str(path), sheet=sheet, header=header)
        )
    return open_or_ask(desk, lambda connect: _import_spec(desk, path, connect=connect))


def _import_spec(desk: Workspace, path: Path, *, connect: bool) -> OpenSpec:
    """Copy a spec that was uploaded into the folder of the project, and go on with it."""
    spec = desk.resolve_path(path.name)
    try:
        with create_private(spec) as file:
            file.write(path.read_bytes())
    except FileExistsError:
        raise IncrowdError(
            f"'{path.name}' already exists in the folder. Open it there, or rename it."
        ) from None
    try:
        return desk.open_spec(spec, connect=connect)
    except BaseException:
        spec.unlink()
        raise


def _open_demo_table(desk: Workspace, kind: str) -> OpenSpec:
    """Return the demo table with the spec that comes with it, as files of the project."""
    if kind not in SAMPLES:
        raise IncrowdError(f"There is no sample '{kind}'. Choose one of {', '.join(SAMPLES)}.")
    path, spec = desk.resolve_path(f"{kind}.parquet"), desk.resolve_path(f"{kind}.yaml")
    if not path.exists():
        make_demo_table(kind).write(path)
    if not spec.exists():
        write_private(spec, SAMPLES[kind], new=True)
    return desk.open_spec(spec)


def _redirect_to(address: str) -> Response:
    return RedirectResponse(address, status_code=303)
