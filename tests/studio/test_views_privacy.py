"""The room of privacy, asked as a browser without JavaScript asks it."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from support.inline_studio import FormBrowser, open_studio

from incrowd.curate.planned_guarantee import plan_guarantee
from incrowd.privacy.events import SafeRelease
from incrowd.release.ledger import Ledger
from incrowd.spec.file import SpecFile, read_spec_file

pytestmark = pytest.mark.usefixtures("settled_once")

SPEC = """
table: people.csv
columns:
  name: {role: identifier}
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 15, widths: [4, 8]}}}
  <b>sex</b>: {role: quasi, hierarchy: {flat: {values: [f, m]}}}
  height: {role: drop}
release: {method: safe, epsilon: 1.0, delta: 1.0e-6}
"""


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[FormBrowser]:
    people = pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(90)],
            "age": [i % 16 for i in range(90)],
            "<b>sex</b>": ["f" if i % 2 else "m" for i in range(90)],
            "height": [150.5 + i for i in range(90)],
        }
    )
    people.write_csv(tmp_path / "people.csv")
    (tmp_path / "people.yaml").write_text(SPEC)
    with open_studio(tmp_path, table="people.yaml") as studio:
        yield studio


def spec(tmp_path: Path) -> SpecFile:
    return read_spec_file(tmp_path / "people.yaml")


def test_the_page_says_what_the_certificate_will(browser: FormBrowser, tmp_path: Path) -> None:
    page = browser.get(f"{browser.room}/privacy")
    guarantee = plan_guarantee(spec(tmp_path))
    assert all(sentence.text in html.unescape(page) for sentence in guarantee.statement)
    assert f"<b>{guarantee.crowd:,.0f}</b>" in page
    assert page.count('<use href="#person"') == guarantee.crowd
    assert f'aria-label="{guarantee.crowd:.0f} people"' in page
    assert "nothing is read from the table" in page
    assert "<b>sex</b>" not in page


def test_moving_epsilon_moves_the_crowd_and_the_words(browser: FormBrowser, tmp_path: Path) -> None:
    page = browser.post(f"{browser.room}/privacy/settings", epsilon="0.2", delta="1e-09")
    assert "ε = 0.2 and δ = 1e-09" in page
    guarantee = plan_guarantee(spec(tmp_path))
    assert guarantee.epsilon == 0.2
    assert guarantee.crowd > 60
    assert "One figure stands for 10 rows." in page


def test_what_is_no_setting_is_refused_and_changes_nothing(
    browser: FormBrowser, tmp_path: Path
) -> None:
    before = (tmp_path / "people.yaml").read_text()
    for form, words in (
        ({"epsilon": "much"}, "'epsilon' must be a number"),
        ({"delta": "2"}, "less than 1"),
        ({"draw": "lots"}, "must be 'auto', 'sample' or 'counts'"),
        ({"draw": "counts", "scheme": "mondrian"}, "`scheme: mondrian` needs `draw: sample`"),
    ):
        page = browser.post(f"{browser.room}/privacy/settings", 422, **form)
        assert words in html.unescape(page)
    assert (tmp_path / "people.yaml").read_text() == before


def test_methods_are_switched_by_their_cards(browser: FormBrowser, tmp_path: Path) -> None:
    page = browser.post(f"{browser.room}/privacy/method", method="k-anonymity")
    assert "5-anonymous" in page
    assert 'value="k-anonymity" checked' in page
    assert "Largest share of suppressed rows" in page
    page = browser.post(f"{browser.room}/privacy/method", method="k-epsilon")
    assert "needs a noisy column" in page
    browser.post(f"{browser.room}/data/role", column="height", role="noisy")
    page = browser.get(f"{browser.room}/privacy")
    assert "(k, ε)-anonymous" in page
    page = browser.post(f"{browser.room}/privacy/method", 422, method="safe")
    assert "on the Data page" in page
    assert spec(tmp_path).spec.release.method == "k-epsilon"  # type: ignore[union-attr]


def test_a_ledger_is_made_chosen_and_counted(browser: FormBrowser, tmp_path: Path) -> None:
    page = browser.post(
        f"{browser.room}/privacy/ledger/new", name="people", epsilon="3", delta="1e-4"
    )
    assert Ledger(tmp_path / "people.ledger").budget().epsilon == 3.0
    assert "The ledger allows this release." in page
    Ledger(tmp_path / "people.ledger").book([SafeRelease(30, 0.3)])
    page = browser.get(f"{browser.room}/privacy")
    assert "by 1 release</dd>" in page
    page = browser.post(f"{browser.room}/privacy/settings", epsilon="3", delta="9e-5")
    assert "nothing was released" in page
    page = browser.post(f"{browser.room}/privacy/ledger", ledger="")
    assert "nothing was released" not in page
    assert Ledger(tmp_path / "people.ledger").spends()[1:] == []


@pytest.mark.parametrize("name", ["", "../other.ledger", ".hidden", "/tmp/x", "people.csv"])
def test_a_ledger_is_a_new_file_of_the_folder(
    browser: FormBrowser, tmp_path: Path, name: str
) -> None:
    before = sorted(tmp_path.iterdir())
    browser.post(f"{browser.room}/privacy/ledger/new", 422, name=name, epsilon="3", delta="1e-4")
    browser.post(f"{browser.room}/privacy/ledger", 422, ledger=name or "none.ledger")
    assert sorted(tmp_path.iterdir()) == before


def test_a_size_that_is_public_is_counted_and_said(browser: FormBrowser) -> None:
    page = browser.post(f"{browser.room}/privacy/settings", size="", size_public="yes")
    assert "The number of people was counted" in page
    assert "With 90 people " in page
    page = browser.post(f"{browser.room}/privacy/settings", size="5000")
    assert "With 5,000 people " in page


def test_what_hinders_a_promise_is_said_on_the_page(browser: FormBrowser) -> None:
    for name in ("age", "<b>sex</b>"):
        browser.post(f"{browser.room}/data/role", column=name, role="drop")
    page = browser.get(f"{browser.room}/privacy")
    assert "no column is published" in page
    assert "No statement yet." in page


def test_synthetic_rows_are_chosen_and_promised(browser: FormBrowser, tmp_path: Path) -> None:
    page = html.unescape(browser.post(f"{browser.room}/privacy/method", method="synthetic"))
    guarantee = plan_guarantee(spec(tmp_path))
    assert all(sentence.text in page for sentence in guarantee.statement)
    assert "No group is suppressed" in page
    assert "Create a ledger" in page
    page = browser.post(f"{browser.room}/privacy/settings", values="drawn", epsilon="2")
    release = spec(tmp_path).spec.release
    assert release is not None
    assert (release.method, release.model_dump()["values"]) == ("synthetic", "drawn")
    assert "ε = 2" in html.unescape(page)
