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
from incrowd.curate.draft.kinds import MOST_LISTED
from incrowd.curate.preview import Tree
from incrowd.errors import IncrowdError
from incrowd.findings import Severity
from incrowd.spec.arx import ArxRows, read_rows
from incrowd.spec.build import build, is_open
from incrowd.spec.file import SpecError
from incrowd.spec.hierarchies import Groups, Intervals
from incrowd.spec.model import Column
from incrowd.studio import groups, ladder, ladder_edits
from incrowd.studio.hands import Subject
from incrowd.studio.lattice import ruler
from incrowd.studio.private import create_private
from incrowd.studio.rooms.data import answer, findings, list_findings, subject
from incrowd.studio.server import Form, MissingError, Studio, edit_route
from incrowd.studio.work import Work

_MOST_FILE = 50_000_000  # bytes of a hierarchy that is uploaded
_MOMENT = 0.02  # seconds, after those that the page has waited for the check
_ENDINGS = (".csv", ".txt", ".tsv")


@dataclass(frozen=True)
class Item:
    """A column in the list: its kind of hierarchy, and whether somebody has to look at it."""

    name: str
    role: str
    kind: str
    confirm: bool
    wrong: bool
    link: str


@dataclass(frozen=True)
class Said:
    """What somebody has asked for that cannot be, and the reason; the stored values are shown."""

    problem: str


def routes(studio: Studio) -> list[BaseRoute]:
    """The page and what can be done there."""

    def page(request: Request, said: Said | None = None) -> Response:
        work = studio.work(request)
        names = work.file.spec.with_role("quasi", "sensitive")
        if not names:
            return studio.page("hierarchies.html", room="hierarchies", work=work, items=[])
        name = _chosen(request, work, names)
        status = 422 if said and request.headers.get("x-studio") != "part" else 200
        return studio.page(
            "hierarchies.html", room="hierarchies", status=status, work=work,
            **_view(studio, request, work, names, name, said),
        )  # fmt: skip

    def change(request: Request, form: Form) -> Response:
        work = studio.work(request)
        names = work.file.spec.with_role("quasi", "sensitive")
        name = _chosen(request, work, names)
        try:
            level = _changed(work, name, form, request)
        except IncrowdError as error:
            return page(request, Said(_words(error, name)))
        return RedirectResponse(_address(work, name, level), status_code=303)

    async def imported(request: Request) -> Response:
        """A file in ARX form that is dropped on a column."""
        work, desk = studio.work(request), studio.desk(request)

        def take(work: Work, name: str, path: Path) -> None:
            with work.lock:
                work.require_version(request.query_params.get("version", ""))
                ladder_edits.imported(work, name, read_rows(path), path.name)

        names = work.file.spec.with_role("quasi", "sensitive")
        at = int(request.path_params["at"])
        if at >= len(names):
            raise MissingError("There is no such column.")
        target = desk.landing(request.query_params.get("name", ""))
        try:
            size = 0
            with create_private(target) as file:
                async for part in request.stream():
                    size += len(part)
                    if size > _MOST_FILE:
                        raise IncrowdError(f"The file is larger than {_MOST_FILE:,} bytes.")
                    file.write(part)
            await asyncio.to_thread(take, work, names[at], target)
        finally:
            shutil.rmtree(target.parent, ignore_errors=True)
        return JSONResponse({"go": _address(work, names[at])})

    def exported(request: Request) -> Response:
        work = studio.work(request)
        name = _chosen(request, work, work.file.spec.with_role("quasi", "sensitive"))
        public = request.query_params.get("public") == "yes"
        text = ladder_edits.export(work, name, public=public)
        file = quote(f"{work.title}_hierarchy_{name}.csv", safe="")
        return Response(
            text, media_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f"attachment; filename*=UTF-8''{file}"},
        )  # fmt: skip

    def _changed(work: Work, name: str, form: Form, request: Request) -> int | None:
        """Do what a form asks for; the level whose groups are to be shown next, if any."""
        match form.get("do", ""):
            case "kind":
                ladder_edits.set_kind(work, name, form.get("kind", ""))
            case "ladder":
                if "file" in form:  # paths stay below the folder
                    studio.desk(request).inside(str(work.path.parent / form["file"]))
                ladder_edits.set_ladder(work, name, form)
            case "group":
                return ladder_edits.set_groups(work, name, form)
            case "other":
                ladder_edits.set_other(work, name, form.get("other", ""))
            case "counts":
                ladder_edits.show_counts(work, name)
            case "hide":
                ladder_edits.hide_counts(work, name)
            case "confirm":
                ladder_edits.confirm(work, name, form.every("entry"))
            case "import":
                path = studio.desk(request).inside(str(work.path.parent / form.get("file", "")))
                ladder_edits.imported(work, name, read_rows(path), path.name, path)
            case "paste":
                ladder_edits.pasted(work, name, form.get("rows", ""))
            case other:
                raise IncrowdError(f"There is no '{other}' to be done here.")
        return None

    return [
        Route("/desk/{work}/hierarchies", page),
        edit_route(studio, "/desk/{work}/hierarchies", change, page),
        Route("/desk/{work}/hierarchies/export", exported),
        Route("/desk/{work}/hierarchies/{at:int}/import", imported, methods=["PUT"]),
    ]


def _chosen(request: Request, work: Work, names: tuple[str, ...]) -> str:
    asked = request.query_params.get("column")
    name = asked if asked is not None else next(iter(names), None)
    if name is None or name not in names:
        raise MissingError(f"'{name}' is no quasi or sensitive column of {work.title}.")
    return name


def _address(work: Work, name: str, level: int | None = None) -> str:
    query = {"column": name} | ({} if level is None else {"level": str(level)})
    return f"/desk/{work.name}/hierarchies?{urlencode(query)}"


def _words(error: IncrowdError, name: str) -> str:
    """What is wrong, without where it stands in a file that nobody here has opened."""
    if not isinstance(error, SpecError):
        return str(error)
    within = f"columns.{name}."
    said = []
    for problem in error.problems:
        place = problem.place.removeprefix(within).rpartition(".")[2]
        own = place.isdigit() or place in ("", "hierarchy", *ladder.KINDS)
        said.append(problem.message if own else f"{place}: {problem.message}")
    return "\n".join(f"{one[0].upper()}{one[1:]}." if one else one for one in said)


def _view(
    studio: Studio, request: Request, work: Work, names: tuple[str, ...], name: str,
    said: Said | None,
) -> dict[str, Any]:  # fmt: skip
    column = work.file.spec.columns[name]
    declared = column.hierarchy.declared if column.hierarchy else None
    kind = ladder.kind_of(column.hierarchy)
    safe = ladder_edits.is_safe(work.file)
    counted = not safe or name in ladder_edits.counted(work)
    grown = _tree(studio, work, name, column, counted) if column.hierarchy else None
    asked = [one for one in column.confirm if one in ("hierarchy", "other")]
    question = _question(studio, work, name, column) if asked else None
    found = findings(studio, work)
    tree, wrong = _answered(grown)
    told, untold = _answered(question)
    waiting = (
        found is None
        or (grown is not None and tree is None and not wrong)
        or (question is not None and told is None and not untold)
    )
    return {
        "items": _items(work, names, found),
        "name": name, "at": names.index(name), "column": column, "kind": kind,
        "kinds": ladder.KINDS, "about": ladder.ABOUT.get(kind, ""),
        "fields": ladder.fields(declared),
        "date_levels": ladder.DATE_LEVELS,
        "ruler": ruler(declared) if isinstance(declared, Intervals) else None,
        "editor": _editor(request, work, column) if isinstance(declared, Groups) else None,
        "safe": safe, "counted": counted, "open": bool(column.hierarchy) and is_open(column),
        "tree": tree, "wrong": wrong, "questions": told, "untold": untold, "asked": asked,
        "findings": [one for one in list_findings(found) if one.column == name],
        "left": [one for one in _items(work, names, found) if one.confirm and one.name != name],
        "found": found is not None, "waiting": waiting and said is None,
        "said": said.problem if said else "",
        "here": _address(work, name), "level_link": lambda at: _address(work, name, at),
        "files": _files(work), "most": MOST_LISTED,
        "export": f"/desk/{work.name}/hierarchies/export?{urlencode({'column': name})}",
        "following": _address(work, names[(names.index(name) + 1) % len(names)]),
        "last": names.index(name) == len(names) - 1,
    }  # fmt: skip


def _items(work: Work, names: tuple[str, ...], found: list[Any] | None) -> list[Item]:
    items = []
    for name in names:
        column = work.file.spec.columns[name]
        kind = ladder.kind_of(column.hierarchy)
        items.append(Item(
            name, column.role, ladder.KINDS[kind].partition(":")[0] if kind else "As it is",
            bool({"hierarchy", "other"} & set(column.confirm)),
            any(one.column == name and one.severity is Severity.ERROR for one in found or ()),
            _address(work, name),
        ))  # fmt: skip
    return items


def _editor(request: Request, work: Work, column: Column) -> dict[str, Any] | None:
    """The groups of one level, to be changed by hand."""
    try:
        rows: ArxRows = groups.with_root(build(column, folder=work.file.folder).rows())
    except HierarchyError:
        return None
    levels = groups.levels(rows)
    asked = request.query_params.get("level", "")
    level = int(asked) if asked.isdigit() and int(asked) in levels else 1
    find = request.query_params.get("find", "")
    known = groups.at_level(rows, level, find) if levels else []
    alone = [] if levels else [row[0] for row in rows]
    return {
        "levels": levels, "level": level, "groups": known, "find": find, "size": len(rows),
        "names": sorted({row[level] for row in rows}) if levels else [],
        "alone": alone[: groups.MOST_SHOWN], "folded": len(rows) > groups.MOST_SHOWN,
    }  # fmt: skip


def _files(work: Work) -> list[str]:
    """What could be a hierarchy in the folder of the spec."""
    table = work.file.spec.table
    return sorted(
        path.name
        for path in work.path.parent.iterdir()
        if path.suffix.lower() in _ENDINGS and path.name != table and path.is_file()
    )


def _tree(studio: Studio, work: Work, name: str, column: Column, counted: bool) -> Future[Tree]:
    return _kept(studio, work, ("tree", name, counted), column, _grown, name, counted)


def _question(studio: Studio, work: Work, name: str, column: Column) -> Future[list[Question]]:
    return _kept(studio, work, ("question", name), column, _asked, name)


def _kept(
    studio: Studio, work: Work, place: tuple[Any, ...], column: Column, task: Any, *given: Any
) -> Future[Any]:
    """What another process finds out of a column; once, while the column is the same."""
    stamp = 0.0
    if column.hierarchy is not None and column.hierarchy.csv is not None:
        path = work.file.folder / column.hierarchy.csv.file
        stamp = path.stat().st_mtime if path.exists() else 0.0
    key = column.model_dump_json(), stamp
    known: tuple[Any, Future[Any]] | None = work.kept.get(place)
    if known is None or known[0] != key:
        if known is not None:
            known[1].cancel()
        known = key, studio.hands.ask(task, subject(work), *given)
        work.kept[place] = known
    return known[1]


def _answered(future: Future[Any] | None) -> tuple[Any, str]:
    """What was found out, or why it could not be."""
    if future is None:
        return None, ""
    try:
        return answer(future, _MOMENT), ""
    except IncrowdError as error:
        return None, str(error)


def _grown(asked: Subject, name: str, counted: bool) -> Tree:
    from incrowd.curate.preview import tree

    file, table = asked.both() if counted else (asked.file(), None)
    return tree(file, name, counted=counted, table=table)


def _asked(asked: Subject, name: str) -> list[Question]:
    from incrowd.curate.confirm import questions

    file, table = asked.both()
    found = questions(file, table, columns=(name,))
    return [one for one in found if one.entry in ("hierarchy", "other")]
