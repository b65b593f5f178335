"""Workbooks as people make them: titles, several sheets, gaps, mixed columns."""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from xlsxwriter import Workbook

from incrowd.codes.values import canonicalize_value
from incrowd.engine.source import open_table
from incrowd.engine.table import Table, TableError, TableOrigin

DAY, TIME = dt.datetime(2020, 2, 29), dt.datetime(2020, 2, 29, 12, 30)
N = None


def workbook(folder: Path, *, left: int = 0, **sheets: Sequence[Sequence[Any]]) -> Path:
    """A workbook with the cells of each sheet, a few columns to the right."""
    path = folder / "t.xlsx"
    with Workbook(path) as book:
        formats = {"day": "yyyy-mm-dd", "time": "yyyy-mm-dd hh:mm", "clock": "hh:mm"}
        cell_formats = {
            name: book.add_format({"num_format": form}) for name, form in formats.items()
        }
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for row, cells in enumerate(rows):
                for column, cell in enumerate(cells, start=left):
                    if isinstance(cell, dt.datetime):
                        form = cell_formats["time" if cell.hour else "day"]
                        sheet.write_datetime(row, column, cell, form)
                    elif isinstance(cell, dt.time):
                        sheet.write_datetime(row, column, cell, cell_formats["clock"])
                    elif cell is not None:
                        sheet.write(row, column, cell)
    return path


def values(table: Table) -> dict[str, list[object]]:
    return {name: sorted(table.values(name), key=str) for name in table.columns}


def test_kinds_stay_what_they_are_below_a_title(tmp_path: Path) -> None:
    head = ["n", "x", "day", "time", "clock", "yes", "zip", "nothing"]
    rows: list[list[Any]] = [
        [39, 70.5, DAY, TIME, dt.time(3, 4), True, "01234", N],
        [40, N, DAY, DAY, dt.time(3, 4), False, "x", N],
    ]
    path = workbook(tmp_path, Data=[["Patients of 2020"], [], head, *rows])
    table = open_table(path)
    assert values(table) == {
        "n": [39, 40],
        "x": [70.5, N],
        "day": [DAY.date()],
        "time": [DAY, TIME],
        "clock": ["03:04:00"],
        "yes": [False, True],
        "zip": ["01234", "x"],
        "nothing": [N],
    }
    assert {type(n) for n in table.values("n")} == {int}
    note = "Row 1 looks like a title; row 3 was read as the header. --header names another."
    assert table.origin == TableOrigin(header=3, notes=(note,))
    assert open_table(path, header=3).origin == TableOrigin(header=3)


def test_mixed_columns_are_text_and_lose_nothing(tmp_path: Path) -> None:
    head = ["a", "b", "c", "d"]
    rows = [["x", DAY, True, DAY], [39, "unknown", 1, 7], [2.5, TIME, 2.5, "x"]]
    table = open_table(workbook(tmp_path, Data=[head, *rows]))
    assert values(table) == {
        "a": ["2.5", "39", "x"],
        "b": ["2020-02-29", "2020-02-29T12:30:00", "unknown"],
        "c": ["1", "2.5", "true"],
        "d": ["2020-02-29", "7", "x"],
    }


@pytest.mark.parametrize("left", [0, 3])
def test_gaps_are_left_out(tmp_path: Path, left: int) -> None:
    """Rows without values, columns without name and values, wherever the table begins."""
    rows: list[list[Any]] = [
        [],
        [N, "a", N, "b", " "],
        [1, "x", N, 5],
        [],
        [2, "y", N, N],
        [N, N, N, N, " "],
    ]
    table = open_table(workbook(tmp_path, left=left, Data=rows))
    assert table.columns == ("unnamed", "a", "b")
    assert values(table)["unnamed"][:2] == [1, 2]
    assert table.origin == TableOrigin()
    assert open_table(workbook(tmp_path, left=left, Data=rows[:4])).rows() == 1


def test_a_sheet_can_be_named(tmp_path: Path) -> None:
    path = workbook(tmp_path, A=[["a"], [1]], B=[["b"], [2]], C=[])
    table = open_table(path)
    assert values(table) == {"a": [1]}
    note = "The workbook has other sheets: B, C. --sheet names one of them."
    assert table.origin == TableOrigin(notes=(note,))
    assert values(open_table(path, sheet="B")) == {"b": [2]}
    assert open_table(path, sheet="B").origin == TableOrigin(sheet="B")
    assert open_table(workbook(tmp_path, A=[["a"], [1]])).origin == TableOrigin()


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([["a"], [1]], {"sheet": "D"}, "Workbook 't.xlsx': no sheet 'D'. Its sheets are: A, B."),
        (
            [["a"], [1]],
            {"header": 3},
            "The sheet 'A' of 't.xlsx' has 2 rows, so row 3",
        ),
        ([], {}, "The sheet 'A' of 't.xlsx' is empty. The workbook has other sheets: B."),
        ([["a", "b"]], {}, "File 't.xlsx': it has a header but no rows. Name a file with rows."),
        ([["a", "a"], [1, 2]], {}, "The sheet 'A' of 't.xlsx': column 'a' occurs twice."),
        (
            [["a", N, "c"], [1, 2, 3]],
            {},
            "The sheet 'A' of 't.xlsx': column 2 has no name in row 1, which was read as the "
            "header. Name the column, or set the header row with --header.",
        ),
        (
            [["T", N, N], ["a", "b", "c"], [1, 2, 3]],
            {"header": 1},
            "The sheet 'A' of 't.xlsx': column 2 has no name",
        ),
    ],
)
def test_what_is_wrong_with_a_sheet_is_said(
    tmp_path: Path, rows: list[list[Any]], options: dict[str, Any], message: str
) -> None:
    path = workbook(tmp_path, A=rows, B=[["b"], [1]])
    with pytest.raises(TableError) as error:
        open_table(path, **options)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_numbers_name_columns_where_the_row_is_given(tmp_path: Path) -> None:
    path = workbook(tmp_path, A=[["T", N, N], ["id", 2019, 2020], ["a", 1, 2]])
    assert open_table(path, header=2).columns == ("id", "2019", "2020")


def test_nothing_is_logged_of_empty_columns(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    open_table(workbook(tmp_path, A=[["a", "b", N], [1, N, N]], B=[]))
    assert capfd.readouterr() == ("", "")


def test_open_document_sheets(tmp_path: Path) -> None:
    def cell(value: str | int) -> str:
        kind = f'float" office:value="{value}' if isinstance(value, int) else "string"
        return (
            f'<table:table-cell office:value-type="{kind}"><text:p>{value}</text:p>'
            "</table:table-cell>"
        )

    table: list[list[str | int]] = [["People"], ["zip", "age", "sex"], ["01234", 39, "f"]]
    rows = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in table)
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {spaces}>'
        f'<office:body><office:spreadsheet><table:table table:name="A">{rows}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    path = tmp_path / "t.ods"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        file.writestr("META-INF/manifest.xml", "<manifest/>")
        file.writestr("content.xml", content)
    result = open_table(path)
    assert values(result) == {"zip": ["01234"], "age": [39], "sex": ["f"]}
    assert (result.origin.header, canonicalize_value(result.values("age")[0])) == (2, "39")
