"""Synthetic rows as CSV: numbers, dates and codes are written as in the original."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support.findings import list_codes
from support.readers import load_certificate, reseal_certificate
from support.synthetic import BUDGET
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.release.certificate import hash_file
from incrowd.spec.file import SpecFile, parse_spec

SPEC = """
columns:
  plz: {role: quasi, hierarchy: {flat: {values: ["01067", "04109", "80331"]}}}
  price: {role: quasi, precision: 0.5, written: {decimal: ",", thousands: ".", nulls: [NA, "100"]},
    hierarchy: {intervals: {from: 0, to: 1999.5, step: 100, widths: [500]}}}
  rate: {role: quasi, written: {decimal: ","}, hierarchy: {flat: {values: [0.5, 1.125, 2]}}}
  born: {role: quasi, written: {dates: day-month-year},
    hierarchy: {dates: {from: 1990-01-01, to: 1999-12-31, levels: [year]}}}
  seen: {role: quasi, written: {dates: month-day-year},
    hierarchy: {dates: {from: 2020-01-01, to: 2020-01-31, levels: [day, month]}}}
  left: {role: quasi, hierarchy: {dates: {from: 2021-01-01, to: 2021-12-31, levels: [month],
    format: "%d/%m/%Y"}}}
"""
FORMS = {
    "plz": r"0\d{4}|80331",
    "price": r"(1\.)?\d{1,3}(,5)?",
    "rate": r"0,5|1,125|2",
    "born": r"\d\d\.\d\d\.199\d",
    "seen": r"01/\d\d/2020",
    "left": r"\d\d/\d\d/2021",
}


def _make_table() -> pl.DataFrame:
    draw = np.random.default_rng(1)
    prices = draw.integers(0, 4000, 800) / 2
    texts = [f"{price:,.2f}".translate(str.maketrans(",.", ".,")) for price in prices]
    return pl.DataFrame(
        {
            "plz": draw.choice(["01067", "04109", "80331"], 800),
            "price": ["NA" if draw.random() < 0.2 else text for text in texts],
            "rate": draw.choice(["0,5", "1,125", "2"], 800),
            "born": [f"{day}.{day}.199{day % 10}" for day in draw.integers(1, 13, 800)],
            "seen": [f"1/{day}/2020" for day in draw.integers(1, 32, 800)],
            "left": [f"{day:02d}/12/2021" for day in draw.integers(1, 32, 800)],
        }
    )


def _make_spec(more: str = "format: csv, values: drawn") -> SpecFile:
    return parse_spec(f"{SPEC}\nrelease: {{{BUDGET}, {more}}}\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    publish_unjudged(_make_table(), _make_spec(), output=tmp_path / "out")
    return tmp_path / "out"


def test_a_csv_writes_values_as_the_original_does(folder: Path) -> None:
    rows = pl.read_csv(folder / "data.csv", infer_schema=False)
    for name, form in FORMS.items():
        values = rows[name].drop_nulls()
        assert len(values) > 300, name
        assert all(re.fullmatch(form, value) for value in values), name
    assert rows["price"].null_count() > 50
    assert ic.verify(folder) == []


def test_the_same_spec_reads_the_rows(folder: Path) -> None:
    """What reads the original reads the rows: no value is outside its domain."""
    findings = list_codes(ic.check(folder / "data.csv", _make_spec()))
    assert "VALUES_OUTSIDE_DOMAIN" not in findings
    assert "ALL_VALUES_OUTSIDE_DOMAIN" not in findings


def test_parquet_has_types_instead(tmp_path: Path) -> None:
    publish_unjudged(_make_table(), _make_spec("values: drawn"), output=tmp_path / "out")
    rows = pl.read_parquet(tmp_path / "out" / "data.parquet")
    assert rows.schema["price"] == pl.Float64
    assert rows.schema["rate"] == pl.Float64
    assert rows.schema["born"] == pl.Date
    assert rows.schema["seen"] == pl.Date
    assert rows.schema["plz"] == pl.String
    assert ic.verify(tmp_path / "out") == []
    assert load_certificate(tmp_path / "out").synthetic.written is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("form", "other"),
    [
        (r"\b0(\d)/(\d\d)/2021", r"\1/\2/2021"),  # a date without its zero
        (r",1\.(\d{3}),", r",1\1,"),  # a number without its point
        (r"\b0(\d)\.(\d\d)\.199", r"\1.\2.199"),
    ],
)
def test_another_way_to_write_a_value_is_found(folder: Path, form: str, other: str) -> None:
    """It would be read as the same value, and could carry a message."""
    path = folder / "data.csv"
    text = path.read_text(encoding="utf-8")
    changed = re.sub(form, other, text, count=1)
    assert changed != text
    path.write_text(changed, encoding="utf-8")
    certificate = load_certificate(folder)
    assert certificate.release is not None
    data = certificate.release.model_copy(update={"sha256": hash_file(path)})
    reseal_certificate(folder, certificate.model_copy(update={"release": data}))
    assert "VALUE_NOT_IN_SCHEME" in list_codes(ic.verify(folder))
