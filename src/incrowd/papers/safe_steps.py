"""The safe releases that the attacks on paper A's baselines are held against.

Every column is cut into steps of a public width, so what a class shows depends on nobody. Either
rows are drawn with probability beta and cells of fewer than k drawn rows are dropped (paper A's
Algorithm 4, :mod:`incrowd.anonymize.safe_sample`), or the counts of cells have noise
(:mod:`incrowd.anonymize.safe_counts`).

What the guarantee says of an attack. Let an attack on one person succeed with chance p when the
person is not in the table. Whether it succeeds is a function of the release, so with the person in
the table its chance is at most e^epsilon p + delta, for every (epsilon, delta) that holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.anonymize.safe_counts import draw_noisy_counts
from incrowd.anonymize.safe_sample import sample_cells
from incrowd.arrays import Codes
from incrowd.codes.axis import ClassBounds
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import GeometricCounts, SafeRelease
from incrowd.privacy.randomness import Randomness


@dataclass(frozen=True)
class SteppedRelease:
    """Public steps: the width of the steps of each column, and what is spent on the release.

    ``k`` is for counts alone: every cell that is shown has so many rows at least.
    """

    widths: tuple[int, ...]
    event: SafeRelease | GeometricCounts
    k: int = 1

    def publish(self, points: Codes, bits: Randomness) -> ClassBounds:
        """Return the cells that are shown, as boxes from the lowest to the highest value."""
        widths = np.array(self.widths, dtype=np.int32)
        cells = merge_tuples(points // widths, np.ones(len(points), dtype=np.int64))
        published = draw_cells(cells, self.event, k=self.k, bits=bits)
        low = published.codes * widths
        return ClassBounds(low, low + widths - 1, published.counts)


def draw_cells(
    cells: Frequencies, event: SafeRelease | GeometricCounts, *, bits: Randomness, k: int = 1
) -> Frequencies:
    """Return what is shown of the cells of a public scheme, by a sample or noisy counts."""
    if isinstance(event, SafeRelease):
        return sample_cells(cells, k=event.k, beta=event.beta, bits=bits)
    return draw_noisy_counts(cells, event, k=k, bits=bits)


def bound_attack_success(
    schemes: Sequence[SteppedRelease], chance: float, *, delta: float = 1e-6
) -> float:
    """Bound how often an attack succeeds, given its chance on people not in the table.

    For all the releases together, composed; see the module.
    """
    epsilon = Accountant([scheme.event for scheme in schemes]).epsilon(delta=delta)
    return min(1.0, math.exp(epsilon) * chance + delta)
