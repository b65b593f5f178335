"""Counts of the declared values of a column, each with noise, whether or not anybody has them.

Claim. Let one person be in at most m of the values of a column, once in each. Add to the count of
every declared value, those of nobody included, an independent whole X with P[X = x] proportional to
exp(-|x| epsilon / m). All noisy counts together satisfy (epsilon, 0)-differential privacy: a
:class:`~incrowd.privacy.events.DeclaredCounts`.

Proof. Tables that differ by one person have counts that differ by 1 in at most m places, and by
nothing elsewhere. The probability of any vector of noisy counts is the product over the places of c
exp(-|y - n| epsilon / m), and |y - n| moves by at most 1 in at most m factors: the product changes
by a factor of at most e^epsilon. Which places there are follows from the declaration alone, so no
place tells by being there that somebody has its value. Where rows of people are counted, a person
moves counts by numbers that add up to at most m, and the same holds. It is attained (for m = 1, by
y >= n + 1), so no smaller epsilon would do.

Nothing is dropped or cut off: a count may be negative, and is then what was measured.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from incrowd.arrays import Counts
from incrowd.privacy.discrete_noise import sample_laplace
from incrowd.privacy.randomness import Randomness


def measure_counts(counts: Counts, *, epsilon: Fraction, rows: int, bits: Randomness) -> Counts:
    """Return the counts with noise; ``rows`` is the largest number of places of one person."""
    scale = np.full(len(counts), rows * epsilon.denominator, dtype=np.int64)
    return counts + sample_laplace(scale, epsilon.numerator, bits)
