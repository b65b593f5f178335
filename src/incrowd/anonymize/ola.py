"""Optimal lattice anonymization: the best full-domain scheme under a suppression limit.

Two questions about the same lattice. :func:`find_minimal_nodes` finds all k-minimal nodes (those
that stay within the limit while no finer node does), as OLA does (El Emam and others): nodes are
decided half by half, and each decision decides everything finer or everything coarser.
:func:`find_optimal_node` finds the node of least loss in the whole lattice, which need not be
minimal.

Claim of :func:`find_optimal_node`: no node within the limit has a smaller loss than ``least`` of
what is returned, which is the loss of the node returned wherever the search was not stopped by
time. A node is passed over only if (1) a coarser node surely suppresses too many rows, for rows
lost there are lost at every finer node; or (2) a lower bound of its loss is not below the best loss
seen.

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
from incrowd.anonymize.node_evaluator import (
    ListedSearch,
    NodeEvaluator,
    NoSchemeError,
    Optimum,
    PackedNodes,
    no_scheme_message,
)
from incrowd.anonymize.objectives import (
    ClassSizeLoss,
    compute_coarseness,
    find_middle,
    make_objective,
)
from incrowd.arrays import Floats, Progress
from incrowd.errors import ParameterError
from incrowd.measure.loss import LossName
from incrowd.measure.payout import PayoutModel

MOST_BOXES = 1_000_000  # more are not kept: about half a gigabyte


@dataclass(frozen=True, slots=True)
class _NodeBox:
    """All nodes between two; they lose at least ``floor``, of which ``lost`` is for rows."""

    floor: float
    low: Node
    high: Node
    lost: float

    @property
    def size(self) -> int:
        spans = zip(self.low, self.high, strict=True)
        return math.prod(highest - lowest + 1 for lowest, highest in spans)


def search_boxes(looks: NodeEvaluator, lattice: Lattice, *, progress: Progress) -> float:
    """Find the best node; none loses less than the answer."""
    return _BoxSearch(looks, lattice).run(progress)


class _BoxSearch:
    """The boxes that are open, the lowest floor first."""

    def __init__(self, looks: NodeEvaluator, lattice: Lattice) -> None:
        self._looks, self._goal, self._lattice = looks, looks.goal, lattice
        self._open: list[tuple[float, int, _NodeBox]] = []
        self._numbers = self._left = 0
        self._lost: dict[Node, float] = {}
        self._seen = PackedNodes(lattice.high)
        self._entropies = looks.rollups.compute_entropies()

    def run(self, progress: Progress) -> float:
        """Search until nothing is open, or it is late."""
        self._looks.descend(self._lattice, self._record_node)
        self._climb()
        if not self._looks.is_known_to_fail(self._lattice.high):
            self._push_box(self._lattice.low, self._lattice.high, self._lost[self._lattice.high])
        while self._open and self._open[0][0] < self._looks.best_loss:
            if self._looks.is_late or len(self._open) > MOST_BOXES:
                return self._open[0][0]
            progress(self._lattice.size - self._left, self._lattice.size)
            _, _, box = heapq.heappop(self._open)
            self._left -= box.size
            self._search_box(box)
        progress(self._lattice.size, self._lattice.size)
        return self._looks.best_loss

    def _record_node(self, node: Node, classes: NodeClasses | None) -> None:
        """Keep what the rows lost at a node cost."""
        if classes is not None:
            self._lost[node] = self._goal.bound_row_loss(node, classes)
            self._seen.add(node, self._lost[node])

    def _climb(self) -> None:
        """Climb to a better node near by, as long as there is one."""
        before = None
        while self._looks.best is not None and self._looks.best[1] != before:
            before = self._looks.best[1]
            for node in self._lattice.iterate_neighbors(before):
                if self._looks.is_late:
                    return
                is_known = node in self._lost or self._looks.is_known_to_fail(node)
                promising = (
                    not self._goal.summed or self._goal.guess_loss(node) < self._looks.best_loss
                )
                if promising and not is_known:
                    self._record_node(node, self._looks.evaluate_node(node))

    def _push_box(self, low: Node, high: Node, lost: float) -> None:
        """Open a box, unless its floor is too high."""
        floor = self._goal.compute_floor(low, lost)
        if floor < self._looks.best_loss:
            self._numbers += 1
            box = _NodeBox(floor, low, high, lost)
            self._left += box.size
            heapq.heappush(self._open, (floor, self._numbers, box))

    def _search_box(self, box: _NodeBox) -> None:
        """Cut a box, and split what is left of it."""
        cut = self._cut_top(box.low, box.high, box.lost)
        if cut is None:
            return
        high, lost = cut
        if high == box.low:
            self._evaluate_top(high, lost)
            return
        at, level = self._choose_split(box.low, high)
        self._push_box((*box.low[:at], level + 1, *box.low[at + 1 :]), high, lost)
        lower = (*high[:at], level, *high[at + 1 :])
        box_loss = self._bound_box_loss(box.low, lower, lost)
        if box_loss is not None:
            self._push_box(box.low, lower, box_loss)

    def _cut_top(self, low: Node, high: Node, lost: float) -> tuple[Node, float] | None:
        """Return the top of a box without levels that cost too much, and its row loss; or None."""
        while True:
            floor, best = self._goal.compute_floor(low, lost), self._looks.best_loss
            if floor >= best:
                return None
            if not self._goal.summed:
                return high, lost
            levels = []
            for at, (lowest, highest) in enumerate(zip(low, high, strict=True)):
                step = self._goal.steps[at]
                while highest > lowest and floor + float(step[highest] - step[lowest]) >= best:
                    highest -= 1
                levels.append(highest)
            if tuple(levels) == high:
                return high, lost
            high = tuple(levels)
            box_loss = self._bound_box_loss(low, high, lost)
            if box_loss is None:
                return None
            lost = box_loss

    def _bound_box_loss(self, low: Node, high: Node, lost: float) -> float | None:
        """Return what all nodes of a box lose for rows, at least ``lost``; None if they fail."""
        if low != high and high not in self._lost and self._stays_open(low, high):
            return lost
        return self._evaluate_top(high, lost)

    def _stays_open(self, low: Node, high: Node) -> bool:
        """Return whether no look at the top closes a box: a finer node loses too little for it."""
        finer_loss = self._seen.find_least_finer(high)
        return (
            finer_loss is not None
            and self._goal.compute_floor(low, finer_loss) < self._looks.best_loss
        )

    def _evaluate_top(self, node: Node, lost: float) -> float | None:
        """Return the same by evaluating the top, unless it is known."""
        if node not in self._lost:
            if self._looks.is_known_to_fail(node):
                return None
            self._record_node(node, self._looks.evaluate_node(node))
        return max(lost, self._lost[node]) if node in self._lost else None

    def _choose_split(self, low: Node, high: Node) -> tuple[int, int]:
        """Return where both halves likely gain most: the column, and its last level below."""
        best, where = -1.0, (0, 0)
        for at, (lowest, highest) in enumerate(zip(low, high, strict=True)):
            step, entropy = self._goal.steps[at], self._entropies[at]
            for level in range(lowest, highest):
                costlier = float(step[level + 1] - step[lowest])
                gain = costlier * (entropy[level] - entropy[highest])
                if gain > best:
                    best, where = gain, (at, level)
        return where


__all__ = ["NoSchemeError", "Optimum", "find_minimal_nodes", "find_optimal_node"]


def _ignore_progress(_decided: int, _nodes: int) -> None:
    """Ignore the progress."""


def find_optimal_node(
    rollups: Rollups,
    lattice: Lattice,
    *,
    k: int,
    limit: int,
    loss: LossName | PayoutModel = "normalized",
    weights: Floats | None = None,
    seconds: float | None = None,
    progress: Progress = _ignore_progress,
) -> Optimum:
    """Return the node of least loss among those that suppress at most ``limit`` rows.

    Of equally good nodes the first that the search meets; the search is deterministic unless it
    is stopped: after so many ``seconds`` it returns the best that it has met.
    """
    weights = np.ones(len(rollups.hierarchies)) if weights is None else weights
    goal = make_objective(loss, lattice, rollups, limit=limit, weights=weights)
    looks = NodeEvaluator(rollups, goal, k=k, limit=limit, seconds=seconds)
    # Boxes tell little of the average class size: where its lattice can be listed, it is.
    if isinstance(goal, ClassSizeLoss) and loss == "class-size" and lattice.size <= MOST_NODES:
        lower_bound = ListedSearch(looks, lattice, goal).run(progress)
    else:
        lower_bound = search_boxes(looks, lattice, progress=progress)
    return looks.build_optimum(lattice, lower_bound)


def find_minimal_nodes(
    rollups: Rollups,
    lattice: Lattice,
    *,
    k: int,
    limit: int,
    loss: LossName | PayoutModel = "normalized",
    weights: Floats | None = None,
    progress: Progress = _ignore_progress,
) -> list[Optimum]:
    """Return all k-minimal nodes, the best by the chosen loss first.

    Lists the lattice, so it must not be too large for that.
    Needs that satisfying classes stay so whatever joins them. Where nothing may be suppressed it
    is enough that a union of satisfying classes satisfies: entropy, closeness, likeness and others.
    """
    if not rollups.is_monotone and limit:
        raise ParameterError(
            "candidates",
            "be 'all' with rules on shares of sensitive values and suppression",
            "minimal",
            "Or use `suppression: 0`.",
        )
    if not rollups.is_closed:
        raise ParameterError(
            "candidates",
            "be 'all' with `disclosure: {present: …}`: a coarser scheme may violate it",
            "minimal",
            "Or use `disclosure: {every: …}`.",
        )
    lattice.refuse_large()
    weights = np.ones(len(rollups.hierarchies)) if weights is None else weights
    goal = make_objective(loss, lattice, rollups, limit=limit, weights=weights)
    order = compute_coarseness(lattice, rollups)
    holds = np.zeros(lattice.shape, dtype=bool)
    fails = np.zeros(lattice.shape, dtype=bool)
    evaluations = 0
    while True:
        open_ = ~(holds | fails)
        remaining = int(open_.sum())
        progress(lattice.size - remaining, lattice.size)
        if not remaining:
            break
        node = lattice.get_node(find_middle(open_, order))
        evaluations += 1
        classes = rollups.count_classes(node, k=k, limit=limit)
        if classes is None or classes.suppressed > limit:
            fails[lattice.slice_finer(node)] = True
        else:
            holds[lattice.slice_coarser(node)] = True
    minimal_nodes = []
    for place in np.flatnonzero(holds):
        node = lattice.get_node(int(place))
        if not any(holds[lattice.locate_node(child)] for child in lattice.iterate_children(node)):
            classes = rollups.count_classes(node, k=k)
            assert classes is not None
            node_loss = goal.compute_loss(node, classes)
            minimal_nodes.append(
                Optimum(node, node_loss, classes.suppressed, evaluations, node_loss)
            )
    if not minimal_nodes:
        raise NoSchemeError(no_scheme_message(k, limit))
    return sorted(minimal_nodes, key=lambda scheme: (scheme.loss, scheme.levels))
