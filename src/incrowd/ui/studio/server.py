"""The studio as a web app: its rooms put together, behind a guard."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from incrowd import __version__
from incrowd.errors import IncrowdError
from incrowd.release.render import render
from incrowd.ui.studio.desk import Desk, Work
from incrowd.ui.studio.hands import Hands, Job
from incrowd.ui.studio.safety import Doors, Guard

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
        self._desks: dict[str, Desk] = {}
        self._lock = threading.Lock()

    def desk(self, request: Request) -> Desk:
        """The desk of the browser that asks."""
        secret = request.scope["secret"]
        with self._lock:
            if secret not in self._desks:
                self._desks[secret] = Desk(self.home, anywhere=self._anywhere)
            return self._desks[secret]

    def work(self, request: Request) -> Work:
        """The work that an address names; another browser's is not to be found."""
        found = self.desk(request).work(request.path_params["work"])
        if found is None:
            raise MissingError(
                "There is no such work on this desk. It went when the studio ended, or is "
                "another browser's. Open its spec again."
            )
        return found

    def page(self, template: str, *, room: str, status: int = 200, **values: Any) -> Response:
        """A page of a room."""
        work = values.get("work")
        shared = {
            "room": room, "rooms": ROOMS, "work": work, "home": self.home.name,
            "version": __version__, "problem": None, **values,
        }  # fmt: skip
        html = render("incrowd.ui.studio", template, **shared)
        return HTMLResponse(html, status_code=status)

    def close(self) -> None:
        """Let go of everything: processes, and what was uploaded."""
        self.hands.close()
        for desk in self._desks.values():
            for work in desk.works():
                job = work.kept.get("job")
                if isinstance(job, Job):
                    job.cancel()
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
    with target.open("wb") as file:
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


def make(studio: Studio, doors: Doors, hosts: Sequence[str]) -> ASGIApp:
    """The whole app."""
    from incrowd.ui.studio import rooms

    @asynccontextmanager
    async def alive(_app: Starlette) -> AsyncIterator[None]:
        studio.hands.ask(_warm)  # so that the first question is answered soon
        yield
        studio.close()

    def refused(request: Request, error: Exception, status: int = 422) -> Response:
        status = 404 if isinstance(error, MissingError) else status
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
    return Guard(app, doors, hosts)


def _warm() -> None:
    """Load what questions about tables need."""
    import incrowd.tasks.check
    import incrowd.tasks.describe  # noqa: F401
