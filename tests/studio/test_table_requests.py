"""Tables of counts by clicks, the advice on methods, and the heat map of what was published."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support.inline_studio import FormBrowser, open_studio

from incrowd.publication import publish
from incrowd.release.tables_read import PublishedCells, read_cells, read_columns
from incrowd.spec.file import parse_spec, read_spec_file
from incrowd.spec.release import TablesSpec
from incrowd.studio.heat_map import draw_heat_map

pytestmark = pytest.mark.usefixtures("settled_once")
SPEC = """
table: people.csv
columns:
  town: {role: quasi, hierarchy: {mask: {length: 2}}}
  sex: {role: quasi, hierarchy: {flat: {values: [f, m]}}}
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 89, widths: [10, 30]}}}
  ward: {role: sensitive, hierarchy: {flat: {values: [A, B, C]}}}
release: {method: tables, epsilon: 1.0, delta: 1.0e-6, all: 2}
"""
PEOPLE = pl.DataFrame({
    "town": [f"{at % 9}{at % 7}" for at in range(900)], "sex": ["fm"[at % 2] for at in range(900)],
    "age": [at % 90 for at in range(900)], "ward": ["ABC"[at % 3] for at in range(900)],
})  # fmt: skip


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[FormBrowser]:
    PEOPLE.write_csv(tmp_path / "people.csv")
    (tmp_path / "people.yaml").write_text(SPEC)
    with open_studio(tmp_path, table="people.yaml") as studio:
        yield studio


def release(tmp_path: Path) -> TablesSpec:
    tables = read_spec_file(tmp_path / "people.yaml").spec.release
    assert isinstance(tables, TablesSpec)
    return tables


def test_tables_are_added_and_removed_by_clicks(browser: FormBrowser, tmp_path: Path) -> None:
    at = f"{browser.room}/privacy"
    page = browser.get(at)
    assert "Without a list of values, and so in no table: town" in page
    add = [("do", "add"), ("column", "sex"), ("column", "ward")]
    page = browser.post_pairs(f"{at}/tables", add)
    assert [table.columns for table in release(tmp_path).tables] == [("sex", "ward")]
    assert release(tmp_path).all is None
    assert "sex × ward" in page
    assert re.search(r"<b>±\d", page)  # its error, before anything is spent
    refused = browser.post_pairs(f"{at}/tables", add, status=422)
    assert "same columns" in html.unescape(refused)
    browser.post_pairs(f"{at}/tables", [("do", "add"), ("column", "age")])
    browser.post(f"{at}/tables", do="totals")
    assert release(tmp_path).totals is False
    browser.post(f"{at}/tables", do="totals", totals="yes")
    browser.post(f"{at}/tables", do="remove", at="0")
    assert [table.columns for table in release(tmp_path).tables] == [("age",)]
    browser.post(f"{at}/tables", do="remove", at="0")
    assert (release(tmp_path).tables, release(tmp_path).all) == ((), 2)
    browser.post(f"{at}/tables", do="all", of="3")
    assert release(tmp_path).all == 3
    for form in ({"do": "add"}, {"do": "remove", "at": "7"}, {"do": "what"}):
        browser.post(f"{at}/tables", status=422, **form)
    assert "town" in browser.post(f"{at}/tables", status=422, do="add", column="nothing")


def test_a_smaller_epsilon_has_larger_errors(browser: FormBrowser) -> None:
    at = f"{browser.room}/privacy"
    browser.get(at)
    browser.post_pairs(f"{at}/tables", [("do", "add"), ("column", "sex")])
    errors = []
    for epsilon in ("2", "0.2"):
        page = browser.post(f"{at}/settings", epsilon=epsilon)
        errors.append(float(re.findall(r"<b>±([\d.,]+)</b>", page)[0].replace(",", "")))
        assert "What ε means" in page
        assert f"at ε = {epsilon}" in page
    assert errors[1] > 5 * errors[0]


def test_the_purpose_recommends_and_changes_nothing(browser: FormBrowser, tmp_path: Path) -> None:
    at, before = f"{browser.room}/privacy", (tmp_path / "people.yaml").read_text()
    browser.get(at)
    page = browser.post(f"{at}/purpose", purpose="test-data")
    assert "Recommended: Synthetic rows" in page
    browser.post(f"{browser.room}/people", people="900")
    page = browser.post(f"{at}/purpose", purpose="explore")
    assert "What each method would keep of 900 people" in page
    assert page.count("recommended</span>") >= 2  # in the table, and on its card
    assert (tmp_path / "people.yaml").read_text() == before
    browser.post(f"{at}/purpose", status=422, purpose="nothing")


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> PublishedCells:
    folder = tmp_path_factory.mktemp("tables") / "release"
    spec = SPEC.replace("all: 2", "tables: [[sex, age, ward]]").replace(
        "{role: quasi, hierarchy: {mask: {length: 2}}}", "{role: drop}"
    )
    published = publish(PEOPLE, parse_spec(spec), output=folder)
    return read_cells(folder, published.certificate, 0, read_columns(folder, published.certificate))


def test_the_heat_map_shows_the_published_numbers(cells: PublishedCells) -> None:
    picture = draw_heat_map(cells, {"level-1": "1"})
    sex, age = picture.axes
    assert (sex.labels[:2], age.labels[0]) == (("f", "m"), "0-9")
    assert picture.filters[0].lines[picture.filters[0].line].strip() == "Total"
    counts = np.asarray(cells.count).reshape(tuple(map(len, cells.lines)))
    places = [cells.lines[0].find_level(0), cells.lines[1].find_level(1)]
    total = cells.lines[2].find_level(cells.columns[2].root)
    expected = counts[np.ix_(places[0], places[1], total)][..., 0].tolist()
    assert [[cell.count for cell in row] for row in picture.cells] == expected
    assert all(cell.low <= cell.high for row in picture.cells for cell in row)
    assert picture.most == max(map(max, expected))
    shades = {cell.count: cell.shade for row in picture.cells for cell in row}
    assert (shades[picture.most], shades[min(map(min, expected))]) == (9, 0)


def test_a_further_column_is_held_at_one_line(cells: PublishedCells) -> None:
    place = cells.lines[2].labels.index("B")
    picture = draw_heat_map(cells, {"line-2": str(place), "level-0": "99", "level-1": "x"})
    assert picture.filters[0].line == place
    assert picture.axes[0].level == 0
    total = draw_heat_map(cells, {})
    assert sum(cell.count or 0 for row in picture.cells for cell in row) < sum(
        cell.count or 0 for row in total.cells for cell in row
    )
