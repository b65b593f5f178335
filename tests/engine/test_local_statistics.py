"""Files of SAS, Stata and SPSS, read as their programs show them."""

from __future__ import annotations

import builtins
import datetime as dt
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pyreadstat
import pytest

from incrowd.engine.source import open_table
from incrowd.engine.table import Table, TableError

N = None
DAY, TIME = dt.date(1984, 2, 29), dt.datetime(2001, 2, 3, 4, 5, 6)
FRAME = pl.DataFrame(
    {
        "sex": [1.0, 2.0, 3.0, N, 9.0],
        "age": [39, 40, 41, 42, 99],
        "day": [DAY, N, DAY, DAY, DAY],
        "time": [TIME, N, N, N, TIME],
        "name": ["a", "b", "c", "d", "e"],
        "weight": [1.5, N, 2.0, 3.0, 4.0],
    }
)
LABELS: dict[str, str | None] = {"sex": "Sex of the person", "age": "Age in years"}
CODES: dict[str, Any] = {"sex": {1: "male", 2: "female"}, "age": {99: "unknown"}}


def values(table: Table) -> dict[str, list[object]]:
    return {name: sorted(table.values(name), key=str) for name in table.columns}


PLAIN = {
    "sex": [1, 2, 3, 9, N],
    "age": [39, 40, 41, 42, 99],
    "day": [DAY, N],
    "time": [TIME, N],
    "name": ["a", "b", "c", "d", "e"],
    "weight": [1.5, 2.0, 3.0, 4.0, N],
}


@pytest.mark.parametrize("ending", ["sav", "zsav", "dta"])
def test_labels_stand_for_codes(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t.{ending}"
    if ending == "dta":
        pyreadstat.write_dta(FRAME, path, column_labels=LABELS, variable_value_labels=CODES)
    else:
        pyreadstat.write_sav(
            FRAME,
            path,
            column_labels=LABELS,
            variable_value_labels=CODES,
            compress=ending == "zsav",
        )
    table = open_table(path)
    assert values(table) == PLAIN | {
        "sex": ["3", "9", N, "female", "male"],
        "age": ["39", "40", "41", "42", "unknown"],
    }
    assert table.origin.labels == LABELS


def test_missing_values_are_null_and_leave_numbers_alone(tmp_path: Path) -> None:
    """A label that no value has any more does not make text of numbers."""
    path = tmp_path / "t.sav"
    pyreadstat.write_sav(
        FRAME,
        path,
        variable_value_labels=CODES,
        missing_ranges={"age": [99], "sex": [{"lo": 3, "hi": 9}], "name": ["e"]},
    )
    assert values(open_table(path)) == PLAIN | {
        "sex": [N, "female", "male"],
        "age": [39, 40, 41, 42, N],
        "name": [N, "a", "b", "c", "d"],
    }


def test_sas_transport(tmp_path: Path) -> None:
    path = tmp_path / "t.XPT"
    pyreadstat.write_xport(FRAME, path, column_labels=LABELS)
    table = open_table(path)
    assert values(table) == PLAIN
    assert table.origin.labels == LABELS
    assert {type(age) for age in table.values("age")} == {int}


def test_spss_portable(tmp_path: Path) -> None:
    path = tmp_path / "t.por"
    pyreadstat.write_por(FRAME, path)
    table = open_table(path)
    assert values(table) == {name.upper(): column for name, column in PLAIN.items()}


@pytest.mark.parametrize("ending", ["sas7bdat", "xpt", "dta", "sav", "zsav", "por"])
def test_what_is_wrong_is_said(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t.{ending}"
    path.write_bytes(b"hello")
    with pytest.raises(TableError) as error:
        open_table(path)
    assert str(error.value).startswith(f"Cannot read 't.{ending}' as {ending}: ")
    assert "\n" not in str(error.value)


def test_an_empty_table_and_a_column_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.sav"
    pyreadstat.write_sav(FRAME.clear(), path)
    with pytest.raises(TableError, match="File 't.sav': it has a header but no rows"):
        open_table(path)
    assert open_table(path, empty=True).columns == tuple(FRAME.columns)
    pyreadstat.write_sav(pl.DataFrame({"a": [1.0], "b": pl.Series([N], dtype=pl.Float64)}), path)
    assert values(open_table(path)) == {"a": [1], "b": [N]}


def test_the_library_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.sav").write_bytes(b"hello")
    monkeypatch.delitem(sys.modules, "pyreadstat")
    original_import = builtins.__import__

    def refuse(name: str, *more: Any) -> Any:
        if name == "pyreadstat":
            raise ImportError(name)
        return original_import(name, *more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(
        TableError, match=r"\.sav files need an extra. Install it: pip install 'incrowd\[statist"
    ):
        open_table(tmp_path / "t.sav")


def test_they_name_their_columns_themselves(tmp_path: Path) -> None:
    (tmp_path / "t.sav").write_bytes(b"hello")
    with pytest.raises(TableError, match="'t.sav' stores its column names"):
        open_table(tmp_path / "t.sav", header=2)
