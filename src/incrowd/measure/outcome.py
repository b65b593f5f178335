"""What a safe release kept and lost, at its own levels, for the curator alone.

None of this is covered by the guarantee.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from incrowd.codes.counted import Counted
from incrowd.codes.frequency import Frequencies, between
from incrowd.codes.hierarchy import Hierarchy
from incrowd.measure.loss import normalised


@dataclass(frozen=True)
class Advice:
    """What one coarser level of a column would change."""

    column: str
    level: int
    likely_share: float

    def helps(self, outcome: Outcome) -> bool:
        """Whether it would bring a good part of the rows into cells that likely survive."""
        return self.likely_share >= outcome.likely_share + 0.1


@dataclass(frozen=True)
class Outcome:
    """Sizes and losses. A row that is not shown has lost everything, so it counts 1."""

    rows_original: int
    rows_released: int
    cells_original: int
    cells_released: int
    likely_share: float
    loss: float
    loss_by_column: dict[str, float]
    detail_by_column: dict[str, float]
    sizes_original: list[int]
    sizes_released: list[int]
    advice: list[Advice]

    @property
    def share(self) -> float:
        """Rows released, as a share of the rows of the table."""
        return self.rows_released / max(self.rows_original, 1)

    def as_dict(self) -> dict[str, Any]:
        """The outcome as plain values, for JSON."""
        return asdict(self)


def outcome_of(counted: Counted, released: Frequencies, *, k: int, beta: float) -> Outcome:
    """Hold a release against the table it was made from."""
    rows = counted.frequencies.total
    kept = released.total / max(rows, 1)
    inner = {
        name: _loss(hierarchy, level, released, at)
        for at, (name, hierarchy, level) in enumerate(
            zip(counted.names, counted.hierarchies, counted.levels, strict=True)
        )
    }
    losses = {name: kept * loss + (1 - kept) for name, loss in inner.items()}
    return Outcome(
        rows_original=rows,
        rows_released=released.total,
        cells_original=len(counted.frequencies),
        cells_released=len(released),
        likely_share=_likely(counted.frequencies, k / beta),
        loss=float(np.mean(list(losses.values()))),
        loss_by_column=losses,
        detail_by_column={name: 1 - loss for name, loss in inner.items()},
        sizes_original=_histogram(counted.frequencies),
        sizes_released=_histogram(released),
        advice=_advice(counted, k / beta),
    )


def _loss(hierarchy: Hierarchy, level: int, released: Frequencies, at: int) -> float:
    """The mean of (a - 1) / (m - 1) over the rows shown, a leaves covered of m; 1 if none is."""
    if not len(released):
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
