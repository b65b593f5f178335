"""Describe a column for whoever looks at a table: its kind, nulls, values, and how they spread.

All of it is read from the table, for the curator alone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import numpy as np

from incrowd.codes.values import canonicalize_value, make_sort_key, parse_iso_day, parse_number
from incrowd.engine.table import Table, TableError

LOOKED_AT = 200_000  # rows from whose values the spread is drawn
LARGE = 2_000_000  # rows of a table that is not counted for a look
_BARS, _EXAMPLES = 12, 3

Kind: TypeAlias = Literal[
    "whole numbers", "numbers", "days", "times", "yes or no", "text", "nothing", "not single values"
]


@dataclass(frozen=True)
class ColumnDescription:
    """What a column holds. ``bars`` are values, or ranges of numbers, with how many rows have them.

    ``rest`` are the rows whose values have no bar. ``looked_at`` is how many rows the bars and the
    examples are taken from; ``nulls`` and ``distinct`` are those of the whole table, or, where
    ``large`` says that it would take long, of the rows looked at.
    """

    column: str
    kind: Kind
    rows: int
    nulls: int
    distinct: int
    examples: tuple[str, ...]
    bars: tuple[tuple[str, int], ...]
    rest: int
    looked_at: int
    large: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the description as plain values, for JSON."""
        return asdict(self)


def describe_column(table: Table, column: str) -> ColumnDescription:
    """Describe what one column holds; of a large table, by its first rows."""
    rows = table.rows()
    large = rows > LARGE
    head = table.head(LOOKED_AT) if rows > LOOKED_AT else table
    scanned = head if large else table
    seen = min(rows, LOOKED_AT)
    try:
        counts = count_column_values(head, column)
    except TableError:
        return ColumnDescription(column, "not single values", rows, 0, 0, (), (), 0, seen)
    kind = _detect_kind(counts)
    texts: dict[str, int] = {}
    for value, count in counts.items():
        if (text := canonicalize_value(value)) is not None:
            texts[text] = texts.get(text, 0) + count
    bars = _group_numbers(texts) if kind in ("whole numbers", "numbers") else ()
    bars = _group_days(texts) if kind in ("days", "times") else bars
    often = sorted(texts, key=lambda text: (-texts[text], make_sort_key(text)))
    bars = bars or tuple((text, texts[text]) for text in often[:_BARS])
    return ColumnDescription(
        column=column,
        kind=kind,
        rows=rows,
        nulls=(nulls := scanned.count_missing(column)),
        distinct=len(texts) if scanned is head else table.count_distinct([column]) - bool(nulls),
        examples=tuple(often[:_EXAMPLES]),
        bars=bars,
        rest=sum(texts.values()) - sum(count for _, count in bars),
        looked_at=seen,
        large=large,
    )


def count_column_values(table: Table, column: str) -> dict[object, int]:
    """Count the rows that hold each value of a column."""
    column_values: dict[object, int] = {}
    for tally in table.iter_tallies([column]):
        counts = np.zeros(len(tally.values[0]), dtype=np.int64)
        np.add.at(counts, tally.codes[:, 0], tally.counts)
        for value, count in zip(tally.values[0], counts.tolist(), strict=True):
            column_values[value] = column_values.get(value, 0) + count
    return column_values


def _detect_kind(counts: Mapping[object, int]) -> Kind:
    values = [value for value in counts if value is not None]
    kinds = {type(value) for value in values}
    if not values:
        return "nothing"
    if kinds <= {bool}:
        return "yes or no"
    if kinds <= {int}:
        return "whole numbers"
    if kinds <= {int, float, Decimal}:
        return "numbers"
    if kinds <= {dt.date}:
        return "days"
    if kinds <= {dt.datetime, dt.date, dt.time}:
        return "times"
    if all(parse_number(str(value)) is not None for value in values):
        return "numbers"
    if all(isinstance(value, str) and parse_iso_day(value) is not None for value in values):
        return "days"
    return "text"


def _group_numbers(texts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Group numbers in ranges of a round width; few numbers have a bar each."""
    pairs = sorted(
        (x, count) for text, count in texts.items() if (x := parse_number(text)) is not None
    )
    if len(pairs) <= _BARS:
        return tuple((str(x), count) for x, count in pairs)
    low, high = pairs[0][0], pairs[-1][0]
    width = _round_up_width((high - low) / _BARS)
    first = (low // width) * width
    if first > low:  # // of a Decimal rounds toward 0
        first -= width
    sums: dict[int, int] = {}
    for x, count in pairs:
        at = int((x - first) / width)
        sums[at] = sums.get(at, 0) + count
    return tuple(
        (
            f"{_format_decimal(first + at * width)} to {_format_decimal(first + (at + 1) * width)}",
            sums.get(at, 0),
        )
        for at in range(max(sums) + 1)
    )


def _group_days(texts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Group days by month where they are within a year, else by year or ranges of years.

    Few have a bar each. Times of no day have none.
    """
    if len(texts) <= _BARS:
        return tuple(sorted(texts.items()))
    days = [
        (day, count) for text, count in texts.items() if (day := parse_iso_day(text)) is not None
    ]
    if len(days) < len(texts):
        return ()
    low, high = min(days)[0], max(days)[0]
    months = 12 * (high.year - low.year) + high.month - low.month + 1
    by_month = months <= _BARS
    sums = dict.fromkeys(_list_months(low, months), 0) if by_month else {}
    for day, count in days:
        name = f"{day:%Y-%m}" if by_month else str(day.year)
        sums[name] = sums.get(name, 0) + count
    return tuple(sums.items()) if by_month else _group_numbers(sums)


def _list_months(first: dt.date, count: int) -> list[str]:
    ordered = [12 * first.year + first.month - 1 + at for at in range(count)]
    return [f"{month // 12:04}-{month % 12 + 1:02}" for month in ordered]


def _round_up_width(width: Decimal) -> Decimal:
    """Return the next larger width that is 1, 2 or 5 times a power of ten."""
    unit = Decimal(10) ** width.adjusted()
    return next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= width)


def _format_decimal(x: Decimal) -> str:
    text = format(x.normalize(), "f")
    return "0" if text == "-0" else text
