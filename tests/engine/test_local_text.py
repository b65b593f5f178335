"""Text files whose header is not the first line, and those in gzip."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pytest

from incrowd.engine.local import text
from incrowd.engine.source import open_table
from incrowd.engine.table import TableError, TableOrigin

TABLE = "id;age\na1;39\na2;40\n"
NOTE = "Row 1 looks like a title; row {} was read as the header. --header names another."


def written(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("above", "header"),
    [("Pätienten\n", 2), ("Pätienten von 2020\n\n", 3), ('"Pätienten,\nalle"\n', 3), ("Pä;\n", 2)],
)
def test_a_title_is_skipped(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    above: str,
    header: int,
    ends: str,
    encoding: str,
    large: bool,
) -> None:
    if large:
        monkeypatch.setattr(text, "_IN_MEMORY_BYTES", -1)
    content = (above + TABLE).replace("\n", ends)
    path = written(tmp_path, content.encode(encoding))
    for option in (None, header):
        table = open_table(path, header=option)
        assert table.columns == ("id", "age")
        assert sorted(table.values("id"), key=str) == ["a1", "a2"]
        notes = (NOTE.format(header),) if option is None else ()
        assert table.origin == TableOrigin(header=header, notes=notes)


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ("a;b\nx,5;2\ny,6;3\n", ("a", "b")),  # commas split the rows, but not the header
        ("\n\na,b\n1,2\n", ("a", "b")),
        (",b\nr1,x\nr2,y\n", ("unnamed", "b")),
        ("a\nx\ny\n", ("a",)),
    ],
)
def test_a_header_is_no_title(tmp_path: Path, content: str, columns: tuple[str, ...]) -> None:
    table = open_table(written(tmp_path, content))
    assert (table.columns, table.origin) == (columns, TableOrigin())


def test_prose_is_not_taken_for_names(tmp_path: Path) -> None:
    path = written(tmp_path, "note\nhello, you\nhi, there\n")
    with pytest.raises(TableError, match="Row 2 of 't.csv' has 2 fields, but the header has 1"):
        open_table(path)


def test_a_header_can_be_named(tmp_path: Path) -> None:
    path = written(tmp_path, "x,y\n1,2\nid,age\na1,39\n")
    assert open_table(path, header=3).columns == ("id", "age")
    assert open_table(path, header=3).rows() == 1
    titled = written(tmp_path, "Title,,\na,b,c\nx,y,z\n")
    assert open_table(titled).columns == ("a", "b", "c")
    with pytest.raises(TableError, match="column 2 has no name"):
        open_table(titled, header=1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("T\n\na,b\n1,2\n3\n", "Row 5 of 't.csv' has 1 fields, but the header has 2."),
        ('T\n\na,b\n1,2\n"x,4\n', "Row 5 of 't.csv' opens a quote that is never closed."),
        ('T\n\na,b\n1,2\n"x"y,4\n', "Row 5 of 't.csv' opens a quote, and text follows"),
        ('T\n\na,b\n"1\n2",2\n"x"y,4\n', "Row 5 (line 6) of 't.csv' opens a quote"),
        ("T\n\na,a\n1,2\n", "The file 't.csv': column 'a' occurs twice."),
        ("T\n\n", "File 't.csv': it has 2 lines, so row 3 cannot be the header. Correct `header`."),
        ("T", "File 't.csv': it has 1 lines, so row 3 cannot be the header. Correct `header`."),
        ("T\n\na,b\n", "File 't.csv': it has a header but no rows. Name a file with rows."),
    ],
)
def test_what_is_wrong_below_a_title_has_its_row(
    tmp_path: Path, content: str, message: str
) -> None:
    with pytest.raises(TableError) as error:
        open_table(written(tmp_path, content), header=3)
    assert str(error.value).startswith(message)


def test_a_quote_in_a_title_opens_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, '"Patients\na,b\n1,2\n')
    assert open_table(path, header=2).values("b") == ["2"]


@pytest.mark.parametrize("name", ["t.csv.gz", "t.TSV.GZ", "t.txt.gz"])
def test_text_in_gzip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    home = tmp_path / "temporary"
    home.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(home))
    table = open_table(written(tmp_path, gzip.compress(f"Title\n{TABLE}".encode()), name))
    assert sorted(table.values("id"), key=str) == ["a1", "a2"]
    assert table.origin.header == 2
    assert list(home.iterdir()) == []  # what was unpacked is gone


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello", "Cannot read 't.csv.gz' as gzip: it is damaged, cut short, or no gzip at all."),
        (
            gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9],
            "Cannot read 't.csv.gz' as gzip: it is damaged",
        ),
        (
            gzip.compress(b"a,b\n" * 99, mtime=0)[:12] + b"x" * 30,
            "Cannot read 't.csv.gz' as gzip: it is",
        ),
        (gzip.compress(b"", mtime=0), "File 't.csv.gz': it is empty. Name a file with a table."),
        (
            gzip.compress(b"a,b\n1\n", mtime=0),
            "Row 2 of 't.csv.gz' has 1 fields, but the header has 2.",
        ),
        (
            gzip.compress(b"a,b\n", mtime=0),
            "File 't.csv.gz': it has a header but no rows. Name a file with rows.",
        ),
    ],
)
def test_what_is_wrong_in_gzip_names_the_file(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(TableError) as error:
        open_table(written(tmp_path, content, "t.csv.gz"))
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_other_things_in_gzip_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="Its name must end in"):
        open_table(written(tmp_path, gzip.compress(b"x", mtime=0), "t.parquet.gz"))
