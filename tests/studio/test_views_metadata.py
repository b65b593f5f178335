"""The questions of catalogs and registries, asked as a browser without JavaScript asks them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from support.inline_studio import FormBrowser, open_studio

from incrowd.curate.deposit import FORMATS
from incrowd.curate.questionnaire import list_about_questions
from incrowd.spec.about import METADATA_FORMATS
from incrowd.spec.file import SpecFile, read_spec_file

SPEC = """
table: people.csv
columns:
  sex: {role: quasi, hierarchy: {flat: {values: [f, m]}}}
release: {method: safe, epsilon: 1.0, delta: 1.0e-6}
"""


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[FormBrowser]:
    pl.DataFrame({"sex": ["f", "m"] * 40}).write_csv(tmp_path / "people.csv")
    (tmp_path / "people.yaml").write_text(SPEC)
    with open_studio(tmp_path, table="people.yaml") as studio:
        yield studio


def read_spec(tmp_path: Path) -> SpecFile:
    return read_spec_file(tmp_path / "people.yaml")


def test_one_screen_asks_everything_and_invents_nothing(
    browser: FormBrowser, tmp_path: Path
) -> None:
    page = html.unescape(browser.get(f"{browser.room}/metadata"))
    for question in list_about_questions(read_spec(tmp_path)):
        assert question.words in page
        assert f'name="{question.entry}"' in page
    assert "0 of 10 answered" in page
    assert page.count('placeholder="not stated"') == 16
    assert re.findall(r'name="\w+" value="([^"]+)"', page).count("not stated") == 0
    assert {*FORMATS} == {*METADATA_FORMATS}
    assert all(title in page for title, _ in FORMATS.values())


def test_answers_and_formats_are_entries_of_the_spec(browser: FormBrowser, tmp_path: Path) -> None:
    room = browser.room
    page = browser.post(
        f"{room}/metadata/answers", title=' "A" & <b> ', theme="health", keywords="x, ,y"
    )
    about = read_spec(tmp_path).spec.about
    assert about is not None
    assert (about.title, about.theme, about.keywords) == ('"A" & <b>', "health", ("x", "y"))
    assert "2 of 10 answered" in page
    assert "&lt;b&gt;" in page
    page = browser.post(f"{room}/metadata/formats", format="dossier")
    assert read_spec(tmp_path).spec.describe == ("dossier",)
    assert "1 format</span>" in browser.get(f"{room}/publish")
    browser.post(f"{room}/undo")
    assert read_spec(tmp_path).spec.describe == ()
    browser.post(f"{room}/metadata/answers", title="", theme="", keywords="")
    assert read_spec(tmp_path).spec.about is None


def test_what_is_not_valid_is_refused_by_name(browser: FormBrowser, tmp_path: Path) -> None:
    room = browser.room
    page = browser.post(f"{room}/metadata/answers", contact="nobody", status=422)
    assert "about.contact: is neither an e-mail address" in html.unescape(page)
    assert read_spec(tmp_path).spec.about is None
    page = browser.post(f"{room}/metadata/formats", format="pdf", status=422)
    assert "There is no format 'pdf'." in html.unescape(page)


def test_the_registry_is_offered_for_differential_privacy_alone(
    browser: FormBrowser, tmp_path: Path
) -> None:
    assert "Only for differential privacy" not in browser.get(f"{browser.room}/metadata")
    browser.post(f"{browser.room}/privacy/method", method="k-anonymity")
    page = browser.get(f"{browser.room}/metadata")
    assert "Only for differential privacy" in page
    assert re.search(r'value="registry" disabled', page)
