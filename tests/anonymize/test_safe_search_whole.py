"""The private search with its release, enumerated on tiny tables: the scheme, the pair of k and
beta, and the cells stay within the accounted delta; planted faults do not.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from support.exact import compute_choice_law
from support.search_law import (
    FOUR,
    THREE,
    TWO,
    Distribution,
    SearchLaw,
    SearchProblem,
    Table,
    compute_delta_usage,
    compute_scores,
    list_cells,
    list_coin_outcomes,
    list_neighbor_tables,
    make_lattice_problem,
    roll_up_table,
)

from incrowd.anonymize.lattice import Lattice
from incrowd.anonymize.safe_sample import drop_small_cells
from incrowd.anonymize.safe_search import Ramp, make_ramp


class HalfTheNoise(SearchLaw):
    def __init__(self, problem: SearchProblem, epsilon: Fraction) -> None:
        super().__init__(problem, epsilon)
        self.rate *= 2


class BestSeen(SearchLaw):
    """Half of the budget for each of two choices, then the better one, without noise."""

    def compute_choices(self, table: Table) -> list[float]:
        true = compute_scores(self.problem, table)
        each = compute_choice_law(true, self.rate / 2)
        choices, below = [0.0] * len(true), 0.0
        for at in sorted(range(len(true)), key=lambda at: (true[at], -at)):
            choices[at] = (below + each[at]) ** 2 - below**2
            below += each[at]
        return choices


class OnTheSample(SearchLaw):
    """The scheme is chosen from the very sample that is published."""

    def compute_distribution(self, table: Table) -> Distribution:
        distribution: Distribution = {}
        (first,) = self.problem.ramps
        for coins in list_coin_outcomes(len(table)):
            sample = tuple(row for row, is_kept in zip(table, coins, strict=True) if is_kept)
            weight = first.beta ** len(sample) * (1 - first.beta) ** (len(table) - len(sample))
            for number, share in enumerate(self.compute_choices(sample)):
                cells = drop_small_cells(
                    roll_up_table(self.problem, sample, self.problem.nodes[number]), k=first.k
                )
                output = (number, list_cells(cells))
                distribution[output] = distribution.get(output, 0.0) + share * weight
        return distribution


# Problem, rows at most, and whether a single cell uses the claimed delta up.
WHOLES = [
    (make_lattice_problem(TWO, pairs=[(1, 0.5)]), 6, True),
    (make_lattice_problem(TWO, pairs=[(2, 0.25)]), 6, True),
    (make_lattice_problem(TWO, pairs=[(3, 0.75)], power=3), 6, True),
    (make_lattice_problem(TWO, pairs=[(2, 0.5), (3, 0.75)]), 6, False),
    (make_lattice_problem(THREE, pairs=[(1, 0.25), (2, 0.5)]), 4, False),
    (make_lattice_problem(FOUR, pairs=[(2, 0.5), (3, 0.75)], power=2), 4, False),
    (make_lattice_problem(TWO, TWO, pairs=[(2, 0.5)], weights=(1.0, 3.0)), 4, True),
    (make_lattice_problem(TWO, THREE, pairs=[(2, 0.5)]), 3, True),
]


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
@pytest.mark.parametrize(("problem", "most", "tight"), WHOLES)
def test_selection_and_release_together_stay_within_the_accounted_delta(
    problem: SearchProblem, most: int, tight: bool, epsilon: Fraction
) -> None:
    assert 2 <= problem.lattice.size <= 6
    present, absent = compute_delta_usage(
        SearchLaw(problem, epsilon), epsilon, list_neighbor_tables(problem, most)
    )
    assert present <= 1 + 1e-9
    assert absent <= 1 + 1e-9
    assert present > (0.999 if tight else 0.5)
    assert absent > 0


@pytest.mark.parametrize(
    ("planted", "problem", "most", "epsilon", "excess"),
    [
        (HalfTheNoise, make_lattice_problem(TWO, pairs=[(2, 0.25)]), 6, Fraction(1, 2), 2.0),
        (HalfTheNoise, make_lattice_problem(TWO, pairs=[(2, 0.25)]), 6, Fraction(2), 5.0),
        (
            HalfTheNoise,
            make_lattice_problem(TWO, pairs=[(2, 0.25), (3, 0.25)]),
            6,
            Fraction(2),
            2.0,
        ),
        (
            BestSeen,
            make_lattice_problem(THREE, pairs=[(1, 0.25), (2, 0.5)]),
            4,
            Fraction(1, 2),
            1.1,
        ),
        (BestSeen, make_lattice_problem(TWO, TWO, pairs=[(2, 0.5)]), 4, Fraction(1, 2), 1.1),
    ],
)
def test_half_the_noise_or_a_last_choice_without_noise_is_not_covered(
    planted: Callable[[SearchProblem, Fraction], SearchLaw],
    problem: SearchProblem,
    most: int,
    epsilon: Fraction,
    excess: float,
) -> None:
    assert (
        max(
            compute_delta_usage(
                planted(problem, epsilon), epsilon, list_neighbor_tables(problem, most)
            )
        )
        > excess
    )
    assert (
        max(
            compute_delta_usage(
                SearchLaw(problem, epsilon), epsilon, list_neighbor_tables(problem, most)
            )
        )
        <= 1 + 1e-9
    )


def test_a_scheme_chosen_from_the_published_sample_is_not_covered() -> None:
    """A crowd of two in either of two schemes: the sample that has one picks that scheme.

    The row is drawn with one of two others. A scheme chosen apart from the sample can show
    only one of the two pairs, and delta counts on that.
    """
    pair_ramp = make_ramp(
        2, 1 - 1e-9
    )  # the ramp for a crowd of k rows, as they are counted in the sample
    crowd = Ramp(2, 0.25, pair_ramp.a, pair_ramp.b, pair_ramp.d)
    problem = SearchProblem(
        (TWO, TWO), Lattice((0, 0), (1, 1)), (crowd,), power=3, weights=(0.1, 5.0)
    )
    epsilon, table = Fraction(8), ((0, 0), (0, 1), (1, 0))
    pair = [(table, table[1:])]
    assert max(compute_delta_usage(OnTheSample(problem, epsilon), epsilon, pair)) > 1.15
    assert max(compute_delta_usage(SearchLaw(problem, epsilon), epsilon, pair)) <= 1 + 1e-9
