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
    known = [group for group in groups if group.hidden is not None and group.rows]
    if not known:
        return None
    totals: dict[str, int] = {}
    for one in known:
        totals[one.column] = totals.get(one.column, 0) + one.rows
    small = [item for item in known if item.rows < SMALL * totals[item.column]]
    large = [item for item in known if item.rows >= SMALL * totals[item.column]]
    worst = max(known, key=lambda one: (one.share or 0.0, one.rows))
    first = [item for item in known if item.column == known[0].column]
    return SuppressionBurden(
        overall=_compute_hidden_share(first) or 0.0,
        small=_compute_hidden_share(small),
        large=_compute_hidden_share(large),
        worst=worst if worst.hidden else None,
    )


def _compute_hidden_share(groups: Sequence[Subgroup]) -> float | None:
    if not groups:
        return None
    return sum(group.hidden or 0 for group in groups) / sum(group.rows for group in groups)


def group_by_levels(counted: CountedTable, released: Frequencies) -> list[Subgroup]:
    """Return the groups of every column, by cells at the levels of a release, or coarser."""
    unseen = ~mark_published(counted.frequencies.codes, released.codes)
    subgroups = []
    for at, (name, hierarchy, level) in enumerate(
        zip(counted.names, counted.hierarchies, counted.levels, strict=True)
    ):
        codes, rows = counted.frequencies.codes[:, at], counted.frequencies.counts
        width = len(hierarchy.labels[level])
        held = np.bincount(codes, weights=rows, minlength=width)
        hidden = np.bincount(codes, weights=rows * unseen, minlength=width)
        shown = np.bincount(released.codes[:, at], weights=released.counts, minlength=width)
        groups = _choose_grouping(hierarchy, level, held)
        subgroups += groups.make_subgroups(name, held, shown, hidden)
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
        held = np.bincount(points[:, at], weights=rows, minlength=width)
        hidden = None
        if unseen is not None:
            hidden = np.bincount(points[:, at], weights=rows * unseen, minlength=width)[
                axis.positions
            ]
        shown = _spread_rows(cover, released, at, width)[axis.positions]
        own = held[axis.positions]
        subgroups += _choose_grouping(axis.hierarchy, 0, own).make_subgroups(
            name, own, shown, hidden
        )
    return subgroups


def group_kept_columns(
    kept: Mapping[str, Sequence[object]], before: Frequencies, after: Frequencies, first: int
) -> tuple[Subgroup, ...]:
    """Return the groups of columns kept as they are: those of the tuples from ``first`` on.

    What is not shown of a group is hidden.
    """
    subgroups: list[Subgroup] = []
    for at, (name, values) in enumerate(kept.items(), first):
        rows, shown = (
            np.bincount(item.codes[:, at], weights=item.counts, minlength=len(values))
            for item in (before, after)
        )
        place, labels, others = _group_frequent(values, rows)
        groups = _Grouping(None, place, [canonicalize_value(label) for label in labels], others)
        subgroups += groups.make_subgroups(name, rows, shown, np.maximum(rows - shown, 0))
    return tuple(subgroups)


def mark_published(codes: Codes, shown: Codes) -> Bools:
    """Return which tuples are among those that are published."""
    if not len(shown) or not len(codes):
        return np.zeros(len(codes), dtype=np.bool_)
    named = number_tuples(np.vstack([codes, shown]).astype(np.int32))
    return np.isin(named[: len(codes)], named[len(codes) :])


def _spread_rows(cover: LabelCover, released: Frequencies, at: int, width: int) -> Floats:
    """Return how many rows are expected at each position, uniform within what a label covers."""
    rows = np.bincount(released.codes[:, at], weights=released.counts, minlength=len(cover.low))
    expected = np.zeros(width)
    values = width - 2
    whole = (cover.low == 0) & (cover.high == width - 1)
    if whole.any() and values:
        expected[:values] += rows[whole].sum() / values
    edges = np.zeros(width + 1)
    run = ~whole
    run[list(cover.sets)] = False
    each = rows[run] / (cover.high[run] - cover.low[run] + 1)
    np.add.at(edges, cover.low[run], each)
    np.add.at(edges, cover.high[run] + 1, -each)
    expected += np.cumsum(edges)[:-1]
    for code, places in cover.sets.items():
        if not whole[code]:
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
        self, name: str, rows: Numbers, shown: Numbers, hidden: Numbers | None
    ) -> list[Subgroup]:
        """Return the groups that have rows, before or after, from numbers for each code."""
        before, after, gone = (
            None if item is None else np.bincount(self.place, item, minlength=len(self.labels))
            for item in (rows, shown, hidden)
        )
        assert before is not None
        assert after is not None
        last = len(self.labels) - 1
        return [
            Subgroup(
                name, label, int(before[at]), float(after[at]),
                None if gone is None else int(gone[at]), self.level,
                self.others if at == last else 0,
            )
            for at, label in enumerate(self.labels)
            if before[at] or after[at] > 1e-9
        ]  # fmt: skip


def _choose_grouping(hierarchy: Hierarchy, level: int, held: Numbers) -> _Grouping:
    """Return the groups of a column whose codes of a level hold so many rows."""
    for coarser in range(level, hierarchy.height):
        if coarser > level and coarser == hierarchy.height - 1 and hierarchy.is_rooted:
            break
        (up,) = map_levels([hierarchy], [level], [coarser])
        place = hierarchy.map_equal_labels(coarser)[up]
        labels = list(hierarchy.labels[coarser])
        if np.count_nonzero(np.bincount(place, held, minlength=len(labels))) <= MOST:
            return _Grouping(coarser, place, labels, 0)
    alike = hierarchy.map_equal_labels(level)
    labels = list(hierarchy.labels[level])
    place, few, others = _group_frequent(labels, np.bincount(alike, held, minlength=len(labels)))
    return _Grouping(level, place[alike], [canonicalize_value(label) for label in few], others)


def _group_frequent(labels: Sequence[object], rows: Numbers) -> tuple[Codes, list[object], int]:
    """Return the group of each label: the most frequent alone, in order, then the others."""
    filled = np.flatnonzero(rows)
    if len(filled) <= MOST:
        return np.arange(len(labels), dtype=np.int32), list(labels), 0
    chosen = np.sort(filled[np.argsort(-rows[filled], kind="stable")][: MOST - 1])
    place = np.full(len(labels), MOST - 1, dtype=np.int32)
    place[chosen] = np.arange(MOST - 1, dtype=np.int32)
    others = len(filled) - len(chosen)
    return place, [*(labels[at] for at in chosen.tolist()), f"{others:,} others"], others
