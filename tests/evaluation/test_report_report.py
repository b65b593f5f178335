"""The curator's report: self-contained, readable by everybody, and no figure but those measured."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from support.pages import list_external_loads, read_outline
from support.readers import METHODS
from support.readers import publish_reader_table as made_by
from support.web import find_violations

from incrowd.evaluation.report.origin import LedgerStatus, ReleaseOrigin
from incrowd.evaluation.report.report import render_report
from incrowd.evaluation.report.summary import summarize_release
from incrowd.privacy.amplification import Guarantee
from incrowd.publication import Release, publish
from incrowd.release.ledger import Ledger
from incrowd.release.ledger_entries import RULE
from incrowd.release.verify import read_certificate, verify
from incrowd.spec.file import parse_spec

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.usefixtures("settled_once")
WAYS = ("counts", "cuts", "slices", "ola", "mondrian", "starred", "k-epsilon")
SECTIONS = [
    "Published data", "Guarantee", "Information loss", "Review", "Statement of the certificate",
    "Disclosure risk", "Attacks", "Utility", "Columns", "Example rows",
    "Groups affected by suppression", "Privacy budget", "Reproduction",
]  # fmt: skip


def page_of(release: Release) -> str:
    return (release.curator / "report.html").read_text(encoding="utf-8")


def written(release: Release) -> Any:
    return json.loads((release.curator / "evaluation.json").read_text(encoding="utf-8"))


def drawings(page: str) -> list[str]:
    return re.findall(r"<svg.*?</svg>", page, re.DOTALL)


def headings(page: str) -> list[str]:
    return re.findall(r"<h2[^>]*>(.*?)</h2>", page)


def pct(share: float, digits: int = 1) -> str:
    text = f"{100 * share:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.')} %"


@pytest.mark.parametrize("way", WAYS)
def test_every_method_has_every_part(tmp_path: Path, way: str) -> None:
    release = made_by(tmp_path / "out", way, by=publish)
    page, content = page_of(release), written(release)
    text = read_outline(page).text
    assert list_external_loads(page) == []
    assert headings(page) == SECTIONS
    assert "could not be drawn" not in page
    assert "could not be run" not in page
    result = drawings(page)
    assert len(result) > 3
    for drawing in result:
        assert re.match(r'<svg [^>]*role="img"', drawing)
        assert re.search(r"<title>[^<]+</title>\s*<desc>[^<]+</desc>", drawing)
    assert f"from a table of {content['rows_original']:,} rows" in text
    assert all(item.text in text for item in release.certificate.guarantee.statement)
    if content["utility"] is not None:
        assert f"median relative error of {pct(content['utility']['query_error'])} (mean" in text
        assert f"mean error of {content['utility']['association_error']:.4f}" in text
    for first in content["subgroups"]:
        if first["hidden"] is not None and first["rows"]:
            share = pct(first["rows"] / content["rows_original"])
            row = f"{first['rows']:,} {share} {first['hidden']:,} "
            assert f"{row}{pct(first['hidden'] / first['rows'])}" in text
    for name, loss in content["loss_by_column"].items():
        assert re.search(rf"{re.escape(name)} .{{1,60}} {loss:.3f} ", text)
    for attack in json.loads((release.curator / "attacks.json").read_text())["attacks"]:
        assert f"{attack['attack']}: {attack['name']}" in text
        assert pct(attack["success"]["value"]) in text


def test_there_is_a_way_for_every_method() -> None:
    assert set(WAYS) <= set(METHODS)


def test_a_page_from_the_files_alone_is_the_page_that_was_written(tmp_path: Path) -> None:
    """One computation, shown twice: other figures make another page."""
    release = made_by(tmp_path / "out", "ola", by=publish)
    certificate = read_certificate(tmp_path / "out")
    again = render_report(certificate, release.evaluation, release.reasons)
    changed = render_report(
        certificate, replace(release.evaluation, loss=0.123456), release.reasons
    )
    assert "12.3 %" in read_outline(changed).text
    assert "12.3 %" not in read_outline(again).text


def test_an_empty_release_says_so(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": [str(i) for i in range(40)]})
    spec = "columns: {x: {role: quasi, hierarchy: flat}}\nrelease: "
    spec += "{epsilon: 1, delta: 1.0e-6, levels: {x: 0}}"
    release = publish(table, parse_spec(spec), output=tmp_path / "out")
    text = read_outline(page_of(release)).text
    assert "Nothing was published." in text
    assert "100 % of the rows suppressed" in text


def test_what_was_not_measured_is_left_out(tmp_path: Path) -> None:
    """As where cells are on other machines: no utility, no subgroups, no advice."""
    release = made_by(tmp_path / "out", "counts", by=publish)
    bare = replace(release.evaluation, utility=None, subgroups=[], advice=[], suppressed=5)
    text = read_outline(render_report(release.certificate, bare)).text
    assert text.count("Not measured: the rows of the table are on other machines.") == 2
    assert "Example rows" not in text


def test_the_budget_and_the_way_back(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "book")
    ledger.set_budget(epsilon=3, delta=1e-5)
    release = made_by(tmp_path / "out", "counts", by=publish, ledger=ledger)
    text = read_outline(page_of(release)).text
    spent = ledger.total()
    assert f"({spent.epsilon:.4g}, {spent.delta:.3g}) of the budget (3, 1e-05) is booked" in text
    assert f"({3 - spent.epsilon:.4g}, {1e-5 - spent.delta:.3g}) is left" in text
    assert "as an unplanned release" in text
    assert RULE in text
    assert "incrowd publish spec.yaml -o FOLDER --ledger book" in text
    assert f'pip install "incrowd=={release.certificate.incrowd}"' in text
    assert "levels: {code: 0, n: 0" in text  # the spec itself
    assert release.booking is not None
    over = LedgerStatus("x", Guarantee(1.0, 1e-6), Guarantee(1.5, 1e-7), release.booking, 1)
    assert over.remaining_budget == Guarantee(0.0, 1e-6 - 1e-7)
    long = ReleaseOrigin("x" * 200_000)
    assert len(long.shown_spec) < 101_000
    assert long.shown_spec.endswith("100,000 more characters")


def test_a_sentence_says_on_whom_suppression_falls(tmp_path: Path) -> None:
    draw = [("a", 900), ("b", 30), ("c", 6)]
    table = pl.DataFrame({"race": [label for label, rows in draw for _ in range(rows)]})
    columns = {"race": {"role": "quasi", "hierarchy": {"flat": {"values": ["a", "b", "c"]}}}}
    release = {"method": "k-anonymity", "k": 10, "suppression": 0.05, "levels": {"race": 0}}
    suppressed_release = publish(
        table, {"columns": columns, "release": release}, output=tmp_path / "out"
    )
    text = (
        "Suppression affects small groups more: 16.7 % of the rows of small groups (less than "
        "10 % of the table) are suppressed, and 0 % of the rows of large groups. Most affected: "
        "race c, 100 % of 6 rows; overall 0.6 %."
    )
    assert text in read_outline(page_of(suppressed_release)).text
    assert (
        text
        in summarize_release(
            suppressed_release.certificate, suppressed_release.evaluation
        ).review.sentences
    )
    full_release = publish(table, {"columns": columns, "release": {**release, "k": 5}},
                   output=tmp_path / "all")  # fmt: skip
    assert (
        "No group was suppressed."
        in summarize_release(full_release.certificate, full_release.evaluation).review.sentences
    )


HOSTILE = "<script>alert(1)</script>\"'&"


def test_script_in_names_and_values_is_escaped(tmp_path: Path) -> None:
    values = [HOSTILE, "</style>", "x"]
    hierarchy = {"flat": {"values": values}}
    columns = {
        HOSTILE: {"role": "quasi", "hierarchy": hierarchy},
        "</svg>": {"role": "sensitive"},
    }
    table = pl.DataFrame({HOSTILE: values * 20, "</svg>": values * 20})
    for release in (
        {"method": "k-anonymity", "k": 5}, {"method": "k-anonymity", "k": 25, "suppression": 0.4},
    ):  # fmt: skip
        shutil.rmtree(tmp_path, ignore_errors=True)
        published = publish(
            table, {"columns": columns, "release": release}, output=tmp_path / "out"
        )
        assert verify(tmp_path / "out") == []
        for page in (page_of(published), (tmp_path / "out" / "certificate.html").read_text()):
            assert list_external_loads(page) == []
            assert "<script" not in page
            assert page.count("</style>") == 1
            assert page.count("<svg") == page.count("</svg>")


# In a browser ---------------------------------------------------------------------------------


@contextmanager
def shown(browser: Browser, path: Path, **settings: Any) -> Iterator[Page]:
    """A page from the file system; at the end nothing but the file was asked for."""
    request: list[str] = []
    context = browser.new_context(**settings)
    context.on("request", lambda message: request.append(message.url))
    context.on(
        "console", lambda message: request.append(message.text) if message.type == "error" else None
    )
    page = context.new_page()
    page.goto(path.as_uri())
    yield page
    context.close()
    assert request == [path.as_uri()]


def test_in_a_browser(tmp_path: Path, chromium: Browser) -> None:
    """One page of each kind is held against all rules; that pages fit is looked at for more."""
    phone, wide = ({"width": x, "height": y} for x, y in ((390, 844), (1280, 800)))
    item, other = (made_by(tmp_path / way, way, by=publish) for way in ("starred", "slices"))
    first, second = item.curator / "report.html", item.folder / "certificate.html"
    for path in (first, second, other.curator / "report.html", other.folder / "certificate.html"):
        with shown(chromium, path, color_scheme="dark", viewport=phone) as page:
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            assert path != first or find_violations(page) == []
    with shown(chromium, second, viewport=wide) as page:
        assert find_violations(page) == []
    with shown(chromium, first, viewport=wide) as page:
        box = page.locator(".cards").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 800  # the summary is on one screen
        page.emulate_media(media="print")
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
