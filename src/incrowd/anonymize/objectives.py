"""Losses to be made small over a lattice, and what the classes of one node tell of other nodes.

A search passes over nodes whose loss is bounded from below by what it has seen already: all nodes
between two, by their ``floor``. The bounds are given, with their reasons, at each objective.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.lattice import Lattice, Node, NodeClasses, Rollups
from incrowd.arrays import Bools, Floats
from incrowd.measure.loss import LossName, average_class_size, discernibility, separable


class Objective(Protocol):
    """A loss to be made small."""

    steps: list[Floats]
    """For each column a number at each level that never falls: where it rises most, levels differ
    most."""
    summed: bool
    """Whether the floor of a node rises with its level in a column as ``steps`` do."""

    def loss(self, node: Node, classes: NodeClasses) -> float:
        """What a node loses."""
        ...

    def guess(self, node: Node) -> float:
        """Small for nodes that are likely to lose little."""
        ...

    def lost(self, node: Node, classes: NodeClasses) -> float:
        """What every finer node loses for the rows that are surely lost here."""
        ...

    def floor(self, low: Node, lost: float) -> float:
        """What every node coarser than one loses at least, if it loses so much for rows."""
        ...


class Separable:
    """A loss that is a sum of costs over the rows and columns shown, 1 for a row that is not.

    Bounds. Without suppression node x loses G(x), a sum over columns. Each suppressed row
    costs 1 instead of its own cost, so loss(x) = G(x) + p(x), where p(x) is the sum over the
    rows lost at x of (1 - cost at x) / n. For x finer than y, the rows surely lost at y are
    lost at x, and each costs no more at x than at y; hence loss(x) >= G(x) + p(y), with p(y)
    over the rows surely lost. For x coarser than z, a column costs at x no less than the least
    that it costs at its level in z or above; hence the floor.
    """

    summed = True

    def __init__(
        self, rollups: Rollups, costs: Sequence[Sequence[Floats]], weights: Floats
    ) -> None:
        self._rollups = rollups
        shares = weights / weights.sum()
        self._costs = [
            [share * cost for cost in column] for share, column in zip(shares, costs, strict=True)
        ]
        self._means = rollups.by_column(self._costs)
        self.steps = [np.minimum.accumulate(means[::-1])[::-1] for means in self._means]
        self._last: tuple[Bools, float] | None = None

    def loss(self, node: Node, classes: NodeClasses) -> float:
        """G(x) + p(x)."""
        return self.guess(node) + self._penalty(node, classes, surely=False)

    def guess(self, node: Node) -> float:
        """G(x)."""
        return float(sum(means[level] for means, level in zip(self._means, node, strict=True)))

    def lost(self, node: Node, classes: NodeClasses) -> float:
        """p over the rows surely lost."""
        return self._penalty(node, classes, surely=True)

    def floor(self, low: Node, lost: float) -> float:
        """The least G, and p."""
        return float(sum(step[level] for step, level in zip(self.steps, low, strict=True))) + lost

    def _penalty(self, node: Node, classes: NodeClasses, *, surely: bool) -> float:
        lost = classes.surely if surely else classes.lost
        if self._last is not None and self._last[0] is lost:
            return self._last[1]  # where nothing but k is asked for, both are the same
        codes = self._rollups.codes(node, classes.keys[lost])
        kept = np.ones(len(codes))
        for at, level in enumerate(node):
            kept -= self._costs[at][level][codes[:, at]]
        penalty = float((kept * classes.sizes[lost]).sum()) / self._rollups.total
        self._last = (lost, penalty)
        return penalty


class ClassSizes:
    """A loss of the sizes of classes alone: discernibility, or their average.

    Bounds. Discernibility: a class of c rows costs c**2 if shown and at least that if not,
    and joining classes only raises the sum of squares, so every coarser node costs at least
    the sum of squares here; every finer node loses the rows surely lost here, n each.
    Average class size: every coarser node has at most as many classes, and shows at least
    the rows that the limit leaves.
    """

    summed = False

    def __init__(self, lattice: Lattice, rollups: Rollups, name: LossName, limit: int) -> None:
        self._lattice, self._rollups = lattice, rollups
        self._name, self._limit = name, limit
        self.steps = [-np.log(rollups.widths(at)) for at in range(len(rollups.hierarchies))]
        self._floors: dict[Node, float] = {}

    @cached_property
    def order(self) -> Floats:
        """Over the lattice: how few cells a node has."""
        return coarseness(self._lattice, self._rollups)

    @cached_property
    def bound(self) -> Floats:
        """Over the lattice: a lower bound of each node's loss, raised as nodes are seen."""
        return np.zeros(self._lattice.shape)

    def loss(self, node: Node, classes: NodeClasses) -> float:  # noqa: ARG002 - the protocol's
        """What the classes shown cost, and the rows that are not."""
        shown = classes.sizes[~classes.lost]
        if self._name == "discernibility":
            return discernibility(shown, classes.suppressed, self._rollups.total)
        return average_class_size(shown)

    def guess(self, node: Node) -> float:
        """How few cells it has."""
        return float(sum(step[level] for step, level in zip(self.steps, node, strict=True)))

    def lost(self, node: Node, classes: NodeClasses) -> float:  # noqa: ARG002 - the protocol's
        """The rows surely lost, where they count."""
        if self._name == "discernibility":
            return classes.surely_suppressed / self._rollups.total
        return 0.0

    def floor(self, low: Node, lost: float) -> float:
        """By the cells of the finest node, which are counted for it."""
        if low not in self._floors:
            self._floors[low] = self._least(self._rollups.cells(low)[1])
        return max(self._floors[low], lost)

    def _least(self, sizes: npt.NDArray[np.int64]) -> float:
        """What every coarser node costs at least, if classes are of such sizes here."""
        if self._name == "discernibility":
            return discernibility(sizes, 0, self._rollups.total)
        return (self._rollups.total - self._limit) / len(sizes)

    def learn(self, node: Node, classes: NodeClasses) -> None:
        """Raise the bounds of others: whatever is coarser has classes at least as large."""
        coarser, finer = self._lattice.coarser(node), self._lattice.finer(node)
        np.maximum(self.bound[finer], self.lost(node, classes), out=self.bound[finer])
        least = self._least(classes.sizes)
        np.maximum(self.bound[coarser], least, out=self.bound[coarser])

    def next(self, open_: Bools) -> int:
        """Which open place (flat) to look at: the middle, which decides much above or below."""
        return middle(open_, self.order)


def coarseness(lattice: Lattice, rollups: Rollups) -> Floats:
    """Over the lattice: how few cells a node has, as a logarithm."""
    spans = enumerate(zip(lattice.low, lattice.high, strict=True))
    return lattice.summed(
        [-np.log(rollups.widths(at)[low : high + 1]) for at, (low, high) in spans]
    )


def middle(open_: Bools, order: Floats) -> int:
    """The place (flat) of an open node in the middle of the order."""
    places = np.flatnonzero(open_)
    half = len(places) // 2
    return int(places[np.argpartition(order.ravel()[places], half)[half]])


def objective(
    name: LossName, lattice: Lattice, rollups: Rollups, *, limit: int, weights: Floats
) -> Separable | ClassSizes:
    """The loss of that name over a lattice."""
    costs = separable(name, rollups.hierarchies, rollups.held)
    if costs is None:
        return ClassSizes(lattice, rollups, name, limit)
    return Separable(rollups, costs, weights)
