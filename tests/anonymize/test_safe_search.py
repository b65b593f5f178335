"""The private search: found exactly, bounded in what one row moves, and covered as a whole.

The last part enumerates, on tiny tables, the joint distribution of everything that a searched
release shows: the scheme, the pair of k and beta, and the cells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.exact import law

from incrowd.anonymize import safe_search as module
from incrowd.anonymize.lattice import Lattice, Node, Rollups
from incrowd.anonymize.safe import safe, threshold
from incrowd.anonymize.safe_search import Chosen, Ramp, W, _Detail, _State, ramp, search
from incrowd.arrays import Counts, Floats, Words
from incrowd.codes.frequency import Frequencies, between, merged
from incrowd.codes.hierarchy import Hierarchy, from_rows
from incrowd.errors import ParameterError
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import OneOf, SafeRelease, Selection
from incrowd.privacy.randomness import Randomness, SeededRandomness
from incrowd.privacy.selection import one_sided_noise
from incrowd.spec.build import build
from incrowd.spec.model import Column

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
        return _Detail(self.rollups(table), self.lattice, self.power, self.shares)

    def state(self, table: Table) -> _State:
        noise = np.zeros((len(self.ramps), *self.lattice.shape), dtype=np.int64)
        return _State(self.detail(table), self.lattice, self.ramps, noise)

    def search(self, table: Table, epsilon: Fraction, bits: Randomness) -> Chosen:
        return search(
            self.rollups(table), self.lattice, self.ramps,
            epsilon=epsilon, power=self.power, weights=self.shares, bits=bits,
        )  # fmt: skip


def scores(problem: Problem, table: Table) -> list[int]:
    """The score that the search gives to each candidate: ramps first, then nodes in order."""
    found = []
    for one in problem.ramps:
        for node in problem.nodes:
            alone = Problem(
                problem.hierarchies, Lattice(node, node), (one,), problem.power, problem.weights
            )
            state = alone.state(table)
            state.score(node)
            assert state._best is not None
            found.append(state._best[0])
    return found


def by_definition(problem: Problem, table: Table) -> list[int]:
    """The same from the docstring, row by row: each row has its cell's share of w psi."""
    total = float(problem.shares.sum())
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
            for cell, rows in cells.items():
                detail = 0.0
                for at, (hierarchy, level) in enumerate(
                    zip(problem.hierarchies, node, strict=True)
                ):
                    covered = float(hierarchy.covered(level)[cell[at]])
                    lost = (covered - 1) / max(hierarchy.size - 1, 1)
                    detail += float(problem.shares[at]) / total * (1 - lost)
                weight = math.floor(min(max(detail, 0.0), 1.0) ** problem.power * W)
                rising = max(0, one.d * (rows - one.a))
                score += weight * min(rising, one.b * rows)
            found.append(score)
    return found


# Random problems.


@st.composite
def hierarchies(draw: st.DrawFn, most: int = 5) -> Hierarchy:
    """Up to ``most`` values in nested groups, with a root, with several tops, or values alone."""
    count = draw(st.integers(1, most))
    columns = [[f"v{i}" for i in range(count)]]
    for level in range(1, draw(st.integers(1, 4))):
        below = sorted(set(columns[-1]))
        groups = draw(st.lists(st.integers(0, 2), min_size=len(below), max_size=len(below)))
        parent = {label: f"{level}.{group}" for label, group in zip(below, groups, strict=True)}
        columns.append([parent[label] for label in columns[-1]])
    if draw(st.booleans()):
        columns.append(["*"] * count)
    other = draw(st.sampled_from([None, "other", "v0"]))
    return from_rows(list(zip(*columns, strict=True)), other=other)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    listed = draw(st.lists(hierarchies(), min_size=1, max_size=3))
    low, high = [], []
    for hierarchy in listed:
        ends = sorted(draw(st.tuples(*[st.integers(0, hierarchy.height - 1)] * 2)))
        low.append(ends[0] if draw(st.booleans()) else 0)
        high.append(ends[1] if draw(st.booleans()) else hierarchy.height - 1)
    pairs = st.tuples(st.integers(1, 8), st.sampled_from([0.0004, 0.1, 0.25, 0.5, 0.7, 0.9]))
    ramps = [ramp(*pair) for pair in draw(st.lists(pairs, min_size=1, max_size=3, unique=True))]
    weight = st.sampled_from([1.0, 1.0, 0.5, 3.0, 0.1])
    weights = draw(st.lists(weight, min_size=len(listed), max_size=len(listed)))
    power = draw(st.integers(1, 3))
    return Problem(
        tuple(listed), Lattice(tuple(low), tuple(high)), tuple(ramps), power, tuple(weights)
    )


@st.composite
def tables(draw: st.DrawFn, problem: Problem, most: int = 40) -> Table:
    """Rows of codes, null and outside among them, often repeated so that cells fill."""
    codes = st.tuples(*(st.integers(0, hierarchy.outside) for hierarchy in problem.hierarchies))
    distinct = draw(st.lists(codes, min_size=1, max_size=6))
    times = draw(
        st.lists(st.integers(0, most // 2), min_size=len(distinct), max_size=len(distinct))
    )
    return tuple(row for row, many in zip(distinct, times, strict=True) for _ in range(many))


TINY, USUAL, HUGE = Fraction(1, 1000), Fraction(1, 2), Fraction(10**8)


@settings(max_examples=120)
@given(data=st.data())
def test_the_search_finds_what_full_evaluation_finds(data: st.DataObject) -> None:
    """With noise of any size; with almost none (HUGE) ties are frequent, and the first wins."""
    problem = data.draw(problems())
    table = data.draw(tables(problem))
    epsilon = data.draw(st.sampled_from([TINY, USUAL, Fraction(20), HUGE]))
    seed = data.draw(st.integers(0, 2**32))
    sensitivity = W * max(one.d for one in problem.ramps)
    noise = one_sided_noise(
        len(problem.ramps) * problem.lattice.size,
        sensitivity=sensitivity, epsilon=epsilon, bits=SeededRandomness(seed),
    )  # fmt: skip
    noisy = [score + int(x) for score, x in zip(by_definition(problem, table), noise, strict=True)]
    first = noisy.index(max(noisy))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FEW", data.draw(st.sampled_from([0, 16])))
        found = problem.search(table, epsilon, SeededRandomness(seed))
    at = divmod(first, problem.lattice.size)
    assert (found.ramp, found.levels) == (problem.ramps[at[0]], problem.nodes[at[1]])
    assert 1 <= found.scored <= problem.lattice.size


@settings(max_examples=120)
@given(data=st.data())
def test_of_equal_noisy_scores_the_first_is_found(data: st.DataObject) -> None:
    """Noise that makes some candidates exactly equal, those among them that score nothing."""
    problem = data.draw(problems())
    true = by_definition(problem, table := data.draw(tables(problem)))
    size = len(true)
    equal = data.draw(st.lists(st.booleans(), min_size=size, max_size=size).filter(any))
    noise = [max(true) - score if level else 0 for score, level in zip(true, equal, strict=True)]
    noisy = [score + more for score, more in zip(true, noise, strict=True)]
    number, place = divmod(noisy.index(max(true)), problem.lattice.size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "one_sided_noise", lambda *_, **__: np.array(noise, dtype=np.int64))
        patch.setattr(module, "_FEW", data.draw(st.sampled_from([0, 16])))
        found = problem.search(table, USUAL, SeededRandomness(0))
    assert (found.ramp, found.levels) == (problem.ramps[number], problem.nodes[place])


@settings(max_examples=60)
@given(data=st.data())
def test_a_row_raises_every_score_by_zero_to_the_sensitivity(data: st.DataObject) -> None:
    problem = data.draw(problems())
    table = data.draw(tables(problem))
    row = data.draw(
        st.tuples(*(st.integers(0, hierarchy.outside) for hierarchy in problem.hierarchies))
    )
    before, after = scores(problem, table), scores(problem, (*table, row))
    assert before == by_definition(problem, table)
    for number, one in enumerate(problem.ramps):
        here = slice(number * problem.lattice.size, (number + 1) * problem.lattice.size)
        for low, high in zip(before[here], after[here], strict=True):
            assert isinstance(low, int)
            assert 0 <= high - low <= W * one.d


def test_a_row_can_raise_a_score_by_the_whole_sensitivity() -> None:
    hierarchy = from_rows([("a", "*"), ("b", "*")])
    for k, beta in ((3, 0.5), (20, 0.85), (200, 0.3)):
        one = ramp(k, beta)
        problem = Problem((hierarchy,), Lattice((0,), (1,)), (one,))
        at_foot = ((0,),) * one.a
        before, after = scores(problem, at_foot), scores(problem, (*at_foot, (0,)))
        assert before == [0, 0]
        assert after == [W * one.d, 0]


@pytest.mark.parametrize(("k", "beta"), [(1, 0.5), (3, 0.9), (14, 0.25), (196, 0.85), (5, 1e-3)])
def test_the_ramp_is_what_the_docstring_says(k: int, beta: float) -> None:
    one = ramp(k, beta)
    crowd = k / beta
    rows = np.arange(int(3 * crowd) + 5)
    psi = one.of(rows)
    assert psi[: one.a + 1].max() == 0
    assert one.a == pytest.approx(0.7 * crowd, abs=1)
    steps = np.diff(psi)
    assert steps.min() >= 0
    assert steps.max() == one.d
    share = psi[1:] / rows[1:]
    assert np.all(np.diff(share) >= 0)  # what bounds rest on
    assert one.b / 1024 == pytest.approx(beta, abs=5e-4)
    meets = int(np.argmax(psi[1:] == one.b * rows[1:])) + 1
    assert np.all(psi[meets:] == one.b * rows[meets:])
    if beta > 0.01:  # below, rates are rounded to few thousandths
        assert meets == pytest.approx(1.7 * crowd, rel=0.01, abs=2)


@settings(max_examples=60)
@given(data=st.data())
def test_bounds_never_fall_below_scores_whatever_was_scored(data: st.DataObject) -> None:
    problem = data.draw(problems())
    table = data.draw(tables(problem))
    true = np.array(scores(problem, table)).reshape(len(problem.ramps), *problem.lattice.shape)
    state = problem.state(table)
    assert np.all(state._bound >= true)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FEW", data.draw(st.sampled_from([-1, 16])))
        for node in data.draw(st.permutations(problem.nodes))[:6]:
            state._best = None  # the bounds are to hold whatever was found before
            state.score(node)
            assert np.all(state._bound >= true)


def test_a_bound_is_no_wider_than_what_it_promises() -> None:
    """A bound that never falls would make the search slow and this file blind to it."""
    hierarchy = from_rows([("a", "g", "*"), ("b", "g", "*"), ("c", "h", "*")])
    problem = Problem((hierarchy,), Lattice((0,), (2,)), (ramp(10, 0.5),))
    table = ((0,),) * 40 + ((1,),) * 3 + ((2,),) * 12
    state = problem.state(table)
    state.score((2,))
    wide = state._bound.copy()
    state.score((1,))
    assert wide[0, 0] == pytest.approx(W * problem.ramps[0].b * len(table), rel=1e-6)
    assert state._bound[0, 0] < wide[0, 0]
    one = problem.ramps[0]
    tight = W * (int(one.of(np.array([43]))[0]) + int(one.of(np.array([12]))[0]))
    assert state._bound[0, 0] == pytest.approx(tight, rel=1e-6)


def test_what_cannot_win_is_not_scored() -> None:
    hierarchy = from_rows([(f"v{i}", f"g{i // 4}", f"h{i // 16}", "*") for i in range(64)])
    problem = Problem((hierarchy,) * 3, Lattice((0, 0, 0), (3, 3, 3)), (ramp(50, 0.5),))
    draw = np.random.default_rng(1)
    table = tuple(tuple(int(x) for x in row) for row in draw.integers(0, 64, (3000, 3)))
    found = problem.search(table, Fraction(10), SeededRandomness(1))
    assert found.scored < problem.lattice.size / 2


def test_noise_is_drawn_for_every_candidate_whatever_the_table() -> None:
    """The words that are used up, and so the draws that follow, tell nothing of the table."""
    hierarchy = from_rows([("a", "g", "*"), ("b", "g", "*"), ("c", "h", "*")])
    problem = Problem((hierarchy,) * 2, Lattice((0, 0), (2, 2)), (ramp(2, 0.5), ramp(3, 0.8)))
    after = []
    for table in (((0, 0),) * 50, ((0, 1), (2, 2)), ((1, 2),) * 3):
        bits = SeededRandomness(5)
        problem.search(table, Fraction(1, 10), bits)
        after.append(bits.words(4).tolist())
    assert after[0] == after[1] == after[2]


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


class HalfTheNoise(Whole):
    def __init__(self, problem: Problem, epsilon: Fraction) -> None:
        super().__init__(problem, epsilon)
        self.rate *= 2


class BestSeen(Whole):
    """Half of the budget for each of two choices, then the better one, without noise."""

    def chosen(self, table: Table) -> list[float]:
        true = scores(self.problem, table)
        each = law(true, self.rate / 2)
        found, below = [0.0] * len(true), 0.0
        for at in sorted(range(len(true)), key=lambda at: (true[at], -at)):
            found[at] = (below + each[at]) ** 2 - below**2
            below += each[at]
        return found


class OnTheSample(Whole):
    """The scheme is chosen from the very sample that is published."""

    def distribution(self, table: Table) -> Distribution:
        found: Distribution = {}
        (one,) = self.problem.ramps
        for coins in drawn(len(table)):
            sample = tuple(row for row, kept in zip(table, coins, strict=True) if kept)
            weight = one.beta ** len(sample) * (1 - one.beta) ** (len(table) - len(sample))
            for number, share in enumerate(self.chosen(sample)):
                cells = threshold(rolled(self.problem, sample, self.problem.nodes[number]), k=one.k)
                output = (number, shown(cells))
                found[output] = found.get(output, 0.0) + share * weight
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
    releases = [SafeRelease(one.k, one.beta) for one in whole.problem.ramps]
    accountant = Accountant([Selection(float(epsilon)), OneOf(releases)])
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


# Problem, rows at most, and whether a single cell uses the claimed delta up.
WHOLES = [
    (whole_lattice(TWO, pairs=[(1, 0.5)]), 6, True),
    (whole_lattice(TWO, pairs=[(2, 0.25)]), 6, True),
    (whole_lattice(TWO, pairs=[(3, 0.75)], power=3), 6, True),
    (whole_lattice(TWO, pairs=[(2, 0.5), (3, 0.75)]), 6, False),
    (whole_lattice(THREE, pairs=[(1, 0.25), (2, 0.5)]), 4, False),
    (whole_lattice(FOUR, pairs=[(2, 0.5), (3, 0.75)], power=2), 4, False),
    (whole_lattice(TWO, TWO, pairs=[(2, 0.5)], weights=(1.0, 3.0)), 4, True),
    (whole_lattice(TWO, THREE, pairs=[(2, 0.5)]), 3, True),
]


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
@pytest.mark.parametrize(("problem", "most", "tight"), WHOLES)
def test_selection_and_release_together_stay_within_the_accounted_delta(
    problem: Problem, most: int, tight: bool, epsilon: Fraction
) -> None:
    assert 2 <= problem.lattice.size <= 6
    present, absent = used_up(Whole(problem, epsilon), epsilon, family(problem, most))
    assert present <= 1 + 1e-9
    assert absent <= 1 + 1e-9
    assert present > (0.999 if tight else 0.5)
    assert absent > 0


@pytest.mark.parametrize(
    ("planted", "problem", "most", "epsilon", "excess"),
    [
        (HalfTheNoise, whole_lattice(TWO, pairs=[(2, 0.25)]), 6, Fraction(1, 2), 2.0),
        (HalfTheNoise, whole_lattice(TWO, pairs=[(2, 0.25)]), 6, Fraction(2), 5.0),
        (HalfTheNoise, whole_lattice(TWO, pairs=[(2, 0.25), (3, 0.25)]), 6, Fraction(2), 2.0),
        (BestSeen, whole_lattice(THREE, pairs=[(1, 0.25), (2, 0.5)]), 4, Fraction(1, 2), 1.1),
        (BestSeen, whole_lattice(TWO, TWO, pairs=[(2, 0.5)]), 4, Fraction(1, 2), 1.1),
    ],
)
def test_half_the_noise_or_a_last_choice_without_noise_is_not_covered(
    planted: Callable[[Problem, Fraction], Whole],
    problem: Problem,
    most: int,
    epsilon: Fraction,
    excess: float,
) -> None:
    assert max(used_up(planted(problem, epsilon), epsilon, family(problem, most))) > excess
    assert max(used_up(Whole(problem, epsilon), epsilon, family(problem, most))) <= 1 + 1e-9


def test_a_scheme_chosen_from_the_published_sample_is_not_covered() -> None:
    """A crowd of two in either of two schemes: the sample that has one picks that scheme.

    The row is drawn with one of two others. A scheme chosen apart from the sample can show
    only one of the two pairs, and delta counts on that.
    """
    own = ramp(2, 1 - 1e-9)  # the ramp for a crowd of k rows, as they are counted in the sample
    crowd = Ramp(2, 0.25, own.a, own.b, own.d)
    problem = Problem((TWO, TWO), Lattice((0, 0), (1, 1)), (crowd,), power=3, weights=(0.1, 5.0))
    epsilon, table = Fraction(8), ((0, 0), (0, 1), (1, 0))
    pair = [(table, table[1:])]
    assert max(used_up(OnTheSample(problem, epsilon), epsilon, pair)) > 1.15
    assert max(used_up(Whole(problem, epsilon), epsilon, pair)) <= 1 + 1e-9


# Open domains: weights must not depend on the values that were met.


def open_problem(declared: object, values: Iterable[str], weights: tuple[float, float]) -> Problem:
    column = Column.model_validate({"role": "quasi", "hierarchy": declared})
    hierarchy = build(column, folder=Path(), values=values)
    return whole_lattice(hierarchy, TWO, pairs=[(2, 0.5)], weights=weights)


MASK = {"mask": {"length": 3, "alphabet": "012"}}
MASKED = ["".join(text) for text in itertools.product("012", repeat=3)]


@pytest.mark.parametrize(
    ("declared", "met", "weights"),
    [
        ("flat", ["a", "b"], (1.0, 1.0)),
        ("flat", ["a", "b", "c"], (1.0, 1.0)),
        (MASK, MASKED[:2], (1.0, 1.0)),
        (MASK, MASKED[:26], (13.0, 11.0)),
        (MASK, MASKED, (13.0, 11.0)),
    ],
)
def test_a_row_with_a_new_value_of_an_open_domain_lowers_no_score(
    declared: object, met: list[str], weights: tuple[float, float]
) -> None:
    before = open_problem(declared, met[:-1], weights)
    after = open_problem(declared, met, weights)
    table = ((0, 0),) * 30
    low = scores(before, table)
    high = scores(after, (*table, (len(met) - 1, 0)))
    for one, other in zip(low, high, strict=True):
        assert 0 <= other - one <= W * before.ramps[0].d


def test_an_empty_table_is_searched_like_any_other() -> None:
    """It neighbours a table of one row, so it must not fail where that one does not."""
    wide = from_rows([(f"v{i}", "*") for i in range(5000)])
    problem = whole_lattice(wide, pairs=[(2, 0.5)])
    one = problem.search(((7,),), USUAL, SeededRandomness(1))
    assert problem.search((), USUAL, SeededRandomness(1)) == one


def test_whether_a_search_is_refused_does_not_depend_on_the_table() -> None:
    wide = from_rows([(f"v{i}", f"g{i // 50}", "*") for i in range(300)])
    problem = whole_lattice(*[wide] * 8, pairs=[(50, 0.5)])
    alike = ((7,) * 8,) * 500
    spread = tuple(tuple((i * (j + 1)) % 300 for j in range(8)) for i in range(500))
    ends = []
    for table in (alike, spread):
        try:
            problem.search(table, Fraction(10), SeededRandomness(1))
        except ParameterError as error:
            ends.append(str(error))
        else:
            ends.append("found")
    assert ends[0] == ends[1]
