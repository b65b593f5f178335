"""Looking at the nodes of a lattice one by one: the best so far, and what need not be looked at.

:class:`Listed` searches a lattice by a list of its nodes, :mod:`incrowd.anonymize.ola` without.

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
from incrowd.anonymize.objectives import ClassSizes, Objective
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
        """Keep one more."""
        if self._count == len(self._values):
            self._kept = np.concatenate([self._kept, np.zeros_like(self._kept)], axis=1)
            self._values = np.concatenate([self._values, np.zeros_like(self._values)])
        self._kept[:, self._count] = self._packed(node)
        self._values[self._count] = value
        self._count += 1

    def any_coarser(self, node: Sequence[int]) -> bool:
        """Whether one of them is nowhere finer than a node."""
        found = np.ones(self._count, dtype=bool)
        for kept, word, guard in self._words(node):
            found &= ((kept + np.uint64(guard - word)) & np.uint64(guard)) == guard
        return bool(found.any())

    def least_finer(self, node: Sequence[int]) -> float | None:
        """The least number of those that are nowhere coarser than a node, if there are any."""
        found = np.ones(self._count, dtype=bool)
        for kept, word, guard in self._words(node):
            found &= ((np.uint64(guard + word) - kept) & np.uint64(guard)) == guard
        values = self._values[: self._count][found]
        return float(values.min()) if len(values) else None

    def _words(self, node: Sequence[int]) -> Iterator[tuple[npt.NDArray[np.uint64], int, int]]:
        """For each word: those of the nodes kept, that of a node, and the bits never set."""
        return zip(self._kept[:, : self._count], self._packed(node), self._guards, strict=True)

    def _packed(self, node: Sequence[int]) -> list[int]:
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
    def exact(self) -> bool:
        """Whether no node loses less."""
        return self.least >= self.loss


class NoSchemeError(IncrowdError):
    """No node satisfies what was asked."""


class Looks:
    """Counts the classes of nodes, and keeps the best node and those that failed.

    After so many ``seconds``, if they are given, it is late.
    """

    def __init__(
        self, rollups: Rollups, goal: Objective, *, k: int, limit: int, seconds: float | None
    ) -> None:
        self.rollups, self.goal = rollups, goal
        self._k, self._limit = k, limit
        self._until = None if seconds is None else monotonic() + seconds
        self._failed = PackedNodes([one.height - 1 for one in rollups.hierarchies])
        self.best: tuple[float, Node, int] | None = None
        self.evaluated = 0

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return self._until is not None and monotonic() >= self._until

    @property
    def least(self) -> float:
        """The best loss so far."""
        return np.inf if self.best is None else self.best[0]

    def look(self, node: Node) -> NodeClasses | None:
        """The classes of a node, which may be the best; None if all finer nodes fail with it."""
        self.evaluated += 1
        classes = self.rollups.classes(node, k=self._k, limit=self._limit)
        if classes is None:
            self._failed.add(node)
        elif self.holds(classes):
            loss = self.goal.loss(node, classes)
            if self.best is None or loss < self.best[0]:
                self.best = (loss, node, classes.suppressed)
        return classes

    def holds(self, classes: NodeClasses) -> bool:
        """Whether they suppress few enough rows."""
        return classes.suppressed <= self._limit

    def fails(self, node: Node) -> bool:
        """Whether a node fails as a coarser one did."""
        return self._failed.any_coarser(node)

    def answer(self, lattice: Lattice, least: float) -> Optimum:
        """The best node; none of the lattice loses less than ``least``."""
        if self.best is None:
            raise NoSchemeError(
                nothing(self._k, self._limit)
                if least == np.inf
                else "Search: no scheme that satisfies the spec was found in time. Increase "
                "`search_seconds`, or narrow `levels`."
            )
        loss, node, suppressed = self._finest(lattice, *self.best)
        return Optimum(node, loss, suppressed, self.evaluated, min(least, loss))

    def _finest(
        self, lattice: Lattice, loss: float, node: Node, suppressed: int
    ) -> tuple[float, Node, int]:
        """Of equally good schemes the finest: nothing is gained by hiding more."""
        for child in lattice.children(node):
            classes = self.rollups.classes(child, k=self._k, limit=self._limit)
            if classes is None or not self.holds(classes):
                continue
            own = self.goal.loss(child, classes)
            if own <= loss:
                return self._finest(lattice, own, child, classes.suppressed)
        return loss, node, suppressed

    def descend(self, lattice: Lattice, seen: Seen) -> None:
        """A good node at once: from the top, always to the most promising child that holds."""
        node: Node | None = lattice.high
        known: set[Node] = set()

        def within(one: Node) -> bool:
            known.add(one)
            classes = self.look(one)
            seen(one, classes)
            return classes is not None and self.holds(classes)

        if not within(lattice.high):
            return
        while node is not None:
            children = [
                child
                for child in lattice.children(node)
                if child not in known and not self.fails(child)
            ]
            children.sort(key=self.goal.guess)
            node = next((child for child in children if not self.late and within(child)), None)


class Listed:
    """The search of a lattice whose nodes can be listed."""

    def __init__(self, looks: Looks, lattice: Lattice, goal: ClassSizes) -> None:
        self._looks, self._lattice, self._goal = looks, lattice, goal
        self._closed = np.zeros(lattice.shape, dtype=bool)

    def run(self, progress: Progress) -> float:
        """Look until nothing is open, or it is late; no node loses less than the answer."""
        self._looks.descend(self._lattice, self._learn)
        while True:
            open_ = self._goal.bound < self._looks.least
            open_ &= ~self._closed
            remaining = int(np.count_nonzero(open_))
            progress(self._lattice.size - remaining, self._lattice.size)
            if not remaining:
                return self._looks.least
            if self._looks.late:
                return float(self._goal.bound[open_].min())
            node = self._lattice.at(self._goal.next(open_))
            self._learn(node, self._looks.look(node))

    def _learn(self, node: Node, classes: NodeClasses | None) -> None:
        if classes is None:
            self._closed[self._lattice.finer(node)] = True
        else:
            self._closed[self._lattice.place(node)] = True
            self._goal.learn(node, classes)


def nothing(k: int, limit: int) -> str:
    """What to say where no node satisfies what was asked."""
    return (
        f"No scheme satisfies what is asked with k = {k} and at most {limit:,} rows suppressed, "
        "not even the coarsest. Allow more suppression or higher levels, or ask for less."
    )
