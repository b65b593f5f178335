"""Weights of a release are calibrated to totals that a form states."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.inline_studio import FormBrowser, open_studio

from incrowd.errors import IncrowdError
from incrowd.publication import publish
from incrowd.studio.views.calibration import read_margins

SPEC = """table: people.csv
columns:
  region: {role: quasi, hierarchy: {flat: {values: [north, south]}}}
  stands_for: {role: weight}
release: {method: k-anonymity, k: 5}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    pl.DataFrame(
        {"region": ["north", "south", "south"] * 20, "stands_for": [2, 3, 5] * 20}
    ).write_csv(home / "people.csv")
    (home / "people.yaml").write_text(SPEC)
    publish(None, home / "people.yaml", output=home / "out")
    return home


@pytest.fixture
def browser(folder: Path) -> Iterator[FormBrowser]:
    with open_studio(folder) as studio:
        yield studio


@pytest.mark.parametrize(
    ("weight", "factors"), [("", "from 15 to 30"), ("stands_for", "from 7.5 to 7.5")]
)
def test_weights_add_up_to_the_totals(browser: FormBrowser, weight: str, factors: str) -> None:
    assert "/release/calibrate?of=out" in browser.get("/release?of=out")
    page = browser.get("/release/calibrate?of=out")
    assert "<option>region</option>" in page
    totals = "north; 300\nsouth; 1200"
    if not weight:
        totals = "north, 600\nsouth, 600"
    form: dict[str, Any] = {"column0": "region", "totals0": totals, "weight": weight}
    page = browser.post("/release/calibrate/set?of=out", **form)
    assert factors in page
    link = re.search(r'href="(/release/calibrated.csv\?result=\w+)"', page)
    assert link is not None
    rows = pl.read_csv(io.StringIO(browser.get(link[1])))
    sums = dict(rows.group_by("region").agg(pl.col(weight or "weight").sum()).iter_rows())
    assert sums == pytest.approx({"north": 600, "south": 600} if not weight else
                                 {"north": 300, "south": 1200})  # fmt: skip
    browser.get("/release/calibrated.csv?result=0", 404)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({}, "Choose a column"),
        ({"column0": "name", "totals0": "a,1"}, "got 'name'"),
        ({"column0": "region"}, "Enter the totals of 'region'"),
        ({"column0": "region", "totals0": "north"}, "'north' is not a label and a number"),
        ({"column0": "region", "totals0": "north;x"}, "'north;x' is not a label"),
        ({"column0": "region", "totals0": "north,1\nnorth,2"}, "'north' occurs twice"),
        ({"column0": "region", "totals0": "a,1", "column1": "region", "totals1": "a,1"}, "twice"),
    ],
)
def test_what_is_no_total_is_refused(form: Mapping[str, str], words: str) -> None:
    with pytest.raises(IncrowdError, match=words):
        read_margins(form, ["region"])


def test_a_total_that_is_missing_is_named(browser: FormBrowser) -> None:
    form = {"column0": "region", "totals0": "north,300", "weight": ""}
    page = html.unescape(browser.post("/release/calibrate/set?of=out", 422, **form))
    assert "'south', which has no total" in page
    browser.get("/release/calibrate?of=nothing", 404)
