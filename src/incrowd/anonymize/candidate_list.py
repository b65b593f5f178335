"""The candidates of a search that may still win, listed, where they are few of a lattice.

An array over a lattice costs as much when few of its nodes are still open as when all are. Listed,
each step costs what is open.
"""

from __future__ import annotations

import numpy as np

from incrowd.anonymize.lattice import Lattice, Node
from incrowd.arrays import Counts, Floats, Places


class CandidateList:
    """Candidates with bounds of their scores, and their noise.

    ``places`` are those in the lattice, counted flat, in order. ``best`` is the most of its detail
    that a row keeps at each of them, ``most`` what that is times the bound of a sum of details.
    Bounds only fall, and the noisy score that is to be reached only rises: a candidate that cannot
    reach it is dropped for good.
    """

    def __init__(
        self,
        lattice: Lattice,
        places: Places,
        *,
        bound: Floats,
        noise: Counts,
        best: Floats,
        most: Floats,
    ) -> None:
        self.places, self.bound = places, bound
        self._lattice, self._noise, self._best, self._most = lattice, noise, best, most
        self._levels = [x.astype(np.int16) for x in np.unravel_index(places, lattice.shape)]

    def drop_beaten(self, least: int) -> None:
        """Keep the candidates that may reach a noisy score."""
        at = np.flatnonzero(self.bound >= least - self._noise)
        if len(at) < len(self.places):
            self.places, self.bound, self._noise = (
                self.places[at],
                self.bound[at],
                self._noise[at],
            )
            self._best, self._most = self._best[at], self._most[at]
            self._levels = [levels[at] for levels in self._levels]

    def may_win(self, node: Node, least: int) -> bool:
        """Return whether a node is listed and may reach a noisy score."""
        at = self._locate(node)
        return at is not None and bool(self.bound[at] >= least - self._noise[at])

    def close(self, node: Node) -> None:
        """Close a candidate that was scored."""
        at = self._locate(node)
        if at is not None:
            self.bound[at] = -np.inf

    def find_finer(self, node: Node) -> Places:
        """Return where in the list the candidates are that are nowhere coarser than a node."""
        is_finer = np.ones(len(self.places), dtype=bool)
        ups = self._lattice.locate_node(node)
        for levels, up, size in zip(self._levels, ups, self._lattice.shape, strict=True):
            if up + 1 < size:
                is_finer &= levels <= up
        return np.flatnonzero(is_finer)

    def count_open(self, listed: Places, least: int) -> int:
        """Return how many of some of the listed may reach a noisy score."""
        return int((self.bound[listed] >= least - self._noise[listed]).sum())

    def lower_roughly(self, listed: Places, bound: float, beside: float) -> None:
        """Lower the bounds of some to what their detail leaves of a bound without it.

        What is scored ``beside`` the detail is the same for all.
        """
        self.bound[listed] = np.minimum(self.bound[listed], self._best[listed] * bound + beside)

    def lower(self, listed: Places, sums: list[list[float]], factor: float, beside: float) -> None:
        """Lower the bounds of some by sums for each column and level, and what is beside them."""
        detail = self._lattice.sum_levels_at(sums, [levels[listed] for levels in self._levels])
        closer = detail * self._most[listed] * factor + beside
        self.bound[listed] = np.minimum(self.bound[listed], closer)

    def _locate(self, node: Node) -> int | None:
        place = np.ravel_multi_index(self._lattice.locate_node(node), self._lattice.shape)
        at = int(np.searchsorted(self.places, place))
        return at if at < len(self.places) and self.places[at] == place else None
