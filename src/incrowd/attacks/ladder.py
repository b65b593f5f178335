"""The safe release that the attacks on paper A's baselines are held against.

Every column is cut into steps of a public width, so what a class shows depends on nobody; rows are
drawn with probability beta and cells of fewer than k drawn rows are dropped (paper A's Algorithm 4,
:mod:`incrowd.anonymize.safe`).

What the guarantee says of an attack. Let an attack on one person succeed with chance p when the
person is not in the table. Whether it succeeds is a function of the release, so with the person in
the table its chance is at most e^epsilon p + delta, for every (epsilon, delta) that holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from incrowd.anonymize.safe import safe
from incrowd.arrays import Codes
from incrowd.codes.axis import Boxes
from incrowd.codes.frequency import merged
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import SafeRelease
from incrowd.privacy.randomness import Randomness


@dataclass(frozen=True)
class Ladder:
    """A public scheme: the width of the steps of each column, and the k and beta of the release."""

    widths: tuple[int, ...]
    k: int
    beta: float

    def publish(self, points: Codes, bits: Randomness) -> Boxes:
        """The cells that are shown, as boxes from the lowest to the highest value of each step."""
        widths = np.array(self.widths, dtype=np.int32)
        ones = np.ones(len(points), dtype=np.int64)
        shown = safe(merged(points // widths, ones), k=self.k, beta=self.beta, bits=bits)
        low = shown.codes * widths
        return Boxes(low, low + widths - 1, shown.counts)


def most(ladders: list[Ladder], chance: float, *, delta: float = 1e-6) -> float:
    """The most that an attack can succeed that succeeds with a chance on people not in the table.

    For all the releases together, composed; see the module.
    """
    spent = [SafeRelease(k=ladder.k, beta=ladder.beta) for ladder in ladders]
    epsilon = Accountant(spent).epsilon(delta=delta)
    return min(1.0, math.exp(epsilon) * chance + delta)
