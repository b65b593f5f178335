"""Noisy columns of categories: the rows that classes show, by randomized response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from incrowd.arrays import Bools, Codes, Places
from incrowd.codes.counted_table import DistinctRows
from incrowd.codes.values import canonicalize_value
from incrowd.errors import IncrowdError
from incrowd.measure.category_loss import CategoryLoss, count_categories, measure_categories
from incrowd.privacy.k_epsilon import split_epsilon
from incrowd.privacy.randomized_response import choose_keep_rate, randomize_categories
from incrowd.privacy.randomness import Randomness
from incrowd.spec.model import Column


@dataclass(frozen=True, eq=False)
class RandomizedColumn:
    """A column of categories: the category of each row, and how likely it is kept."""

    name: str
    values: tuple[str, ...]
    keep: float
    codes: Codes

    def draw(self, bits: Randomness) -> Codes:
        """Draw what each row shows."""
        return randomize_categories(self.codes, self.keep, len(self.values), bits)

    def measure(self, released: Codes, is_kept: Bools) -> CategoryLoss:
        """Measure what the response has done to the rows that are shown."""
        number = len(self.values)
        return measure_categories(
            self.values,
            count_categories(self.codes, number),
            count_categories(released[is_kept], number),
            self.keep,
            int((released == self.codes)[is_kept].sum()),
        )


def list_categories(column: Column) -> tuple[str, ...]:
    """Return the categories of a column: those declared, and the one for all others."""
    listed = dict.fromkeys(canonicalize_value(value) or "" for value in column.values or ())
    return (*listed, *([column.other] if column.other and column.other not in listed else []))


def choose_keep_rates(noisy: Mapping[str, Column], epsilon: float) -> dict[str, float]:
    """Return how likely each column of categories keeps a category; it depends on no data.

    Epsilon is shared by all noisy columns, those of numbers among them, by weight.
    """
    parts: Sequence[Fraction] = split_epsilon(epsilon, [column.weight for column in noisy.values()])
    return {
        name: choose_keep_rate(part, len(list_categories(column)))
        for (name, column), part in zip(noisy.items(), parts, strict=True)
        if column.values
    }


def make_randomized_columns(
    rows: DistinctRows, tuples: Places, noisy: Mapping[str, Column], epsilon: float
) -> tuple[RandomizedColumn, ...]:
    """Return the columns of categories, of the rows that are shown."""
    names, width = list(rows.kept), len(rows.counted.names)
    columns = []
    for name, keep in choose_keep_rates(noisy, epsilon).items():
        by_value = encode_categories(name, noisy[name], rows.kept[name])
        codes = rows.frequencies.codes[tuples, width + names.index(name)]
        columns.append(RandomizedColumn(name, list_categories(noisy[name]), keep, by_value[codes]))
    return tuple(columns)


def encode_categories(name: str, column: Column, listed: Sequence[object]) -> Codes:
    """Return the category of each value; what is not declared is `other`, or refused."""
    values = list_categories(column)
    places = {value: at for at, value in enumerate(values)}
    other = None if column.other is None else places[column.other]
    codes = []
    for value in listed:
        text = canonicalize_value(value)
        place = other if text is None else places.get(text, other)
        if place is None:
            what = "a missing value" if text is None else f"'{text}'"
            raise IncrowdError(
                f"Column '{name}': {what} is not among `values`. Add it, or `other: LABEL` for all "
                "values that are not listed."
            )
        codes.append(place)
    return np.array(codes, dtype=np.int32)
