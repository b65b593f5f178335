"""One release of the folder: report, certificate, README, data, and what it was made by."""

from __future__ import annotations

import difflib
import hashlib
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from incrowd.engine.source import open_table
from incrowd.errors import FindingError, IncrowdError
from incrowd.privacy.events import describe_event
from incrowd.release.certificate import PAGE, README
from incrowd.release.keys import generate_key_pair
from incrowd.release.ledger import Ledger
from incrowd.studio.archive import open_regular_file
from incrowd.studio.private_files import create_private
from incrowd.studio.projects import PastRelease, list_past_releases
from incrowd.studio.server import Form, PageNotFoundError, Studio, make_form_route
from incrowd.studio.views.publish import REPORT_POLICY, send_zip
from incrowd.studio.views.verify import list_releases
from incrowd.verification import verify

_MOST_LINES = 2_000  # of a difference that is shown
_BLOCK = 1 << 20
_NEW_KEY = "signing-key.pem"
_PRIVATE_MARK = b"-----BEGIN PRIVATE KEY-----"


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of the page and of the files of a release."""

    def show_page(request: Request) -> Response:
        release, others = find_release(studio.home, request)
        return studio.render_page(
            "release.html", room="start", release=release, others=others,
            keys=list_signing_keys(studio.home), new_key=_NEW_KEY,
            can_calibrate=len(release.certificate.tables) == 1
            and release.certificate.tabulation is None,
            has_tables=release.certificate.tabulation is not None,
            readme=_read_text(release, README), differences=list_differences(studio.home, release,
            others), entry=find_entry(studio.home, release), **_describe_source(release),
        )  # fmt: skip

    def show_report(request: Request) -> Response:
        release, _ = find_release(studio.home, request)
        if not release.has_report:
            raise PageNotFoundError(f"The private report of '{release.name}' is not in the folder.")
        return _show_document(release.report.read_text(encoding="utf-8"))

    def show_certificate(request: Request) -> Response:
        release, _ = find_release(studio.home, request)
        return _show_document(_read_text(release, PAGE))

    def send_release(request: Request) -> Response:
        release, _ = find_release(studio.home, request)
        return send_zip(release.folder, studio.get_workspace(request).make_private_folder())

    def sign_named(request: Request, form: Form) -> Response:
        release, _ = find_release(studio.home, request)
        key = _take_signing_key(studio.home, form.get("key", ""))
        studio.hands.submit_task(_sign_folder, str(release.folder), str(key)).result()
        of = quote(release.name)
        return RedirectResponse(f"/release?of={of}", status_code=303)

    def send_csv(request: Request) -> Response:
        release, _ = find_release(studio.home, request)
        room = studio.get_workspace(request).make_private_folder()
        try:
            return _send_csv(release, request.query_params.get("file", ""), room)
        except BaseException:
            shutil.rmtree(room, ignore_errors=True)
            raise

    return [
        Route("/release", show_page),
        Route("/release/report", show_report),
        Route("/release/certificate", show_certificate),
        Route("/release/release.zip", send_release),
        make_form_route("/release/sign", sign_named),
        Route("/release/data.csv", send_csv),
    ]


def find_release(home: Path, request: Request) -> tuple[PastRelease, list[PastRelease]]:
    """Return the release that an address names, and the others of the same spec.

    Only folders that lie in that of the project are found, and no links.
    """
    name = request.query_params.get("of", "")
    releases = list_past_releases(list_releases(home))
    named = next((release for release in releases if release.name == name), None)
    if named is None:
        raise PageNotFoundError(f"This folder has no release '{name}'.")
    others = [
        release for release in releases
        if release is not named and release.spec_file and release.spec_file == named.spec_file
    ]  # fmt: skip
    return named, others


def list_signing_keys(home: Path) -> list[str]:
    """Return the private keys of the project's folder, unencrypted PEM files, by their names."""
    return sorted(
        path.name
        for path in home.glob("*.pem")
        if path.is_file() and not path.is_symlink() and _is_private_key(path)
    )


def _is_private_key(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_PRIVATE_MARK)) == _PRIVATE_MARK
    except OSError:
        return False


def _take_signing_key(home: Path, name: str) -> Path:
    """Return a key of the folder by its name; make one, with its public half, if none is named."""
    if name:
        if name not in list_signing_keys(home):
            raise IncrowdError(f"This folder has no private key '{name}'.")
        return home / name
    path = home / _NEW_KEY
    private, public = generate_key_pair()
    created: list[Path] = []
    try:
        for target, content in ((path, private), (path.with_suffix(".pub"), public)):
            with create_private(target) as file:
                created.append(target)
                file.write(content)
    except FileExistsError as error:
        for target in created:
            target.unlink()
        raise IncrowdError(f"'{error.filename}' exists already. Choose it, or rename it.") from None
    return path


def _sign_folder(folder: str, key: str) -> None:
    """Sign a release that verifies; run in another process, which reads all of its data."""
    from incrowd.release.sign import sign_release

    findings = verify(folder)
    if findings:
        raise FindingError(findings[0])
    sign_release(Path(folder), Path(key))


def _describe_source(release: PastRelease) -> dict[str, Any]:
    signature = release.certificate.signature
    return {
        "key": signature.public_key if signature else "",
        "files": [table.release.file for table in release.certificate.tables],
    }


def _show_document(text: str) -> Response:
    """Answer with a page that has its own style, and runs nothing."""
    return HTMLResponse(text, headers={"Content-Security-Policy": REPORT_POLICY})


def _read_text(release: PastRelease, name: str) -> str:
    """Return a page of a release; what is a link is not read."""
    with open_regular_file(release.folder, name) as file:
        return file.read().decode("utf-8", errors="replace")


def _send_csv(release: PastRelease, file: str, room: Path) -> Response:
    """Answer with one file of a release as CSV, if it is the file that was certified."""
    table = next((x for x in release.certificate.tables if x.release.file == file), None)
    if table is None:
        raise PageNotFoundError(f"The release '{release.name}' has no file '{file}'.")
    certified, digest = room / file, hashlib.sha256()
    with open_regular_file(release.folder, file) as source, certified.open("wb") as target:
        while part := source.read(_BLOCK):
            digest.update(part)
            target.write(part)
    if digest.hexdigest() != table.release.sha256:
        raise IncrowdError(
            f"The file '{file}' is not the one that was certified. Verify '{release.name}'."
        )
    path = certified
    if certified.suffix != ".csv":
        path = certified.with_suffix(".csv")
        open_table(certified).write(path)
    return FileResponse(
        path, filename=f"{release.name}-{path.name}", media_type="text/csv; charset=utf-8",
        background=BackgroundTask(shutil.rmtree, room, ignore_errors=True),
    )  # fmt: skip


def list_differences(
    home: Path, release: PastRelease, others: list[PastRelease]
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return how the spec of a release differs from the file now, and from that of other releases.

    Each has a title, and lines with their kind: ``added``, ``removed``, ``place`` or empty.
    """
    if not release.spec:
        return []
    compared = []
    path = home / release.spec_file
    if path.is_file() and not path.is_symlink():
        text = path.read_text(encoding="utf-8", errors="replace")
        compared.append((f"{release.spec_file} as it is now", release.spec, text))
    earlier = next((x for x in others if _is_before(x, release)), None)
    if earlier is not None:
        compared.append((f"the release before it, {earlier.name}", earlier.spec, release.spec))
    return [(title, compare_specs(before, after)) for title, before, after in compared]


def _is_before(other: PastRelease, release: PastRelease) -> bool:
    """Return whether a release was made before another one."""
    times = [(x.certificate.date, (x.folder / PAGE).stat().st_mtime_ns) for x in (other, release)]
    return times[0] < times[1]


def compare_specs(before: str, after: str) -> list[tuple[str, str]]:
    """Return the lines in which two specs differ, with their surroundings."""
    kinds = {"+": "added", "-": "removed", "@": "place"}
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))
    return [(kinds.get(line[:1], ""), line) for line in lines[2 : _MOST_LINES + 2]]


def find_entry(home: Path, release: PastRelease) -> tuple[str, str, str] | None:
    """Return the ledger entry that counts a release: ledger, day and event; None if there is none.

    The entry is known by the number of releases that the ledger had then.
    """
    if release.ledger is None or release.entry is None:
        return None
    path = home / Path(release.ledger).name
    if not path.is_file() or path.is_symlink():
        return release.ledger, "", "The ledger is not in this folder."
    number = 0
    for spend in Ledger(path).spends():
        number += spend.used
        if number >= release.entry:
            return path.name, spend.day, describe_event(spend.event)
    return path.name, "", "The ledger has no such entry. It may be another one of the same name."
