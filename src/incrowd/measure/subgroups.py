"""Groups of people by one column: how many rows they have, are shown, and are not shown at all.

So a curator sees how a distribution has moved, and whether suppression falls on minorities. A
group is a label of the finest level that has few labels; where no level has, the most frequent
labels stand for themselves and the others are one group. Nothing here is covered by a guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Bools, Codes, Floats
from incrowd.codes.axis import Axis
from incrowd.codes.counted_table import CountedTable
from incrowd.codes.frequency import Frequencies, map_levels, number_tuples
from incrowd.codes.hierarchy import Hierarchy
from incrowd.codes.values import canonicalize_value
from incrowd.measure.labels import LabelCover
from incrowd.measure.risk import find_fitting_labels

MOST = 16  # groups of a column
SMALL = 0.1  # of the rows: a group with less is small

Numbers: TypeAlias = npt.NDArray[np.float64] | npt.NDArray[np.int64]


@dataclass(frozen=True)
class Subgroup:
    """The rows that have a label of a column, in the table and as released.

    ``released`` is what a reader expects who takes values to be uniform within what a label covers.
    ``hidden`` are rows of the table in cells of which no row is shown; None where labels of
    several levels stand side by side, so that nobody knows which row is in which class. ``others``
    is how many rare labels are in this group, 0 if it is one label.
    """

    column: str
    label: str | None
    rows: int
    released: float
    hidden: int | None
    level: int | None = None
    others: int = 0

    @property
    def share(self) -> float | None:
        """The share of its rows that are hidden."""
        return None if self.hidden is None else self.hidden / max(self.rows, 1)


@dataclass(frozen=True)
class SuppressionBurden:
    """The loss of small groups beside large ones: shares of rows that are suppressed.

    A group is small if it has less than a tenth of the rows; ``small`` and ``large`` are over all
    columns, None where there is no such group. ``worst`` is the group of which most is hidden.
    """

    overall: float
    small: float | None
    large: float | None
    worst: Subgroup | None

    @property
    def is_uneven(self) -> bool:
        """Whether small groups lose clearly more."""
        small, large = self.small or 0.0, self.large or 0.0
        return self.small is not None and small > 1.25 * large and small > large + 0.001


def measure_burden(groups: Sequence[Subgroup]) -> SuppressionBurden | None:
    """Return on whom suppression falls; None where nobody knows."""
    known_groups = [group for group in groups if group.hidden is not None and group.rows]
    if not known_groups:
        return None
    totals: dict[str, int] = {}
    for group in known_groups:
        totals[group.column] = totals.get(group.column, 0) + group.rows
    small = [group for group in known_groups if group.rows < SMALL * totals[group.column]]
    large = [group for group in known_groups if group.rows >= SMALL * totals[group.column]]
    worst = max(known_groups, key=lambda group: (group.share or 0.0, group.rows))
    first_column = [group for group in known_groups if group.column == known_groups[0].column]
    return SuppressionBurden(
        overall=_compute_hidden_share(first_column) or 0.0,
        small=_compute_hidden_share(small),
        large=_compute_hidden_share(large),
        worst=worst if worst.hidden else None,
    )


def _compute_hidden_share(groups: Sequence[Subgroup]) -> float | None:
    if not groups:
        return None
    return sum(group.hidden or 0 for group in groups) / sum(group.rows for group in groups)


def group_by_levels(table: CountedTable, released: Frequencies) -> list[Subgroup]:
    """Return the groups of every column, by cells at the levels of a release, or coarser."""
    unseen = ~mark_published(table.frequencies.codes, released.codes)
    subgroups = []
    for at, (name, hierarchy, level) in enumerate(
        zip(table.names, table.hierarchies, table.levels, strict=True)
    ):
        codes, rows = table.frequencies.codes[:, at], table.frequencies.counts
        width = len(hierarchy.labels[level])
        rows_before = np.bincount(codes, weights=rows, minlength=width)
        hidden = np.bincount(codes, weights=rows * unseen, minlength=width)
        rows_after = np.bincount(released.codes[:, at], weights=released.counts, minlength=width)
        groups = _choose_grouping(hierarchy, level, rows_before)
        subgroups += groups.make_subgroups(name, rows_before, rows_after, hidden)
    return subgroups


def group_by_labels(
    names: Sequence[str],
    axes: Sequence[Axis],
    points: Codes,
    rows: Numbers,
    released: Frequencies,
    covers: Sequence[LabelCover],
) -> list[Subgroup]:
    """Return the groups of every column, of tuples at positions and a release by its labels."""
    codes, unseen = find_fitting_labels(points, released.codes, covers), None
    if codes is not None:
        fits = (codes >= 0).all(axis=1)
        unseen = np.ones(len(points), dtype=np.bool_)
        unseen[fits] = ~mark_published(codes[fits].astype(np.int32), released.codes)
    subgroups = []
    for at, (name, axis, cover) in enumerate(zip(names, axes, covers, strict=True)):
        width = len(axis.positions)
        position_rows = np.bincount(points[:, at], weights=rows, minlength=width)
        hidden = None
        if unseen is not None:
            hidden = np.bincount(points[:, at], weights=rows * unseen, minlength=width)[
                axis.positions
            ]
        rows_after = _spread_rows(cover, released, at, width)[axis.positions]
        rows_before = position_rows[axis.positions]
        subgroups += _choose_grouping(axis.hierarchy, 0, rows_before).make_subgroups(
            name, rows_before, rows_after, hidden
        )
    return subgroups


def group_kept_columns(
    kept_values: Mapping[str, Sequence[object]], before: Frequencies, after: Frequencies, first: int
) -> tuple[Subgroup, ...]:
    """Return the groups of columns kept as they are: those of the tuples from ``first`` on.

    What is not shown of a group is hidden.
    """
    subgroups: list[Subgroup] = []
    for at, (name, values) in enumerate(kept_values.items(), first):
        rows, rows_after = (
            np.bincount(table.codes[:, at], weights=table.counts, minlength=len(values))
            for table in (before, after)
        )
        place, labels, others = _group_frequent(values, rows)
        groups = _Grouping(None, place, [canonicalize_value(label) for label in labels], others)
        subgroups += groups.make_subgroups(name, rows, rows_after, np.maximum(rows - rows_after, 0))
    return tuple(subgroups)


def mark_published(codes: Codes, published: Codes) -> Bools:
    """Return which tuples are among those that are published."""
    if not len(published) or not len(codes):
        return np.zeros(len(codes), dtype=np.bool_)
    numbers = number_tuples(np.vstack([codes, published]).astype(np.int32))
    return np.isin(numbers[: len(codes)], numbers[len(codes) :])


def _spread_rows(cover: LabelCover, released: Frequencies, at: int, width: int) -> Floats:
    """Return how many rows are expected at each position, uniform within what a label covers."""
    rows = np.bincount(released.codes[:, at], weights=released.counts, minlength=len(cover.low))
    expected = np.zeros(width)
    values = width - 2
    is_whole = (cover.low == 0) & (cover.high == width - 1)
    if is_whole.any() and values:
        expected[:values] += rows[is_whole].sum() / values
    edges = np.zeros(width + 1)
    run = ~is_whole
    run[list(cover.sets)] = False
    density = rows[run] / (cover.high[run] - cover.low[run] + 1)
    np.add.at(edges, cover.low[run], density)
    np.add.at(edges, cover.high[run] + 1, -density)
    expected += np.cumsum(edges)[:-1]
    for code, places in cover.sets.items():
        if not is_whole[code]:
            expected[places] += rows[code] / len(places)
    return np.maximum(expected, 0.0)


@dataclass(frozen=True, eq=False)
class _Grouping:
    """``place`` is the group of each code, and ``labels`` what the groups are called."""

    level: int | None
    place: Codes
    labels: list[str | None]
    others: int

    def make_subgroups(
        self, name: str, rows: Numbers, published: Numbers, hidden: Numbers | None
    ) -> list[Subgroup]:
        """Return the groups that have rows, before or after, from numbers for each code."""
        before, after, missing = (
            None if values is None else np.bincount(self.place, values, minlength=len(self.labels))
            for values in (rows, published, hidden)
        )
        assert before is not None
        assert after is not None
        last = len(self.labels) - 1
        return [
            Subgroup(
                name, label, int(before[at]), float(after[at]),
                None if missing is None else int(missing[at]), self.level,
                self.others if at == last else 0,
            )
            for at, label in enumerate(self.labels)
            if before[at] or after[at] > 1e-9
        ]  # fmt: skip


def _choose_grouping(hierarchy: Hierarchy, level: int, value_counts: Numbers) -> _Grouping:
    """Return the groups of a column whose codes of a level hold so many rows."""
    for coarser in range(level, hierarchy.height):
        if coarser > level and coarser == hierarchy.height - 1 and hierarchy.is_rooted:
            break
        (up,) = map_levels([hierarchy], [level], [coarser])
        place = hierarchy.map_equal_labels(coarser)[up]
        labels = list(hierarchy.labels[coarser])
        if np.count_nonzero(np.bincount(place, value_counts, minlength=len(labels))) <= MOST:
            return _Grouping(coarser, place, labels, 0)
    equal_codes = hierarchy.map_equal_labels(level)
    labels = list(hierarchy.labels[level])
    place, frequent, others = _group_frequent(
        labels, np.bincount(equal_codes, value_counts, minlength=len(labels))
    )
    return _Grouping(
        level, place[equal_codes], [canonicalize_value(label) for label in frequent], others
    )


def _group_frequent(labels: Sequence[object], rows: Numbers) -> tuple[Codes, list[object], int]:
    """Return the group of each label: the most frequent alone, in order, then the others."""
    nonempty = np.flatnonzero(rows)
    if len(nonempty) <= MOST:
        return np.arange(len(labels), dtype=np.int32), list(labels), 0
    frequent = np.sort(nonempty[np.argsort(-rows[nonempty], kind="stable")][: MOST - 1])
    place = np.full(len(labels), MOST - 1, dtype=np.int32)
    place[frequent] = np.arange(MOST - 1, dtype=np.int32)
    others = len(nonempty) - len(frequent)
    return place, [*(labels[at] for at in frequent.tolist()), f"{others:,} others"], others
