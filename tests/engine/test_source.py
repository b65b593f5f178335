"""Opening tables: what curators have, and what is wrong with it."""

from __future__ import annotations

import datetime as dt
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from incrowd.codes.values import canonicalize_value
from incrowd.engine.local import text
from incrowd.engine.source import _ENGINES, local_engine, open_spec_table, open_table
from incrowd.engine.table import Table, TableError, TableOrigin
from incrowd.errors import IncrowdError, ParameterError
from incrowd.spec.file import parse_spec

GOOD: dict[str, tuple[bytes, dict[str, list[str | None]]]] = {
    "plain.csv": (b"a,b\n1,2\n", {"a": ["1"], "b": ["2"]}),
    "bom_crlf.csv": (b"\xef\xbb\xbfa,b\r\n1,2\r\n", {"a": ["1"], "b": ["2"]}),
    "semicolon.csv": (b"a;b\n1,5;2\n", {"a": ["1,5"], "b": ["2"]}),
    "tab.tsv": (b"a\tb\n1\t2\n", {"a": ["1"], "b": ["2"]}),
    "pipe.txt": (b"a|b\n1|2\n", {"a": ["1"], "b": ["2"]}),
    "western.csv": ("a;b\nJürgen;é\n".encode("cp1252"), {"a": ["Jürgen"], "b": ["é"]}),
    "utf16.csv": ("a\tb\n1\tü\n".encode("utf-16"), {"a": ["1"], "b": ["ü"]}),
    "quotes.csv": (b'a,b\n"say ""hi"", now","x\ny"\n', {"a": ['say "hi", now'], "b": ["x\ny"]}),
    "nulls.csv": (b'a,b\n,1\n"",2\n', {"a": [None, None], "b": ["1", "2"]}),
    "zeros.csv": (b"zip,n\n01234,1\n1234,2.0\n", {"zip": ["01234", "1234"], "n": ["1", "2.0"]}),
    "mixed.csv": (b"a\n1\nx\n2020-01-01\n", {"a": ["1", "x", "2020-01-01"]}),
    "inches.csv": (b'a,b\n5" pipe,it"s\n', {"a": ['5" pipe'], "b": ['it"s']}),
    "blank.csv": (b"\na,b\n\n1,2\n\n", {"a": ["1"], "b": ["2"]}),
    "one.csv": (b"a\nx\n\ny\n", {"a": ["x", None, "y"]}),
    "newline.csv": (b'"a\nz",b\n1,2\n', {"a\nz": ["1"], "b": ["2"]}),
    "all_null.csv": (b"a,b\n,1\n,2\n", {"a": [None, None], "b": ["1", "2"]}),
    "pandas.csv": (b",b\n0,x\n1,y\n", {"unnamed": ["0", "1"], "b": ["x", "y"]}),
    "r.csv": (b'"","b"\n"1","x"\n', {"unnamed": ["1"], "b": ["x"]}),
}

BAD: dict[str, tuple[bytes, str]] = {
    "empty.csv": (b"", "File 'empty.csv': it is empty."),
    "header.csv": (b"a,b\n", "File 'header.csv': it has a header but no rows."),
    "twice.csv": (
        b"a,b,a\n1,2,3\n",
        "The file 'twice.csv': column 'a' occurs twice. Rename one of them.",
    ),
    "nameless.csv": (
        b"a,,c\n1,2,3\n",
        "The file 'nameless.csv': column 2 has no name.",
    ),
    "named.csv": (
        b",unnamed\n1,2\n",
        "The file 'named.csv': column 1 has no name.",
    ),
    "short.csv": (
        b"a,b\n1,2\n3\n",
        "Row 3 of 'short.csv' has 1 fields, but the header has 2. Is a delimiter unquoted, or ',' "
        "the wrong one?",
    ),
    "long.csv": (
        b"a,b\n1,2\n3,4,5\n",
        "Row 3 of 'long.csv' has 3 fields, but the header has 2. Is a delimiter unquoted, or ',' "
        "the wrong one?",
    ),
    "binary.csv": (
        b"a,b\n\x81\xff,\x00\n",
        "File 'binary.csv': not text in UTF-8, UTF-16 or Windows-1252. Save it as UTF-8.",
    ),
    "odd.xyz": (b"hello", "File 'odd.xyz': unknown format. Its name must end in"),
    "fake.parquet": (b"hello", "Cannot read 'fake.parquet' as parquet:"),
    "fake.xlsx": (b"hello", "Cannot read 'fake.xlsx' as xlsx:"),
    "fake.arrow": (b"hello", "Cannot read 'fake.arrow' as arrow:"),
}


def columns(path: object) -> dict[str, list[object]]:
    table = open_table(path)
    return {name: sorted(table.values(name), key=str) for name in table.columns}


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("name", GOOD)
def test_text_is_read_as_it_is_meant_whatever_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, large: bool
) -> None:
    content, expected = GOOD[name]
    if large:
        monkeypatch.setattr(text, "_IN_MEMORY_BYTES", -1)
    (tmp_path / name).write_bytes(content)
    assert columns(tmp_path / name) == {
        key: sorted(set(values), key=str) for key, values in expected.items()
    }


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, name: str) -> None:
    content, message = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError) as error:
        open_table(tmp_path / name)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_awkward_tables_in_memory() -> None:
    with pytest.raises(TableError, match="Rename one of them"):
        open_table(pa.table([[1], [2]], names=["a", "a"]))
    with pytest.raises(TableError, match="Cannot read the pandas.DataFrame"):
        open_table(pd.DataFrame({"a": [1, "1", None]}))


def test_a_large_file_is_checked_and_scanned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "_IN_MEMORY_BYTES", 10)
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_bytes(b'a;b\n"x;y";01\n' * 1 + b"z;\n" * 999)
    table = open_table(good)
    assert table.rows() == 1000
    assert set(table.values("a")) == {"x;y", "z"}
    assert set(table.values("b")) == {"01", None}
    bad.write_bytes(b"a;b\nx;01\n" + b"z;2\n" * 999 + b"w\n")
    with pytest.raises(TableError, match="Row 1002 of 'bad.csv' has 1 fields"):
        open_table(bad)


def test_a_huge_cell_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge.csv"
    path.write_bytes(b"a,b\n" + b"x" * 140_000_000 + b",1\n")
    with pytest.raises(TableError, match="longer than 64 MB. Close the open quote"):
        open_table(path)


def test_two_thousand_columns(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    names = [f"c{i}" for i in range(2000)]
    path.write_text(",".join(names) + "\n" + ",".join("7" * 2000) + "\n")
    table = open_table(path)
    assert table.columns == tuple(names)
    assert table.values("c1999") == ["7"]


def test_a_folder_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(
        TableError, match="Name a file, or read a folder of Parquet files with --engine spark"
    ):
        open_table(tmp_path)
    with pytest.raises(TableError, match="No such file or directory"):
        open_table(tmp_path / "none.csv")


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.csv"
    path.write_text("a\n1\n")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(TableError, match="Cannot read '.*secret.csv': Permission denied"):
        open_table(path)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pl.DataFrame({"a": [1, None], "b": ["x", "y"]}),
        lambda: pl.LazyFrame({"a": [1, None], "b": ["x", "y"]}),
        lambda: pd.DataFrame({"a": [1, None], "b": ["x", "y"]}, index=[7, 7]),
        lambda: pa.table({"a": [1, None], "b": ["x", "y"]}),
    ],
)
def test_tables_in_memory(make: Callable[[], object]) -> None:
    table = open_table(make())
    assert table.columns == ("a", "b")
    assert set(table.values("a")) == {1, None}
    assert set(table.values("b")) == {"x", "y"}


def test_excel(tmp_path: Path) -> None:
    path = tmp_path / "table.xlsx"
    days = [dt.date(2020, 2, 29), dt.date(2021, 1, 1)]
    pl.DataFrame({"zip": ["01234", "x"], "n": [1, 2], "day": days}).write_excel(path)
    table = open_table(path)
    assert set(table.values("zip")) == {"01234", "x"}
    assert set(table.values("n")) == {1, 2}
    assert {canonicalize_value(day) for day in table.values("day")} == {"2020-02-29", "2021-01-01"}


def test_something_that_is_no_table() -> None:
    with pytest.raises(TableError, match="Cannot read a table from a builtins.int"):
        open_table(42)


class Counted:
    """An engine of tests: it opens everything as the local one does, and says so."""

    def __init__(self) -> None:
        self.opened: list[object] = []
        local = local_engine()
        self.from_columns, self.from_cells = local.from_columns, local.from_cells
        self.from_rows, self.from_blocks = local.from_rows, local.from_blocks

    def open(self, source: Any, **more: Any) -> Table:
        self.opened.append((source, more))
        return local_engine().from_columns({"a": ["x"]})


def test_the_engine_that_is_given_opens_whatever_is_not_open(tmp_path: Path) -> None:
    engine = Counted()
    request: dict[str, Any] = {"folder": tmp_path, "empty": True, "delimiter": ","}
    request |= {"sheet": "A", "header": 2}
    table = open_table(42, engine=engine, **request)
    assert engine.opened == [(42, request)]
    assert open_table(table, engine=engine) is table
    assert len(engine.opened) == 1
    with pytest.raises(ParameterError, match="'engine' parameter must be an engine"):
        open_table(42, engine="local")  # type: ignore[arg-type]


def test_an_engine_opens_the_objects_of_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry in the list of engines is all that a new one needs; it is loaded when it is met."""
    engine = Counted()
    planted = types.ModuleType("planted_engine")
    planted.ENGINE = engine  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "planted_engine", planted)
    monkeypatch.setitem(_ENGINES, "planted", "planted_engine")
    frame = type("Frame", (), {"__module__": "planted.sql.frames"})
    subclass = type("Own", (frame,), {"__module__": "elsewhere"})
    for source in (frame(), subclass()):
        open_table(source)
        assert engine.opened.pop()[0] is source  # type: ignore[index]
    open_table(pl.DataFrame({"a": [1]}))
    assert engine.opened == []


def test_a_column_may_be_called_engine() -> None:
    for table in (pd.DataFrame({"engine": ["V8"]}), pl.DataFrame({"engine": ["V8"]})):
        assert open_table(table).values("engine") == ["V8"]


@pytest.mark.parametrize("header", [0, -1, 1.5, "x"])
def test_a_header_is_a_row(tmp_path: Path, header: Any) -> None:
    with pytest.raises(ParameterError, match="'header' parameter must be an integer of at least 1"):
        open_table(tmp_path / "t.csv", header=header)


def test_sheets_and_headers_belong_to_some_tables(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "t.parquet")
    for source, request, message in (
        (tmp_path / "t.csv", {"sheet": "A"}, "'t.csv' has no sheets"),
        (tmp_path / "t.parquet", {"header": 2}, "'t.parquet' stores its column names"),
        (
            pl.DataFrame({"a": [1]}),
            {"header": 2},
            "The table stores its column names. Remove `header`",
        ),
        ("postgresql://u@localhost/d#t", {"sheet": "A"}, "The table has no sheets"),
    ):
        with pytest.raises(TableError, match=message):
            open_table(source, **request)
    assert open_table(pl.DataFrame({"a": [1]})).origin == TableOrigin()


def test_the_table_of_a_spec(tmp_path: Path) -> None:
    """The sheet and the header of a spec are those of its table, and of another path."""
    for name in ("t.csv", "other.csv"):
        (tmp_path / name).write_text(f"x,y\n1,2\na,b\n{name},3\n")
    text = "table: t.csv\nheader: 3\ncolumns: {a: {role: drop}, b: {role: drop}}\n"
    file = parse_spec(text, path=tmp_path / "spec.yaml")
    assert open_spec_table(file).values("a") == ["t.csv"]
    assert open_spec_table(file, tmp_path / "other.csv").values("a") == ["other.csv"]
    assert open_spec_table(file, str(tmp_path / "other.csv")).values("a") == ["other.csv"]
    assert open_spec_table(file, pl.DataFrame({"a": ["here"]})).values("a") == ["here"]
    table = open_table(tmp_path / "t.csv")
    assert open_spec_table(file, table) is table
    engine = Counted()
    open_spec_table(file, engine=engine)
    request = {"folder": tmp_path, "empty": False, "delimiter": None, "sheet": None, "header": 3}
    assert engine.opened == [("t.csv", request)]
    with pytest.raises(IncrowdError, match="no table is named"):
        open_spec_table(parse_spec("columns: {a: {role: drop}}"))
