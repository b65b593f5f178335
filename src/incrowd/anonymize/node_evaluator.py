"""Looking at the nodes of a lattice one by one: the best so far, and what need not be looked at.

:class:`ListedSearch` searches a lattice by a list of its nodes, :mod:`incrowd.anonymize.ola`
without.

**Packed nodes.** Nodes of a lattice kept in few whole numbers, so that one is compared with very
many at once.

Each column has its bits in a word, and one bit above them that a level never sets. A node with
these bits set, minus another, keeps all of them exactly where no level is lower than the other's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.lattice import Lattice, Node, NodeClasses, Rollups
from incrowd.anonymize.objectives import ClassSizeLoss, Objective
from incrowd.arrays import Progress
from incrowd.errors import IncrowdError

_BITS = 64


class PackedNodes:
    """Nodes with a number each; ``highest`` is the highest level of each column."""

    def __init__(self, highest: Sequence[int]) -> None:
        self._fields: list[tuple[int, int]] = []
        self._guards = [0]
        used = 0
        for level in highest:
            bits = level.bit_length() + 1
            if used + bits > _BITS:
                self._guards.append(0)
                used = 0
            self._fields.append((len(self._guards) - 1, used))
            used += bits
            self._guards[-1] |= 1 << (used - 1)
        self._kept = np.zeros((len(self._guards), 16), dtype=np.uint64)
        self._values = np.zeros(16)
        self._count = 0

    def add(self, node: Sequence[int], value: float = 0.0) -> None:
        """Keep one more node."""
        if self._count == len(self._values):
            self._kept = np.concatenate([self._kept, np.zeros_like(self._kept)], axis=1)
            self._values = np.concatenate([self._values, np.zeros_like(self._values)])
        self._kept[:, self._count] = self._pack_node(node)
        self._values[self._count] = value
        self._count += 1

    def has_coarser(self, node: Sequence[int]) -> bool:
        """Return whether one of them is nowhere finer than a node."""
        coarser = np.ones(self._count, dtype=bool)
        for words, word, guard in self._iterate_words(node):
            coarser &= ((words + np.uint64(guard - word)) & np.uint64(guard)) == guard
        return bool(coarser.any())

    def find_least_finer(self, node: Sequence[int]) -> float | None:
        """Return the least number of those nowhere coarser than a node, if there are any."""
        is_finer = np.ones(self._count, dtype=bool)
        for words, word, guard in self._iterate_words(node):
            is_finer &= ((np.uint64(guard + word) - words) & np.uint64(guard)) == guard
        values = self._values[: self._count][is_finer]
        return float(values.min()) if len(values) else None

    def _iterate_words(
        self, node: Sequence[int]
    ) -> Iterator[tuple[npt.NDArray[np.uint64], int, int]]:
        """Return for each word those of the nodes kept, that of a node, and the bits never set."""
        return zip(self._kept[:, : self._count], self._pack_node(node), self._guards, strict=True)

    def _pack_node(self, node: Sequence[int]) -> list[int]:
        words = [0] * len(self._guards)
        for (word, shift), level in zip(self._fields, node, strict=True):
            words[word] |= level << shift
        return words


Seen: TypeAlias = Callable[[Node, NodeClasses | None], None]


@dataclass(frozen=True)
class Optimum:
    """A node, what it loses and suppresses, and how many nodes were looked at to find it.

    No node within the limit loses less than ``least``.
    """

    levels: Node
    loss: float
    suppressed: int
    evaluated: int
    least: float

    @property
    def is_exact(self) -> bool:
        """Whether no node loses less."""
        return self.least >= self.loss


class NoSchemeError(IncrowdError):
    """No node satisfies what was asked."""


class NodeEvaluator:
    """Counts the classes of nodes, and keeps the best node and those that failed.

    After so many ``seconds``, if they are given, it is late.
    """

    def __init__(
        self, rollups: Rollups, goal: Objective, *, k: int, limit: int, seconds: float | None
    ) -> None:
        self.rollups, self.goal = rollups, goal
        self._k, self._limit = k, limit
        self._until = None if seconds is None else monotonic() + seconds
        self._failed = PackedNodes([hierarchy.height - 1 for hierarchy in rollups.hierarchies])
        self.best: tuple[float, Node, int] | None = None
        self.evaluated = 0

    @property
    def is_late(self) -> bool:
        """Whether the time is up."""
        return self._until is not None and monotonic() >= self._until

    @property
    def best_loss(self) -> float:
        """The best loss so far."""
        return np.inf if self.best is None else self.best[0]

    def evaluate_node(self, node: Node) -> NodeClasses | None:
        """Return the classes of a node, which may be the best; None if all finer nodes fail too."""
        self.evaluated += 1
        classes = self.rollups.count_classes(node, k=self._k, limit=self._limit)
        if classes is None:
            self._failed.add(node)
        elif self.is_within_limit(classes):
            loss = self.goal.compute_loss(node, classes)
            if self.best is None or loss < self.best[0]:
                self.best = (loss, node, classes.suppressed)
        return classes

    def is_within_limit(self, classes: NodeClasses) -> bool:
        """Return whether classes suppress few enough rows."""
        return classes.suppressed <= self._limit

    def is_known_to_fail(self, node: Node) -> bool:
        """Return whether a node fails as a coarser one did."""
        return self._failed.has_coarser(node)

    def build_optimum(self, lattice: Lattice, lower_bound: float) -> Optimum:
        """Return the best node; none of the lattice loses less than ``lower_bound``."""
        if self.best is None:
            raise NoSchemeError(
                no_scheme_message(self._k, self._limit)
                if lower_bound == np.inf
                else "Search: no scheme that satisfies the spec was found in time. Increase "
                "`search_seconds`, or narrow `levels`."
            )
        loss, node, suppressed = self._refine_node(lattice, *self.best)
        return Optimum(node, loss, suppressed, self.evaluated, min(lower_bound, loss))

    def _refine_node(
        self, lattice: Lattice, loss: float, node: Node, suppressed: int
    ) -> tuple[float, Node, int]:
        """Return the finest of equally good schemes: nothing is gained by hiding more."""
        for child in lattice.iterate_children(node):
            classes = self.rollups.count_classes(child, k=self._k, limit=self._limit)
            if classes is None or not self.is_within_limit(classes):
                continue
            child_loss = self.goal.compute_loss(child, classes)
            if child_loss <= loss:
                return self._refine_node(lattice, child_loss, child, classes.suppressed)
        return loss, node, suppressed

    def descend(self, lattice: Lattice, record: Seen) -> None:
        """Descend from the top to a good node, always to the most promising child that holds."""
        node: Node | None = lattice.high
        nodes: set[Node] = set()

        def within(node: Node) -> bool:
            nodes.add(node)
            classes = self.evaluate_node(node)
            record(node, classes)
            return classes is not None and self.is_within_limit(classes)

        if not within(lattice.high):
            return
        while node is not None:
            children = [
                child
                for child in lattice.iterate_children(node)
                if child not in nodes and not self.is_known_to_fail(child)
            ]
            children.sort(key=self.goal.guess_loss)
            node = next((child for child in children if not self.is_late and within(child)), None)


class ListedSearch:
    """The search of a lattice whose nodes can be listed."""

    def __init__(self, looks: NodeEvaluator, lattice: Lattice, goal: ClassSizeLoss) -> None:
        self._looks, self._lattice, self._goal = looks, lattice, goal
        self._closed = np.zeros(lattice.shape, dtype=bool)

    def run(self, progress: Progress) -> float:
        """Evaluate nodes until none is open, or it is late; no node loses less than the answer."""
        self._looks.descend(self._lattice, self._record_node)
        while True:
            open_ = self._goal.bound < self._looks.best_loss
            open_ &= ~self._closed
            remaining = int(np.count_nonzero(open_))
            progress(self._lattice.size - remaining, self._lattice.size)
            if not remaining:
                return self._looks.best_loss
            if self._looks.is_late:
                return float(self._goal.bound[open_].min())
            node = self._lattice.get_node(self._goal.choose_next(open_))
            self._record_node(node, self._looks.evaluate_node(node))

    def _record_node(self, node: Node, classes: NodeClasses | None) -> None:
        if classes is None:
            self._closed[self._lattice.slice_finer(node)] = True
        else:
            self._closed[self._lattice.locate_node(node)] = True
            self._goal.raise_bounds(node, classes)


def no_scheme_message(k: int, limit: int) -> str:
    """Return the message for a search in which no node satisfies what was asked."""
    return (
        f"No scheme satisfies what is asked with k = {k} and at most {limit:,} rows suppressed, "
        "not even the coarsest. Allow more suppression or higher levels, or ask for less."
    )
