"""Risk of single records: figures of other tools, the law itself, and mpmath."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from support.survey import GUIDE

from incrowd.measure.individual_risk import (
    approximate_individual_risk,
    compute_household_risk,
    compute_individual_risk,
    summarize_risk,
)

# Guide, table 4.1 and example 4.3 (sdcMicro), by row: records, sum of weights, risk
SAMPLE = [2, 2, 1, 2, 1, 2, 1, 1, 2, 2]
POPULATION = [360, 360, 215, 152, 186, 152, 180, 215, 262, 262]
RISKS = [
    0.005424520, 0.005424520, 0.025096439, 0.012563425, 0.028247279, 0.012563425, 0.029010932,
    0.025096439, 0.007403834, 0.007403834,
]  # fmt: skip


def test_risks_of_the_guide() -> None:
    risk = compute_individual_risk(SAMPLE, POPULATION)
    assert risk == pytest.approx(RISKS, abs=6e-10)
    summary = summarize_risk(risk, np.ones(len(GUIDE), dtype=np.int64), 0.05)
    assert summary.mean == pytest.approx(0.01582, abs=6e-6)  # example 4.11
    assert summary.expected == pytest.approx(0.1582, abs=6e-5)  # example 4.12
    assert summary.above == 0  # example 4.13


def test_three_records_are_exact_and_not_approximated() -> None:
    """SdcMicro's tests of indivRisk: three records with weights 18, 39 and 51."""
    assert approximate_individual_risk([3], [108])[0] == pytest.approx(0.01369863, abs=6e-9)
    assert compute_individual_risk([3], [108])[0] == pytest.approx(0.01355297, abs=6e-9)
    other = compute_individual_risk([1, 1, 2, 1], [45.5, 17, 100, 123.5])
    assert other == pytest.approx([0.08579129, 0.17707583, 0.01877883, 0.03931625], abs=6e-9)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("fraction", [0.9, 0.3, 0.02])
def test_risk_is_the_mean_of_one_over_the_population_count(count: int, fraction: float) -> None:
    """Summed over the negative binomial law, term by term."""
    law, total, people = fraction**count, 0.0, count
    while people < 60 * count / fraction:
        total += law / people
        law *= people / (people - count + 1) * (1 - fraction)
        people += 1
    assert compute_individual_risk(count, count / fraction) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("count", [1, 2, 5, 23, 24, 25, 300, 100_000])
@pytest.mark.parametrize("fraction", [1e-6, 1e-3, 0.1, 0.5, 0.999999])
def test_risk_of_large_groups_and_small_fractions(count: int, fraction: float) -> None:
    exact = mpmath.mpf(fraction) / count * mpmath.hyp2f1(1, 1, count + 1, 1 - mpmath.mpf(fraction))
    assert compute_individual_risk(count, count / fraction) == pytest.approx(float(exact), rel=1e-9)


def test_a_whole_population_has_one_over_its_size() -> None:
    assert compute_individual_risk([1, 4], [1, 4]).tolist() == [1.0, 0.25]
    assert compute_individual_risk([4], [2]).tolist() == [0.25]  # weights below 1


def test_the_approximation_is_never_below() -> None:
    counts = np.arange(1, 50)
    for fraction in (0.9, 0.1, 0.001):
        people = counts / fraction
        exact = compute_individual_risk(counts, people)
        assert (approximate_individual_risk(counts, people) >= exact * (1 - 1e-12)).all()


def test_household_risk() -> None:
    """Guide, section on household risk: members at 0.02, 0.03 and 0.03."""
    joint = compute_household_risk(
        np.array([0.02, 0.03, 1.0]), np.array([1, 2, 1]), np.array([0, 0, 1])
    )
    assert joint.tolist() == pytest.approx([1 - 0.98 * 0.97**2, 1.0])
    assert joint[0] == pytest.approx(0.078, abs=5e-4)


def test_a_household_is_at_least_at_the_risk_of_each_member() -> None:
    rng = np.random.default_rng(3)
    risk, households = rng.random(200), rng.integers(0, 40, 200)
    joint = compute_household_risk(risk, np.ones(200, dtype=np.int64), households)
    by_hand = [1 - math.prod(1 - r for r in risk[households == home]) for home in range(40)]
    assert joint == pytest.approx(np.array(by_hand))
    assert (joint[households] >= risk - 1e-12).all()
