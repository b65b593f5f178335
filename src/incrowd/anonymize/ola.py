"""Optimal lattice anonymization: the best full-domain scheme under a suppression limit.

Two questions about the same lattice. :func:`minimal` finds all k-minimal nodes (those that
stay within the limit while no finer node does), as OLA does (El Emam and others): nodes are
decided half by half, and each decision decides everything finer or everything coarser.
:func:`optimal` finds the node of least loss in the whole lattice, which need not be minimal.

Claim of :func:`optimal`: no node within the limit has a smaller loss than ``least`` of what is
returned, which is the loss of the node returned wherever the search was not stopped by time. A
node is passed over only if (1) a coarser node surely suppresses too many rows, for rows lost there
are lost at every finer node; or (2) a lower bound of its loss is not below the best loss seen.
"""

from __future__ import annotations

import numpy as np

from incrowd.anonymize.boxes import in_boxes
from incrowd.anonymize.lattice import MOST_NODES, Lattice, Rollups
from incrowd.anonymize.looks import Listed, Looks, NoSchemeError, Optimum, nothing
from incrowd.anonymize.objectives import ClassSizes, coarseness, middle, objective
from incrowd.arrays import Floats, Progress
from incrowd.errors import ParameterError
from incrowd.measure.loss import LossName

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
