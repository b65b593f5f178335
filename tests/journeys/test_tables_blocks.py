"""Tables of counts of more than one block of lines: made, written, read and checked so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pyarrow import parquet
from support.findings import list_codes
from support.readers import load_certificate, reseal_certificate
from support.tables import BUDGET, make_residents, make_spec
from support.unjudged import publish_unjudged

import incrowd as ic
from incrowd.engine import released_lines
from incrowd.engine.local import publishable
from incrowd.engine.source import local_engine
from incrowd.errors import IncrowdError
from incrowd.measure import tables as table_measure
from incrowd.methods.tables import request
from incrowd.methods.tables import verify as estimates
from incrowd.privacy.randomness import SeededRandomness
from incrowd.release.certificate import Certificate, hash_file
from incrowd.release.tables_part import FIGURES

ONE = "tables: [{columns: [region, sex, age], levels: {age: 1}}]"  # 10 * 4 * 15 lines
LINES, WRITTEN, READ = 600, 64, 50


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are made, read, measured and compared a few at a time; no size divides another."""
    monkeypatch.setattr(publishable, "BLOCK_ROWS", WRITTEN)
    monkeypatch.setattr(released_lines, "BLOCK_LINES", READ)
    monkeypatch.setattr(table_measure, "_AT_ONCE", 70)
    monkeypatch.setattr(estimates, "_AT_ONCE", 80)


def publish(folder: Path, release: str = ONE, rows: int = 300) -> ic.Release:
    return publish_unjudged(
        make_residents(rows), make_spec(f"{BUDGET}, {release}"), output=folder,
        bits=SeededRandomness(4),
    )  # fmt: skip


@pytest.mark.parametrize("more", ["", ", format: csv, formulas: escape", ", hide_below: 10"])
def test_blocks_hold_the_lines_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    publish(tmp_path / "whole", ONE + more)
    monkeypatch.setattr(publishable, "BLOCK_ROWS", WRITTEN)
    monkeypatch.setattr(released_lines, "BLOCK_LINES", READ)
    publish(tmp_path / "blocks", ONE + more)
    assert list_codes(ic.verify(tmp_path / "blocks")) == ["RELEASE_SEEDED"]
    if "csv" in more:
        name = "data.csv"
        assert (tmp_path / "blocks" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
        return
    for name in ("data.parquet", "measured.parquet"):
        written, expected = (parquet.read_table(tmp_path / x / name) for x in ("blocks", "whole"))
        assert written.equals(expected)
        groups = parquet.read_metadata(tmp_path / "blocks" / name).num_row_groups
        assert groups == -(-len(written) // WRITTEN) > 8
    table = pl.read_parquet(tmp_path / "blocks" / "data.parquet")
    assert table.height == LINES
    assert table.schema["region"] == pl.String
    assert {table.schema[x] for x in ("region_level", "region_code", "count")} == {pl.Int64}
    assert {table.schema[x] for x in FIGURES[1:]} == {pl.Float64}


@pytest.mark.usefixtures("small_blocks")
def test_the_data_frame_of_blocks_is_the_table(tmp_path: Path) -> None:
    release = publish(tmp_path / "out")
    assert release.data.equals(pl.read_parquet(tmp_path / "out" / "data.parquet"))
    assert release.data.filter(pl.col("region") == "=S3").height == LINES // 10
    assert release.tables[0].head(70).rows() == 70


def test_exports_of_blocks_are_those_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = f"{ONE}, exports: [xlsx, sdmx], hide_below: 5"
    publish(tmp_path / "whole", release)
    monkeypatch.setattr("incrowd.release.tables_export._AT_ONCE", 7)
    publish(tmp_path / "blocks", release)
    for name in ("tables.xlsx", "sdmx/table-1.csv", "sdmx/structure.xml"):
        assert (tmp_path / "blocks" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert list_codes(ic.verify(tmp_path / "blocks")) == ["RELEASE_SEEDED"]


@pytest.mark.usefixtures("small_blocks")
def test_errors_are_those_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever part of the lines is measured at a time; sums of floats differ in the last bits."""
    results = []
    for number, at_once in enumerate((70, 1 << 22)):
        monkeypatch.setattr(table_measure, "_AT_ONCE", at_once)
        release = ic.publish(
            make_residents(300), make_spec(f"{BUDGET}, {ONE}"), output=tmp_path / str(number),
            bits=SeededRandomness(4),
        )  # fmt: skip
        results.append(release.evaluation.as_dict()["tables"][0])
    parts, at_once_errors = results
    assert set(parts) == set(at_once_errors)
    for name, value in at_once_errors.items():
        expected = pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
        assert parts[name] == expected
    assert at_once_errors["empty"] > 0.1


# Forgeries ------------------------------------------------------------------------------------


def forge(folder: Path, name: str, change: Any) -> list[str]:
    """Change a Parquet file of a release, written as it was, and return what verify says."""
    path = folder / name
    table: pl.DataFrame = change(pl.read_parquet(path))
    texts = [x for x in table.columns if table.schema[x] == pl.String]
    coded: dict[str, Any] = {}
    for text in texts:
        labels = table[text].unique(maintain_order=True).to_list()
        codes = [labels.index(label) for label in table[text].to_list()]
        coded[text] = (labels, np.array(codes, dtype=np.int32))
    plain = {
        x: (table[x].fill_null(0).to_numpy(), table[x].is_null().to_numpy())
        for x in table.columns
        if x not in texts
    }
    local_engine().from_rows(coded, plain, table.columns).write(path)
    certificate = load_certificate(folder)
    changes: dict[str, Any] = {}
    if name == "measured.parquet":
        assert certificate.tabulation is not None
        changes["tabulation"] = certificate.tabulation.model_copy(
            update={"measured": hash_file(path)}
        )
    else:
        assert isinstance(certificate, Certificate)
        assert certificate.release is not None
        changes["release"] = certificate.release.model_copy(update={"sha256": hash_file(path)})
    reseal_certificate(folder, certificate.model_copy(update=changes))
    return [code for code in list_codes(ic.verify(folder)) if code != "RELEASE_SEEDED"]


def set_value(column: str, line: int, value: Any) -> Any:
    def change(table: pl.DataFrame) -> pl.DataFrame:
        values = table[column].to_list()
        values[line] = value
        return table.with_columns(pl.Series(column, values, dtype=table.schema[column]))

    return change


def move(column: str, line: int, by: float) -> Any:
    """Move a figure with its interval, so that the line by itself is possible."""

    def change(table: pl.DataFrame) -> pl.DataFrame:
        names = ("estimate", "low", "high") if column == "estimate" else (column,)
        is_line = pl.arange(0, table.height, eager=True) == line
        return table.with_columns((pl.col(x) + by * is_line).round(3) for x in names)

    return change


# The first block, the ends of one inside, and the last one, which is shorter.
@pytest.mark.parametrize("line", [0, READ - 1, READ, 7 * READ + 3, LINES - 1])
@pytest.mark.parametrize(
    ("make_change", "codes"),
    [
        (lambda line: set_value("count", line, 999_999), ["TABLE_DOES_NOT_ADD_UP"]),
        (lambda line: set_value("count", line, -1), ["TABLE_LINES_DIFFER"]),
        (lambda line: set_value("count", line, None), ["TABLE_LINES_DIFFER"]),
        (lambda line: set_value("sex", line, "woman"), ["TABLE_LINES_DIFFER"]),
        (lambda line: set_value("region_code", line, 7), ["TABLE_LINES_DIFFER"]),
        (lambda line: set_value("age_level", line, 5), ["TABLE_LINES_DIFFER"]),
        (lambda line: set_value("estimate", line, 0.12345), ["TABLE_LINES_DIFFER"]),
        (lambda line: move("low", line, 1.0), ["TABLE_INTERVALS_DIFFER"]),
        (lambda line: move("estimate", line, 1.0), ["TABLE_ESTIMATES_DIFFER"]),
    ],
)
@pytest.mark.usefixtures("small_blocks")
def test_what_is_changed_in_any_block_is_found(
    tmp_path: Path, line: int, make_change: Any, codes: list[str]
) -> None:
    publish(tmp_path / "out")
    assert forge(tmp_path / "out", "data.parquet", make_change(line)) == codes


@pytest.mark.usefixtures("small_blocks")
def test_lines_that_are_missing_or_too_many_are_found(tmp_path: Path) -> None:
    for name, change in {
        "short": lambda table: table.head(LINES - 1),
        "short by a block": lambda table: table.head(LINES - READ),
        "long": lambda table: pl.concat([table, table.tail(READ)]),
    }.items():
        publish(tmp_path / name)
        assert forge(tmp_path / name, "data.parquet", change) == ["TABLE_LINES_DIFFER"]


@pytest.mark.usefixtures("small_blocks")
def test_hidden_lines_are_hidden_in_every_block(tmp_path: Path) -> None:
    publish(tmp_path / "out", f"{ONE}, hide_below: 10")
    table = pl.read_parquet(tmp_path / "out" / "data.parquet")
    (line, *_) = (table["count"].is_null().arg_true().to_numpy()[::-1]).tolist()
    assert line > LINES - READ
    codes = forge(tmp_path / "out", "data.parquet", set_value("estimate", line, 1.0))
    assert codes == ["TABLE_LINES_DIFFER"]


@pytest.mark.parametrize("line", [0, READ, -1])
@pytest.mark.usefixtures("small_blocks")
def test_measured_numbers_are_read_to_the_last(tmp_path: Path, line: int) -> None:
    publish(tmp_path / "one")
    change = set_value("number", line, 10**6)
    assert forge(tmp_path / "one", "measured.parquet", change) == ["TABLE_ESTIMATES_DIFFER"]
    publish(tmp_path / "two")
    change = set_value("residual", line, 99)
    assert forge(tmp_path / "two", "measured.parquet", change) == ["DATA_NOT_CHECKED"]
    publish(tmp_path / "three")
    codes = forge(tmp_path / "three", "measured.parquet", lambda table: table.head(-1))
    assert codes == ["DATA_NOT_CHECKED"]


# Limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "limit"),
    [
        ("exports: [xlsx]", "_SHEET_LINES"),
        ("exports: [sdmx]", "_TEXT_LINES"),
        ("format: csv", "_TEXT_LINES"),
    ],
)
def test_a_table_that_a_form_cannot_hold_is_refused_before_anything_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, limit: str
) -> None:
    monkeypatch.setattr(request, limit, LINES)
    publish(tmp_path / "out", f"{ONE}, {more}")
    monkeypatch.setattr(request, limit, LINES - 1)
    with pytest.raises(IncrowdError, match="has 600 lines") as caught:
        publish(tmp_path / "none", f"{ONE}, {more}")
    assert caught.value.finding.code == "TABLE_TOO_LONG"  # type: ignore[attr-defined]
    assert not (tmp_path / "none").exists()
    publish(tmp_path / "parquet")
