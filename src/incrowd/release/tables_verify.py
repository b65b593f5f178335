"""Check tables of counts from the folder alone: lines, sums, agreement, intervals.

Every line of a table is declared, so labels, levels and codes follow from the scheme. Counts are
whole, not negative, and add up. That estimates and standard deviations follow from the measured
numbers is checked in :mod:`incrowd.verification`, with the code that made them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.arrays import Bools, Counts, Floats
from incrowd.codes.hierarchy import build_from_rows
from incrowd.engine.released import find_hidden_content, read_lines, read_whole_numbers
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, make_finding
from incrowd.release.formulas import unescape_formula
from incrowd.release.scheme_words import describe_listed, refuse_other_words
from incrowd.release.tables_column import (
    ColumnLines,
    TabulatedColumn,
    add_totals,
)
from incrowd.release.tables_margins import TableMargins
from incrowd.release.tables_part import (
    DIGITS,
    MEASURED_FILE,
    NUMBER,
    RESIDUAL,
    SUM_FIGURES,
    WITHIN,
    CertifiedSum,
    TabulationPart,
    compute_whole_means,
    list_headers,
)
from incrowd.spec.arx import format_rows, read_rows

if TYPE_CHECKING:
    from incrowd.release.certificate import Certificate

_MOST_LINES = 1 << 27
_WHOLE = re.compile(r"0|[1-9]\d{0,17}")
_DECIMAL = re.compile(r"-?(0|[1-9]\d*)\.(0|\d{0,2}[1-9])")
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
ROUNDING = 0.5 * 10**-DIGITS


@dataclass(frozen=True, eq=False)
class PublishedSums:
    """The sums of a released table, in whole steps, with their estimates and means."""

    column: CertifiedSum
    steps: Counts
    estimate: Floats
    sd: Floats
    low: Floats
    high: Floats
    mean: Floats
    mean_low: Floats
    mean_high: Floats

    @property
    def rounding(self) -> float:
        """Half a unit of the last digit of estimates."""
        return float(ROUNDING * 10.0**-self.column.digits)


@dataclass(frozen=True, eq=False)
class PublishedCells:
    """The figures of a released table, along its lines; ``is_hidden`` marks lines without."""

    columns: tuple[TabulatedColumn, ...]
    levels: tuple[int, ...]
    lines: tuple[ColumnLines, ...]
    count: Counts
    estimate: Floats
    sd: Floats
    low: Floats
    high: Floats
    is_hidden: Bools
    sums: PublishedSums | None = None


def check_tables(folder: Path, certificate: Certificate) -> list[Finding]:
    """Return what is wrong with tables of counts, and with the file of measured numbers."""
    findings = list(find_hidden_content(folder / MEASURED_FILE))
    for table in certificate.tables:
        findings += find_hidden_content(folder / table.release.file)
    if findings:
        return findings
    columns = read_columns(folder, certificate)
    read_measured(folder, certificate, columns)
    margins = TableMargins()
    for at, table in enumerate(certificate.tables):
        file = table.release.file
        try:
            cells = read_cells(folder, certificate, at, columns)
        except ValueError as error:
            findings.append(make_finding("TABLE_LINES_DIFFER", file=file, problem=str(error)))
            continue
        findings += _check_cells(file, cells, _get_part(certificate))
        findings += _compare_margins(margins, file, cells)
    if not findings and _get_part(certificate).exports:
        from incrowd.release.tables_export import check_exports

        released = [table.release for table in certificate.tables]
        findings += check_exports(folder, _get_part(certificate), columns, released)
    return findings


def _get_part(certificate: Certificate) -> TabulationPart:
    assert certificate.tabulation is not None
    return certificate.tabulation


# Columns --------------------------------------------------------------------------------------


def read_columns(folder: Path, certificate: Certificate) -> dict[str, TabulatedColumn]:
    """Return the columns that a certificate declares, in the order of its residuals."""
    part, columns = _get_part(certificate), {}
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
    part, table = _get_part(certificate), certificate.tables[at]
    entry, release = part.tables[at], table.release
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
    values = read_lines(
        folder / release.file, unescape=unescape_formula if release.formulas else None
    )
    if [*values] != list_headers(entry.columns, has_sums=entry.sum is not None):
        raise ValueError("its columns are not those of a table of counts")
    if any(len(column) != math.prod(shape) for column in values.values()):
        raise ValueError("it has more or fewer lines than declared")
    _check_labels(values, entry.columns, lines, is_text=release.file.endswith(".csv"))
    is_text = release.file.endswith(".csv")
    cells = _read_figures(values, table_columns, levels, lines, part, is_text)
    if entry.sum is None:
        return cells
    summed = next(x for x in part.sums or () if x.column == entry.sum)
    return replace(cells, sums=_read_sums(values, cells, summed, is_text=is_text))


def _check_labels(
    values: dict[str, list[Any]],
    names: Sequence[str],
    lines: tuple[ColumnLines, ...],
    *,
    is_text: bool,
) -> None:
    shape = tuple(map(len, lines))
    for axis, (name, listed) in enumerate(zip(names, lines, strict=True)):
        along = [-1 if x == axis else 1 for x in range(len(shape))]
        places = np.broadcast_to(np.arange(shape[axis]).reshape(along), shape).ravel().tolist()
        for header, expected in (
            (name, list(listed.labels)),
            (f"{name}_level", listed.levels.tolist()),
            (f"{name}_code", listed.groups.tolist()),
        ):
            is_written = is_text and header != name
            texts: list[Any] = [str(x) for x in expected] if is_written else [*expected]
            if values[header] != [texts[place] for place in places]:
                raise ValueError(f"the lines of '{header}' are not the declared ones, in order")


def _read_figures(
    values: dict[str, list[Any]],
    columns: tuple[TabulatedColumn, ...],
    levels: tuple[int, ...],
    lines: tuple[ColumnLines, ...],
    part: TabulationPart,
    is_text: bool,
) -> PublishedCells:
    shape = tuple(map(len, lines))
    hidden = [value is None for value in values["count"]]
    if any(hidden) and part.hide_below is None:
        raise ValueError("a count is missing")
    for name in ("estimate", "low", "high"):
        if [value is None for value in values[name]] != hidden:
            raise ValueError(f"'{name}' is missing where the count is not, or the other way round")
    count = [_read_whole(value, is_text) for value in values["count"]]
    figures = {
        name: np.array([_read_decimal(value, is_text) for value in values[name]]).reshape(shape)
        for name in ("estimate", "sd", "low", "high")
    }
    return PublishedCells(
        columns, levels, lines, np.array(count, dtype=np.int64).reshape(shape),
        figures["estimate"], figures["sd"], figures["low"], figures["high"],
        np.array(hidden).reshape(shape),
    )  # fmt: skip


def _read_sums(
    values: dict[str, list[Any]], cells: PublishedCells, column: CertifiedSum, *, is_text: bool
) -> PublishedSums:
    """Return the sums of a table; their figures are missing where its counts are."""
    hidden = cells.is_hidden.ravel()
    for name in SUM_FIGURES:
        is_missing = np.array([value is None for value in values[name]])
        expected = np.zeros_like(hidden) if name == "sum_sd" else hidden
        if name == "mean":
            expected = hidden | (cells.count.ravel() == 0)
        if not np.array_equal(is_missing, expected):
            raise ValueError(f"'{name}' is missing where the count is not, or the other way round")
    digits, scale = column.digits, 10**column.digits
    if digits:
        sums = [_read_decimal(value, is_text, digits) for value in values["sum"]]
        units = np.array([round(number * scale) for number in sums], dtype=np.int64)
    else:
        units = np.array([_read_signed(x, is_text) for x in values["sum"]], dtype=np.int64)
    steps = column.find_steps(cells.count, units.reshape(cells.count.shape))
    figures = {
        name: np.array(
            [_read_decimal(value, is_text, DIGITS + digits) for value in values[name]]
        ).reshape(steps.shape)
        for name in SUM_FIGURES[1:]
    }
    return PublishedSums(column, steps, *figures.values())


def _read_signed(value: Any, is_text: bool) -> int:
    if is_text and value is not None and value.startswith("-") and value != "-0":
        return -_read_whole(value[1:], is_text)
    return value if type(value) is int and not is_text else _read_whole(value, is_text)


def _read_whole(value: Any, is_text: bool) -> int:
    if value is None:
        return 0
    if is_text and _WHOLE.fullmatch(value):
        return int(value)
    if is_text or type(value) is not int or value < 0:
        raise ValueError(f"the count '{value}' is no whole number from 0")
    return value


def _read_decimal(value: Any, is_text: bool, digits: int = DIGITS) -> float:
    """Return a number with at most some digits after its point; 0 for a hidden one."""
    if value is None:
        return 0.0
    if is_text and _is_decimal(value, digits):
        return float(value)
    if is_text or type(value) is not float or np.round(value, digits) != value:
        raise ValueError(f"'{value}' is no number with {digits} digits")
    return value


def _is_decimal(text: str, digits: int) -> bool:
    """Whether a text is a number as it is written in a table, with at most some digits."""
    if digits == DIGITS:
        return text != "-0.0" and _DECIMAL.fullmatch(text) is not None
    is_number = _NUMBER.fullmatch(text) is not None and text != "-0.0"
    return is_number and float(np.round(float(text), digits)) == float(text)


# Sums and agreement ---------------------------------------------------------------------------


def _check_cells(file: str, cells: PublishedCells, part: TabulationPart) -> Iterator[Finding]:
    """Return what contradicts that a table adds up, and that intervals follow from estimates."""
    if part.hide_below is not None and (cells.count[~cells.is_hidden] < part.hide_below).any():
        yield make_finding("TABLE_COUNT_NOT_HIDDEN", file=file, least=part.hide_below)
    finest = get_finest(cells)
    if finest is not None:
        sums = add_totals(finest, cells.columns, cells.levels, cells.lines)
        if (sums != cells.count)[~cells.is_hidden].any():
            yield make_finding("TABLE_DOES_NOT_ADD_UP", file=file)
    slack = ROUNDING * (2 + WITHIN) + 1e-9 * np.abs(cells.estimate)
    for ends, sign in ((cells.low, -1), (cells.high, 1)):
        apart = np.abs(ends - (cells.estimate + sign * WITHIN * cells.sd))
        if (apart > slack)[~cells.is_hidden].any():
            yield make_finding("TABLE_INTERVALS_DIFFER", file=file)
            return
    if cells.sums is not None:
        yield from _check_sums(file, cells, cells.sums)


def _check_sums(file: str, cells: PublishedCells, sums: PublishedSums) -> Iterator[Finding]:
    """Return what contradicts that sums are possible for their counts, add up, and have means."""
    is_possible = (sums.steps >= 0) & (sums.steps <= cells.count * sums.column.steps)
    if not (is_possible | cells.is_hidden).all():
        yield make_finding("TABLE_SUM_IMPOSSIBLE", sums.column.column, file=file)
        return
    finest = get_finest(cells)
    if finest is not None:
        steps = get_finest(replace(cells, count=sums.steps))
        assert steps is not None
        added = add_totals(steps, cells.columns, cells.levels, cells.lines)
        if (added != sums.steps)[~cells.is_hidden].any():
            yield make_finding("TABLE_DOES_NOT_ADD_UP", file=file)
    digits = sums.column.digits
    units = sums.column.compute_sums(cells.count, sums.steps)
    means = compute_whole_means(units, cells.count, digits).reshape(units.shape)
    has_mean = ~cells.is_hidden & (cells.count > 0)
    slack = sums.rounding * (2 + WITHIN) + 1e-9 * np.abs(sums.estimate)
    apart = np.maximum(
        np.abs(sums.low - (sums.estimate - WITHIN * sums.sd)),
        np.abs(sums.high - (sums.estimate + WITHIN * sums.sd)),
    )
    is_near = np.abs(sums.mean - means) <= 2 * sums.rounding + 1e-9 * np.abs(means)
    if (apart > slack)[~cells.is_hidden].any() or not is_near[has_mean].all():
        yield make_finding("TABLE_INTERVALS_DIFFER", file=file)


def get_finest(cells: PublishedCells) -> Counts | None:
    """Return the counts of the finest cells; None if some are hidden."""
    places = [
        lines.find_level(level) for lines, level in zip(cells.lines, cells.levels, strict=True)
    ]
    if cells.is_hidden[np.ix_(*places)].any():
        return None
    return cells.count[np.ix_(*places)]


def _compare_margins(margins: TableMargins, file: str, cells: PublishedCells) -> Iterator[Finding]:
    """Return what contradicts that a table agrees with earlier ones, in counts and in sums."""
    finest = get_finest(cells)
    if finest is None:
        return
    yield from margins.compare(file, cells.columns, cells.levels, finest)
    if cells.sums is not None:
        steps = get_finest(replace(cells, count=cells.sums.steps))
        assert steps is not None
        summed = cells.sums.column.column
        yield from margins.compare(file, cells.columns, cells.levels, steps, summed)


# Measured numbers -----------------------------------------------------------------------------


def read_measured(
    folder: Path, certificate: Certificate, columns: dict[str, TabulatedColumn]
) -> list[Counts]:
    """Return the measured numbers of each residual, with an axis for each of its columns.

    Raises:
        IncrowdError: if the file does not hold what the certificate lists.

    """
    part = _get_part(certificate)
    listed = list(columns.values())
    shapes = []
    for entry in part.residuals:
        pairs = zip(entry.columns, entry.components, strict=True)
        shapes.append(tuple(int(listed[at].list_groups(level).max()) + 1 for at, level in pairs))
    sizes = [math.prod(shape) for shape in shapes]
    if sum(sizes) > _MOST_LINES:
        raise IncrowdError("more numbers were measured than a release can have")
    try:
        residuals, numbers = read_whole_numbers(folder / MEASURED_FILE, (RESIDUAL, NUMBER))
    except ValueError as error:
        raise IncrowdError(f"{MEASURED_FILE}: {error}") from error
    if not np.array_equal(residuals, np.repeat(np.arange(len(sizes)), sizes)):
        raise IncrowdError(f"{MEASURED_FILE} does not hold the numbers of the listed residuals")
    ends = np.cumsum(sizes)[:-1]
    return [
        part_.reshape(shape) for part_, shape in zip(np.split(numbers, ends), shapes, strict=True)
    ]
