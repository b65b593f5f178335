"""What a scheme keeps of the relation of one column, the target, to all others.

**Score.** The target has one level; a region is all cells that are alike in the others. Let psi_y
be what the ramp gives to a region's cell of the target's value y
(:mod:`incrowd.anonymize.safe_search`), and a_y a whole weight of y, from 1 to A: the rarer the
value, the larger, so that all values weigh alike as far as A allows. In whole numbers,

    f_y = floor(a_y psi_y / 256),

and a scheme scores

    sum over regions of w(region) (sum over y of f_y + max over y of f_y)
      + g W min(c, min over guarded y of F_y),      F_y the sum of f_y over all regions,

w from 0 to W the detail that the region keeps in the other columns. The maximum is what a
prediction of y from the region gets right: regions that tell values apart score more. The last term
is the part of a guarded value that survives at all; it is worth g times as much, up to c, seven
tenths of what the rarest guarded value has. So a scheme that loses a value loses its score, and
beyond seven tenths detail decides.

The weights, c, and which values are guarded (those with at least three crowds of rows) follow from
noisy counts of the target's values that were measured, and paid for, before; without such counts
all weights are alike, and no value is guarded.

**Sensitivity.** Let D be the ramp's slope and E = ceil(A D / 256). A row more raises one psi_y by 0
to D, so one f_y by 0 to E; the sum and the maximum over y, and each F_y and the minimum of them, by
no more than that, and none falls. So the score rises by 0 to (2 + g) W E.

**Bounds.** For a scheme x finer than y a row's cell is no larger at x, and psi(n) / n never falls.
So for each value the sum over x's regions of a_y psi_y, weighted by the detail that the regions
keep, is at most that over y's regions weighted by the most that any part of each keeps; the maximum
over y is at most the sum; and F_y at x at most the sum of a_y psi_y / 256 at y.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Codes, Counts, Floats, Places

PartT = TypeVar("PartT", Counts, Floats)
BASE = 4  # the weight of the most frequent value
MOST = 32  # the largest weight
SHIFT = 8  # bits below which f is cut: noise must fit 64 bits for any number of rows per person
KEPT_TENTHS = 7  # of the rarest guarded value, beyond which more of it is worth no more
CROWDS = 3  # a value with fewer crowds of rows is not guarded
_MOST_VALUES = 4  # g is twice the number of guarded values, or of so many


@dataclass(frozen=True, eq=False)
class TargetValues:
    """The column at place ``at``, the weight of each code of its level, and what is guarded."""

    at: int
    weights: Counts
    guarded: npt.NDArray[np.bool_]
    ceiling: int = 0

    @classmethod
    def from_counts(cls, at: int, counts: Counts, crowd: float) -> Self:
        """Return the weights for noisy counts of each code, at a crowd size."""
        guarded = counts >= CROWDS * crowd
        largest = max(int(counts.max()), 1)
        rarity = np.clip(BASE * largest // np.maximum(counts, 1), BASE, MOST).astype(np.int64)
        weights = np.where(guarded, rarity, BASE)
        ceiling = int((weights * counts)[guarded].min()) * KEPT_TENTHS // 10 if any(guarded) else 0
        return cls(at, weights, guarded, ceiling)

    @classmethod
    def from_labels(cls, at: int, labels: int) -> Self:
        """Return equal weights for so many codes, where nothing was counted."""
        return cls(at, np.full(labels, BASE, dtype=np.int64), np.zeros(labels, dtype=np.bool_))

    @property
    def guard_factor(self) -> int:
        """g: what surviving is worth, beside the detail of all values together."""
        return 2 * min(int(self.guarded.sum()), _MOST_VALUES)

    def compute_sensitivity(self, w: int, slope: int) -> int:
        """Return the most by which a row raises a score, for a largest detail and a slope."""
        return (2 + self.guard_factor) * w * -(-int(self.weights.max()) * slope // (1 << SHIFT))

    def rate_cells(self, codes: Codes, psi: Counts, regions: Regions, b: int) -> tuple[Counts, int]:
        """Return what each region counts for, and g min(c, min F), for psi of each cell."""
        f = (self.weights[codes] * psi) >> SHIFT
        return regions.add(f) + regions.take_largest(f), int(self._guard(codes, f, b))

    def bound_cells(
        self, codes: Codes, psi: Counts | Floats, regions: Regions, b: int
    ) -> tuple[Floats, float]:
        """Return what both are at most at any finer scheme."""
        f = self.weights[codes] * psi / (1 << SHIFT)
        return 2 * regions.add(f), self._guard(codes, f, b)

    def _guard(self, codes: Codes, f: Counts | Floats, b: int) -> float:
        if not self.guard_factor:
            return 0.0
        sums = np.bincount(codes, weights=f, minlength=len(self.weights))
        least = float(sums[self.guarded].min())
        return self.guard_factor * min(least, float((self.ceiling * b) >> SHIFT))


@dataclass(frozen=True, eq=False)
class Regions:
    """Cells in the order of their regions, and where each region starts."""

    order: Places
    starts: Places

    def add(self, parts: PartT) -> PartT:
        """Return the sum over each region."""
        return np.add.reduceat(parts[self.order], self.starts)

    def take_largest(self, parts: Counts) -> Counts:
        """Return the largest part of each region."""
        return np.maximum.reduceat(parts[self.order], self.starts)

    @property
    def first_cells(self) -> Places:
        """One cell of each region."""
        return self.order[self.starts]
