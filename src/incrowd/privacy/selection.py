"""Choosing among candidates privately: report noisy max, and the exponential mechanism.

:func:`select_candidate` is report noisy max with exact one-sided noise.

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

:func:`choose` is the exponential mechanism. Claim. Let every candidate have a whole-number score
that a row more raises by 0 or 1. Name candidate i with probability proportional to
exp(epsilon score_i). The privacy losses of all outcomes then lie in an interval of length epsilon:
a :class:`~incrowd.privacy.events.BoundedChoice`.

Proof. Let P be the law with the row and Q that without it, Z_P and Z_Q the sums of the weights.
ln P(i) / Q(i) = epsilon (rise of score_i) + ln Z_Q / Z_P, where the rise is 0 or 1 and the second
term is the same for every i.

Candidates may be left out by anything that is public: they then are no part of either law. Drawing
again, without the candidate drawn, until one satisfies a public condition gives the law among those
that satisfy it: whichever was drawn first, the rest of the procedure has that law, by induction.

A search that spends epsilon on each step and then returns the best scheme it has seen,
without noise, is not covered by its budget: the last choice is a choice too.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Counts
from incrowd.errors import ParameterError, check_whole
from incrowd.privacy import discrete_noise
from incrowd.privacy.randomness import Randomness, sample_below


def round_down_epsilon(epsilon: float) -> float:
    """Return the largest multiple of a millionth up to epsilon, which a choice is charged.

    Few digits keep the noise's fractions small enough for 64 bits.
    """
    return math.floor(epsilon * 1e6 * (1 + 1e-12)) / 1e6


def sample_one_sided_noise(
    count: int, *, sensitivity: int, epsilon: Fraction, bits: Randomness
) -> Counts:
    """Draw ``count`` independent X with P[X >= x] = exp(-x epsilon / sensitivity), exactly."""
    check_whole("sensitivity", sensitivity)
    if epsilon <= 0 or sensitivity * epsilon.denominator > 2**52:
        raise ParameterError("epsilon", "be above 0 and have at most six decimals", float(epsilon))
    t = np.full(count, sensitivity * epsilon.denominator, dtype=np.int64)
    return discrete_noise.sample_geometric(t, epsilon.numerator, bits)


def select_candidate(
    scores: Counts, *, sensitivity: int, epsilon: Fraction, bits: Randomness
) -> int:
    """Select privately the place of a candidate with a large score; see the module's claim."""
    noise = sample_one_sided_noise(len(scores), sensitivity=sensitivity, epsilon=epsilon, bits=bits)
    return int(np.argmax(scores + noise))


def choose(scores: Counts, *, epsilon: Fraction, bits: Randomness) -> int:
    """Choose a candidate with probability proportional to exp(epsilon score), exactly.

    A candidate is drawn uniformly and kept with probability exp(-epsilon gap), its gap being what
    it lacks of the best score; the first that is kept is named. No gap is too large to be named.
    """
    if not len(scores):
        raise ParameterError("scores", "hold at least one candidate", [])
    if epsilon <= 0:
        raise ParameterError("epsilon", "be above 0", float(epsilon))
    gaps = int(scores.max()) - scores
    over: npt.NDArray[Any] = gaps * epsilon.numerator
    if int(gaps.max()) * epsilon.numerator >= 2**62:
        over = gaps.astype(object) * epsilon.numerator
    tries = np.full(min(max(len(scores), 64), 4096), len(scores), dtype=np.int64)
    while True:
        candidates = sample_below(tries, bits)
        accepted = discrete_noise.flip_exp(over[candidates], epsilon.denominator, bits)
        if accepted.any():
            return int(candidates[np.argmax(accepted)])
