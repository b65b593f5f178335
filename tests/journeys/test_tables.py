"""Tables of counts: from a spec to files that add up, verify, and say how precise they are."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.findings import list_codes
from support.readers import load_certificate, reseal_certificate
from support.tables import BUDGET, TABLES, make_residents, make_spec, read_finest, read_table
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.errors import IncrowdError
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.certificate import hash_file
from incrowd.release.ledger import BudgetError, Ledger
from incrowd.spec.problem import SpecError

PRECISE = "method: tables, epsilon: 300, delta: 1.0e-6"  # noise of a few rows: order is seen


def publish(
    folder: Path, release: str = f"{BUDGET}, {TABLES}", *, rows: int = 1500, **more: Any
) -> ic.Release:
    return publish_unjudged(make_residents(rows), make_spec(release), output=folder, **more)


def count_residents(residents: pl.DataFrame, line: dict[str, Any], names: list[str]) -> int:
    """Count the residents of a line by its labels, with rules written here by hand."""
    north = pl.col("region").is_in(["N1", "N2"])
    age = pl.col("age")
    chosen = pl.lit(value=True)
    for name in names:
        label, value = line[name], pl.col(name)
        if label == "Total":
            continue
        if label is None:
            chosen &= value.is_null()
        elif label == "elsewhere":
            chosen &= ~value.is_in(["a", "b", "c"])
        elif label in ("North", "South"):
            chosen &= north if label == "North" else ~north
        elif name == "age":
            low, high = map(int, label.split("-"))
            chosen &= age.is_between(low, high)
        else:
            chosen &= value == label
    return residents.filter(chosen.fill_null(value=False)).height


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_every_line_counts_those_whom_its_labels_name(tmp_path: Path, form: str) -> None:
    """With so much budget an error of order, level or axis is far outside of the noise."""
    residents = make_residents(1500)
    release = publish_unjudged(
        residents, make_spec(f"{PRECISE}, {TABLES}, format: {form}"), output=tmp_path / "out",
        bits=SeededRandomness(3),
    )  # fmt: skip
    part = release.certificate.tabulation
    assert part is not None
    scores = []
    for entry, table in zip(part.tables, release.certificate.tables, strict=True):
        lines = read_table(tmp_path / "out", table.release.file).to_dicts()
        sizes = {"sex": 4, "region": 10, "age": 15, "diagnosis": 6}
        assert len(lines) == math.prod(sizes[name] for name in entry.columns)
        for line in lines:
            truth = count_residents(residents, line, entry.columns)
            scores.append((line["estimate"] - truth) / line["sd"])
            assert abs(line["count"] - truth) <= 40
            assert line["low"] == pytest.approx(line["estimate"] - 1.96 * line["sd"], abs=0.002)
    # Lines share noise, so the mean square of their scores scatters more than that of as many
    # independent ones; factors of 2 are wrong with probability below 1e-6.
    assert 0.5 < float(np.mean(np.square(scores))) < 2
    assert max(map(abs, scores)) < 6
    assert list_codes(ic.verify(tmp_path / "out")) == ["RELEASE_SEEDED"]


def test_counts_add_up_and_tables_agree(tmp_path: Path) -> None:
    release = publish(tmp_path / "out", f"{BUDGET}, all: 2, totals: false")
    names = ["region", "sex", "age", "diagnosis"]
    certificate = release.certificate
    margins: dict[str, list[int]] = {}
    assert len(certificate.tables) == 6
    for at in range(6):
        cells = read_finest(tmp_path / "out", certificate, at)
        assert cells["count"].min() >= 0  # type: ignore[operator]
        for name in names:
            if name in cells.columns:
                sums = (
                    cells.group_by(f"{name}_code").agg(pl.col("count").sum()).sort(f"{name}_code")
                )
                assert margins.setdefault(name, sums["count"].to_list()) == sums["count"].to_list()
    assert ic.verify(tmp_path / "out") == []


def test_cells_that_nobody_is_in_have_a_line(tmp_path: Path) -> None:
    release = publish(tmp_path / "out")
    cells = read_finest(tmp_path / "out", release.certificate, 1)
    nobody = cells.filter(pl.col("diagnosis") == "c")  # declared, and no resident has it
    assert nobody.height == 11 * 3
    assert nobody["sd"].min() > 1  # type: ignore[operator]
    assert nobody["estimate"].min() < 0  # type: ignore[operator]


def test_the_same_seed_makes_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        publish(tmp_path / name, bits=SeededRandomness(7))
    files = {path.name for path in (tmp_path / "one").rglob("*") if path.is_file()}
    assert {"data-1.parquet", "data-2.parquet", "measured.parquet"} < files
    for path in (tmp_path / "one").rglob("*"):
        if path.is_file():
            assert (
                path.read_bytes()
                == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes()
            )


def test_one_table_is_called_data(tmp_path: Path) -> None:
    release = publish(tmp_path / "out", f"{BUDGET}, tables: [[sex]], totals: false, format: csv")
    assert release.certificate.table.release.file == "data.csv"
    assert read_table(tmp_path / "out", "data.csv").columns == [
        "sex", "sex_level", "sex_code", "count", "estimate", "sd", "low", "high",
    ]  # fmt: skip
    assert ic.verify(tmp_path / "out") == []


# What is asked for ----------------------------------------------------------------------------


def test_rows_with_missing_values_are_left_out_where_the_spec_says_so(tmp_path: Path) -> None:
    residents = make_residents(1500)
    spec = make_spec(f"{PRECISE}, {TABLES}, missing: excluded")
    with pytest.warns(ic.IncrowdWarning, match="30 rows are in no table, of 1,500"):
        release = ic.publish(residents, spec, output=tmp_path / "out")
    cells = read_finest(tmp_path / "out", release.certificate, 1)
    assert cells["diagnosis"].null_count() == 0
    total = read_table(tmp_path / "out", "data-2.parquet")["estimate"][0]
    assert total == pytest.approx(1470, abs=25)
    sentence = {x.key: x.text for x in release.certificate.guarantee.statement}["missing_values"]
    assert "not counted in any table" in sentence
    assert ic.verify(tmp_path / "out") == []


def test_hidden_numbers_are_presentation_and_said_to_be(tmp_path: Path) -> None:
    release = publish(tmp_path / "out", f"{BUDGET}, {TABLES}, hide_below: 10")
    table = read_table(tmp_path / "out", "data-2.parquet")
    hidden = table.filter(pl.col("count").is_null())
    assert 0 < hidden.height < table.height
    assert hidden["estimate"].null_count() == hidden["low"].null_count() == hidden.height
    assert hidden["sd"].null_count() == 0
    assert table["count"].min() >= 10  # type: ignore[operator]
    words = release.certificate.guarantee.text
    assert "This is presentation and protects nobody" in words
    assert ic.verify(tmp_path / "out") == []


def test_a_weight_buys_precision_and_the_objective_counts(tmp_path: Path) -> None:
    def list_errors(release: str) -> list[float]:
        spec = make_spec(f"{BUDGET}, totals: false, {release}")
        part = publish_unjudged(make_residents(50), spec).certificate.tabulation
        assert part is not None
        return [table.rmse for table in part.tables]

    even = list_errors("tables: [[region, sex], [age, diagnosis]]")
    tilted = list_errors("tables: [{columns: [region, sex], weight: 9}, [age, diagnosis]]")
    largest = list_errors("tables: [[region, sex], [age, diagnosis]], objective: max")
    assert tilted[0] < even[0]
    assert tilted[1] > even[1]
    assert largest[0] == pytest.approx(largest[1], rel=0.01)
    assert max(largest) < max(even)


def test_of_a_person_with_several_rows_one_counts(tmp_path: Path) -> None:
    spec = make_spec(f"{PRECISE}, {TABLES}", more="unit: {id: id}")
    release = publish_unjudged(make_residents(3000, visits=3), spec, output=tmp_path / "out")
    total = read_table(tmp_path / "out", "data-1.parquet")["estimate"][0]
    assert total == pytest.approx(1000, abs=25)
    assert release.certificate.guarantee.unit == "one person"
    assert (tmp_path / "out.curator" / "rows.json").exists()
    assert ic.verify(tmp_path / "out") == []


def test_the_ledger_books_before_anything_is_drawn(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "budget.ledger")
    ledger.set_budget(epsilon=1.2, delta=2e-6)
    publish(tmp_path / "one", ledger=ledger)
    assert ledger.total().epsilon == pytest.approx(1, abs=0.01)
    with pytest.raises(BudgetError):
        publish(tmp_path / "two", ledger=ledger)
    assert not (tmp_path / "two").exists()


def test_the_report_measures_the_tables(tmp_path: Path) -> None:
    release = ic.publish(make_residents(1500), make_spec(), output=tmp_path / "out")
    evaluation = release.evaluation.as_dict()
    assert evaluation["rows_original"] == 1500
    assert [table["columns"] for table in evaluation["tables"]] == [
        ("sex", "region"), ("diagnosis", "age", "sex"),
    ]  # fmt: skip
    for table in evaluation["tables"]:
        assert table["coverage"] > 0.8
        assert 0.3 < table["estimate"] / table["expected"] < 3
    page = (tmp_path / "out.curator" / "report.html").read_text(encoding="utf-8")
    assert "Errors by table" in page
    again = ic.evaluate(make_residents(1500), tmp_path / "out", make_spec())
    for table, other in zip(again.as_dict()["tables"], evaluation["tables"], strict=True):
        for name in ("cells", "count", "largest", "distance", "bias"):
            assert table[name] == other[name]
        assert table["estimate"] == pytest.approx(other["estimate"], abs=0.001)


def test_a_dry_run_makes_tables_of_nobody(tmp_path: Path) -> None:
    release = ic.rehearse(make_spec(), size=500, output=tmp_path / "dry")
    assert release.certificate.rehearsal
    assert list_codes(ic.verify(tmp_path / "dry")) == ["RELEASE_REHEARSED"]


def test_a_forecast_names_the_table_with_the_largest_error() -> None:
    residents, spec = make_residents(50), make_spec()
    codes = list_codes(ic.expect(residents, spec).findings())
    assert codes == ["TABLES_ERROR"]
    small = make_spec(more="size: 200")
    assert "TABLES_ERROR_LARGE" in list_codes(ic.expect(residents, small).findings())


# Forgeries ------------------------------------------------------------------------------------


def forge(folder: Path, name: str, change: Any) -> list[str]:
    """Change a file of a release, certify the change, and return what verify says."""
    path = folder / name
    table = pl.read_csv(path, infer_schema=False)
    pl.DataFrame(change(table)).write_csv(path)
    certificate = load_certificate(folder)
    assert certificate.slices is not None
    slices = [
        part.model_copy(
            update={"release": part.release.model_copy(
                update={"sha256": hash_file(folder / part.release.file)})}
        )
        for part in certificate.slices
    ]  # fmt: skip
    reseal_certificate(folder, certificate.model_copy(update={"slices": slices}))
    return list_codes(ic.verify(folder))


def set_value(column: str, row: int, value: str) -> Any:
    def change(table: pl.DataFrame) -> pl.DataFrame:
        values = table[column].to_list()
        values[row] = value
        return table.with_columns(pl.Series(column, values))

    return change


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (set_value("count", 0, "999"), "TABLE_DOES_NOT_ADD_UP"),
        (set_value("count", 5, "-1"), "TABLE_LINES_DIFFER"),
        (set_value("count", 5, "1.0"), "TABLE_LINES_DIFFER"),
        (set_value("count", 5, "007"), "TABLE_LINES_DIFFER"),
        (set_value("region", 3, "N3"), "TABLE_LINES_DIFFER"),
        (set_value("region_code", 3, "4"), "TABLE_LINES_DIFFER"),
        (set_value("sd", 3, "1.0"), "TABLE_INTERVALS_DIFFER"),
        (set_value("low", 3, "0.0"), "TABLE_INTERVALS_DIFFER"),
        (set_value("estimate", 3, "12.3456"), "TABLE_LINES_DIFFER"),
        (lambda table: table.reverse(), "TABLE_LINES_DIFFER"),
        (lambda table: table.head(5), "TABLE_LINES_DIFFER"),
        (lambda table: table.with_columns(pl.lit("x").alias("note")), "TABLE_LINES_DIFFER"),
    ],
)
def test_what_is_changed_in_a_table_is_found(tmp_path: Path, change: Any, code: str) -> None:
    publish(tmp_path / "out", f"{BUDGET}, {TABLES}, format: csv", rows=300)
    assert code in forge(tmp_path / "out", "data-1.csv", change)


def test_estimates_that_do_not_follow_are_found(tmp_path: Path) -> None:
    publish(tmp_path / "out", f"{BUDGET}, {TABLES}, format: csv", rows=300)

    def shift(table: pl.DataFrame) -> pl.DataFrame:
        names = ("estimate", "low", "high")
        moved = [
            table[name].cast(float) + (pl.arange(0, table.height, eager=True) == 3)
            for name in names
        ]
        return table.with_columns(
            series.round(3).cast(str).alias(name) for name, series in zip(names, moved, strict=True)
        )

    assert forge(tmp_path / "out", "data-1.csv", shift) == ["TABLE_ESTIMATES_DIFFER"]


def test_tables_that_contradict_each_other_are_found(tmp_path: Path) -> None:
    """A table whose counts all add up, and are not those of the other table."""
    publish(
        tmp_path / "out", f"{BUDGET}, tables: [[sex], [sex, age]], totals: false, format: csv",
        rows=300,
    )  # fmt: skip
    table = pl.read_csv(tmp_path / "out" / "data-1.csv")
    value = str(table["count"][0] + 1)
    assert forge(tmp_path / "out", "data-1.csv", set_value("count", 0, value)) == [
        "TABLES_DISAGREE"
    ]


def change_part(folder: Path, **changes: Any) -> list[str]:
    certificate = load_certificate(folder)
    assert certificate.tabulation is not None
    part = certificate.tabulation.model_copy(update=changes)
    reseal_certificate(folder, certificate.model_copy(update={"tabulation": part}))
    return list_codes(ic.verify(folder))


def test_measurements_that_are_not_charged_are_found(tmp_path: Path) -> None:
    publish(tmp_path / "out", rows=300)
    part = load_certificate(tmp_path / "out").tabulation
    assert part is not None
    residuals = [x.model_copy(update={"part": "1"}) if at == 3 else x
                 for at, x in enumerate(part.residuals)]  # fmt: skip
    assert "MEASUREMENTS_NOT_CHARGED" in change_part(tmp_path / "out", residuals=residuals)


def test_a_table_that_was_not_measured_is_found(tmp_path: Path) -> None:
    publish(tmp_path / "out", rows=300)
    part = load_certificate(tmp_path / "out").tabulation
    assert part is not None
    codes = change_part(tmp_path / "out", residuals=part.residuals[:-1])
    assert codes
    assert set(codes) <= {"DATA_NOT_CHECKED", "TABLES_NOT_ESTIMATED"}
    twice = [*part.residuals, part.residuals[-1]]
    assert "TABULATION_INVALID" in change_part(tmp_path / "out", residuals=twice)


def test_a_smaller_epsilon_is_found(tmp_path: Path) -> None:
    publish(tmp_path / "out", rows=300)
    certificate = load_certificate(tmp_path / "out")
    guarantee = certificate.guarantee.model_copy(update={"epsilon": 0.5})
    changed = certificate.model_copy(update={"guarantee": guarantee}).with_statement()
    reseal_certificate(tmp_path / "out", changed)
    assert "GUARANTEE_FALSE" in list_codes(ic.verify(tmp_path / "out"))


# Mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "message"),
    [
        ("method: tables, tables: [[sex]]", "needs a budget"),
        (BUDGET, "needs tables"),
        (f"{BUDGET}, all: 2, tables: [[sex]]", "exclude each other"),
        (f"{BUDGET}, all: 4", "release.all"),
        (f"{BUDGET}, tables: [[sex, sex]]", "names a column twice"),
        (f"{BUDGET}, tables: [[sex, age], [age, sex]]", "same columns at the same levels"),
        (f"{BUDGET}, tables: [[sex, agee]]", "Did you mean 'age'"),
        (f"{BUDGET}, tables: [{{columns: [sex], levels: {{age: 1}}}}]", "`levels` names 'age'"),
        (f"{BUDGET}, tables: [{{columns: [sex], weight: 0}}]", "weight"),
        (f"{BUDGET}, tables: [[sex]], levels: {{sex: 1}}", "`levels` belongs to a table"),
        (f"{BUDGET}, tables: [[sex]], k: 5", "`k` is not a setting"),
        (f"{BUDGET}, tables: [[sex]], rows: counted", "Remove `rows: counted`"),
        (f"{BUDGET}, tables: [[sex]], hide_below: 1", "hide_below"),
        (f"{BUDGET}, tables: [[sex]], objective: rows", "objective"),
        (f"{BUDGET}, tables: [[sex]], exports: [pdf]", "exports"),
        ("method: safe, epsilon: 1, delta: 1.0e-6, totals: true", "`totals` is not a setting"),
        ("method: safe, epsilon: 1, delta: 1.0e-6, objective: max", "objective"),
        ("method: synthetic, epsilon: 1, delta: 1.0e-6, tables: [[sex]]", "tables"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_spec(release: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make_spec(release)


@pytest.mark.parametrize(
    ("release", "change", "message"),
    [
        (f"{BUDGET}, tables: [[id, sex]]", {}, "Column 'id': a table names it, but its role"),
        (f"{BUDGET}, all: 3", {"age": "drop", "sex": "drop"}, "needs 3 columns"),
        (f"{BUDGET}, tables: [{{columns: [age], levels: {{age: 3}}}}]", {}, "levels 0 to 2 below"),
        (f"{BUDGET}, tables: [[sex]], total_label: male", {}, "Set `total_label` to another"),
    ],
)
def test_what_no_table_can_have_is_refused_before_the_table(
    release: str, change: dict[str, str], message: str
) -> None:
    spec = make_spec(release)
    for name, role in change.items():
        spec = spec.with_entry(("columns", name), {"role": role})
    with pytest.raises(IncrowdError, match=message):
        ic.publish(make_residents(10), spec)


def test_an_open_domain_is_refused_with_the_way_out() -> None:
    spec = make_spec().with_entry(("columns", "region", "hierarchy"), "flat")
    with pytest.raises(IncrowdError, match="its domain is open.*`method: safe`"):
        ic.publish(make_residents(10), spec)


def test_a_column_that_is_called_like_a_figure_is_refused() -> None:
    spec = json.loads(json.dumps({
        "columns": {"count": {"role": "quasi", "hierarchy": {"flat": {"values": ["a", "b"]}}}},
        "release": {"method": "tables", "epsilon": 1, "delta": 1e-6, "tables": [["count"]]},
    }))  # fmt: skip
    with pytest.raises(IncrowdError, match="Column 'count': a table adds a column of this name"):
        ic.publish(pl.DataFrame({"count": ["a", "b"]}), spec)


def test_attacks_on_groups_are_refused(tmp_path: Path) -> None:
    publish(tmp_path / "out", rows=300)
    with pytest.raises(IncrowdError, match="do not apply to tables of counts"):
        ic.attack(make_residents(300), tmp_path / "out", make_spec())


# Exports --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["parquet", "csv, formulas: escape"])
def test_a_workbook_shows_the_same_numbers(tmp_path: Path, form: str) -> None:
    release = f"{BUDGET}, {TABLES}, exports: [xlsx], hide_below: 3, format: {form}"
    for name in ("one", "two"):
        publish(tmp_path / name, release, rows=300, bits=SeededRandomness(2))
    book = (tmp_path / "one" / "tables.xlsx").read_bytes()
    assert book == (tmp_path / "two" / "tables.xlsx").read_bytes()
    sheet = pl.read_excel(tmp_path / "one" / "tables.xlsx", sheet_name="Table 1")
    assert sheet.columns == ["sex", "region", "count", "estimate", "sd", "low", "high"]
    assert sheet.height == 40
    assert "=S3" in sheet["region"].to_list()  # a text, and no formula
    assert list_codes(ic.verify(tmp_path / "one")) == ["RELEASE_SEEDED"]


def test_a_workbook_with_other_numbers_is_found(tmp_path: Path) -> None:
    publish(tmp_path / "out", f"{BUDGET}, {TABLES}, exports: [xlsx]", rows=300)
    publish(tmp_path / "other", f"{BUDGET}, {TABLES}, exports: [xlsx]", rows=300)
    path = tmp_path / "out" / "tables.xlsx"
    path.write_bytes((tmp_path / "other" / "tables.xlsx").read_bytes())
    assert list_codes(ic.verify(tmp_path / "out")) == ["FILE_CHANGED"]
    export = {"file": "tables.xlsx", "sha256": hash_file(path)}
    part = load_certificate(tmp_path / "out").tabulation
    assert part is not None
    exports = [part.exports[0].model_copy(update=export)]
    assert change_part(tmp_path / "out", exports=exports) == ["EXPORT_DIFFERS"]


def test_a_workbook_needs_its_library_before_anything_is_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(IncrowdError, match=r"incrowd\[excel\]"):
        ic.publish(make_residents(10), make_spec(f"{BUDGET}, {TABLES}, exports: [xlsx]"))
