"""Sums and means beside counts: bounded by row, adding up, possible for their counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.findings import list_codes
from support.readers import load_certificate, reseal_certificate
from support.tables import BUDGET, COLUMNS, make_residents, read_finest, read_table
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.errors import IncrowdError
from incrowd.release.certificate import hash_file
from incrowd.spec.file import SpecFile, parse_spec
from incrowd.spec.problem import SpecError

SUM = "sum: {column: income, bounds: [-100, 1000], step: 0.5}"
TABLES = f"tables: [{{columns: [sex, region], {SUM}}}, {{columns: [age, sex], levels: {{age: 1}}}}]"
PRECISE = "method: tables, epsilon: 3000, delta: 1.0e-6"


def make_spec(release: str = f"{BUDGET}, {TABLES}", more: str = "") -> SpecFile:
    income = "  income: {role: noisy}\n"
    return parse_spec(f"{COLUMNS}{income}{more}\nrelease: {{{release}}}\n")


def make_earners(rows: int = 1500, *, visits: int = 1) -> pl.DataFrame:
    """Residents with incomes, some of which are beyond the bounds, and some no number."""
    draw = np.random.default_rng(5)
    income = [f"{x:.3f}" for x in draw.normal(400, 350, rows)]
    for at in range(0, rows, 40):
        income[at] = "unknown" if at % 80 else ""
    return make_residents(rows, visits=visits).with_columns(pl.Series("income", income))


def sum_by_hand(earners: pl.DataFrame, line: dict[str, Any]) -> tuple[int, float]:
    """Return the number and the sum of a line of the first table, by rules written here."""
    chosen = earners.with_columns(pl.col("income").cast(float, strict=False)).drop_nulls("income")
    if line["sex"] != "Total":
        chosen = chosen.filter(pl.col("sex").eq_missing(line["sex"]))
    if line["region"] in ("North", "South"):
        is_north = pl.col("region").is_in(["N1", "N2"])
        chosen = chosen.filter(is_north if line["region"] == "North" else ~is_north)
    elif line["region"] != "Total":
        chosen = chosen.filter(pl.col("region").eq_missing(line["region"]))
    values = chosen["income"].clip(-100, 1000).to_numpy()
    return chosen.height, float((np.round((values + 100) / 0.5) * 0.5 - 100).sum())


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_every_line_sums_those_whom_its_labels_name(tmp_path: Path, form: str) -> None:
    """With so much budget an error of order, level, quantity or sign is far outside the noise."""
    earners = make_earners()
    release = publish_unjudged(
        earners, make_spec(f"{PRECISE}, {TABLES}, format: {form}"), output=tmp_path / "out"
    )
    table = read_table(tmp_path / "out", f"data-1.{form}")
    assert table.columns[6:] == [
        "count", "estimate", "sd", "low", "high", "sum", "sum_estimate", "sum_sd", "sum_low",
        "sum_high", "mean", "mean_low", "mean_high",
    ]  # fmt: skip
    assert table["sum_sd"].max() < 20_000  # type: ignore[operator]
    scores = []
    for line in table.to_dicts():
        rows, total = sum_by_hand(earners, line)
        assert abs(line["count"] - rows) <= 40
        scores.append((line["sum_estimate"] - total) / line["sum_sd"])
        assert line["sum_low"] == pytest.approx(line["sum_estimate"] - 1.96 * line["sum_sd"], abs=1)
        assert -100 * line["count"] <= line["sum"] <= 1000 * line["count"]
        if line["count"]:
            assert line["mean"] == pytest.approx(line["sum"] / line["count"], abs=1e-3)
        if rows > 200:
            width = line["mean_high"] - line["mean_low"]
            assert width < 100
            assert line["mean_low"] - width < total / rows < line["mean_high"] + width
    # Lines share noise: factors of 2 are wrong with probability below 1e-4.
    assert 0.4 < float(np.mean(np.square(scores))) < 2.2
    assert max(map(abs, scores)) < 6
    assert ic.verify(tmp_path / "out") == []
    sentence = {x.key: x.text for x in release.certificate.guarantee.statement}["sums"]
    assert "a multiple of 0.5 above -100 and moved into -100 to 1000" in sentence


def test_sums_add_up_and_tables_agree(tmp_path: Path) -> None:
    """Also where tables are at different levels, and where some have no sum."""
    release = f"{BUDGET}, totals: false, tables: [{{columns: [sex, region], {SUM}}}, "
    release += f"{{columns: [region, age], levels: {{region: 1, age: 1}}, {SUM}}}, [age, sex]]"
    folder = tmp_path / "out"
    certificate = publish_unjudged(make_earners(), make_spec(release), output=folder).certificate
    first, second, _ = (read_finest(folder, certificate, at) for at in range(3))
    assert first["sum"].sum() == second["sum"].sum()
    assert first["count"].sum() == second["count"].sum()
    in_north = first.filter(pl.col("region").is_in(["N1", "N2"]))["sum"].sum()
    assert in_north == second.filter(pl.col("region") == "North")["sum"].sum()
    assert ic.verify(folder) == []


def test_a_person_with_several_rows_adds_one_value(tmp_path: Path) -> None:
    spec = make_spec(f"{PRECISE}, {TABLES}", "unit: {id: id}")
    earners = make_earners(1500, visits=3).with_columns(pl.lit("400").alias("income"))
    publish_unjudged(earners, spec, output=tmp_path / "out")
    total = read_table(tmp_path / "out", "data-1.parquet").to_dicts()[0]
    assert total["sum_estimate"] == pytest.approx(500 * 400, abs=6 * total["sum_sd"])
    assert total["sum_sd"] < 20_000
    assert ic.verify(tmp_path / "out") == []


def test_hidden_cells_hide_their_sums(tmp_path: Path) -> None:
    publish_unjudged(
        make_earners(), make_spec(f"{BUDGET}, {TABLES}, hide_below: 20, exports: [xlsx]"),
        output=tmp_path / "out",
    )  # fmt: skip
    table = read_table(tmp_path / "out", "data-1.parquet")
    hidden = table.filter(pl.col("count").is_null())
    assert hidden.height
    for name in ("sum", "sum_estimate", "sum_low", "sum_high", "mean", "mean_low", "mean_high"):
        assert hidden[name].null_count() == hidden.height
        assert table[name].null_count() == hidden.height
    assert table["sum_sd"].null_count() == 0
    assert ic.verify(tmp_path / "out") == []


def test_the_report_and_the_plan_have_the_errors_of_sums(tmp_path: Path) -> None:
    spec = make_spec()
    planned = ic.plan_tables(spec).tables[0]
    assert planned.sum == "income"
    assert planned.sum_error is not None
    earners = make_earners()
    errors = ic.publish(earners, spec, output=tmp_path / "out").evaluation.as_dict()["tables"][0]
    assert 1.96 * errors["sums"]["expected"] == pytest.approx(planned.sum_error, rel=1e-6)
    assert 0.3 < errors["sums"]["estimate"] / errors["sums"]["expected"] < 3
    assert errors["sums"]["coverage"] > 0.7
    again = ic.evaluate(earners, tmp_path / "out", spec).as_dict()["tables"][0]["sums"]
    assert again["sum"] == errors["sums"]["sum"]


def test_a_table_of_few_lines_is_not_nearly_empty(tmp_path: Path) -> None:
    spec = make_spec(f"{BUDGET}, tables: [{{columns: [sex], {SUM}}}]")
    assert not publish_unjudged(make_earners(), spec, output=tmp_path / "out").is_nearly_empty
    assert not ic.publish(make_earners(), spec, output=tmp_path / "judged").is_nearly_empty


# Forgeries ------------------------------------------------------------------------------------


def forge(folder: Path, column: str, row: int, value: str) -> list[str]:
    path = folder / "data-1.csv"
    table = pl.read_csv(path, infer_schema=False)
    values = table[column].to_list()
    values[row] = value
    table.with_columns(pl.Series(column, values)).write_csv(path)
    certificate = load_certificate(folder)
    assert certificate.slices is not None
    slices = list(certificate.slices)
    update = {"sha256": hash_file(path)}
    slices[0] = slices[0].model_copy(
        update={"release": slices[0].release.model_copy(update=update)}
    )
    reseal_certificate(folder, certificate.model_copy(update={"slices": slices}))
    return list_codes(ic.verify(folder))


@pytest.mark.parametrize(
    ("column", "value", "code"),
    [
        ("sum", "12.5", "TABLE_DOES_NOT_ADD_UP"),
        ("sum", "12.25", "TABLE_LINES_DIFFER"),
        ("sum", "99999999.0", "TABLE_SUM_IMPOSSIBLE"),
        ("sum", "-99999999.0", "TABLE_SUM_IMPOSSIBLE"),
        ("sum_estimate", "12.5", "TABLE_INTERVALS_DIFFER"),
        ("sum_sd", "12.5", "TABLE_INTERVALS_DIFFER"),
        ("mean", "999.5", "TABLE_INTERVALS_DIFFER"),
        ("mean_low", "-99.5", "TABLE_ESTIMATES_DIFFER"),
    ],
)
def test_what_is_changed_is_found(tmp_path: Path, column: str, value: str, code: str) -> None:
    spec = make_spec(f"{BUDGET}, {TABLES}, format: csv")
    publish_unjudged(make_earners(), spec, output=tmp_path / "out")
    assert forge(tmp_path / "out", column, 0, value)[0] == code


def test_a_smaller_range_than_the_noise_covers_is_found(tmp_path: Path) -> None:
    """The unit of a residual is what a row may add: fewer steps would make sums look safer."""
    publish_unjudged(make_earners(300), make_spec(), output=tmp_path / "out")
    certificate = load_certificate(tmp_path / "out")
    part = certificate.tabulation
    assert part is not None
    assert part.sums is not None
    assert {x.unit for x in part.residuals} == {1, 2200}
    residuals = [x.model_copy(update={"unit": 1}) for x in part.residuals]
    sums = [part.sums[0].model_copy(update={"steps": 4400})]
    for update in ({"residuals": residuals}, {"sums": sums}):
        changed = part.model_copy(update=update)
        reseal_certificate(tmp_path / "out", certificate.model_copy(update={"tabulation": changed}))
        assert "TABULATION_INVALID" in list_codes(ic.verify(tmp_path / "out"))


# Mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("{columns: [sex], sum: {column: income}}", "bounds"),
        ("{columns: [sex], sum: {column: income, bounds: [5, 5]}}", "must rise"),
        ("{columns: [sex], sum: {column: income, bounds: [0, 10], step: 3}}", "does not divide"),
        ("{columns: [sex], sum: {column: income, bounds: [0, 9000000], step: 1}}", "steps apart"),
        ("{columns: [sex], sum: {column: income, bounds: [0, 1.0e13]}}", "at most 12 digits"),
        ("{columns: [sex], sum: {column: incom, bounds: [0, 10]}}", "'incom' has no entry"),
        ("{columns: [sex, age], sum: {column: age, bounds: [0, 10]}}", "is one of its columns"),
        (
            "{columns: [sex], sum: {column: income, bounds: [0, 9]}}, "
            "{columns: [age], sum: {column: income, bounds: [0, 10]}}",
            "with other bounds or steps",
        ),
        ("[sex, age]", "a noisy column is one that a table sums"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_spec(table: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make_spec(f"{BUDGET}, tables: [{table}]")


def test_bounds_stand_in_one_place() -> None:
    text = make_spec().text()
    with pytest.raises(SpecError, match="stand in the `sum` of the table"):
        parse_spec(text.replace("{role: noisy}", "{role: noisy, bounds: [0, 10]}"))
    with pytest.raises(SpecError, match="its role is `noisy`, not `drop`"):
        parse_spec(text.replace("{role: noisy}", "{role: drop}"))


def test_a_column_that_is_called_like_a_sum_is_refused() -> None:
    text = make_spec(f"{BUDGET}, tables: [{{columns: [mean], {SUM}}}]".replace("mean", "sex"))
    renamed = parse_spec(text.text().replace("sex", "mean"))
    with pytest.raises(IncrowdError, match="Column 'mean': a table adds a column of this name"):
        ic.plan_tables(renamed)
