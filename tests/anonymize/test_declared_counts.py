"""Counts of declared values: the law of their noise, and what one person changes."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from incrowd.anonymize.declared_counts import measure_counts
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import (
    Composition,
    DeclaredCounts,
    GeometricCounts,
    SampledEvent,
    Selection,
    describe_event,
    parse_event,
    serialize_event,
)
from incrowd.privacy.randomness import SeededRandomness

DRAWS = 200_000
FALSE_ALARM = 1e-9  # of each test here, if the seed had not been looked at


def compute_law(epsilon: float, rows: int, x: int) -> float:
    """The probability of a noise x by the claim."""
    step = math.exp(-epsilon / rows)
    return (1 - step) / (1 + step) * step ** abs(x)


def compute_distance(noise: np.ndarray, epsilon: float, rows: int) -> float:
    """The largest difference of frequencies from the law, in standard deviations."""
    seen = Counter(noise.tolist())
    worst = 0.0
    for x in range(-8, 9):
        p = compute_law(epsilon, rows, x)
        sd = math.sqrt(p * (1 - p) / len(noise))
        worst = max(worst, abs(seen[x] / len(noise) - p) / sd)
    return worst


@pytest.mark.parametrize(("epsilon", "rows"), [(Fraction(1, 2), 1), (Fraction(1, 2), 3)])
def test_the_noise_has_the_law_of_the_claim(epsilon: Fraction, rows: int) -> None:
    zeros = np.zeros(DRAWS, dtype=np.int64)
    noise = measure_counts(zeros, epsilon=epsilon, rows=rows, bits=SeededRandomness(3))
    limit = 6.9  # 17 comparisons, each beyond it with a probability of 5e-12
    assert compute_distance(noise, float(epsilon), rows) < limit
    assert compute_distance(noise, float(epsilon) * 1.05, rows) > limit  # a wrong scale
    assert compute_distance(noise, float(epsilon), rows + 1) > limit
    assert compute_distance(np.abs(noise), float(epsilon), rows) > limit  # one side only


def test_each_count_has_a_noise_of_its_own() -> None:
    noise = measure_counts(
        np.zeros(DRAWS, dtype=np.int64), epsilon=Fraction(1, 5), rows=1, bits=SeededRandomness(4)
    )
    first, second = noise[::2], noise[1::2]
    correlation = float(np.corrcoef(first, second)[0, 1])
    assert abs(correlation) < 6.2 / math.sqrt(len(first))


@pytest.mark.parametrize("rows", [1, 2])
def test_the_ratio_of_neighbors_is_what_is_charged_and_no_less(rows: int) -> None:
    """Enumerated over all outcomes near both: a person of so many values moves each by one."""
    epsilon = 0.75
    outcomes = range(-12, 14)
    with_person = {y: compute_law(epsilon, rows, y - 1) for y in outcomes}
    without = {y: compute_law(epsilon, rows, y) for y in outcomes}
    each = max(abs(math.log(with_person[y] / without[y])) for y in outcomes)
    assert rows * each == pytest.approx(epsilon)
    event = DeclaredCounts(epsilon)
    assert Accountant(event).delta(epsilon=epsilon) == 0.0
    assert Accountant(event).delta(epsilon=0.9 * epsilon) > 0.0


def test_values_of_nobody_get_noise_as_well() -> None:
    """Or a count of zero without noise would tell that nobody is there."""
    counts = np.array([0, 0, 0, 1000], dtype=np.int64)
    noisy = [
        measure_counts(counts, epsilon=Fraction(1, 20), rows=1, bits=SeededRandomness(seed))
        for seed in range(40)
    ]
    spread = np.std(np.array(noisy), axis=0)
    assert (spread > 10).all()
    assert min(int(each.min()) for each in noisy) < 0  # nothing is cut off


def test_the_event_composes_as_a_choice_of_the_same_epsilon() -> None:
    counts = GeometricCounts(14, 0.9)
    first = Accountant(Composition((DeclaredCounts(0.1), counts)))
    second = Accountant(Composition((Selection(0.1), counts)))
    for epsilon in (0.5, 1.0, 2.0):
        assert first.delta(epsilon=epsilon) == second.delta(epsilon=epsilon)
    inside = SampledEvent(Composition((DeclaredCounts(0.1), counts)), 0.1)
    assert Accountant(inside).epsilon(delta=1e-6) < 0.2


def test_the_event_is_written_and_read() -> None:
    event = DeclaredCounts(0.05)
    assert parse_event(serialize_event(event)) == event
    assert describe_event(event) == "counts of declared values (ε = 0.05)"
