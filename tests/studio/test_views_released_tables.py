"""Tables of counts of a past release as heat maps, with their intervals."""

from __future__ import annotations

import html
from pathlib import Path

import polars as pl
import pytest
from support.inline_studio import open_studio

from incrowd.publication import publish

pytestmark = pytest.mark.usefixtures("settled_once")

SPEC = """table: people.csv
columns:
  sex: {role: quasi, hierarchy: {flat: {values: [f, m]}}}
  town: {role: quasi, hierarchy: {groups: {coast: [north, west], inland: [south]}}}
release: {method: METHOD}
"""
TABLES = "tables, epsilon: 1, delta: 1.0e-6, tables: [[sex], [sex, town]]"


def test_a_past_release_shows_its_tables(tmp_path: Path) -> None:
    people = {"sex": ["f", "m"] * 300, "town": ["north", "south", "west"] * 200}
    pl.DataFrame(people).write_csv(tmp_path / "people.csv")
    spec = tmp_path / "people.yaml"
    for name, method in (("counts", TABLES), ("rows", "k-anonymity, k: 5")):
        spec.write_text(SPEC.replace("METHOD", method))
        publish(None, spec, output=tmp_path / name)
    with open_studio(tmp_path) as browser:
        page = html.unescape(browser.get("/release?of=counts"))
        assert "/release/tables?of=counts" in page
        assert "cells in 2 files" in page
        assert "cells. (1, 1e-06)-differential privacy" in html.unescape(browser.get("/"))
        page = html.unescape(browser.get("/release/tables?of=counts&at=1"))
        assert "sex by town" in page
        assert 'name="of" value="counts"' in page  # the form stays at this release
        assert 'href="/release?of=counts"' in page
        coarse = browser.get("/release/tables?of=counts&at=1&level-1=1")
        assert "coast" in coarse
        assert "north" not in coarse.partition("<tbody>")[2].partition("</table>")[0]
        assert "/release/tables" not in browser.get("/release?of=rows")
        browser.get("/release/tables?of=rows", 404)
        browser.get("/release/tables?of=nothing", 404)
