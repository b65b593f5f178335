"""Rules on sensitive values in k-anonymous releases, as an independent tool sees them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pycanon import anonymity
from support.patients import COLUMNS, QUASI, plain, read, released

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
    assert f"'diagnosis', {'distinct' if kind == 'distinct' else 'entropy'}" in (
        result.certificate.guarantee.statement
    )
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


@pytest.mark.parametrize(("alone", "most"), [("02.06.2021", 0.5), ("01.01.2020", 1 / 3)])
def test_dates_are_close_in_time_however_they_are_written(
    tmp_path: Path, alone: str, most: float
) -> None:
    """As text, the last of these days lies between the others, and the first is the last."""
    days = ["31.12.2019", "01.01.2020", "02.06.2021"]
    table = pl.DataFrame({"a": ["x" if day == alone else "y" for day in days] * 10, "s": days * 10})
    dates = "{dates: {from: 2019-01-01, to: 2021-12-31, format: '%d.%m.%Y'}}"
    for asked, shown in ((most + 0.01, ["x", "y"]), (most - 0.01, ["*"])):
        columns = (
            "columns: {a: {role: quasi, hierarchy: {flat: {values: [x, y]}}}, "
            f"s: {{role: sensitive, hierarchy: {dates}, closeness: {{ordered: {asked}}}}}}}"
        )
        out = tmp_path / f"{asked:.2f}"
        released(table, out, "k: 5, suppression: 0", columns)
        assert sorted(read(out)["a"].unique()) == shown


def test_no_rule_at_all_is_no_rule(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": ["x"] * 10, "s": [1, 2] * 5})
    columns = "columns: {a: {role: quasi, hierarchy: flat}, s: {role: sensitive, diversity: {}}}"
    released(table, tmp_path / "out", "k: 5", columns)
    assert verify(tmp_path / "out") == []
