"""The first step: who a person is. A wrong unit is refused until its reason is stated."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from support.inline_studio import FormBrowser, open_studio

from incrowd.spec.file import read_spec_file
from incrowd.spec.model import PersonId, Spec

pytestmark = pytest.mark.usefixtures("settled_once")


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[FormBrowser]:
    rows = range(1200)
    people = pl.DataFrame({
        "patient_id": [f"P{at // 3:05d}" for at in rows],
        "sex": ["f" if at % 2 else "m" for at in rows],
        "age": [at % 80 for at in rows],
    })  # fmt: skip
    people.write_csv(tmp_path / "visits.csv")
    with open_studio(tmp_path, table="visits.csv") as studio:
        yield studio


def spec(tmp_path: Path) -> Spec:
    return read_spec_file(tmp_path / "visits.yaml").spec


def test_the_question_comes_first_with_counts_of_all_rows(browser: FormBrowser) -> None:
    assert browser.address.endswith("/person")
    page = browser.get(browser.address)
    assert "<strong>400</strong> people" in page
    assert "median 3, largest 3" in page
    assert "Answer first" not in page
    assert "Answer first" in browser.get(f"{browser.room}/privacy")


def test_a_wrong_unit_cannot_be_clicked_past(browser: FormBrowser, tmp_path: Path) -> None:
    browser.get(f"{browser.room}/person")
    page = browser.post(f"{browser.room}/person", status=422, unit="")
    assert "up to 3 rows each" in html.unescape(page)
    assert spec(tmp_path).confirm == ("unit",)
    page = browser.post(f"{browser.room}/person", status=422, unit="age")
    assert "does not look like an id" in html.unescape(page)
    browser.post(f"{browser.room}/person", unit="", certain="")
    assert spec(tmp_path).unit == "one row per person"
    assert spec(tmp_path).confirm == ()


def test_the_unit_with_its_rows_is_confirmed(browser: FormBrowser, tmp_path: Path) -> None:
    page = browser.get(f"{browser.room}/person")
    assert "up to 2 rows: noise ±" in page  # what it costs, by the spec
    browser.post(
        f"{browser.room}/person", unit="patient_id", rows="2", without_id="drop", people="400"
    )
    assert browser.address.endswith("/data")
    assert spec(tmp_path).unit == PersonId(id="patient_id", rows=2, without_id="drop")
    assert spec(tmp_path).columns["patient_id"].role == "identifier"
    assert spec(tmp_path).size is None  # the number of people is for dry runs alone
    assert 'name="people" value="400"' in browser.get(f"{browser.room}/privacy")
    browser.post(f"{browser.room}/privacy/method", method="synthetic")
    assert spec(tmp_path).unit == PersonId(id="patient_id", without_id="drop")


def test_rows_are_counted_where_the_curator_asks_for_it(
    browser: FormBrowser, tmp_path: Path
) -> None:
    page = browser.get(f"{browser.room}/person")
    assert "once, so counts are people" in page
    browser.post(f"{browser.room}/person", unit="patient_id", rows="3", per_group="2")
    assert spec(tmp_path).unit == PersonId(id="patient_id", rows=3, per_group=2)
    page = browser.get(f"{browser.room}/person")
    assert "once, so counts are people: noise ±" in page
    assert "up to 2 rows: noise ±" in page
    refused = browser.post(
        f"{browser.room}/person", status=422, unit="patient_id", rows="2", per_group="3"
    )
    assert "exceeds `rows` (2)" in html.unescape(refused)
    browser.post(f"{browser.room}/privacy/method", method="k-anonymity")
    assert spec(tmp_path).unit == PersonId(id="patient_id", rows=3)


def test_a_column_that_nobody_proposed_is_counted(browser: FormBrowser) -> None:
    page = browser.get(f"{browser.room}/person?column=age")
    assert "<strong>80</strong> people" in page
    assert "contradicts the counts" in page
    assert browser.get(f"{browser.room}/person?column=nothing").count("<strong>80") == 0


def test_a_number_of_people_is_a_number(browser: FormBrowser) -> None:
    browser.get(f"{browser.room}/privacy")
    assert "must be a whole number" in browser.post(
        f"{browser.room}/people", status=422, people="many"
    )
    page = browser.post(f"{browser.room}/people", people="20.000")
    assert browser.address.endswith("/privacy")
    assert 'value="20000"' in page
