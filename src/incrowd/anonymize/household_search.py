"""Choosing a scheme for households that are published whole, privately.

**Score.** A scheme scores the sum over types of households (:mod:`incrowd.codes.household_type`) of
w(type) psi(households of the type). psi is the ramp of :mod:`incrowd.anonymize.safe_search`. The
weight of a type is the mean of the weights of its people, cut to a whole number; that of a person,
from 0 to W, is the detail that all labels of its row keep, those of the household among them, less
half the share of the columns that the scheme suppresses. Weights of people are whole numbers before
they are summed, so that a type weighs the same whatever else the table has.

**Sensitivity.** At every scheme a household has one type. Adding it raises the count of that type
by one, hence psi by 0 to D, the ramp's slope, and the score by 0 to W D, all whole numbers. That
is the sensitivity of one row, however many people the household has.

**Search.** The noise of every scheme is drawn first, and the largest noisy score is found exactly.
Households of one type at a scheme have one type at any coarser one, and psi(a) + psi(b) is at most
psi(a + b); so psi, summed over types, is at most what it is at a coarser scheme, and a score at
most that sum times the most that a row can keep. Schemes that cannot win by this bound are passed
over, which changes the time that it takes and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from incrowd.anonymize.lattice import Lattice, Node
from incrowd.anonymize.safe_search import ChosenScheme, Ramp, W, find_balanced, weigh_detail
from incrowd.arrays import Bools, Counts, Floats
from incrowd.codes.household_type import HouseholdMembers
from incrowd.errors import ParameterError
from incrowd.measure.loss import compute_normalized_costs
from incrowd.privacy.randomness import Randomness
from incrowd.privacy.selection import sample_one_sided_noise

MOST_SCHEMES = 20_000  # each one that may win is counted household by household
_SLACK = 1 + 1e-6  # bounds are floats; they must not fall below the truth


def search_household_scheme(
    table: HouseholdMembers,
    lattice: Lattice,
    ramps: Sequence[Ramp],
    *,
    epsilon: Fraction,
    power: int,
    weights: Floats,
    bits: Randomness,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> ChosenScheme:
    """Choose a scheme of the lattice and a ramp by report noisy max: epsilon-private.

    ``table`` has households with all their people at level 0. The other arguments are those of
    :func:`incrowd.anonymize.safe_search.search_scheme`.
    """
    refuse_many_schemes(lattice)
    noise = sample_one_sided_noise(
        len(ramps) * lattice.size, sensitivity=W * max(ramp.d for ramp in ramps), epsilon=epsilon,
        bits=bits,
    ).reshape(len(ramps), *lattice.shape)  # fmt: skip
    search = _HouseholdSearch(table, lattice, ramps, noise, power, weights)
    search.climb()
    while (node := search.find_coarsest_open()) is not None:
        search.score_node(node)
        progress(search.scored, lattice.size)
    return search.build_choice()


def refuse_many_schemes(lattice: Lattice) -> None:
    """Refuse more schemes than households can be counted at."""
    if lattice.size > MOST_SCHEMES:
        raise ParameterError(
            "levels",
            f"leave at most {MOST_SCHEMES:,} schemes to search for households published whole",
            lattice.size,
            "Narrow `levels`, or publish fewer columns.",
        )


class _HouseholdSearch:
    """The best noisy score so far, and which candidates may still beat it."""

    def __init__(
        self,
        table: HouseholdMembers,
        lattice: Lattice,
        ramps: Sequence[Ramp],
        noise: Counts,
        power: int,
        weights: Floats,
    ) -> None:
        self._table, self._lattice, self._ramps = table, lattice, ramps
        self._noise, self._power = noise, power
        shares = weights / weights.sum()
        self._kept = [
            [share * (1 - cost) for cost in compute_normalized_costs(hierarchy)]
            for share, hierarchy in zip(shares, table.hierarchies, strict=True)
        ]
        spans = list(enumerate(zip(lattice.low, lattice.high, strict=True)))
        self._factor = 1 - lattice.sum_levels(
            [
                [
                    shares[at] / 2 if self._is_suppressed(at, level) else 0.0
                    for level in range(low, high + 1)
                ]
                for at, (low, high) in spans
            ]
        )
        detail = lattice.sum_levels(
            [
                [float(self._kept[at][level].max()) for level in range(low, high + 1)]
                for at, (low, high) in spans
            ]
        )
        self._best_weight = np.minimum(detail, 1.0) ** power * self._factor
        self._groups = lattice.sum_levels(
            [
                [
                    float(np.log2(len(table.hierarchies[at].labels[level])))
                    for level in range(low, high + 1)
                ]
                for at, (low, high) in spans
            ]
        )
        self._is_open = np.broadcast_to(
            find_balanced(lattice, table.hierarchies, weights), noise.shape
        ).copy()
        self._bound = np.full(noise.shape, np.inf)
        self._best: tuple[int, int, Node] | None = None  # noisy score, ramp, scheme
        self.scored = 0

    def _is_suppressed(self, at: int, level: int) -> bool:
        """Return whether a column, which has other levels to choose from, shows nothing."""
        hierarchy = self._table.hierarchies[at]
        is_free = self._lattice.low[at] < self._lattice.high[at]
        return is_free and level == hierarchy.height - 1 and hierarchy.is_rooted

    def climb(self) -> None:
        """Climb from the top to a good candidate, always to the best node near by."""
        self.score_node(self._lattice.high)
        before = None
        while self._best is not None and self._best[2] != before:
            before = self._best[2]
            for node in self._lattice.iterate_neighbors(before):
                if self._may_win(node):
                    self.score_node(node)

    def find_coarsest_open(self) -> Node | None:
        """Return the coarsest node that may still win, for what it bounds; None if none may."""
        places = np.flatnonzero(self._find_open().any(axis=0))
        if not len(places):
            return None
        coarsest = places[np.argmin(self._groups.ravel()[places])]
        return self._lattice.get_node(int(coarsest))

    def _find_open(self) -> Bools:
        if self._best is None:
            return self._is_open
        is_open: Bools = self._is_open & (self._bound >= self._best[0] - self._noise)
        return is_open

    def _may_win(self, node: Node) -> bool:
        place = self._lattice.locate_node(node)
        return any(bool(is_open[place]) for is_open in self._find_open())

    def score_node(self, node: Node) -> None:
        """Score a node for every ramp, and bound what is finer."""
        self.scored += 1
        place = self._lattice.locate_node(node)
        table = self._table.roll_up(node)
        types = table.types
        weights = self._weigh_types(table, node)
        for number, ramp in enumerate(self._ramps):
            psi = ramp.compute_psi(types.counts)
            candidate = (number, *place)
            if self._is_open[candidate]:
                noisy = int((weights * psi).sum()) + int(self._noise[candidate])
                rank = (noisy, -number, tuple(-level for level in node))
                if self._best is None or rank > self._rank_best():
                    self._best = (noisy, number, node)
            self._is_open[candidate] = False
            finer = self._lattice.slice_finer(node)
            bounds = self._bound[number][finer]
            most = self._best_weight[finer] * (W * _SLACK)
            np.minimum(bounds, most * float(psi.sum()), out=bounds)

    def _rank_best(self) -> tuple[int, int, Node]:
        """Return the best candidate as it is compared: of equal scores the first one wins."""
        assert self._best is not None
        noisy, number, node = self._best
        return noisy, -number, tuple(-level for level in node)

    def _weigh_types(self, table: HouseholdMembers, node: Node) -> Counts:
        """Return the weight of each type, a whole number from 0 to W."""
        detail = np.zeros(len(table.frequencies))
        for at, level in enumerate(node):
            detail += self._kept[at][level][table.frequencies.codes[:, at]]
        people = weigh_detail(detail, self._power, self._factor[self._lattice.locate_node(node)])
        types = table.types
        if not len(types.counts):
            return np.zeros(0, dtype=np.int64)
        weights: Counts = np.add.reduceat(people[types.members], types.starts) // types.sizes
        return weights

    def build_choice(self) -> ChosenScheme:
        """Return the best candidate."""
        assert self._best is not None
        return ChosenScheme(self._best[2], self._ramps[self._best[1]], self.scored)
