"""The private search as one distribution: its scores, and all that a searched release shows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from support.exact import law

from incrowd.anonymize import safe_search as module
from incrowd.anonymize.lattice import Lattice, Node, Rollups
from incrowd.anonymize.safe import safe
from incrowd.anonymize.safe_search import Chosen, Ramp, W, _Detail, _State, ramp, search
from incrowd.arrays import Counts, Floats, Words
from incrowd.codes.frequency import Frequencies, between, merged
from incrowd.codes.hierarchy import Hierarchy, from_rows
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import Event, OneOf, SafeRelease, Selection
from incrowd.privacy.randomness import Randomness, SeededRandomness

Row = tuple[int, ...]
Table = tuple[Row, ...]


@dataclass(frozen=True)
class Problem:
    """All that a search is given, but for its budget and its noise."""

    hierarchies: tuple[Hierarchy, ...]
    lattice: Lattice
    ramps: tuple[Ramp, ...]
    power: int = 1
    weights: tuple[float, ...] = ()
    target: int | None = None

    @property
    def shares(self) -> Floats:
        return np.array(self.weights or (1.0,) * len(self.hierarchies))

    @property
    def nodes(self) -> list[Node]:
        pairs = zip(self.lattice.low, self.lattice.high, strict=True)
        return list(itertools.product(*(range(low, high + 1) for low, high in pairs)))

    def rollups(self, table: Table) -> Rollups:
        codes = np.array(table, dtype=np.int32).reshape(-1, len(self.hierarchies))
        return Rollups(self.hierarchies, merged(codes, np.ones(len(codes), dtype=np.int64)))

    def detail(self, table: Table) -> _Detail:
        weights = self.shares
        if self.target is not None:
            weights[self.target] = 0.0
        return _Detail(self.rollups(table), self.lattice, self.power, weights, self.target)

    def state(self, table: Table) -> _State:
        noise = np.zeros((len(self.ramps), *self.lattice.shape), dtype=np.int64)
        return _State(self.detail(table), self.lattice, self.ramps, noise)

    def search(self, table: Table, epsilon: Fraction, bits: Randomness) -> Chosen:
        return search(
            self.rollups(table), self.lattice, self.ramps,
            epsilon=epsilon, power=self.power, weights=self.shares, bits=bits, target=self.target,
        )  # fmt: skip


def scores(problem: Problem, table: Table) -> list[int]:
    """The score that the search gives to each candidate: ramps first, then nodes in order."""
    found = []
    for one in problem.ramps:
        for node in problem.nodes:
            alone = replace(problem, lattice=Lattice(node, node), ramps=(one,))
            state = alone.state(table)
            state.score(node)
            assert state._best is not None
            found.append(state._best[0])
    return found


def by_definition(problem: Problem, table: Table) -> list[int]:
    """The same from the docstring, row by row: each row has its cell's share of w psi."""
    shares, target = problem.shares, problem.target
    if target is not None:
        shares[target] = 0.0
    total = float(shares.sum())
    found = []
    for one in problem.ramps:
        for node in problem.nodes:
            cells: dict[Row, int] = {}
            for row in table:
                cell = tuple(
                    int(hierarchy.groups[level][code])
                    for hierarchy, level, code in zip(problem.hierarchies, node, row, strict=True)
                )
                cells[cell] = cells.get(cell, 0) + 1
            score = 0
            told: dict[Row, list[tuple[int, int]]] = {}
            for cell, rows in cells.items():
                detail = 0.0
                for at, (hierarchy, level) in enumerate(
                    zip(problem.hierarchies, node, strict=True)
                ):
                    covered = float(hierarchy.covered(level)[cell[at]])
                    lost = (covered - 1) / max(hierarchy.size - 1, 1)
                    detail += float(shares[at]) / total * (1 - lost)
                weight = math.floor(min(max(detail, 0.0), 1.0) ** problem.power * W)
                psi = min(max(0, one.d * (rows - one.a)), one.b * rows)
                if target is None:
                    score += weight * psi
                else:
                    region = cell[:target] + cell[target + 1 :]
                    told.setdefault(region, []).append((weight, psi))
            for parts in told.values():
                values = [psi for _, psi in parts]
                score += (parts[0][0] + 2 * W) * max(0, 2 * max(values) - sum(values))
            found.append(score)
    return found


# The whole: selection and release, as one distribution.


class Coins:
    """Words that stand for drawn (0) and not drawn (the largest word)."""

    private = False

    def __init__(self, drawn: tuple[bool, ...]) -> None:
        self._words = np.array([0 if x else 2**64 - 1 for x in drawn], dtype=np.uint64)

    def words(self, count: int) -> Words:
        assert count <= len(self._words), "more bits were asked for than there are rows"
        taken, self._words = self._words[:count], self._words[count:]
        return taken


Cells = tuple[tuple[Row, int], ...]
Output = tuple[int, Cells]
Distribution = dict[Output, float]


def shown(released: Frequencies) -> Cells:
    pairs = zip(released.codes.tolist(), released.counts.tolist(), strict=True)
    return tuple((tuple(codes), count) for codes, count in pairs)


def rolled(problem: Problem, table: Table, node: Node) -> Frequencies:
    whole = problem.rollups(table).frequencies
    if not len(whole):
        return whole
    return whole.rolled(between(problem.hierarchies, (0,) * len(node), node))


@cache
def drawn(rows: int) -> list[tuple[bool, ...]]:
    return list(itertools.product((True, False), repeat=rows))


def release(problem: Problem, table: Table, node: Node, one: Ramp) -> dict[Cells, float]:
    """What a safe release shows at a node, over all its coins; beta has few binary digits."""
    cells, found = rolled(problem, table, node), dict[Cells, float]()
    for coins in drawn(len(table)):
        result = shown(safe(cells, k=one.k, beta=one.beta, bits=Coins(coins)))
        weight = one.beta ** sum(coins) * (1 - one.beta) ** (len(table) - sum(coins))
        found[result] = found.get(result, 0.0) + weight
    return found


def noise_rate(problem: Problem, epsilon: Fraction) -> Any:
    """epsilon / sensitivity as the search itself asks for its noise."""
    asked: list[tuple[int, int, Fraction]] = []

    def none(count: int, *, sensitivity: int, epsilon: Fraction, bits: Randomness) -> Counts:
        asked.append((count, sensitivity, epsilon))
        return np.zeros(count, dtype=np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "one_sided_noise", none)
        problem.search(((0,) * len(problem.hierarchies),), epsilon, SeededRandomness(0))
    ((count, sensitivity, used),) = asked
    assert count == len(problem.ramps) * problem.lattice.size
    return mpmath.mpf(used.numerator) / used.denominator / sensitivity


class Whole:
    """A searched release: the distribution of (candidate, cells) for each table."""

    def __init__(self, problem: Problem, epsilon: Fraction) -> None:
        self.problem = problem
        self.rate = noise_rate(problem, epsilon)
        self._known: dict[Table, Distribution] = {}

    def chosen(self, table: Table) -> list[float]:
        return law(scores(self.problem, table), self.rate)

    def drawn_with(self) -> Event:
        """What is accounted after the choice."""
        return OneOf(SafeRelease(one.k, one.beta) for one in self.problem.ramps)

    def candidates(self) -> list[tuple[Node, Ramp]]:
        return [(node, one) for one in self.problem.ramps for node in self.problem.nodes]

    def __call__(self, table: Table) -> Distribution:
        if table not in self._known:
            self._known[table] = self.distribution(table)
        return self._known[table]

    def distribution(self, table: Table) -> Distribution:
        found: Distribution = {}
        named = enumerate(zip(self.candidates(), self.chosen(table), strict=True))
        for number, ((node, one), share) in named:
            for cells, weight in release(self.problem, table, node, one).items():
                found[number, cells] = share * weight
        return found


def family(problem: Problem, most: int) -> Iterable[tuple[Table, Table]]:
    """Every table of up to so many rows of known values, beside itself without one of them."""
    values = (range(len(hierarchy.values)) for hierarchy in problem.hierarchies)
    rows = list(itertools.product(*values))
    for size in range(1, most + 1):
        for table in itertools.combinations_with_replacement(rows, size):
            for row in sorted(set(table)):
                at = table.index(row)
                yield table, table[:at] + table[at + 1 :]


def divergence(p: Distribution, q: Distribution, epsilon: float) -> float:
    t = math.exp(epsilon)
    return math.fsum(max(x - t * q.get(output, 0.0), 0.0) for output, x in p.items())


def used_up(
    whole: Whole, epsilon: Fraction, pairs: Iterable[tuple[Table, Table]]
) -> tuple[float, float]:
    """The largest divergence over the claimed delta: of row present, and of row absent."""
    accountant = Accountant([Selection(float(epsilon)), whole.drawn_with()])
    listed = list(pairs)
    present = absent = 0.0
    for more in (-0.75, -0.5, -0.1, 0.0, 0.1, 0.3, 0.7, 1.2):
        at = max(float(epsilon) + more, 0.0)
        claimed = accountant.delta(epsilon=at)
        for one, other in listed:
            present = max(present, divergence(whole(one), whole(other), at) / claimed)
            absent = max(absent, divergence(whole(other), whole(one), at) / claimed)
    return present, absent


TWO = from_rows([("a", "*"), ("b", "*")])
THREE = from_rows([("a", "g", "*"), ("b", "g", "*"), ("c", "h", "*")])
FOUR = from_rows([("a", "g"), ("b", "g"), ("c", "h"), ("d", "h")])


def whole_lattice(*listed: Hierarchy, pairs: Sequence[tuple[int, float]], **more: Any) -> Problem:
    low, high = (0,) * len(listed), tuple(hierarchy.height - 1 for hierarchy in listed)
    return Problem(listed, Lattice(low, high), tuple(ramp(*pair) for pair in pairs), **more)
