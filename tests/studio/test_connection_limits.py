"""Connections that send nothing, or not enough, keep nobody out."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.inline_studio import FormBrowser, open_studio, serve_studio
from support.studio import RunningStudio

from incrowd.studio import access, connection_limits


@pytest.fixture
def few_files(tmp_path: Path) -> Iterator[RunningStudio]:
    """A studio that may have 256 files open."""
    for name in ("home", "state"):
        (tmp_path / name).mkdir()
    running = RunningStudio(tmp_path / "home", tmp_path / "state", files=256)
    yield running
    running.stop()


def test_idle_connections_do_not_stall_the_studio(few_files: RunningStudio) -> None:
    host, port = few_files.host.split(":")
    browser = few_files.open_browser()
    with ExitStack() as stack:
        for at in range(300):
            item = stack.enter_context(socket.create_connection((host, int(port)), timeout=10))
            if at % 2:
                item.sendall(b"GET / HTTP/1.1\r\nHost: ")  # and never the rest
        assert browser.get("/").status == 200
        assert browser.post("/sample", sample="patients").status == 303


def send_slowly(connection: socket.socket) -> None:
    """Send a byte now and then, for ten seconds."""
    for _ in range(200):
        connection.sendall(b"G")
        time.sleep(0.05)


def closes(connection: socket.socket) -> bool:
    """Whether the other side ends a connection within some seconds."""
    connection.settimeout(20)
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_a_request_that_does_not_come_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one that comes byte by byte, before or after an answer."""
    monkeypatch.setattr(connection_limits, "HEADER_SECONDS", 0.3)
    with serve_studio(tmp_path) as (port, _):
        with socket.create_connection(("127.0.0.1", port)) as idle:
            assert closes(idle)
        for before in (b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", port)) as slow:
                slow.sendall(before)
                if before:
                    assert b"403" in slow.recv(4096)
                with pytest.raises(ConnectionError):
                    send_slowly(slow)


def test_a_body_that_does_not_come_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "BODY_SECONDS", 0.3)
    with open_studio(tmp_path) as browser:
        host, port = browser.host.split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(
                f"POST /open HTTP/1.1\r\nHost: {browser.host}\r\nCookie: {browser.cookie}\r\n"
                f"Origin: http://{browser.host}\r\nContent-Length: 100\r\n\r\nplace=".encode()
            )
            assert b"422" in connection.recv(4096)
        assert "Open a table" in browser.get("/")


def test_a_request_that_is_answered_is_not_closed_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only connections without a request make room."""
    monkeypatch.setattr(connection_limits, "MOST_CONNECTIONS", 8)
    with serve_studio(tmp_path) as (port, sessions), ExitStack() as stack:
        browser = FormBrowser(port, sessions.token)
        busy = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
        busy.sendall(
            f"POST /open HTTP/1.1\r\nHost: {browser.host}\r\nCookie: {browser.cookie}\r\n"
            f"Origin: http://{browser.host}\r\nContent-Length: 9\r\n\r\nplace".encode()
        )
        time.sleep(0.2)
        first = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        for _ in range(20):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert closes(first)
        busy.sendall(b"=a.b")
        answer = b""
        while b"a.b" not in answer and (part := busy.recv(65536)):
            answer += part
        assert b"a.b" in answer
