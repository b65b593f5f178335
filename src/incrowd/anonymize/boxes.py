"""The best node of a lattice of any size: branch and bound over boxes.

A box holds all nodes between two, its finest (``low``) and its coarsest (``high``). What the rows
lost at ``high`` cost, all its nodes lose; what ``low`` costs by its levels, all its nodes cost at
least: together the floor of the box. The box with the lowest floor is taken next. Levels that no
node below the best loss can have are cut off its top; if the top then fails, the box does. What is
left is split in two, at the column whose levels differ most in what they cost.

Claim: whenever the search stops, no node within the limit loses less than the lowest floor of the
boxes that are left, or than the best node if none is. Every node is in one of the boxes, or in one
that was dropped because it fails, or because its floor was not below the best loss then seen.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

from incrowd.anonymize.lattice import Lattice, Node, NodeClasses
from incrowd.anonymize.looks import Looks
from incrowd.arrays import Progress

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
            return  # it is looked at
        at = self._column(box.low, high)
        level = self._middle(at, box.low[at], high[at])
        self._push((*box.low[:at], level + 1, *box.low[at + 1 :]), high, lost)
        lower = (*high[:at], level, *high[at + 1 :])
        more = self._top(lower)
        if more is not None:
            self._push(box.low, lower, max(lost, more))

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
            more = self._top(high)
            if more is None:
                return None
            lost = max(lost, more)

    def _top(self, node: Node) -> float | None:
        """What all nodes finer than a top lose for rows, or None if they fail."""
        if node not in self._lost:
            if self._looks.fails(node):
                return None
            self._see(node, self._looks.look(node))
        return self._lost.get(node)

    def _column(self, low: Node, high: Node) -> int:
        """The column that tells most: whose levels differ most in what they cost."""
        spans = [
            float(step[most] - step[least]) if most > least else -1.0
            for step, least, most in zip(self._goal.steps, low, high, strict=True)
        ]
        return spans.index(max(spans))

    def _middle(self, at: int, least: int, most: int) -> int:
        """Where to split a column: the last level of the lower half."""
        step = self._goal.steps[at]
        half = float(step[least] + step[most]) / 2
        level = least
        while level + 1 < most and float(step[level + 1]) <= half:
            level += 1
        return level
