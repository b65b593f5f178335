"""Log-linear risk: figures of sdcMicro's formulas, margins, and the Poisson law by summation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.survey import count_rows

from incrowd.codes.frequency import merge_tuples
from incrowd.measure.loglinear_risk import (
    compute_match_probability,
    compute_unique_probability,
    fit_loglinear_means,
    measure_loglinear_risk,
)

# The ten rows of sdcMicro's test_modRisks.R: three columns, all weights 100
COLUMNS = (
    (2, 3, 2, 3, 3, 1, 2, 3, 2, 2), (2, 1, 2, 2, 1, 2, 1, 1, 1, 2), (5, 4, 4, 5, 4, 4, 3, 3, 2, 2),
)  # fmt: skip


def test_figures_of_sdcmicro() -> None:
    """Its formulas take the sample's means for the population's, and average over nine cells."""
    _, frequencies = count_rows([*zip(*COLUMNS, strict=True)])
    rest = 0.99 * fit_loglinear_means(frequencies)[frequencies.counts == 1]
    cells = len(frequencies)
    assert compute_unique_probability(rest).sum() / cells == pytest.approx(0.552916, abs=6e-7)
    assert compute_match_probability(rest).sum() / cells == pytest.approx(0.7053842, abs=6e-8)


def test_the_population_has_more_people_than_the_sample() -> None:
    """Means of the population are those of the sample over the fraction: far lower a risk."""
    _, frequencies = count_rows([*zip(*COLUMNS, strict=True)])
    result = measure_loglinear_risk(frequencies, np.full(len(frequencies), 0.01))
    means = fit_loglinear_means(frequencies)[frequencies.counts == 1]
    assert result.uniques == 8
    assert result.population_uniques == pytest.approx(np.exp(-99 * means).sum())
    assert result.matches == pytest.approx(((1 - np.exp(-99 * means)) / (99 * means)).sum())


@pytest.mark.parametrize("mean", [0.0, 1e-9, 0.3, 4.0, 60.0])
def test_chances_against_the_poisson_law(mean: float) -> None:
    law = [math.exp(-mean) * mean**n / math.factorial(n) for n in range(150)]
    matches = sum(chance / (1 + others) for others, chance in enumerate(law))
    assert compute_match_probability(np.array([mean]))[0] == pytest.approx(matches, rel=1e-9)
    assert compute_unique_probability(np.array([mean]))[0] == pytest.approx(law[0])


def test_pairs_keep_the_margins_of_pairs() -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, [3, 2, 4], (400, 3)).astype(np.int32)
    frequencies = merge_tuples(codes, np.ones(400, dtype=np.int64))
    fitted = fit_loglinear_means(frequencies, interactions=2)
    assert fitted.sum() == pytest.approx(400, rel=1e-6)  # no cell is empty
    for pair in ((0, 1), (0, 2), (1, 2)):
        looks = frequencies.codes[:, pair] @ [10, 1]
        for look in np.unique(looks):
            at = looks == look
            assert fitted[at].sum() == pytest.approx(frequencies.counts[at].sum(), rel=1e-6)


def test_estimates_are_near_the_truth_where_the_model_holds() -> None:
    """A population of independent columns, sampled at 10 %; within four standard deviations."""
    rng = np.random.default_rng(7)
    shares = [rng.dirichlet(np.ones(size)) for size in (12, 10, 8)]
    people = np.column_stack([rng.choice(len(p), 30_000, p=p) for p in shares]).astype(np.int32)
    chosen = rng.random(30_000) < 0.1
    sample = merge_tuples(people[chosen], np.ones(chosen.sum(), dtype=np.int64))
    everyone = merge_tuples(people, np.ones(30_000, dtype=np.int64))
    sizes = {
        tuple(c): n for c, n in zip(everyone.codes.tolist(), everyone.counts.tolist(), strict=True)
    }
    true = [
        sizes[tuple(c)]
        for c, n in zip(sample.codes.tolist(), sample.counts.tolist(), strict=True)
        if n == 1
    ]
    result = measure_loglinear_risk(sample, np.full(len(sample), 0.1))
    matches = sum(1 / size for size in true)
    assert abs(result.matches - matches) < 4 * math.sqrt(matches)
