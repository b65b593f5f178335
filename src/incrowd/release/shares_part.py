"""Shares beside the rows: the values of a column, counted with noise and listed in full.

A release of groups loses rare groups, so that shares among its rows are too small for rare values.
Beside the rows, the counts of some columns are measured by themselves (``rare: keep``, and the
target of a search). The certificate holds the measured whole numbers; ``shares/NAME.csv`` follows
from it, and so does what it says of the rows.

**Estimate.** The noise of each count is independent and has mean 0; the estimated number of rows
N is the sum of all counts. Estimated counts are the nearest ones to the measured ones, by squares,
that are at least 0 and sum to N; a share is such a count over N. The standard deviation of a count
being s, that of a share p among v values is

    s / N sqrt((1 - p)^2 + p^2 (v - 1)),

as the noise of all others is in N. ``error_95`` is ln(20) / sqrt(2) = 2.12 times as much: two-sided
geometric noise of one count lies within ln(20) / sqrt(2) of its standard deviations with
probability 0.95 or more, and sums of several counts are nearer to a normal law, of which 1.96 would
do.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from incrowd.arrays import Codes, Counts, Floats
from incrowd.codes.hierarchy import Hierarchy
from incrowd.release.formulas import escape_formula

FOLDER = "shares"
HEADERS = ("value", "count", "share", "error_95")
_WITHIN = math.log(20) / math.sqrt(2)


class RowsByValue(BaseModel):
    """How many published rows of one file show each value; the file shows them apart."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    file: str
    rows: list[Annotated[int, Field(ge=0)]]


class ShareTable(BaseModel):
    """The counts of one column: its values at a level, and what was measured of them.

    ``shown`` has the files of the release that tell these values apart.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    column: str
    level: Annotated[int, Field(ge=0)]
    epsilon: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    values: list[str | None]
    counts: list[int]
    shown: list[RowsByValue] = []

    @property
    def file(self) -> str:
        """Where its shares are listed."""
        return f"{FOLDER}/{quote(self.column, safe=' ')}.csv"


@dataclass(frozen=True)
class Shares:
    """Estimates of a column: shares of its values with their errors, and the number of rows."""

    total: int
    shares: Floats
    errors: Floats


def compute_sd(epsilon: float, rows: int) -> float:
    """Return the standard deviation of a measured count."""
    return math.sqrt(2 * math.exp(-epsilon / rows)) / -math.expm1(-epsilon / rows)


def estimate_shares(table: ShareTable, rows: int) -> Shares:
    """Return the estimates of a column; ``rows`` is the largest number of rows of one person."""
    counts = np.array(table.counts, dtype=np.float64)
    total = max(int(sum(table.counts)), 1)
    shares = _project(counts, total) / total
    spread = np.sqrt((1 - shares) ** 2 + shares**2 * (len(counts) - 1))
    errors = _WITHIN * compute_sd(table.epsilon, rows) / total * spread
    return Shares(total, shares, np.minimum(errors, 1.0))


def _project(counts: Floats, total: int) -> Floats:
    """Return the nearest numbers, by squares, that are at least 0 and sum to ``total``."""
    descending = np.sort(counts)[::-1]
    surplus = (np.cumsum(descending) - total) / np.arange(1, len(counts) + 1)
    last = int(np.flatnonzero(descending > surplus)[-1])
    return np.asarray(np.maximum(counts - surplus[last], 0.0))


@dataclass(frozen=True)
class LostShare:
    """A value whose share among the rows of a file differs from its estimate by more than noise."""

    column: str
    value: str | None
    file: str
    estimate: float
    error: float
    shown: float


def find_lost_shares(tables: Sequence[ShareTable], rows: int) -> list[LostShare]:
    """Find the values whose share among the rows of a file is not what was measured.

    All of it is published, so anyone may know it.
    """
    lost = []
    for table in tables:
        estimate = estimate_shares(table, rows)
        for part in table.shown:
            total = max(sum(part.rows), 1)
            for at, value in enumerate(table.values):
                share, error = float(estimate.shares[at]), float(estimate.errors[at])
                if abs(part.rows[at] / total - share) > error:
                    lost.append(
                        LostShare(
                            table.column, value, part.file, share, error, part.rows[at] / total
                        )
                    )
    return lost


def list_shown_rows(
    hierarchy: Hierarchy, levels: tuple[int, int], frequencies: tuple[Codes, Counts]
) -> list[int] | None:
    """Return how many rows show each value of a column, in order; None where rows are coarser.

    ``levels`` are that of the rows and that of the values; ``frequencies`` are codes of the rows'
    level, and the rows of each.
    """
    row_level, level = levels
    if row_level > level:
        return None
    above = np.zeros(len(hierarchy.labels[row_level]), dtype=np.int64)
    above[hierarchy.groups[row_level]] = hierarchy.groups[level]
    first_codes, (codes, counts) = hierarchy.map_equal_labels(level), frequencies
    rows = np.zeros(len(hierarchy.labels[level]), dtype=np.int64)
    np.add.at(rows, first_codes[above[codes]], counts)
    return [int(rows[place]) for place in np.unique(first_codes).tolist()]


def list_values(hierarchy: Hierarchy, level: int) -> list[str | None]:
    """Return the labels of a level, each once: those of its groups, null, and of other values."""
    labels = hierarchy.labels[level]
    return [labels[place] for place in np.unique(hierarchy.map_equal_labels(level)).tolist()]


def write_value(value: str | None, *, is_escaped: bool) -> str:
    """Return the cell of a value; missing ones are empty."""
    if value is None:
        return ""
    return escape_formula(value) if is_escaped else value


def write_shares(table: ShareTable, rows: int, *, is_escaped: bool = False) -> bytes:
    """Return the file of a column: each value with its measured count, its share and its error.

    ``is_escaped`` puts an apostrophe before values that a spreadsheet would run, as the rows have.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADERS)
    estimate = estimate_shares(table, rows)
    for value, count, share, error in zip(
        table.values, table.counts, estimate.shares.tolist(), estimate.errors.tolist(), strict=True
    ):
        cell = write_value(value, is_escaped=is_escaped)
        writer.writerow([cell, count, f"{share:.6f}", f"{error:.6f}"])
    return text.getvalue().encode()
