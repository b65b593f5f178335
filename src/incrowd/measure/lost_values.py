"""Values that a release lost: values, pairs of values and whole columns; for the curator alone.

A table of 15,000 tests may keep nine rows of ten and still lose half of the positive ones, because
rare values lie in small groups. So each value of a column with few values is compared with the
release as a whole, and each pair of two such values with the values themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from incrowd.arrays import Bools, Codes, Floats
from incrowd.codes.counted_table import CountedTable, PublishedTable
from incrowd.codes.frequency import Frequencies, map_levels, merge_tuples
from incrowd.codes.hierarchy import ROOT, Hierarchy
from incrowd.codes.values import canonicalize_value
from incrowd.findings import Finding, format_percent, make_finding

MOST_LABELS = 16  # of a column whose values are compared
LEAST_ROWS = 20  # of a value that is compared
LOST = 0.25  # of the rows that it should have kept: a value that lost more is named
_CHANCE = 2.5  # standard deviations of a random choice of rows, which it must exceed
_STORED = 100
_NAMED_VALUES, _NAMED_PAIRS, _NAMED_COLUMNS = 8, 4, 12


@dataclass(frozen=True)
class LostValue:
    """A value of a column, or of each of two, that lost clearly more rows than the rest.

    ``rows`` of the table have it, ``released`` rows of the release; ``lost`` is the share that is
    missing, from 0 to 1. ``share_before`` and ``share_after`` are its shares of all rows.
    """

    columns: tuple[str, ...]
    labels: tuple[str | None, ...]
    rows: int
    released: int
    lost: float
    share_before: float
    share_after: float

    @property
    def name(self) -> str:
        """The value with its column, or both values with theirs."""
        pairs = zip(self.columns, self.labels, strict=True)
        return " with ".join(f"{name} = {'null' if x is None else x}" for name, x in pairs)

    @property
    def description(self) -> str:
        """Its name, and how many of its rows are missing."""
        share = "all" if self.released == 0 else format_percent(self.lost)
        return f"{self.name} ({share} of {self.rows:,} rows{self._shift})"

    @property
    def _shift(self) -> str:
        if len(self.columns) > 1 or not self.released:
            return ""
        return f", share {format_percent(self.share_before)} → {format_percent(self.share_after)}"


@dataclass(frozen=True)
class LostValues:
    """The losses of a release: values and pairs, the worst first, and suppressed columns.

    Of very many values or pairs the worst are listed, and ``more_values`` and ``more_pairs`` are
    how many others there are.
    """

    values: tuple[LostValue, ...] = ()
    pairs: tuple[LostValue, ...] = ()
    more_values: int = 0
    more_pairs: int = 0
    nothing_shown: tuple[str, ...] = ()

    def findings(self) -> list[Finding]:
        """Return at most three: values, pairs, columns; each names a few and counts the others."""
        findings = []
        if self.values:
            names = [value.description for value in self.values]
            names_shown, more = _take_first(names, _NAMED_VALUES, self.more_values)
            findings.append(make_finding("VALUES_LOST", listed=names_shown, more=more))
        if self.pairs:
            names = [pair.description for pair in self.pairs]
            names_shown, more = _take_first(names, _NAMED_PAIRS, self.more_pairs)
            findings.append(make_finding("PAIRS_LOST", listed=names_shown, more=more))
        if self.nothing_shown:
            names_shown, more = _take_first(self.nothing_shown, _NAMED_COLUMNS)
            findings.append(make_finding("COLUMNS_SUPPRESSED", listed=names_shown, more=more))
        return findings


def _take_first(names: Sequence[str], limit: int, more: int = 0) -> tuple[list[str], int]:
    return list(names[:limit]), max(len(names) + more - limit, 0)


@dataclass(frozen=True, eq=False)
class ColumnLabels:
    """A column of two tables of codes: its name, its place, and the label of each code."""

    name: str
    at: int
    before: Sequence[str | None]
    after: Sequence[str | None]


def find_lost_values(
    columns: Sequence[ColumnLabels],
    before: Frequencies,
    after: Frequencies,
    nothing_shown: Sequence[str] = (),
) -> LostValues:
    """Find the values and the pairs of values that lost far more rows than others.

    A value of at least 20 rows is named if it kept less than three quarters of the share of rows
    that the release keeps of all, and less than a random choice of rows would explain. A pair is
    held against what each of its two values kept, so that it is not named for what one of them
    lost. Columns with more than 16 labels, and those that show nothing, are not compared.
    """
    names = tuple(nothing_shown)
    if not before.total or not after.total:
        return LostValues(nothing_shown=names)
    overall = min(after.total / before.total, 1.0)
    small = [
        _ComparedColumn.from_column(column, before, after)
        for column in columns
        if column.name not in nothing_shown
    ]
    comparable = [column for column in small if column is not None]
    totals = before.total, after.total
    values = [
        value for column in comparable for value in column.iterate_lost_values(overall, totals)
    ]
    rows_before, rows_after = (
        merge_tuples(np.column_stack(codes).astype(np.int32), rows.counts) if comparable else rows
        for codes, rows in (
            ([column.codes for column in comparable], before),
            ([column.shown for column in comparable], after),
        )
    )
    pairs = [
        pair
        for (a, column), (b, other) in combinations(enumerate(comparable), 2)
        for pair in _iterate_lost_pairs((column, a), (other, b), rows_before, rows_after, overall)
    ]
    values.sort(key=_make_sort_key)
    pairs.sort(key=_make_sort_key)
    return LostValues(
        tuple(values[:_STORED]), tuple(pairs[:_STORED]),
        max(len(values) - _STORED, 0), max(len(pairs) - _STORED, 0), names,
    )  # fmt: skip


def _make_sort_key(value: LostValue) -> tuple[float, int, str]:
    return -value.lost, -value.rows, value.name


@dataclass(frozen=True, eq=False)
class _ComparedColumn:
    """A column with few labels: the label of each tuple before and after, and their rows."""

    name: str
    labels: list[str | None]
    codes: Codes
    shown: Codes
    rows: Floats
    released: Floats

    @classmethod
    def from_column(
        cls, column: ColumnLabels, before: Frequencies, after: Frequencies
    ) -> _ComparedColumn | None:
        """Code both tables by the labels of the table; None if there are too many."""
        codes_before, codes_after = before.codes[:, column.at], after.codes[:, column.at]
        labels_used = {column.before[code] for code in np.unique(codes_before).tolist()}
        if len(labels_used) > MOST_LABELS:
            return None
        labels = sorted(labels_used, key=lambda label: (label is None, label or ""))
        places = {label: place for place, label in enumerate(labels)}
        unknown = len(labels)  # labels that the table does not have
        codes, published_codes = (
            np.array([places.get(text, unknown) for text in texts], dtype=np.int32)[column_codes]
            for texts, column_codes in ((column.before, codes_before), (column.after, codes_after))
        )
        rows, released = (
            np.bincount(column_codes, weights=counts, minlength=unknown + 1)[:unknown].astype(
                np.float64
            )
            for column_codes, counts in ((codes, before.counts), (published_codes, after.counts))
        )
        return cls(column.name, labels, codes, published_codes, rows, released)

    @property
    def kept_share(self) -> Floats:
        """The share of the rows of each label that the release has, at most 1."""
        return np.minimum(self.released / np.maximum(self.rows, 1), 1.0)

    def iterate_lost_values(self, overall: float, totals: tuple[int, int]) -> Iterator[LostValue]:
        """Yield the labels that lost more than the table did."""
        rate = np.full(len(self.labels), overall)
        for at in np.flatnonzero(_is_lost(self.rows, self.released, rate)).tolist():
            rows, released = int(self.rows[at]), int(self.released[at])
            yield LostValue(
                (self.name,), (self.labels[at],), rows, released, 1 - released / rows,
                rows / totals[0], released / totals[1],
            )  # fmt: skip


def _iterate_lost_pairs(
    first_place: tuple[_ComparedColumn, int],
    second_place: tuple[_ComparedColumn, int],
    before: Frequencies,
    after: Frequencies,
    overall: float,
) -> Iterator[LostValue]:
    """Yield the pairs of labels that lost more than either label did."""
    (first, a), (second, b) = first_place, second_place
    shape = len(first.labels) + 1, len(second.labels) + 1
    rows, released = (
        np.bincount(
            table.codes[:, a].astype(np.int64) * shape[1] + table.codes[:, b],
            weights=table.counts, minlength=shape[0] * shape[1],
        ).reshape(shape)[:-1, :-1].astype(np.float64)
        for table in (before, after)
    )  # fmt: skip
    rate = np.minimum(np.minimum.outer(first.kept_share, second.kept_share), overall)
    for x, y in np.argwhere(_is_lost(rows, released, rate)).tolist():
        rows_before, rows_after = int(rows[x, y]), int(released[x, y])
        yield LostValue(
            (first.name, second.name), (first.labels[x], second.labels[y]), rows_before, rows_after,
            1 - rows_after / rows_before, rows_before / before.total, rows_after / after.total,
        )  # fmt: skip


def _is_lost(rows: Floats, released: Floats, rate: Floats) -> Bools:
    """Return which values kept far less than a rate of their rows, less than chance explains."""
    expected = rate * rows
    chance = _CHANCE * np.sqrt(expected * (1 - rate))
    is_lost: Bools = (
        (rows >= LEAST_ROWS)
        & (released < (1 - LOST) * expected)
        & (expected - released > chance)
    )  # fmt: skip
    return is_lost


# From tables with hierarchies to labels --------------------------------------------------------


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Both tables with the columns that are kept as they are, behind those that are generalized.

    ``kept`` lists the values behind the codes of each, of both tables; the codes of the other
    columns are those of the table's values, and of the labels that are shown. ``weight`` names the
    column of survey weights, if one is kept. ``aggregated`` are columns of which a class shows one
    number; where it is known which row shows which, ``paired`` has the codes of both, own ones
    first.
    """

    kept: Mapping[str, Sequence[object]]
    before: Frequencies
    after: Frequencies
    weight: str | None = None
    aggregated: tuple[str, ...] = ()
    paired: Frequencies | None = None


def find_lost_labels(
    original: CountedTable, published: PublishedTable, kept_rows: KeptRows | None = None
) -> LostValues:
    """Find what is lost by the labels of a release, compared with those of the table.

    The columns are those of ``published``, which are the first of ``original``. Where fine and
    coarse labels of a column stand side by side, its values are not compared: nobody knows which
    rows a coarse label has taken from a fine one.
    """
    columns, suppressed_columns = [], []
    width = published.frequencies.codes.shape[1]
    levels = published.levels or (None,) * width
    for at, (name, hierarchy, own_level, level) in enumerate(
        zip(original.names, original.hierarchies, original.levels, levels[:width], strict=False)
    ):
        texts = [x if isinstance(x, str) else canonicalize_value(x) for x in published.labels[at]]
        used_labels = {
            texts[code] for code in np.unique(published.frequencies.codes[:, at]).tolist()
        }
        if used_labels and shows_nothing(hierarchy, used_labels, level):
            suppressed_columns.append(name)
        at_level = _find_single_level(hierarchy, used_labels) if level is None else level
        if at_level is not None and at_level >= own_level:
            (up,) = map_levels([hierarchy], [own_level], [at_level])
            labels = hierarchy.labels[at_level]
            columns.append(ColumnLabels(name, at, [labels[x] for x in up.tolist()], texts))
    before, after = original.frequencies, published.frequencies
    if kept_rows is not None:
        before, after = kept_rows.before, kept_rows.after
        for at, (name, values) in enumerate(kept_rows.kept.items(), width):
            if name in kept_rows.aggregated:
                continue  # whose values are lost by design
            value_labels = [canonicalize_value(value) for value in values]
            columns.append(ColumnLabels(name, at, value_labels, value_labels))
    return find_lost_values(columns, before, after, suppressed_columns)


def shows_nothing(
    hierarchy: Hierarchy, labels: Iterable[str | None], level: int | None = None
) -> bool:
    """Return whether labels of a column tell nothing: its root, or masks of every character."""
    top = level is None or level == hierarchy.height - 1
    return all(
        label is not None and (not label.strip(ROOT) or (top and label == hierarchy.root))
        for label in labels
    )


def _find_single_level(hierarchy: Hierarchy, labels: set[str | None]) -> int | None:
    """Return the lowest level of all labels, where none of them stands for everything."""
    if labels & {ROOT, hierarchy.root}:
        return None
    fitting = (at for at, level_labels in enumerate(hierarchy.labels) if labels <= {*level_labels})
    return next(fitting, None)
