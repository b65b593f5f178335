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

from incrowd.cli.guarantee import is_reassuring, promise, strength_text
from incrowd.errors import IncrowdError
from incrowd.findings import Finding
from incrowd.release.certificate import FILE
from incrowd.release.verify import read_certificate
from incrowd.studio.archive import place_below, unpack_release
from incrowd.studio.desk import Desk
from incrowd.studio.rooms.data import answer
from incrowd.studio.server import Form, MissingError, Studio, form_route, land
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
    """The page, and ways to hand a release in."""

    def page(request: Request) -> Response:
        desk, name = studio.desk(request), request.query_params.get("of", "")
        asked = desk.kept.get(("verdict", name))
        if name and asked is None:
            raise MissingError("There is no such release on this desk. Hand it in again.")
        verdict = answer(asked[1], 0.5) if asked else None
        return studio.page(
            "verify.html", room="verify", verdict=verdict,
            title=asked[0] if asked else "", waiting=asked is not None and verdict is None,
            releases=[path.name for path in releases(desk.home)],
        )  # fmt: skip

    def named(request: Request, form: Form) -> Response:
        desk, given = studio.desk(request), form.get("folder", "").strip()
        if not given:
            raise IncrowdError("Name the folder of a release, or a zip file.")
        path, key, made = desk.inside(given), form.get("key", "").strip(), []
        if path.is_file():
            path = _unpack(desk, path)
            made.append(path)
        elif not path.is_dir():
            raise IncrowdError(f"There is no folder '{given}'.")
        return _to(_ask(studio, desk, path, given, key, made))

    async def landed(request: Request) -> Response:
        """One file of a folder, or a zip file."""
        desk, name = studio.desk(request), request.query_params.get("name", "")
        mark = request.query_params.get("set", "")
        if not re.fullmatch(r"[a-z0-9]{8,40}", mark):
            raise IncrowdError("A set of files has a name of letters and digits.")
        folder = desk.kept.setdefault(("set", mark), desk.room())
        target = place_below(folder, name)
        await land(request, target)
        return JSONResponse({"go": ""})

    def complete(request: Request, form: Form) -> Response:
        """All files of a set are there."""
        desk = studio.desk(request)
        folder: Path | None = desk.kept.pop(("set", form.get("set", "")), None)
        if folder is None:
            raise MissingError("There are no such files on this desk. Hand them in again.")
        files, made = list(folder.iterdir()), [folder]
        title = files[0].name if len(files) == 1 else folder.name
        try:
            if len(files) == 1 and files[0].is_file():
                made.append(_unpack(desk, files[0]))
            return _to(_ask(studio, desk, made[-1], title, form.get("key", "").strip(), made))
        except BaseException:
            _remove(made)
            raise

    return [
        Route("/verify", page),
        form_route("/verify/folder", named),
        Route("/verify/file", landed, methods=["PUT"]),
        form_route("/verify/set", complete),
    ]


def releases(home: Path) -> list[Path]:
    """The folders of the project that hold a release; links to folders elsewhere are none."""
    found = (path.parent for path in home.glob(f"*/{FILE}"))
    return sorted(folder for folder in found if not folder.is_symlink())


def _to(name: str) -> Response:
    return RedirectResponse(f"/verify?of={name}", status_code=303)


def _ask(studio: Studio, desk: Desk, folder: Path, title: str, key: str, made: list[Path]) -> str:
    """Have a release verified; the folders that were made for it go when that is done."""
    name = secrets.token_hex(8)
    asked = studio.hands.ask(judged, str(_inner(folder)), key or None)
    asked.add_done_callback(lambda _verdict: _remove(made))
    desk.kept["verdict", name] = Path(title).name, asked
    return name


def _remove(folders: list[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def judged(folder: str, key: str | None) -> Verdict:
    """What `incrowd verify` says of a folder."""
    found = verify(folder, key=key)
    if found:
        return Verdict(tuple(found))
    certificate = read_certificate(Path(folder))
    signed = certificate.signature
    return Verdict(
        (), promise(certificate), tuple(one.text for one in certificate.guarantee.statement),
        signed.public_key if signed else None,
        sum(table.release.rows for table in certificate.tables),
        certificate.randomness != "system",
        is_reassuring(certificate),
        strength_text(certificate),
    )  # fmt: skip


def _inner(folder: Path) -> Path:
    """The folder that holds the certificate: this one, or the only one in it."""
    inside = list(folder.iterdir())
    if not (folder / FILE).exists() and len(inside) == 1 and inside[0].is_dir():
        return inside[0]
    return folder


def _unpack(desk: Desk, path: Path) -> Path:
    """Unpack a zip file into a private folder."""
    folder = desk.room()
    unpack_release(path, folder)
    return folder
