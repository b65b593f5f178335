"""The best noisy score among very many schemes, found box by box.

A box is all schemes between two nodes. The cells of its coarsest node bound the scores of all,
column by column: each level of a column adds what the best parts of its groups keep there.

**Narrowing.** A level leaves the box if a column keeps so little there that, with the most of all
other columns and the largest noise in the box, no scheme reaches the best noisy score so far. A
coarsest node that became finer is counted again, and bounds more closely. A box that holds nothing
any more is done; one of a single scheme is scored; another is divided at the coarsest level of a
column.

**Claim.** What is found is the candidate with the largest noisy score, the first of several.

*Proof.* For x in a box with coarsest node y a row's cell is no larger at x than at y, and
psi(c) / c never falls as c grows. So the score of x is at most the factor of x for suppressed
columns times the sum over rows of psi(c_y) / c_y times the detail of the row at x (times its
largest value, for each further power). That detail is at most what the best part of the row's group
at y keeps at x's level, or at a coarser one, summed over columns. So what leaves a box has a noisy
score below one that was found, or breaks the rule on suppressed columns. The two parts of a box are
all of it, and a box of one scheme is scored as it is defined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.lattice import Lattice, Node
from incrowd.anonymize.refined_cells import CellRefiner, Cells, Refinement
from incrowd.anonymize.scheme_balance import BalanceRule
from incrowd.arrays import Codes, Counts, Floats, Places

_LARGE_NOISE = 1 << 12  # one candidate in so many has noise that is looked at by itself
_FEWEST = 64  # but no fewer
_SMALL_BOX = 1 << 11  # up to so many candidates the noise of all is looked at
_FIRST = 64  # so many boxes of each ramp come before any more of another
_REPORTED = 64  # so many boxes lie between two reports of progress

Sums = list[list[float]]


class DetailBounds(Protocol):
    """What schemes keep at most, and exactly."""

    factor: float

    def find_best_parts(self, at: int, level: int) -> list[Floats]:
        """Return for each finer level the most that a part of each group of a level keeps."""
        ...

    def bound_power(self, node: Node) -> float:
        """Return the most that the detail of a row is multiplied by, at a node or a coarser one."""
        ...

    def weigh_cells(self, codes: Codes, node: Node) -> Counts:
        """Return w of each cell of a node."""
        ...


class CountRamp(Protocol):
    """psi of the rows of a cell, 0 up to ``a``."""

    @property
    def a(self) -> int:
        """The rows up to which psi is 0."""
        ...

    def compute_psi(self, rows: Counts) -> Counts:
        """Return psi of each number of rows."""
        ...


@dataclass
class BestCandidate:
    """The largest noisy score so far, and the first candidate that has it."""

    score: int = -1
    place: tuple[int, Node] | None = None
    scored: set[Node] = field(default_factory=set)

    def offer(self, score: int, number: int, node: Node) -> None:
        """Take a candidate that was scored, if it is better or, as good, comes first."""
        self.scored.add(node)
        is_first = self.place is not None and (number, node) < self.place
        if score > self.score or (score == self.score and is_first):
            self.score, self.place = score, (number, node)


class BoxNoise:
    """The noise of the candidates of one ramp: the largest in a box, or nearly."""

    def __init__(self, lattice: Lattice, noise: Counts) -> None:
        self._lattice, self._noise = lattice, noise
        flat = noise.reshape(-1)
        number = min(max(len(flat) // _LARGE_NOISE, _FEWEST), len(flat))
        self._least = int(np.partition(flat, len(flat) - number)[len(flat) - number])
        self._places = np.flatnonzero(flat >= self._least)
        self._large = flat[self._places]
        nodes = [lattice.get_node(int(place)) for place in self._places]
        self._levels = np.array(nodes, dtype=np.int16).reshape(len(nodes), len(lattice.low))

    def list_large(self) -> Places:
        """Return the numbers of those that are looked at by themselves."""
        return np.arange(len(self._places))

    def select(self, large: Places, finest: Node, coarsest: Node) -> Places:
        """Return those of some that are in a box."""
        levels = self._levels[large]
        return large[((levels >= finest) & (levels <= coarsest)).all(axis=1)]

    def bound(self, large: Places, finest: Node, coarsest: Node) -> int:
        """Return the largest noise of a box, or a bound of it."""
        if math.prod(b - a + 1 for a, b in zip(finest, coarsest, strict=True)) <= _SMALL_BOX:
            starts, ends = self._lattice.locate_node(finest), self._lattice.locate_node(coarsest)
            spans = tuple(slice(a, b + 1) for a, b in zip(starts, ends, strict=True))
            return int(self._noise[spans].max())
        return int(self._large[large].max(initial=self._least))

    def get(self, node: Node) -> int:
        """Return the noise of a candidate."""
        return int(self._noise[self._lattice.locate_node(node)])


@dataclass(frozen=True, eq=False)
class _Box:
    """All schemes between two nodes; the cells of the coarsest, or how they are refined."""

    finest: Node
    coarsest: Node
    large: Places
    cells: Cells
    steps: tuple[Refinement, ...] = ()
    soon: tuple[Refinement, ...] = ()
    sums: Sums | None = None


class RampSearch:
    """The search among all schemes with one ramp, in as many pieces as it is asked for."""

    def __init__(
        self,
        number: int,
        ramp: CountRamp,
        refiner: CellRefiner,
        lattice: Lattice,
        bounds: DetailBounds,
        rule: BalanceRule,
        noise: BoxNoise,
        entropies: Sequence[Sequence[float]],
        best: BestCandidate,
    ) -> None:
        self._number, self._ramp, self._refiner = number, ramp, refiner
        self._lattice, self._bounds, self._rule, self._noise = lattice, bounds, rule, noise
        self._entropies, self._best = entropies, best
        cells = refiner.count_coarsest(lattice.high)
        self._boxes = [_Box(lattice.low, lattice.high, noise.list_large(), cells)]
        self._tables: dict[tuple[int, int], npt.NDArray[np.float64]] = {}
        self._width = max(
            len(bounds.find_best_parts(at, level)[0])
            for at, (low, high) in enumerate(zip(lattice.low, lattice.high, strict=True))
            for level in range(low, high + 1)
        )
        self._offsets = np.arange(len(lattice.low))[:, None] * self._width

    def advance(self, most: float = math.inf) -> Iterator[int]:
        """Search up to so many boxes; yield after each how many schemes are open, or -1."""
        searched = 0
        while self._boxes and searched < most:
            box: _Box | None = self._boxes.pop()
            while box is not None:
                searched += 1
                is_reported = searched % _REPORTED == 0
                yield sum(map(_count_schemes, (box, *self._boxes))) if is_reported else -1
                box = self._take(box)

    def _take(self, box: _Box) -> _Box | None:
        """Narrow a box, and score or divide it; return what is to be looked at next of it."""
        cells, sums = box.cells, box.sums
        if box.steps:
            cells = self._refiner.refine(cells, box.steps, box.soon)
        sums = sums or self._sum_best_parts(cells, box.finest, box.coarsest)
        narrowed = self._narrow(box, sums)
        if narrowed is None:
            return None
        finest, coarsest, sums = narrowed
        large = self._noise.select(box.large, finest, coarsest) if len(box.large) else box.large
        if coarsest != box.coarsest:
            pairs = enumerate(zip(coarsest, box.coarsest, strict=True))
            steps = tuple(
                Refinement(at, fine, coarse) for at, (fine, coarse) in pairs if fine < coarse
            )
            soon = self._list_steps(finest, coarsest, sums)
            return _Box(finest, coarsest, large, cells, steps, soon)
        if finest == coarsest:
            self._score(cells, coarsest)
            return None
        soon = self._list_steps(finest, coarsest, sums)
        at = soon[0].at
        finer = (*coarsest[:at], coarsest[at] - 1, *coarsest[at + 1 :])
        self._boxes.append(_Box(finest, finer, large, cells, soon[:1], soon[1:]))
        fixed = (*finest[:at], coarsest[at], *finest[at + 1 :])
        sums[at] = sums[at][-1:]
        return _Box(fixed, coarsest, large, cells, sums=sums)

    def _sum_best_parts(self, cells: Cells, finest: Node, coarsest: Node) -> Sums:
        """Return for each column and level of a box the most that it keeps, summed over psi."""
        psi = self._ramp.compute_psi(cells.sizes).astype(np.float64)
        places = (cells.codes + self._offsets).reshape(-1)
        weights = np.broadcast_to(psi, cells.codes.shape).reshape(-1)
        columns = len(self._offsets)
        totals = np.bincount(places, weights=weights, minlength=columns * self._width)
        group_psi = totals.reshape(columns, self._width)
        sums = []
        for at, (fine, coarse) in enumerate(zip(finest, coarsest, strict=True)):
            table = self._get_table(at, coarse)
            start = fine - self._lattice.low[at]
            sums.append((table[start:] @ group_psi[at, : table.shape[1]]).tolist())
        return sums

    def _get_table(self, at: int, level: int) -> npt.NDArray[np.float64]:
        """Return the most that parts of groups keep at a level or a coarser one, level by level."""
        if (at, level) not in self._tables:
            table = np.array(self._bounds.find_best_parts(at, level))
            self._tables[at, level] = np.maximum.accumulate(table[::-1])[::-1]
        return self._tables[at, level]

    def _narrow(self, box: _Box, sums: Sums) -> tuple[Node, Node, Sums] | None:
        """Return a box without levels that cannot win, and its sums; None if nothing is left."""
        low, first = self._lattice.low, box.finest
        finest, coarsest = list(box.finest), list(box.coarsest)
        columns = range(len(low))
        noise = self._noise.bound(box.large, box.finest, box.coarsest)
        needed = self._best.score - noise
        is_changed = True
        while is_changed:
            is_changed = self._rule.narrow(low, finest, coarsest)
            if any(finest[at] > coarsest[at] for at in columns):
                return None
            total = sum(sums[at][finest[at] - first[at]] for at in columns)
            visible = self._rule.weigh_visible(finest)
            factor = self._bounds.bound_power(tuple(finest)) * self._bounds.factor
            if total * visible * factor < needed:
                return None
            for at in columns:
                start, hidden_from = finest[at], self._rule.suppressed_from[at]
                others = total - sums[at][start - first[at]]
                while coarsest[at] > start:
                    is_hidden = coarsest[at] >= hidden_from > start
                    part = visible - self._rule.shares[at] / 2 if is_hidden else visible
                    most = others + sums[at][coarsest[at] - first[at]]
                    if most * part * factor >= needed:
                        break
                    coarsest[at] -= 1
                    is_changed = True
        spans = zip(sums, first, finest, coarsest, strict=True)
        left = [column[fine - start : coarse - start + 1] for column, start, fine, coarse in spans]
        return tuple(finest), tuple(coarsest), left

    def _list_steps(self, finest: Node, coarsest: Node, sums: Sums) -> tuple[Refinement, ...]:
        """Return the next step of each column that is open; first those that decide most.

        A column decides much if its levels differ in what they keep, and in how they part rows.
        """
        steps = []
        for at, (fine, coarse) in enumerate(zip(finest, coarsest, strict=True)):
            if fine < coarse:
                spread = self._entropies[at][coarse - 1] - self._entropies[at][coarse]
                worth = (sums[at][0] - sums[at][coarse - fine]) * spread
                steps.append((-worth, at, Refinement(at, coarse - 1, coarse)))
        return tuple(step for _, _, step in sorted(steps, key=lambda entry: entry[:2]))

    def _score(self, cells: Cells, node: Node) -> None:
        weights = self._bounds.weigh_cells(np.ascontiguousarray(cells.codes.T), node)
        score = int((weights * self._ramp.compute_psi(cells.sizes)).sum())
        self._best.offer(score + self._noise.get(node), self._number, node)


def search_boxes(
    searches: Sequence[RampSearch],
    progress: Callable[[int, int], None],
    schemes: int,
) -> None:
    """Search all boxes, of each ramp some first, so that a good score is known to all early."""
    rounds = [(search, _FIRST) for search in searches] + [(search, math.inf) for search in searches]
    for turn, (search, most) in enumerate(rounds):
        done = max(turn - len(searches), 0) * schemes
        for left in search.advance(most):
            if left >= 0 and turn >= len(searches):
                progress(done + max(schemes - left, 0), schemes * len(searches))


def _count_schemes(box: _Box) -> int:
    return math.prod(b - a + 1 for a, b in zip(box.finest, box.coarsest, strict=True))
