"""What a safe release kept and lost, at its own levels, for the curator alone.

None of this is covered by the guarantee.
"""

from __future__ import annotations

import numpy as np

from incrowd.codes.counted import Counted
from incrowd.codes.frequency import Frequencies, between, compared
from incrowd.codes.hierarchy import Hierarchy
from incrowd.measure.evaluation import Advice, Evaluation, Shift
from incrowd.measure.loss import normalised


def outcome(
    counted: Counted, released: Frequencies, *, crowd: float, target: str | None = None
) -> Evaluation:
    """Hold a release against the table it was made from, both at the levels of the release.

    Cells of ``crowd`` rows survive as often as not. Rare labels of a ``target`` lie in smaller
    cells, so that fewer of their rows are shown: how many is said for each.
    """
    rows = counted.frequencies.total
    kept, missing, surplus = compared(counted.frequencies, released)
    inner, losses = {}, {}
    for at, (name, hierarchy, level) in enumerate(
        zip(counted.names, counted.hierarchies, counted.levels, strict=True)
    ):
        inner[name] = _loss(hierarchy, level, released, at)
        own = _loss(hierarchy, level, kept, at)
        losses[name] = (kept.total * own + missing + surplus) / max(rows, 1) if rows else 1.0
    return Evaluation(
        rows_original=rows,
        rows_released=released.total,
        suppressed=missing,
        surplus=surplus,
        classes=len(released),
        smallest_class=int(released.counts.min()) if len(released) else 0,
        loss=float(np.mean(list(losses.values()))),
        loss_by_column=losses,
        cells_original=len(counted.frequencies),
        cells_released=len(released),
        likely_share=_likely(counted.frequencies, crowd),
        detail_by_column={name: 1 - loss for name, loss in inner.items()},
        sizes_original=_histogram(counted.frequencies),
        sizes_released=_histogram(released),
        advice=_advice(counted, crowd),
        target=target,
        shifts=[] if target is None else _shifts(counted, released, counted.names.index(target)),
    )


def _shifts(counted: Counted, released: Frequencies, at: int) -> list[Shift]:
    """The rows of each label of a column, before and after."""
    labels = counted.hierarchies[at].labels[counted.levels[at]]
    before, after = (
        np.bincount(one.codes[:, at], weights=one.counts, minlength=len(labels)).astype(int)
        for one in (counted.frequencies, released)
    )
    return [
        Shift(label, int(original), int(shown))
        for label, original, shown in zip(labels, before, after, strict=True)
        if original
    ]


def _loss(hierarchy: Hierarchy, level: int, released: Frequencies, at: int) -> float:
    """The mean of (a - 1) / (m - 1) over the rows shown, a leaves covered of m; 1 if none is."""
    if not released.total:
        return 1.0
    lost = normalised(hierarchy)[level]
    return float(np.average(lost[released.codes[:, at]], weights=released.counts))


def _likely(frequencies: Frequencies, crowd: float) -> float:
    """The share of rows in cells that are at least as large as the crowd that likely survives."""
    large = frequencies.counts[frequencies.counts >= crowd].sum()
    return float(large / max(frequencies.total, 1))


def _advice(counted: Counted, crowd: float) -> list[Advice]:
    """For each column that can be coarser: what that would do, the best first."""
    found = []
    for at, (name, hierarchy) in enumerate(zip(counted.names, counted.hierarchies, strict=True)):
        level = counted.levels[at] + 1
        if level >= hierarchy.height:
            continue
        target = [*counted.levels[:at], level, *counted.levels[at + 1 :]]
        rolled = counted.frequencies.rolled(between(counted.hierarchies, counted.levels, target))
        found.append(Advice(name, level, _likely(rolled, crowd)))
    return sorted(found, key=lambda advice: -advice.likely_share)


def _histogram(frequencies: Frequencies) -> list[int]:
    """Rows in cells of size 1, 2-3, 4-7, 8-15, ... (entry i: sizes from 2**i)."""
    if not len(frequencies):
        return []
    place = np.floor(np.log2(frequencies.counts)).astype(int)
    return [int(x) for x in np.bincount(place, weights=frequencies.counts)]
