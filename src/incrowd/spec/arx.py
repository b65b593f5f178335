"""Hierarchies in files of ARX form: one row per value, its labels level by level."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from incrowd.codes.hierarchy import Hierarchy, HierarchyError
from incrowd.codes.quotes import find_fault
from incrowd.errors import ParameterError

ArxRows = list[tuple[str, ...]]


def read_rows(path: Path, delimiter: str | None = None, *, ours: bool = False) -> ArxRows:
    """Read the rows of a file in ARX form; find out the delimiter if it is not given.

    In a file of ``ours`` a value may look like rows of its own.
    """
    return parse_rows(read_text(path, ours=ours), path.name, delimiter, ours=ours)


def read_text(path: Path, *, ours: bool = False) -> str:
    """Read the text of a file in ARX form."""
    try:
        # Of ours every character counts, a mark at the beginning and line ends among them.
        return path.read_bytes().decode() if ours else path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise HierarchyError(
            f"Hierarchy '{path.name}': not UTF-8 text. Save it as UTF-8."
        ) from error
    except OSError as error:
        raise HierarchyError(
            f"Hierarchy '{path}': cannot be read ({error.strerror}). Correct the path."
        ) from error


def parse_rows(
    text: str, name: str, delimiter: str | None = None, *, ours: bool = False
) -> ArxRows:
    """Parse the rows of a text in ARX form; ``name`` is that of its file."""
    if not text.strip():
        raise HierarchyError(f"Hierarchy '{name}': it is empty. List its values.")
    try:
        delimiter = delimiter or _detect_delimiter(text)
        rows = csv.reader(io.StringIO(text), delimiter=delimiter)
        levels = None if ours else len(next((row for row in rows if row), []))
        if '"' in text and (fault := find_fault(io.StringIO(text, newline=""), delimiter, levels)):
            raise HierarchyError(fault.format_message(name))
        return [tuple(row) for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
    except csv.Error as error:
        raise HierarchyError(
            f"Hierarchy '{name}': cannot be read ({error}). Correct the file."
        ) from error


def _detect_delimiter(text: str) -> str:
    """Return which of ; , tab | splits all lines into equally many parts, the more the better."""
    best, most = ";", 1
    for candidate in ";,\t|":
        widths = {len(row) for row in csv.reader(io.StringIO(text), delimiter=candidate) if row}
        if len(widths) == 1 and (width := widths.pop()) > most:
            best, most = candidate, width
    if most == 1:  # ragged, or a single level; the delimiter that occurs most often is meant
        best = max(";,\t|", key=text.count)
    return best


def format_rows(hierarchy: Hierarchy, delimiter: str = ";") -> str:
    """Return a hierarchy as the text of a file in ARX form."""
    if len(delimiter) != 1 or delimiter in '\r\n"':
        raise ParameterError("delimiter", "be a single character", delimiter)
    buffer = io.StringIO()
    usual = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
    careful = csv.writer(buffer, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in hierarchy.list_rows():
        # A line end of old is not quoted by itself, and would end the row.
        (careful if "\r" in "".join(row) else usual).writerow(row)
    return buffer.getvalue()
