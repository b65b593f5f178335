"""Weights of a released table, calibrated to known totals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.cli import run_command, run_successfully

import incrowd as ic
from incrowd.curate.survey_weights import calibrate, read_totals

RELEASED = pl.DataFrame(
    {
        "region": ["north", "north", "south", "south"],
        "sex": ["f", "m", "f", "m"],
        "w": [1.0, 2.0, 3.0, 4.0],
    }
)
TOTALS = {"region": {"north": 300, "south": 700}, "sex": {"f": 550, "m": 450}}


def test_totals_are_met_from_equal_and_from_given_weights() -> None:
    for weight in (None, "w"):
        result = calibrate(RELEASED, TOTALS, weight=weight)
        assert result.weight == (weight or "weight")
        data = result.data
        for column, totals in TOTALS.items():
            sums = data.group_by(column).agg(pl.col(result.weight).sum())
            assert dict(sums.iter_rows()) == pytest.approx(totals)
        assert data.columns[-1] == result.weight
    odds = data["w"].to_list()
    ratio = odds[0] * odds[3] / (odds[1] * odds[2])
    assert ratio == pytest.approx(1 * 4 / (2 * 3))  # raking keeps the odds ratio of the weights


def test_a_table_with_counts_has_a_weight_for_each_row() -> None:
    table = pl.DataFrame({"region": ["north", "south"], "count": [30, 10]})
    result = calibrate(table, {"region": {"north": 300, "south": 50}})
    assert result.data["weight"].to_list() == pytest.approx([10, 5])


def test_a_safe_release_is_weighted_from_its_folder(tmp_path: Path) -> None:
    people = pl.DataFrame({"region": ["north"] * 400 + ["south"] * 300})
    region = {"role": "quasi", "hierarchy": {"flat": {"values": ["north", "south"]}}}
    spec = {
        "columns": {"region": region},
        "release": {"method": "safe", "epsilon": 2.0, "delta": 1e-6, "scheme": "fixed"},
    }
    release = ic.publish(people, spec, output=tmp_path / "out")
    for released in (tmp_path / "out", release):
        data = ic.calibrate(released, {"region": {"north": 8000, "south": 5000}}).data
        assert data["weight"].sum() == pytest.approx(13_000)


def test_the_command_reads_totals_with_and_without_a_header(tmp_path: Path) -> None:
    RELEASED.write_csv(tmp_path / "released.csv")
    (tmp_path / "region.csv").write_text("region,people\nnorth,300\nsouth,700\n")
    (tmp_path / "sex.csv").write_text("f,550\nm,450\n")
    text = run_successfully(
        "calibrate", str(tmp_path / "released.csv"), "--weight", "w",
        "--totals", f"region={tmp_path / 'region.csv'}", "--totals", f"sex={tmp_path / 'sex.csv'}",
        "-o", str(tmp_path / "weighted.csv"),
    )  # fmt: skip
    assert "Totals of region, sex are met." in text
    assert pl.read_csv(tmp_path / "weighted.csv")["w"].sum() == pytest.approx(1000)
    process = run_command(
        "calibrate", str(tmp_path / "released.csv"), "--totals", "region", "-o", "x.csv"
    )
    assert process.returncode == 2
    assert "must be COLUMN=FILE" in process.stderr


@pytest.mark.parametrize(
    ("totals", "options", "words"),
    [
        ({}, {}, "name a column or more"),
        ({"town": {"a": 1}}, {}, "Column 'town': not in the released table"),
        ({"sex": {"f": 1}}, {}, "rows show 'm', which has no total"),
        ({"sex": {"f": 1, "m": 1, "x": 1}}, {}, "no row shows 'x'"),
        ({"sex": {"f": 1, "m": 1}}, {"weight": "sex"}, "'f' is not a positive number"),
    ],
)
def test_mistakes_are_named(totals: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ic.IncrowdError, match=words):
        calibrate(RELEASED, totals, **options)


def test_a_column_called_weight_is_not_overwritten_by_accident() -> None:
    table = RELEASED.rename({"w": "weight"})
    with pytest.raises(ic.ParameterError, match="name the column of weights"):
        calibrate(table, TOTALS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("f,1\nf,2\n", "'f' occurs twice"), ("f,1\nm;2\n", "line 2 of"), ("", "has no total"),
        ("label,total\n", "has no total"),
    ],
)  # fmt: skip
def test_files_of_totals_that_cannot_be_read(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "sex.csv").write_text(text)
    with pytest.raises(ic.IncrowdError, match=words):
        read_totals("sex", tmp_path / "sex.csv")
    with pytest.raises(ic.IncrowdError, match="cannot read"):
        read_totals("sex", tmp_path / "none.csv")
