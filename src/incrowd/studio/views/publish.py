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

from incrowd.cli.guarantee import describe_guarantee, format_strength, is_reassuring
from incrowd.curate.check import find_refusals
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, Severity
from incrowd.privacy.events import describe_event, parse_event
from incrowd.release.verify import read_certificate
from incrowd.spec.model import Confirmable, PersonId
from incrowd.spec.release import SafeSpec
from incrowd.studio.archive import pack_release
from incrowd.studio.open_spec import OpenSpec, StaleError
from incrowd.studio.reader_strip import make_reader_strip
from incrowd.studio.server import Form, PageNotFoundError, Studio, make_edit_route, make_form_route
from incrowd.studio.views.data import get_findings, list_findings, make_snapshot
from incrowd.studio.worker_pool import PublishJob
from incrowd.studio.workspace import Workspace

WORDS = {  # the steps of a release in their order
    "begin": "Start", "open": "Open the table", "count": "Count its rows",
    "book": "Book the privacy loss in the ledger", "slice": "Choose slices",
    "search": "Search for a scheme", "recode": "Generalize",
    "synthesize": "Measure tables and fit a model", "tabulate": "Measure the tables",
    "draw": "Draw at random", "write": "Write the files", "measure": "Measure what is lost",
    "attack": "Try attacks", "report": "Draw the report", "appear": "Finish",
}  # fmt: skip
_OF_METHOD = {  # steps that belong to some methods
    "safe": ("search", "draw"), "synthetic": ("synthesize", "draw"), "tables": ("tabulate", "draw"),
    "k-anonymity": ("search", "recode"), "k-epsilon": ("search", "draw"),
}  # fmt: skip
_OF_SOME = ("begin", "slice", "search", "recode", "synthesize", "tabulate", "draw", "appear")
ENTRIES = {  # what can be unconfirmed, and the page where it is confirmed
    "role": ("role", "data"), "written": ("value format", "data"),
    "hierarchy": ("hierarchy", "hierarchies"), "other": ("label outside the domain", "hierarchies"),
    "precision": ("precision", "privacy"), "bounds": ("bounds", "privacy"),
    "function_of": ("columns that determine it", "confirm"),
}  # fmt: skip
# A report is one page with its own style, and runs nothing.
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of the page, of its job, and of the files."""

    def show_page(request: Request) -> Response:
        work = studio.get_open_spec(request)
        job: PublishJob | None = work.kept.get("job")
        if job is not None:
            return studio.render_page(
                "published.html" if job.ended and not job.problem else "job.html",
                room="publish", work=work, job=job, steps=list_steps(work, job), words=WORDS,
                listed=job.output.parent == studio.home,
                **_make_result_view(job),
            )  # fmt: skip
        findings = get_findings(studio, work)
        wrong, page = _find_obstacles(work, findings)
        return studio.render_page(
            "publish.html",
            room="publish",
            work=work,
            waiting=findings is None,
            strip=make_reader_strip(studio.hands, work),
            wrong=wrong,
            asked=page,
            entries=ENTRIES,
            ledger=work.file.spec.ledger,
            proposed=_propose_folder_name(studio.get_workspace(request), work),
            summary=_summarize_release(work),
            warnings=[
                finding
                for finding in list_findings(findings)
                if finding.severity is Severity.WARNING
            ],
        )

    def start_job(request: Request, form: Form) -> Response:
        work, desk = studio.get_open_spec(request), studio.get_workspace(request)
        job: PublishJob | None = work.kept.get("job")
        if job is not None and not job.ended:
            raise IncrowdError("A release of this table is in progress. Wait, or cancel it.")
        if job is not None:
            raise StaleError(
                "Nothing was published: another release was made in the meantime. Review that "
                "release first."
            )
        wrong, unconfirmed = _find_obstacles(work, get_findings(studio, work))
        if wrong or unconfirmed:
            first = wrong[0].message if wrong else "Confirm the listed entries first."
            raise IncrowdError(f"Nothing was published. {first}")
        new_job = PublishJob(
            _check_output_folder(desk, form.get("name", "")), ledger=work.file.spec.ledger
        )
        new_job.start(make_snapshot(work), str(new_job.output))
        work.kept["job"] = new_job
        return _redirect_to_page(work)

    def cancel_job(request: Request, _form: Form) -> Response:
        work = studio.get_open_spec(request)
        job: PublishJob | None = work.kept.get("job")
        if job is not None:
            job.cancel()
        return _redirect_to_page(work)

    def discard_job(request: Request, _form: Form) -> Response:
        work = studio.get_open_spec(request)
        job: PublishJob | None = work.kept.get("job")
        if job is not None and job.ended:
            work.kept["job"] = None
        return _redirect_to_page(work)

    def show_report(request: Request) -> Response:
        text = (
            _require_finished_job(studio.get_open_spec(request)).curator / "report.html"
        ).read_text(encoding="utf-8")
        return HTMLResponse(text, headers={"Content-Security-Policy": REPORT_POLICY})

    def show_certificate(request: Request) -> Response:
        path = _require_finished_job(studio.get_open_spec(request)).output / "certificate.html"
        policy = {"Content-Security-Policy": REPORT_POLICY}
        return HTMLResponse(path.read_text(encoding="utf-8"), headers=policy)

    def send_release(request: Request) -> Response:
        output = _require_finished_job(studio.get_open_spec(request)).output
        return send_zip(output, studio.get_workspace(request).make_private_folder())

    return [
        Route("/desk/{work}/publish", show_page),
        make_edit_route(studio, "/desk/{work}/publish/begin", start_job, show_page),
        make_form_route("/desk/{work}/publish/cancel", cancel_job),
        make_form_route("/desk/{work}/publish/another", discard_job),
        Route("/desk/{work}/report", show_report),
        Route("/desk/{work}/certificate", show_certificate),
        Route("/desk/{work}/release.zip", send_release),
    ]


def _redirect_to_page(work: OpenSpec) -> Response:
    return RedirectResponse(f"/desk/{work.name}/publish", status_code=303)


def list_steps(work: OpenSpec, job: PublishJob) -> list[str]:
    """Return the steps of a release in their order: those of its method, and where it is now."""
    release = work.file.spec.release
    names = set(_OF_METHOD.get(release.method, ())) if release is not None else set[str]()
    if isinstance(release, SafeSpec) and release.slices:
        names.add("slice")
    return [
        step for step in WORDS
        if step in names or step == job.step != "begin"
        or (step not in _OF_SOME and (step != "book" or job.ledger is not None))
    ]  # fmt: skip


def _find_obstacles(
    work: OpenSpec, findings: list[Finding] | None
) -> tuple[list[Finding], dict[str, tuple[Confirmable, ...]]]:
    """Return what must be corrected, and what must be confirmed, before publishing."""
    wrong = [finding for finding in list_findings(findings) if finding.severity is Severity.ERROR]
    unconfirmed_entries = work.file.spec.unconfirmed_entries
    if not unconfirmed_entries:
        wrong += [
            refusal for refusal in find_refusals(work.file) if refusal.severity is Severity.ERROR
        ]
    return wrong, unconfirmed_entries


def _summarize_release(work: OpenSpec) -> list[tuple[str, tuple[str, ...]]]:
    """Summarize what is about to be released: a name, and one or several things."""
    spec = work.file.spec
    gone = spec.columns_with_role("identifier", "drop")
    published = tuple(name for name in spec.columns if name not in gone)
    unit = spec.unit
    people = (
        f"one person, identified by '{unit.id}'"
        if isinstance(unit, PersonId)
        else "one row per person"
    )
    lines = [("Columns published", published or ("none",)), ("Columns dropped", gone or ("none",)),
             ("Unit", (people,))]  # fmt: skip
    release = spec.release
    if release is None:
        return lines
    parameters = {
        sign: f"{value:g}" for name, sign in (("k", "k"), ("epsilon", "ε"), ("delta", "δ"))
        if isinstance(value := getattr(release, name, None), int | float)
    }  # fmt: skip
    settings = "".join(f", {name} = {text}" for name, text in parameters.items())
    return [("Method", (f"{release.method}{settings}",)), *lines]


def _propose_folder_name(desk: Workspace, work: OpenSpec) -> str:
    """Return a name for the folder of the release that is free."""
    stem = re.sub(r"[^\w.-]+", "-", work.title).strip("-.") or "table"
    name, number = f"{stem}-release", 1
    while (desk.home / name).exists():
        number += 1
        name = f"{stem}-release-{number}"
    return name


def _check_output_folder(desk: Workspace, name: str) -> Path:
    """Return the folder of a release, below that of the project."""
    if not name.strip():
        raise IncrowdError("Name a folder for the release.")
    path = desk.resolve_path(name.strip())
    if path.exists():
        raise IncrowdError(f"'{name}' already exists. Name another folder.")
    return path


def _require_finished_job(work: OpenSpec) -> PublishJob:
    job: PublishJob | None = work.kept.get("job")
    if job is None or not job.ended or job.problem:
        raise PageNotFoundError("This table has no release yet.")
    return job


def _make_result_view(job: PublishJob) -> dict[str, Any]:
    if not job.ended or job.problem:
        return {}
    certificate = read_certificate(job.output)
    return {
        "certificate": certificate,
        "promise": describe_guarantee(certificate),
        "reassuring": is_reassuring(certificate),
        "view": job.result["view"],
        "strength": format_strength(certificate),
        "public": _without(job.result["public"], "Guarantee"),
        "details": _without(job.result["details"], "Meaning"),
        "private": _without(job.result["private"], "Report", "Ledger"),
        "findings": job.result["findings"],
        "entries": [describe_event(parse_event(event)) for event in certificate.events]
        if job.booked
        else [],
    }


def _without(facts: list[tuple[str, str]], *names: str) -> list[tuple[str, str]]:
    """Return facts but for those that the page shows elsewhere."""
    return [fact for fact in facts if fact[0] not in names]


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
