"""Choosing a scheme for a safe release from the table, privately and nearly for free.

**Score.** A scheme x with crowd size k and sampling rate beta scores the sum over its cells of
w(cell) psi(rows of the cell). The weight w, from 0 to W, is the detail that the cell's labels
keep, less half the share (by weight) of the columns that x suppresses: the last label of a column
is worth more than a further label of another. It depends on the scheme alone. psi is a ramp: 0 up
to a = 0.7 k / beta rows, then steeper than a cell that surely survives, until it meets the line
B c, where B stands for beta. So it is close to the number of rows that will be released, but never
jumps.

**Candidates.** Left out is every scheme that suppresses a column while another, of the same weight
or less, has the finest of several levels: :mod:`incrowd.anonymize.scheme_balance`. That follows
from the spec alone.

**Sensitivity.** Adding a row raises one cell by one, hence its psi by 0 to D, D the ramp's
slope, and the score by 0 to W D. All are whole numbers, so nothing is lost to rounding. A person
with up to m rows raises cells by no more than m in all, however many of these rows count in one
cell: psi rises by at most D for each, so the score rises by 0 to m W D.

**Target.** Where the relation of one column to the others is to be kept, that column has one
level, regions that are alike in the others stand in the place of cells, and what they count for is
said, with its sensitivity, in :mod:`incrowd.anonymize.target_score`.

**Search.** The noise of every candidate is drawn first; the candidate with the largest noisy
score is then found exactly, without scoring those that cannot be it. For x finer than y a row's
cell is no larger at x than at y, and psi(c) / c never falls as c grows; so the score of x is at
most the sum over rows of w_x(row) psi(c_y) / c_y, and the detail behind w_x(row) is at most what
the best part of the row's group at y keeps in each column: a sum over columns that is known once y
is scored. (A power of the detail is bounded by the detail times the largest detail, so often.)
Passing over candidates changes the time that it takes and nothing else. Very many schemes are
searched box by box, with the same result: :mod:`incrowd.anonymize.scheme_boxes`. (Who can measure
that time learns something; keep it to yourself.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.candidate_list import CandidateList
from incrowd.anonymize.lattice import Lattice, Node, Rollups
from incrowd.anonymize.refined_cells import CellRefiner
from incrowd.anonymize.scheme_balance import (
    BalanceRule,
    count_informative_levels,
    find_balanced,
)
from incrowd.anonymize.scheme_boxes import BestCandidate, BoxNoise, RampSearch, search_boxes
from incrowd.anonymize.target_score import Regions, TargetValues
from incrowd.arrays import Codes, Counts, Floats, Places
from incrowd.codes.frequency import number_tuples
from incrowd.errors import ParameterError
from incrowd.measure.loss import compute_normalized_costs
from incrowd.privacy.randomness import Randomness
from incrowd.privacy.selection import sample_one_sided_noise

W = 1 << 10
_UNIT = 1 << 10
_FROM, _TO = 0.7, 1.7  # the ramp begins and ends at these multiples of the crowd k / beta
_FEW = 16  # so many open candidates are rather scored than bounded more closely
_LISTED = 8  # so small a part of the lattice, or a smaller one, that may win is listed apart
_BATCH = 32  # so many nodes are scored before it is looked again which may still win
_FEWER = 2  # times fewer cells than tuples, and cells are counted in place of tuples
_BOXED = 1 << 17  # a lattice of so many schemes, or more, is searched box by box
_JOINTLY = 12  # of so many columns, or fewer, several ramps are scored by one count of cells
_SLACK = 1 + 1e-6  # bounds are sums of floats; they must not fall below the truth


@dataclass(frozen=True)
class Ramp:
    """psi(c) = min(max(0, D (c - a)), B c) for a crowd size and a sampling rate.

    Of counts k is the noisy count that cells are shown from, and the rate is 1.
    """

    k: int
    beta: float
    a: int
    b: int
    d: int

    def compute_psi(self, rows: Counts) -> Counts:
        """Return psi of each number of rows."""
        return np.minimum(np.maximum(self.d * (rows - self.a), 0), self.b * rows)


def make_ramp(k: int, beta: float) -> Ramp:
    """Return the ramp of a crowd size and a sampling rate; of counts, of r + k and 1."""
    level = max(round(beta * _UNIT), 1)
    steep = int(np.ceil(level * _TO / (_TO - _FROM)))
    return Ramp(k, beta, int(_FROM * k / beta), level, steep)


@dataclass(frozen=True)
class ChosenScheme:
    """The scheme and the pair that were chosen, and how many schemes were scored for it."""

    levels: Node
    ramp: Ramp
    scored: int


def search_scheme(
    rollups: Rollups,
    lattice: Lattice,
    ramps: Sequence[Ramp],
    *,
    epsilon: Fraction,
    power: int,
    weights: Floats,
    bits: Randomness,
    target: TargetValues | None = None,
    rows: int = 1,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> ChosenScheme:
    """Choose a scheme of the lattice and a ramp by report noisy max: epsilon-private.

    ``power`` raises the detail that counts: 1 weighs rows by their detail, so that the score
    is what normalized loss leaves; more prefers fewer rows of more detail. ``target`` is a
    column whose relation to the others is to be kept. ``rows`` is the largest number of
    rows of one person, where the cells count people, or a few rows of each.
    """
    lattice.refuse_large()  # noise is drawn for every scheme
    slope = max(ramp.d for ramp in ramps)
    sensitivity = rows * W * slope
    if target is not None:
        if lattice.low[target.at] != lattice.high[target.at]:
            raise ParameterError("target", "must have one level", lattice.high[target.at])
        sensitivity = rows * target.compute_sensitivity(W, slope)
        weights = np.where(np.arange(len(weights)) == target.at, 0.0, weights)
    noise_values = sample_one_sided_noise(
        len(ramps) * lattice.size, sensitivity=sensitivity, epsilon=epsilon, bits=bits
    )
    noise = noise_values.reshape(len(ramps), *lattice.shape)
    scorer = _SchemeScorer(rollups, lattice, power, weights, target)
    is_plain = type(rollups) is Rollups and target is None
    if is_plain and lattice.size >= _BOXED and (len(ramps) == 1 or len(lattice.shape) > _JOINTLY):
        return _search_boxes(scorer, lattice, ramps, noise, weights, progress)
    candidates = find_balanced(lattice, rollups.hierarchies, weights)
    state = _SearchState(scorer, lattice, ramps, noise, candidates)
    state.climb()
    while nodes := state.find_open_nodes(progress):
        for node in nodes:
            if state.may_win(node):
                state.score_node(node)
    return state.build_choice()


def _search_boxes(
    scorer: _SchemeScorer,
    lattice: Lattice,
    ramps: Sequence[Ramp],
    noise: npt.NDArray[np.int64],
    weights: Floats,
    progress: Callable[[int, int], None],
) -> ChosenScheme:
    """Find the same candidate box by box: faster where there are very many."""
    rollups, best = scorer.rollups, BestCandidate()
    rule = BalanceRule.from_lattice(lattice, rollups.hierarchies, weights)
    entropies = rollups.compute_entropies()
    searches = [
        RampSearch(
            number, ramp, CellRefiner(rollups, lattice.low, ramp.a), lattice, scorer, rule,
            BoxNoise(lattice, noise[number]), entropies, best,
        )
        for number, ramp in enumerate(ramps)
    ]  # fmt: skip
    search_boxes(searches, progress, lattice.size)
    assert best.place is not None
    number, node = best.place
    return ChosenScheme(node, ramps[number], len(best.scored))


def weigh_detail(detail: Floats, power: int, factor: float = 1.0) -> Counts:
    """Return w for each detail: its power, times ``factor``, from 0 to W, cut to a whole number.

    By multiplications alone, which give the same float for the same detail wherever it stands
    (and details are summed column by column, for the same reason): a cell's weight must be the
    same in two tables that differ elsewhere.
    """
    within = np.clip(detail, 0, 1)
    product = within
    for _ in range(power - 1):
        product = product * within
    return np.floor(product * factor * W).astype(np.int64)


@dataclass(frozen=True, eq=False)
class _CellSizes:
    """The rows of cells and, where cells count people, the rows of each of these."""

    sizes: Counts
    parts: Floats | None


@dataclass(frozen=True, eq=False)
class _Rating:
    """What a node has for a ramp: what w weighs in each region, and how much of a target survives.

    ``most`` and ``most_survival`` bound the same of all finer nodes.
    """

    gain: Counts
    most: Counts | Floats
    survival: int = 0
    most_survival: float = 0.0


class _SchemeScorer:
    """The detail that cells keep, sums of it over rows, and bounds of such sums.

    With a target, regions stand in the place of cells.
    """

    def __init__(
        self,
        rollups: Rollups,
        lattice: Lattice,
        power: int,
        weights: Floats,
        target: TargetValues | None = None,
    ) -> None:
        self.rollups, self._lattice, self._power = rollups, lattice, power
        self._target = target
        shares = weights / weights.sum()
        self._kept = [
            [share * (1 - cost) for cost in compute_normalized_costs(hierarchy)]
            for share, hierarchy in zip(shares, rollups.hierarchies, strict=True)
        ]
        spans = list(enumerate(zip(lattice.low, lattice.high, strict=True)))
        grid = lattice.sum_levels(
            [
                [float(self._kept[at][level].max()) for level in range(low, high + 1)]
                for at, (low, high) in spans
            ]
        )
        self._most_kept = [  # at a level or a coarser one
            np.maximum.accumulate([details.max() for details in column][::-1])[::-1].tolist()
            for column in self._kept
        ]
        self.factor = W * _SLACK
        self._shown = self._weigh_shown(shares)
        self.cells = lattice.sum_levels(
            [np.log2(rollups.count_groups(at)[low : high + 1]) for at, (low, high) in spans]
        )
        self.most = grid ** (power - 1) * self._shown
        self.best = grid**power * self._shown
        self._parts: dict[tuple[int, int], list[Floats]] = {}

    def _weigh_shown(self, shares: Floats) -> Floats:
        """Return over the lattice 1, less half the share of the columns that are suppressed."""
        columns = []
        for at, (low, high) in enumerate(zip(self._lattice.low, self._lattice.high, strict=True)):
            informative = count_informative_levels(self.rollups.hierarchies[at], low, high)
            is_suppressed = (np.arange(high - low + 1) >= informative) & (low < high)
            columns.append(np.where(is_suppressed, shares[at] / 2, 0.0))
        return 1 - self._lattice.sum_levels(columns)

    def bound_power(self, node: Node) -> float:
        """Return the most that the detail of a row is multiplied by, at a node or a coarser one."""
        if self._power == 1:
            return 1.0
        most = sum(self._most_kept[at][level] for at, level in enumerate(node))
        return float(most ** (self._power - 1))

    def weigh_cells(self, codes: Codes, node: Node) -> Counts:
        """Return w of each cell of a node, a whole number from 0 to W."""
        detail = np.zeros(len(codes))
        for at, level in enumerate(node):
            detail += self._kept[at][level][codes[:, at]]
        return weigh_detail(detail, self._power, self._shown[self._lattice.locate_node(node)])

    def rate_cells(
        self, node: Node, keys: npt.NDArray[np.int64], ramps: Sequence[Ramp], cells: _CellSizes
    ) -> tuple[npt.NDArray[np.int64], list[_Rating]]:
        """Return the key of a cell of each region, and what the node has for each ramp.

        Without a target each cell is a region.
        """
        psis = [ramp.compute_psi(cells.sizes) for ramp in ramps]
        finer_psis: list[Counts | Floats] = [
            psi if cells.parts is None else psi * cells.parts for psi in psis
        ]
        if self._target is None or not len(keys):
            return keys, [_Rating(*pair) for pair in zip(psis, finer_psis, strict=True)]
        codes = self.rollups.decode_keys(node, keys)
        target_codes = codes[:, self._target.at]
        numbers = number_tuples(np.delete(codes, self._target.at, axis=1))
        order = np.argsort(numbers, kind="stable")
        regions = Regions(order, np.flatnonzero(np.append(True, np.diff(numbers[order]) > 0)))
        ratings = []
        for ramp, psi, finer_psi in zip(ramps, psis, finer_psis, strict=True):
            gain, survival = self._target.rate_cells(target_codes, psi, regions, ramp.b)
            most = self._target.bound_cells(target_codes, finer_psi, regions, ramp.b)
            ratings.append(_Rating(gain, most[0], survival, most[1]))
        return keys[regions.first_cells], ratings

    def compute_rough_bounds(self, node: Node, total: float) -> Floats:
        """Return upper bounds of the scores of all finer nodes, whose psi sum to <= ``total``."""
        bound = total * W * _SLACK
        return self.best[self._lattice.slice_finer(node)] * bound

    def compute_bounds(self, codes: Codes, node: Node, psi: Counts | Floats) -> Floats:
        """Return closer bounds, from psi of each cell: detail by detail, column by column."""
        sums = self.sum_best_parts(codes, node, psi)
        detail = self._lattice.sum_levels(sums) * self.most[self._lattice.slice_finer(node)]
        return detail * (W * _SLACK)

    def sum_best_parts(self, codes: Codes, node: Node, psi: Counts | Floats) -> list[list[float]]:
        """Return for each column and finer level the most that it keeps, summed over psi."""
        sums = []
        for at, level in enumerate(node):
            parts = self.find_best_parts(at, level)
            group_psi = np.bincount(codes[:, at], weights=psi, minlength=len(parts[0]))
            sums.append([float((best * group_psi).sum()) for best in parts])
        return sums

    def find_best_parts(self, at: int, level: int) -> list[Floats]:
        """Return for each finer level the most that a part of each group of this level keeps."""
        if (at, level) not in self._parts:
            groups = self.rollups.hierarchies[at].groups
            width = len(self.rollups.hierarchies[at].labels[level])
            best_parts = []
            for finer in range(self._lattice.low[at], level + 1):
                best = np.zeros(width)
                np.maximum.at(best, groups[level], self._kept[at][finer][groups[finer]])
                best_parts.append(best)
            self._parts[at, level] = best_parts
        return self._parts[at, level]


class _RollupCache:
    """Tuples rolled up halfway, from which the cells of many nodes are counted sooner.

    A stage is a node of even levels; it is kept once it was asked for twice, if it has far fewer
    cells than there are tuples, and as long as all that are kept have no more cells than those.
    """

    def __init__(self, rollups: Rollups) -> None:
        self._rollups = rollups
        self._kept: dict[Node, Rollups] = {}
        self._asked: set[Node] = set()
        self._cells = 0

    def get_rollups(self, node: Node) -> Rollups:
        """Return the rollups that count the cells of a node."""
        stage = tuple(level - level % 2 for level in node)
        if stage in self._kept:
            return self._kept[stage]
        tuples = len(self._rollups.frequencies)
        if stage not in self._asked or self._rollups.bound_cells(stage) * _FEWER > tuples:
            self._asked.add(stage)
            return self._rollups
        rollups = self._rollups.roll_up_to(stage)
        self._cells += len(rollups.frequencies)
        while self._kept and self._cells > tuples:
            oldest = next(iter(self._kept))
            self._cells -= len(self._kept.pop(oldest).frequencies)
        self._kept[stage] = rollups
        return rollups


class _SearchState:
    """The best noisy score so far, and which candidates may still beat it."""

    def __init__(
        self,
        detail: _SchemeScorer,
        lattice: Lattice,
        ramps: Sequence[Ramp],
        noise: npt.NDArray[np.int64],
        candidates: npt.NDArray[np.bool_],
    ) -> None:
        self._detail, self._lattice, self._ramps, self._noise = detail, lattice, ramps, noise
        self._least = min(ramp.a for ramp in ramps)
        self._bound = np.full(noise.shape, np.inf)
        self._closed = np.broadcast_to(~candidates, noise.shape).copy()
        self._best: tuple[int, Node, Ramp] | None = None
        self._scored = 0
        self._open_ramps = list(range(len(ramps)))  # once a ramp cannot win, it never can again
        self._lists: dict[int, CandidateList] = {}
        self._stages = _RollupCache(detail.rollups)

    def _find_open(self, places: tuple[slice | int, ...]) -> npt.NDArray[np.bool_]:
        """Return which candidates, among some places, are unscored and may reach the best."""
        unseen = ~self._closed[places]
        if self._best is None:
            return unseen
        return unseen & (self._bound[places] >= self._best[0] - self._noise[places])

    def find_open_nodes(self, progress: Callable[[int, int], None]) -> list[Node]:
        """Return the coarsest nodes that may still win, for what they bound; none if none may."""
        places_by_ramp = {number: self._list_open(number) for number in self._open_ramps}
        progress(self._noise.size - sum(map(len, places_by_ramp.values())), self._noise.size)
        self._open_ramps = [number for number, places in places_by_ramp.items() if len(places)]
        places = np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *places_by_ramp.values()]))
        coarse = self._detail.cells.ravel()[places]
        if len(places) > _BATCH:
            coarsest = np.argpartition(coarse, _BATCH)[:_BATCH]
            places, coarse = places[coarsest], coarse[coarsest]
        order = np.argsort(coarse, kind="stable")
        return [self._lattice.get_node(int(place)) for place in places[order]]

    def _list_open(self, number: int) -> Places:
        """Return the places, counted flat, that may win with a ramp; keep them alone if few."""
        if number in self._lists:
            assert self._best is not None
            self._lists[number].drop_beaten(self._best[0])
            return self._lists[number].places
        places = np.flatnonzero(self._find_open((number,)))
        if self._best is not None and len(places) * _LISTED <= self._lattice.size:
            self._lists[number] = CandidateList(
                self._lattice,
                places,
                bound=self._bound[number].ravel()[places],
                noise=self._noise[number].ravel()[places],
                best=self._detail.best.ravel()[places],
                most=self._detail.most.ravel()[places],
            )
        return places

    def _may_win_with(self, number: int, node: Node) -> bool:
        if number in self._lists:
            assert self._best is not None
            return self._lists[number].may_win(node, self._best[0])
        return bool(self._find_open((number, *self._lattice.locate_node(node))))

    def may_win(self, node: Node) -> bool:
        """Return whether a node, with any ramp, may still win."""
        return any(self._may_win_with(number, node) for number in self._open_ramps)

    def climb(self) -> None:
        """Climb from the top to a good candidate, always to the best node near by."""
        self.score_node(self._lattice.high)
        before = None
        while self._best is not None and self._best[1] != before:
            before = self._best[1]
            for number in self._open_ramps:
                self._list_open(number)
            for node in self._lattice.iterate_neighbors(before):
                if self.may_win(node):
                    self.score_node(node)

    def score_node(self, node: Node) -> None:
        """Score a node for every ramp that may win with it, and bound what is finer.

        Ramps with which no candidate may win are passed over.
        """
        self._scored += 1
        keys, sizes, rows = self._stages.get_rollups(node).count_cells_with_rows(node)
        counting = np.flatnonzero(sizes > self._least)  # psi of the rest is 0
        parts = None if rows is sizes else rows[counting] / sizes[counting]
        keys, sizes = keys[counting], sizes[counting]
        place = self._lattice.locate_node(node)
        ramps = [(number, self._ramps[number]) for number in self._open_ramps]
        keys, ratings = self._detail.rate_cells(
            node, keys, [ramp for _, ramp in ramps], _CellSizes(sizes, parts)
        )
        cells: tuple[Codes, Counts] | None = None
        for (number, candidate_ramp), rating in zip(ramps, ratings, strict=True):
            self._bound_roughly(number, node, rating)
            if self._may_win_with(number, node):
                cells = cells or self._decode_cells(node, keys)
                score = int((cells[1] * rating.gain).sum()) + W * rating.survival
                noisy = score + int(self._noise[(number, *place)])
                if self._best is None or self._is_better(noisy, number, node):
                    self._best = (noisy, node, candidate_ramp)
            if number in self._lists:
                self._lists[number].close(node)
            self._closed[(number, *place)] = True
        for (number, _), rating in zip(ramps, ratings, strict=True):
            if self._count_open_finer(number, node) > _FEW:
                cells = cells or self._decode_cells(node, keys)
                self._bound_closely(number, node, cells[0], rating)

    def _bound_roughly(self, number: int, node: Node, rating: _Rating) -> None:
        """Lower the bounds of all finer nodes by what they can have at most in all."""
        total = float(rating.most.sum())
        if number in self._lists:
            listed = self._lists[number]
            listed.lower_roughly(
                listed.find_finer(node), total * (W * _SLACK), _bound_survival(rating)
            )
            return
        bounds = self._bound[number][self._lattice.slice_finer(node)]
        rough = self._detail.compute_rough_bounds(node, total)
        np.minimum(bounds, rough + _bound_survival(rating), out=bounds)

    def _count_open_finer(self, number: int, node: Node) -> int:
        """Return how many finer nodes may still win with a ramp."""
        if number in self._lists:
            assert self._best is not None
            listed = self._lists[number]
            return listed.count_open(listed.find_finer(node), self._best[0])
        return int(self._find_open((number, *self._lattice.slice_finer(node))).sum())

    def _bound_closely(self, number: int, node: Node, codes: Codes, rating: _Rating) -> None:
        """Lower the bounds of all finer nodes by what each column keeps of each cell."""
        if number in self._lists:
            listed = self._lists[number]
            sums = self._detail.sum_best_parts(codes, node, rating.most)
            listed.lower(listed.find_finer(node), sums, W * _SLACK, _bound_survival(rating))
            return
        bounds = self._bound[number][self._lattice.slice_finer(node)]
        closer = self._detail.compute_bounds(codes, node, rating.most)
        np.minimum(bounds, closer + _bound_survival(rating), out=bounds)

    def _decode_cells(self, node: Node, keys: npt.NDArray[np.int64]) -> tuple[Codes, Counts]:
        """Return the codes of the cells of a node, and what they keep."""
        codes = self._detail.rollups.decode_keys(node, keys)
        return codes, self._detail.weigh_cells(codes, node)

    def _is_better(self, total: int, number: int, node: Node) -> bool:
        """Return whether a noisy score is the largest so far; of equal ones the first wins."""
        assert self._best is not None
        if total != self._best[0]:
            return total > self._best[0]
        return (number, node) < (self._ramps.index(self._best[2]), self._best[1])

    def build_choice(self) -> ChosenScheme:
        assert self._best is not None
        return ChosenScheme(self._best[1], self._best[2], self._scored)


def _bound_survival(rating: _Rating) -> float:
    """Return what survival is worth at most at finer nodes."""
    return rating.most_survival * (W * _SLACK)
