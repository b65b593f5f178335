"""The studio as a web app: its rooms put together, behind a guard."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from incrowd import __version__
from incrowd.errors import IncrowdError
from incrowd.methods.spec_ledger import resolve_ledger
from incrowd.release.ledger_entries import format_remaining
from incrowd.release.render import render_page
from incrowd.spec.release import SafeSpec, SyntheticSpec, TablesSpec
from incrowd.studio.access import RequestGuard, Sessions
from incrowd.studio.open_spec import OpenSpec, StaleError
from incrowd.studio.private_files import create_private
from incrowd.studio.steps import list_steps
from incrowd.studio.worker_pool import PublishJob, WorkerPool
from incrowd.studio.workspace import OpenSpecs, Workspace


@dataclass(frozen=True)
class LedgerStanding:
    """The ledger of a work: its name, what is left, and why it cannot be used if it cannot."""

    name: str
    left: str
    problem: str = ""
    is_used_up: bool = False


def find_standing(work: OpenSpec) -> LedgerStanding | None:
    """Return what the ledger of a spec has left now; None where the method needs no ledger."""
    spec = work.file.spec
    if spec.ledger is None and not isinstance(spec.release, SafeSpec | SyntheticSpec | TablesSpec):
        return None
    if spec.ledger is None:
        return LedgerStanding("", "")
    name = spec.ledger.rsplit("/", 1)[-1]
    try:
        book = resolve_ledger(work.file)
        assert book is not None
        left = book.remaining_budget()
    except IncrowdError as error:
        return LedgerStanding(name, "", str(error))
    return LedgerStanding(
        name, format_remaining(left), is_used_up=not (left.epsilon and left.delta)
    )


HERE = Path(__file__).parent
_MOST_FORM, _BLOCK = 4_000_000, 4 << 20  # bytes
# The rooms of a work in their order: address, name, what is done there.
ROOMS = (
    ("person", "Person", "Who is protected"),
    ("data", "Data", "Roles of columns"),
    ("hierarchies", "Hierarchies", "Levels of values"),
    ("confirm", "Confirm", "Public knowledge"),
    ("privacy", "Privacy", "Guarantee"),
    ("explore", "Explore", "Cost of choices"),
    ("publish", "Publish", "Release"),
)


_problem: ContextVar[str] = ContextVar("problem", default="")  # what a page has to say


class PageNotFoundError(IncrowdError):
    """The studio has no such page."""


class Studio:
    """What all pages share: the workspaces of all browsers, processes, the folder."""

    def __init__(
        self,
        home: Path,
        *,
        anywhere: bool = False,
        table: str | None = None,
        sample: str | None = None,
        only_verify: bool = False,
    ) -> None:
        self.only_verify = only_verify  # for recipients: nothing but verification is served
        self.home, self._anywhere = home.resolve(), anywhere
        self.table, self.sample = table, sample  # what each browser begins with
        self.hands = WorkerPool()
        self.works = OpenSpecs()
        self._desks: dict[str, Workspace] = {}
        self._lock = threading.Lock()

    def get_workspace(self, request: Request) -> Workspace:
        """Return the workspace of the browser that asks."""
        secret = request.scope["secret"]
        with self._lock:
            if secret not in self._desks:
                self._desks[secret] = Workspace(
                    self.home, anywhere=self._anywhere, works=self.works
                )
            return self._desks[secret]

    def get_open_spec(self, request: Request) -> OpenSpec:
        """Return the open spec that an address names, read again if its file has changed."""
        open_spec = self.get_workspace(request).find_open_spec(request.path_params["work"])
        if open_spec is None:
            raise PageNotFoundError(
                "There is no such work on this desk. It went when the studio ended, or is "
                "another browser's. Open its spec again."
            )
        open_spec.refresh()
        return open_spec

    def render_page(
        self, template: str, *, room: str, status: int = 200, **values: Any
    ) -> Response:
        """Render a page of the studio."""
        work = values.get("work")
        version = Markup('<input type="hidden" name="version" value="{}">')
        shared = {
            "only_verify": self.only_verify, "room": room, "rooms": ROOMS, "work": work,
            "home": self.home.name,
            "version": __version__, "problem": _problem.get(), **values,
            "room_steps": list_steps(work, ROOMS) if work is not None else [],
            "standing": find_standing(work) if work is not None else None,
            "shown_version": version.format(work.version) if work is not None else "",
        }  # fmt: skip
        html = render_page("incrowd.studio", template, **shared)
        return HTMLResponse(html, status_code=status)

    def close(self) -> None:
        """End all processes, and remove what was uploaded."""
        self.hands.close()
        for work in self.works.list_specs():
            job = work.kept.get("job")
            if isinstance(job, PublishJob):
                job.cancel()
        for desk in self._desks.values():
            desk.remove_uploads()


class Form(Mapping[str, str]):
    """What a form has sent; ``get_all`` returns what was sent several times."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._pairs = list(pairs)
        self._last = dict(self._pairs)

    def __getitem__(self, name: str) -> str:
        return self._last[name]

    def __iter__(self) -> Any:
        return iter(self._last)

    def __len__(self) -> int:
        return len(self._last)

    def get_all(self, name: str) -> list[str]:
        """Return all values of a name."""
        return [value for other, value in self._pairs if other == name]


def find_back_address(request: Request, otherwise: str = "/") -> str:
    """Return the page of the studio that a request was sent from."""
    path = request.headers.get("x-back", "")
    sent_from = urlsplit(request.headers.get("referer", ""))
    if not path and sent_from.netloc == request.headers.get("host"):
        path = sent_from.path
    return path if path.startswith("/") and not path.startswith("//") else otherwise


async def read_form(request: Request) -> Form:
    """Read the form of a request."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > _MOST_FORM:
            raise IncrowdError(f"The form is larger than {_MOST_FORM:,} bytes.")
        parts.append(part)
    text = b"".join(parts).decode("utf-8", errors="replace")
    return Form(parse_qsl(text, keep_blank_values=True))


async def save_upload(request: Request, target: Path) -> None:
    """Write what is sent into a file as it comes, whatever its size."""
    with create_private(target) as file:
        buffer = bytearray()
        async for part in request.stream():
            buffer += part
            if len(buffer) >= _BLOCK:
                await asyncio.to_thread(file.write, buffer)
                buffer = bytearray()
        await asyncio.to_thread(file.write, buffer)


Handler = Callable[[Request, Form], Response]


def make_form_route(path: str, handler: Handler) -> Route:
    """Make a route for what a form sends; it is handled in a thread."""

    async def answer_form(request: Request) -> Response:
        form = await read_form(request)
        return await asyncio.get_running_loop().run_in_executor(None, handler, request, form)

    return Route(path, answer_form, methods=["POST"])


def make_edit_route(
    studio: Studio, path: str, handler: Handler, page: Callable[[Request], Response]
) -> Route:
    """Make a route for what changes a spec; a page that is out of date is refused.

    What is refused is answered by the page as it is stored, with the reason.
    """

    def change_spec(request: Request, form: Form) -> Response:
        work = studio.get_open_spec(request)
        try:
            with work.lock:  # nobody else changes it between the check and the change
                work.require_version(form.get("version", ""))
                return handler(request, form)
        except PageNotFoundError:
            raise
        except IncrowdError as error:
            if request.headers.get("x-studio") == "part":
                raise
            return show_refusal(page, request, error)

    return make_form_route(path, change_spec)


def show_refusal(
    page: Callable[[Request], Response], request: Request, error: IncrowdError
) -> Response:
    """Show a page as it is stored, with the reason why a change was refused."""
    token = _problem.set(str(error))
    try:
        answer = page(request)
    finally:
        _problem.reset(token)
    answer.status_code = _choose_status(error)
    return answer


def _choose_status(error: Exception) -> int:
    if isinstance(error, PageNotFoundError):
        return 404
    return 409 if isinstance(error, StaleError) else 422


def make_app(studio: Studio, sessions: Sessions, hosts: Sequence[str]) -> ASGIApp:
    """Make the whole app."""
    from incrowd.studio import views

    @asynccontextmanager
    async def run_lifespan(_app: Starlette) -> AsyncIterator[None]:
        studio.hands.submit_task(_load_modules)  # so that the first question is answered soon
        yield
        studio.close()

    def show_error(request: Request, error: Exception, status: int | None = None) -> Response:
        status = _choose_status(error) if status is None else status
        if request.headers.get("x-studio") == "part":
            return PlainTextResponse(str(error), status_code=status)
        return studio.render_page(
            "refused.html", room="", status=status, words=str(error),
            back=find_back_address(request),
        )  # fmt: skip

    def show_os_error(request: Request, error: Exception) -> Response:
        path = getattr(error, "filename", None)
        words = f"{getattr(error, 'strerror', None) or error}" + (f": '{path}'" if path else "")
        return show_error(request, IncrowdError(words))

    def show_fault(request: Request, _error: Exception) -> Response:
        words = "A fault of ours: this was not done. The terminal says more; the studio goes on."
        return show_error(request, IncrowdError(words), status=500)

    app = Starlette(
        routes=[
            *views.routes(studio),
            Route("/favicon.ico", lambda _request: FileResponse(HERE / "static" / "icon.svg")),
            Mount("/static", StaticFiles(directory=HERE / "static"), name="static"),
        ],
        exception_handlers={
            IncrowdError: show_error,
            OSError: show_os_error,
            Exception: show_fault,
        },
        lifespan=run_lifespan,
    )
    return RequestGuard(app, sessions, hosts)


def _load_modules() -> None:
    """Load what questions about tables need."""
    import incrowd.curate.check
    import incrowd.curate.describe  # noqa: F401
