"""Optimal lattice anonymization: the best full-domain scheme under a suppression limit.

Two questions about the same lattice. :func:`minimal` finds all k-minimal nodes (those that
stay within the limit while no finer node does), as OLA does (El Emam and others): nodes are
decided half by half, and each decision decides everything finer or everything coarser.
:func:`optimal` finds the node of least loss in the whole lattice, which need not be minimal.

Claim of :func:`optimal`: no node within the limit has a smaller loss than ``least`` of what is
returned, which is the loss of the node returned wherever the search was not stopped by time. A
node is passed over only if (1) a coarser node surely suppresses too many rows, for rows lost there
are lost at every finer node; or (2) a lower bound of its loss is not below the best loss seen.

**Branch and bound over boxes.** The best node of a lattice of any size: branch and bound over
boxes.

A box holds all nodes between two, its finest (``low``) and its coarsest (``high``). What the rows
lost at ``high`` cost, all its nodes lose; what ``low`` costs by its levels, all its nodes cost at
least: together the floor of the box. The box with the lowest floor is taken next. Levels that no
node below the best loss can have are cut off its top; if the top then fails, the box does. What is
left is split in two: at the level of a column where the upper half costs much more by its levels,
and the top of the lower half parts the rows much further (by the entropy of the column alone), so
that it may lose many; the product of both decides.

A look at the top of a box may close it, or raise its floor. Where a finer node is known to lose too
little for that, the top loses no more, and is not looked at; its box keeps the rows that the top of
the whole lost. The last node of a box is always looked at.

Claim: whenever the search stops, no node within the limit loses less than the lowest floor of the
boxes that are left, or than the best node if none is. Every node is in one of the boxes, or in one
that was dropped because it fails, or because its floor was not below the best loss then seen.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from incrowd.anonymize.lattice import MOST_NODES, Lattice, Node, NodeClasses, Rollups
from incrowd.anonymize.looks import Listed, Looks, NoSchemeError, Optimum, PackedNodes, nothing
from incrowd.anonymize.objectives import ClassSizes, coarseness, middle, objective
from incrowd.arrays import Floats, Progress
from incrowd.errors import ParameterError
from incrowd.measure.loss import LossName

MOST_BOXES = 1_000_000  # more are not kept: about half a gigabyte


@dataclass(frozen=True, slots=True)
class _Box:
    """All nodes between two; they lose at least ``floor``, of which ``lost`` is for rows."""

    floor: float
    low: Node
    high: Node
    lost: float

    @property
    def size(self) -> int:
        spans = zip(self.low, self.high, strict=True)
        return math.prod(most - least + 1 for least, most in spans)


def in_boxes(looks: Looks, lattice: Lattice, *, progress: Progress) -> float:
    """Find the best node; none loses less than the answer."""
    return _Search(looks, lattice).run(progress)


class _Search:
    """The boxes that are open, the lowest floor first."""

    def __init__(self, looks: Looks, lattice: Lattice) -> None:
        self._looks, self._goal, self._lattice = looks, looks.goal, lattice
        self._open: list[tuple[float, int, _Box]] = []
        self._numbers = self._left = 0
        self._lost: dict[Node, float] = {}
        self._seen = PackedNodes(lattice.high)
        self._entropies = looks.rollups.entropies()

    def run(self, progress: Progress) -> float:
        """Search until nothing is open, or it is late."""
        self._looks.descend(self._lattice, self._see)
        self._climb()
        if not self._looks.fails(self._lattice.high):
            self._push(self._lattice.low, self._lattice.high, self._lost[self._lattice.high])
        while self._open and self._open[0][0] < self._looks.least:
            if self._looks.late or len(self._open) > MOST_BOXES:
                return self._open[0][0]
            progress(self._lattice.size - self._left, self._lattice.size)
            _, _, box = heapq.heappop(self._open)
            self._left -= box.size
            self._search(box)
        progress(self._lattice.size, self._lattice.size)
        return self._looks.least

    def _see(self, node: Node, classes: NodeClasses | None) -> None:
        """Keep what the rows lost at a node cost."""
        if classes is not None:
            self._lost[node] = self._goal.lost(node, classes)
            self._seen.add(node, self._lost[node])

    def _climb(self) -> None:
        """A better node: always to one near by, as long as there is one."""
        before = None
        while self._looks.best is not None and self._looks.best[1] != before:
            before = self._looks.best[1]
            for node in self._lattice.near(before):
                if self._looks.late:
                    return
                known = node in self._lost or self._looks.fails(node)
                promising = not self._goal.summed or self._goal.guess(node) < self._looks.least
                if promising and not known:
                    self._see(node, self._looks.look(node))

    def _push(self, low: Node, high: Node, lost: float) -> None:
        """Open a box, unless its floor is too high."""
        floor = self._goal.floor(low, lost)
        if floor < self._looks.least:
            self._numbers += 1
            box = _Box(floor, low, high, lost)
            self._left += box.size
            heapq.heappush(self._open, (floor, self._numbers, box))

    def _search(self, box: _Box) -> None:
        """Cut a box, and split what is left of it."""
        cut = self._cut(box.low, box.high, box.lost)
        if cut is None:
            return
        high, lost = cut
        if high == box.low:
            self._top(high, lost)
            return
        at, level = self._split(box.low, high)
        self._push((*box.low[:at], level + 1, *box.low[at + 1 :]), high, lost)
        lower = (*high[:at], level, *high[at + 1 :])
        more = self._top_of(box.low, lower, lost)
        if more is not None:
            self._push(box.low, lower, more)

    def _cut(self, low: Node, high: Node, lost: float) -> tuple[Node, float] | None:
        """The top of a box without levels that cost too much, and its loss of rows; or nothing."""
        while True:
            floor, best = self._goal.floor(low, lost), self._looks.least
            if floor >= best:
                return None
            if not self._goal.summed:
                return high, lost
            levels = []
            for at, (least, most) in enumerate(zip(low, high, strict=True)):
                step = self._goal.steps[at]
                while most > least and floor + float(step[most] - step[least]) >= best:
                    most -= 1
                levels.append(most)
            if tuple(levels) == high:
                return high, lost
            high = tuple(levels)
            more = self._top_of(low, high, lost)
            if more is None:
                return None
            lost = more

    def _top_of(self, low: Node, high: Node, lost: float) -> float | None:
        """What all nodes of a box lose for rows, at least ``lost``; None if they fail."""
        if low != high and high not in self._lost and self._stays_open(low, high):
            return lost
        return self._top(high, lost)

    def _stays_open(self, low: Node, high: Node) -> bool:
        """Whether no look at the top closes a box: a finer node loses too little for that."""
        most = self._seen.least_finer(high)
        return most is not None and self._goal.floor(low, most) < self._looks.least

    def _top(self, node: Node, lost: float) -> float | None:
        """The same by a look at the top, unless it is known."""
        if node not in self._lost:
            if self._looks.fails(node):
                return None
            self._see(node, self._looks.look(node))
        return max(lost, self._lost[node]) if node in self._lost else None

    def _split(self, low: Node, high: Node) -> tuple[int, int]:
        """Where both halves are likely to gain most: the column, and its last level below."""
        best, where = -1.0, (0, 0)
        for at, (least, most) in enumerate(zip(low, high, strict=True)):
            step, entropy = self._goal.steps[at], self._entropies[at]
            for level in range(least, most):
                costlier = float(step[level + 1] - step[least])
                gain = costlier * (entropy[level] - entropy[most])
                if gain > best:
                    best, where = gain, (at, level)
        return where


__all__ = ["NoSchemeError", "Optimum", "minimal", "optimal"]


def _silent(_decided: int, _nodes: int) -> None:
    """Tell nobody."""


def optimal(
    rollups: Rollups,
    lattice: Lattice,
    *,
    k: int,
    limit: int,
    loss: LossName = "normalised",
    weights: Floats | None = None,
    seconds: float | None = None,
    progress: Progress = _silent,
) -> Optimum:
    """The node of least loss among those that suppress at most ``limit`` rows.

    Of equally good nodes the first that the search meets; the search is deterministic unless it
    is stopped: after so many ``seconds`` it returns the best that it has met.
    """
    weights = np.ones(len(rollups.hierarchies)) if weights is None else weights
    goal = objective(loss, lattice, rollups, limit=limit, weights=weights)
    looks = Looks(rollups, goal, k=k, limit=limit, seconds=seconds)
    # Boxes tell little of the average class size: where its lattice can be listed, it is.
    if isinstance(goal, ClassSizes) and loss == "class-size" and lattice.size <= MOST_NODES:
        least = Listed(looks, lattice, goal).run(progress)
    else:
        least = in_boxes(looks, lattice, progress=progress)
    return looks.answer(lattice, least)


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

    Lists the lattice, so it must not be too large for that.
    Needs that satisfying classes stay so whatever joins them; entropy-diversity and closeness
    promise that only where nothing may be suppressed.
    """
    if not rollups.monotone and limit:
        raise ParameterError(
            "candidates",
            "be 'all' with entropy-diversity or closeness and suppression",
            "minimal",
            "Or use `suppression: 0`.",
        )
    lattice.refuse_large()
    weights = np.ones(len(rollups.hierarchies)) if weights is None else weights
    goal = objective(loss, lattice, rollups, limit=limit, weights=weights)
    order = coarseness(lattice, rollups)
    holds = np.zeros(lattice.shape, dtype=bool)
    fails = np.zeros(lattice.shape, dtype=bool)
    evaluated = 0
    while True:
        open_ = ~(holds | fails)
        remaining = int(open_.sum())
        progress(lattice.size - remaining, lattice.size)
        if not remaining:
            break
        node = lattice.at(middle(open_, order))
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
            own = goal.loss(node, classes)
            found.append(Optimum(node, own, classes.suppressed, evaluated, own))
    if not found:
        raise NoSchemeError(nothing(k, limit))
    return sorted(found, key=lambda scheme: (scheme.loss, scheme.levels))
