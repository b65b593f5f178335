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
class StudioAnswer:
    """What the studio has answered."""

    status: int
    text: str
    headers: dict[str, str]

    @property
    def place(self) -> str:
        """Where it sends the browser."""
        return self.headers.get("location", "")


@dataclass
class StudioBrowser:
    """Asks as a browser does that keeps a cookie, and follows where it is sent."""

    host: str
    cookie: str = ""
    version: str = ""  # of the spec, as the page that was seen last shows it

    def send_request(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> StudioAnswer:
        """One request, with exactly the headers of a page of the studio unless others are given."""
        all_headers = {"Cookie": self.cookie, "Origin": f"http://{self.host}", **(headers or {})}
        connection = HTTPConnection(self.host, timeout=WAIT, blocksize=1 << 20)
        try:
            connection.request(
                method, path, body,  # type: ignore[arg-type]
                {name: value for name, value in all_headers.items() if value},
            )  # fmt: skip
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace")
            answer = StudioAnswer(
                response.status, text, {k.lower(): v for k, v in response.getheaders()}
            )
        finally:
            connection.close()
        result = re.search(r'name="version" value="(\w+)"', text)
        self.version = result[1] if result else self.version
        if response.status == 303 and answer.place.startswith("/desk/"):
            self.send_request("GET", answer.place)  # the page that it leads to
        return answer

    def get(self, path: str) -> StudioAnswer:
        """A page."""
        return self.send_request("GET", path)

    def post(self, path: str, **fields: str) -> StudioAnswer:
        """What a form sends."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.send_request("POST", path, urlencode({"version": self.version, **fields}), kind)

    def upload_file(self, path: Path) -> str:
        """Upload a file; the address of the work."""
        with path.open("rb") as file:
            answer = self.send_request(
                "PUT", f"/upload?{urlencode({'name': path.name})}", file.read()
            )
        assert answer.status == 200, answer.text
        place = answer.text.split('"')[3]
        self.get(place)
        return place.rpartition("/")[0]

    def wait_for_words(self, path: str, words: str, *, gone: bool = False) -> str:
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
        self._thread = threading.Thread(target=self._read_output, daemon=True)
        self._thread.start()
        self.host = ""
        self.host = self.wait_for_link().split("/")[2]

    def _read_output(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._lines.append(line)

    @property
    def output(self) -> str:
        """What it has printed."""
        return "".join(self._lines)

    def wait_for_link(self) -> str:
        """The link that lets the next browser in."""
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            result: list[str] = re.findall(r"http://\S+token=\S+", self.output)
            if result:
                return result[-1]
            assert self.process.poll() is None, self.output
            time.sleep(0.02)
        raise AssertionError(self.output)

    def wait_for_new_link(self, link: str) -> None:
        """Wait until there is another link than one that was used."""
        end = time.monotonic() + WAIT
        while self.wait_for_link() == link and time.monotonic() < end:
            time.sleep(0.01)

    def wait_for_output(self, words: str) -> None:
        """Wait until some words are printed."""
        end = time.monotonic() + WAIT
        while words not in self.output and time.monotonic() < end:
            time.sleep(0.01)
        assert words in self.output, self.output

    def open_browser(self) -> StudioBrowser:
        """A new browser that came in by the link."""
        link = self.wait_for_link()
        path = link.partition(self.host)[2]
        answer = StudioBrowser(self.host).send_request("GET", path, headers={"Origin": ""})
        assert answer.status == 303, answer.text
        self.wait_for_new_link(link)
        return StudioBrowser(self.host, answer.headers["set-cookie"].partition(";")[0])

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
