"""The hierarchies, column by column: how values may be coarsened, and what that looks like."""

from __future__ import annotations

import asyncio
import shutil
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from incrowd.codes.hierarchy import HierarchyError
from incrowd.curate.confirm import Question
from incrowd.curate.draft.hierarchy_kind import MOST_LISTED
from incrowd.curate.hierarchy_preview import HierarchyTree
from incrowd.errors import IncrowdError
from incrowd.findings import Severity
from incrowd.spec.arx import ArxRows, read_rows
from incrowd.spec.build import build_hierarchy, is_open
from incrowd.spec.hierarchies import Groups, Intervals
from incrowd.spec.model import Column
from incrowd.spec.problem import SpecError
from incrowd.studio import group_edits, hierarchy_edits, hierarchy_form
from incrowd.studio.open_spec import OpenSpec
from incrowd.studio.pictures import draw_ruler
from incrowd.studio.private_files import create_private
from incrowd.studio.server import Form, PageNotFoundError, Studio, make_edit_route
from incrowd.studio.views.data import get_findings, list_findings, make_snapshot, wait_for_answer
from incrowd.studio.worker_pool import SpecSnapshot

_MOST_FILE = 50_000_000  # bytes of a hierarchy that is uploaded
_MOMENT = 0.02  # seconds, after those that the page has waited for the check
_ENDINGS = (".csv", ".txt", ".tsv")


@dataclass(frozen=True)
class ColumnItem:
    """A column in the list: its kind of hierarchy, and whether somebody has to look at it."""

    name: str
    role: str
    kind: str
    confirm: bool
    wrong: bool
    link: str


@dataclass(frozen=True)
class RefusedChange:
    """What somebody has asked for that cannot be, and the reason; the stored values are shown."""

    problem: str


def routes(studio: Studio) -> list[BaseRoute]:
    """List the routes of the page and of its actions."""

    def show_page(request: Request, refused_change: RefusedChange | None = None) -> Response:
        work = studio.get_open_spec(request)
        names = work.file.spec.columns_with_role("quasi", "sensitive")
        if not names:
            return studio.render_page("hierarchies.html", room="hierarchies", work=work, items=[])
        name = _find_chosen_column(request, work, names)
        status = 422 if refused_change and request.headers.get("x-studio") != "part" else 200
        return studio.render_page(
            "hierarchies.html", room="hierarchies", status=status, work=work,
            **_make_view(studio, request, work, names, name, refused_change),
        )  # fmt: skip

    def change_hierarchy(request: Request, form: Form) -> Response:
        work = studio.get_open_spec(request)
        names = work.file.spec.columns_with_role("quasi", "sensitive")
        name = _find_chosen_column(request, work, names)
        try:
            level = _apply_form(work, name, form, request)
        except IncrowdError as error:
            return show_page(request, RefusedChange(_describe_error(error, name)))
        return RedirectResponse(_make_address(work, name, level), status_code=303)

    async def import_file(request: Request) -> Response:
        """Return a file in ARX form that is dropped on a column."""
        work, desk = studio.get_open_spec(request), studio.get_workspace(request)

        def import_rows(work: OpenSpec, name: str, path: Path) -> None:
            with work.lock:
                work.require_version(request.query_params.get("version", ""))
                hierarchy_edits.import_rows(work, name, read_rows(path), path.name)

        names = work.file.spec.columns_with_role("quasi", "sensitive")
        at = int(request.path_params["at"])
        if at >= len(names):
            raise PageNotFoundError("The spec has no such column.")
        target = desk.make_upload_path(request.query_params.get("name", ""))
        try:
            size = 0
            with create_private(target) as file:
                async for part in request.stream():
                    size += len(part)
                    if size > _MOST_FILE:
                        raise IncrowdError(f"The file is larger than {_MOST_FILE:,} bytes.")
                    file.write(part)
            await asyncio.to_thread(import_rows, work, names[at], target)
        finally:
            shutil.rmtree(target.parent, ignore_errors=True)
        return JSONResponse({"go": _make_address(work, names[at])})

    def export_file(request: Request) -> Response:
        work = studio.get_open_spec(request)
        name = _find_chosen_column(
            request, work, work.file.spec.columns_with_role("quasi", "sensitive")
        )
        public = request.query_params.get("public") == "yes"
        text = hierarchy_edits.export_hierarchy(work, name, public=public)
        file = quote(f"{work.title}_hierarchy_{name}.csv", safe="")
        return Response(
            text, media_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f"attachment; filename*=UTF-8''{file}"},
        )  # fmt: skip

    def _apply_form(work: OpenSpec, name: str, form: Form, request: Request) -> int | None:
        """Do what a form asks for; the level whose groups are to be shown next, if any."""
        match form.get("do", ""):
            case "kind":
                hierarchy_edits.set_kind(work, name, form.get("kind", ""))
            case "ladder":
                if "file" in form:  # paths stay below the folder
                    studio.get_workspace(request).resolve_path(str(work.path.parent / form["file"]))
                hierarchy_edits.set_hierarchy(work, name, form)
            case "group":
                return hierarchy_edits.set_groups(work, name, form)
            case "other":
                hierarchy_edits.set_other(work, name, form.get("other", ""))
            case "counts":
                hierarchy_edits.show_counts(work, name)
            case "hide":
                hierarchy_edits.hide_counts(work, name)
            case "confirm":
                hierarchy_edits.confirm_entries(work, name, form.get_all("entry"))
            case "import":
                path = studio.get_workspace(request).resolve_path(
                    str(work.path.parent / form.get("file", ""))
                )
                hierarchy_edits.import_rows(work, name, read_rows(path), path.name, path)
            case "paste":
                hierarchy_edits.import_text(work, name, form.get("rows", ""))
            case other:
                raise IncrowdError(f"Unknown action '{other}'.")
        return None

    return [
        Route("/desk/{work}/hierarchies", show_page),
        make_edit_route(studio, "/desk/{work}/hierarchies", change_hierarchy, show_page),
        Route("/desk/{work}/hierarchies/export", export_file),
        Route("/desk/{work}/hierarchies/{at:int}/import", import_file, methods=["PUT"]),
    ]


def _find_chosen_column(request: Request, work: OpenSpec, names: tuple[str, ...]) -> str:
    query_params = request.query_params.get("column")
    name = query_params if query_params is not None else next(iter(names), None)
    if name is None or name not in names:
        raise PageNotFoundError(f"'{name}' is not a quasi-identifier or sensitive in {work.title}.")
    return name


def _make_address(work: OpenSpec, name: str, level: int | None = None) -> str:
    query = {"column": name} | ({} if level is None else {"level": str(level)})
    return f"/desk/{work.name}/hierarchies?{urlencode(query)}"


def _describe_error(error: IncrowdError, name: str) -> str:
    """Describe what is wrong, without its place in a file that nobody here has opened."""
    if not isinstance(error, SpecError):
        return str(error)
    within = f"columns.{name}."
    messages = []
    for problem in error.problems:
        place = problem.place.removeprefix(within).rpartition(".")[2]
        is_implied = place.isdigit() or place in ("", "hierarchy", *hierarchy_form.KINDS)
        messages.append(problem.message if is_implied else f"{place}: {problem.message}")
    return "\n".join(
        f"{message[0].upper()}{message[1:]}" if message else message for message in messages
    )


def _make_view(
    studio: Studio, request: Request, work: OpenSpec, names: tuple[str, ...], name: str,
    refused_change: RefusedChange | None,
) -> dict[str, Any]:  # fmt: skip
    column = work.file.spec.columns[name]
    declared = column.hierarchy.declaration if column.hierarchy else None
    kind = hierarchy_form.get_kind(column.hierarchy)
    safe = hierarchy_edits.is_safe(work.file)
    with_counts = not safe or name in hierarchy_edits.get_counted_columns(work)
    grown = _ask_for_tree(studio, work, name, column, with_counts) if column.hierarchy else None
    view = [entry for entry in column.confirm if entry in ("hierarchy", "other")]
    question = _ask_for_questions(studio, work, name, column) if view else None
    findings = get_findings(studio, work)
    tree, wrong = _read_answer(grown)
    questions, untold = _read_answer(question)
    waiting = (
        findings is None
        or (grown is not None and tree is None and not wrong)
        or (question is not None and questions is None and not untold)
    )
    return {
        "items": _list_items(work, names, findings),
        "name": name,
        "at": names.index(name),
        "column": column,
        "kind": kind,
        "kinds": {
            name: words
            for name, words in hierarchy_form.KINDS.items()
            if name
            in (
                {hierarchy_form.GEO, kind}
                if kind == hierarchy_form.GEO
                else hierarchy_form.KINDS.keys() - {hierarchy_form.GEO}
            )
        },
        "about": hierarchy_form.ABOUT.get(kind, ""),
        "fields": hierarchy_form.make_form_fields(declared),
        "date_levels": hierarchy_form.EVERY_DATE_LEVEL,
        "ruler": draw_ruler(declared) if isinstance(declared, Intervals) else None,
        "editor": _make_group_editor(request, work, column)
        if isinstance(declared, Groups)
        else None,
        "safe": safe,
        "counted": with_counts,
        "open": bool(column.hierarchy) and is_open(column),
        "tree": tree,
        "wrong": wrong,
        "questions": questions,
        "untold": untold,
        "asked": view,
        "findings": [finding for finding in list_findings(findings) if finding.column == name],
        "left": [
            column_item
            for column_item in _list_items(work, names, findings)
            if column_item.confirm and column_item.name != name
        ],
        "found": findings is not None,
        "waiting": waiting and refused_change is None,
        "said": refused_change.problem if refused_change else "",
        "here": _make_address(work, name),
        "level_link": lambda at: _make_address(work, name, at),
        "files": _list_hierarchy_files(work),
        "most": MOST_LISTED,
        "export": f"/desk/{work.name}/hierarchies/export?{urlencode({'column': name})}",
        "following": _make_address(work, names[(names.index(name) + 1) % len(names)]),
        "last": names.index(name) == len(names) - 1,
    }


def _list_items(
    work: OpenSpec, names: tuple[str, ...], findings: list[Any] | None
) -> list[ColumnItem]:
    items = []
    for name in names:
        column = work.file.spec.columns[name]
        kind = hierarchy_form.get_kind(column.hierarchy)
        items.append(
            ColumnItem(
                name,
                column.role,
                hierarchy_form.KINDS[kind].partition(":")[0] if kind else "Unchanged",
                bool({"hierarchy", "other"} & set(column.confirm)),
                any(
                    finding.column == name and finding.severity is Severity.ERROR
                    for finding in findings or ()
                ),
                _make_address(work, name),
            )
        )
    return items


def _make_group_editor(request: Request, work: OpenSpec, column: Column) -> dict[str, Any] | None:
    """Return the groups of one level, to be changed by hand."""
    try:
        rows: ArxRows = group_edits.add_root(
            build_hierarchy(column, folder=work.file.folder).list_rows()
        )
    except HierarchyError:
        return None
    levels = group_edits.list_levels(rows)
    query_params = request.query_params.get("level", "")
    level = int(query_params) if query_params.isdigit() and int(query_params) in levels else 1
    find = request.query_params.get("find", "")
    group_editor = group_edits.list_groups(rows, level, find) if levels else []
    alone = [] if levels else [row[0] for row in rows]
    return {
        "levels": levels, "level": level, "groups": group_editor, "find": find, "size": len(rows),
        "names": sorted({row[level] for row in rows}) if levels else [],
        "alone": alone[: group_edits.MOST_SHOWN], "folded": len(rows) > group_edits.MOST_SHOWN,
    }  # fmt: skip


def _list_hierarchy_files(work: OpenSpec) -> list[str]:
    """Return the files in the folder of the spec that could be a hierarchy."""
    table = work.file.spec.table
    return sorted(
        path.name
        for path in work.path.parent.iterdir()
        if path.suffix.lower() in _ENDINGS and path.name != table and path.is_file()
    )


def _ask_for_tree(
    studio: Studio, work: OpenSpec, name: str, column: Column, with_counts: bool
) -> Future[HierarchyTree]:
    return _ask_once(
        studio, work, ("tree", name, with_counts), column, _build_tree, name, with_counts
    )


def _ask_for_questions(
    studio: Studio, work: OpenSpec, name: str, column: Column
) -> Future[list[Question]]:
    return _ask_once(studio, work, ("question", name), column, _list_questions, name)


def _ask_once(
    studio: Studio,
    work: OpenSpec,
    place: tuple[Any, ...],
    column: Column,
    task: Any,
    *arguments: Any,
) -> Future[Any]:
    """Ask another process about a column, once while the column stays the same."""
    stamp = 0.0
    if column.hierarchy is not None and column.hierarchy.csv is not None:
        path = work.file.folder / column.hierarchy.csv.file
        stamp = path.stat().st_mtime if path.exists() else 0.0
    key = column.model_dump_json(), stamp
    pending: tuple[Any, Future[Any]] | None = work.kept.get(place)
    if pending is None or pending[0] != key:
        if pending is not None:
            pending[1].cancel()
        pending = key, studio.hands.submit_task(task, make_snapshot(work), *arguments)
        work.kept[place] = pending
    return pending[1]


def _read_answer(future: Future[Any] | None) -> tuple[Any, str]:
    """Return what was found out, or why it could not be."""
    if future is None:
        return None, ""
    try:
        return wait_for_answer(future, _MOMENT), ""
    except IncrowdError as error:
        return None, str(error)


def _build_tree(snapshot: SpecSnapshot, name: str, with_counts: bool) -> HierarchyTree:
    from incrowd.curate.hierarchy_preview import build_tree

    file, table = snapshot.open_spec_and_table() if with_counts else (snapshot.parse_spec(), None)
    return build_tree(file, name, with_counts=with_counts, table=table)


def _list_questions(snapshot: SpecSnapshot, name: str) -> list[Question]:
    from incrowd.curate.confirm import list_questions

    file, table = snapshot.open_spec_and_table()
    questions = list_questions(file, table, columns=(name,))
    return [question for question in questions if question.entry in ("hierarchy", "other")]
