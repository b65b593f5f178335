"""The rule that no column is suppressed for the finest level of another.

A scheme is left out if it suppresses a column, which has other levels to choose from, while a
column of the same weight or less has the finest of the levels that it may have, and a coarser
one besides that shows something. The top of the lattice is always left in, and what is left in
depends on the spec alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.lattice import Lattice, Node
from incrowd.arrays import Floats
from incrowd.codes.hierarchy import Hierarchy


def find_balanced(
    lattice: Lattice, hierarchies: Sequence[Hierarchy], weights: Floats
) -> npt.NDArray[np.bool_]:
    """Return over the lattice which schemes suppress no column for the finest of another."""
    suppressed, finest = [], []
    for at, (low, high) in enumerate(zip(lattice.low, lattice.high, strict=True)):
        informative = count_informative_levels(hierarchies[at], low, high)
        levels = np.arange(high - low + 1)
        suppressed.append(np.where((levels >= informative) & (low < high), weights[at], -np.inf))
        is_finest = (levels == 0) & (informative > 1) & (weights[at] > 0)  # a target has no weight
        finest.append(np.where(is_finest, weights[at], np.inf))
    most_suppressed = lattice.fold_levels(suppressed, np.maximum, -np.inf)
    return lattice.fold_levels(finest, np.minimum, np.inf) > most_suppressed


@dataclass(frozen=True)
class BalanceRule:
    """Which level first suppresses a column, its weight there, and its weight at its finest level.

    A scheme takes part if no suppressed column weighs as much as one at its finest level, or more.
    """

    suppressed_from: Node
    weights: tuple[float, ...]
    fine_weights: tuple[float, ...]
    shares: tuple[float, ...]

    @classmethod
    def from_lattice(
        cls, lattice: Lattice, hierarchies: Sequence[Hierarchy], weights: Floats
    ) -> Self:
        """Return the rule for the schemes of a lattice and the weights of columns."""
        suppressed_from, fine_weights = [], []
        for at, (low, high) in enumerate(zip(lattice.low, lattice.high, strict=True)):
            informative = count_informative_levels(hierarchies[at], low, high)
            suppressed_from.append(low + informative if low < high else high + 1)
            has_finest = informative > 1 and weights[at] > 0  # a target has no weight
            fine_weights.append(float(weights[at]) if has_finest else math.inf)
        shares = weights / weights.sum()
        return cls(
            tuple(suppressed_from),
            tuple(weights.tolist()),
            tuple(fine_weights),
            tuple(shares.tolist()),
        )

    def weigh_visible(self, levels: Sequence[int]) -> float:
        """Return 1, less half the share of the columns that are suppressed."""
        hidden = 0.0
        for level, first, share in zip(levels, self.suppressed_from, self.shares, strict=True):
            if level >= first:
                hidden += share / 2
        return 1 - hidden

    def narrow(self, low: Node, finest: list[int], coarsest: list[int]) -> bool:
        """Drop levels at which no scheme of a box takes part; return whether there were any."""
        columns = range(len(low))
        hidden = max(
            (self.weights[at] for at in columns if finest[at] >= self.suppressed_from[at]),
            default=-math.inf,
        )
        visible = min(
            (self.fine_weights[at] for at in columns if coarsest[at] == low[at]), default=math.inf
        )
        is_changed = False
        for at in columns:
            if finest[at] == low[at] and self.fine_weights[at] <= hidden:
                finest[at] += 1
                is_changed = True
            if self.weights[at] >= visible and coarsest[at] >= self.suppressed_from[at]:
                coarsest[at] = self.suppressed_from[at] - 1
                is_changed = True
        return is_changed


def count_informative_levels(hierarchy: Hierarchy, low: int, high: int) -> int:
    """Return how many of the levels, counted from the lowest, show something of a column."""
    is_root_allowed = high == hierarchy.height - 1 and hierarchy.is_rooted
    return high - low + 1 - int(is_root_allowed)
