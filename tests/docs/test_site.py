"""The site: built from nothing, with every snippet run; from a folder, without outside requests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from support.site import SiteBuild
from support.web import find_violations

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LOADED = re.compile(
    r"""<(?:script|img|iframe|source|link\s[^>]*rel="(?:stylesheet|icon|preload)")[^>]*?"""
    r"""(?:src|href)="(?:https?:)?//""",
)
IN_STYLES = re.compile(r"""(?:url\(|@import)\s*["']?(?:https?:)?//""")
TESTS = re.compile(r'href="([./]*/tests/[\w/]+\.html)#(\w+)"')


def test_it_is_built_without_a_complaint(site: SiteBuild) -> None:
    assert (site.status, site.complaints) == (0, "")


def test_nothing_is_loaded_from_elsewhere(site: SiteBuild) -> None:
    pages = list(site.pages.rglob("*.html"))
    assert len(pages) > 40
    result = [page for page in pages if LOADED.search(page.read_text(encoding="utf-8"))]
    styles = [
        style
        for style in site.pages.rglob("*.css")
        if IN_STYLES.search(style.read_text(encoding="utf-8"))
    ]
    assert (result, styles) == ([], [])
    assert LOADED.search('<script src="https://cdn.example.org/x.js">')


def test_every_test_that_is_named_is_a_link_to_its_source(site: SiteBuild) -> None:
    links = [
        (page.parent / path, name)
        for page in (site.pages / "proofs").glob("*.html")
        for path, name in TESTS.findall(page.read_text(encoding="utf-8"))
    ]
    assert len(links) > 50
    for file, name in links:
        assert f'<span id="{name}"></span>' in file.read_text(encoding="utf-8"), name
    assert "def test_counts" not in (site.pages / "searchindex.js").read_text(encoding="utf-8")


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page that fails if anything but files is asked for."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    request: list[str] = []
    context.on("request", lambda sent_request: request.append(sent_request.url))
    yield context.new_page()
    context.close()
    assert [url for url in request if not url.startswith(("file:", "data:", "blob:"))] == []


def test_it_works_from_the_file_system_and_keeps_nobody_out(site: SiteBuild, page: Page) -> None:
    names = ("index", "reference/spec", "tests/privacy/test_k_epsilon", "understand/releases")
    for name in names:
        page.goto((site.pages / f"{name}.html").as_uri())
        assert find_violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert find_violations(page) == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_word_is_found_by_the_search(site: SiteBuild, page: Page) -> None:
    page.goto((site.pages / "search.html").as_uri() + "?q=mondrian")
    page.wait_for_selector("#search-results li")


def test_searching_install_finds_the_page_that_says_how(site: SiteBuild, page: Page) -> None:
    page.goto((site.pages / "search.html").as_uri() + "?q=install")
    page.wait_for_selector("#search-results li")
    first = page.locator("#search-results li a").first
    assert first.inner_text() == "Install Incrowd"
    assert "start/install.html" in str(first.get_attribute("href"))
