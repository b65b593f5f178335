"""The README of synthetic rows: its words on nulls and counts, and its recipe for a mean."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support.readers import find_section, load_certificate, read_readme

from incrowd.release.certificate import Certificate
from incrowd.release.pages import make_pages

FORMATS = Path(__file__).parents[1] / "formats" / "1"
SYNTHETIC = ["synthetic", "synthetic-person-target", "synthetic-drawn-csv-signed"]
NOISE, ROWS_NOISE, DRAWS = 40.0, 30.0, 400


@pytest.mark.parametrize("name", SYNTHETIC)
def test_nulls_may_come_from_noise(name: str) -> None:
    page = read_readme(FORMATS / name)
    assert page.count("Because of noise, a column without missing values may show some.") == 2
    assert "is a value that was missing in the original table" not in page


@pytest.mark.parametrize("name", SYNTHETIC)
def test_files_are_marked_by_whether_they_have_counts(name: str) -> None:
    lines = find_section(read_readme(FORMATS / name), "Measured tables").splitlines()
    marks = {
        cells[1].strip(" `"): cells[-3].strip()
        for cells in (line.split("|") for line in lines if line.startswith("| `measured/"))
    }
    assert len(marks) > 3
    for file, mark in marks.items():
        with (FORMATS / name / file).open(encoding="utf-8", newline="") as text:
            header = next(csv.reader(text))
        assert mark == ("counts" if "sd" in header else "no counts")


def test_a_table_whose_margin_was_not_measured_is_marked() -> None:
    """Without the file of a pair, a file of three columns that is centered along both has none."""
    text = load_certificate(FORMATS / "synthetic").model_dump(mode="json")
    names = text["synthetic"]["columns"][:3]
    triple = {
        **text["synthetic"]["measured"][1], "file": "measured/999.csv", "columns": names,
        "levels": [0, 0, 0], "centered": names,
    }  # fmt: skip
    text["synthetic"]["measured"].append(triple)
    page = make_pages(Certificate.model_validate(text))["README.md"].decode()
    (line,) = [line for line in page.splitlines() if "`measured/999.csv`" in line]
    assert "| no counts |" in line
    assert "No interval can be given for it." in page


@pytest.mark.parametrize("centered", [False, True])
def test_the_interval_of_a_mean_covers_the_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, centered: bool
) -> None:
    """The recipe of the page, on files with the noise that such files have."""
    file, code = _find_recipe(centered=centered)
    (tmp_path / "measured").mkdir()
    monkeypatch.chdir(tmp_path)
    x = np.arange(1.0, 8.0)
    true = np.array([300.0, 500, 900, 700, 300, 200, 100, 150])  # the last: null
    rng, rows, cells = np.random.default_rng(11), true.sum(), len(true)
    means, errors = [], []
    for _ in range(DRAWS):
        noise, rows_noise = rng.normal(0, NOISE, cells), rng.normal(0, ROWS_NOISE)
        sd = NOISE
        if centered:
            noise = noise - noise.mean() + rows_noise / cells
            sd = (NOISE**2 * (1 - 1 / cells) + ROWS_NOISE**2 / cells**2) ** 0.5
        pl.DataFrame({"count": [rows + rows_noise], "sd": [ROWS_NOISE]}).write_csv(
            "measured/000.csv"
        )
        name = re.search(r'to_numeric\(table\["(\w+)"\]', code)
        assert name is not None
        pl.DataFrame(
            {name[1]: [*map(str, x), ""], "count": true + noise, "sd": [sd] * cells}
        ).write_csv(file)
        variables: dict[str, float] = {}
        exec(code, variables)
        means.append(variables["mean"])
        errors.append(variables["error"])
    mean = float((x * true[:-1]).sum() / true[:-1].sum())
    covered = np.abs(np.array(means) - mean) <= np.array(errors)
    assert 0.91 < covered.mean() < 0.985
    assert 0.85 < 1.96 * np.std(means) / np.mean(errors) < 1.12


def _find_recipe(*, centered: bool) -> tuple[str, str]:
    """Return the file and the Python code of the recipe for a mean."""
    text = load_certificate(FORMATS / "synthetic").model_dump(mode="json")
    for table in text["synthetic"]["measured"]:
        if len(table["columns"]) == 1:
            table["centered"] = table["columns"] if centered else []
    page = make_pages(Certificate.model_validate(text))["README.md"].decode()
    recipe = r"The mean of `\w+` and its.*?from `([^`]+)`.*?```python\n(.*?)```"
    match = re.search(recipe, page, re.S)
    assert match is not None
    return match[1], match[2]
