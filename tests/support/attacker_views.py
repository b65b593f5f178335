"""Releases as attackers see them, from sets of positions, and people from points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.evaluation.attacks.view import AttackerView
from incrowd.measure.labels import LabelCover

Points = npt.NDArray[np.integer]


def make_cover(sets: Sequence[Sequence[int]], starred: Sequence[int] = ()) -> LabelCover:
    """A label for each set of positions."""
    n = len(sets)
    low, high = (
        np.array([end(positions) for positions in sets], dtype=np.int64) for end in (min, max)
    )
    scattered = {
        at: np.array(sorted(positions), dtype=np.int64)
        for at, positions in enumerate(sets)
        if max(positions) - min(positions) + 1 != len(positions)
    }
    nothing = np.zeros(n)
    stars = np.isin(np.arange(n), starred)
    texts = tuple(str(at) for at in range(n))
    return LabelCover(
        texts, nothing, nothing, np.zeros((n, 1)), nothing, stars, low, high, scattered
    )


def count_points(points: Points) -> Frequencies:
    """People by their points."""
    return merge_tuples(points.astype(np.int32), np.ones(len(points), dtype=np.int64))


def make_value_view(
    points: Points, widths: Sequence[int], sample_rate: float = 1.0
) -> AttackerView:
    """A release that shows every value as it is."""
    table = count_points(points)
    covers = tuple(make_cover([[at] for at in range(width)]) for width in widths)
    names = tuple(f"c{at}" for at in range(len(widths)))
    return AttackerView(names, table.codes, table.counts, covers, sample_rate)


def make_box_view(low: Points, high: Points, counts: Points) -> AttackerView:
    """A release of classes that show intervals, a label for each class."""
    covers = tuple(
        make_cover([range(a, b + 1) for a, b in zip(low[:, at], high[:, at], strict=True)])
        for at in range(low.shape[1])
    )
    codes = np.repeat(np.arange(len(low), dtype=np.int32)[:, None], low.shape[1], axis=1)
    names = tuple(f"c{at}" for at in range(low.shape[1]))
    return AttackerView(names, codes, counts.astype(np.int64), covers)
