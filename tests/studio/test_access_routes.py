"""The security review of every route at once: what is added later is covered, too."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.routing import Route
from support.inline_studio import FormBrowser, open_studio
from support.questionnaires import make_questionnaires

import incrowd.studio.views as views
from incrowd.studio.access import HEADERS
from incrowd.studio.server import HERE, Studio

CHANGING = {"POST", "PUT"}


def list_routes(folder: Path) -> list[tuple[str, str]]:
    """All methods and addresses of the studio, with something in place of each name."""
    return sorted(
        (method, re.sub(r"\{\w+(:\w+)?\}", "0", route.path))
        for route in views.routes(Studio(folder))
        if isinstance(route, Route)
        for method in route.methods or ()
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    guarded = tmp_path_factory.mktemp("guarded")
    make_questionnaires(60, 8).write_csv(guarded / "survey.csv")
    return guarded


@pytest.fixture(scope="module")
def browser(folder: Path) -> Iterator[FormBrowser]:
    with open_studio(folder, table="survey.csv") as studio:
        yield studio


def read_files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def ask(browser: FormBrowser, method: str, path: str, **headers: str) -> tuple[int, dict[str, str]]:
    connection = http.client.HTTPConnection(browser.host, timeout=60)
    connection.request(method, path, b"" if method in CHANGING else None, headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}


def test_no_route_answers_without_the_link_or_to_another_site(
    browser: FormBrowser, tmp_path: Path
) -> None:
    listed = list_routes(tmp_path)
    assert len(listed) > 60
    cookie = {"Cookie": browser.cookie}
    for method, path in listed:
        origin = f"http://{browser.host}"
        assert ask(browser, method, path, Origin=origin)[0] == 403, path  # no cookie
        assert ask(browser, method, path, **cookie, Origin="http://evil.example")[0] == 403, path
        assert ask(browser, method, path, **cookie, Origin=origin, Host="evil.example")[0] == 403
        if method in CHANGING:
            assert ask(browser, method, path, **cookie)[0] == 403, path  # no page of the studio


def test_reading_any_page_changes_nothing(
    browser: FormBrowser, folder: Path, tmp_path: Path
) -> None:
    work = browser.room.rpartition("/")[2]
    browser.get(f"{browser.room}/columns")
    version, files = browser.version, read_files(folder)
    for method, path in list_routes(tmp_path):
        if method != "GET":
            continue
        for address in (path, path.replace("/0/", f"/{work}/") + "?do=role&levels=1.1&of=x"):
            status, headers = ask(browser, "GET", address, Cookie=browser.cookie)
            assert status < 500, address
            for name, value in HEADERS.items():
                assert headers[name.lower()] == value or name == "Content-Security-Policy", address
            assert "script-src 'self'" in headers["content-security-policy"] or (
                "sandbox" in headers["content-security-policy"]
            ), address
    browser.get(f"{browser.room}/columns")
    assert browser.version == version
    assert read_files(folder) == files


def test_no_page_or_script_names_another_host() -> None:
    """What the policy forbids is not even tried; XML names its form, and examples a database."""
    known_addresses = re.compile(r"http://www\.w3\.org/|postgresql://host/")
    parts = [
        path
        for kind in ("static", "templates")
        for path in (HERE / kind).iterdir()
        if path.is_file()
    ]
    assert len(parts) > 30
    for path in parts:
        text = known_addresses.sub("", path.read_text(encoding="utf-8"))
        assert not re.search(r"""\w+://|["'(]//\w""", text), path.name
