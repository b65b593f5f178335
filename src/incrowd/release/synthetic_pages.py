"""What the README of synthetic rows is filled with: columns, measured tables, worked examples."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from incrowd.release.code_examples import RANGES
from incrowd.release.measured import has_counts, list_headers
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
    counts: bool
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
    pairs = [
        table
        for table in part.measured
        if len(table.columns) == 2 and has_counts(table, part.measured)
    ]
    numbers = [table for table in single if _has_numbers(table, scheme)]
    first = _choose_smallest(single, scheme)
    second = _choose_smallest(pairs, scheme) if pairs else None
    numeric = _choose_smallest(numbers, scheme) if numbers else None
    together = [table.columns for table in part.measured if table.held and len(table.columns) > 1]
    return {
        "part": part,
        "data": certificate.table.release,
        "listed": [_describe_column(certificate, part, name) for name in part.columns],
        "rules": [json.dumps(rule, sort_keys=True, ensure_ascii=False) for rule in part.rules],
        "tables_measured": [
            _describe_table(table, part, scheme, code, prose) for table in part.measured
        ],
        "together": [list(names) for names in dict.fromkeys(map(tuple, together))],
        "fine": _list_fine_columns(certificate, single),
        "ranges": any(
            scheme[name].labels in RANGES and not _is_drawn(part, name) for name in part.columns
        ),
        "first": first,
        "second": second,
        "numeric": numeric,
        "worked": _write_examples(part, (first, second, numeric), quote),
    }


def _is_drawn(part: SyntheticPart, name: str) -> bool:
    points = part.points.get(name)
    return points is not None and points.drawn


def _describe_column(certificate: Certificate, part: SyntheticPart, name: str) -> _Column:
    scheme = certificate.table.scheme[name]
    words = scheme.shows[0] if scheme.shows else "values"
    if _is_drawn(part, name):
        words = f"drawn at random within {words.replace('whole numbers', 'steps of 1')}"
    return _Column(name, part.types[name], words, scheme.file or "", scheme.other)


def _describe_table(
    table: MeasuredTable, part: SyntheticPart, scheme: Scheme, code: Quote, prose: Quote
) -> _Table:
    if not table.columns:
        return _Table(table.file, "the number of rows", True, table.held)
    parts = [
        code(name) + (f": {prose(_describe_level(scheme[name], level))}" if level else "")
        for name, level in zip(table.columns, table.levels, strict=True)
    ]
    counts = has_counts(table, part.measured)
    return _Table(table.file, "; ".join(parts), counts, table.held)


def _describe_level(column: SchemeColumn, level: int) -> str:
    return column.shows[level] if level < len(column.shows) else f"level {level}"


def _has_numbers(table: MeasuredTable, scheme: Scheme) -> bool:
    """Return whether a table of one column counts numbers, each by itself."""
    (name,) = table.columns
    return table.levels == [0] and scheme[name].labels in ("numbers", "numbers or text")


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
    part: SyntheticPart,
    tables: tuple[MeasuredTable, MeasuredTable | None, MeasuredTable | None],
    quote: Quote,
) -> dict[str, str]:
    first, second, numeric = tables
    total = next(table for table in part.measured if not table.columns)
    examples = {
        "share_python": _share_python(first, total, quote),
        "share_r": _share_r(first, total, quote),
    }
    if second is not None:
        examples["pair_python"] = _pair_python(second, quote)
        examples["pair_r"] = _pair_r(second, quote)
    if numeric is not None:
        examples["mean_python"] = _mean_python(numeric, total, quote)
        examples["mean_r"] = _mean_r(numeric, total, quote)
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


# The mean is c + sum (x - c) count / n, for the mean c of the listed numbers x, and n people with a
# number: all but those in other cells. As the weights x - c sum to 0, they are uncorrelated with n,
# and what a centered table leaves out cancels. Of a centered table with a cells, sd^2 is at least
# 1 - 1/a times the variance that counts here; of any other table it is that variance.


def _mean_python(table: MeasuredTable, total: MeasuredTable, quote: Quote) -> str:
    count, sd = _names(table, quote)
    rows, rows_sd = _names(total, quote)
    cells = " * len(table) / (len(table) - 1)" if table.centered else ""
    return (
        "import pandas as pd\n\n"
        f'rows = pd.read_csv("{total.file}")\n'
        f'table = pd.read_csv("{table.file}", keep_default_na=False)\n'
        f'x = pd.to_numeric(table[{quote(table.columns[0])}], errors="coerce")\n'
        "others = table[x.isna()]\n"
        f"n = rows[{rows}][0] - others[{count}].sum()\n"
        f"mean = x.mean() + ((x - x.mean()) * table[{count}]).sum() / n\n"
        f"variance = ((x - x.mean()) ** 2 * table[{sd}] ** 2).sum(){cells}\n"
        f"variance_n = rows[{rows_sd}][0] ** 2 + (others[{sd}] ** 2).sum()\n"
        "error = 1.96 * (variance + (mean - x.mean()) ** 2 * variance_n) ** 0.5 / n"
    )


def _mean_r(table: MeasuredTable, total: MeasuredTable, quote: Quote) -> str:
    count, sd = _names(table, quote)
    rows, rows_sd = _names(total, quote)
    cells = " * nrow(table) / (nrow(table) - 1)" if table.centered else ""
    return (
        f'rows <- read.csv("{total.file}")\n'
        f'table <- read.csv("{table.file}", check.names = FALSE, na.strings = character(0))\n'
        f"x <- suppressWarnings(as.numeric(table[[{quote(table.columns[0])}]]))\n"
        "others <- table[is.na(x), ]\n"
        "center <- mean(x, na.rm = TRUE)\n"
        f"n <- rows[[{rows}]][1] - sum(others[[{count}]])\n"
        f"mean <- center + sum((x - center) * table[[{count}]], na.rm = TRUE) / n\n"
        f"variance <- sum((x - center)^2 * table[[{sd}]]^2, na.rm = TRUE){cells}\n"
        f"variance_n <- rows[[{rows_sd}]][1]^2 + sum(others[[{sd}]]^2)\n"
        "error <- 1.96 * sqrt(variance + (mean - center)^2 * variance_n) / n"
    )
