"""Kinds of values, of columns and of hierarchies in k-anonymous releases."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import polars.selectors as cs
import pytest
from support.patients import SMALL, count_shown_rows, publish_patients, read_released_rows

from incrowd.errors import IncrowdError
from incrowd.release.verify import verify

KINDS: dict[str, pl.Series] = {
    "ints": pl.Series([3, None, -7, 2**53 + 1], dtype=pl.Int64),
    "large ints": pl.Series([2**63 + 5, 1, 2, None], dtype=pl.UInt64),
    "floats": pl.Series([0.1, None, -2.5, 1e-7]),
    "dates": pl.Series([dt.date(2020, 2, 29), None, dt.date(1900, 1, 1), dt.date(2020, 3, 1)]),
    "times": pl.Series([dt.datetime(2020, 1, 1, 5, 6, 7), None] * 2),
    "flags": pl.Series([True, None, False, True]),
    "decimals": pl.Series(["1.50", "2.25", None, "-3.00"]).cast(pl.Decimal(10, 2)),
    "text": pl.Series(["07", " 7", 'say "a, b"\nc', "é;ü"]),
    "nothing": pl.Series([None] * 4, dtype=pl.String),
    "spans": pl.Series([dt.timedelta(days=1), dt.timedelta(seconds=5), None, dt.timedelta()]),
}


def kept_columns(kinds: Sequence[str]) -> tuple[pl.DataFrame, str]:
    """A table with a sensitive column of each kind, and its part of a spec."""
    columns = {kind: pl.concat([KINDS[kind]] * 5) for kind in kinds}
    table = pl.DataFrame({"a": ["x", "y"] * 10, **columns})
    sensitive = "".join(f", {kind}: {{role: sensitive}}" for kind in kinds)
    return table, f"columns: {{a: {{role: quasi, hierarchy: flat}}{sensitive}}}"


@pytest.mark.parametrize("settings", ["", ", rows: counted", ", algorithm: mondrian"])
def test_sensitive_values_keep_their_types(tmp_path: Path, settings: str) -> None:
    kinds = [kind for kind in KINDS if kind != "spans"]
    table, columns = kept_columns(kinds)
    result = publish_patients(table, tmp_path / "out", f"k: 5{settings}", columns)
    assert verify(tmp_path / "out") == []
    data = read_released_rows(tmp_path / "out")
    for kind in kinds:
        assert type(data.schema[kind]) is type(table.schema[kind]), kind
        if kind != "decimals":  # they may have more digits
            assert data.schema[kind] == table.schema[kind]
        assert result.data.schema[kind] == data.schema[kind]
    if "counted" in settings:
        data = data.select(pl.exclude("count").repeat_by("count")).explode(cs.all())
    assert count_shown_rows(data) == count_shown_rows(table)


def test_spans_of_time_are_published_as_text(tmp_path: Path) -> None:
    """Parquet holds them only with a library's own metadata, which a release has none of."""
    table, columns = kept_columns(["spans"])
    publish_patients(table, tmp_path / "out", "k: 5", columns)
    assert verify(tmp_path / "out") == []
    assert set(read_released_rows(tmp_path / "out")["spans"]) == {"P1D", "PT5S", "PT0S", None}


def test_sensitive_values_in_text_files(tmp_path: Path) -> None:
    table, columns = kept_columns([kind for kind in KINDS if kind != "spans"])
    for rows in ("expanded", "counted"):
        publish_patients(table, tmp_path / rows, f"k: 5, format: csv, rows: {rows}", columns)
        assert verify(tmp_path / rows) == []
    data = pd.read_csv(tmp_path / "expanded" / "data.csv", dtype=str, keep_default_na=False)
    table.write_csv(tmp_path / "raw.csv")
    raw = pd.read_csv(tmp_path / "raw.csv", dtype=str, keep_default_na=False)
    assert Counter(data.itertuples(index=False, name=None)) == Counter(
        raw.itertuples(index=False, name=None)
    )


def test_empty_text_and_null_in_a_counted_text_file(tmp_path: Path) -> None:
    """In such a file they look alike, so they must be one row."""
    table = pl.DataFrame({"a": ["x"] * 20, "s": ["", None] * 10})
    columns = "columns: {a: {role: quasi, hierarchy: flat}, s: {role: sensitive}}"
    publish_patients(table, tmp_path / "out", "k: 5, format: csv, rows: counted", columns)
    assert verify(tmp_path / "out") == []


@pytest.mark.parametrize("rows", ["expanded", "counted"])
def test_a_sensitive_column_called_count(tmp_path: Path, rows: str) -> None:
    table = pl.DataFrame({"a": ["x"] * 10 + ["y"] * 10, "count": range(20)})
    columns = "columns: {a: {role: quasi, hierarchy: flat}, count: {role: sensitive}}"
    if rows == "counted":
        with pytest.raises(IncrowdError, match="'count': `rows: counted` adds"):
            publish_patients(table, tmp_path / "out", f"k: 5, rows: {rows}", columns)
        return
    publish_patients(table, tmp_path / "out", f"k: 5, rows: {rows}", columns)
    assert verify(tmp_path / "out") == []


DATES = "columns: {d: {role: quasi, hierarchy: {dates: {from: 2010-01-01, to: 2029-12-31%s}}}}"


@pytest.mark.parametrize(
    "levels",
    ["", ", levels: [month, year]", ", levels: [quarter, year]", ", levels: [year, decade]"],
)
def test_mondrian_on_dates_of_any_grain(tmp_path: Path, levels: str) -> None:
    days = np.random.default_rng(1).integers(0, 3000, 60)
    table = pl.DataFrame({"d": [dt.date(2012, 1, 1) + dt.timedelta(int(x)) for x in days]})
    result = publish_patients(table, tmp_path / "out", "k: 5, algorithm: mondrian", DATES % levels)
    assert verify(tmp_path / "out") == []
    assert result.certificate.table.release.classes > 3


@pytest.mark.parametrize("algorithm", ["mondrian", "cluster"])
@pytest.mark.parametrize(
    "hierarchy",
    [
        "{intervals: {from: 0, to: 99, step: 5, widths: [10]}}",
        "{intervals: {from: 10, to: 80, open: both}}",
        "{intervals: {from: 0, to: 100, step: 0.5}}",
        "{intervals: {from: 20, to: 60}}, other: elsewhere",
        "{groups: {low: [" + ", ".join(map(str, range(50))) + "], high: ["
        + ", ".join(map(str, range(50, 100))) + "]}}",
        "{order: {values: [" + ", ".join(f"v{i}" for i in range(100)) + "], runs: [10]}}",
        "{mask: {length: 2}}",
        "flat",
    ],
)  # fmt: skip
def test_local_recoding_of_every_kind(tmp_path: Path, hierarchy: str, algorithm: str) -> None:
    draw = np.random.default_rng(2)
    numbers = draw.integers(0, 100, 200).tolist()
    text = [f"v{x}" if "order" in hierarchy else f"{x:02d}" for x in numbers]
    values = text if "order" in hierarchy or "mask" in hierarchy else numbers
    table = pl.DataFrame({"x": [None if i % 20 == 0 else v for i, v in enumerate(values)]})
    columns = f"columns: {{x: {{role: quasi, hierarchy: {hierarchy}}}}}"
    result = publish_patients(table, tmp_path / "out", f"k: 5, algorithm: {algorithm}", columns)
    assert verify(tmp_path / "out") == []
    data = read_released_rows(tmp_path / "out")
    assert data["x"].value_counts()["count"].min() >= 5  # type: ignore[operator]
    assert result.certificate.table.release.classes > 1
    assert result.evaluation.rows_released == result.certificate.table.release.rows == 200


def test_decimals_stay_exact(tmp_path: Path) -> None:
    """A value that no binary fraction holds is published as it was."""
    table = pl.DataFrame({"x": ["a"] * 5, "s": [Decimal("0.10")] * 5})
    publish_patients(table, tmp_path / "out", "k: 5", SMALL % ("", ""))
    assert read_released_rows(tmp_path / "out")["s"].to_list() == [Decimal("0.10")] * 5


def test_no_quasi_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IncrowdError, match="no quasi-identifier"):
        publish_patients(
            pl.DataFrame({"s": [1, 2]}), tmp_path / "out", "k: 2", "columns: {s: {role: sensitive}}"
        )


def test_a_failure_without_a_folder_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with pytest.raises(IncrowdError, match="fewer than k"):
        publish_patients(pl.DataFrame({"x": ["a"], "s": [1]}), None, "k: 5", SMALL % ("", ""))
    assert list((tmp_path / "temporary").iterdir()) == []
