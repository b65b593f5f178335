"""Numbers shown by class: the mean or the median of a kept column, one for all rows of a class.

**Claim.** Each published combination of labels and of these numbers occurs in at least k rows, so
that k-anonymity holds over these columns as well: all rows of a class show the same number. A
number stands for at least k values: a class with fewer shows none (null), since the mean of one
value is that value. A class is told by its labels or, under MDAV, is a group of near rows: then
several groups may have the same labels, and the numbers tell them apart.

It is no protection against who knows other rows: n times the mean, less the others, is the value of
the last row, and a mean that lies far from all others reveals an extreme value in its class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from incrowd.anonymize.mdav import group_near_rows
from incrowd.arrays import Codes, Counts, Floats, Members, Progress
from incrowd.codes.axis import bound_classes, locate_points
from incrowd.codes.counted_table import DistinctRows
from incrowd.codes.frequency import Frequencies, merge_tuples, number_tuples
from incrowd.codes.values import canonicalize_value, parse_number
from incrowd.errors import IncrowdError
from incrowd.spec.model import AggregateName, Column

MOST_GROUPED = 100_000  # rows that MDAV groups in about a minute
_MOST_CATEGORIES = 64  # of a column without an order, each of which is a dimension then


@dataclass(frozen=True, eq=False)
class ShownRows:
    """Rows as they are shown: entries with the codes of labels, and of kept values.

    ``source`` is the tuple of all columns that an entry comes from, ``kept_values`` lists the
    values behind the codes of kept columns, those of the table first and then what classes show.
    ``groups`` is the group of each entry, where groups are not told by their labels.
    """

    labels: tuple[list[str | None], ...]
    label_codes: Codes
    kept_codes: Codes
    counts: Counts
    source: Members
    kept_values: dict[str, list[object]]
    groups: Members | None = None

    @property
    def published(self) -> Frequencies:
        """The distinct rows that are shown."""
        codes = np.column_stack([self.label_codes, self.kept_codes]).astype(np.int32)
        return merge_tuples(codes, self.counts)


def list_aggregates(columns: Mapping[str, Column]) -> dict[str, AggregateName]:
    """Return the columns that classes show by one number, and which one."""
    return {name: column.aggregate for name, column in columns.items() if column.aggregate}


def aggregate_classes(
    shown_rows: ShownRows, aggregates: Mapping[str, AggregateName], k: int
) -> ShownRows:
    """Replace the values of aggregated columns by the number of their class."""
    classes = shown_rows.groups
    if classes is None:
        classes = np.unique(number_tuples(shown_rows.label_codes), return_inverse=True)[1].ravel()
    kept_codes, kept_values = shown_rows.kept_codes.copy(), dict(shown_rows.kept_values)
    for at, name in enumerate(shown_rows.kept_values):
        if name not in aggregates:
            continue
        numbers = read_numbers(name, kept_values[name])[kept_codes[:, at]]
        by_class = aggregate_numbers(
            numbers, shown_rows.counts, classes, least=k, median=aggregates[name] == "median"
        )
        listed = list(kept_values[name])
        new, places = np.unique(by_class, return_inverse=True)  # one NaN, the last
        first = len(listed)
        kept_values[name] = [*listed, *(None if math.isnan(x) else x for x in new.tolist())]
        kept_codes[:, at] = first + places.ravel()[classes]
    return replace(shown_rows, kept_codes=kept_codes, kept_values=kept_values)


def read_numbers(name: str, values: Sequence[object]) -> Floats:
    """Return values as numbers, null as NaN; refuse anything else."""
    numbers = []
    for value in values:
        text = canonicalize_value(value)
        number = parse_number(text)
        if text is not None and number is None:
            raise IncrowdError(
                f"Column '{name}': '{text}' is not a number, and `aggregate` needs numbers. "
                "Correct the value, or remove `aggregate`."
            )
        numbers.append(math.nan if number is None else float(number))
    return np.array(numbers, dtype=np.float64)


def aggregate_numbers(
    numbers: Floats, counts: Counts, classes: Members, *, least: int, median: bool
) -> Floats:
    """Return the mean or median of each class, over its numbers; NaN where there are too few.

    Entries stand for so many rows each. The median of an even number of rows is the mean of the
    two in the middle.
    """
    number = int(classes.max(initial=-1)) + 1
    valid = ~np.isnan(numbers)
    values, rows, owner = numbers[valid], counts[valid], classes[valid]
    sizes = np.bincount(owner, weights=rows, minlength=number).astype(np.float64)
    if median:
        class_numbers = _find_medians(values, rows, owner, sizes)
    else:
        sums = np.bincount(owner, weights=values * rows, minlength=number)
        class_numbers = np.divide(sums, sizes, out=np.full(number, math.nan), where=sizes > 0)
    class_numbers[sizes < least] = math.nan
    return class_numbers


def _find_medians(values: Floats, rows: Counts, owner: Members, sizes: Floats) -> Floats:
    order = np.lexsort((values, owner))
    values, ends = values[order], np.cumsum(rows[order])
    has_values = sizes > 0
    before = np.append(0.0, np.cumsum(sizes))[:-1][has_values]  # rows of the classes before
    low = before + np.floor((sizes[has_values] - 1) / 2)
    high = before + np.floor(sizes[has_values] / 2)
    medians = np.full(len(sizes), math.nan)
    lower = values[np.searchsorted(ends, low, side="right")]
    medians[has_values] = (lower + values[np.searchsorted(ends, high, side="right")]) / 2
    return medians


def group_rows(
    rows: DistinctRows,
    columns: Mapping[str, Column],
    k: int,
    *,
    progress: Progress = lambda _done, _all: None,
) -> ShownRows:
    """Group rows by MDAV over generalized and aggregated columns together.

    Numbers, days and orders are standardized; two values of a column without an order are as far
    apart as two standard deviations of numbers. Of very many such values neighbors in the tree are
    near each other. Each group shows labels that cover its rows.
    """
    total = rows.frequencies.total
    if total > MOST_GROUPED:
        raise IncrowdError(
            f"Algorithm `mdav` compares every two rows, and takes {MOST_GROUPED:,} rows at most, "
            f"got {total:,}. Use `mondrian`."
        )
    if total < k:
        raise IncrowdError(f"Table: {total} rows, fewer than k = {k}. Nothing was written.")
    source = np.repeat(np.arange(len(rows.frequencies)), rows.frequencies.counts)
    axes, width = rows.counted.axes, len(rows.counted.names)
    points = locate_points(axes, rows.frequencies.codes[:, :width])
    parts = []
    for at, (name, axis) in enumerate(zip(rows.counted.names, axes, strict=True)):
        weight = math.sqrt(columns[name].weight)
        values, places = np.unique(points[source, at], return_inverse=True)
        if axis.ordered or len(values) > _MOST_CATEGORIES:
            parts.append(_standardize(points[source, at].astype(np.float64))[:, None] * weight)
        else:
            parts.append(np.eye(len(values))[places.ravel()] * math.sqrt(2) * weight)
    for at, name in enumerate(rows.kept, width):
        if columns[name].aggregate:
            numbers = read_numbers(name, rows.kept[name])[rows.frequencies.codes[source, at]]
            weight = math.sqrt(columns[name].weight)
            parts.append(np.nan_to_num(_standardize(numbers))[:, None] * weight)
    members = group_near_rows(np.hstack(parts), k, progress=progress)
    bounds = bound_classes(points[source], np.ones(total, dtype=np.int64), members)
    labels, codes = [], []
    for at, axis in enumerate(axes):
        texts, label_codes = axis.make_labels(bounds.low[:, at], bounds.high[:, at])
        labels.append(texts)
        codes.append(label_codes[members])
    return ShownRows(
        tuple(labels), np.column_stack(codes).astype(np.int32),
        rows.frequencies.codes[source, width:], np.ones(total, dtype=np.int64), source,
        {name: list(values) for name, values in rows.kept.items()}, members,
    )  # fmt: skip


def _standardize(values: Floats) -> Floats:
    """Return values with mean 0 and standard deviation 1; NaN stays."""
    if np.isnan(values).all():
        return values
    deviation = float(np.nanstd(values)) or 1.0
    return (values - float(np.nanmean(values))) / deviation
