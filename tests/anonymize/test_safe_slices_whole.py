"""All choices of ``slices`` as one law, enumerated on tiny tables and within the sum of epsilons.

The law is that of the scores, the sensitivity and the epsilons which ``slices`` itself hands to
report noisy max.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

import pytest
from support.slices_law import (
    Choice,
    Law,
    Row,
    SliceChoiceLaw,
    Table,
    compute_budget_usage,
    compute_exact_law,
    compute_half_noise_law,
    compute_noisy_law,
    compute_pair_scores,
    count_table,
    list_neighbor_tables,
)

from incrowd.anonymize.safe_slices import choose_slices
from incrowd.privacy.randomness import SeededRandomness

HALF, TWO = Fraction(1, 2), Fraction(2)
# Columns, columns of a slice, slices, epsilons, rows at most, and what is used up at least.
WHOLES: list[tuple[int, int, int, list[Fraction], int, float]] = [
    (3, 2, 2, [HALF], 8, 0.5),
    (3, 2, 2, [TWO], 6, 0.4),
    (3, 2, 4, [HALF, TWO, Fraction(1)], 4, 0.2),
    (4, 2, 2, [HALF], 3, 0.3),
    (4, 2, 3, [HALF, Fraction(1)], 3, 0.2),
    (4, 3, 3, [Fraction(1), HALF, HALF], 3, 0.15),
    (5, 3, 2, [Fraction(1), HALF], 2, 0.15),
]


@pytest.mark.parametrize(("columns", "most", "number", "epsilons", "rows", "least"), WHOLES)
def test_all_choices_together_stay_within_the_sum_of_the_epsilons(
    columns: int, most: int, number: int, epsilons: list[Fraction], rows: int, least: float
) -> None:
    used = compute_budget_usage(
        SliceChoiceLaw(columns, most, number, epsilons), list_neighbor_tables(columns, rows)
    )
    assert least < used <= 1 + 1e-9


def grown(rows: Mapping[Row, int], row: Row) -> tuple[Table, Table]:
    before = tuple(itertools.chain.from_iterable([record] * n for record, n in rows.items()))
    return (*before, row), before


# Columns 0 and 1 are constant until the row comes, so that all their pairs rise by two units; 2
# and 3 avoid each other until it comes, so that theirs falls by nearly two.
WORST = grown({(0, 0, 0, 1): 60, (0, 0, 1, 0): 60, (0, 0, 0, 0): 1880}, (1, 1, 1, 1))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), HALF])
def test_the_worst_table_uses_nearly_all_of_epsilon(epsilon: Fraction) -> None:
    assert 0.95 < compute_budget_usage(SliceChoiceLaw(4, 2, 2, [epsilon]), [WORST]) <= 1 + 1e-9


@pytest.mark.parametrize(
    ("planted", "epsilon", "excess"),
    [
        (compute_half_noise_law, Fraction(1, 10), 1.9),
        (compute_half_noise_law, HALF, 1.8),
        (compute_exact_law, HALF, math.inf),
    ],
)
def test_half_the_noise_or_none_is_not_covered(
    planted: Choice, epsilon: Fraction, excess: float
) -> None:
    """Half of it is what scores would need that only rise."""
    assert compute_budget_usage(SliceChoiceLaw(4, 2, 2, [epsilon], planted), [WORST]) >= excess


@pytest.mark.parametrize(
    ("planted", "excess"), [(compute_half_noise_law, 1.04), (compute_exact_law, math.inf)]
)
def test_tables_of_eight_rows_tell_it_too(planted: Choice, excess: float) -> None:
    assert (
        compute_budget_usage(SliceChoiceLaw(3, 2, 2, [HALF], planted), list_neighbor_tables(3, 8))
        >= excess
    )


def test_two_choices_cost_more_than_one() -> None:
    """The sum is needed: what both tell together is not covered by the epsilon of either."""
    both = SliceChoiceLaw(6, 2, 3, [HALF, HALF])
    worst = grown(
        {(0, 0, 0, 1, 0, 1): 60, (0, 0, 1, 0, 1, 0): 60, (0, 0, 0, 0, 0, 0): 1880}, (1,) * 6
    )
    assert 1.3 * float(HALF) < compute_budget_usage(both, [worst]) * both.epsilon <= 1 + 1e-9


def test_the_law_is_what_slices_draws() -> None:
    """Pearson's test on 1,500 runs: one seed in a million would reject the right law."""
    table: Table = ((0, 0, 0, 1), (0, 0, 1, 0), (1, 1, 0, 0), (1, 1, 0, 0))
    epsilons, runs, bits = [TWO, Fraction(3)], 1500, SeededRandomness(2)
    met = Counter(
        tuple(choose_slices(count_table(table, 4), 2, 3, epsilons=epsilons, bits=bits))
        for _ in range(runs)
    )

    def distance(law: Law) -> float:
        assert set(met) <= set(law)
        return sum((met[x] - runs * share) ** 2 / (runs * share) for x, share in law.items())

    right, wrong = (
        SliceChoiceLaw(4, 2, 3, epsilons, choice)(compute_pair_scores(table, 4))
        for choice in (compute_noisy_law, compute_half_noise_law)
    )
    assert min(right.values()) * runs > 5  # or the distance has not its usual distribution
    freedom = len(right) - 1
    cubed = 1 - 2 / (9 * freedom) + 4.75 * math.sqrt(2 / (9 * freedom))  # Wilson and Hilferty
    assert distance(right) < freedom * cubed**3 < distance(wrong)
