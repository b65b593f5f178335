"""Quotes that were left open: found for sure, and nothing else taken for one."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.unjudged import publish_unjudged

from incrowd.codes import quotes as quoting
from incrowd.codes.hierarchy import HierarchyError
from incrowd.codes.quotes import find_fault
from incrowd.engine.local.text import has_plain_quotes
from incrowd.engine.source import open_table
from incrowd.engine.table import TableError
from incrowd.release.verify import verify
from incrowd.spec.arx import read_rows
from incrowd.spec.file import parse_spec
from incrowd.spec.problem import SpecError

NEVER, AFTER, ROWS = "never closed", "text follows directly", "looks like rows of"


def slowly(text: str, columns: int) -> tuple[int, int, str] | None:
    """Row of the first quote left open, and the line where it begins, character by character."""
    row = line = begins = 1
    place, filled, state, opened, marks = 0, False, "start", (0, 0), [0]
    text = text.replace("\r\n", "\n")
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if state == "quoted":
            if char == '"' and text[at : at + 1] == '"':
                at += 1
            elif char == '"':
                state = "closed"
                breaks = len(marks) - 1
                inner = [columns - 1] * (breaks - 1)
                suspect = columns > 1 and (breaks > 1 or (breaks == 1 and columns >= 5))
                if suspect and marks == [columns - 1 - place, *inner, place]:
                    return (*opened, ROWS)
            elif char == "\n":
                line += 1
                marks.append(0)
            elif char == ",":
                marks[-1] += 1
        elif char == "\n":
            row += filled or columns == 1
            line += 1
            place, filled, state, begins = 0, False, "start", line
        elif char == ",":
            place, filled, state = place + 1, True, "start"
        elif state == "closed" and char not in " \t":
            return (*opened, AFTER)
        elif state == "start" and char == '"':
            state, opened, marks, filled = "quoted", (row, begins), [0], True
        elif state != "closed":
            state, filled = "text", True
    return (*opened, NEVER) if state == "quoted" else None


PIECES = ['"', '"', '"', ",", ",", "\n", "\n", "x", " ", '""', "x,y\n", '"x"', "\t"]


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.integers(1, 6), st.booleans()
)
def test_quotes_are_followed_as_character_by_character(
    text: str, columns: int, windows: bool
) -> None:
    text = text.replace("\n", "\r\n") if windows else text
    fault = find_fault(io.StringIO(text, newline=""), ",", columns)
    expected = slowly(text, columns)
    assert (fault and (fault.row, fault.line)) == (expected and expected[:2])
    assert expected is None or (fault and expected[2] in fault.problem)


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from([*PIECES, "\r", "é"]), max_size=30).map("".join),
    st.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16"]),
)
def test_a_glance_lets_no_open_quote_pass(text: str, encoding: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_bytes(f"a,b\n{text}".encode(encoding))
        plain = has_plain_quotes(path, ",", encoding)
    if plain:
        assert find_fault(io.StringIO(f"a,b\n{text}", newline=""), ",", 2) is None
    if text.count('"') == 0 and encoding != "utf-16":
        assert plain


SWALLOWING: dict[str, tuple[str, int, str]] = {
    "to the end": ('a,b,c\n1,2,3\n4,"x,5\n' + "6,y,7\n" * 50, 3, NEVER),
    "up to the next quoted field": ('a,b\n1,"x\n2,y\n3,"z"\n4,w\n', 2, AFTER),
    "in one row": ('a,b\n1,2\n3,"x"y\n', 3, AFTER),
    "a doubled quote that was meant to close": ('a,b\n"x"",1\n"y",2\n', 2, AFTER),
    "up to a stray quote in the same column": ('a,b\n1,2\n3,"x\n4,y\n5,z"\n6,w\n', 3, ROWS),
    "one row of five": ('a,b,c,d,e\n1,"x,2,3,4\n5,y",6,7,8\n', 2, ROWS),
    "in the header": ('"a,b\n1,2\n3,4\n', 1, NEVER),
    "after blank lines and long fields": ('\na,b\n\n1,"x\n\ny"\n2,"z\n', 3, NEVER),
    "of one column": ('a\nx\n\n"y\nz\n', 4, NEVER),
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("name", SWALLOWING)
def test_a_quote_left_open_is_refused_with_its_row(
    tmp_path: Path, name: str, encoding: str
) -> None:
    text, row, reason = SWALLOWING[name]
    if encoding == "cp1252":
        text = text.replace("x", "é")
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    with pytest.raises(TableError) as error:
        open_table(tmp_path / "t.csv")
    assert f"Row {row} " in str(error.value)
    assert "of 't.csv' opens a quote" in str(error.value)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


LONG = "\n".join(f"line {number}, of a long note" for number in range(100_000))
HARMLESS: dict[str, tuple[str, list[str | None]]] = {
    "inches": ('a,b\n5" pipe,1\n6",2\n', ['5" pipe', '6"']),
    "a blank after the quote": ('a,b\n"x" ,1\n', ["x "]),
    "a blank before the quote": ('a,b\n "x",1\n', [' "x"']),
    "lines": ('a,b\n"x\ny",1\n"z\n\n",2\n', ["x\ny", "z\n\n"]),
    "an address": ('b,a\n1,"5 Main St\nSpringfield, IL"\n', ["5 Main St\nSpringfield, IL"]),
    "quoted rows": ('a,b\n"""1,2""\nx",1\n', ['"1,2"\nx']),
    "one column": ('a\n"x\ny\nz"\n', ["x\ny\nz"]),
    "a long note": (f'a,b\n"{LONG}",1\n', [LONG]),
    "empty and quoted quotes": ('a,b\n"",1\n"""",2\n', [None, '"']),
    "without a last line break": ('a,b\n"x",1\n"y","2"', ["x", "y"]),
    "old Mac": ('a,b\r"x\ry",1\r', ["x\ry"]),
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", HARMLESS)
def test_what_only_looks_odd_is_read(tmp_path: Path, name: str, encoding: str) -> None:
    text, expected = HARMLESS[name]
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    assert sorted(open_table(tmp_path / "t.csv").values("a"), key=str) == sorted(expected, key=str)


def test_a_field_without_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quoting, "LONGEST", 1 << 20)
    limit = csv.field_size_limit()
    lines = iter(["a,b\n", '1,"x\n', *["2,y\n"] * (1 << 20)])
    fault = find_fault(lines, ",", 2)
    assert fault is not None
    assert fault.row == 2
    assert "not closed within 1 MB" in fault.problem
    assert next(lines) == "2,y\n"
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    ("text", "row", "reason"),
    [
        ('a;x;*\n"b;x;*\nc;y;*\n', 2, NEVER),
        ('a;x;*\n"b;x;*\nc;y;*\n"d";y;*\n', 2, AFTER),
        ('a;x;*\n"b;x;*\nc;y;*\nd";y;*\n', 2, ROWS),
        ('"a;x;*\nb;x;*\n', 1, NEVER),
    ],
)
def test_a_hierarchy_with_an_open_quote_is_refused(
    tmp_path: Path, text: str, row: int, reason: str
) -> None:
    (tmp_path / "h.csv").write_text(text)
    with pytest.raises(HierarchyError) as error:
        read_rows(tmp_path / "h.csv", ";")
    assert str(error.value).startswith(f"Row {row} of 'h.csv' opens a quote")
    assert reason in str(error.value)


def test_a_hierarchy_may_hold_quotes_and_lines(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text('5" pipe;"x\ny";*\n"a;b";"say ""z""";*\n')
    assert read_rows(tmp_path / "h.csv") == [('5" pipe', "x\ny", "*"), ("a;b", 'say "z"', "*")]


def test_a_spec_with_an_open_quote_names_its_line() -> None:
    with pytest.raises(SpecError) as error:
        parse_spec('columns:\n  a: {role: "drop}\n  b: {role: drop}\n  c: {role: drop}\n')
    assert "line 2, not valid YAML: a quote is opened here and never closed" in str(error.value)


def test_a_release_may_show_what_looks_like_rows(tmp_path: Path) -> None:
    odd = "a,b;*\nc,d;*\ne"
    columns = {"x": {"role": "quasi", "hierarchy": {"flat": {"values": [odd, "z"]}}}}
    columns["y"] = {"role": "quasi", "hierarchy": {"flat": {"values": ["1"]}}}
    release = {"method": "k-anonymity", "k": 2, "format": "csv"}
    table = pl.DataFrame({"x": [odd] * 5 + ["z"] * 5, "y": ["1"] * 10})
    publish_unjudged(table, {"columns": columns, "release": release}, output=tmp_path / "out")
    assert odd in (tmp_path / "out" / "data.csv").read_text()
    assert verify(tmp_path / "out") == []
