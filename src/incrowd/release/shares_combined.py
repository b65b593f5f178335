"""One number for each value of a column that several files of a release show.

Each file has noisy counts and suppressed groups of its own, so the files show several shares of one
and the same thing. For every value of the coarsest level at which a file shows the column, the
certificate states the largest number of rows that any file has. It follows from the files and costs
nothing.

Claim. The expected number of rows that a file shows of a value is at most its number in the table.
So what is stated is at most that, apart from noise, and the nearest that the files come to it.

Proof. Let a group have n >= 1 rows and noise X, whose law is symmetric, falls away from 0, and ends
at r. It is published if X >= t = r + k - n, and shows n + X rows. As E[X] = 0, what it shows has an
expectation of n - (n P[X < t] - E[X; X >= t]); the bracket is at least 0. For t > r nothing is
published and it is n. For t <= 0 it is n P[X < t] - E[-X; X < t], where -X <= r <= n. Else P[X >=
t] is at most (r - t + 1) / (2 r + 1), as the law falls; so E[X; X >= t] <= r (r - t + 1) / (2 r +
1), while n >= r - t + 1 and P[X < t] >= (r + t) / (2 r + 1). Sums over groups keep it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Annotated
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field

from incrowd.codes.hierarchy import Hierarchy
from incrowd.release.shares_part import FOLDER, RowsByValue, write_value


class CombinedRows(BaseModel):
    """A column that several files show: its values at their coarsest level, and rows by file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    column: str
    level: Annotated[int, Field(ge=0)]
    values: list[str | None]
    files: list[RowsByValue]

    @property
    def rows(self) -> list[int]:
        """The largest number of rows that any file has of each value."""
        return [max(each) for each in zip(*(part.rows for part in self.files), strict=True)]

    @property
    def file(self) -> str:
        """Where the numbers are listed."""
        return f"{FOLDER}/{quote(self.column, safe=' ')}.csv"


def find_combined_level(hierarchy: Hierarchy, levels: Sequence[int]) -> int | None:
    """Return the coarsest level that shows something; None if fewer than two files do."""
    shown_levels = [
        level for level in levels if level < hierarchy.height - 1 or not hierarchy.is_rooted
    ]
    return max(shown_levels) if len(shown_levels) > 1 else None


def write_combined(table: CombinedRows, *, is_escaped: bool = False) -> bytes:
    """Return the file of a column: the number of each value, and the rows of every file.

    ``is_escaped`` puts an apostrophe before values that a spreadsheet would run, as the rows have.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["value", "rows", *(part.file for part in table.files)])
    for at, (value, rows) in enumerate(zip(table.values, table.rows, strict=True)):
        listed = [part.rows[at] for part in table.files]
        writer.writerow([write_value(value, is_escaped=is_escaped), rows, *listed])
    return text.getvalue().encode()
