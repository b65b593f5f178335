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
from support.exact import compute_choice_law

from incrowd.anonymize import safe_search as module
from incrowd.anonymize.lattice import Lattice, Node, Rollups
from incrowd.anonymize.safe_sample import sample_cells
from incrowd.anonymize.safe_search import (
    ChosenScheme,
    Ramp,
    W,
    _SchemeScorer,
    _SearchState,
    make_ramp,
    search_scheme,
)
from incrowd.anonymize.scheme_balance import find_balanced
from incrowd.anonymize.target_score import TargetValues
from incrowd.arrays import Counts, Floats, Words
from incrowd.codes.frequency import Frequencies, map_levels, merge_tuples
from incrowd.codes.hierarchy import Hierarchy, build_from_rows
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import Event, OneOf, SafeRelease, Selection
from incrowd.privacy.randomness import Randomness, SeededRandomness

Row = tuple[int, ...]
Table = tuple[Row, ...]


@dataclass(frozen=True)
class SearchProblem:
    """All that a search is given, but for its budget and its noise."""

    hierarchies: tuple[Hierarchy, ...]
    lattice: Lattice
    ramps: tuple[Ramp, ...]
    power: int = 1
    weights: tuple[float, ...] = ()
    target: int | None = None
    counts: tuple[int, ...] = ()  # what was measured of the target's values, null and others

    @property
    def target_values(self) -> TargetValues | None:
        """What a search is told of the target, at a crowd of one row."""
        if self.target is None:
            return None
        if self.counts:
            return TargetValues.from_counts(self.target, np.array(self.counts), 1.0)
        return TargetValues.from_labels(self.target, len(self.hierarchies[self.target].labels[0]))

    @property
    def shares(self) -> Floats:
        return np.array(self.weights or (1.0,) * len(self.hierarchies))

    @property
    def nodes(self) -> list[Node]:
        """The schemes that take part."""
        return [node for node in self.list_all_nodes() if self.is_candidate(node)]

    def list_all_nodes(self) -> list[Node]:
        pairs = zip(self.lattice.low, self.lattice.high, strict=True)
        return list(itertools.product(*(range(low, high + 1) for low, high in pairs)))

    @property
    def places(self) -> list[int]:
        """Where the candidates stand among all schemes of all ramps."""
        every = self.list_all_nodes()
        first = [place for place, node in enumerate(every) if self.is_candidate(node)]
        return [number * len(every) + place for number in range(len(self.ramps)) for place in first]

    def is_suppressed(self, at: int, level: int) -> bool:
        tree, low, high = self.hierarchies[at], self.lattice.low[at], self.lattice.high[at]
        return low < high and level == tree.height - 1 and len(tree.labels[-1]) == 1

    def is_candidate(self, node: Node) -> bool:
        """Whether no column is suppressed for the finest of several levels of another."""
        for at, level in enumerate(node):
            for other, fine in enumerate(node):
                low, high = self.lattice.low[other], self.lattice.high[other]
                levels = range(low, high + 1)
                informative = [up for up in levels if not self.is_suppressed(other, up)]
                if (
                    self.is_suppressed(at, level)
                    and other != self.target
                    and len(informative) > 1
                    and fine == low
                    and self.shares[other] <= (0.0 if at == self.target else self.shares[at])
                ):
                    return False
        return True

    @property
    def weights_of_search(self) -> Floats:
        weights = self.shares
        if self.target is not None:
            weights[self.target] = 0.0
        return weights

    def make_rollups(self, table: Table) -> Rollups:
        codes = np.array(table, dtype=np.int32).reshape(-1, len(self.hierarchies))
        return Rollups(self.hierarchies, merge_tuples(codes, np.ones(len(codes), dtype=np.int64)))

    def make_detail(self, table: Table) -> _SchemeScorer:
        return _SchemeScorer(
            self.make_rollups(table),
            self.lattice,
            self.power,
            self.weights_of_search,
            self.target_values,
        )

    def make_state(self, table: Table) -> _SearchState:
        noise = np.zeros((len(self.ramps), *self.lattice.shape), dtype=np.int64)
        candidates = find_balanced(self.lattice, self.hierarchies, self.weights_of_search)
        return _SearchState(self.make_detail(table), self.lattice, self.ramps, noise, candidates)

    def run_search(self, table: Table, epsilon: Fraction, bits: Randomness) -> ChosenScheme:
        return search_scheme(
            self.make_rollups(table), self.lattice, self.ramps,
            epsilon=epsilon, power=self.power, weights=self.shares, bits=bits,
            target=self.target_values,
        )  # fmt: skip


def compute_scores(problem: SearchProblem, table: Table) -> list[int]:
    """The score that the search gives to each candidate: ramps first, then nodes in order."""
    scores = []
    for ramp in problem.ramps:
        for node in problem.nodes:
            state = replace(problem, ramps=(ramp,)).make_state(table)
            state.score_node(node)
            assert state._best is not None
            scores.append(state._best[0])
    return scores


def compute_defined_scores(problem: SearchProblem, table: Table) -> list[int]:
    """The same from the docstring, row by row: each row has its cell's share of w psi."""
    shares, target = problem.shares, problem.target
    if target is not None:
        shares[target] = 0.0
    total = float(shares.sum())
    defined_scores = []
    for ramp in problem.ramps:
        for node in problem.nodes:
            cells: dict[Row, int] = {}
            for row in table:
                cell = tuple(
                    int(hierarchy.groups[level][code])
                    for hierarchy, level, code in zip(problem.hierarchies, node, row, strict=True)
                )
                cells[cell] = cells.get(cell, 0) + 1
            score = 0
            parts: list[tuple[Row, int, int]] = []
            for cell, rows in cells.items():
                detail, hidden = 0.0, 0.0
                for at, (hierarchy, level) in enumerate(
                    zip(problem.hierarchies, node, strict=True)
                ):
                    covered = float(hierarchy.count_covered(level)[cell[at]])
                    lost = (covered - 1) / max(hierarchy.size - 1, 1)
                    detail += float(shares[at]) / total * (1 - lost)
                    if problem.is_suppressed(at, level):
                        hidden += float(shares[at]) / total / 2
                kept_detail = min(max(detail, 0.0), 1.0) ** problem.power
                weight = math.floor(kept_detail * (1 - hidden) * W)
                psi = min(max(0, ramp.d * (rows - ramp.a)), ramp.b * rows)
                if target is None:
                    score += weight * psi
                else:
                    parts.append((cell, weight, psi))
            if target is not None:
                score = score_target(target, problem.counts, parts, ramp.b)
            defined_scores.append(score)
    return defined_scores


def score_target(
    target: int, counts: Sequence[int], cells: Sequence[tuple[Row, int, int]], b: int
) -> int:
    """The score with a target from its definition: cells with w and psi, at a crowd of one row.

    ``counts`` are those measured of the target's codes; none if nothing was.
    """
    guarded = [code for code, count in enumerate(counts) if count >= 3]
    weights = {code: max(min(4 * max(counts) // counts[code], 32), 4) for code in guarded}
    sums = dict.fromkeys(guarded, 0)
    regions: dict[Row, list[int]] = {}
    details = {}
    for cell, weight, psi in cells:
        f = weights.get(cell[target], 4) * psi // 256
        region = cell[:target] + cell[target + 1 :]
        regions.setdefault(region, []).append(f)
        details[region] = weight
        if cell[target] in sums:
            sums[cell[target]] += f
    score = sum(details[region] * (sum(fs) + max(fs)) for region, fs in regions.items())
    if guarded:
        most = min(weights[code] * counts[code] for code in guarded) * 7 // 10 * b // 256
        score += 2 * min(len(guarded), 4) * W * min(most, min(sums.values()))
    return score


# The whole: selection and release, as one distribution.


class FixedCoins:
    """Words that stand for drawn (0) and not drawn (the largest word)."""

    private = False

    def __init__(self, coins: tuple[bool, ...]) -> None:
        self._words = np.array([0 if x else 2**64 - 1 for x in coins], dtype=np.uint64)

    def draw_words(self, count: int) -> Words:
        assert count <= len(self._words), "more bits were asked for than there are rows"
        words, self._words = self._words[:count], self._words[count:]
        return words


Cells = tuple[tuple[Row, int], ...]
Output = tuple[int, Cells]
Distribution = dict[Output, float]


def list_cells(released: Frequencies) -> Cells:
    pairs = zip(released.codes.tolist(), released.counts.tolist(), strict=True)
    return tuple((tuple(codes), count) for codes, count in pairs)


def roll_up_table(problem: SearchProblem, table: Table, node: Node) -> Frequencies:
    frequencies = problem.make_rollups(table).frequencies
    if not len(frequencies):
        return frequencies
    return frequencies.roll_up(map_levels(problem.hierarchies, (0,) * len(node), node))


@cache
def list_coin_outcomes(rows: int) -> list[tuple[bool, ...]]:
    return list(itertools.product((True, False), repeat=rows))


def compute_release_law(
    problem: SearchProblem, table: Table, node: Node, ramp: Ramp
) -> dict[Cells, float]:
    """What a safe release shows at a node, over all its coins; beta has few binary digits."""
    cells, release_law = roll_up_table(problem, table, node), dict[Cells, float]()
    for coins in list_coin_outcomes(len(table)):
        result = list_cells(sample_cells(cells, k=ramp.k, beta=ramp.beta, bits=FixedCoins(coins)))
        weight = ramp.beta ** sum(coins) * (1 - ramp.beta) ** (len(table) - sum(coins))
        release_law[result] = release_law.get(result, 0.0) + weight
    return release_law


def find_noise_rate(problem: SearchProblem, epsilon: Fraction) -> Any:
    """epsilon / sensitivity as the search itself asks for its noise."""
    request: list[tuple[int, int, Fraction]] = []

    def none(count: int, *, sensitivity: int, epsilon: Fraction, bits: Randomness) -> Counts:
        request.append((count, sensitivity, epsilon))
        return np.zeros(count, dtype=np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "sample_one_sided_noise", none)
        problem.run_search(((0,) * len(problem.hierarchies),), epsilon, SeededRandomness(0))
    ((count, sensitivity, used),) = request
    assert count == len(problem.ramps) * problem.lattice.size
    return mpmath.mpf(used.numerator) / used.denominator / sensitivity


class SearchLaw:
    """A searched release: the distribution of (candidate, cells) for each table."""

    def __init__(self, problem: SearchProblem, epsilon: Fraction) -> None:
        self.problem = problem
        self.rate = find_noise_rate(problem, epsilon)
        self._known: dict[Table, Distribution] = {}

    def compute_choices(self, table: Table) -> list[float]:
        return compute_choice_law(compute_scores(self.problem, table), self.rate)

    def make_draw_event(self) -> Event:
        """What is accounted after the choice."""
        return OneOf(SafeRelease(ramp.k, ramp.beta) for ramp in self.problem.ramps)

    def list_candidates(self) -> list[tuple[Node, Ramp]]:
        return [(node, ramp) for ramp in self.problem.ramps for node in self.problem.nodes]

    def __call__(self, table: Table) -> Distribution:
        if table not in self._known:
            self._known[table] = self.compute_distribution(table)
        return self._known[table]

    def compute_distribution(self, table: Table) -> Distribution:
        distribution: Distribution = {}
        candidates = enumerate(
            zip(self.list_candidates(), self.compute_choices(table), strict=True)
        )
        for number, ((node, first), share) in candidates:
            for cells, weight in compute_release_law(self.problem, table, node, first).items():
                distribution[number, cells] = share * weight
        return distribution


def list_neighbor_tables(problem: SearchProblem, most: int) -> Iterable[tuple[Table, Table]]:
    """Every table of up to so many rows of known values, beside itself without one of them."""
    values = (range(len(hierarchy.values)) for hierarchy in problem.hierarchies)
    rows = list(itertools.product(*values))
    for size in range(1, most + 1):
        for table in itertools.combinations_with_replacement(rows, size):
            for row in sorted(set(table)):
                at = table.index(row)
                yield table, table[:at] + table[at + 1 :]


def compute_divergence(p: Distribution, q: Distribution, epsilon: float) -> float:
    t = math.exp(epsilon)
    return math.fsum(max(x - t * q.get(output, 0.0), 0.0) for output, x in p.items())


def compute_delta_usage(
    law: SearchLaw, epsilon: Fraction, pairs: Iterable[tuple[Table, Table]]
) -> tuple[float, float]:
    """The largest divergence over the claimed delta: of row present, and of row absent."""
    accountant = Accountant([Selection(float(epsilon)), law.make_draw_event()])
    table_pairs = list(pairs)
    present = absent = 0.0
    for more in (-0.75, -0.5, -0.1, 0.0, 0.1, 0.3, 0.7, 1.2):
        at = max(float(epsilon) + more, 0.0)
        claimed = accountant.delta(epsilon=at)
        for first, other in table_pairs:
            present = max(present, compute_divergence(law(first), law(other), at) / claimed)
            absent = max(absent, compute_divergence(law(other), law(first), at) / claimed)
    return present, absent


TWO = build_from_rows([("a", "*"), ("b", "*")])
THREE = build_from_rows([("a", "g", "*"), ("b", "g", "*"), ("c", "h", "*")])
FOUR = build_from_rows([("a", "g"), ("b", "g"), ("c", "h"), ("d", "h")])


def make_lattice_problem(
    *hierarchies: Hierarchy, pairs: Sequence[tuple[int, float]], **more: Any
) -> SearchProblem:
    target = more.get("target")  # which has one level
    low = (0,) * len(hierarchies)
    high = tuple(
        0 if at == target else hierarchy.height - 1 for at, hierarchy in enumerate(hierarchies)
    )
    return SearchProblem(
        hierarchies, Lattice(low, high), tuple(make_ramp(*pair) for pair in pairs), **more
    )
