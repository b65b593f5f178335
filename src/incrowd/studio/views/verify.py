"""Check a release from anybody: a folder or a zip file in, green or red out."""

from __future__ import annotations

import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from incrowd.cli.guarantee import describe_guarantee, format_strength, is_reassuring
from incrowd.errors import IncrowdError
from incrowd.findings import Finding
from incrowd.release.certificate import FILE
from incrowd.release.verify import read_certificate
from incrowd.studio.archive import make_path_below, unpack_release
from incrowd.studio.server import Form, PageNotFoundError, Studio, make_form_route, save_upload
from incrowd.studio.views.data import wait_for_answer
from incrowd.studio.workspace import Workspace
from incrowd.verification import verify


@dataclass(frozen=True)
class Verdict:
    """What is wrong with a release; if nothing is, what it promises and who signed it."""

    findings: tuple[Finding, ...]
    promise: str = ""
    statement: tuple[str, ...] = ()
    signed: str | None = None
    rows: int = 0
    seeded: bool = False
    reassuring: bool = False
    strength: str = ""


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of the page, and of the ways to hand a release in."""

    def show_page(request: Request) -> Response:
        desk, name = studio.get_workspace(request), request.query_params.get("of", "")
        page = desk.kept.get(("verdict", name))
        if name and page is None:
            raise PageNotFoundError("This result has expired. Choose the release again.")
        verdict = wait_for_answer(page[1], 0.5) if page else None
        return studio.render_page(
            "verify.html", room="verify", verdict=verdict,
            title=page[0] if page else "", waiting=page is not None and verdict is None,
            releases=[path.name for path in list_releases(desk.home)],
        )  # fmt: skip

    def verify_named(request: Request, form: Form) -> Response:
        desk, response = studio.get_workspace(request), form.get("folder", "").strip()
        if not response:
            raise IncrowdError("Enter the folder of a release or a zip file.")
        path, key, temporary_folders = desk.resolve_path(response), form.get("key", "").strip(), []
        if path.is_file():
            path = _unpack_privately(desk, path)
            temporary_folders.append(path)
        elif not path.is_dir():
            raise IncrowdError(f"There is no folder '{response}'.")
        return _redirect_to_verdict(
            _ask_for_verdict(studio, desk, path, response, key, temporary_folders)
        )

    async def receive_file(request: Request) -> Response:
        """One file of a folder, or a zip file."""
        desk, name = studio.get_workspace(request), request.query_params.get("name", "")
        mark = request.query_params.get("set", "")
        if not re.fullmatch(r"[a-z0-9]{8,40}", mark):
            raise IncrowdError("The name of the upload must consist of letters and digits.")
        folder = desk.kept.setdefault(("set", mark), desk.make_private_folder())
        target = make_path_below(folder, name)
        await save_upload(request, target)
        return JSONResponse({"go": ""})

    def verify_received(request: Request, form: Form) -> Response:
        """All files of a set are there."""
        desk = studio.get_workspace(request)
        folder: Path | None = desk.kept.pop(("set", form.get("set", "")), None)
        if folder is None:
            raise PageNotFoundError("This upload has expired. Choose the files again.")
        files, temporary_folders = list(folder.iterdir()), [folder]
        title = files[0].name if len(files) == 1 else folder.name
        try:
            if len(files) == 1 and files[0].is_file():
                temporary_folders.append(_unpack_privately(desk, files[0]))
            return _redirect_to_verdict(
                _ask_for_verdict(
                    studio,
                    desk,
                    temporary_folders[-1],
                    title,
                    form.get("key", "").strip(),
                    temporary_folders,
                )
            )
        except BaseException:
            _remove_folders(temporary_folders)
            raise

    return [
        Route("/verify", show_page),
        make_form_route("/verify/folder", verify_named),
        Route("/verify/file", receive_file, methods=["PUT"]),
        make_form_route("/verify/set", verify_received),
    ]


def list_releases(home: Path) -> list[Path]:
    """Return the folders of the project that hold a release, without links."""
    releases = (path.parent for path in home.glob(f"*/{FILE}"))
    return sorted(folder for folder in releases if not folder.is_symlink())


def _redirect_to_verdict(name: str) -> Response:
    return RedirectResponse(f"/verify?of={name}", status_code=303)


def _ask_for_verdict(
    studio: Studio,
    desk: Workspace,
    folder: Path,
    title: str,
    key: str,
    temporary_folders: list[Path],
) -> str:
    """Have a release verified; the folders that were made for it go when that is done."""
    name = secrets.token_hex(8)
    request = studio.hands.submit_task(
        verify_folder, str(_find_release_folder(folder)), key or None
    )
    request.add_done_callback(lambda _verdict: _remove_folders(temporary_folders))
    desk.kept["verdict", name] = Path(title).name, request
    return name


def _remove_folders(folders: list[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def verify_folder(folder: str, key: str | None) -> Verdict:
    """Return what `incrowd verify` says of a folder."""
    findings = verify(folder, key=key)
    if findings:
        return Verdict(tuple(findings))
    certificate = read_certificate(Path(folder))
    signed = certificate.signature
    return Verdict(
        (),
        describe_guarantee(certificate),
        tuple(sentence.text for sentence in certificate.guarantee.statement),
        signed.public_key if signed else None,
        sum(table.release.rows for table in certificate.tables),
        certificate.randomness != "system",
        is_reassuring(certificate),
        format_strength(certificate),
    )


def _find_release_folder(folder: Path) -> Path:
    """Return the folder that holds the certificate: this one, or the only one in it."""
    inside = list(folder.iterdir())
    if not (folder / FILE).exists() and len(inside) == 1 and inside[0].is_dir():
        return inside[0]
    return folder


def _unpack_privately(desk: Workspace, path: Path) -> Path:
    """Unpack a zip file into a private folder."""
    folder = desk.make_private_folder()
    unpack_release(path, folder)
    return folder
