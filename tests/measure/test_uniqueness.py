"""Population uniqueness: figures of ARX on Adult, the models by simulation of their laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import nbinom
from support.survey import adult_histogram

from incrowd.measure.uniqueness import (
    SizeHistogram,
    choose_model,
    estimate_groups,
    estimate_pitman,
    estimate_snb,
    estimate_uniqueness,
    estimate_zayatz,
    expect_small_groups,
)


@pytest.mark.parametrize(("fraction", "share"), [(0.1, 0.3207402393), (0.2, 0.3577099235)])
def test_zayatz_on_adult(fraction: float, share: float) -> None:
    """ARX 3.9, TestRiskMetrics.testDecisionRule2."""
    people = adult_histogram().records / fraction
    number = estimate_zayatz(adult_histogram(), people)
    assert number / people == pytest.approx(share, abs=6e-11)


@pytest.mark.parametrize(("fraction", "share"), [(0.1, 0.2768499388), (0.01, 0.1446083531)])
def test_pitman_on_adult(fraction: float, share: float) -> None:
    """ARX 3.9, TestRiskMetrics.testDecisionRule2."""
    people = adult_histogram().records / fraction
    number = estimate_pitman(adult_histogram(), people)
    assert number is not None
    assert number / people == pytest.approx(share, abs=2e-10)


def test_a_whole_population_has_its_own_uniques() -> None:
    """ARX 3.9, the same test at a fraction of 1: the uniques of the table itself."""
    result = estimate_uniqueness(adult_histogram(), adult_histogram().records)
    assert result.zayatz == pytest.approx(0.5142895033485844)
    assert result.snb == pytest.approx(0.5142895033485844)
    assert result.dankar == result.zayatz


def test_no_unique_record_no_unique_person() -> None:
    result = estimate_uniqueness(SizeHistogram(np.array([2, 5]), np.array([10, 3])), 1000)
    assert (result.zayatz, result.pitman, result.snb, result.dankar) == (0, 0, 0, 0)


def test_rule_of_dankar() -> None:
    numbers: dict[str, float | None] = {"zayatz": 30.0, "pitman": 20.0, "snb": 10.0}
    assert choose_model(0.1, numbers) == "pitman"
    assert choose_model(0.1, {**numbers, "pitman": None}) == "zayatz"
    assert choose_model(0.11, numbers) == "snb"
    assert choose_model(0.11, {**numbers, "snb": None}) == "zayatz"
    assert choose_model(0.11, {**numbers, "snb": 31.0}) == "zayatz"


@pytest.mark.parametrize("shape", [0.05, 0.7, 3.0])
@pytest.mark.parametrize("success", [0.02, 0.4])
@pytest.mark.parametrize("fraction", [0.15, 0.6])
def test_small_groups_of_the_snb_model(shape: float, success: float, fraction: float) -> None:
    """The law of a group, thinned: summed over all sizes of the population group."""
    people = np.arange(1, 4000)
    law = nbinom.pmf(people - 1, shape, success)
    first = law @ (people * fraction * (1 - fraction) ** (people - 1))
    pairs = people * (people - 1) / 2 * fraction**2
    second = law @ (pairs * (1 - fraction) ** np.maximum(people - 2.0, 0))
    assert expect_small_groups(shape, success, fraction) == pytest.approx((first, second), rel=1e-8)


@pytest.mark.parametrize(("shape", "success"), [(0.4, 0.1), (1.5, 0.5)])
def test_snb_finds_its_own_parameters(shape: float, success: float) -> None:
    """A sample with just the expected groups, of a known number of groups of the population."""
    fraction, groups = 0.25, 1e7
    first, second = expect_small_groups(shape, success, fraction)
    single, double = round(groups * first), round(groups * second)
    histogram = SizeHistogram(np.array([1, 2]), np.array([single, double]))
    number = estimate_snb(histogram, histogram.records / fraction, groups=groups)
    assert number == pytest.approx(groups * success**shape, rel=1e-4)


def test_shlosser_estimates_the_groups_of_a_sampled_population() -> None:
    """By hand on a small histogram, and no group is added to a whole population."""
    histogram, fraction = SizeHistogram(np.array([1, 3]), np.array([6, 2])), 0.5
    left = [6 * 0.5, 2 * 0.125]
    first = 6 * 0.25 + 2 * 3 * 0.25 * 0.75**2
    second = 6 * 0.5 * 0.5 + 2 * 0.125 * (1.5**3 - 1)
    single = 6 * 0.5 + 2 * 3 * 0.5 * 0.25
    by_hand = 8 + 6 * first / second * (sum(left) / single) ** 2
    assert estimate_groups(histogram, fraction) == pytest.approx(by_hand)
    assert estimate_groups(histogram, 1 - 1e-9) == pytest.approx(8)


def test_models_are_near_the_truth_where_they_hold() -> None:
    """A population of the SNB law, sampled at 20 %: both estimators within 10 %."""
    rng = np.random.default_rng(11)
    people = 1 + rng.negative_binomial(0.8, 0.3, 60_000)
    sample = rng.binomial(people, 0.2)
    histogram = SizeHistogram.from_counts(sample[sample > 0])
    true = (people == 1).sum()
    snb = estimate_snb(histogram, people.sum(), groups=60_000)
    assert snb is not None
    assert abs(snb / true - 1) < 0.1
    assert math.isfinite(estimate_zayatz(histogram, people.sum()))


def test_pitman_finds_the_parameters_of_its_law() -> None:
    """A table drawn by Pitman's urn: the estimate is near the expected number of uniques."""
    rng = np.random.default_rng(5)
    theta, alpha = 50.0, 0.5
    sizes: list[int] = []
    for place in range(4000):
        if rng.random() < (theta + alpha * len(sizes)) / (theta + place):
            sizes.append(1)
        else:
            weights = np.array(sizes) - alpha
            sizes[rng.choice(len(sizes), p=weights / weights.sum())] += 1
    number = estimate_pitman(SizeHistogram.from_counts(np.array(sizes)), 4000)
    assert number is not None
    expected = math.exp(math.lgamma(theta + 1) - math.lgamma(theta + alpha)) * 4000**alpha
    assert abs(number / expected - 1) < 0.2
