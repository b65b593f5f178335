"""Columns that are functions of others: powers, recodings, 0/1 dummies, sums and differences.

They tell nothing that the others do not, and take their share of detail and of noise. So a draft
proposes to drop them, with the reason, for the curator to confirm. Found in the first rows, for
the curator alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from incrowd.arrays import Bools, Codes, Counts, Floats
from incrowd.codes.frequency import Frequencies
from incrowd.codes.values import canonicalize_value, parse_number

_LEAST_ROWS = 30
_REPEATS = 5  # rows per value of a source, on average: with fewer, all are functions of it
_MOST_VALUES = 200  # of a source that decides coarser columns: ids of people have more
_LEAST_SEEN = 5  # rows of a dummy's rarer value, among values of the source that repeat
_MOST_COMBINED = 40  # columns of numbers whose sums and products are compared
_NEAR = 1e-9  # of the size of a sum


@dataclass(frozen=True)
class DerivedColumn:
    """A column that others determine in every row looked at, and in which way."""

    column: str
    sources: tuple[str, ...]
    reason: str


@dataclass(frozen=True, eq=False)
class _ColumnValues:
    """A column's tuples: the code of each value, and its number; NaN where there is none."""

    name: str
    codes: Codes
    distinct: int
    numbers: Floats | None

    @property
    def is_number(self) -> bool:
        return self.numbers is not None


def find_derived_columns(
    values: Mapping[str, Sequence[object]], frequencies: Frequencies
) -> list[DerivedColumn]:
    """Find the columns that are functions of others that stay.

    Of two that determine each other a text stays, then the one with the shorter name.

    Args:
        values: The values of each column, as the codes of the tuples count them.
        frequencies: The distinct tuples of the rows looked at, with how many rows have each.

    Returns:
        The columns to drop. None of them is a source of another.
    """
    if frequencies.total < _LEAST_ROWS:
        return []
    every = [
        _read_column(name, listed, frequencies.codes[:, at])
        for at, (name, listed) in enumerate(values.items())
    ]
    remaining = [column for column in every if column.distinct > 1]
    derived: list[DerivedColumn] = []
    order = {
        column.name: (column.is_number, len(column.name), at) for at, column in enumerate(remaining)
    }
    for column in sorted(remaining, key=lambda column: order[column.name], reverse=True):
        others = [other for other in remaining if other is not column]
        source = _find_source(column, others, frequencies.counts)
        if source is not None:
            derived.append(source)
            remaining = others
    return [*derived, *_find_combinations(remaining, frequencies.counts)]


def _read_column(name: str, listed: Sequence[object], codes: Codes) -> _ColumnValues:
    texts = [canonicalize_value(value) for value in listed]
    numbers = [None if text is None else parse_number(text) for text in texts]
    is_numeric = all(
        number is not None for text, number in zip(texts, numbers, strict=True) if text is not None
    )
    by_code = np.array([*(np.nan if x is None else float(x) for x in numbers), np.nan])
    met, places = np.unique(codes, return_inverse=True)
    within = np.minimum(codes, len(numbers))  # a code beyond the list is that of null
    return _ColumnValues(
        name, places.astype(np.int32), len(met), by_code[within] if is_numeric else None
    )


def _find_source(
    column: _ColumnValues, others: Sequence[_ColumnValues], counts: Counts
) -> DerivedColumn | None:
    """Return the other column that determines a column, if it does so in one of three ways.

    A recoding has a value for each of the other's; a number is one for each number of the other;
    a dummy has two values. A text that another text determines, as a region by its city, stays: it
    may be the level at which the other is published.
    """
    rows = int(counts.sum())
    for other in others:
        if other.distinct * _REPEATS > rows or other.distinct < column.distinct:
            continue
        pairs = np.unique(other.codes.astype(np.int64) * column.distinct + column.codes)
        if len(pairs) > other.distinct:
            continue
        if column.distinct == other.distinct:
            if column.is_number or not other.is_number:  # a text stays rather than its code
                reason = f"each value belongs to one of '{other.name}'"
                return DerivedColumn(column.name, (other.name,), reason)
        elif other.distinct > _MOST_VALUES:
            continue
        elif column.distinct == 2:
            if _is_seen_often(column, other, counts):
                return DerivedColumn(column.name, (other.name,), f"follows from '{other.name}'")
        elif column.is_number and other.is_number:
            return DerivedColumn(column.name, (other.name,), f"a function of '{other.name}'")
    return None


def _is_seen_often(column: _ColumnValues, other: _ColumnValues, counts: Counts) -> bool:
    """Return whether chance cannot explain that another column determines a dummy."""
    repeats = np.bincount(other.codes, weights=counts)[other.codes] >= _REPEATS
    seen = np.bincount(column.codes[repeats], weights=counts[repeats], minlength=2)
    return float(seen.min()) >= _LEAST_SEEN


def _find_combinations(columns: Sequence[_ColumnValues], counts: Counts) -> Iterator[DerivedColumn]:
    """Yield the columns of numbers that are the sum or the product of two others that stay."""
    numbers = {
        column.name: column.numbers
        for column in columns
        if column.numbers is not None and column.distinct > 2
    }
    if len(numbers) > _MOST_COMBINED:
        return
    sources: set[str] = set()
    dropped: set[str] = set()
    for first, second in combinations(numbers, 2):
        combined = {
            "+": numbers[first] + numbers[second], "×": numbers[first] * numbers[second],
        }  # fmt: skip
        for total, (sign, values) in product(numbers, combined.items()):
            if total in {first, second} | sources | dropped or {first, second} & dropped:
                continue
            if _is_equal(numbers[total], values, counts):
                dropped.add(total)
                sources |= {first, second}
                yield DerivedColumn(total, (first, second), f"'{first}' {sign} '{second}'")


def _is_equal(total: Floats, combined: Floats, counts: Counts) -> bool:
    """Return whether a column is a combination of others, in every row where all are known."""
    head = slice(0, 50)  # which tells of nearly all that they are none
    close = _is_close(total[head], combined[head])
    if not close.all():
        return False
    is_known = ~np.isnan(total) & ~np.isnan(combined)
    return bool(counts[is_known].sum() >= _LEAST_ROWS and _is_close(total, combined).all())


def _is_close(total: Floats, combined: Floats) -> Bools:
    """Return where both are equal, or one is unknown."""
    size = np.maximum(np.abs(total), np.abs(combined))
    close: Bools = np.abs(total - combined) <= _NEAR * np.maximum(size, 1)
    return close | np.isnan(total) | np.isnan(combined)
