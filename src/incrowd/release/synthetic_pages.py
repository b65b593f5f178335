"""What the README of synthetic rows is filled with: columns, measured tables, worked examples."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from incrowd.release.measured import list_headers
from incrowd.release.synthetic_part import MeasuredTable, SyntheticPart

if TYPE_CHECKING:
    from incrowd.release.certificate import Certificate

Quote = Callable[[str], str]


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


def fill_synthetic(certificate: Certificate, quote: Quote, code: Quote) -> dict[str, Any]:
    """Return the values that the README of synthetic rows needs besides those of all pages.

    ``quote`` writes a text as Python and R both read it, ``code`` as Markdown.
    """
    part = certificate.synthetic
    assert part is not None
    first = next(item for item in part.measured if item.columns == part.columns[:1])
    second = next((item for item in part.measured if len(item.columns) == 2), None)
    return {
        "part": part,
        "data": certificate.table.release,
        "listed": [_describe_column(certificate, part, name) for name in part.columns],
        "rules": [json.dumps(rule, sort_keys=True, ensure_ascii=False) for rule in part.rules],
        "tables_measured": [_describe_table(item, code) for item in part.measured],
        "first": first,
        "second": second,
        "examples": _write_examples(part, first, second, quote),
    }


def _describe_column(certificate: Certificate, part: SyntheticPart, name: str) -> _Column:
    scheme = certificate.table.scheme[name]
    points = part.points.get(name)
    words = "values drawn within intervals" if points and points.drawn else "values"
    return _Column(name, part.types[name], words, scheme.file or "", scheme.other)


def _describe_table(table: MeasuredTable, code: Quote) -> _Table:
    if not table.columns:
        return _Table(table.file, "the number of rows", table.held)
    parts = [
        code(name) + (f" (level {level})" if level else "")
        for name, level in zip(table.columns, table.levels, strict=True)
    ]
    return _Table(table.file, ", ".join(parts), table.held)


def _write_examples(
    part: SyntheticPart, first: MeasuredTable, second: MeasuredTable | None, quote: Quote
) -> dict[str, str]:
    total = next(item for item in part.measured if not item.columns)
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
        "one, other = table.iloc[0], table.iloc[1]\n"
        f"interval = one[{count}] - 1.96 * one[{sd}], one[{count}] + 1.96 * one[{sd}]\n"
        f"difference = one[{count}] - other[{count}]\n"
        f"error = 1.96 * (one[{sd}] + other[{sd}])"
    )


def _pair_r(table: MeasuredTable, quote: Quote) -> str:
    count, sd = _names(table, quote)
    return (
        f'table <- read.csv("{table.file}", check.names = FALSE, na.strings = character(0))\n'
        "one <- table[1, ]\nother <- table[2, ]\n"
        f"interval <- one[[{count}]] + c(-1.96, 1.96) * one[[{sd}]]\n"
        f"difference <- one[[{count}]] - other[[{count}]]\n"
        f"error <- 1.96 * (one[[{sd}]] + other[[{sd}]])"
    )
