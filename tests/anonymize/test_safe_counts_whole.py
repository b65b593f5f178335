"""The private search with its counts, enumerated on tiny tables: the coin, the scheme and the cells
stay within the accounted delta, and reach it; planted faults do not stay within it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.search_law import (
    FOUR,
    THREE,
    TWO,
    Cells,
    Distribution,
    SearchLaw,
    SearchProblem,
    Table,
    compute_defined_scores,
    compute_delta_usage,
    compute_scores,
    list_cells,
    list_neighbor_tables,
    make_lattice_problem,
    roll_up_table,
)

from incrowd.anonymize import safe_counts as module
from incrowd.anonymize.safe_counts import draw_noisy_counts
from incrowd.arrays import Bools
from incrowd.arrays import Counts as Rows
from incrowd.codes.frequency import Frequencies
from incrowd.privacy.counts import build_event_law
from incrowd.privacy.draw_parameters import CountsEvent
from incrowd.privacy.events import Coin, Event, GaussianCounts, GeometricCounts
from incrowd.privacy.randomness import SeededRandomness


def chances(event: CountsEvent) -> dict[int, float]:
    tail = build_event_law(event).tail.tolist()
    return {x: tail[abs(x)] for x in range(-event.r, event.r + 1)}


def noises(event: CountsEvent, cells: int) -> list[tuple[tuple[int, ...], float]]:
    """Every noise that so many cells may get together, and how likely it is."""
    each = chances(event)
    return [
        (noise, math.prod(each[x] for x in noise))
        for noise in itertools.product(each, repeat=cells)
    ]


class Counts(SearchLaw):
    """A searched release by counts; without a coin, the two sides are one."""

    def __init__(self, problem: SearchProblem, epsilon: Fraction, event: Event, k: int) -> None:
        super().__init__(problem, epsilon)
        self.event, self.k = event, k
        self._released: dict[tuple[CountsEvent, Cells], dict[Cells, float]] = {}

    def make_draw_event(self) -> Event:
        return self.event

    def sides(self, table: Table) -> list[tuple[CountsEvent, float]]:
        del table  # a coin sees no data
        match self.event:
            case Coin(GeometricCounts() as first, GeometricCounts() as second, chance):
                return [(first, chance), (second, 1 - chance)]
            case GeometricCounts() | GaussianCounts():
                return [(self.event, 1.0)]
        raise AssertionError

    def released(self, cells: Frequencies, event: CountsEvent) -> dict[Cells, float]:
        """What the code itself shows, whatever noise it is given."""
        outcome: dict[Cells, float] = {}
        with pytest.MonkeyPatch.context() as patch:
            for noise, weight in noises(event, len(cells)):
                patch.setattr(
                    module, "_sample_noise", lambda *_, noise=noise: np.array(noise, np.int64)
                )
                result = list_cells(
                    draw_noisy_counts(cells, event, k=self.k, bits=SeededRandomness(0))
                )
                outcome[result] = outcome.get(result, 0.0) + weight
        return outcome

    def compute_distribution(self, table: Table) -> Distribution:
        distribution: Distribution = {}
        chosen = list(zip(self.problem.nodes, self.compute_choices(table), strict=True))
        for side, (event, chance) in enumerate(self.sides(table)):
            for number, (node, share) in enumerate(chosen):
                cells = roll_up_table(self.problem, table, node)
                same = event, list_cells(cells)  # many tables are alike once they are generalized
                if same not in self._released:
                    self._released[same] = self.released(cells, event)
                for result, weight in self._released[same].items():
                    distribution[len(chosen) * side + number, result] = chance * share * weight
        return distribution


def small(*, r: int, epsilon: float = 1.0, coin: float | None = None) -> Event:
    event = GeometricCounts(r, epsilon)
    return event if coin is None else Coin(GeometricCounts(r - 1, epsilon), event, coin)


# Hierarchies, event, k, rows at most, and whether the worst cell is in reach.
WHOLES: list[tuple[SearchProblem, Event, int, int, bool]] = [
    (make_lattice_problem(TWO, pairs=[(2, 1.0)]), small(r=1), 1, 6, True),
    (make_lattice_problem(TWO, pairs=[(4, 1.0)]), small(r=2), 2, 7, True),
    (make_lattice_problem(TWO, pairs=[(3, 1.0)]), small(r=2, epsilon=0.5, coin=0.25), 1, 6, True),
    (make_lattice_problem(TWO, pairs=[(3, 1.0)]), GaussianCounts(2, 1.5), 1, 6, True),
    (make_lattice_problem(THREE, pairs=[(2, 1.0)]), small(r=1), 1, 5, False),
    (make_lattice_problem(FOUR, pairs=[(2, 1.0)], power=2), small(r=1, epsilon=2.0), 1, 4, False),
    (make_lattice_problem(TWO, TWO, pairs=[(2, 1.0)], target=1), small(r=1), 1, 4, False),
    (make_lattice_problem(THREE, TWO, pairs=[(2, 1.0)], target=1), small(r=1), 1, 3, False),
]


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
@pytest.mark.parametrize(("problem", "event", "k", "most", "tight"), WHOLES)
def test_choice_and_counts_together_stay_within_the_accounted_delta(
    problem: SearchProblem, event: Event, k: int, most: int, tight: bool, epsilon: Fraction
) -> None:
    counts_law = Counts(problem, epsilon, event, k)
    present, absent = compute_delta_usage(counts_law, epsilon, list_neighbor_tables(problem, most))
    assert present <= 1 + 1e-9
    assert absent <= 1 + 1e-9
    assert max(present, absent) > (0.99 if tight else 0.3)


class LowThreshold(Counts):
    """Cells are shown from r + k - 1 on."""

    def released(self, cells: Frequencies, event: CountsEvent) -> dict[Cells, float]:
        outcome: dict[Cells, float] = {}
        for noise, weight in noises(event, len(cells)):
            result = self.kept(cells, cells.counts + np.array(noise, np.int64), event)
            outcome[result] = outcome.get(result, 0.0) + weight
        return outcome

    def kept(self, cells: Frequencies, noisy: Rows, event: CountsEvent) -> Cells:
        return self.where(cells, noisy, noisy >= event.r + self.k - 1)

    @staticmethod
    def where(cells: Frequencies, noisy: Rows, mask: Bools) -> Cells:
        return list_cells(Frequencies(cells.codes[mask], noisy[mask]))


class SmallDropped(LowThreshold):
    """The threshold stays at r + 1, and true counts below k are dropped instead."""

    def kept(self, cells: Frequencies, noisy: Rows, event: CountsEvent) -> Cells:
        return self.where(cells, noisy, (noisy >= event.r + 1) & (cells.counts >= self.k))


class OneNoise(Counts):
    """All cells get the same noise; a cell that is shown tells of the other."""

    def released(self, cells: Frequencies, event: CountsEvent) -> dict[Cells, float]:
        outcome: dict[Cells, float] = {}
        for x, weight in chances(event).items():
            noisy = cells.counts + x
            mask = noisy >= event.r + self.k
            result = list_cells(Frequencies(cells.codes[mask], noisy[mask]))
            outcome[result] = outcome.get(result, 0.0) + weight
        return outcome


class Clamped(Counts):
    """Noise without a bound, clamped to r: its ends are far too likely."""

    def released(self, cells: Frequencies, event: CountsEvent) -> dict[Cells, float]:
        assert isinstance(event, GeometricCounts)
        far = build_event_law(GeometricCounts(60, event.epsilon)).tail.tolist()
        each = dict.fromkeys(range(-event.r, event.r + 1), 0.0)
        for x in range(-60, 61):
            each[max(-event.r, min(x, event.r))] += far[abs(x)]
        outcome: dict[Cells, float] = {}
        for noise in itertools.product(each, repeat=len(cells)):
            noisy = cells.counts + np.array(noise, np.int64)
            mask = noisy >= event.r + self.k
            result = list_cells(Frequencies(cells.codes[mask], noisy[mask]))
            outcome[result] = outcome.get(result, 0.0) + math.prod(each[x] for x in noise)
        return outcome


class Shorter(Counts):
    """r is one smaller than what is accounted."""

    def sides(self, table: Table) -> list[tuple[CountsEvent, float]]:
        ((event, _),) = super().sides(table)
        assert isinstance(event, GeometricCounts)
        return [(GeometricCounts(event.r - 1, event.epsilon), 1.0)]


class HalfTheRatio(Counts):
    """The noise falls by e^(-2 epsilon) a step."""

    def sides(self, table: Table) -> list[tuple[CountsEvent, float]]:
        ((event, _),) = super().sides(table)
        assert isinstance(event, GeometricCounts)
        return [(GeometricCounts(event.r, 2 * event.epsilon), 1.0)]


class CoinThatLooks(Counts):
    """The coin falls by how many rows there are."""

    def sides(self, table: Table) -> list[tuple[CountsEvent, float]]:
        (first, _), (second, _) = super().sides(table)
        return [(first, 1.0), (second, 0.0)] if len(table) % 2 else [(first, 0.0), (second, 1.0)]


class HalfTheNoise(Counts):
    """The choice gets half the noise that its sensitivity asks for."""

    def __init__(self, problem: SearchProblem, epsilon: Fraction, event: Event, k: int) -> None:
        super().__init__(problem, epsilon, event, k)
        self.rate *= 2


FLAT = make_lattice_problem(TWO, pairs=[(3, 1.0)])
FIXED = SearchProblem((TWO,), FLAT.lattice.__class__((0,), (0,)), FLAT.ramps)
TOLD = make_lattice_problem(TWO, TWO, pairs=[(2, 1.0)], target=1)
GUARDED = make_lattice_problem(TWO, TWO, pairs=[(2, 1.0)], target=1, counts=(20, 4, -3, 0))


@pytest.mark.parametrize(
    ("planted", "problem", "event", "k", "most"),
    [
        (LowThreshold, FIXED, small(r=2), 1, 6),
        (SmallDropped, FIXED, small(r=2), 3, 7),
        (OneNoise, FIXED, small(r=2), 1, 8),
        (Clamped, FIXED, small(r=2), 1, 6),
        (Shorter, FIXED, small(r=3), 1, 7),
        (HalfTheRatio, FIXED, small(r=2), 1, 6),
        (CoinThatLooks, FIXED, small(r=2, coin=0.5), 1, 6),
        (HalfTheNoise, FLAT, small(r=1), 1, 6),
        (HalfTheNoise, TOLD, small(r=1), 1, 4),
        (HalfTheNoise, GUARDED, small(r=1), 1, 6),
    ],
)
def test_planted_faults_are_not_covered(
    planted: Callable[[SearchProblem, Fraction, Event, int], Counts],
    problem: SearchProblem,
    event: Event,
    k: int,
    most: int,
) -> None:
    epsilon = Fraction(1, 2)
    pairs = list(list_neighbor_tables(problem, most))
    assert max(compute_delta_usage(planted(problem, epsilon, event, k), epsilon, pairs)) > 1.02
    assert max(compute_delta_usage(Counts(problem, epsilon, event, k), epsilon, pairs)) <= 1 + 1e-9


@pytest.mark.parametrize(
    "problem",
    [
        make_lattice_problem(TWO, TWO, pairs=[(2, 1.0), (2, 0.5)], target=1),
        make_lattice_problem(THREE, TWO, pairs=[(1, 0.75)], target=0, power=2),
        make_lattice_problem(TWO, FOUR, pairs=[(2, 1.0)], target=1, weights=(2.0, 5.0)),
        GUARDED,
        make_lattice_problem(
            THREE, TWO, pairs=[(1, 0.75), (1, 1.0)], target=1, counts=(9, 4, 0, 3)
        ),
    ],
)
def test_what_a_target_scores_is_what_the_docstring_says(problem: SearchProblem) -> None:
    for table, _ in itertools.islice(list_neighbor_tables(problem, 5), 0, 2000, 7):
        assert compute_scores(problem, table) == compute_defined_scores(problem, table)


@pytest.mark.parametrize(("problem", "weight", "factor"), [(TOLD, 4, 2), (GUARDED, 20, 2 + 4)])
def test_a_target_raises_the_score_by_what_is_claimed_and_no_less(
    problem: SearchProblem, weight: int, factor: int
) -> None:
    """By 0 to (2 + g) W E: what the sensitivity rests on; never down, so that it is not doubled."""
    moved: list[int] = []
    for table, less in list_neighbor_tables(problem, 6):
        pairs = zip(compute_scores(problem, table), compute_scores(problem, less), strict=True)
        moved += [first - other for first, other in pairs]
    (ramp,) = problem.ramps
    most = factor * 1024 * math.ceil(weight * ramp.d / 256)
    assert problem.target_values is not None
    assert problem.target_values.compute_sensitivity(1024, ramp.d) == most
    assert min(moved) >= 0
    assert most / 2 < max(moved) <= most


MEASURED = [(), (30, 12, 9, 7, 3, 0), (30, 2, 2, 2, 2, -5), (3, 30, 30, 30, 30, 30)]


@settings(max_examples=40)
@given(data=st.data())
def test_bounds_hold_with_a_target_whatever_was_scored(data: st.DataObject) -> None:
    problem = make_lattice_problem(
        THREE, FOUR, THREE, pairs=[(2, 1.0)], target=data.draw(st.integers(0, 2)),
        power=data.draw(st.integers(1, 2)), counts=data.draw(st.sampled_from(MEASURED)),
    )  # fmt: skip
    codes = st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 2))
    rows = data.draw(st.lists(st.tuples(codes, st.integers(0, 12)), min_size=1, max_size=8))
    table = tuple(row for row, times in rows for _ in range(times))
    true = np.zeros((1, *problem.lattice.shape))
    true.flat[problem.places] = compute_scores(problem, table)
    state = problem.make_state(table)
    for node in data.draw(st.permutations(problem.nodes))[:4]:
        state._best = None
        state.score_node(node)
        assert np.all(state._bound >= true)
