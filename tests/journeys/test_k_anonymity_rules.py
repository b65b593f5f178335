"""Rules on sensitive values in k-anonymous releases, as an independent tool sees them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pycanon import anonymity
from support.patients import COLUMNS, QUASI, plain, read, released
from support.releases import stated

from incrowd.release.verify import verify

pytestmark = pytest.mark.usefixtures("quick")

# Rules on sensitive values -------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["ola", "mondrian"])
@pytest.mark.parametrize("rule", ["distinct: 3", "entropy: 2.5"])
def test_an_independent_tool_finds_it_diverse(
    patients: pl.DataFrame, tmp_path: Path, algorithm: str, rule: str
) -> None:
    diverse = f"diagnosis: {{role: sensitive, diversity: {{{rule}}}}}"
    columns = COLUMNS.replace("diagnosis: {role: sensitive}", diverse)
    result = released(patients, tmp_path / "out", f"k: 5, algorithm: {algorithm}", columns)
    plain_result = released(patients, tmp_path / "plain", f"k: 5, algorithm: {algorithm}")
    data, without = plain(read(tmp_path / "out")), plain(read(tmp_path / "plain"))
    kind, least = rule.split(": ")
    if kind == "distinct":
        assert anonymity.l_diversity(data, QUASI, ["diagnosis"]) >= 3
        assert anonymity.l_diversity(without, QUASI, ["diagnosis"]) < 3
    else:
        assert anonymity.entropy_l_diversity(data, QUASI, ["diagnosis"]) >= int(float(least))
        for _, part in data.groupby(QUASI):
            shares = part["diagnosis"].value_counts(normalize=True).to_numpy()
            assert np.exp(-(shares * np.log(shares)).sum()) >= float(least) - 1e-9
    assert anonymity.k_anonymity(data, QUASI) >= 5
    said = stated(result.certificate)["rules"]
    assert "'diagnosis'" in said
    assert kind in said
    assert verify(tmp_path / "out") == []
    assert plain_result.evaluation.loss < result.evaluation.loss


@pytest.mark.parametrize("algorithm", ["ola", "mondrian"])
@pytest.mark.parametrize(
    ("kind", "column", "most"), [("equal", "diagnosis", 0.2), ("ordered", "weight", 0.08)]
)
def test_an_independent_tool_finds_it_close(
    patients: pl.DataFrame, tmp_path: Path, algorithm: str, kind: str, column: str, most: float
) -> None:
    whole = patients.with_columns(weight=(pl.col("weight").fill_null(80) / 20).round().cast(int))
    close = f"{column}: {{role: sensitive, closeness: {{{kind}: {most}}}}}"
    columns = COLUMNS.replace(f"{column}: {{role: sensitive}}", close)
    settings = f"k: 5, algorithm: {algorithm}"
    settings += ", suppression: 0" if algorithm == "ola" else ""
    released(whole, tmp_path / "out", settings, columns)
    data = read(tmp_path / "out")
    table = plain(data)
    if kind == "ordered":
        table["weight"] = data["weight"].to_list()
    assert len(table) == len(whole)
    assert anonymity.t_closeness(table, QUASI, [column]) <= most + 1e-9
    released(whole, tmp_path / "plain", settings)
    loose = plain(read(tmp_path / "plain"))
    if kind == "ordered":
        loose["weight"] = read(tmp_path / "plain")["weight"].to_list()
    assert anonymity.t_closeness(loose, QUASI, [column]) > most


def test_dates_are_close_along_the_calendar_however_they_are_written(tmp_path: Path) -> None:
    """By the calendar one class has the early days and one the late; by the texts they alternate.

    The distance of each to the whole is 1/3 by the calendar, and 1/6 by the texts.
    """
    days = ["01/01/2019", "03/01/2020", "02/01/2021", "04/01/2022"]
    table = pl.DataFrame({"a": ["x", "x", "y", "y"] * 10, "day": days * 10})
    dates = "{dates: {from: 2019-01-01, to: 2022-12-31, format: '%d/%m/%Y'}}"
    for most, shown in (("0.34", {"x", "y"}), ("0.3", {"*"})):
        columns = (
            "columns:\n  a: {role: quasi, hierarchy: flat}\n"
            f"  day: {{role: sensitive, hierarchy: {dates}, closeness: {{ordered: {most}}}}}"
        )
        released(table, tmp_path / most, "k: 5, suppression: 0", columns)
        assert set(read(tmp_path / most)["a"].to_list()) == shown


def test_no_rule_at_all_is_no_rule(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": ["x"] * 10, "s": [1, 2] * 5})
    columns = "columns: {a: {role: quasi, hierarchy: flat}, s: {role: sensitive, diversity: {}}}"
    released(table, tmp_path / "out", "k: 5", columns)
    assert verify(tmp_path / "out") == []
