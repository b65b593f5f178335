"""Text files on Spark: nothing is read as something else, and no row is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from incrowd.engine.source import spark_engine
from incrowd.engine.table import TableError

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark_session")]


def _file(folder: Path, content: bytes, name: str = "people.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "content",
    ["a,b\ncaf\xe9,2\n".encode("cp1252"), "a,b\n1,2\n".encode("utf-16"), b"a,b\n1\0,2\n"],
)
def test_text_that_is_not_in_utf_8_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(TableError, match="not UTF-8 text"):
        spark_engine().open(_file(tmp_path, content))


def test_text_may_hold_the_mark_of_what_another_program_could_not_read(tmp_path: Path) -> None:
    table = spark_engine().open(_file(tmp_path, "a,b\n1\ufffd,2\n".encode()))
    assert list(table.values("a")) == ["1\ufffd"]


@pytest.mark.parametrize("line", [b"", b"   "])
def test_blank_lines_of_one_column_are_rows_and_refused(tmp_path: Path, line: bytes) -> None:
    with pytest.raises(TableError, match="skips the blank lines of its one column"):
        spark_engine().open(_file(tmp_path, b"a\n1\n" + line + b"\n2\n"))


def test_files_of_a_folder_must_have_one_header(tmp_path: Path) -> None:
    folder = tmp_path / "people.csv"
    folder.mkdir()
    _file(folder, b"a,b\n1,2\n", "first.csv")
    _file(folder, b"b,a\n2,1\n", "second.csv")
    with pytest.raises(TableError, match="different headers"):
        spark_engine().open(folder).rows()


@pytest.mark.parametrize(
    ("header", "fault"), [("a,a", "column 'a' occurs twice"), ("a,", "column 2 has no name")]
)
def test_headers_are_refused_where_values_go_over_lines(
    tmp_path: Path, header: str, fault: str
) -> None:
    with pytest.raises(TableError, match=fault):
        spark_engine().open(_file(tmp_path, f'{header}\n"1\n1",2\n'.encode()))


@pytest.mark.parametrize("header", ["a,A", ",b", "a.b,`c`", " a,b "])
def test_any_other_header_is_read_as_it_stands(tmp_path: Path, header: str) -> None:
    table = spark_engine().open(_file(tmp_path, f"{header}\n1,2\n".encode()))
    names = [name or "unnamed" for name in header.split(",")]
    assert list(table.columns) == names
    assert [list(table.values(name)) for name in names] == [["1"], ["2"]]
