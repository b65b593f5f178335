"""The safe releases that the attacks on paper A's baselines are held against.

Every column is cut into steps of a public width, so what a class shows depends on nobody. Either
rows are drawn with probability beta and cells of fewer than k drawn rows are dropped (paper A's
Algorithm 4, :mod:`incrowd.anonymize.safe`), or the counts of cells have noise
(:mod:`incrowd.anonymize.counts`).

What the guarantee says of an attack. Let an attack on one person succeed with chance p when the
person is not in the table. Whether it succeeds is a function of the release, so with the person in
the table its chance is at most e^epsilon p + delta, for every (epsilon, delta) that holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.anonymize.counts import noisy_counts
from incrowd.anonymize.safe import safe
from incrowd.arrays import Codes
from incrowd.codes.axis import Boxes
from incrowd.codes.frequency import Frequencies, merged
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import GeometricCounts, SafeRelease
from incrowd.privacy.randomness import Randomness


@dataclass(frozen=True)
class SafeSteps:
    """Public steps: the width of the steps of each column, and what is spent on the release.

    ``k`` is for counts alone: every cell that is shown has so many rows at least.
    """

    widths: tuple[int, ...]
    event: SafeRelease | GeometricCounts
    k: int = 1

    def publish(self, points: Codes, bits: Randomness) -> Boxes:
        """The cells that are shown, as boxes from the lowest to the highest value of each step."""
        widths = np.array(self.widths, dtype=np.int32)
        cells = merged(points // widths, np.ones(len(points), dtype=np.int64))
        shown = shown_of(cells, self.event, k=self.k, bits=bits)
        low = shown.codes * widths
        return Boxes(low, low + widths - 1, shown.counts)


def shown_of(
    cells: Frequencies, event: SafeRelease | GeometricCounts, *, bits: Randomness, k: int = 1
) -> Frequencies:
    """What is shown of the cells of a public scheme, by a sample or by counts with noise."""
    if isinstance(event, SafeRelease):
        return safe(cells, k=event.k, beta=event.beta, bits=bits)
    return noisy_counts(cells, event, k=k, bits=bits)


def most(schemes: Sequence[SafeSteps], chance: float, *, delta: float = 1e-6) -> float:
    """The most that an attack can succeed that succeeds with a chance on people not in the table.

    For all the releases together, composed; see the module.
    """
    epsilon = Accountant([scheme.event for scheme in schemes]).epsilon(delta=delta)
    return min(1.0, math.exp(epsilon) * chance + delta)
