"""How easily people are found again: class sizes and the three classical attackers.

The prosecutor knows that the target is in the release; the chance to name the right row is
one over the size of the class. The journalist only knows that the target is in a larger
table (here the original), and has one over the number of its rows that fit the class. The
marketer tries everybody, and counts the share of hits to be expected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Codes, Counts, Floats, Places
from incrowd.codes.frequency import Frequencies, number_tuples
from incrowd.measure.labels import LabelCover

_CELLS = 500_000_000  # so many comparisons of a class with a tuple are made
_LOOKUP = 100  # comparisons that take as long as looking up one run of tuples
_FEWEST = 100  # but so many classes are looked at in any case


@dataclass(frozen=True)
class Risk:
    """Risks from 0 to 1 over the rows shown. Suppressed rows are in no class and at no risk.

    ``highest`` and ``mean`` are the prosecutor's. ``journalist`` is the highest, and
    ``marketer`` the mean, of one over the number of original rows that fit a row's class;
    where recoding is local and classes are very many, over a random choice of classes, of which
    ``compared`` says how many.
    ``uniques`` is the share of rows that are alone in their class, of the release and of the
    original. ``sizes`` counts rows by the size of their class: 1, 2-3, 4-7, and so on.
    ``highest_original`` and ``mean_original`` are the prosecutor's with the table as it was.
    """

    highest: float
    mean: float
    journalist: float
    marketer: float
    uniques: float
    uniques_original: float
    sizes: list[int]
    sizes_original: list[int]
    highest_original: float = 0.0
    mean_original: float = 0.0
    compared: int = 0


def compute_risk(
    original: Frequencies, released: Frequencies, covers: Sequence[LabelCover], *, seed: int = 0
) -> Risk:
    """Return the risks: ``original`` by positions on the axes, ``released`` by labels."""
    sizes, original_sizes = released.counts, original.counts
    highest = float(1 / original_sizes.min()) if len(original_sizes) else 0.0
    mean = len(original_sizes) / max(original.total, 1)
    if not len(sizes):
        return Risk(
            0.0,
            0.0,
            0.0,
            0.0,
            0.0,
            compute_unique_share(original),
            [],
            count_by_size(original_sizes),
            highest,
            mean,
        )
    fitting, rows = _count_fitting(original, released, covers, seed)
    return Risk(
        highest=float(1 / sizes.min()),
        mean=float(len(sizes) / sizes.sum()),
        journalist=float(1 / fitting.min()),
        marketer=float((rows / fitting).sum() / rows.sum()),
        uniques=compute_unique_share(released),
        uniques_original=compute_unique_share(original),
        sizes=count_by_size(sizes),
        sizes_original=count_by_size(original_sizes),
        highest_original=highest,
        mean_original=mean,
        compared=len(rows),
    )


def compute_unique_share(frequencies: Frequencies) -> float:
    """Return the share of rows that are alone in their class."""
    return float((frequencies.counts == 1).sum() / max(frequencies.total, 1))


def count_by_size(sizes: Counts) -> list[int]:
    """Return rows in classes of size 1, 2-3, 4-7, 8-15, ... (entry i: sizes from 2**i)."""
    if not len(sizes):
        return []
    place = np.floor(np.log2(sizes)).astype(int)
    return [int(x) for x in np.bincount(place, weights=sizes)]


def _count_fitting(
    original: Frequencies, released: Frequencies, covers: Sequence[LabelCover], seed: int
) -> tuple[Floats, Counts]:
    """Return how many original rows fit each class (at least one), and the class's rows.

    Where no value fits two labels of a column, every original tuple fits one class and they
    are counted through. Elsewhere classes are looked up as boxes or, where that takes too long,
    each of a random choice is held against all tuples.
    """
    labels = find_fitting_labels(original.codes, released.codes, covers)
    if labels is not None:
        codes = labels
        has_labels = (codes >= 0).all(axis=1)
        numbers = number_tuples(np.vstack([released.codes, codes[has_labels]]).astype(np.int32))
        places, at_ = np.unique(numbers, return_inverse=True)
        rows_by_class = np.bincount(
            at_[len(released) :], original.counts[has_labels], minlength=len(places)
        )
        return np.maximum(rows_by_class[at_[: len(released)]], 1), released.counts
    boxes = _count_in_boxes(original, released, covers)
    if boxes is not None:
        return np.maximum(boxes, 1.0), released.counts
    # In an order that does not depend on how labels are numbered.
    ends = [end[released.codes[:, at]] for at, c in enumerate(covers) for end in (c.low, c.high)]
    chosen_classes = np.lexsort(ends)
    limit = max(_FEWEST, _CELLS // max(len(original) * len(covers), 1))
    if len(chosen_classes) > limit:
        chosen_classes = chosen_classes[
            np.random.default_rng(seed).choice(len(chosen_classes), limit, replace=False)
        ]
    columns = [np.ascontiguousarray(column) for column in original.codes.T]
    classes = released.codes[chosen_classes].tolist()
    class_rows = [_count_class_rows(original.counts, columns, covers, codes) for codes in classes]
    return np.maximum(np.array(class_rows), 1.0), released.counts[chosen_classes]


def _count_in_boxes(
    original: Frequencies, released: Frequencies, covers: Sequence[LabelCover]
) -> Floats | None:
    """Return how many original rows fit each class; None if labels are no runs, or it is slow.

    Tuples are put in order, the column with the widest labels last. Those that fit a class are then
    a run for each tuple of the other columns that the class covers.
    """
    published_labels = [np.unique(column).tolist() for column in released.codes.T]
    runs = [
        cover.sets.keys().isdisjoint(labels_used)
        for cover, labels_used in zip(covers, published_labels, strict=True)
    ]
    if not len(original) or not all(runs):
        return None
    tuples, lows, widths = [], [], []
    for at, cover in enumerate(covers):
        labels, column = released.codes[:, at], original.codes[:, at]
        met = np.flatnonzero(np.bincount(column))  # no other place can hold anything
        tuples.append(np.searchsorted(met, np.arange(met[-1] + 1))[column])
        lows.append(np.searchsorted(met, cover.low)[labels])
        widths.append(np.searchsorted(met, cover.high, side="right")[labels] - lows[-1])
    *other_columns, last_column = np.argsort([width.mean() for width in widths]).tolist()
    cells = np.prod([widths[at] for at in other_columns], axis=0, dtype=np.float64)
    spans = [int(column.max()) + 1 for column in tuples]
    if cells.sum() > _CELLS / _LOOKUP or math.prod(spans) >= 2**62:
        return None
    number = cells.astype(np.int64) if other_columns else np.ones(len(released), dtype=np.int64)
    owner = np.repeat(np.arange(len(released)), number)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(number) - number, number)
    numbers = np.zeros(len(original), dtype=np.int64)
    cell = np.zeros(len(owner), dtype=np.int64)
    for at in other_columns:
        width = widths[at][owner]
        cell = cell * spans[at] + lows[at][owner] + within % width
        within //= width
        numbers = numbers * spans[at] + tuples[at]
    numbers, cell = (
        numbers * spans[last_column] + tuples[last_column],
        cell * spans[last_column] + lows[last_column][owner],
    )
    order = np.argsort(numbers, kind="stable")
    upto = np.append(0, np.cumsum(original.counts[order]))
    ends = (
        np.searchsorted(numbers[order], end) for end in (cell, cell + widths[last_column][owner])
    )
    before, behind = (upto[end] for end in ends)
    return np.bincount(owner, behind - before, minlength=len(released)).astype(np.float64)


def find_fitting_labels(
    points: Codes, classes: Codes, covers: Sequence[LabelCover]
) -> npt.NDArray[np.int64] | None:
    """Return the class labels that fit tuples, -1 for none; None where two may fit a position."""
    fitting_labels = []
    for at, cover in enumerate(covers):
        label = find_label(cover, points[:, at], classes[:, at])
        if label is None:
            return None
        fitting_labels.append(label)
    return np.column_stack(fitting_labels)


def find_label(
    cover: LabelCover, places: Codes, used_labels: npt.NDArray[np.integer] | None = None
) -> npt.NDArray[np.int64] | None:
    """Return the label that fits each position, -1 for none; None where two may fit one.

    With ``used_labels`` no other label counts: a hierarchy may have ones that nobody shows.
    """
    candidates = np.arange(len(cover.low))
    if used_labels is not None:
        candidates = np.flatnonzero(np.bincount(used_labels, minlength=len(cover.low)))
    if not len(candidates):
        return np.full(len(places), -1, dtype=np.int64)
    order = candidates[np.argsort(cover.low[candidates], kind="stable")]
    low, high = cover.low[order], cover.high[order]
    if not cover.sets.keys().isdisjoint(candidates.tolist()) or (low[1:] <= high[:-1]).any():
        return None
    # Once for each position up to the last one covered, and one beyond: people are many more.
    positions = np.arange(int(high[-1]) + 2)
    at = np.searchsorted(low, positions, side="right") - 1
    fits = (at >= 0) & (positions <= high[np.maximum(at, 0)])
    return np.where(fits, order[np.maximum(at, 0)], -1)[np.minimum(places, len(positions) - 1)]


def _count_class_rows(
    counts: Counts, columns: Sequence[Codes], covers: Sequence[LabelCover], codes: Sequence[int]
) -> float:
    """Return how many original rows fit all labels of a class, by narrow labels first."""
    places: Places | None = None
    parts = zip(columns, covers, codes, strict=True)
    for column, cover, code in sorted(parts, key=lambda part: _estimate_width(part[1], part[2])):
        positions = column if places is None else column[places]
        if code in cover.sets:
            fit = np.isin(positions, cover.sets[code])
        else:
            fit = (positions >= cover.low[code]) & (positions <= cover.high[code])
        places = np.flatnonzero(fit) if places is None else places[fit]
    return float((counts if places is None else counts[places]).sum())


def _estimate_width(cover: LabelCover, code: int) -> float:
    """Return the share of a column's positions that a label covers, more or less."""
    return float(cover.high[code] - cover.low[code] + 1) / float(cover.high.max() + 1)
