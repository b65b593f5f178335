"""The queue of confirmations: cards of columns that are alike, yes, no with something else."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from support.inline_studio import FormBrowser, open_studio

from incrowd.spec.file import read_spec_file
from incrowd.spec.model import Spec

pytestmark = pytest.mark.usefixtures("settled_once")
SPEC = """
table: people.csv
columns:
  name: {role: identifier, confirm: [role]}
  age: {role: quasi, hierarchy: {intervals: {from: 3, to: 97, widths: [10]}}, confirm: [hierarchy]}
  item_1: {role: quasi, hierarchy: {flat: {values: ["no", "yes"]}}, confirm: [role, hierarchy]}
  item_2: {role: quasi, hierarchy: {flat: {values: ["no", "yes"]}}, confirm: [role, hierarchy]}
  ward: {role: sensitive, hierarchy: {flat: {values: [A, B, C]}}, confirm: [hierarchy]}
release: {method: safe, epsilon: 1.0, delta: 1.0e-6}
"""


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[FormBrowser]:
    rows = range(120)
    people = pl.DataFrame({
        "name": [f"person {at}" for at in rows], "age": [3 + at % 95 for at in rows],
        "item_1": ["yes" if at % 2 else "no" for at in rows],
        "item_2": ["yes" if at % 3 else "no" for at in rows],
        "ward": ["C" if at == 7 else "AB"[at % 2] for at in rows],
    })  # fmt: skip
    people.write_csv(tmp_path / "people.csv")
    (tmp_path / "people.yaml").write_text(SPEC)
    with open_studio(tmp_path, table="people.yaml") as studio:
        yield studio


def spec(tmp_path: Path) -> Spec:
    return read_spec_file(tmp_path / "people.yaml").spec


def list_places(page: str) -> list[str]:
    return re.findall(r'name="place" value="(.*?)"', page)


def test_one_card_after_the_other_until_nothing_is_left(
    browser: FormBrowser, tmp_path: Path
) -> None:
    page = browser.get(f"{browser.room}/confirm")
    cards = []
    while places := list_places(page):
        cards.append(places)
        page = browser.post_pairs(f"{browser.room}/confirm", [("place", x) for x in places])
    assert spec(tmp_path).is_confirmed
    assert "Everything is confirmed" in page
    assert cards[0] == ["role:name", "role:item_1", "role:item_2"]  # all roles together
    assert ["hierarchy:item_1", "hierarchy:item_2"] in cards  # alike columns together
    assert len(cards) == 4


def test_what_is_not_selected_stays_open(browser: FormBrowser, tmp_path: Path) -> None:
    browser.get(f"{browser.room}/confirm")
    browser.post_pairs(f"{browser.room}/confirm", [("place", "role:item_1")])
    assert spec(tmp_path).unconfirmed_entries["item_1"] == ("hierarchy",)
    assert spec(tmp_path).unconfirmed_entries["name"] == ("role",)
    page = browser.post(f"{browser.room}/confirm", status=422)
    assert "Nothing is selected" in page


def test_no_with_the_public_range(browser: FormBrowser, tmp_path: Path) -> None:
    pages = [browser.get(f"{browser.room}/confirm?at={at}") for at in range(4)]
    (page,) = (page for page in pages if "hierarchy:age" in page)
    assert 'name="low" value="0"' in page  # public by the name of the column, not 3 to 97
    assert 'name="high" value="119"' in page
    browser.post(f"{browser.room}/confirm", do="change", column="age", low="0", high="119")
    column = spec(tmp_path).columns["age"]
    assert column.confirm == ()
    assert column.hierarchy is not None
    assert column.hierarchy.intervals is not None
    assert column.hierarchy.intervals.high == Decimal(119)
    refused = browser.post(
        f"{browser.room}/confirm", status=422, do="change", column="age", low="9", high="x"
    )
    assert "two numbers that rise" in html.unescape(refused)


def test_no_with_another_list_or_role(browser: FormBrowser, tmp_path: Path) -> None:
    pages = [browser.get(f"{browser.room}/confirm?at={at}") for at in range(4)]
    assert any("C (1)" in page for page in pages)  # few people have it
    browser.post(f"{browser.room}/confirm", do="change", column="ward", values="A\nB\n\n")
    flat = spec(tmp_path).columns["ward"].hierarchy
    assert flat is not None
    assert flat.flat is not None
    assert flat.flat.values == ("A", "B")
    browser.post(f"{browser.room}/confirm", do="change", column="item_1", role="drop")
    assert spec(tmp_path).columns["item_1"].role == "drop"
    assert spec(tmp_path).columns["item_1"].confirm == ()
    page = "".join(browser.get(f"{browser.room}/confirm?at={at}") for at in range(4))
    assert "item_1" not in " ".join(list_places(page))


def test_later_is_an_address_and_changes_nothing(browser: FormBrowser, tmp_path: Path) -> None:
    before = (tmp_path / "people.yaml").read_text()
    first, second = (browser.get(f"{browser.room}/confirm?at={at}") for at in (0, 1))
    assert list_places(first) != list_places(second)
    assert list_places(browser.get(f"{browser.room}/confirm?at=99")) == list_places(first)
    assert (tmp_path / "people.yaml").read_text() == before
