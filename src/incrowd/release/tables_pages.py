"""What the README of tables of counts is filled with: columns, tables, worked examples."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from incrowd.release.tables_part import WITHIN, TabulatedTable, TabulationPart

if TYPE_CHECKING:
    from incrowd.release.certificate import Certificate, SchemeColumn

Quote: TypeAlias = Callable[[str], str]
_MOST_SHOWN = 200  # tables that the README lists one by one


@dataclass(frozen=True)
class _ListedTable:
    """A table as the README lists it: its file, columns, size and mean error of a cell."""

    file: str
    words: str
    lines: int
    error: str


@dataclass(frozen=True)
class _ListedColumn:
    """A column: where its values are listed, and what each level shows."""

    name: str
    source: str
    levels: list[tuple[int, str]]
    other: str | None


def fill_tables(
    certificate: Certificate, quote: Quote, code: Quote, prose: Quote
) -> dict[str, Any]:
    """Return the values that the README of tables needs besides those of all pages.

    ``quote`` writes a text as Python and R both read it, ``code`` and ``prose`` as Markdown.
    """
    part = certificate.tabulation
    assert part is not None
    schemes = {
        name: scheme for table in certificate.tables for name, scheme in table.scheme.items()
    }
    listed = [
        _describe_table(certificate, at, entry, code, prose)
        for at, entry in enumerate(part.tables[:_MOST_SHOWN])
    ]
    first = _choose_example(certificate, part)
    return {
        "part": part,
        "listed": listed,
        "unlisted": len(part.tables) - len(listed),
        "shown": [_describe_column(name, schemes[name], part) for name in part.columns],
        "example": certificate.tables[first].release.file,
        "worked": _write_examples(certificate, part, first, quote),
        "exports": [export.file for export in part.exports],
        "within": WITHIN,
    }


def _describe_table(
    certificate: Certificate, at: int, entry: TabulatedTable, code: Quote, prose: Quote
) -> _ListedTable:
    table = certificate.tables[at]
    words = [
        code(name) + (f" ({prose(_describe_level(table.scheme[name], level))})" if level else "")
        for name, level in zip(entry.columns, entry.levels, strict=True)
    ]
    error = math.ceil(WITHIN * entry.rmse)
    return _ListedTable(table.release.file, " by ".join(words), table.release.rows, f"{error:,}")


def _describe_level(column: SchemeColumn, level: int) -> str:
    return column.shows[level] if level < len(column.shows) else f"level {level}"


def _describe_column(name: str, scheme: SchemeColumn, part: TabulationPart) -> _ListedColumn:
    is_rooted = bool(scheme.sizes) and len(scheme.sizes) > 1 and scheme.sizes[-1] == 1
    root = len(scheme.sizes) - int(is_rooted)
    lowest = min(
        dict(zip(table.columns, table.levels, strict=True)).get(name, root) for table in part.tables
    )
    highest = root if part.total is not None else max(
        dict(zip(table.columns, table.levels, strict=True)).get(name, 0) for table in part.tables
    ) + 1  # fmt: skip
    levels = [(level, _describe_level(scheme, level)) for level in range(lowest, highest)]
    levels += [] if part.total is None else [(root, "the total")]
    return _ListedColumn(name, scheme.file or "", levels, scheme.other)


def _choose_example(certificate: Certificate, part: TabulationPart) -> int:
    """Return the table that is read most easily: of several columns, with few lines."""
    return min(
        range(len(part.tables)),
        key=lambda at: (len(part.tables[at].columns) < 2, certificate.tables[at].release.rows),
    )


def _write_examples(
    certificate: Certificate, part: TabulationPart, at: int, quote: Quote
) -> dict[str, str]:
    """Write how to load a table, to keep its finest cells, and to sum some of them."""
    entry, file = part.tables[at], certificate.tables[at].release.file
    is_csv = file.endswith(".csv")
    pairs = list(zip(entry.columns, entry.levels, strict=True))
    labels = ", ".join(quote(name) for name in entry.columns)
    texts = ", ".join(f"{quote(name)}: str" for name in entry.columns)
    read = (
        f'pd.read_csv("{file}", dtype={{{texts}}}, keep_default_na=False, na_values=[""])'
        if is_csv else f'pd.read_parquet("{file}")'
    )  # fmt: skip
    finest = " & ".join(f"(table[{quote(f'{name}_level')}] == {level})" for name, level in pairs)
    types = ", ".join(f'{quote(name)} = "character"' for name in entry.columns)
    load_r = (
        f'table <- read.csv("{file}", check.names = FALSE, na.strings = "", encoding = "UTF-8",\n'
        f"                  colClasses = c({types}))"
        if is_csv else f'table <- arrow::read_parquet("{file}")'
    )  # fmt: skip
    finest_r = " & ".join(f"table[[{quote(f'{name}_level')}]] == {level}" for name, level in pairs)
    first, last = quote(entry.columns[0]), quote(entry.columns[-1])
    others = f"[{labels}]" if len(pairs) < 2 else f"[{', '.join(map(quote, entry.columns[:-1]))}]"
    sheet = (
        f"sheet = cells.pivot(index={others}, columns={last}, values=\"count\")"
        if len(pairs) > 1 else f"sheet = cells.set_index({first})[\"count\"]"
    )  # fmt: skip
    rows = " + ".join(f"`{_escape(name)}`" for name in entry.columns)
    sheet_r = f"sheet <- xtabs(count ~ {rows}, cells, addNA = TRUE)"
    return {
        "load_python": f"import pandas as pd\n\ntable = {read}\ncells = table[{finest}]\n{sheet}",
        "load_r": f"{load_r}\ncells <- table[{finest_r}, ]\n{sheet_r}",
        "sum_python": (
            "some = cells.head(3)  # any lines, none of which contains another\n"
            'estimate = some["estimate"].sum()\n'
            'error = 1.96 * some["sd"].sum()'
        ),
        "sum_r": (
            "some <- head(cells, 3)  # any lines, none of which contains another\n"
            "estimate <- sum(some$estimate)\n"
            "error <- 1.96 * sum(some$sd)"
        ),
    }


def _escape(name: str) -> str:
    """Return a name between backticks of R."""
    return json.dumps(name, ensure_ascii=False)[1:-1].replace("`", "\\`")
