"""Make the release: what is still in the way, progress, and what came of it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from incrowd.cli.guarantee import is_reassuring, promise, strength_text
from incrowd.cli.terminal import DOING
from incrowd.curate.check import foreseen
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, Severity
from incrowd.privacy.events import from_dict, words
from incrowd.release.verify import read_certificate
from incrowd.spec.model import Confirmable, PersonId
from incrowd.studio.archive import pack_release
from incrowd.studio.desk import Desk
from incrowd.studio.hands import Job
from incrowd.studio.rooms.data import findings, list_findings, subject
from incrowd.studio.server import Form, MissingError, Studio, edit_route, form_route
from incrowd.studio.work import StaleError, Work

STEPS = ("open", "count", "book", "search", "draw", "write", "measure", "attack", "report")
WORDS = {**DOING, "begin": "starting", "open": "opening the table"}
ENTRIES = {  # what can be unconfirmed, and the page where it is confirmed
    "role": ("role", "data"), "written": ("value format", "data"),
    "hierarchy": ("hierarchy", "hierarchies"), "other": ("label outside the domain", "hierarchies"),
    "precision": ("precision", "privacy"), "bounds": ("bounds", "privacy"),
}  # fmt: skip
# A report is one page with its own style, and runs nothing.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


def routes(studio: Studio) -> list[BaseRoute]:
    """The page, its job, and what is handed out."""

    def page(request: Request) -> Response:
        work = studio.work(request)
        job: Job | None = work.kept.get("job")
        if job is not None:
            return studio.page(
            "published.html" if job.ended and not job.problem else "job.html",
                room="publish", work=work, job=job, steps=STEPS, words=WORDS,
                **_result(job),
            )  # fmt: skip
        found = findings(studio, work)
        wrong, asked = _in_the_way(work, found)
        return studio.page(
            "publish.html", room="publish", work=work, waiting=found is None,
            wrong=wrong, asked=asked, entries=ENTRIES, ledger=work.file.spec.ledger,
            proposed=_proposed(studio.desk(request), work), summary=_summary(work),
            warnings=[one for one in list_findings(found) if one.severity is Severity.WARNING],
        )  # fmt: skip

    def begin(request: Request, form: Form) -> Response:
        work, desk = studio.work(request), studio.desk(request)
        job: Job | None = work.kept.get("job")
        if job is not None and not job.ended:
            raise IncrowdError("A release of this table is in progress. Wait, or cancel it.")
        if job is not None:
            raise StaleError(
                "Nothing was published: another release was made in the meantime. Review that "
                "release first."
            )
        wrong, asked = _in_the_way(work, findings(studio, work))
        if wrong or asked:
            first = wrong[0].message if wrong else "Confirm the listed entries first."
            raise IncrowdError(f"Nothing was published. {first}")
        made = Job(_output(desk, form.get("name", "")), ledger=work.file.spec.ledger)
        made.begin(subject(work), str(made.output))
        work.kept["job"] = made
        return _again(work)

    def cancel(request: Request, _form: Form) -> Response:
        work = studio.work(request)
        job: Job | None = work.kept.get("job")
        if job is not None:
            job.cancel()
        return _again(work)

    def another(request: Request, _form: Form) -> Response:
        work = studio.work(request)
        job: Job | None = work.kept.get("job")
        if job is not None and job.ended:
            work.kept["job"] = None
        return _again(work)

    def report(request: Request) -> Response:
        text = (_done(studio.work(request)).curator / "report.html").read_text(encoding="utf-8")
        return HTMLResponse(text, headers={"Content-Security-Policy": REPORT_POLICY})

    def certified(request: Request) -> Response:
        path = _done(studio.work(request)).output / "certificate.html"
        policy = {"Content-Security-Policy": REPORT_POLICY}
        return HTMLResponse(path.read_text(encoding="utf-8"), headers=policy)

    def zipped(request: Request) -> Response:
        output = _done(studio.work(request)).output
        return send_zip(output, studio.desk(request).room())

    return [
        Route("/desk/{work}/publish", page),
        edit_route(studio, "/desk/{work}/publish/begin", begin, page),
        form_route("/desk/{work}/publish/cancel", cancel),
        form_route("/desk/{work}/publish/another", another),
        Route("/desk/{work}/report", report),
        Route("/desk/{work}/certificate", certified),
        Route("/desk/{work}/release.zip", zipped),
    ]


def _again(work: Work) -> Response:
    return RedirectResponse(f"/desk/{work.name}/publish", status_code=303)


def _in_the_way(
    work: Work, found: list[Finding] | None
) -> tuple[list[Finding], dict[str, tuple[Confirmable, ...]]]:
    """What must be put right, and what must be confirmed, before anything can be published."""
    wrong = [one for one in list_findings(found) if one.severity is Severity.ERROR]
    asked = work.file.spec.unconfirmed
    if not asked:
        wrong += [one for one in foreseen(work.file) if one.severity is Severity.ERROR]
    return wrong, asked


def _summary(work: Work) -> list[tuple[str, tuple[str, ...]]]:
    """What is about to be released: a name, and one or several things."""
    spec = work.file.spec
    gone = spec.with_role("identifier", "drop")
    kept = tuple(name for name in spec.columns if name not in gone)
    unit = spec.unit
    people = (
        f"one person, identified by '{unit.id}'"
        if isinstance(unit, PersonId)
        else "one row per person"
    )
    lines = [("Columns published", kept or ("none",)), ("Columns dropped", gone or ("none",)),
             ("Unit", (people,))]  # fmt: skip
    release = spec.release
    if release is None:
        return lines
    given = {
        sign: f"{value:g}" for name, sign in (("k", "k"), ("epsilon", "ε"), ("delta", "δ"))
        if isinstance(value := getattr(release, name, None), int | float)
    }  # fmt: skip
    settings = "".join(f", {name} = {text}" for name, text in given.items())
    return [("Method", (f"{release.method}{settings}",)), *lines]


def _proposed(desk: Desk, work: Work) -> str:
    """A name for the folder of the release that is free."""
    stem = re.sub(r"[^\w.-]+", "-", work.title).strip("-.") or "table"
    name, number = f"{stem}-release", 1
    while (desk.home / name).exists():
        number += 1
        name = f"{stem}-release-{number}"
    return name


def _output(desk: Desk, name: str) -> Path:
    """The folder of a release, below that of the project."""
    if not name.strip():
        raise IncrowdError("Name a folder for the release.")
    path = desk.inside(name.strip())
    if path.exists():
        raise IncrowdError(f"'{name}' already exists. Name another folder.")
    return path


def _done(work: Work) -> Job:
    job: Job | None = work.kept.get("job")
    if job is None or not job.ended or job.problem:
        raise MissingError("This table has no release yet.")
    return job


def _result(job: Job) -> dict[str, Any]:
    if not job.ended or job.problem:
        return {}
    certificate = read_certificate(job.output)
    return {
        "certificate": certificate, "promise": promise(certificate),
        "reassuring": is_reassuring(certificate), "strength": strength_text(certificate),
        "lines": job.result["lines"][2:], "findings": job.result["findings"],
        "entries": [words(from_dict(event)) for event in certificate.events] if job.booked else [],
    }  # fmt: skip


def send_zip(folder: Path, room: Path) -> Response:
    """Answer with a release, and nothing beside it, as one file; it is made for this answer.

    ``room`` is a private folder that it is made in, and that goes with it.
    """
    target = room / "release.zip"
    try:
        pack_release(folder, target)
    except BaseException:
        shutil.rmtree(room, ignore_errors=True)
        raise
    return FileResponse(
        target, filename=f"{folder.name}.zip", media_type="application/zip",
        background=BackgroundTask(shutil.rmtree, room, ignore_errors=True),
    )  # fmt: skip
