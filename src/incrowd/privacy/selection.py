"""Choosing among candidates privately: report noisy max with exact one-sided noise.

Claim. Let every candidate have a whole-number score that never falls, and rises by at most
``sensitivity``, when a row is added to the table. Add to each an independent X >= 0 with
P[X >= x] = exp(-x epsilon / sensitivity), and name the candidate with the largest sum (the
first, of several). That is epsilon-differentially private.

Proof. Fix the noise of all candidates but i. Then i is named if and only if X_i >= t, t the
whole number by which the others' best sum (plus one, if it comes first) exceeds i's score.
Adding a row raises the others' scores by at most the sensitivity s and i's score by at least
0, so t rises by at most s; removing it, t rises by at most s as well, since i's score falls
by at most s and the others' do not rise. P[X >= t + s] >= exp(-epsilon) P[X >= t] for all
whole t, also below 0. So the probability of i falls by a factor of e^epsilon at most, either
way.

Where scores may move either way, by s at most, the others' best may rise and i's score fall at
once, so t rises by at most 2 s: pass twice what one row moves as the sensitivity.

A search that spends epsilon on each step and then returns the best scheme it has seen,
without noise, is not covered by its budget: the last choice is a choice too.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from incrowd.arrays import Counts
from incrowd.errors import ParameterError, check_whole
from incrowd.privacy import noise
from incrowd.privacy.randomness import Randomness


def payable(epsilon: float) -> float:
    """The largest multiple of a millionth up to epsilon: what a choice spends and is charged.

    Few digits keep the noise's fractions small enough for 64 bits.
    """
    return math.floor(epsilon * 1e6 * (1 + 1e-12)) / 1e6


def one_sided_noise(count: int, *, sensitivity: int, epsilon: Fraction, bits: Randomness) -> Counts:
    """So many independent X with P[X >= x] = exp(-x epsilon / sensitivity), exactly."""
    check_whole("sensitivity", sensitivity)
    if epsilon <= 0 or sensitivity * epsilon.denominator > 2**52:
        raise ParameterError("epsilon", "be above 0 and have at most six decimals", float(epsilon))
    t = np.full(count, sensitivity * epsilon.denominator, dtype=np.int64)
    return noise.geometric(t, epsilon.numerator, bits)


def select(scores: Counts, *, sensitivity: int, epsilon: Fraction, bits: Randomness) -> int:
    """The place of a candidate with a large score, chosen privately; see the module's claim."""
    drawn = one_sided_noise(len(scores), sensitivity=sensitivity, epsilon=epsilon, bits=bits)
    return int(np.argmax(scores + drawn))
