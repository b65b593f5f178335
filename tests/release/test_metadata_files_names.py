"""Names and labels come from anywhere: metadata hold them as they are, and stay valid."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import polars as pl
import pytest
from support.metadata import EVERY, VALIDATORS
from support.unjudged import publish_unjudged

from incrowd.release.verify import verify

pytestmark = pytest.mark.filterwarnings("ignore")  # of the validators
NAMES = [
    "a b",
    "a-b~1",
    'q"uote',
    "back\\slash",
    "<b>&amp;</b>",
    "x/y",
    "=1+1",
    "ü 日本",
    "{{ x }}",
    "#%?",
]
LABELS = ["<i>", 'say "x"', "a\\b", "]]>", "{% raw %}"]


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_odd_names_and_labels_pass_every_validator(tmp_path: Path, form: str) -> None:
    table = pl.DataFrame(dict.fromkeys(NAMES, LABELS * 200))
    column = {"role": "quasi", "hierarchy": {"flat": {"values": LABELS}}}
    spec = {
        "columns": dict.fromkeys(NAMES, column),
        "about": {"title": "<script>alert(1)</script>", "description": 'a "b" \\ ]]> & é'},
        "describe": EVERY.split(", "),
        "release": {
            "method": "safe", "epsilon": 1.0, "delta": 1e-6, "draw": "counts",
            "levels": dict.fromkeys(NAMES, 0), "format": form,
        },
    }  # fmt: skip
    folder = tmp_path / "out"
    publish_unjudged(table, spec, output=folder)
    assert verify(folder) == []
    for file, validate in VALIDATORS.items():
        assert validate(folder) == [], file
    croissant = json.loads((folder / "metadata/croissant.json").read_bytes())
    data, *labels = croissant["recordSet"]
    assert sorted(field["name"] for field in data["field"]) == sorted(NAMES)
    assert len(labels) == len(NAMES)
    assert len({node["@id"] for node in croissant["recordSet"]}) == len(NAMES) + 1
    page = (folder / "metadata/dossier.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<b>" not in page
    assert all(name in unescape(page) for name in NAMES)
