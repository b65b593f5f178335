"""The command that estimates the risk of a table before release."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from support.cli import run_command, run_successfully
from support.survey import GUIDE_COLUMNS, guide_table

COLUMNS = [word for name in GUIDE_COLUMNS for word in ("--column", name)]


@pytest.fixture
def survey(tmp_path: Path) -> str:
    path = tmp_path / "survey.csv"
    pl.DataFrame(guide_table([1, 1, 2, 2, 3, 3, 4, 4, 5, 5])).write_csv(path)
    return str(path)


def test_the_survey_of_the_guide(survey: str, tmp_path: Path) -> None:
    """Mean and highest risk of table 4.1, reidentifications of example 4.12."""
    file = tmp_path / "records.csv"
    text = run_successfully(
        "risk", survey, *COLUMNS, "--weight", "weight", "--household", "household", "-o", str(file)
    )
    assert "10 records, 7 combinations of residence, gender, education, labor" in text
    assert "mean 1.58 %, highest 2.90 %; 0.16 reidentifications expected" in text
    assert "4 in groups below 2 (40 %), 10 in groups below 3 (100 %)" in text
    assert "highest SUDA score 12" in text
    records = pl.read_csv(file)
    assert records["rows"].sum() == 10
    assert records["household_risk"].is_sorted(descending=True)


def test_json_has_every_figure_but_no_list_of_all_records(survey: str) -> None:
    text = run_successfully("risk", survey, *COLUMNS, "--population", "10,000", "--json")
    figures = json.loads(text)
    assert figures["basis"] == "size"
    assert figures["population"] == 10_000
    assert "records" not in figures
    assert len(figures["riskiest"]) == 7


def test_a_population_table(survey: str) -> None:
    text = run_successfully("risk", survey, *COLUMNS, "--population", survey)
    assert "each group matches 1 or more people; of the records, 4 fewer than 2" in text


def test_the_way_out_is_named(survey: str) -> None:
    for arguments, words in (
        ((), "a table, or --spec"),
        ((survey,), "No quasi-identifiers are named"),
        ((survey, "--column", "sex"), "Column 'sex': not in the table"),
        ((survey, *COLUMNS, "--population", "nobody.csv"), "Cannot read 'nobody.csv'"),
    ):
        process = run_command("risk", *arguments)
        assert process.returncode == 2
        assert words in process.stderr
