"""A real browser for tests: it fails a test that makes it load from elsewhere, or complain."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from support.studio import RunningStudio

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NEEDED = "Tests in a browser need Chromium: install the package chromium, or put it on the PATH."
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Debian's browser, without a window; one for all tests."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    assert path, NEEDED
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def open_page(
    browser: Browser, studio: RunningStudio, *, refusals: bool = False, **settings: Any
) -> Iterator[Page]:
    """A page of a new user; at the end nothing was loaded from elsewhere, nothing complained.

    With ``refusals`` the console may note that the studio has refused a change.
    """
    link, wrong = studio.wait_for_link(), list[str]()
    host = urlsplit(link).netloc
    context = browser.new_context(**settings)
    context.set_default_timeout(60_000)
    context.on("request", lambda event: _check_host(event.url, host, wrong))

    def note(text: str, kind: str) -> None:
        refused = refusals and ("status of 409" in text or "status of 422" in text)
        if kind == "error" and not refused:
            wrong.append(text)

    context.on("console", lambda event: note(event.text, event.type))
    context.on("weberror", lambda event: wrong.append(str(event.error)))
    page = context.new_page()
    page.goto(link)
    studio.wait_for_new_link(link)
    yield page
    context.close()
    assert wrong == []


def settle_page(page: Page) -> None:
    """Wait until nothing more is to be followed or sent."""
    page.wait_for_selector("[data-follow]", state="detached")
    page.wait_for_selector("body:not([data-busy])")


def open_room(page: Page, name: str) -> None:
    """Go to a room of the work by its link."""
    page.click(f"nav.steps a[href$='/{name}']")
    page.wait_for_selector(f"nav.steps a[href$='/{name}'][aria-current]")
    settle_page(page)


def _check_host(url: str, host: str, wrong: list[str]) -> None:
    if urlsplit(url).scheme not in ("data", "blob", "about") and urlsplit(url).netloc != host:
        wrong.append(f"a request to {url}")


def find_violations(page: Page) -> list[str]:
    """What axe finds that keeps somebody out."""
    from axe_playwright_python.sync_playwright import Axe

    response = Axe().run(page).response["violations"]
    return [
        f"{violation['id']}: {node['html'][:160]}"
        for violation in response
        if violation["impact"] in SERIOUS
        for node in violation["nodes"]
    ]
