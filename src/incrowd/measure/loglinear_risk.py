"""Risk of unique records by a log-linear model of all cells of a table.

**Model** (Skinner and Holmes 1998; Skinner and Shlomo 2008). The population count of cell j is
Poisson with mean L_j, each person is sampled with probability p, and the means of the sample,
M_j = p L_j, follow a log-linear model. Then F_j - f_j is Poisson with mean (1 - p) L_j and
independent of f_j, so that a record that is alone in its cell of the sample

- is alone in the population with probability exp(-m), and
- is linked correctly with probability E[1/F | f = 1] = (1 - exp(-m)) / m,  m = (1 - p) L_j.

The sums over all unique records are the expected number of population uniques among them, and of
correct matches. sdcMicro takes the fitted mean M_j of the *sample* for L_j, which makes m too small
by the factor p, and both figures too large; here m is (1 - p) M_j / p.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from incrowd.arrays import Floats
from incrowd.codes.frequency import Frequencies

MOST_CELLS = 4_000_000  # of a table that is fitted cell by cell
_ROUNDS, _CLOSE = 200, 1e-9


@dataclass(frozen=True)
class LoglinearRisk:
    """Figures of the unique records of a sample, by a log-linear model.

    Attributes:
        uniques: Number of unique records of the sample.
        population_uniques: How many of them are expected to be unique in the population.
        matches: How many are expected to be linked correctly.
        interactions: 1 for main effects, 2 where pairs of columns are fitted, too.
    """

    uniques: int
    population_uniques: float
    matches: float
    interactions: int


def measure_loglinear_risk(
    frequencies: Frequencies, fraction: Floats, *, interactions: int = 1
) -> LoglinearRisk:
    """Return the risk of unique records; ``fraction`` is the sampling fraction of each tuple."""
    fitted = fit_loglinear_means(frequencies, interactions)
    unique = frequencies.counts == 1
    share = np.minimum(fraction[unique], 1.0)
    rest = (1.0 - share) * fitted[unique] / share
    return LoglinearRisk(
        uniques=int(unique.sum()),
        population_uniques=float(compute_unique_probability(rest).sum()),
        matches=float(compute_match_probability(rest).sum()),
        interactions=interactions,
    )


def compute_unique_probability(rest: Floats) -> Floats:
    """Return the chance that a unique record has no other person of the population in its cell.

    ``rest`` is the mean number of those who are not in the sample.
    """
    return np.exp(-rest)


def compute_match_probability(rest: Floats) -> Floats:
    """Return the expected chance to link a unique record correctly, by the mean of the rest."""
    small = rest < 1e-8
    chance: Floats = np.where(small, 1.0 - rest / 2, -np.expm1(-rest) / np.where(small, 1.0, rest))
    return chance


def fit_loglinear_means(frequencies: Frequencies, interactions: int = 1) -> Floats:
    """Return the fitted mean of each tuple that occurs, by main effects or by all pairs.

    Main effects alone have a closed form. Pairs are fitted by iterative proportional fitting over
    all cells, which :func:`count_cells` counts.
    """
    codes, counts = frequencies.codes, frequencies.counts.astype(np.float64)
    total, width = max(counts.sum(), 1.0), codes.shape[1]
    if interactions == 1:
        means = np.full(len(counts), total)
        for column in codes.T:
            means *= (np.bincount(column, weights=counts) / total)[column]
        return means
    sizes = [int(column.max(initial=0)) + 1 for column in codes.T]
    table = np.zeros(sizes)
    table[tuple(codes.T)] = counts
    fitted = _fit_margins(table, list(combinations(range(width), 2)))
    cells: Floats = fitted[tuple(codes.T)]
    return cells


def count_cells(frequencies: Frequencies) -> int:
    """Return how many cells a table of all combinations of values has."""
    return math.prod(int(column.max(initial=0)) + 1 for column in frequencies.codes.T)


def _fit_margins(table: Floats, margins: Sequence[tuple[int, ...]]) -> Floats:
    """Return the table of largest entropy with the given margins of another."""
    fitted = np.full(table.shape, table.sum() / table.size)
    axes = [tuple(at for at in range(table.ndim) if at not in margin) for margin in margins]
    targets = [table.sum(axis=other, keepdims=True) for other in axes]
    for _ in range(_ROUNDS):
        worst = 0.0
        for target, other in zip(targets, axes, strict=True):
            sums = fitted.sum(axis=other, keepdims=True)
            worst = max(worst, float(np.abs(sums - target).max()))
            fitted *= np.divide(target, sums, out=np.zeros_like(sums), where=sums > 0)
        if worst < _CLOSE * max(table.sum(), 1.0):
            break
    return fitted
