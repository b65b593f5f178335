"""Check synthetic rows and measured tables from the folder alone.

Rows lie within the declared values and obey the rules; measured numbers are whole, on the declared
tables, and cost no more than the events allow. That the model follows from the measured tables,
and the rows from the model, is checked in :mod:`incrowd.verification`: it fits the model again,
with code that makes releases, which this room does not import.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from incrowd.arrays import Bools, Codes, Counts, Floats
from incrowd.codes.frequency import Frequencies
from incrowd.codes.hierarchy import Hierarchy, build_from_rows
from incrowd.codes.values import make_sort_key
from incrowd.engine.released import ReleasedTable, find_hidden_content, open_released
from incrowd.engine.released_lines import iter_line_blocks
from incrowd.engine.table import Coder
from incrowd.errors import IncrowdError
from incrowd.findings import Finding, make_finding
from incrowd.release.foreign_keys import assign_parents
from incrowd.release.formulas import unescape_formula
from incrowd.release.measured import CountEstimates, read_measured, write_measured
from incrowd.release.scheme_words import describe_listed, refuse_other_words
from incrowd.release.synthetic_part import (
    MeasuredNumbers,
    SyntheticPart,
    ValueType,
)
from incrowd.release.value_column import ValueColumn
from incrowd.spec.arx import format_rows, read_rows
from incrowd.spec.build import build_hierarchy
from incrowd.spec.hierarchies import HierarchyChoice
from incrowd.spec.leaves import make_leaves
from incrowd.spec.model import Column
from incrowd.spec.row_rules import Rule, allow_cells, expand_orders
from incrowd.spec.value_format import ValueFormat

if TYPE_CHECKING:
    from incrowd.release.certificate import Certificate

_TYPES: dict[ValueType, type] = {
    "text": str, "integer": int, "number": float, "date": dt.date, "boolean": bool,
}  # fmt: skip
_MOST_CELLS = 1 << 27
_DECIMAL = re.compile(r"-?(0|[1-9]\d*)\.\d{3}")


def check_rows(folder: Path, certificate: Certificate) -> list[Finding]:
    """Return what is wrong with synthetic rows and measured tables."""
    columns = read_columns(folder, certificate)
    return [
        *_check_data(folder, certificate, columns), *_check_measured(folder, certificate, columns),
    ]  # fmt: skip


def _part(certificate: Certificate) -> SyntheticPart:
    assert certificate.synthetic is not None
    return certificate.synthetic


# Columns --------------------------------------------------------------------------------------


def read_columns(folder: Path, certificate: Certificate) -> dict[str, ValueColumn]:
    """Return the columns that a certificate declares, in the order of the model."""
    part, value_columns = _part(certificate), {}
    for name in part.columns:
        scheme = certificate.table.scheme[name]
        if scheme.file is None or scheme.level != 0:
            raise IncrowdError(f"the column '{name}' is not shown by its listed values")
        rows = read_rows(folder / scheme.file, ";", ours=True)
        hierarchy = build_from_rows(rows, other=scheme.other, exact=True)
        if format_rows(hierarchy).encode() != (folder / scheme.file).read_bytes():
            raise IncrowdError(f"the scheme of '{name}' is not written as a release writes it")
        refuse_other_words(name, scheme, describe_listed(hierarchy, 0))
        column = _declared(part, name, hierarchy)
        leaves = make_leaves(name, column, build_hierarchy(column, folder=Path()))
        written = (part.written or {}).get(name)
        form = None if written is None else ValueFormat.model_validate(written)
        value_columns[name] = ValueColumn(name, hierarchy, leaves, scheme.other, form)
    return value_columns


def _declared(part: SyntheticPart, name: str, hierarchy: Hierarchy) -> Column:
    """Return a column that declares the values of a scheme, as points where they are some."""
    points = part.points.get(name)
    if points is None:
        values = {"flat": {"values": list(hierarchy.values)}}
        return Column(role="quasi", hierarchy=HierarchyChoice.model_validate(values))
    declared = HierarchyChoice.model_validate(points.rule)
    if declared.intervals is None and declared.dates is None:
        raise IncrowdError(f"the points of '{name}' are neither intervals nor dates")
    precision = None if points.precision is None else Decimal(points.precision)
    column = Column(role="quasi", hierarchy=declared, precision=precision)
    if build_hierarchy(column, folder=Path()).list_rows() != hierarchy.list_rows():
        raise IncrowdError(f"the points of '{name}' are not those of its scheme")
    return column


# Rows -----------------------------------------------------------------------------------------


def _check_data(
    folder: Path, certificate: Certificate, columns: dict[str, ValueColumn]
) -> Iterator[Finding]:
    part, release = _part(certificate), certificate.table.release
    yield from find_hidden_content(folder / release.file)
    table = open_rows(folder, certificate)
    references = part.references or {}
    made_up = {*part.keys, *references}
    if sorted(table.columns) != sorted([*columns, *made_up]):
        yield make_finding("DATA_COLUMNS_DIFFER", columns=list(table.columns))
        return
    for column in columns.values():
        yield from _check_values(table, part, column, text=release.file.endswith(".csv"))
    if not _is_ordered(table, [name for name in table.columns if name not in made_up]):
        yield make_finding("ROWS_UNORDERED")
    for name in part.keys:
        if not _numbers_rows(table, name):
            yield make_finding("KEYS_NOT_NUMBERED", name=name)
    for name in references:
        if not _follows_rule(folder / release.file, certificate, name):
            yield make_finding("REFERENCES_DIFFER", name=name)
    frequencies = count_rows(table, part, columns)
    sizes = (
        frequencies.total,
        len(frequencies),
        int(frequencies.counts.min(initial=frequencies.total)),
    )
    if sizes != (release.rows, release.classes, release.smallest_class):
        certified = f"{release.rows:,}, {release.classes:,} and {release.smallest_class:,}"
        yield make_finding(
            "COUNTS_DIFFER", rows=sizes[0], classes=sizes[1], smallest=sizes[2],
            certified=certified,
        )  # fmt: skip
    yield from _check_rules(table, part, columns, frequencies.codes)


def open_rows(folder: Path, certificate: Certificate) -> ReleasedTable:
    """Return the table of synthetic rows."""
    release = certificate.table.release
    table = open_released(folder / release.file)
    return table.respell_texts(unescape_formula) if release.formulas else table


def _check_values(
    table: ReleasedTable, part: SyntheticPart, column: ValueColumn, *, text: bool
) -> Iterator[Finding]:
    """Return values that the column does not have, or that are not of its type."""
    kind = _TYPES["text" if text else part.types[column.name]]
    as_point = _is_drawn(part, column.name)
    for value in table.values(column.name):
        if column.read_code(value, as_point=as_point) is None:
            yield make_finding(
                "VALUE_NOT_IN_SCHEME", value=str(value), name=column.name, level="its values"
            )
            return
        if value is not None and type(value) is not kind:
            yield make_finding("LABELS_FORM_DIFFERS", name=column.name, form=kind.__name__)
            return


def _is_drawn(part: SyntheticPart, name: str) -> bool:
    return name in part.points and part.points[name].drawn


def count_rows(
    table: ReleasedTable, part: SyntheticPart, columns: dict[str, ValueColumn]
) -> Frequencies:
    """Return the distinct rows by the numbers of their values, in the order of the model."""

    def coder(column: ValueColumn) -> Coder:
        as_point, null = _is_drawn(part, column.name), len(column.hierarchy.values)

        def code(values: Sequence[object]) -> Codes:
            codes = [column.read_code(value, as_point=as_point) for value in values]
            return np.array([null if entry is None else entry for entry in codes], dtype=np.int32)

        return code

    if not table.rows():
        return Frequencies(np.zeros((0, len(columns)), np.int32), np.zeros(0, np.int64))
    return table.count(list(columns), {name: coder(column) for name, column in columns.items()})


def _is_ordered(table: ReleasedTable, names: list[str]) -> bool:
    """Whether rows stand in the order of what they show, so that the order tells nothing."""

    def coder(name: str) -> Coder:
        places = {x: at for at, x in enumerate(sorted(table.values(name), key=make_sort_key))}
        return lambda values: np.array([places.get(value, 0) for value in values], np.int32)

    return not table.rows() or table.has_ascending_rows(
        names, {name: coder(name) for name in names}
    )


def _numbers_rows(table: ReleasedTable, name: str) -> bool:
    """Whether a column holds 1, 2, 3, and so on, down the rows."""
    rows, keys = table.rows(), table.values(name)
    if len(keys) != rows or {str(key) for key in keys} != {str(at + 1) for at in range(rows)}:
        return False

    def coder(values: Sequence[object]) -> Codes:
        return np.array([int(str(value or 0)) for value in values], dtype=np.int32)

    return not rows or table.has_ascending_rows([name], {name: coder})


def _follows_rule(path: Path, certificate: Certificate, name: str) -> bool:
    """Whether each row refers to the key that the public rule gives it."""
    key = (_part(certificate).references or {})[name]
    keys = [str(key) for block in iter_line_blocks(path) for key in block.list_values(name)]
    expected = assign_parents(key.seal, name, rows=len(keys), parents=key.rows, children=key.shares)
    return keys == list(map(str, expected.tolist()))


def _check_rules(
    table: ReleasedTable, part: SyntheticPart, columns: dict[str, ValueColumn], codes: Codes
) -> Iterator[Finding]:
    """Return rules that some row breaks; of drawn values, orders that they break."""
    rules = expand_orders([Rule.model_validate(rule) for rule in part.rules])
    hierarchies = {name: column.hierarchy for name, column in columns.items()}
    leaves = {name: column.leaves for name, column in columns.items()}
    places = list(columns)
    for rule in rules:
        if not {*rule.names} <= {*places}:
            yield make_finding("SYNTHETIC_RULE_BROKEN", columns=list(rule.names))
            continue
        allowed: Bools = allow_cells(rule, hierarchies, leaves)
        rule_codes = tuple(codes[:, places.index(name)] for name in rule.names)
        if not allowed[rule_codes].all() or (
            rule.order and not _is_rising(table, rule.order, columns)
        ):
            yield make_finding("SYNTHETIC_RULE_BROKEN", columns=list(rule.names))


def _is_rising(table: ReleasedTable, pair: Sequence[str], columns: dict[str, ValueColumn]) -> bool:
    """Whether the points of two columns rise in every row that shows points in both."""
    points = [{value: columns[name].read_point(value) for value in table.values(name)}
             for name in pair]  # fmt: skip
    listed = [list(column_points) for column_points in points]

    def coder(at: int) -> Callable[[Sequence[object]], Codes]:
        place = {value: number for number, value in enumerate(listed[at])}
        return lambda values: np.array([place.get(value, 0) for value in values], np.int32)

    met = table.count(list(pair), {name: coder(at) for at, name in enumerate(pair)}).codes
    for first, second in met.tolist():
        low, high = points[0][listed[0][first]], points[1][listed[1][second]]
        if low is not None and high is not None and low > high:
            return False
    return True


# Measured tables ------------------------------------------------------------------------------


def _check_measured(
    folder: Path, certificate: Certificate, columns: dict[str, ValueColumn]
) -> Iterator[Finding]:
    part = _part(certificate)
    try:
        tables = read_tables(folder, certificate, columns)
    except (ValueError, LookupError) as error:
        yield make_finding("MEASURED_NUMBERS_INVALID", problem=str(error))
        return
    spent = sum(
        (entry.cost(table.shape) for entry, table in zip(part.measured, tables, strict=True)),
        Fraction(0),
    )
    if spent > Fraction(float(certificate.parameters["information"])):
        yield make_finding("MEASUREMENTS_NOT_CHARGED", spent=float(spent))
    estimates = CountEstimates(tables, columns)
    for entry, table in zip(part.measured, tables, strict=True):
        text = (folder / entry.file).read_bytes().decode()
        if not _is_alike(write_measured(table, estimates), text, estimates.estimate(table)):
            yield make_finding("MEASURED_COUNTS_DIFFER", file=entry.file)
            return


def read_tables(
    folder: Path, certificate: Certificate, columns: dict[str, ValueColumn]
) -> list[MeasuredNumbers]:
    """Return the measured tables of a release, with their numbers.

    Raises:
        ValueError: if a file is not that of its table.

    """
    measured_numberses, cells = [], 0
    for entry in _part(certificate).measured:
        pairs = list(zip(entry.columns, entry.levels, strict=True))
        if any(level >= columns[name].hierarchy.height for name, level in pairs):
            raise ValueError(f"{entry.file} names a level that there is not")
        labels = tuple(columns[name].list_labels(level) for name, level in pairs)
        shape = tuple(map(len, labels))
        cells += int(np.prod(shape, dtype=np.float64))
        if cells > _MOST_CELLS:
            raise ValueError("the tables have more cells than a release can have")
        nothing: Counts = np.zeros(0, dtype=np.int64)
        expected = MeasuredNumbers(
            tuple(entry.columns), tuple(entry.levels),
            tuple(entry.columns.index(name) for name in entry.centered), (nothing,),
            tuple(entry.variances), entry.held, labels, np.zeros(0),
        )  # fmt: skip
        try:
            text = (folder / entry.file).read_bytes().decode()
            measured_numberses.append(read_measured(text, expected))
        except ValueError as error:
            raise ValueError(f"{entry.file}: {error}") from error
    return measured_numberses


def _is_alike(written: str, text: str, estimated: tuple[Floats, Floats] | None) -> bool:
    """Whether a file is as it would be written, but for a last digit that another machine rounds.

    No other digit and no other spelling is taken: either could carry a message.
    """
    if written == text:
        return True
    lines = written.split("\n"), text.split("\n")
    if estimated is None or len(lines[0]) != len(lines[1]):
        return False
    exact = np.stack([part.ravel() for part in estimated], axis=1).tolist()
    for at, (line, other) in enumerate(zip(*lines, strict=True)):
        if line != other and not (
            1 <= at <= len(exact)
            and _is_rounded(line.rsplit(",", 3), other.rsplit(",", 3), exact[at - 1])
        ):
            return False
    return True


def _is_rounded(line: Sequence[str], other: Sequence[str], exact: Sequence[float]) -> bool:
    """Whether two lines differ in their count or its deviation alone, and by its rounding alone."""
    if (line[0], line[-1]) != (other[0], other[-1]) or not len(line) == len(other) == 4:
        return False
    return all(
        _DECIMAL.fullmatch(text) is not None and abs(float(text) - number) <= 0.0005 + 1e-6
        for text, number in zip(other[1:3], exact, strict=True)
    )
