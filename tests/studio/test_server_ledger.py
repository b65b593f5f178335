"""The ledger belongs to the spec: no browser that is closed, and no other session, forgets it."""

from __future__ import annotations

import html
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from support.inline_studio import FormBrowser, serve_studio

from incrowd.release.ledger import Ledger
from incrowd.release.ledger_entries import RULE
from incrowd.spec.file import read_spec_file

pytestmark = pytest.mark.usefixtures("settled_once")

ROOMS = ("data", "hierarchies", "privacy", "explore", "publish")
SPEC = """\
table: people.csv
columns:
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 15, widths: [4, 8]}}}
  sex: {role: quasi, hierarchy: {flat: {values: [f, m]}}}
release: {method: safe, epsilon: 1.0, delta: 1.0e-6}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A spec beside its table."""
    people = {"age": [at % 16 for at in range(3000)], "sex": ["fm"[at % 2] for at in range(3000)]}
    pl.DataFrame(people).write_csv(tmp_path / "people.csv")
    (tmp_path / "people.yaml").write_text(SPEC)
    return tmp_path / "people.yaml"


@pytest.fixture
def browsers(spec: Path) -> Iterator[tuple[FormBrowser, FormBrowser]]:
    """Two browsers of one user, one after the other."""
    with serve_studio(spec.parent, table="people.yaml") as (port, sessions):
        yield FormBrowser(port, sessions.token), FormBrowser(port, sessions.token)


def make_ledger(browser: FormBrowser, epsilon: str) -> str:
    return browser.post(
        f"{browser.room}/privacy/ledger/new", name="people", epsilon=epsilon, delta="1e-5"
    )


def test_a_ledger_is_written_into_the_spec(
    browsers: tuple[FormBrowser, FormBrowser], spec: Path
) -> None:
    first, second = browsers
    make_ledger(first, "1.5")
    assert read_spec_file(spec).spec.ledger == "people.ledger"
    assert stat.S_IMODE((spec.parent / "people.ledger").stat().st_mode) == 0o600
    first.post(f"{first.room}/privacy/ledger", ledger="")
    assert read_spec_file(spec).spec.ledger is None
    second.get(f"{second.room}/privacy")
    second.post(f"{second.room}/privacy/ledger", ledger="people.ledger")
    assert read_spec_file(spec).spec.ledger == "people.ledger"


def test_the_rule_of_composition_stands_beside_the_ledger(
    browsers: tuple[FormBrowser, FormBrowser],
) -> None:
    first, _ = browsers
    assert RULE in html.unescape(first.get(f"{first.room}/privacy"))


def test_what_is_left_stands_in_every_room_of_every_session(
    browsers: tuple[FormBrowser, FormBrowser], spec: Path
) -> None:
    first, second = browsers
    make_ledger(first, "1.5")
    for browser in (first, second):
        for room in ROOMS:
            header = html.unescape(browser.get(f"{browser.room}/{room}").partition("</header>")[0])
            assert "people.ledger" in header
            assert "(1.5, 1e-05) left" in header, header
    (spec.parent / "people.ledger").unlink()
    header = html.unescape(first.get(f"{first.room}/data").partition("</header>")[0])
    assert "is not usable" in header


def published(browser: FormBrowser, name: str) -> str:
    """The page after a release."""
    browser.get(f"{browser.room}/publish")
    browser.post(f"{browser.room}/publish/begin", name=name)
    end = time.monotonic() + 60
    while "data-follow" in (page := browser.get(f"{browser.room}/publish")):
        assert time.monotonic() < end
        time.sleep(0.1)
    return page


def test_a_second_release_beyond_the_budget_is_blocked_before_it_is_begun(
    browsers: tuple[FormBrowser, FormBrowser], spec: Path
) -> None:
    """Also in a browser that came later, with the reason, and whatever it sends."""
    first, second = browsers
    make_ledger(first, "1.5")
    assert "Booked in the ledger" in published(first, "one")
    assert len(Ledger(spec.parent / "people.ledger").spends()) == 1
    second.post(f"{second.room}/publish/another")
    page = second.get(f"{second.room}/publish")
    assert '<button id="publish" disabled>' in page
    assert "nothing was released" in html.unescape(page)
    assert "(0.5, " in html.unescape(page.partition("</header>")[0])
    refused = second.post(f"{second.room}/publish/begin", 422, name="two")
    assert "nothing was released" in html.unescape(refused)
    assert not (spec.parent / "two").exists()
    assert len(Ledger(spec.parent / "people.ledger").spends()) == 1


def test_undo_never_takes_the_ledger_away(
    browsers: tuple[FormBrowser, FormBrowser], spec: Path
) -> None:
    first, _ = browsers
    first.post(f"{first.room}/privacy/settings", epsilon="0.5")
    make_ledger(first, "1.5")
    first.post(f"{first.room}/undo")
    saved_spec = read_spec_file(spec).spec
    assert saved_spec.release.epsilon == 1.0  # type: ignore[union-attr]
    assert saved_spec.ledger == "people.ledger"


def test_another_method_keeps_the_ledger_and_says_so(
    browsers: tuple[FormBrowser, FormBrowser], spec: Path
) -> None:
    """Or a safe release after it would go uncounted."""
    first, _ = browsers
    make_ledger(first, "1.5")
    page = first.post(f"{first.room}/privacy/method", method="k-anonymity")
    assert read_spec_file(spec).spec.ledger == "people.ledger"
    assert 'id="ledger-file"' in page
    page = first.get(f"{first.room}/publish")
    assert '<button id="publish" disabled>' in page


@pytest.mark.parametrize("name", ["../other.ledger", "/tmp/other.ledger"])
def test_a_spec_may_not_name_a_ledger_elsewhere(tmp_path: Path, spec: Path, name: str) -> None:
    spec.write_text(f"ledger: {name}\n{SPEC}")
    with serve_studio(tmp_path) as (port, sessions):
        browser = FormBrowser(port, sessions.token)
        page = browser.post("/open", 422, place="people.yaml")
        assert "is outside" in page
