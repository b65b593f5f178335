"""No database is contacted before the user has agreed, whoever wrote the spec."""

from __future__ import annotations

import html
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import studio as asks
from support.inline_studio import FormBrowser, open_studio, serve_studio

from incrowd.engine.address import find_target

SPEC = """\
table: postgresql://curator@127.0.0.1:{port}/records#patients
columns: {{age: {{role: drop}}}}
"""


class Server:
    """Something that listens where a database is expected, and notes what it is sent."""

    def __init__(self) -> None:
        self.contacts = list[bytes]()
        self._listens = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listens.getsockname()[1]
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        while True:
            try:
                item, _ = self._listens.accept()
            except OSError:
                return
            with item:
                item.settimeout(5)
                try:
                    self.contacts.append(item.recv(1000))
                except OSError:
                    self.contacts.append(b"")

    def close(self) -> None:
        self._listens.close()


@pytest.fixture
def server() -> Iterator[Server]:
    running_server = Server()
    yield running_server
    running_server.close()


def test_a_dropped_spec_contacts_nobody_until_that_is_confirmed(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "open sesame")
    (tmp_path / "home").mkdir()
    with serve_studio(tmp_path / "home") as (port, sessions):
        browser = asks.StudioBrowser(f"127.0.0.1:{port}")
        answer = browser.send_request("GET", f"/?token={sessions.token}", headers={"Origin": ""})
        browser.cookie = answer.headers["set-cookie"].partition(";")[0]
        spec = SPEC.format(port=server.port).encode()
        answer = browser.send_request("PUT", "/upload?name=theirs.yaml", spec)
        assert answer.status == 200, answer.text
        place = answer.text.split('"')[3]
        page = browser.get(place).text
        for words in (
            "127.0.0.1",
            str(server.port),
            "curator",
            "records",
            "patients",
            "PGPASSWORD",
        ):
            assert words in page
        assert "sesame" not in page
        assert server.contacts == []
        assert list((tmp_path / "home").iterdir()) == []
        assert browser.post(place).status == 422  # it is no database
        assert len(server.contacts) >= 1
        assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.parametrize("way", ["typed", "spec", "begun with"])
def test_every_way_to_a_database_asks(tmp_path: Path, server: Server, way: str) -> None:
    address = f"postgresql://curator:sesame@127.0.0.1:{server.port}/records#patients"
    (tmp_path / "theirs.yaml").write_text(SPEC.format(port=server.port))
    begin = {"table": address} if way == "begun with" else {}
    with open_studio(tmp_path, **begin) as browser:
        page = browser.get(browser.address)
        if way != "begun with":
            page = browser.post("/open", place=address if way == "typed" else "theirs.yaml")
        assert "Connect to this database?" in page
        assert "sesame" not in page
        assert server.contacts == []


def test_a_spec_that_comes_to_name_a_database_asks(tmp_path: Path, server: Server) -> None:
    """Also where another program has changed a spec that is open."""
    (tmp_path / "t.csv").write_text("age\n" + "30\n" * 40)
    spec = tmp_path / "t.yaml"
    spec.write_text("table: t.csv\ncolumns: {age: {role: drop}}\n")
    with open_studio(tmp_path, table="t.yaml") as browser:
        spec.write_text(SPEC.format(port=server.port))
        assert "now names another table" in html.unescape(browser.get(f"{browser.room}/data"))
        assert "Connect to this database?" in browser.post("/open", place="t.yaml")
        assert server.contacts == []


def test_there_is_no_question_of_another_browser(tmp_path: Path, server: Server) -> None:
    with serve_studio(tmp_path) as (port, sessions):
        first, second = FormBrowser(port, sessions.token), FormBrowser(port, sessions.token)
        first.post("/open", place=f"postgresql://127.0.0.1:{server.port}/a#b")
        second.get(first.address, status=404)
        second.post(first.address, status=404)
        assert server.contacts == []


@pytest.mark.parametrize(
    ("address", "server", "user", "database"),
    [
        ("postgresql://ann@db.example:5433/x#t", "db.example, port 5433", "ann", "x"),
        ("postgresql://ann:pw@db.example/x#t", "db.example", "ann", "x"),
        ("postgresql://safe@evil.example@safe/x#t", "evil.example@safe", "safe", "x"),
        ("postgresql://evil.example/x@safe/y#t", "evil.example", "", "x@safe/y"),
        ("postgresql://safe?x=@evil.example/y#t", "evil.example", "safe?x=", "y"),
        ("postgresql://ann@safe/x?host=evil.example&user=bob#t", "evil.example", "bob", "x"),
        ("postgresql://safe/x?hostaddr=10.0.0.9#t", "10.0.0.9 (called safe)", "", "x"),
        ("postgresql://safe,evil.example:1/x#t", "safe,evil.example, port ,1", "", "x"),
        ("postgresql://[::1]:99/x#t", "::1, port 99", "", "x"),
        ("postgresql://%65vil.example/x#t", "evil.example", "", "x"),
        ("postgresql:///x#t", "this machine", "", "x"),
        ("postgresql:///x?service=away#t", "the one of the service", "", "x"),
    ],
)
def test_what_is_shown_is_what_the_driver_contacts(
    address: str, server: str, user: str, database: str
) -> None:
    target = find_target(address, {})
    assert (target.server, target.database, target.table) == (server, database, "t")
    assert target.user == (user or "the one you are logged in as")


def test_the_environment_fills_in_what_an_address_leaves_out() -> None:
    target = find_target("postgresql:///#t", {"PGHOST": "evil.example", "PGUSER": "ann"})
    assert target.server == "evil.example (from PGHOST)"
    assert target.user == "ann (from PGUSER)"
    target = find_target("postgresql://h/d?password=x&passfile=/etc/p#t", {"PGHOST": "no"})
    assert (target.server, target.has_password) == ("h", True)
    assert target.settings == (("passfile", "/etc/p"),)
