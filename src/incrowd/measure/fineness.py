"""Whether fineness follows other columns: associations that local recoding invents.

Where fine and coarse labels of a column stand side by side, some rows of a fine label's values are
shown with it and others with a coarser one. If that depended on another column, what holds among
the rows shown finely is true of each cell and false of the table: all rows labeled
``Married-civ-spouse`` earn little, because those that earn much are labeled ``Married``.

So the distribution of every other column among the rows that show a fine label is held against
that among the rows of the table that have its values. Labels of the other column may be coarse as
well; the distance is the smallest total variation that any reading of them allows, so nothing is
blamed on taking them to be uniform. What a random sample of as many rows would show is allowed for,
with one false alarm in a thousand columns at most, and small differences are passed over.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from incrowd.arrays import Codes, Counts, Floats, Places
from incrowd.codes.counted_table import CountedTable, PublishedTable
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.findings import Finding, format_percent, make_finding
from incrowd.measure.labels import LabelCover

NOTABLE = 0.1  # a distance beyond chance from which a column is named
_FALSE_ALARM = 1e-3
_ROUNDING = 1e-6  # far more than sums of shares are off by
_MOST_NAMED, _MOST_NAMES = 3, 12  # columns with an example, and others by name, in one finding
_LABELS = 200  # so many fine labels of a column are looked at, those with most rows


@dataclass(frozen=True)
class FinenessExample:
    """The worst that a column's fine labels tell of another column.

    Of ``rows`` released rows that show ``label`` (others of its values show ``coarse``), the share
    ``released`` shows ``value`` in the column ``other``; of the rows of the table that have the
    values of ``label``, the share ``original`` has it. ``distance`` is the total variation of all
    values, at least.
    """

    column: str
    label: str | None
    coarse: str | None
    other: str
    value: str | None
    released: float
    original: float
    rows: int
    distance: float

    def __str__(self) -> str:
        released, original = format_percent(self.released, 0), format_percent(self.original, 0)
        return (
            f"{released} of the {self.rows:,} rows published as "
            f"'{self.label}' have '{self.value}' in '{self.other}'; of such rows in the table, "
            f"{original} have it (total variation distance at "
            f"least {self.distance:.2f})"
        )


def find_selection(
    original: CountedTable,
    published: PublishedTable,
    points: Sequence[Codes],
    covers: Sequence[LabelCover],
) -> tuple[Finding, ...]:
    """Return a finding that names the columns whose fineness depends on other columns, if any."""
    examples = find_examples(
        original.names, points, original.frequencies.counts, covers, published.frequencies
    )
    descriptions = [f"'{example.column}': {example}" for example in examples[:_MOST_NAMED]]
    if len(examples) > _MOST_NAMED:
        names = ", ".join(f"'{example.column}'" for example in examples[_MOST_NAMED:][:_MOST_NAMES])
        more = len(examples) - _MOST_NAMED - _MOST_NAMES
        descriptions.append(f"so do {names}{f' and {more} more' if more > 0 else ''}")
    return (
        (make_finding("FINENESS_DEPENDS_ON_COLUMNS", listed=descriptions),) if descriptions else ()
    )


def find_examples(
    names: Sequence[str],
    points: Sequence[Codes],
    counts: Counts,
    covers: Sequence[LabelCover],
    released: Frequencies,
) -> list[FinenessExample]:
    """Return the worst example per column whose fine labels are not shown alike; worst first.

    ``points`` are the positions of the table's tuples on each axis, ``counts`` their rows;
    ``released`` has the codes of the labels that ``covers`` explain.
    """
    pieces = [_AxisPieces(cover, released.codes[:, at]) for at, cover in enumerate(covers)]
    places = [piece.find_pieces(point) for piece, point in zip(pieces, points, strict=True)]
    examples = []
    for at, name in enumerate(names):
        rows_by_label = np.bincount(
            released.codes[:, at], released.counts, minlength=len(covers[at].low)
        ).tolist()
        fine = list(_iterate_fine_labels(covers[at], released, at))
        other_columns = [other for other in range(len(names)) if other != at]
        comparisons = len(fine) * len(other_columns)
        if not comparisons:
            continue
        fine = [pair for pair in fine if _can_be_notable(rows_by_label[pair[0]], comparisons)]
        worst: tuple[float, FinenessExample] | None = None
        for other in other_columns if fine else ():
            pair_counts = _count_pairs(pieces[at], pieces[other], places[at], places[other], counts)
            pairs = merge_tuples(released.codes[:, [at, other]], released.counts)
            for label, coarse in fine:
                span = slice(*np.searchsorted(pairs.codes[:, 0], [label, label + 1]))
                table = pair_counts[pieces[at].slice_label(label)].sum(axis=0)
                label_rows = _LabelRows(pairs.codes[span, 1], pairs.counts[span])
                threshold = NOTABLE if worst is None else worst[0]
                beyond, distance = _compare_distance(
                    pieces[other], label_rows, table, comparisons, threshold
                )
                if beyond > threshold:
                    value, share, true_share = _find_worst_value(
                        pieces[other], label_rows, table / table.sum()
                    )
                    example = FinenessExample(
                        name, covers[at].labels[label], covers[at].labels[coarse], names[other],
                        covers[other].labels[value], share, true_share, label_rows.total, distance,
                    )  # fmt: skip
                    worst = (beyond, example)
        if worst is not None:
            examples.append(worst)
    return [example for _, example in sorted(examples, key=lambda pair: -pair[0])]


@dataclass(frozen=True, eq=False)
class _LabelRows:
    """The labels of another column among the rows of a fine label, and how often each is shown."""

    codes: Codes
    rows: Counts

    @cached_property
    def total(self) -> int:
        return int(self.rows.sum())


def _compare_distance(
    pieces: _AxisPieces, label_rows: _LabelRows, table: Floats, comparisons: int, threshold: float
) -> tuple[float, float]:
    """Return the distance from the table beyond what chance allows, and the distance.

    Where the first is ``threshold`` or less, it may be given as 0: that is often seen at less cost.
    """
    if not table.sum():
        return 0.0, 0.0
    truth = table / table.sum()
    chance = _bound_chance_distance(truth, label_rows.total, comparisons)
    if _bound_distance(pieces, label_rows, truth) - chance < threshold - _ROUNDING:
        return 0.0, 0.0
    distance = _compute_distance(pieces, label_rows, truth)
    return distance - chance, distance


def _iterate_fine_labels(
    cover: LabelCover, released: Frequencies, at: int
) -> Iterator[tuple[int, int]]:
    """Yield labels whose values a wider label has as well; with the narrowest such label."""
    rows = np.bincount(released.codes[:, at], released.counts, minlength=len(cover.low))
    published = np.flatnonzero(rows)
    wide = cover.high - cover.low
    for label in published[np.argsort(-rows[published], kind="stable")][:_LABELS].tolist():
        holds = (cover.low[published] <= cover.low[label]) & (
            cover.high[published] >= cover.high[label]
        )
        wider = published[holds & (wide[published] > wide[label])]
        if len(wider):
            yield label, int(wider[np.argmin(wide[wider])])


class _AxisPieces:
    """An axis in pieces that no label of the column divides."""

    def __init__(self, cover: LabelCover, codes: Codes) -> None:
        published = np.unique(codes)
        self._edges = np.unique(
            np.concatenate([[0], cover.low[published], cover.high[published] + 1])
        )
        self.number = len(self._edges)
        self.first = np.searchsorted(self._edges, cover.low)
        self.last = np.searchsorted(self._edges, cover.high, side="right") - 1

    def find_pieces(self, points: Codes) -> Places:
        """Return the piece that each position lies in."""
        positions = np.arange(int(points.max(initial=0)) + 1)
        return (np.searchsorted(self._edges, positions, side="right") - 1)[points]

    def slice_label(self, label: int) -> slice:
        """Return the pieces of a label that is shown."""
        return slice(self.first[label], self.last[label] + 1)


def _count_pairs(
    first_pieces: _AxisPieces,
    second_pieces: _AxisPieces,
    first_places: Places,
    second_places: Places,
    counts: Counts,
) -> Floats:
    """Return how many rows of the table lie in each pair of pieces."""
    places = first_places * second_pieces.number + second_places
    pair_counts = np.bincount(
        places, weights=counts, minlength=first_pieces.number * second_pieces.number
    )
    return pair_counts.reshape(first_pieces.number, second_pieces.number).astype(np.float64)


def _bound_distance(pieces: _AxisPieces, label_rows: _LabelRows, truth: Floats) -> float:
    """Return a distance that :func:`_compute_distance` does not exceed.

    Each label puts its share where the truth lies in its run, in proportion. That is one reading
    of many, so the best is as near or nearer.
    """
    first, end = pieces.first[label_rows.codes], pieces.last[label_rows.codes] + 1
    upto = np.append(0.0, np.cumsum(truth))
    room = upto[end] - upto[first]
    has_room = room > _ROUNDING
    density = label_rows.rows[has_room] / (label_rows.total * room[has_room])
    change = np.bincount(first[has_room], density, minlength=len(truth) + 1)
    change -= np.bincount(end[has_room], density, minlength=len(truth) + 1)
    return 1.0 - float((truth * np.clip(np.cumsum(change)[:-1], 0.0, 1.0)).sum())


def _compute_distance(pieces: _AxisPieces, label_rows: _LabelRows, truth: Floats) -> float:
    """Return the smallest total variation between the truth and what labels may stand for.

    A label may put its share anywhere in its run. Putting as much as possible where the truth has
    it is a matching of runs with places: from left to right, the run that ends first goes first,
    which is optimal. A label that is no run counts as one, which makes the distance smaller.
    """
    first, last_of = pieces.first[label_rows.codes], pieces.last[label_rows.codes]
    shares = label_rows.rows / label_rows.total
    order = np.lexsort((shares, last_of, first))
    columns = (first[order].tolist(), last_of[order].tolist(), shares[order].tolist())
    waiting = list(zip(*columns, strict=True))
    active: list[tuple[int, float]] = []
    matched, at = 0.0, 0
    places = np.flatnonzero(truth)  # where the truth has nothing, nothing is put
    for place, room in zip(places.tolist(), truth[places].tolist(), strict=True):
        free = room
        while at < len(waiting) and waiting[at][0] <= place:
            heapq.heappush(active, waiting[at][1:])
            at += 1
        while active and free > 0:
            last, share = heapq.heappop(active)
            amount = min(free, share) if last >= place else 0.0
            matched, free = matched + amount, free - amount
            if last > place and share > amount:
                heapq.heappush(active, (last, share - amount))
    return max(1.0 - matched, 0.0)


def _bound_chance_distance(truth: Floats, rows: int, comparisons: int) -> float:
    """Return what the distance of a random sample of so many rows nearly always stays below.

    Its mean is at most half the sum of the standard deviations, and one row moves it by 1 / rows
    at most, so that McDiarmid's inequality bounds the rest. A sample without replacement, as a
    release draws it, is nearer to the truth.
    """
    mean = 0.5 * float(np.sqrt(truth * (1 - truth) / rows).sum())
    return mean + math.sqrt(math.log(comparisons / _FALSE_ALARM) / (2 * rows))


def _can_be_notable(rows: float, comparisons: int) -> bool:
    """Return whether so few rows can be at a notable distance beyond what chance allows."""
    return 1.0 - _bound_chance_distance(np.ones(1), int(rows), comparisons) > NOTABLE - _ROUNDING


def _find_worst_value(
    pieces: _AxisPieces, label_rows: _LabelRows, truth: Floats
) -> tuple[int, float, float]:
    """Return the value shown too often by most: its label, the share shown, the true share."""
    best = (-1.0, 0, 0.0, 0.0)
    first, last = pieces.first[label_rows.codes], pieces.last[label_rows.codes]
    for code in label_rows.codes.tolist():
        inside = (first >= pieces.first[code]) & (last <= pieces.last[code])
        share = float(label_rows.rows[inside].sum()) / label_rows.total
        true_share = float(truth[pieces.slice_label(code)].sum())
        best = max(best, (share - true_share, code, share, true_share))
    return best[1], best[2], best[3]
