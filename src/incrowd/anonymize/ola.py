"""Optimal lattice anonymization: the best full-domain scheme under a suppression limit.

Two questions about the same lattice. :func:`minimal` finds all k-minimal nodes (those that
stay within the limit while no finer node does), as OLA does (El Emam and others): nodes are
decided half by half, and each decision decides everything finer or everything coarser.
:func:`optimal` finds the node of least loss in the whole lattice, which need not be minimal.

Claim of :func:`optimal`: no node within the limit has a smaller loss than the one returned.
A node is passed over only if (1) a coarser node surely suppresses too many rows, for rows
lost there are lost at every finer node; or (2) a lower bound of its loss is not below the
best loss seen. The bounds are given, with their reasons, at the objectives below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.lattice import Lattice, Node, NodeClasses, Rollups
from incrowd.arrays import Bools, Floats, Progress
from incrowd.errors import IncrowdError, ParameterError
from incrowd.measure.loss import (
    LossName,
    average_class_size,
    discernibility,
    separable,
)


def _silent(_decided: int, _nodes: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Optimum:
    """A node, what it loses and suppresses, and how many nodes were looked at to find it."""

    levels: Node
    loss: float
    suppressed: int
    evaluated: int


class NoSchemeError(IncrowdError):
    """No node satisfies what was asked."""


class Objective(Protocol):
    """A loss to be made small, and what one node's classes tell about others' losses."""

    order: Floats
    """Over the lattice: nodes that are likely to lose little come first."""
    bound: Floats
    """Over the lattice: a lower bound of each node's loss, raised as nodes are seen."""

    def loss(self, node: Node, classes: NodeClasses) -> float:
        """What a node loses."""
        ...

    def learn(self, node: Node, classes: NodeClasses) -> None:
        """Raise the bounds of other nodes."""
        ...

    def next(self, open_: Bools) -> int:
        """Which of the open places (flat) to look at."""
        ...


class Separable:
    """A loss that is a sum of costs over the rows and columns shown, 1 for a row that is not.

    Bounds. Without suppression node x loses G(x), a sum over columns. Each suppressed row
    costs 1 instead of its own cost, so loss(x) = G(x) + p(x), where p(x) is the sum over the
    rows lost at x of (1 - cost at x) / n. For x finer than y, the rows surely lost at y are
    lost at x, and each costs no more at x than at y; hence loss(x) >= G(x) + p(y), with p(y)
    over the rows surely lost.
    """

    def __init__(
        self, lattice: Lattice, rollups: Rollups, costs: Sequence[Sequence[Floats]], weights: Floats
    ) -> None:
        self._lattice, self._rollups = lattice, rollups
        shares = weights / weights.sum()
        self._costs = [
            [share * cost for cost in column] for share, column in zip(shares, costs, strict=True)
        ]
        self.order = lattice.summed(
            [
                means[lattice.low[at] : lattice.high[at] + 1]
                for at, means in enumerate(rollups.by_column(self._costs))
            ]
        )
        self.bound = self.order.copy()
        self._below: npt.NDArray[np.float32] | None = None

    def loss(self, node: Node, classes: NodeClasses) -> float:
        """G(x) + p(x)."""
        return float(self.order[self._lattice.place(node)]) + self._penalty(
            node, classes, surely=False
        )

    def learn(self, node: Node, classes: NodeClasses) -> None:
        """Whatever is finer loses the rows that are surely lost here."""
        finer = self._lattice.finer(node)
        penalty = self._penalty(node, classes, surely=True)
        np.maximum(self.bound[finer], self.order[finer] + penalty, out=self.bound[finer])

    def next(self, open_: Bools) -> int:
        """The one with the most open nodes finer than it: if it fails, they fail with it.

        Such numbers only fall. They are counted again when one has fallen to less than half.
        """
        if self._below is not None:
            place = int(np.argmax(np.where(open_, self._below, -1)))
            finer = self._lattice.finer(self._lattice.at(place))
            if 2 * np.count_nonzero(open_[finer]) >= self._below.flat[place]:
                return place
        self._below = self._lattice.below(open_)
        return int(np.argmax(np.where(open_, self._below, -1)))

    def _penalty(self, node: Node, classes: NodeClasses, *, surely: bool) -> float:
        lost = classes.surely if surely else classes.lost
        codes = self._rollups.codes(node, classes.keys[lost])
        kept = np.ones(len(codes))
        for at, level in enumerate(node):
            kept -= self._costs[at][level][codes[:, at]]
        return float((kept * classes.sizes[lost]).sum()) / self._rollups.total


class ClassSizes:
    """A loss of the sizes of classes alone: discernibility, or their average.

    Bounds. Discernibility: a class of c rows costs c**2 if shown and at least that if not,
    and joining classes only raises the sum of squares, so every coarser node costs at least
    the sum of squares here; every finer node loses the rows surely lost here, n each.
    Average class size: every coarser node has at most as many classes, and shows at least
    the rows that the limit leaves.
    """

    def __init__(self, lattice: Lattice, rollups: Rollups, name: LossName, limit: int) -> None:
        self._lattice, self._rollups = lattice, rollups
        self._name, self._limit = name, limit
        self.order = _coarseness(lattice, rollups)
        self.bound = np.zeros(lattice.shape)

    def loss(self, node: Node, classes: NodeClasses) -> float:  # noqa: ARG002 - the protocol's
        """What the classes shown cost, and the rows that are not."""
        shown = classes.sizes[~classes.lost]
        if self._name == "discernibility":
            return discernibility(shown, classes.suppressed, self._rollups.total)
        return average_class_size(shown)

    def learn(self, node: Node, classes: NodeClasses) -> None:
        """Whatever is coarser has classes at least as large."""
        total = self._rollups.total
        coarser, finer = self._lattice.coarser(node), self._lattice.finer(node)
        if self._name == "discernibility":
            floor = discernibility(classes.sizes, 0, total)
            below = classes.surely_suppressed / total
            np.maximum(self.bound[finer], below, out=self.bound[finer])
        else:
            floor = (total - self._limit) / len(classes.sizes)
        np.maximum(self.bound[coarser], floor, out=self.bound[coarser])

    def next(self, open_: Bools) -> int:
        """The middle: what is decided there decides much above or below."""
        return _middle(open_, self.order)


def _coarseness(lattice: Lattice, rollups: Rollups) -> Floats:
    """Over the lattice: how few cells a node has, as a logarithm."""
    return lattice.summed(
        [
            -np.log([len(hierarchy.labels[level]) for level in range(low, high + 1)])
            for hierarchy, low, high in zip(
                rollups.hierarchies, lattice.low, lattice.high, strict=True
            )
        ]
    )


def _middle(open_: Bools, order: Floats) -> int:
    """The place (flat) of an open node in the middle of the order."""
    places = np.flatnonzero(open_)
    half = len(places) // 2
    return int(places[np.argpartition(order.ravel()[places], half)[half]])


def objective(
    name: LossName, lattice: Lattice, rollups: Rollups, *, limit: int, weights: Floats
) -> Objective:
    """The loss of that name over a lattice."""
    held = rollups.held()
    costs = separable(name, rollups.hierarchies, held)
    if costs is None:
        return ClassSizes(lattice, rollups, name, limit)
    return Separable(lattice, rollups, costs, weights)


def optimal(
    rollups: Rollups,
    lattice: Lattice,
    *,
    k: int,
    limit: int,
    loss: LossName = "normalised",
    weights: Floats | None = None,
    progress: Progress = _silent,
) -> Optimum:
    """The node of least loss among those that suppress at most ``limit`` rows.

    Of equally good nodes the first that the search meets; the search is deterministic.
    """
    weights = np.ones(len(rollups.hierarchies)) if weights is None else weights
    goal = objective(loss, lattice, rollups, limit=limit, weights=weights)
    search = _Search(rollups, lattice, goal, k=k, limit=limit, progress=progress)
    search.descend()
    while (node := search.open_node()) is not None:
        search.look(node)
    search.polish()
    return search.answer()


class _Search:
    """Best node so far, and which nodes may still be better."""

    def __init__(
        self,
        rollups: Rollups,
        lattice: Lattice,
        goal: Objective,
        *,
        k: int,
        limit: int,
        progress: Progress,
    ) -> None:
        self._rollups, self._lattice, self._goal = rollups, lattice, goal
        self._k, self._limit, self._progress = k, limit, progress
        self._closed = np.zeros(lattice.shape, dtype=bool)
        self._best: tuple[float, Node, int] | None = None
        self._evaluated = 0

    def look(self, node: Node) -> bool:
        """Evaluate a node; whether it stays within the limit."""
        self._evaluated += 1
        classes = self._rollups.classes(node, k=self._k, limit=self._limit)
        if classes is None:
            self._closed[self._lattice.finer(node)] = True
            return False
        self._closed[self._lattice.place(node)] = True
        self._goal.learn(node, classes)
        if classes.suppressed > self._limit:
            return False
        loss = self._goal.loss(node, classes)
        if self._best is None or loss < self._best[0]:
            self._best = (loss, node, classes.suppressed)
        return True

    def descend(self) -> None:
        """A good node at once: from the top, always to the most promising child that holds."""
        node: Node | None = self._lattice.high
        if not self.look(self._lattice.high):
            return
        while node is not None:
            children = [
                child
                for child in self._lattice.children(node)
                if not self._closed[self._lattice.place(child)]
            ]
            children.sort(key=lambda child: float(self._goal.order[self._lattice.place(child)]))
            node = next((child for child in children if self.look(child)), None)

    def open_node(self) -> Node | None:
        """A node that may be better than the best, or None."""
        best = np.inf if self._best is None else self._best[0]
        open_ = self._goal.bound < best
        open_ &= ~self._closed
        remaining = int(np.count_nonzero(open_))
        self._progress(self._lattice.size - remaining, self._lattice.size)
        if not remaining:
            return None
        return self._lattice.at(self._goal.next(open_))

    def polish(self) -> None:
        """Of equally good schemes prefer the finer: nothing is gained by hiding more."""
        while self._best is not None:
            loss, node, _ = self._best
            for child in self._lattice.children(node):
                classes = self._rollups.classes(child, k=self._k, limit=self._limit)
                if classes is None or classes.suppressed > self._limit:
                    continue
                if self._goal.loss(child, classes) <= loss:
                    self._best = (loss, child, classes.suppressed)
                    break
            else:
                return

    def answer(self) -> Optimum:
        if self._best is None:
            raise NoSchemeError(_nothing(self._k, self._limit))
        loss, node, suppressed = self._best
        return Optimum(node, loss, suppressed, self._evaluated)


def minimal(
    rollups: Rollups,
    lattice: Lattice,
    *,
    k: int,
    limit: int,
    loss: LossName = "normalised",
    weights: Floats | None = None,
    progress: Progress = _silent,
) -> list[Optimum]:
    """All k-minimal nodes, the best by the chosen loss first.

    Needs that satisfying classes stay so whatever joins them; entropy-diversity and closeness
    promise that only where nothing may be suppressed.
    """
    if not rollups.monotone and limit:
        raise ParameterError(
            "candidates",
            "be 'all' with entropy-diversity or closeness and suppression",
            "minimal",
            "Or set 'suppression: 0'.",
        )
    weights = np.ones(len(rollups.hierarchies)) if weights is None else weights
    goal = objective(loss, lattice, rollups, limit=limit, weights=weights)
    order = _coarseness(lattice, rollups)
    holds = np.zeros(lattice.shape, dtype=bool)
    fails = np.zeros(lattice.shape, dtype=bool)
    evaluated = 0
    while True:
        open_ = ~(holds | fails)
        remaining = int(open_.sum())
        progress(lattice.size - remaining, lattice.size)
        if not remaining:
            break
        node = lattice.at(_middle(open_, order))
        evaluated += 1
        classes = rollups.classes(node, k=k, limit=limit)
        if classes is None or classes.suppressed > limit:
            fails[lattice.finer(node)] = True
        else:
            holds[lattice.coarser(node)] = True
    found = []
    for place in np.flatnonzero(holds):
        node = lattice.at(int(place))
        if not any(holds[lattice.place(child)] for child in lattice.children(node)):
            classes = rollups.classes(node, k=k)
            assert classes is not None
            found.append(Optimum(node, goal.loss(node, classes), classes.suppressed, evaluated))
    if not found:
        raise NoSchemeError(_nothing(k, limit))
    return sorted(found, key=lambda scheme: (scheme.loss, scheme.levels))


def _nothing(k: int, limit: int) -> str:
    return (
        f"No scheme satisfies what is asked with k = {k} and at most {limit:,} rows suppressed, "
        "not even the coarsest. Allow more suppression or higher levels, or ask for less."
    )
