"""Quotes of a delimited text that were left open, found before the text is read.

A quote at the beginning of a field takes everything up to the next single quote for one field,
line breaks included, so that a quote left open hides rows without an error. Three things give it
away: the text ends inside the field; text follows directly on the quote that closes it (which was
meant to open another field); or the lines inside the field are rows, each with as many fields as
the header. A quote inside an unquoted field (5" pipe) is text like any other.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

LONGEST = 1 << 26  # characters of a field
_TWICE = "A quote that belongs to the text is written twice, inside quotes."
_MANY_COLUMNS = 5  # of so many columns one line break inside a field is enough for a suspicion
_LINE_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class QuoteFault:
    """The row with a quote that is wrong, and the line where it begins; both count from 1."""

    row: int
    line: int
    problem: str

    def format_message(self, name: str) -> str:
        """Return what is wrong with the file of this name."""
        where = f"Row {self.row}" + (f" (line {self.line})" if self.line != self.row else "")
        return f"{where} of '{name}' {self.problem}"


def find_fault(lines: Iterable[str], delimiter: str, columns: int | None) -> QuoteFault | None:
    """Return the first quote that was left open in lines of so many columns, or None.

    Lines keep their line breaks. Without a number of columns, fields may hold what looks like
    rows: a text that we wrote has its quotes right.
    """
    blanks = " \t".replace(delimiter, "")
    closing_quote = re.compile(f'"[{blanks}]+(?=[{re.escape(delimiter)}\r\n]|$)')
    is_at_end, length = False, 0

    def read() -> Iterator[str]:
        nonlocal is_at_end, length
        for text in lines:
            length += len(text)
            yield closing_quote.sub('"', text)  # blanks may follow on the quote that closes a field
        is_at_end = True

    rows = csv.reader(read(), delimiter=delimiter, strict=True)
    number, line = 0, 1
    with _allow_long_fields():
        try:
            for row in rows:
                number += bool(row) or columns == 1
                if rows.line_num > line and (
                    lines_inside := _count_hidden_rows(row, delimiter, columns)
                ):
                    return QuoteFault(number, line, _describe_hidden_rows(lines_inside, columns))
                line, length = rows.line_num + 1, 0
        except csv.Error:
            never = "never closed" if is_at_end else f"not closed within {LONGEST >> 20} MB"
            if is_at_end or length > LONGEST:
                problem = f"opens a quote that is {never}. Close it. {_TWICE}"
            else:
                problem = _describe_trailing_text(rows.line_num - line)
            return QuoteFault(number + 1, line, problem)
    return None


@contextmanager
def _allow_long_fields() -> Iterator[None]:
    """Allow long fields, too; the limit holds for the whole process, and is set back."""
    before = csv.field_size_limit(LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _count_hidden_rows(row: list[str], delimiter: str, columns: int | None) -> int:
    """Return how many line breaks a field has whose lines would be rows without quotes, or 0."""
    if columns is None or columns < 2:
        return 0
    for place, field in enumerate(row):
        marks = [line.count(delimiter) for line in _LINE_BREAK.split(field)]
        breaks = len(marks) - 1
        if breaks > 1 or (breaks == 1 and columns >= _MANY_COLUMNS):
            between = [columns - 1] * (breaks - 1)
            if marks == [columns - 1 - place, *between, place]:
                return breaks
    return 0


def _describe_hidden_rows(breaks: int, columns: int | None) -> str:
    return (
        f"opens a quote that is closed {_format_lines(breaks)} later, and what lies between looks "
        "like "
        f"rows of {columns} fields. Was it left open? If the field is meant to hold these lines, "
        "take out its line breaks, or give the table as Parquet."
    )


def _describe_trailing_text(later: int) -> str:
    after = f", {_format_lines(later)} later" if later else ""
    return (
        f"opens a quote, and text follows directly on the quote that closes it{after}. Was it left "
        f"open? {_TWICE}"
    )


def _format_lines(number: int) -> str:
    return "a line" if number == 1 else f"{number:,} lines"
