"""The table of columns: filter, order, and changes to several, as a plain browser asks for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.inline_studio import FormBrowser, open_studio
from support.questionnaires import make_questionnaires

from incrowd.spec.file import read_spec_file

pytestmark = pytest.mark.usefixtures("settled_once")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wide")
    make_questionnaires(120, 46).write_csv(path / "survey.csv")
    return path


@pytest.fixture
def browser(folder: Path) -> Iterator[FormBrowser]:
    for old in folder.glob("*.yaml"):
        old.unlink()
    with open_studio(folder, table="survey.csv") as studio:
        yield studio


def list_names(page: str) -> list[str]:
    return re.findall(r'<th scope="row">(.*?)</th>', page)


def test_many_columns_begin_with_the_table_and_every_column_has_a_row(browser: FormBrowser) -> None:
    assert browser.address.endswith("/person")  # the first question, whatever else there is
    browser.get(browser.address)
    browser.post(f"{browser.room}/person", unit="")
    assert browser.address.endswith("/columns")
    page = browser.get(f"{browser.room}/columns")
    assert len(list_names(page)) == 46
    for words in ("46 of 46 columns", "postal code", "ages; 90 and above", "to 89, by", "<svg"):
        assert words in page
    assert page.count("<option") < 46 * 20  # the page stays small


def test_filter_and_order_are_addresses(browser: FormBrowser) -> None:
    labs = list_names(browser.get(f"{browser.room}/columns?find=LAB_"))
    assert labs
    assert all(name.startswith("lab_") for name in labs)
    sensitive = browser.get(f"{browser.room}/columns?only=sensitive")
    assert "diagnosis" in list_names(sensitive)
    assert "sex" not in list_names(sensitive)
    by_name = list_names(browser.get(f"{browser.room}/columns?sort=name"))
    assert by_name == sorted(by_name)
    assert list_names(browser.get(f"{browser.room}/columns?sort=-name")) == by_name[::-1]
    most = list_names(browser.get(f"{browser.room}/columns?sort=distinct"))
    assert most[0] == "respondent"
    assert 'aria-sort="ascending"' in browser.get(f"{browser.room}/columns?sort=nulls")
    assert "No match" in browser.get(f"{browser.room}/columns?find=zzz")
    assert len(list_names(browser.get(f"{browser.room}/columns?sort=<b>&only=<b>"))) == 46


def test_what_is_urgent_comes_first(browser: FormBrowser) -> None:
    listed = list_names(browser.get(f"{browser.room}/columns?sort=first"))
    assert listed[0] == "postcode"  # may identify, and is not an identifier
    assert listed.index("answer_000") < listed.index("age")  # its hierarchy was read from the data


def test_roles_of_rows_and_of_all_that_are_selected(browser: FormBrowser, folder: Path) -> None:
    browser.get(f"{browser.room}/columns?find=answer&sort=name")
    fields: dict[str, Any] = {"role-2": "drop"}
    page = browser.post(f"{browser.room}/columns/set?find=answer&sort=name", **fields)
    assert "?find=answer" in browser.address  # the filter stays
    assert len(list_names(page)) == 21
    spec = read_spec_file(folder / "survey.yaml").spec
    assert spec.columns["sex"].role == "drop"
    browser.post(f"{browser.room}/columns/set", do="role", all_role="drop", column="age")
    assert read_spec_file(folder / "survey.yaml").spec.columns["age"].role == "drop"
    refused = browser.post(f"{browser.room}/columns/set", 422, do="role", all_role="drop")
    assert "Select one or more columns first." in refused


def test_a_stale_page_changes_nothing(browser: FormBrowser, folder: Path) -> None:
    before = (folder / "survey.yaml").read_text()
    browser.version = "0" * 16
    browser.post(f"{browser.room}/columns/set", 409, do="role", all_role="drop", column="age")
    assert (folder / "survey.yaml").read_text() == before
