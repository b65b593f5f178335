"""The exponential mechanism: its law, its range, and scores of any size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from incrowd.arrays import Floats
from incrowd.errors import ParameterError
from incrowd.privacy.randomness import SeededRandomness
from incrowd.privacy.selection import choose

FALSE_ALARM = 1e-6


def law(scores: Sequence[int], epsilon: float) -> Floats:
    weights = np.exp(epsilon * (np.array(scores) - max(scores)))
    result: Floats = weights / weights.sum()
    return result


def accepts(observed: Floats, expected: Floats) -> bool:
    chance = stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(observed) - 1)
    return bool(chance > FALSE_ALARM)


def test_the_law_is_exponential_and_no_other_rate_is_accepted() -> None:
    scores = np.array([0, 60, 120, 180, -40, 200], dtype=np.int64)
    epsilon = Fraction(9, 1000)
    bits = SeededRandomness(5)
    times = 5_000
    choices = [choose(scores, epsilon=epsilon, bits=bits) for _ in range(times)]
    observed = np.bincount(choices, minlength=6).astype(float)
    assert accepts(observed, law(scores.tolist(), 0.009) * times)
    for wrong in (0.009 * 1.3, 0.009 / 1.3):
        assert not accepts(observed, law(scores.tolist(), wrong) * times)


def test_far_candidates_are_named_as_often_as_they_should_be() -> None:
    """Tails are not cut: a gap of 8 / epsilon is named with probability e^-8 each."""
    scores = np.array([80, *[0] * 400], dtype=np.int64)
    bits = SeededRandomness(6)
    times = 1_500
    choices = np.array([choose(scores, epsilon=Fraction(1, 10), bits=bits) for _ in range(times)])
    share = 400 * math.exp(-8) / (1 + 400 * math.exp(-8))
    assert abs((choices > 0).sum() - share * times) < 5 * math.sqrt(share * times)
    assert (choices > 0).sum() > 0


def test_scores_of_any_size_are_compared_exactly() -> None:
    top = 2**61
    scores = np.array([top, top - 3, -top], dtype=np.int64)
    bits = SeededRandomness(7)
    choices = [choose(scores, epsilon=Fraction(123_456_789, 10**9), bits=bits) for _ in range(1000)]
    observed = np.bincount(choices, minlength=3).astype(float)
    expected = law([3, 0], 0.123456789) * 1000
    assert observed[2] == 0
    assert accepts(observed[:2], expected)


def test_losses_span_at_most_epsilon_whatever_a_row_raises() -> None:
    """All raises of four scores by 0 or 1, and by more as a planted fault."""
    scores, epsilon = [3, 0, 5, 5], 0.4
    for raises in product((0, 1), repeat=4):
        losses = np.log(law(np.add(scores, raises).tolist(), epsilon) / law(scores, epsilon))
        assert np.ptp(losses) <= epsilon + 1e-12
    wrong = np.log(law([3, 0, 5, 7], epsilon) / law(scores, epsilon))
    assert np.ptp(wrong) > epsilon + 0.1


def test_nothing_to_choose_from_is_refused() -> None:
    with pytest.raises(ParameterError, match="scores"):
        choose(np.array([], dtype=np.int64), epsilon=Fraction(1), bits=SeededRandomness(1))
    with pytest.raises(ParameterError, match="epsilon"):
        choose(np.array([1]), epsilon=Fraction(0), bits=SeededRandomness(1))
