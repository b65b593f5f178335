"""k-map: every published group matches at least k people of the population.

Where the population is a table, its rows are counted. Where only its size is known, groups are
judged by their records: a simple random sample takes each person with probability p, so that the
records of a group of F people are binomial, and

    P(records >= m | records >= 1, F)

grows with F (the family has a monotone likelihood ratio, and so has its truncation). Publishing
only groups of at least m records therefore publishes a group of fewer than k people, once it occurs
in the sample, with a probability of at most that of F = k - 1. The threshold is the least m for
which this is at most a significance level. It is a statement about each group by itself, and rests
on random sampling. El Emam and Dankar (2008) use the Poisson law in place of the binomial.
"""

from __future__ import annotations

import numpy as np

from incrowd.arrays import Counts

SIGNIFICANCE = 0.05


def derive_sample_threshold(k: int, fraction: float, significance: float = SIGNIFICANCE) -> int:
    """Return the least number of records from which a group may be taken for one of k people.

    It is at most k: a group of k records has k people.

    >>> derive_sample_threshold(5, 0.1), derive_sample_threshold(5, 1.0)
    (3, 5)
    """
    from scipy.stats import binom

    if k <= 1 or fraction >= 1:
        return k
    others = k - 1
    occurs = -np.expm1(others * np.log1p(-fraction))
    thresholds = np.arange(1, k + 1)
    errors = binom.sf(thresholds - 1, others, fraction) / occurs
    return int(thresholds[np.argmax(errors <= significance)])


def count_below_map(counts: Counts, population: Counts, k: int) -> int:
    """Return how many records are in groups that match fewer than k people."""
    return int(counts[population < k].sum())
