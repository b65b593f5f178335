"""The studio for tests: one process for all of them, asked as a browser would ask it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode

import pytest

WAIT = 60.0  # seconds, on a busy machine


@dataclass
class Answer:
    """What the studio has answered."""

    status: int
    text: str
    headers: dict[str, str]

    @property
    def place(self) -> str:
        """Where it sends the browser."""
        return self.headers.get("location", "")


@dataclass
class Browser:
    """Asks as a browser does that keeps a cookie, and follows where it is sent."""

    host: str
    cookie: str = ""
    version: str = ""  # of the spec, as the page that was seen last shows it

    def ask(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """One request, with exactly the headers of a page of the studio unless others are given."""
        sent = {"Cookie": self.cookie, "Origin": f"http://{self.host}", **(headers or {})}
        connection = HTTPConnection(self.host, timeout=WAIT, blocksize=1 << 20)
        try:
            connection.request(
                method, path, body,  # type: ignore[arg-type]
                {name: value for name, value in sent.items() if value},
            )  # fmt: skip
            got = connection.getresponse()
            text = got.read().decode("utf-8", "replace")
            answer = Answer(got.status, text, {k.lower(): v for k, v in got.getheaders()})
        finally:
            connection.close()
        found = re.search(r'name="version" value="(\w+)"', text)
        self.version = found[1] if found else self.version
        if got.status == 303 and answer.place.startswith("/desk/"):
            self.ask("GET", answer.place)  # the page that it leads to
        return answer

    def get(self, path: str) -> Answer:
        """A page."""
        return self.ask("GET", path)

    def post(self, path: str, **fields: str) -> Answer:
        """What a form sends."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.ask("POST", path, urlencode({"version": self.version, **fields}), kind)

    def opened(self, path: Path) -> str:
        """Upload a file; the address of the work."""
        with path.open("rb") as file:
            answer = self.ask("PUT", f"/upload?{urlencode({'name': path.name})}", file.read())
        assert answer.status == 200, answer.text
        place = answer.text.split('"')[3]
        self.get(place)
        return place.removesuffix("/data")

    def until(self, path: str, words: str, *, gone: bool = False) -> str:
        """A page when some words stand on it, or stand there no longer."""
        end = time.monotonic() + WAIT
        while ((words in (text := self.get(path).text)) == gone) and time.monotonic() < end:
            time.sleep(0.05)
        assert (words in text) != gone, text
        return text


class RunningStudio:
    """The command ``incrowd studio`` in a process of its own."""

    def __init__(
        self, folder: Path, state: Path, *more: str, browser: Path | None = None,
        files: int | None = None,
    ) -> None:  # fmt: skip
        """Start it.

        Args:
            folder: Of the project.
            state: Folder of what the user's programs remember.
            more: Arguments.
            browser: A program that it opens as the browser; none if it is not given.
            files: How many files it may have open.
        """
        self.folder, self._lines = folder, list[str]()
        opens = [] if browser else ["--no-browser"]
        limit = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh"] if files else []
        self.process = subprocess.Popen(
            [*limit, sys.executable, "-m", "incrowd", "studio", *opens, "-f", str(folder), *more],
            env=os.environ | {"XDG_STATE_HOME": str(state), "XDG_RUNTIME_DIR": str(state),
                              "BROWSER": str(browser or "")},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1,
        )  # fmt: skip
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        self.host = ""
        self.host = self.link().split("/")[2]

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._lines.append(line)

    @property
    def said(self) -> str:
        """What it has printed."""
        return "".join(self._lines)

    def link(self) -> str:
        """The link that lets the next browser in."""
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            found: list[str] = re.findall(r"http://\S+token=\S+", self.said)
            if found:
                return found[-1]
            assert self.process.poll() is None, self.said
            time.sleep(0.02)
        raise AssertionError(self.said)

    def used(self, link: str) -> None:
        """Wait until there is another link than one that was used."""
        end = time.monotonic() + WAIT
        while self.link() == link and time.monotonic() < end:
            time.sleep(0.01)

    def until(self, words: str) -> None:
        """Wait until some words are printed."""
        end = time.monotonic() + WAIT
        while words not in self.said and time.monotonic() < end:
            time.sleep(0.01)
        assert words in self.said, self.said

    def browser(self) -> Browser:
        """A new browser that came in by the link."""
        link = self.link()
        path = link.partition(self.host)[2]
        answer = Browser(self.host).ask("GET", path, headers={"Origin": ""})
        assert answer.status == 303, answer.text
        self.used(link)
        return Browser(self.host, answer.headers["set-cookie"].partition(";")[0])

    def stop(self) -> None:
        """End it as Ctrl-C does."""
        self.process.terminate()
        self.process.wait(timeout=WAIT)
        self._thread.join(timeout=WAIT)
        assert not self._thread.is_alive(), "something of the studio outlives it"


@pytest.fixture(scope="session")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudio]:
    """A studio that tests share; each has browsers of its own, and files of other names."""
    running = RunningStudio(tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("state"))
    yield running
    running.stop()
