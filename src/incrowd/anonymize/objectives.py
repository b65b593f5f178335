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
from incrowd.measure.loss import (
    LossName,
    compute_average_class_size,
    compute_discernibility,
    compute_separable_costs,
)
from incrowd.measure.payout import PayoutModel, compute_bit_loss


class Objective(Protocol):
    """A loss to be made small."""

    steps: list[Floats]
    """For each column a number at each level that never falls: where it rises most, levels differ
    most."""
    summed: bool
    """Whether the floor of a node rises with its level in a column as ``steps`` do."""

    def compute_loss(self, node: Node, classes: NodeClasses) -> float:
        """Return what a node loses."""
        ...

    def guess_loss(self, node: Node) -> float:
        """Return a number that is small for nodes that are likely to lose little."""
        ...

    def bound_row_loss(self, node: Node, classes: NodeClasses) -> float:
        """Return what every finer node loses for the rows that are surely lost here."""
        ...

    def compute_floor(self, low: Node, lost: float) -> float:
        """Return what every coarser node loses at least, if it loses ``lost`` for rows."""
        ...


class SeparableLoss:
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
        self._means = rollups.compute_column_means(self._costs)
        self.steps = [np.minimum.accumulate(means[::-1])[::-1] for means in self._means]
        self._last: tuple[Bools, float] | None = None

    def compute_loss(self, node: Node, classes: NodeClasses) -> float:
        """Return G(x) + p(x)."""
        return self.guess_loss(node) + self._compute_penalty(node, classes, surely=False)

    def guess_loss(self, node: Node) -> float:
        """Return G(x)."""
        return float(sum(means[level] for means, level in zip(self._means, node, strict=True)))

    def bound_row_loss(self, node: Node, classes: NodeClasses) -> float:
        """Return p over the rows surely lost."""
        return self._compute_penalty(node, classes, surely=True)

    def compute_floor(self, low: Node, lost: float) -> float:
        """Return the least G, plus p."""
        return float(sum(step[level] for step, level in zip(self.steps, low, strict=True))) + lost

    def _compute_penalty(self, node: Node, classes: NodeClasses, *, surely: bool) -> float:
        lost = classes.surely if surely else classes.lost
        if self._last is not None and self._last[0] is lost:
            return self._last[1]  # where nothing but k is asked for, both are the same
        codes = self._rollups.decode_keys(node, classes.keys[lost])
        kept_detail = np.ones(len(codes))
        for at, level in enumerate(node):
            kept_detail -= self._costs[at][level][codes[:, at]]
        penalty = float((kept_detail * classes.sizes[lost]).sum()) / self._rollups.total
        self._last = (lost, penalty)
        return penalty


class PayoutLoss(SeparableLoss):
    """The share of the highest payout that a release misses: 1 - payout / (rows * benefit).

    A published record misses its information loss, a sum of costs over columns, and its part of
    what re-identifications cost; a suppressed one misses everything. So loss(x) = S(x) + R(x) with
    S the separable loss of these costs and R what re-identifications at x cost, over rows *
    benefit. It may exceed 1.

    Bounds. R is at least 0 at every node, so that each lower bound of S is one of the loss, and
    those of :class:`SeparableLoss` hold. R itself bounds no other node: a coarser one may have
    classes that nobody attacks, a finer one may suppress those that are attacked here. All that a
    search looks at is judged with R; where the benefit hardly matters beside the publisher's loss,
    it passes over few nodes.
    """

    def __init__(self, rollups: Rollups, model: PayoutModel) -> None:
        costs = [
            [
                compute_bit_loss(hierarchy.count_covered(level), hierarchy.size)
                for level in range(hierarchy.height)
            ]
            for hierarchy in rollups.hierarchies
        ]
        super().__init__(rollups, costs, model.weigh_columns(rollups.hierarchies))
        self._model = model

    def compute_loss(self, node: Node, classes: NodeClasses) -> float:
        """Return S(x) + R(x)."""
        lost = self._model.count_reidentified(classes.sizes[~classes.lost])
        highest = self._rollups.total * self._model.benefit
        return super().compute_loss(node, classes) + self._model.publisher_loss * lost / highest


class ClassSizeLoss:
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
        self.steps = [-np.log(rollups.count_groups(at)) for at in range(len(rollups.hierarchies))]
        self._floors: dict[Node, float] = {}

    @cached_property
    def order(self) -> Floats:
        """Over the lattice: how few cells a node has."""
        return compute_coarseness(self._lattice, self._rollups)

    @cached_property
    def bound(self) -> Floats:
        """Over the lattice: a lower bound of each node's loss, raised as nodes are seen."""
        return np.zeros(self._lattice.shape)

    def compute_loss(self, node: Node, classes: NodeClasses) -> float:  # noqa: ARG002 - the protocol's
        """Return what the classes published cost, and the rows that are not."""
        published_sizes = classes.sizes[~classes.lost]
        if self._name == "discernibility":
            return compute_discernibility(published_sizes, classes.suppressed, self._rollups.total)
        return compute_average_class_size(published_sizes)

    def guess_loss(self, node: Node) -> float:
        """Return how few cells the node has."""
        return float(sum(step[level] for step, level in zip(self.steps, node, strict=True)))

    def bound_row_loss(self, node: Node, classes: NodeClasses) -> float:  # noqa: ARG002 - the protocol's
        """Return the rows surely lost, where they count."""
        if self._name == "discernibility":
            return classes.surely_suppressed / self._rollups.total
        return 0.0

    def compute_floor(self, low: Node, lost: float) -> float:
        """Return the floor by the cells of the finest node, which are counted for it."""
        if low not in self._floors:
            self._floors[low] = self._bound_loss(self._rollups.count_cells(low)[1])
        return max(self._floors[low], lost)

    def _bound_loss(self, sizes: npt.NDArray[np.int64]) -> float:
        """Return what every coarser node costs at least, if classes are of such sizes here."""
        if self._name == "discernibility":
            return compute_discernibility(sizes, 0, self._rollups.total)
        return (self._rollups.total - self._limit) / len(sizes)

    def raise_bounds(self, node: Node, classes: NodeClasses) -> None:
        """Raise the bounds of others: whatever is coarser has classes at least as large."""
        coarser, finer = self._lattice.slice_coarser(node), self._lattice.slice_finer(node)
        np.maximum(self.bound[finer], self.bound_row_loss(node, classes), out=self.bound[finer])
        lower_bound = self._bound_loss(classes.sizes)
        np.maximum(self.bound[coarser], lower_bound, out=self.bound[coarser])

    def choose_next(self, open_: Bools) -> int:
        """Return the open place (flat) to evaluate: the middle, which decides much either way."""
        return find_middle(open_, self.order)


def compute_coarseness(lattice: Lattice, rollups: Rollups) -> Floats:
    """Return over the lattice how few cells a node has, as a logarithm."""
    spans = enumerate(zip(lattice.low, lattice.high, strict=True))
    return lattice.sum_levels(
        [-np.log(rollups.count_groups(at)[low : high + 1]) for at, (low, high) in spans]
    )


def find_middle(open_: Bools, order: Floats) -> int:
    """Return the place (flat) of an open node in the middle of the order."""
    places = np.flatnonzero(open_)
    half = len(places) // 2
    return int(places[np.argpartition(order.ravel()[places], half)[half]])


def make_objective(
    loss: LossName | PayoutModel,
    lattice: Lattice,
    rollups: Rollups,
    *,
    limit: int,
    weights: Floats,
) -> SeparableLoss | ClassSizeLoss:
    """Return the loss of that name over a lattice, or that of a payout, which has its weights."""
    if isinstance(loss, PayoutModel):
        return PayoutLoss(rollups, loss)
    costs = compute_separable_costs(loss, rollups.hierarchies, rollups.rows_by_code)
    if costs is None:
        return ClassSizeLoss(lattice, rollups, loss, limit)
    return SeparableLoss(rollups, costs, weights)
