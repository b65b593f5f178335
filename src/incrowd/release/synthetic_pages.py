"""What the README of synthetic rows is filled with: columns, measured tables, worked examples."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from incrowd.release.code_examples import RANGES
from incrowd.release.measured import list_headers
from incrowd.release.synthetic_part import MeasuredTable, SyntheticPart

if TYPE_CHECKING:
    from incrowd.release.certificate import Certificate, SchemeColumn

Quote: TypeAlias = Callable[[str], str]
Scheme: TypeAlias = "Mapping[str, SchemeColumn]"


@dataclass(frozen=True)
class _Column:
    name: str
    type: str
    words: str
    source: str
    other: str | None


@dataclass(frozen=True)
class _Table:
    file: str
    words: str
    held: bool


@dataclass(frozen=True)
class _FineColumn:
    """A column whose values are so many that noise exceeds their mean count."""

    name: str
    values: int
    mean: str
    spread: str


def fill_synthetic(
    certificate: Certificate, quote: Quote, code: Quote, prose: Quote
) -> dict[str, Any]:
    """Return the values that the README of synthetic rows needs besides those of all pages.

    ``quote`` writes a text as Python and R both read it, ``code`` and ``prose`` as Markdown.
    """
    part = certificate.synthetic
    assert part is not None
    scheme = certificate.table.scheme
    single = [table for table in part.measured if len(table.columns) == 1]
    pairs = [table for table in part.measured if len(table.columns) == 2]
    first = _choose_smallest(single, scheme)
    second = _choose_smallest(pairs, scheme) if pairs else None
    together = [table.columns for table in part.measured if table.held and len(table.columns) > 1]
    return {
        "part": part,
        "data": certificate.table.release,
        "listed": [_describe_column(certificate, part, name) for name in part.columns],
        "rules": [json.dumps(rule, sort_keys=True, ensure_ascii=False) for rule in part.rules],
        "tables_measured": [_describe_table(table, scheme, code, prose) for table in part.measured],
        "together": [list(names) for names in dict.fromkeys(map(tuple, together))],
        "fine": _list_fine_columns(certificate, single),
        "ranges": any(
            scheme[name].labels in RANGES and not _is_drawn(part, name) for name in part.columns
        ),
        "first": first,
        "second": second,
        "worked": _write_examples(part, first, second, quote),
    }


def _is_drawn(part: SyntheticPart, name: str) -> bool:
    points = part.points.get(name)
    return points is not None and points.drawn


def _describe_column(certificate: Certificate, part: SyntheticPart, name: str) -> _Column:
    scheme = certificate.table.scheme[name]
    words = scheme.shows[0] if scheme.shows else "values"
    if _is_drawn(part, name):
        words = f"drawn at random within {words}"
    return _Column(name, part.types[name], words, scheme.file or "", scheme.other)


def _describe_table(table: MeasuredTable, scheme: Scheme, code: Quote, prose: Quote) -> _Table:
    if not table.columns:
        return _Table(table.file, "the number of rows", table.held)
    parts = [
        code(name) + (f": {prose(_describe_level(scheme[name], level))}" if level else "")
        for name, level in zip(table.columns, table.levels, strict=True)
    ]
    return _Table(table.file, "; ".join(parts), table.held)


def _describe_level(column: SchemeColumn, level: int) -> str:
    return column.shows[level] if level < len(column.shows) else f"level {level}"


# Sizes ----------------------------------------------------------------------------------------


def _count_cells(table: MeasuredTable, scheme: Scheme) -> int:
    return math.prod(
        _count_labels(scheme[name], level)
        for name, level in zip(table.columns, table.levels, strict=True)
    )


def _count_labels(column: SchemeColumn, level: int) -> int:
    """Return the number of labels of a level, with those of null and of other values."""
    if level >= len(column.sizes):
        return 1
    return column.sizes[level] + (1 if column.other is None else 2)


def _choose_smallest(tables: list[MeasuredTable], scheme: Scheme) -> MeasuredTable:
    """Return the table that is read most easily: in the model, of few cells."""
    return min(tables, key=lambda table: (not table.held, _count_cells(table, scheme)))


def _list_fine_columns(certificate: Certificate, tables: list[MeasuredTable]) -> list[_FineColumn]:
    """Return the columns whose noise exceeds the mean count of a value; from sizes alone."""
    rows, fine_columns = certificate.table.release.rows, []
    for table in tables:
        (name,) = table.columns
        column = certificate.table.scheme[name]
        if table.levels != [0] or not column.sizes:
            continue
        cells = _count_labels(column, 0)
        scale = cells if table.centered else 1
        spread = sum(scale**2 / variance for variance in table.variances) ** -0.5
        if spread > rows / column.sizes[0]:
            mean = f"{rows / column.sizes[0]:.3g}"
            fine_columns.append(_FineColumn(name, column.sizes[0], mean, f"{spread:.3g}"))
    return fine_columns


# Worked examples ------------------------------------------------------------------------------


def _write_examples(
    part: SyntheticPart, first: MeasuredTable, second: MeasuredTable | None, quote: Quote
) -> dict[str, str]:
    total = next(table for table in part.measured if not table.columns)
    examples = {
        "share_python": _share_python(first, total, quote),
        "share_r": _share_r(first, total, quote),
    }
    if second is not None:
        examples["pair_python"] = _pair_python(second, quote)
        examples["pair_r"] = _pair_r(second, quote)
    return examples


def _names(table: MeasuredTable, quote: Quote) -> tuple[str, str]:
    """Return the names of the columns of counts and of their deviations, in quotes."""
    headers = list_headers(table.columns, len(table.variances), estimated=True)
    return quote(headers[-3]), quote(headers[-2])


def _share_python(table: MeasuredTable, total: MeasuredTable, quote: Quote) -> str:
    count, sd = _names(table, quote)
    rows, _ = _names(total, quote)
    return (
        "import pandas as pd\n\n"
        f'rows = pd.read_csv("{total.file}")[{rows}][0]\n'
        f'table = pd.read_csv("{table.file}", keep_default_na=False)\n'
        f'table["share"] = table[{count}] / rows\n'
        f'table["low"] = (table[{count}] - 1.96 * table[{sd}]) / rows\n'
        f'table["high"] = (table[{count}] + 1.96 * table[{sd}]) / rows'
    )


def _share_r(table: MeasuredTable, total: MeasuredTable, quote: Quote) -> str:
    count, sd = _names(table, quote)
    rows, _ = _names(total, quote)
    return (
        f'rows <- read.csv("{total.file}")[[{rows}]][1]\n'
        f'table <- read.csv("{table.file}", check.names = FALSE, na.strings = character(0))\n'
        f"table$share <- table[[{count}]] / rows\n"
        f"table$low <- (table[[{count}]] - 1.96 * table[[{sd}]]) / rows\n"
        f"table$high <- (table[[{count}]] + 1.96 * table[[{sd}]]) / rows"
    )


def _pair_python(table: MeasuredTable, quote: Quote) -> str:
    count, sd = _names(table, quote)
    return (
        "import pandas as pd\n\n"
        f'table = pd.read_csv("{table.file}", keep_default_na=False)\n'
        f'table["low"] = table[{count}] - 1.96 * table[{sd}]\n'
        f'table["high"] = table[{count}] + 1.96 * table[{sd}]\n'
        f"difference = table[{count}][0] - table[{count}][1]\n"
        f"error = 1.96 * (table[{sd}][0] + table[{sd}][1])"
    )


def _pair_r(table: MeasuredTable, quote: Quote) -> str:
    count, sd = _names(table, quote)
    return (
        f'table <- read.csv("{table.file}", check.names = FALSE, na.strings = character(0))\n'
        f"table$low <- table[[{count}]] - 1.96 * table[[{sd}]]\n"
        f"table$high <- table[[{count}]] + 1.96 * table[[{sd}]]\n"
        f"difference <- table[[{count}]][1] - table[[{count}]][2]\n"
        f"error <- 1.96 * (table[[{sd}]][1] + table[[{sd}]][2])"
    )
