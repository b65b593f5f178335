"""Metadata of the release: one screen of questions for catalogs and registries, and the formats.

Nothing on this page is read from the table. An answer is what the curator asserts; an open
question stays "not stated" in every file.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from incrowd.curate.deposit import FORMATS
from incrowd.curate.questionnaire import list_about_changes, list_about_questions
from incrowd.errors import IncrowdError
from incrowd.spec.about import METADATA_FORMATS
from incrowd.studio.server import Form, Studio, make_edit_route


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of the page, and of what its forms change."""

    def show_page(request: Request) -> Response:
        work = studio.get_open_spec(request)
        questions = list_about_questions(work.file)
        release = work.file.spec.release
        return studio.render_page(
            "metadata.html",
            room="publish",
            work=work,
            record=[question for question in questions if question.in_record],
            catalog=[question for question in questions if not question.in_record],
            formats=FORMATS,
            chosen=work.file.spec.describe,
            is_private=release is None or not release.method.startswith("k-"),
        )

    def set_answers(request: Request, form: Form) -> Response:
        work = studio.get_open_spec(request)
        entries = {question.entry for question in list_about_questions(work.file)}
        answers = {name: text for name, text in form.items() if name in entries}
        changed = {
            question.entry: answers[question.entry]
            for question in list_about_questions(work.file)
            if question.entry in answers
            and answers[question.entry].strip() != (question.answer if question.is_stated else "")
        }
        work.apply_changes(list_about_changes(work.file, changed))
        return RedirectResponse(f"/desk/{work.name}/metadata", status_code=303)

    def set_formats(request: Request, form: Form) -> Response:
        work = studio.get_open_spec(request)
        names = form.get_all("format")
        unknown = sorted({*names} - {*METADATA_FORMATS})
        if unknown:
            raise IncrowdError(f"There is no format '{unknown[0]}'.")
        chosen = [name for name in METADATA_FORMATS if name in names]
        work.apply_changes({("describe",): chosen or None})
        return RedirectResponse(f"/desk/{work.name}/metadata", status_code=303)

    return [
        Route("/desk/{work}/metadata", show_page),
        make_edit_route(studio, "/desk/{work}/metadata/answers", set_answers, show_page),
        make_edit_route(studio, "/desk/{work}/metadata/formats", set_formats, show_page),
    ]
