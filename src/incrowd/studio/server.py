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
from incrowd.methods.outlay import ledger_of
from incrowd.release.entries import write_left
from incrowd.release.render import render
from incrowd.spec.release import SafeSpec
from incrowd.studio.desk import Desk, Works
from incrowd.studio.hands import Hands, Job
from incrowd.studio.private import create_private
from incrowd.studio.safety import Guard, Sessions
from incrowd.studio.work import StaleError, Work


@dataclass(frozen=True)
class LedgerStanding:
    """The ledger of a work: its name, what is left, and why it cannot be used if it cannot."""

    name: str
    left: str
    problem: str = ""
    is_used_up: bool = False


def find_standing(work: Work) -> LedgerStanding | None:
    """Return what the ledger of a spec has left now; None where the method needs no ledger."""
    spec = work.file.spec
    if spec.ledger is None and not isinstance(spec.release, SafeSpec):
        return None
    if spec.ledger is None:
        return LedgerStanding("", "")
    name = spec.ledger.rsplit("/", 1)[-1]
    try:
        book = ledger_of(work.file)
        assert book is not None
        left = book.remaining()
    except IncrowdError as error:
        return LedgerStanding(name, "", str(error))
    return LedgerStanding(name, write_left(left), is_used_up=not (left.epsilon and left.delta))


HERE = Path(__file__).parent
_MOST_FORM, _BLOCK = 4_000_000, 4 << 20  # bytes
# The rooms of a work in their order: address, name, what is done there.
ROOMS = (
    ("data", "Data", "What each column is"),
    ("hierarchies", "Hierarchies", "How values may be coarsened"),
    ("privacy", "Privacy", "What is promised"),
    ("explore", "Explore", "What each choice costs"),
    ("publish", "Publish", "Make the release"),
)


_problem: ContextVar[str] = ContextVar("problem", default="")  # what a page has to say


class MissingError(IncrowdError):
    """The studio has no such page."""


class Studio:
    """What all rooms share: the desks of all browsers, processes, the folder of the project."""

    def __init__(
        self,
        home: Path,
        *,
        anywhere: bool = False,
        table: str | None = None,
        sample: str | None = None,
    ) -> None:
        self.home, self._anywhere = home.resolve(), anywhere
        self.table, self.sample = table, sample  # what each browser begins with
        self.hands = Hands()
        self.works = Works()
        self._desks: dict[str, Desk] = {}
        self._lock = threading.Lock()

    def desk(self, request: Request) -> Desk:
        """The desk of the browser that asks."""
        secret = request.scope["secret"]
        with self._lock:
            if secret not in self._desks:
                self._desks[secret] = Desk(self.home, anywhere=self._anywhere, works=self.works)
            return self._desks[secret]

    def work(self, request: Request) -> Work:
        """The work that an address names, as its file is now; another browser's is not found."""
        found = self.desk(request).work(request.path_params["work"])
        if found is None:
            raise MissingError(
                "There is no such work on this desk. It went when the studio ended, or is "
                "another browser's. Open its spec again."
            )
        found.refresh()
        return found

    def page(self, template: str, *, room: str, status: int = 200, **values: Any) -> Response:
        """A page of a room."""
        work = values.get("work")
        version = Markup('<input type="hidden" name="version" value="{}">')
        shared = {
            "room": room, "rooms": ROOMS, "work": work, "home": self.home.name,
            "version": __version__, "problem": _problem.get(), **values,
            "standing": find_standing(work) if work is not None else None,
            "shown_version": version.format(work.version) if work is not None else "",
        }  # fmt: skip
        html = render("incrowd.studio", template, **shared)
        return HTMLResponse(html, status_code=status)

    def close(self) -> None:
        """Let go of everything: processes, and what was uploaded."""
        self.hands.close()
        for work in self.works.list_works():
            job = work.kept.get("job")
            if isinstance(job, Job):
                job.cancel()
        for desk in self._desks.values():
            desk.clear()


class Form(Mapping[str, str]):
    """What a form has sent; ``every`` has what was sent several times."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._pairs = list(pairs)
        self._last = dict(self._pairs)

    def __getitem__(self, name: str) -> str:
        return self._last[name]

    def __iter__(self) -> Any:
        return iter(self._last)

    def __len__(self) -> int:
        return len(self._last)

    def every(self, name: str) -> list[str]:
        """All values of a name."""
        return [value for other, value in self._pairs if other == name]


def back_of(request: Request, otherwise: str = "/") -> str:
    """The page of the studio that a request was sent from."""
    path = request.headers.get("x-back", "")
    sent_from = urlsplit(request.headers.get("referer", ""))
    if not path and sent_from.netloc == request.headers.get("host"):
        path = sent_from.path
    return path if path.startswith("/") and not path.startswith("//") else otherwise


async def form_of(request: Request) -> Form:
    """The form of a request."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > _MOST_FORM:
            raise IncrowdError(f"What was sent is larger than {_MOST_FORM:,} bytes.")
        parts.append(part)
    text = b"".join(parts).decode("utf-8", errors="replace")
    return Form(parse_qsl(text, keep_blank_values=True))


async def land(request: Request, target: Path) -> None:
    """Write what is sent into a file as it comes, whatever its size."""
    with create_private(target) as file:
        held = bytearray()
        async for part in request.stream():
            held += part
            if len(held) >= _BLOCK:
                await asyncio.to_thread(file.write, held)
                held = bytearray()
        await asyncio.to_thread(file.write, held)


Handler = Callable[[Request, Form], Response]


def form_route(path: str, handler: Handler) -> Route:
    """A route for what a form sends; it is handled beside whatever else is asked."""

    async def answered(request: Request) -> Response:
        form = await form_of(request)
        return await asyncio.get_running_loop().run_in_executor(None, handler, request, form)

    return Route(path, answered, methods=["POST"])


def edit_route(
    studio: Studio, path: str, handler: Handler, page: Callable[[Request], Response]
) -> Route:
    """Route what changes a work; a change by a page that is out of date is refused.

    What is refused is answered by the page as it is stored, with the reason.
    """

    def changed(request: Request, form: Form) -> Response:
        work = studio.work(request)
        try:
            with work.lock:  # nobody else changes it between the check and the change
                work.require_version(form.get("version", ""))
                return handler(request, form)
        except MissingError:
            raise
        except IncrowdError as error:
            if request.headers.get("x-studio") == "part":
                raise
            return show_refusal(page, request, error)

    return form_route(path, changed)


def show_refusal(
    page: Callable[[Request], Response], request: Request, error: IncrowdError
) -> Response:
    """Show a page as it is stored, with the reason why a change was refused."""
    told = _problem.set(str(error))
    try:
        answer = page(request)
    finally:
        _problem.reset(told)
    answer.status_code = _status_of(error)
    return answer


def _status_of(error: Exception) -> int:
    if isinstance(error, MissingError):
        return 404
    return 409 if isinstance(error, StaleError) else 422


def make(studio: Studio, sessions: Sessions, hosts: Sequence[str]) -> ASGIApp:
    """The whole app."""
    from incrowd.studio import rooms

    @asynccontextmanager
    async def alive(_app: Starlette) -> AsyncIterator[None]:
        studio.hands.ask(_warm)  # so that the first question is answered soon
        yield
        studio.close()

    def refused(request: Request, error: Exception, status: int | None = None) -> Response:
        status = _status_of(error) if status is None else status
        if request.headers.get("x-studio") == "part":
            return PlainTextResponse(str(error), status_code=status)
        return studio.page(
            "refused.html", room="", status=status, words=str(error),
            back=back_of(request),
        )  # fmt: skip

    def failed(request: Request, error: Exception) -> Response:
        path = getattr(error, "filename", None)
        words = f"{getattr(error, 'strerror', None) or error}" + (f": '{path}'" if path else "")
        return refused(request, IncrowdError(words))

    def broken(request: Request, _error: Exception) -> Response:
        words = "A fault of ours: this was not done. The terminal says more; the studio goes on."
        return refused(request, IncrowdError(words), status=500)

    app = Starlette(
        routes=[
            *rooms.routes(studio),
            Route("/favicon.ico", lambda _request: FileResponse(HERE / "static" / "icon.svg")),
            Mount("/static", StaticFiles(directory=HERE / "static"), name="static"),
        ],
        exception_handlers={IncrowdError: refused, OSError: failed, Exception: broken},
        lifespan=alive,
    )
    return Guard(app, sessions, hosts)


def _warm() -> None:
    """Load what questions about tables need."""
    import incrowd.curate.check
    import incrowd.curate.describe  # noqa: F401
