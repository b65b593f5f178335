"""Read tables of counts from the folder of a release, block by block, as arrays.

Every line of a table is declared, so labels, levels and codes follow from the scheme: they are
compared with what must stand there. Of the figures no object is made for each line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from incrowd.arrays import Bools, Counts, Floats
from incrowd.codes.hierarchy import build_from_rows
from incrowd.engine.released_lines import LineBlock, iter_line_blocks, read_whole_numbers
from incrowd.errors import IncrowdError
from incrowd.release.formulas import escape_formula
from incrowd.release.scheme_words import describe_listed, refuse_other_words
from incrowd.release.tables_column import ColumnLines, TabulatedColumn, locate_lines
from incrowd.release.tables_part import (
    DIGITS,
    FIGURES,
    MEASURED_FILE,
    NUMBER,
    RESIDUAL,
    SUM_FIGURES,
    WITHIN,
    CertifiedSum,
    TabulatedTable,
    TabulationPart,
    compute_whole_means,
    list_headers,
)
from incrowd.spec.arx import format_rows, read_rows

if TYPE_CHECKING:
    from incrowd.release.certificate import Certificate, ReleasedFile

_MOST_LINES = 1 << 27
_OTHER_NUMBERS = "does not hold the numbers of the listed residuals"
_KEPT_OF_SUMS = ("sum_estimate", "sum_sd", "mean_low", "mean_high")
ROUNDING = 0.5 * 10**-DIGITS


@dataclass(frozen=True, eq=False)
class PublishedSums:
    """The sums of a released table, in whole steps, with their estimates and means.

    ``has_intervals`` tells whether all intervals, and means, are those of the figures beside them.
    """

    column: CertifiedSum
    steps: Counts
    estimate: Floats
    sd: Floats
    mean_low: Floats
    mean_high: Floats
    has_intervals: bool

    @property
    def rounding(self) -> float:
        """Half a unit of the last digit of estimates."""
        return find_rounding(self.column)


@dataclass(frozen=True, eq=False)
class PublishedCells:
    """The figures of a released table, along its lines; ``is_hidden`` marks lines without.

    ``has_intervals`` tells whether all intervals are those of the figures beside them.
    """

    columns: tuple[TabulatedColumn, ...]
    levels: tuple[int, ...]
    lines: tuple[ColumnLines, ...]
    count: Counts
    estimate: Floats
    sd: Floats
    is_hidden: Bools
    has_intervals: bool
    sums: PublishedSums | None = None

    @property
    def low(self) -> Floats:
        """The lower ends of the intervals of counts."""
        return self.estimate - WITHIN * self.sd

    @property
    def high(self) -> Floats:
        """Their upper ends."""
        return self.estimate + WITHIN * self.sd


def find_rounding(column: CertifiedSum) -> float:
    """Return half a unit of the last digit of the estimates of a sum."""
    return float(ROUNDING * 10.0**-column.digits)


def get_part(certificate: Certificate) -> TabulationPart:
    """Return the part of a certificate on its tables."""
    assert certificate.tabulation is not None
    return certificate.tabulation


# Columns --------------------------------------------------------------------------------------


def read_columns(folder: Path, certificate: Certificate) -> dict[str, TabulatedColumn]:
    """Return the columns that a certificate declares, in the order of its residuals."""
    part, columns = get_part(certificate), {}
    schemes = {
        name: scheme for table in certificate.tables for name, scheme in table.scheme.items()
    }
    for name in part.columns:
        scheme = schemes[name]
        if scheme.file is None:
            raise IncrowdError(f"the column '{name}' does not list its values")
        hierarchy = build_from_rows(
            read_rows(folder / scheme.file, ";", ours=True), other=scheme.other, exact=True
        )
        if format_rows(hierarchy).encode() != (folder / scheme.file).read_bytes():
            raise IncrowdError(f"the scheme of '{name}' is not written as a release writes it")
        columns[name] = TabulatedColumn(
            name, hierarchy, part.missing == "counted", scheme.other is not None
        )
    for table in certificate.tables:
        for name, scheme in table.scheme.items():
            refuse_other_words(name, scheme, describe_listed(columns[name].hierarchy, scheme.level))
    return columns


# Lines ----------------------------------------------------------------------------------------


def read_cells(
    folder: Path, certificate: Certificate, at: int, columns: dict[str, TabulatedColumn]
) -> PublishedCells:
    """Return the figures of a table.

    Raises:
        ValueError: if its lines are not those that its columns have.

    """
    part, release = get_part(certificate), certificate.tables[at].release
    entry = part.tables[at]
    table_columns = tuple(columns[name] for name in entry.columns)
    levels = tuple(entry.levels)
    if any(level >= column.root for column, level in zip(table_columns, levels, strict=True)):
        raise ValueError("it has a level that there is not")
    lines = tuple(
        column.list_lines(level, part.total)
        for column, level in zip(table_columns, levels, strict=True)
    )
    shape = tuple(map(len, lines))
    if math.prod(shape) > _MOST_LINES or math.prod(shape) != release.rows:
        raise ValueError(f"it has {release.rows:,} lines, and {math.prod(shape):,} are declared")
    summed = next((x for x in part.sums or () if x.column == entry.sum), None)
    reader = _CellReader(table_columns, levels, lines, summed)
    for block in iter_blocks(folder, release, entry):
        _check_labels(block, entry.columns, lines, is_escaped=bool(release.formulas))
        reader.read_block(block, can_hide=part.hide_below is not None)
    return reader.finish()


def iter_blocks(
    folder: Path, release: ReleasedFile, entry: TabulatedTable, lines: int | None = None
) -> Iterator[LineBlock]:
    """Yield the lines of a table in blocks, whose columns are those that a table has.

    Raises:
        ValueError: if there are others, or more or fewer lines than declared.

    """
    headers = list_headers(entry.columns, has_sums=entry.sum is not None)
    expected = [escape_formula(name) for name in headers] if release.formulas else headers
    number = 0
    for block in iter_line_blocks(folder / release.file, lines):
        if block.headers != expected:
            raise ValueError("its columns are not those of a table of counts")
        number += len(block)
        if number > release.rows:
            break
        yield block.rename(headers)
    if number != release.rows:
        raise ValueError("it has more or fewer lines than declared")


def _check_labels(
    block: LineBlock, names: Sequence[str], lines: tuple[ColumnLines, ...], *, is_escaped: bool
) -> None:
    """Refuse labels, levels and codes that are not those of the lines."""
    places = locate_lines(lines, block.start, block.start + len(block))
    for name, listed, along in zip(names, lines, places, strict=True):
        labels = list(listed.labels)
        if is_escaped:
            labels = [label and escape_formula(label) for label in labels]
        is_right = {
            name: block.has_texts(name, labels, along),
            f"{name}_level": block.has_numbers(
                f"{name}_level", listed.levels.astype(np.int64)[along]
            ),
            f"{name}_code": block.has_numbers(
                f"{name}_code", listed.groups.astype(np.int64)[along]
            ),
        }
        for header, holds in is_right.items():
            if not holds:
                raise ValueError(f"the lines of '{header}' are not the declared ones, in order")


class _CellReader:
    """The figures of a table as they are read: whole arrays, filled block by block."""

    def __init__(
        self,
        columns: tuple[TabulatedColumn, ...],
        levels: tuple[int, ...],
        lines: tuple[ColumnLines, ...],
        summed: CertifiedSum | None,
    ) -> None:
        self._columns, self._levels, self._lines, self._summed = columns, levels, lines, summed
        self._shape = tuple(map(len, lines))
        number = math.prod(self._shape)
        self._count = np.empty(number, dtype=np.int64)
        self._estimate, self._sd = np.empty(number), np.empty(number)
        self._is_hidden = np.empty(number, dtype=bool)
        self._steps = np.empty(0 if summed is None else number, dtype=np.int64)
        self._of_sums = {name: np.empty(len(self._steps)) for name in _KEPT_OF_SUMS}
        self._has_intervals = self._has_sum_intervals = True

    def read_block(self, block: LineBlock, *, can_hide: bool) -> None:
        """Read the figures of some lines; refuse what no release has."""
        lines = slice(block.start, block.start + len(block))
        is_hidden = block.find_missing("count")
        if is_hidden.any() and not can_hide:
            raise ValueError("a count is missing")
        for name in ("estimate", "low", "high"):
            _refuse_missing(block, name, is_hidden)
        self._is_hidden[lines] = is_hidden
        count = self._count[lines] = block.read_whole("count")
        figures = {name: block.read_decimals(name, DIGITS) for name in FIGURES[1:]}
        self._estimate[lines], self._sd[lines] = figures["estimate"], figures["sd"]
        self._has_intervals &= _has_intervals(figures, "", ROUNDING, ~is_hidden)
        if self._summed is not None:
            self._read_sums(block, lines, count, is_hidden)

    def _read_sums(self, block: LineBlock, lines: slice, count: Counts, is_hidden: Bools) -> None:
        """Read the sums of some lines; their figures are missing where counts are."""
        column = self._summed
        assert column is not None
        for name in SUM_FIGURES:
            is_missing = is_hidden & (name != "sum_sd")
            is_missing |= (name == "mean") & (count == 0)
            _refuse_missing(block, name, is_missing)
        digits = column.digits
        if digits:
            units = np.rint(block.read_decimals("sum", digits) * 10**digits).astype(np.int64)
        else:
            units = block.read_whole("sum", signed=True)
        steps = self._steps[lines] = column.find_steps(count, units)
        figures = {name: block.read_decimals(name, DIGITS + digits) for name in SUM_FIGURES[1:]}
        for name, numbers in self._of_sums.items():
            numbers[lines] = figures[name]
        rounding = find_rounding(column)
        means = compute_whole_means(column.compute_sums(count, steps), count, digits)
        is_near = np.abs(figures["mean"] - means) <= 2 * rounding + 1e-9 * np.abs(means)
        self._has_sum_intervals &= _has_intervals(figures, "sum_", rounding, ~is_hidden)
        self._has_sum_intervals &= bool(is_near[~is_hidden & (count > 0)].all())

    def finish(self) -> PublishedCells:
        """Return the table, all of whose lines were read."""
        sums, shape = None, self._shape
        if self._summed is not None:
            estimate, sd, low, high = (x.reshape(shape) for x in self._of_sums.values())
            sums = PublishedSums(
                self._summed, self._steps.reshape(shape), estimate, sd, low, high,
                self._has_sum_intervals,
            )  # fmt: skip
        return PublishedCells(
            self._columns, self._levels, self._lines, self._count.reshape(shape),
            self._estimate.reshape(shape), self._sd.reshape(shape),
            self._is_hidden.reshape(shape), self._has_intervals, sums,
        )  # fmt: skip


def _refuse_missing(block: LineBlock, name: str, expected: Bools) -> None:
    if not np.array_equal(block.find_missing(name), expected):
        raise ValueError(f"'{name}' is missing where the count is not, or the other way round")


def _has_intervals(
    figures: Mapping[str, Floats], prefix: str, rounding: float, is_shown: Bools
) -> bool:
    """Return whether intervals are those of the estimates beside them, up to rounding."""
    estimate, sd, low, high = (figures[f"{prefix}{name}"] for name in FIGURES[1:])
    slack = rounding * (2 + WITHIN) + 1e-9 * np.abs(estimate)
    apart = np.maximum(
        np.abs(low - (estimate - WITHIN * sd)), np.abs(high - (estimate + WITHIN * sd))
    )
    return not (apart > slack)[is_shown].any()


def get_finest(cells: PublishedCells) -> Counts | None:
    """Return the counts of the finest cells; None if some are hidden."""
    places = [
        lines.find_level(level) for lines, level in zip(cells.lines, cells.levels, strict=True)
    ]
    if cells.is_hidden[np.ix_(*places)].any():
        return None
    return cells.count[np.ix_(*places)]


# Measured numbers -----------------------------------------------------------------------------


def read_measured(
    folder: Path, certificate: Certificate, columns: dict[str, TabulatedColumn]
) -> list[Counts]:
    """Return the measured numbers of each residual, with an axis for each of its columns.

    Raises:
        IncrowdError: if the file does not hold what the certificate lists.

    """
    part = get_part(certificate)
    listed = list(columns.values())
    shapes = []
    for entry in part.residuals:
        pairs = zip(entry.columns, entry.components, strict=True)
        shapes.append(tuple(int(listed[at].list_groups(level).max()) + 1 for at, level in pairs))
    sizes = [math.prod(shape) for shape in shapes]
    if sum(sizes) > _MOST_LINES:
        raise IncrowdError("more numbers were measured than a release can have")
    numbers, done = np.empty(sum(sizes), dtype=np.int64), 0
    ends = np.cumsum(sizes)
    try:
        for residuals, block in read_whole_numbers(folder / MEASURED_FILE, (RESIDUAL, NUMBER)):
            lines = np.arange(done, done + len(block))
            done += len(block)
            if not np.array_equal(residuals, np.searchsorted(ends, lines, side="right")):
                raise IncrowdError(f"{MEASURED_FILE} {_OTHER_NUMBERS}")
            numbers[done - len(block) : done] = block
    except ValueError as error:
        raise IncrowdError(f"{MEASURED_FILE}: {error}") from error
    if done != len(numbers):
        raise IncrowdError(f"{MEASURED_FILE} {_OTHER_NUMBERS}")
    return [
        part_.reshape(shape)
        for part_, shape in zip(np.split(numbers, ends[:-1]), shapes, strict=True)
    ]
