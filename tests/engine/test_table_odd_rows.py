"""One odd row never changes what is read of the others: whatever they show would tell of it.

A file that cannot be read so is refused; nothing is published then.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from xlsxwriter import Workbook

from incrowd.codes.values import canonicalize_value
from incrowd.engine.source import open_table
from incrowd.engine.table import TableError

DAYS = [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2)]
TIMES = [dt.datetime(2020, 1, 1, 12, 30), dt.datetime(2020, 1, 2, 8, 15, 5)]
CLOCKS = [dt.time(10, 0), dt.time(11, 30)]
ODD = ["x", "007", "1.50", 1, 1.5, 1 / 3, True, DAYS[0], TIMES[0], CLOCKS[0], "2020-01-01 12:30:00"]
KINDS: dict[str, list[Any]] = {
    "whole numbers": [1, 2], "numbers": [1.5, 2.25], "thirds": [1 / 3, -2 / 3],
    "tiny": [1e-12, 29.99999999999], "large": [123456789012, 1e20], "days": DAYS, "times": TIMES,
    "clocks": CLOCKS, "truths": [True, False], "texts": ["a", "b"], "codes": ["007", "1.50"],
}  # fmt: skip


def read(table: Any) -> Counter[str | None]:
    """How often each value occurs, as it would be published."""
    frame = open_table(table).to_frame()
    return Counter(canonicalize_value(value) for value in frame["a"].to_list())


def workbook(path: Path, cells: Sequence[Any]) -> Path:
    with Workbook(path) as book:
        forms = {"day": "yyyy-mm-dd", "time": "yyyy-mm-dd hh:mm:ss", "clock": "hh:mm:ss"}
        cell_formats = {name: book.add_format({"num_format": form}) for name, form in forms.items()}
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["a", "b"])
        for row, cell in enumerate(cells, start=1):
            sheet.write(row, 1, "row")
            if isinstance(cell, dt.datetime):
                sheet.write_datetime(row, 0, cell, cell_formats["time" if cell.hour else "day"])
            elif isinstance(cell, dt.time):
                sheet.write_datetime(row, 0, cell, cell_formats["clock"])
            elif cell is not None:
                sheet.write(row, 0, cell)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_workbooks(kind: str, tmp_path: Path) -> None:
    cells = KINDS[kind] * 3
    alone = read(workbook(tmp_path / "alone.xlsx", cells))
    for number, odd in enumerate([None, *ODD]):
        together = read(workbook(tmp_path / f"{number}.xlsx", [*cells, odd]))
        assert sum((together - alone).values()) == 1, odd
        assert not alone - together, odd


@pytest.mark.parametrize(
    "odd",
    ["x", "007", "1.50", "1e5", "", "true", "2020-01-01", "3.1.2020", '"a ""b"" c"', "n/a",
     "\u00e9", " 1 ", "1;2", "-0", "1_000"],
)  # fmt: skip
@pytest.mark.parametrize(
    "values", [("1", "2"), ("01", "02"), ("1.50", "2.0"), ("true", "false"), ("2020-01-01", "b")]
)
def test_text_files(values: tuple[str, str], odd: str, tmp_path: Path) -> None:
    rows = "".join(f"{value},row\n" for value in values * 3)
    files = tmp_path / "alone.csv", tmp_path / "together.csv"
    files[0].write_text(f"a,b\n{rows}", encoding="utf-8")
    files[1].write_text(f"a,b\n{rows}{odd},row\n", encoding="utf-8")
    alone, together = map(read, files)
    assert not alone - together
    assert sum((together - alone).values()) == 1


def test_a_row_in_another_encoding(tmp_path: Path) -> None:
    """Read as Windows-1252, the other rows would be shown as K\u00c3\u00b6ln."""
    path = tmp_path / "t.csv"
    path.write_bytes("a\nK\u00f6ln\nBonn\n".encode() + "Orl\u00e9ans\n".encode("cp1252"))
    with pytest.raises(TableError, match="Correct that line, or save the file as UTF-8"):
        open_table(path)
    path.write_bytes("a\nK\u00f6ln\nBonn\nOrl\u00e9ans\n".encode("cp1252"))
    assert set(read(path)) == {"K\u00f6ln", "Bonn", "Orl\u00e9ans"}


@pytest.mark.parametrize("odd", [None, 1.5, 3])
@pytest.mark.parametrize("values", [[1, 2], [1.5, 2.0], [True, False]])
def test_data_frames(values: list[Any], odd: Any) -> None:
    if isinstance(values[0], bool) and odd is not None:
        return
    cells = values * 3, [*values * 3, odd]
    frames = (
        [pd.DataFrame({"a": each}) for each in cells],
        [pl.DataFrame({"a": each}, strict=False) for each in cells],
    )
    for alone, together in frames:
        assert sum((read(together) - read(alone)).values()) == 1
        assert not read(alone) - read(together)
