"""Safe Mondrian with its release, enumerated: covered as accounted; planted faults are not."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from support.mondrian_law import (
    MASK,
    MET,
    NUMBERS,
    PAIR,
    Distribution,
    MondrianLaw,
    MondrianProblem,
    Table,
    compute_cached_law,
    compute_delta_usage,
    compute_released_law,
    list_crowd_pairs,
    list_neighbor_tables,
    make_epsilon_grid,
)
from support.mondrian_problems import (
    HALF,
    NUMERALS,
    ONCE,
    PLAIN,
    SLIGHT,
    SMALL,
    XY,
    make_crowded_problem,
)
from support.search_law import FixedCoins, list_coin_outcomes

from incrowd.anonymize.safe_mondrian import CellPartition
from incrowd.anonymize.safe_sample import sample_cells
from incrowd.anonymize.safe_search import Ramp, make_ramp
from incrowd.codes.frequency import Frequencies
from incrowd.privacy.events import OneOf, SafeRelease, Selection


@pytest.mark.parametrize(("problem", "values", "most"), SMALL)
def test_cuts_and_release_together_stay_within_the_accounted_delta(
    problem: MondrianProblem, values: list[Sequence[str | None]], most: int
) -> None:
    delta_usage = compute_delta_usage(
        MondrianLaw(problem), list_neighbor_tables(values, most), make_epsilon_grid(problem)
    )
    assert max(max(both) for both in delta_usage) <= 1 + 1e-9
    assert max(present for present, _ in delta_usage) > 0.999  # a cell that is new uses it up
    assert delta_usage[0][0] > 0.35  # and without any epsilon most of it counts
    assert delta_usage[0][1] > 0.35


SEARCHED = [
    (
        MondrianProblem(
            (NUMBERS, PAIR), ((0, 2), (0, 1)), (make_ramp(2, 0.5),), (ONCE, HALF, ONCE)
        ),
        [("0", "3"), XY],
        2,
    ),
    (
        MondrianProblem(
            (NUMBERS,), ((0, 2),), (make_ramp(2, 0.5), make_ramp(1, 0.25)), (HALF, HALF, HALF)
        ),
        [NUMERALS],
        3,
    ),
    (
        MondrianProblem((MASK, PAIR), ((0, 2), (0, 1)), (make_ramp(2, 0.5),), (HALF, HALF, ONCE)),
        [("00", "1q"), XY],
        3,
    ),
    (
        MondrianProblem(
            (MET, NUMBERS), ((0, 1), (0, 2)), (make_ramp(2, 0.5),), (HALF, HALF, ONCE), "balanced"
        ),
        [("p", "q"), ("0", "3")],
        3,
    ),
]


@pytest.mark.parametrize(("problem", "values", "most"), SEARCHED)
def test_with_the_search_before_them_too(
    problem: MondrianProblem, values: list[Sequence[str | None]], most: int
) -> None:
    assert [type(event) for event in problem.list_events()] == [Selection] * 3 + [OneOf]
    delta_usage = compute_delta_usage(
        MondrianLaw(problem), list_neighbor_tables(values, most), make_epsilon_grid(problem)
    )
    assert max(max(both) for both in delta_usage) <= 1 + 1e-9
    assert max(present for present, _ in delta_usage) > (0.6 if len(problem.ramps) > 1 else 0.999)
    assert delta_usage[0][0] > 0.35


def test_what_is_shown_of_cells_is_what_all_coins_of_the_sample_give() -> None:
    """The enumeration takes a cell's law from its size; here it is drawn row by row."""
    for sizes in [(1,), (3,), (2, 2), (1, 3), (4, 1), (2, 1, 2)]:
        for pair in (SafeRelease(1, 0.25), SafeRelease(2, 0.5), SafeRelease(3, 0.75)):
            codes = np.arange(len(sizes), dtype=np.int32).reshape(-1, 1)
            cells = Frequencies(codes, np.array(sizes, dtype=np.int64))
            result: dict[tuple[tuple[int, int], ...], float] = {}
            for coins in list_coin_outcomes(sum(sizes)):
                published = sample_cells(cells, k=pair.k, beta=pair.beta, bits=FixedCoins(coins))
                at = tuple(
                    zip(published.codes[:, 0].tolist(), published.counts.tolist(), strict=True)
                )
                weight = pair.beta ** sum(coins) * (1 - pair.beta) ** (len(coins) - sum(coins))
                result[at] = result.get(at, 0.0) + weight
            assert result == pytest.approx(compute_released_law(sizes, pair))


CROWDS = list(list_crowd_pairs(("0", "x"), range(60, 66)))


@pytest.mark.parametrize(
    ("problem", "tight"),
    [(make_crowded_problem(ONCE, ONCE), 0.75), (make_crowded_problem(HALF, ONCE), 0.45)],
)
def test_crowds_stay_within_the_accounted_delta_and_every_round_is_needed(
    problem: MondrianProblem, tight: float
) -> None:
    law, at = MondrianLaw(problem), make_epsilon_grid(problem)
    delta_usage = compute_delta_usage(law, CROWDS, at)
    assert max(max(both) for both in delta_usage) <= 1 + 1e-9
    assert min(delta_usage[0]) > tight
    first_alone = compute_delta_usage(law, CROWDS, at, problem.list_events(rounds=1))
    assert max(max(both) for both in first_alone) > 1.1


@pytest.mark.parametrize(
    "ramp", [Ramp(20, 0.5, 60, 1000, 1000), make_ramp(20, 0.5), make_ramp(5, 0.1)]
)
@pytest.mark.parametrize("rounds", [(ONCE, HALF), (HALF, ONCE)])
def test_the_choices_alone_lose_what_they_spend_and_hardly_less(
    ramp: Ramp, rounds: tuple[Fraction, Fraction]
) -> None:
    """The boxes before the sample: the largest log ratio is the sum of the epsilons, nearly."""
    law = MondrianLaw(MondrianProblem((SLIGHT, PAIR), (2, 1), (ramp,), (ONCE, *rounds)))
    worst = 0.0
    for pair in list_crowd_pairs(("0", "x"), range(ramp.a + 1, ramp.a + 12)):
        with_, without = ({}, {})  # type: dict[Any, float], dict[Any, float]
        for table, laws in zip(pair, (with_, without), strict=True):
            for (_, _, cells), share in law.list_ways(law.count_table(table)).items():
                boxes = tuple(row for row, _ in cells)
                laws[boxes] = laws.get(boxes, 0.0) + share
        assert with_.keys() == without.keys()
        worst = max(worst, *(abs(math.log(with_[at] / without[at])) for at in with_))
    spent = float(sum(rounds))
    assert 0.97 * spent < worst <= spent + 1e-9


# Planted: each of these must be seen.


class HalfTheNoise(MondrianLaw):
    """In one of the rounds."""

    def __init__(self, problem: MondrianProblem, number: int) -> None:
        super().__init__(problem)
        self._number = number

    def compute_law(self, number: int, raised: tuple[int, ...]) -> list[float]:
        return compute_cached_law(raised, self._rate * (2 if number == self._number else 1))


class LastWithoutNoise(MondrianLaw):
    """The last round takes the best candidate."""

    def compute_law(self, number: int, raised: tuple[int, ...]) -> list[float]:
        if number + 1 < len(self.problem.epsilons):
            return super().compute_law(number, raised)
        return [float(at == raised.index(max(raised))) for at in range(len(raised))]


class OnTheSample(MondrianLaw):
    """The very sample is cut that is published."""

    def compute_distribution(self, table: Table) -> Distribution:
        distribution: Distribution = {}
        (pair,) = self.problem.pairs
        for coins in list_coin_outcomes(len(table)):
            sample = tuple(row for row, is_kept in zip(table, coins, strict=True) if is_kept)
            weight = pair.beta ** len(sample) * (1 - pair.beta) ** (len(table) - len(sample))
            for (_, levels, cells), share in self.list_ways(self.count_table(sample)).items():
                output = (pair, levels), tuple((row, n) for row, n in cells if n >= pair.k)
                distribution[output] = distribution.get(output, 0.0) + share * weight
        return distribution


class DataExtremes(MondrianLaw):
    """Boxes that end at the first and last value met."""

    def adjust_boxes(self, boxes: CellPartition, points: Any) -> CellPartition:
        low, high = np.full_like(boxes.low, np.iinfo(np.int32).max), np.full_like(boxes.high, -1)
        np.minimum.at(low, boxes.members, points)
        np.maximum.at(high, boxes.members, points)
        return replace(boxes, low=low, high=high)


class NoEmptyParts(MondrianLaw):
    """A cut is no candidate where all rows would fall into one part."""

    def list_possible(self, cell: int, scores: npt.NDArray[np.int64]) -> list[int]:
        is_inside, staying = self._round._cells.members == cell, len(scores) - 1
        return [
            at
            for at in super().list_possible(cell, scores)
            if at == staying or len(np.unique(self._round._find_parts(at)[is_inside])) > 1
        ]


class ReluctantByCells(MondrianLaw):
    """Staying is worth less, the more cells have rows: those without any are then missed."""

    def compute_law(self, number: int, raised: tuple[int, ...]) -> list[float]:
        gain = math.ceil(math.log(len(self._heard)) / self._rate)
        return compute_cached_law(
            (*(score + gain for score in raised[:-1]), raised[-1]), self._rate
        )


CORNERS = (("x", "x"), ("x", "y"), ("y", "x"))
# Cuts of the second column alone can pay; a person in a far cell ought to change nothing here.
FAR = ((("0", "x"),) * 60 + (("2", "y"),), (("0", "x"),) * 60)


@pytest.mark.parametrize(
    ("planted", "problem", "pairs", "excess"),
    [
        (lambda problem: HalfTheNoise(problem, 1), make_crowded_problem(ONCE, ONCE), CROWDS, 4.0),
        (lambda problem: HalfTheNoise(problem, 2), make_crowded_problem(ONCE, ONCE), CROWDS, 4.0),
        (LastWithoutNoise, make_crowded_problem(ONCE, ONCE), CROWDS, 100.0),
        (
            OnTheSample,
            MondrianProblem(
                (PAIR, PAIR), (1, 1), (Ramp(2, 0.25, 1, 1000, 1000),), (ONCE, Fraction(4))
            ),
            [(CORNERS, CORNERS[1:])],
            1.4,
        ),
        (DataExtremes, PLAIN, list(list_neighbor_tables([("0", "1", "3")], 4)), 2.0),
        (NoEmptyParts, PLAIN, list(list_neighbor_tables([("0", "1", "3")], 4)), 1.1),
        (
            ReluctantByCells,
            MondrianProblem(
                (NUMBERS, PAIR), (1, 1), (Ramp(20, 0.5, 60, 1000, 1000),), (ONCE, HALF, HALF)
            ),
            [FAR],
            1.4,
        ),
    ],
)
def test_planted_faults_are_not_covered(
    planted: Callable[[MondrianProblem], MondrianLaw],
    problem: MondrianProblem,
    pairs: list[tuple[Table, Table]],
    excess: float,
) -> None:
    wrong = compute_delta_usage(planted(problem), pairs, make_epsilon_grid(problem))
    assert max(max(both) for both in wrong) > excess
    right = compute_delta_usage(MondrianLaw(problem), pairs, make_epsilon_grid(problem))
    assert max(max(both) for both in right) <= 1 + 1e-9
