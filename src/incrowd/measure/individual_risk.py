"""Chance that a record of a sample is linked to the right person of the population.

An attacker knows the quasi-identifiers of everybody in the population, picks a record of the
sample, and names one of the F people who share its values: the chance to be right is 1/F. F is
unknown; the sample shows f such records.

**Model** (Benedetti and Franconi 1998, as in mu-Argus and sdcMicro). Given f, F is negative
binomial: P(F = h | f) = C(h - 1, f - 1) p^f (1 - p)^(h - f) for h >= f, where p is the sampling
fraction of the group, estimated by f over the sum of its weights. Then

    r = E[1/F | f] = p^f / f * 2F1(f, f; f + 1; 1 - p) = p / f * 2F1(1, 1; f + 1; 1 - p),

the second by Euler's transformation. Its series, the sum of (1 - p)^n / C(n + f, f), has positive
terms alone and falls fast for all but small f, so that it is exact where the first form over- or
underflows (and where libraries give up on either). With p = 1 it is 1/f.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Counts, Floats

_LARGE = 2  # records beyond which the usual approximation is used, by those who use it
_SERIES = 24  # records from which the series is summed
_TERMS = 80  # of which this many are enough: 1 / C(104, 24) is below 1e-23


def compute_individual_risk(counts: npt.ArrayLike, population: npt.ArrayLike) -> Floats:
    """Return the risk of the records of each group.

    Args:
        counts: Records of the sample in each group, at least 1.
        population: Estimated people of the population in each group, such as the sum of weights.
            A group has at least as many people as records.

    Examples:
        >>> compute_individual_risk([2, 1], [360, 215]).round(9).tolist()
        [0.00542452, 0.025096439]
    """
    from scipy.special import hyp2f1

    sample, fraction = _compute_fraction(counts, population)
    rest = 1.0 - fraction
    few = hyp2f1(1.0, 1.0, np.minimum(sample, _SERIES) + 1.0, rest)
    factor: Floats = np.where(sample < _SERIES, few, _sum_series(np.maximum(sample, _SERIES), rest))
    return fraction / sample * factor


def _sum_series(sample: Floats, rest: Floats) -> Floats:
    """Return the sum of rest^n / C(n + f, f) over all n, for large f."""
    term = np.ones_like(sample + rest)
    total = term.copy()
    for n in range(1, _TERMS + 1):
        term = term * (n * rest / (sample + n))
        total += term
    return total


def approximate_individual_risk(counts: npt.ArrayLike, population: npt.ArrayLike) -> Floats:
    """Return the risk by the approximation that sdcMicro uses for more than two records.

    It is p / (f - 1 + p), never below the exact risk: for comparison with other tools.
    """
    sample, fraction = _compute_fraction(counts, population)
    exact = compute_individual_risk(counts, population)
    return np.where(sample > _LARGE, fraction / (sample - (1.0 - fraction)), exact)


def _compute_fraction(counts: npt.ArrayLike, population: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return records as floats, and the sampling fraction of each group, at most 1."""
    sample = np.asarray(counts, dtype=np.float64)
    return sample, sample / np.maximum(np.asarray(population, dtype=np.float64), sample)


def compute_household_risk(risk: Floats, rows: Counts, households: Counts) -> Floats:
    """Return for each household the chance that at least one member is reidentified.

    It is 1 - product of (1 - r) over all members, as if reidentifications were independent.

    Args:
        risk: Risk of the records of each entry.
        rows: Records of each entry.
        households: The household of each entry, numbered from 0.
    """
    with np.errstate(divide="ignore"):  # a risk of 1 makes that of the household 1
        safe = np.log1p(-np.minimum(risk, 1.0)) * rows
    return -np.expm1(np.bincount(households, weights=safe))


@dataclass(frozen=True)
class RiskSummary:
    """Risks of all records, in few figures.

    Attributes:
        mean: Mean risk over the records: the global risk.
        highest: Highest risk of a record.
        expected: Sum of the risks: how many records are expected to be reidentified.
        above: Number of records with a risk above the threshold.
        threshold: That threshold.
    """

    mean: float
    highest: float
    expected: float
    above: int
    threshold: float


def summarize_risk(risk: Floats, rows: Counts, threshold: float) -> RiskSummary:
    """Return the summary of risks, each of so many records."""
    total = max(int(rows.sum()), 1)
    expected = float(risk @ rows)
    return RiskSummary(
        mean=expected / total,
        highest=float(risk.max(initial=0.0)),
        expected=expected,
        above=int(rows[risk > threshold].sum()),
        threshold=threshold,
    )
