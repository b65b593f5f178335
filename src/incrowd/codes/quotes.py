"""Whether the quotes of a delimited text are closed, found out before it is read.

A reader that meets a quote at the beginning of a field takes everything up to the next single
quote for one field, lines and all. A quote that was left open so swallows rows without a
word. Three things give it away: the text ends inside the field; text follows directly on the
quote that closes it (which was meant to open another field); or the lines inside the field
are rows, each with as many fields as the header. A quote inside an unquoted field (5" pipe)
is text like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

import numpy as np

from incrowd.arrays import Bools, Places, Units

LONGEST = 1 << 26
_CHUNK = 1 << 22
_QUOTE, _FEED, _RETURN, _SPACE, _TAB = map(ord, '"\n\r \t')
_TWICE = "A quote that belongs to the text is written twice, inside quotes."
# From how many columns one line break inside a field is enough for a suspicion.
_MANY_COLUMNS = 5


@dataclass(frozen=True)
class Fault:
    """Where a quote was opened, and what speaks against it; rows and lines count from 1."""

    row: int
    line: int
    problem: str

    def said(self, name: str) -> str:
        """What is wrong with the file of this name."""
        where = f"Row {self.row}" + (f" (line {self.line})" if self.line != self.row else "")
        return f"{where} of '{name}' {self.problem}"


def find_fault(units: Units, delimiter: str, columns: int | None) -> Fault | None:
    """The first quote that was left open in a text of so many columns, or None.

    Without a number of columns fields may hold what looks like rows: a text that we wrote
    has its quotes right.
    ``units`` are the bytes of a text in UTF-8 or in a code page, or the halves of UTF-16.
    They are looked at a few megabytes at a time.
    """
    for part in _parts(units, ord(delimiter)):
        found = part.fault(columns)
        if found is not None:
            place, problem = found
            row, line = 1, 1
            for earlier in _parts(units, ord(delimiter)):
                end = place - part.start if earlier.start == part.start else earlier.whole_rows
                row += earlier.rows(end, blank=columns == 1)
                line += earlier.lines(end)
                if earlier.start == part.start:
                    break
            return Fault(row, line, problem)
    return None


def _parts(units: Units, delimiter: int) -> Iterator[_Part]:
    """The text in parts that begin with a row."""
    newline = _FEED if _FEED in units[: 1 << 22] else _RETURN
    start, size = 0, _CHUNK
    while start < len(units):
        end = _line_end(units, start, min(start + size, len(units)), newline)
        part = _Part(units[start:end], start, delimiter, newline, whole=end == len(units))
        if part.whole_rows == 0 and not part.last:
            size *= 2
            continue
        yield part
        start, size = start + (part.whole_rows or len(part.units)), _CHUNK


def _line_end(units: Units, start: int, end: int, newline: int) -> int:
    """The end of the last line that ends in a part, or of the part if it is the last or none does.

    What decides about a quote is the units beside it, so that none may be cut off.
    """
    far = end
    while start < far and end < len(units):
        near = max(far - (1 << 16), start)
        ends = np.flatnonzero(units[near:far] == newline)
        if len(ends):
            return near + int(ends[-1]) + 1
        far = near
    return end


@dataclass(frozen=True, eq=False)
class _Runs:
    """Neighbouring quotes, taken together, and whether a field is open before and after them.

    Where a run begins a field and is odd, the field is open after it; of two quotes it is an
    empty field, of four a quoted quote. Inside a field an odd run closes it, and an even one
    is text. Elsewhere a run is text. So a run turns the state (open or not), leaves it, or
    settles it as not open; the state after a run is the number of turns since the last that
    settled it, modulo 2.
    """

    first: Places
    last: Places
    open_before: Bools
    open_after: Bools
    opens: Bools
    closes: Bools
    is_empty: Bools

    @classmethod
    def of(cls, quotes: Places, is_edge: Callable[[Places], Bools]) -> _Runs:
        apart = quotes[1:] - quotes[:-1] != 1
        first = quotes[np.append(True, apart)[: len(quotes)]]
        last = quotes[np.append(apart, True)[: len(quotes)]]
        odd, begins = ((last - first) & 1) == 0, is_edge(first - 1)
        turning, settling = odd & begins, odd & ~begins
        turns = np.cumsum(turning, dtype=np.int32)
        turns -= np.maximum.accumulate(turns * settling)
        after = (turns & 1).astype(bool)
        before = np.append(False, after[:-1])[: len(after)]
        opens, closes, empty = turning & ~before, odd & before, begins & ~odd & ~before
        return cls(first, last, before, after, opens, closes, empty)

    @cached_property
    def opener(self) -> Places:
        """For each run the last that opened a field."""
        return np.maximum.accumulate(np.where(self.opens, np.arange(len(self.opens)), 0))


class _Part:
    """Some rows, the last of them perhaps cut off; ``whole`` if the text ends with them."""

    def __init__(
        self, units: Units, start: int, delimiter: int, newline: int, *, whole: bool
    ) -> None:
        self.units, self.start = units, start
        self._delimiter, self._newline, self._whole = delimiter, newline, whole
        self._quotes = np.flatnonzero(units == _QUOTE)

    @cached_property
    def _is_simple(self) -> bool:
        """Whether every second quote opens a field, every other closes it, on the same line.

        Then there is no doubt and nothing more to look at; most parts of most files are so.
        """
        if len(self._quotes) % 2:
            return False
        opened, closed = self._quotes[::2], self._quotes[1::2]
        if not (self._is_edge(opened - 1).all() and self._is_edge(closed + 1).all()):
            return False
        return not len(opened) or not (np.searchsorted(self._quotes, self._newlines) & 1).any()

    @cached_property
    def _runs(self) -> _Runs:
        return _Runs.of(self._quotes, self._is_edge)

    @property
    def last(self) -> bool:
        """Whether no further units are to be waited for."""
        return self._whole or len(self.units) > LONGEST

    @cached_property
    def whole_rows(self) -> int:
        """How many units the whole rows take; 0 if there is none."""
        if self._whole or (self._is_simple and self.units[-1] == self._newline):
            return len(self.units)
        return int(self._row_ends[-1]) + 1 if len(self._row_ends) else 0

    def fault(self, columns: int | None) -> tuple[int, str] | None:
        """Where the first quote was opened that is not closed as it should be, and why."""
        if self._is_simple:
            return None
        found = [fault for fault in (self._followed(), self._row_like(columns)) if fault]
        if found:
            return min(found, key=itemgetter(0))  # of one place the surer
        runs = self._runs
        if not runs.open_after[-1] or not self.last:
            return None
        place = self.start + int(runs.first[runs.opener[-1]])
        never = "never closed" if self._whole else f"not closed within {LONGEST >> 20} MB"
        return place, f"opens a quote that is {never}. Close it. {_TWICE}"

    def rows(self, end: int, *, blank: bool) -> int:
        """How many rows end before a place, blank ones only if they count."""
        ends = self._row_ends[self._row_ends < end]
        if blank:
            return len(ends)
        starts = np.append(0, self._newlines + 1)[np.searchsorted(self._newlines, ends)]
        filled = ends - starts - (self.units[np.maximum(ends - 1, 0)] == _RETURN) * (ends > starts)
        return int((filled > 0).sum())

    def lines(self, end: int) -> int:
        """How many lines end before a place."""
        return int((self._newlines < end).sum())

    @cached_property
    def _newlines(self) -> Places:
        return np.flatnonzero(self.units == self._newline)

    @cached_property
    def _inside(self) -> Bools:
        """Which line breaks are inside quotes."""
        return self._is_inside(self._run_before)

    @cached_property
    def _row_ends(self) -> Places:
        return self._newlines[~self._inside]

    @cached_property
    def _run_before(self) -> Places:
        """The last run before each line break, -1 if there is none."""
        return np.searchsorted(self._runs.first, self._newlines) - 1

    def _is_inside(self, run: Places) -> Bools:
        """Whether a field is open after runs; -1 is the beginning."""
        return np.append(self._runs.open_after, False)[run]

    def _is_edge(self, places: Places) -> Bools:
        """Whether fields end or begin at places that rise; they do beyond the ends."""
        if not len(places):
            return np.zeros(0, dtype=bool)
        found = self.units.take(places, mode="clip")
        edge: Bools = (found == self._delimiter) | (found == _FEED) | (found == _RETURN)
        edge[0] |= places[0] < 0
        edge[-1] |= places[-1] >= len(self.units)
        return edge

    def _followed(self) -> tuple[int, str] | None:
        """The first quoted field that text follows directly. Blanks may follow."""
        runs = self._runs
        ends = self._is_edge(runs.last + 1)
        closers = np.flatnonzero((runs.closes | runs.is_empty) & ~ends)
        places = runs.last[closers] + 1
        while len(places):
            units = self.units.take(places, mode="clip")
            blank = ((units == _SPACE) | (units == _TAB)) & ~self._is_edge(places)
            if not blank.any():
                break
            places = places + blank
        closers = closers[~self._is_edge(places)]
        if not len(closers):
            return None
        run = int(closers[0])
        opened = int(runs.first[runs.opener[run] if runs.open_before[run] else run])
        later = int((self.units[opened : runs.last[run]] == self._newline).sum())
        after = f", {_lines(later)} later" if later else ""
        problem = (
            f"opens a quote, and text follows directly on the quote that closes it{after}. Was it "
            f"left open? {_TWICE}"
        )
        return self.start + opened, problem

    def _row_like(self, columns: int | None) -> tuple[int, str] | None:
        """The first quoted field whose lines are rows: what it hides would be rows without it."""
        if columns is None or columns < 2 or not self._inside.any():
            return None
        runs = self._runs
        opener = runs.opener[self._run_before[self._inside]]
        new = np.flatnonzero(np.append(True, opener[1:] != opener[:-1]))
        fields, number = opener[new], np.diff(np.append(new, len(opener)))
        suspect = (number >= 2) | (columns >= _MANY_COLUMNS)
        closes = np.flatnonzero(runs.closes)
        closing = np.searchsorted(closes, fields)
        suspect &= closing < len(closes)
        fields, number, closing = fields[suspect], number[suspect], closing[suspect]
        opened, closed = runs.first[fields], runs.last[closes[closing]]
        if not len(fields):
            return None
        is_mark = self.units == self._delimiter
        between = np.column_stack([opened, closed]).ravel()
        held = np.add.reduceat(is_mark, between, dtype=np.int32)[::2]
        for at in np.flatnonzero(held == (columns - 1) * number).tolist():
            if self._is_row_like(int(opened[at]), int(closed[at]), is_mark, columns):
                problem = (
                    f"opens a quote that is closed {_lines(int(number[at]))} later, and what lies "
                    f"between looks like rows of {columns} fields. Was it left open? If the field "
                    "is meant to hold these lines, take out its line breaks, or give the table as "
                    "Parquet."
                )
                return self.start + int(opened[at]), problem
        return None

    def _is_row_like(self, opened: int, closed: int, is_mark: Bools, columns: int) -> bool:
        """Whether every line that the field touches has as many fields as the header."""
        inner = self._newlines[slice(*np.searchsorted(self._newlines, [opened, closed]))]
        before = np.searchsorted(self._row_ends, opened)
        row = int(self._row_ends[before - 1]) + 1 if before else 0
        earlier = row + np.flatnonzero(is_mark[row:opened])
        quoted = self._is_inside(np.searchsorted(self._runs.first, earlier) - 1)
        place = int((~quoted).sum())
        counts = np.add.reduceat(is_mark[opened:closed], np.append(0, inner - opened), dtype=int)
        expected = [columns - 1 - place, *[columns - 1] * (len(inner) - 1), place]
        return bool(counts.tolist() == expected)


def _lines(number: int) -> str:
    return "a line" if number == 1 else f"{number:,} lines"
