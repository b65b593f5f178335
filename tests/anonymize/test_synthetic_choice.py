"""Scores that a row raises by 0 or 1, and the exact cost of choosing, measuring and adapting."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.small_domains import fit_pairs, random_joint, related_rows, small_domain

from incrowd.anonymize.synthetic.choice import (
    PrivateTables,
    Scores,
    choose_fitting,
    limit_levels,
    list_pairs,
    list_triples,
    score_difference,
)
from incrowd.anonymize.synthetic.domain import Domain, TableCounter
from incrowd.anonymize.synthetic.measurement import make_query
from incrowd.anonymize.synthetic.model import Model
from incrowd.arrays import Codes, Counts, Floats
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import BoundedChoice, Event, GaussianMeasurements
from incrowd.privacy.gaussian import whole_variance
from incrowd.privacy.randomness import SeededRandomness

DOMAIN = small_domain()
LAW = random_joint(DOMAIN, 3)
MODEL = fit_pairs(DOMAIN, LAW, 60.0, [(0, 1), (1, 3)], [0, 0, 0, 1])
CANDIDATES = [*list_pairs(DOMAIN, 40), *list_triples(DOMAIN, (48, 12), lambda _: True)]


def scores_of(codes: Codes, model: Model) -> Counts:
    tables = PrivateTables(DOMAIN, TableCounter(DOMAIN, codes))
    scores = Scores(DOMAIN, tables, CANDIDATES)
    scores.expect(model)
    return scores.compute(CANDIDATES, [3.0] * len(CANDIDATES))


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 40))
def test_a_row_raises_every_score_by_zero_or_one(seed: int, rows: int) -> None:
    codes = related_rows(DOMAIN, rows + 1, seed)
    raises = scores_of(codes, MODEL) - scores_of(codes[:-1], MODEL)
    assert set(raises.tolist()) <= {0, 1}


def test_scores_against_a_model_of_the_true_number_of_rows_would_be_noticed() -> None:
    """A planted fault: expected counts that follow the private table."""

    def faulty(codes: Codes) -> Counts:
        model = Model(MODEL.structure, MODEL.marginals, MODEL.shares, float(len(codes)))
        return scores_of(codes, model)

    result: set[int] = set()
    for seed in range(30):
        codes = related_rows(DOMAIN, 41, seed)
        result |= set((faulty(codes) - faulty(codes[:-1])).tolist())
    assert not result <= {0, 1}


def test_candidates_are_nested_tables_within_their_limits() -> None:
    pairs = list(list_pairs(DOMAIN, 40))
    assert {pair.columns for pair in pairs} == {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}
    assert all(pair.cells <= 40 for pair in pairs)
    assert limit_levels(DOMAIN, (1, 3), 47) == (0, 1)
    assert limit_levels(DOMAIN, (1, 3), 5) is None
    triples = list(list_triples(DOMAIN, (48, 12), lambda columns: 0 in columns))
    assert triples
    assert all(0 in triple.columns and triple.cells <= 48 for triple in triples)


def test_what_does_not_fit_leaves_the_law() -> None:
    scores = np.array([50, 40, 30, 20], dtype=np.int64)
    weights = np.ones(4, dtype=np.int64)
    bits = SeededRandomness(2)
    choices = [
        choose_fitting(
            scores, weights, epsilon=Fraction(1, 20), fits=lambda at: at in (1, 3), bits=bits
        )
        for _ in range(1200)
    ]
    share = 1 / (1 + math.exp(-1))
    assert set(choices) == {1, 3}
    assert abs(choices.count(1) - 1200 * share) < 5 * math.sqrt(1200 * share * (1 - share))
    nothing = choose_fitting(scores, weights, epsilon=Fraction(1), fits=lambda _: False, bits=bits)
    assert nothing is None


def test_weights_keep_the_range() -> None:
    """With weights 2 and 1 the rate is halved: a row still moves the exponent by epsilon."""
    scores, weights = np.array([10, 10], dtype=np.int64), np.array([2, 1], dtype=np.int64)
    bits = SeededRandomness(3)
    choices = [
        choose_fitting(scores, weights, epsilon=Fraction(1, 5), fits=lambda _: True, bits=bits)
        for _ in range(1200)
    ]
    share = 1 / (1 + math.exp(-1))  # e^(0.1 (20 - 10))
    assert abs(choices.count(0) - 1200 * share) < 5 * math.sqrt(1200 * share * (1 - share))


# The exact cost of a whole synthesis in little: a choice among two tables, its measurement, and
# another one that an adversary asks for, or not, by the first result.

EXPECTED = [np.array([3, 2]), np.array([1, 1, 9])]  # a row raises the first score alone
COUNTS = [np.array([3, 2]), np.array([2, 1, 3])]
CHOICE = 0.6
PARTS = (0.3, 0.2)


def loss_law(
    table: Counts, more: Counts, part: float, length: int | None = None
) -> tuple[list[Floats], Floats]:
    """The first number and the law on the larger table, and the losses over all numbers."""
    (query, squared), moved = make_query(table), make_query(more)[0] - make_query(table)[0]
    variance = whole_variance(length or squared, Fraction(part))
    reach = int(6.5 * math.sqrt(variance)) + 3
    y = np.arange(-reach, reach + 1)  # noise under P
    weights = np.exp(-(y**2) / (2 * variance))
    weights /= weights.sum()
    law, loss, first = np.ones(1), np.zeros(1), np.zeros(1)
    for at, step in enumerate(moved.tolist()):
        cell_loss = (step * step + 2 * step * y) / (2 * variance)
        if at == 0:
            first = y + int(query[0]) + step
            law, loss = weights, cell_loss
        elif step:
            law = np.multiply.outer(law, weights).ravel()
            loss = np.add.outer(loss, cell_loss).ravel()
            first = np.repeat(first, len(y))
    return [first, law], loss


def heap_losses(losses: Floats, law: Floats) -> tuple[Floats, Floats]:
    """Losses on a fine grid, rounded down, with their probabilities: never above the truth."""
    grid = np.floor(losses * 400).astype(int)
    low = int(grid.min())
    heaps: Floats = np.bincount(grid - low, law).astype(np.float64)
    return (np.arange(len(heaps)) + low) / 400, heaps


def exact_delta(epsilon: float, *, length: int | None = None, choice: float = CHOICE) -> float:
    """The delta of choosing, measuring and, if the first number is above 0, measuring the other."""
    grown = [table + np.eye(len(table), dtype=int)[-1] for table in COUNTS]

    def law(tables: list[Counts]) -> Floats:
        gaps = [score_difference(t - e) for t, e in zip(tables, EXPECTED, strict=True)]
        weights = np.exp(choice * np.array(gaps))
        result: Floats = weights / weights.sum()
        return result

    chosen, before = law(grown), law(COUNTS)
    total = 0.0
    for at in range(2):
        start = math.log(chosen[at] / before[at])
        (first, first_law), loss = loss_law(COUNTS[at], grown[at], PARTS[0], length)
        (_, there), further = loss_law(COUNTS[1 - at], grown[1 - at], PARTS[1], length)
        values, heaps = heap_losses(further, there)
        on = first > 0
        stopped, weights = heap_losses(loss[~on], first_law[~on])
        stop = np.maximum(-np.expm1(epsilon - start - stopped), 0) * weights
        reached, weights = heap_losses(loss[on], first_law[on])
        deep = np.add.outer(reached, values) + start
        go_on = np.maximum(-np.expm1(epsilon - deep), 0) * np.multiply.outer(weights, heaps)
        total += float(chosen[at]) * (float(stop.sum()) + float(go_on.sum()))
    return total


CHARGED: list[Event] = [BoundedChoice(CHOICE), GaussianMeasurements(sum(PARTS))]


@pytest.mark.parametrize("epsilon", [0.3, 0.8, 1.5])
def test_choice_and_adaptive_measurements_cost_what_is_charged(epsilon: float) -> None:
    assert exact_delta(epsilon) <= Accountant(CHARGED).delta(epsilon=epsilon)


def test_centering_without_its_cost_would_be_noticed() -> None:
    """A planted fault: noise for a squared length of 1, whatever the query."""
    assert exact_delta(1.5, length=1) > Accountant(CHARGED).delta(epsilon=1.5)


def test_a_choice_that_is_not_charged_would_be_noticed() -> None:
    """A planted fault: measurements alone are charged, and choices are many times as sharp."""
    alone = Accountant(GaussianMeasurements(sum(PARTS))).delta(epsilon=1.5)
    assert exact_delta(1.5, choice=4.0) > alone


def test_a_domain_of_one_column_has_no_candidates() -> None:
    assert list(list_pairs(Domain(DOMAIN.columns[:1]), 100)) == []
