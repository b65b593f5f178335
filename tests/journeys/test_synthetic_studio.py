"""Synthetic rows by clicks: the method is chosen, published and verified in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from support.studio import RunningStudio
from support.web import find_violations, open_page, open_room

import incrowd as ic
from incrowd.spec.file import read_spec_file

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_synthetic_rows_are_published_by_clicks(studio: RunningStudio, chromium: Browser) -> None:
    with open_page(chromium, studio) as page:
        page.click("button[value=census]")
        page.wait_for_selector("#column-0 svg")
        spec = next(studio.folder.glob("census*.yaml"))
        open_room(page, "privacy")
        page.check("input[name=method][value=synthetic]")
        page.wait_for_selector("#statement:has-text('Published rows are synthetic')")
        assert find_violations(page) == []
        release = read_spec_file(spec).spec.release
        assert release is not None
        assert release.method == "synthetic"
        open_room(page, "publish")
        page.fill("#name", "synthetic-by-clicks")
        page.click("#publish")
        page.wait_for_selector("#download", timeout=240_000)
        assert find_violations(page) == []
    folder = studio.folder / "synthetic-by-clicks"
    assert ic.verify(folder) == []
    rows = pl.read_parquet(folder / "data.parquet")
    assert len(rows) > 100
    assert {*rows.columns} <= {*read_spec_file(spec).spec.columns}
