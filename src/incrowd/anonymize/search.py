"""Choosing a scheme for a safe release from the table, privately and nearly for free.

**Score.** A scheme x with crowd size k and sampling rate beta scores the sum over its cells of
w(cell) psi(rows of the cell). The weight w, from 0 to W, is the detail that the cell's labels
keep; it depends on the scheme alone. psi is a ramp: 0 up to a = 0.7 k / beta rows, then
steeper than a cell that surely survives, until it meets B rows per row (B stands for beta).
So it is close to the number of rows that will be released, but never jumps.

**Sensitivity.** Adding a row raises one cell by one, hence its psi by 0 to D, D the ramp's
slope, and the score by 0 to W D. All are whole numbers, so nothing is lost to rounding.

**Search.** The noise of every candidate is drawn first; the candidate with the largest noisy
score is then found exactly, without scoring those that cannot be it. For x finer than y a row's
cell is no larger at x than at y, and psi(c) / c never falls as c grows; so the score of x is at
most the sum over rows of w_x(row) psi(c_y) / c_y, a sum over columns that is known once y is
scored; and psi of a cell is at least the sum of psi of its parts, so the most that a cell's labels
may keep, times the sum of psi at y, bounds it too. Passing over candidates changes the time that
it takes and nothing else. (Who can measure that time learns something; keep it to yourself.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.lattice import Lattice, Node, Rollups
from incrowd.errors import Floats
from incrowd.measure.loss import normalised
from incrowd.privacy.randomness import Counts, Randomness
from incrowd.privacy.selection import one_sided_noise

W = 1 << 10
_UNIT = 1 << 10
_FROM, _TO = 0.7, 1.7  # the ramp begins and ends at these multiples of the crowd k / beta
_FEW = 16  # so many open candidates are rather scored than bounded more closely
_SLACK = 1 + 1e-6  # bounds are sums of floats; they must not fall below the truth


@dataclass(frozen=True)
class Ramp:
    """psi(c) = min(max(0, D (c - a)), B c) for a crowd size and a sampling rate."""

    k: int
    beta: float
    a: int
    b: int
    d: int

    def of(self, rows: Counts) -> Counts:
        """psi of each number of rows."""
        return np.minimum(np.maximum(self.d * (rows - self.a), 0), self.b * rows)


def ramp(k: int, beta: float) -> Ramp:
    """The ramp of a crowd size and a sampling rate."""
    level = max(round(beta * _UNIT), 1)
    steep = int(np.ceil(level * _TO / (_TO - _FROM)))
    return Ramp(k, beta, int(_FROM * k / beta), level, steep)


@dataclass(frozen=True)
class Chosen:
    """The scheme and the pair that were chosen, and how many schemes were scored for it."""

    levels: Node
    ramp: Ramp
    scored: int


def search(
    rollups: Rollups,
    lattice: Lattice,
    ramps: Sequence[Ramp],
    *,
    epsilon: Fraction,
    power: int,
    weights: Floats,
    bits: Randomness,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Chosen:
    """A scheme of the lattice with one of the ramps, by report noisy max: epsilon-private.

    ``power`` raises the detail that counts: 1 weighs rows by their detail, so that the score
    is what normalised loss leaves; more prefers fewer rows of more detail.
    """
    sensitivity = W * max(one.d for one in ramps)
    drawn = one_sided_noise(
        len(ramps) * lattice.size, sensitivity=sensitivity, epsilon=epsilon, bits=bits
    )
    noise = drawn.reshape(len(ramps), *lattice.shape)
    state = _State(_Detail(rollups, lattice, power, weights), lattice, ramps, noise)
    state.descend()
    while (node := state.open_node(progress)) is not None:
        state.score(node)
    return state.chosen()


def weighed(detail: Floats, power: int) -> Counts:
    """w for each detail: its power, from 0 to W, cut to a whole number.

    By multiplications alone, which give the same float for the same detail wherever it stands:
    a cell's weight must be the same in two tables that differ elsewhere.
    """
    within = np.clip(detail, 0, 1)
    raised = within
    for _ in range(power - 1):
        raised = raised * within
    return np.floor(raised * W).astype(np.int64)


class _Detail:
    """The detail that cells keep, and sums of it over rows."""

    def __init__(self, rollups: Rollups, lattice: Lattice, power: int, weights: Floats) -> None:
        self.rollups, self._lattice, self._power = rollups, lattice, power
        shares = weights / weights.sum()
        self._kept = [
            [share * (1 - cost) for cost in normalised(hierarchy)]
            for share, hierarchy in zip(shares, rollups.hierarchies, strict=True)
        ]
        grid = np.zeros(())
        for at, (low, high) in enumerate(zip(lattice.low, lattice.high, strict=True)):
            best = [float(self._kept[at][level].max()) for level in range(low, high + 1)]
            grid = np.add.outer(grid, best)
        self._most = grid ** (power - 1)
        self._best = grid**power

    def weights(self, node: Node, keys: npt.NDArray[np.int64]) -> Counts:
        """w of each cell of a node, a whole number from 0 to W."""
        codes = self.rollups.codes(node, keys)
        detail = np.zeros(len(codes))
        for at, level in enumerate(node):
            detail += self._kept[at][level][codes[:, at]]
        return weighed(detail, self._power)

    def rough_bounds(self, node: Node, total: int) -> Floats:
        """Upper bounds of the scores of all finer nodes, whose psi add up to so much at most."""
        return self._best[self._lattice.finer(node)] * (float(total) * W * _SLACK)

    def bounds(self, node: Node, per_row: Floats) -> Floats:
        """Closer ones, if each row counts so much at most: detail by detail, column by column."""
        grid = np.zeros(())
        for at, hierarchy in enumerate(self.rollups.hierarchies):
            held = self.rollups.spread(at, per_row)
            sums = [
                float((self._kept[at][level][hierarchy.groups[level]] * held).sum())
                for level in range(self._lattice.low[at], node[at] + 1)
            ]
            grid = np.add.outer(grid, sums)
        return grid * self._most[self._lattice.finer(node)] * (W * _SLACK)


class _State:
    """The best noisy score so far, and which candidates may still beat it."""

    def __init__(
        self, detail: _Detail, lattice: Lattice, ramps: Sequence[Ramp], noise: npt.NDArray[np.int64]
    ) -> None:
        self._detail, self._lattice, self._ramps, self._noise = detail, lattice, ramps, noise
        everyone = np.ones(len(detail.rollups.frequencies))
        trivial = detail.bounds(lattice.high, everyone)
        self._bound = np.stack([trivial * one.b for one in ramps])
        self._closed = np.zeros(noise.shape, dtype=bool)
        self._best: tuple[int, Node, Ramp] | None = None
        self._scored = 0

    def _open(self) -> npt.NDArray[np.bool_]:
        if self._best is None:
            return ~self._closed
        return ~self._closed & (self._bound >= self._best[0] - self._noise)

    def open_node(self, progress: Callable[[int, int], None]) -> Node | None:
        """The coarsest node that may still win, for what it bounds; None when none may."""
        open_ = self._open()
        remaining = int(open_.sum())
        progress(open_.size - remaining, open_.size)
        if not remaining:
            return None
        place = int(np.argmin(np.where(open_, self._bound, np.inf)))
        return self._lattice.at(place % self._lattice.size)

    def descend(self) -> None:
        """A good candidate at once: from the top, always to the child that scores best."""
        node: Node | None = self._lattice.high
        self.score(self._lattice.high)
        while node is not None:
            before = self._best
            for child in self._lattice.children(node):
                if not self._closed[(0, *self._lattice.place(child))]:
                    self.score(child)
            assert self._best is not None
            node = self._best[1] if self._best != before else None

    def score(self, node: Node) -> None:
        """Score a node for every ramp that may win with it, and bound what is finer."""
        self._scored += 1
        keys, sizes, locate = self._detail.rollups.cells(node)
        place, finer = self._lattice.place(node), self._lattice.finer(node)
        weights: Counts | None = None
        for number, one in enumerate(self._ramps):
            psi, here = one.of(sizes), self._bound[number][finer]
            np.minimum(here, self._detail.rough_bounds(node, int(psi.sum())), out=here)
            if self._may_win(number, place):
                weights = self._detail.weights(node, keys) if weights is None else weights
                total = int((weights * psi).sum()) + int(self._noise[(number, *place)])
                if self._best is None or self._wins(total, number, node):
                    self._best = (total, node, one)
            self._closed[(number, *place)] = True
        at: npt.NDArray[np.int64] | None = None
        for number, one in enumerate(self._ramps):
            if self._still_open(number, finer) > _FEW:
                at = locate() if at is None else at
                here = self._bound[number][finer]
                bounds = self._detail.bounds(node, (one.of(sizes) / sizes)[at])
                np.minimum(here, bounds, out=here)

    def _may_win(self, number: int, place: Node) -> bool:
        """Whether a candidate's bound, with its noise, reaches the best so far."""
        if self._best is None:
            return True
        bound, noise = self._bound[number][place], self._noise[number][place]
        return bool(bound >= self._best[0] - noise)

    def _still_open(self, number: int, places: tuple[slice, ...]) -> int:
        """How many candidates of one ramp, among some places, may still win."""
        assert self._best is not None
        bound, noise = self._bound[number][places], self._noise[number][places]
        return int((~self._closed[number][places] & (bound >= self._best[0] - noise)).sum())

    def _wins(self, total: int, number: int, node: Node) -> bool:
        """Whether a noisy score is the largest so far; of equal ones the first candidate wins."""
        assert self._best is not None
        if total != self._best[0]:
            return total > self._best[0]
        return (number, node) < (self._ramps.index(self._best[2]), self._best[1])

    def chosen(self) -> Chosen:
        assert self._best is not None
        return Chosen(self._best[1], self._best[2], self._scored)
