"""The studio in this process, and a browser without JavaScript that asks it."""

from __future__ import annotations

import http.client
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import uvicorn

from incrowd.studio.access import Sessions
from incrowd.studio.connection_limits import make_config
from incrowd.studio.server import Studio, make_app
from incrowd.studio.worker_pool import WorkerPool


class InlineWorkerPool(WorkerPool):
    """Hands that answer at once, in this process."""

    def submit_task(
        self, task: Callable[..., Any], *arguments: Any, same: bool = False
    ) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(task(*arguments))
        except Exception as error:  # noqa: BLE001 - as another process would hand it over
            future.set_exception(error)
        return future


def read_shown_version(page: str, otherwise: str = "") -> str:
    """The version of the spec that a page carries."""
    shown_version = re.search(r'name="version" value="(\w+)"', page)
    return shown_version[1] if shown_version else otherwise


class FormBrowser:
    """What a browser keeps: a cookie, and where it is."""

    def __init__(self, port: int, token: str) -> None:
        self.host, self.cookie, self.address = f"127.0.0.1:{port}", "", ""
        self.version = ""  # of the spec, as the page shows it
        self.get(f"/?token={token}")
        self.room = self.address.rpartition("/")[0]

    def get(self, path: str, status: int = 200) -> str:
        """A page, after whatever it leads to."""
        return self._send_request("GET", path, None, status)

    def post(self, path: str, status: int = 200, **form: str) -> str:
        """The page that a form leads to; it is sent from the page that was seen last."""
        return self._send_request(
            "POST", path, urlencode({"version": self.version, **form}), status
        )

    def post_pairs(self, path: str, pairs: list[tuple[str, str]], status: int = 200) -> str:
        """The page that a form leads to, which sends a name several times."""
        body = urlencode([("version", self.version), *pairs])
        return self._send_request("POST", path, body, status)

    def _send_request(self, method: str, path: str, body: str | None, status: int) -> str:
        connection = http.client.HTTPConnection(self.host, timeout=60)
        headers = {"Cookie": self.cookie, "Origin": f"http://{self.host}"}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        cookie, leads = answer.headers.get("Set-Cookie"), answer.headers.get("Location")
        connection.close()
        if cookie:
            self.cookie = cookie.partition(";")[0]
        if leads:
            parts = urlsplit(leads)
            return self.get(parts.path + (f"?{parts.query}" if parts.query else ""), status)
        assert answer.status == status, text
        self.address, self.version = path, read_shown_version(text, self.version)
        return text


@contextmanager
def open_studio(home: Path, **begin: Any) -> Iterator[FormBrowser]:
    """A studio of a folder, and a browser that has come in by its link."""
    with serve_studio(home, **begin) as (port, sessions):
        yield FormBrowser(port, sessions.token)


@contextmanager
def serve_studio(home: Path, **begin: Any) -> Iterator[tuple[int, Sessions]]:
    """A studio of a folder: its port, and the sessions that let a browser in."""
    listens = socket.socket()
    listens.bind(("127.0.0.1", 0))
    port = listens.getsockname()[1]
    sessions, opened = Sessions(), Studio(home, **begin)
    opened.hands = InlineWorkerPool()
    app = make_app(opened, sessions, [f"127.0.0.1:{port}"])
    server = uvicorn.Server(make_config(app))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listens]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield port, sessions
    finally:
        server.should_exit = True
        thread.join()
