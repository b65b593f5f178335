from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from incrowd.errors import ParameterError
from incrowd.privacy import randomness
from incrowd.privacy.randomness import SeededRandomness, SystemRandomness, realised, thinned

FALSE_ALARM = 1e-6  # each statistical test below fails for a right sampler once in a million runs


def counts(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


class Fixed:
    """Words that a test chooses."""

    private = False

    def __init__(self, words: list[int]) -> None:
        self._words = words

    def words(self, count: int) -> randomness.Words:
        taken, self._words = self._words[:count], self._words[count:]
        return np.array(taken, dtype=np.uint64)


def test_words_are_never_handed_out_twice() -> None:
    stream, again = SeededRandomness(5), SeededRandomness(5)
    parts = np.concatenate([stream.words(3), stream.words(1), stream.words(6)])
    assert np.array_equal(parts, again.words(10))
    assert len(set(SystemRandomness().words(1000).tolist())) == 1000
    assert not np.array_equal(SystemRandomness().words(4), SystemRandomness().words(4))


def test_only_the_systems_bits_are_private() -> None:
    assert SystemRandomness().private
    assert not SeededRandomness(1).private


@pytest.mark.parametrize("beta", [0.1, 0.25, 0.999, 1e-5, 3e-9, 2.0**-64])
def test_the_realised_rate_is_a_multiple_of_two_to_the_minus_64_and_not_above(beta: float) -> None:
    got = Fraction(realised(beta))
    assert (got * 2**64).denominator == 1
    assert got <= Fraction(beta) < got + Fraction(1, 2**64)


def test_a_rate_that_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ParameterError):
        realised(2.0**-65)


def test_the_threshold_is_exact_at_its_edge() -> None:
    edge = 2**62  # beta = 1/4
    assert thinned(counts(4), 0.25, Fixed([edge - 1, edge, 0, 2**64 - 1])).tolist() == [2]


def test_every_row_has_a_bit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the block size, count i gets the words that are its turn, none twice."""
    low, high = 0, 2**64 - 1
    words = [low, high, high, low, low, low, high, low, high, low]
    for block in (1, 2, 3, 4, 7, 10, 100):
        monkeypatch.setattr(randomness, "_BLOCK", block)
        got = thinned(counts(0, 3, 0, 4, 1, 0, 2, 0), 0.5, Fixed(list(words)))
        assert got.tolist() == [0, 1, 0, 3, 1, 0, 1, 0]


def chi_square(drawn: np.ndarray[tuple[int], np.dtype[np.int64]], n: int, beta: float) -> float:
    """The p-value of draws against Binomial(n, beta), with rare outcomes put together."""
    expected = stats.binom.pmf(np.arange(n + 1), n, beta) * len(drawn)
    seen = np.bincount(drawn, minlength=n + 1).astype(float)
    common = expected >= 10
    seen = np.append(seen[common], seen[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    return float(stats.chisquare(seen, expected).pvalue)


def test_draws_are_binomial_and_the_test_would_notice_two_per_cent() -> None:
    n, beta, repeats = 60, 0.3, 200_000
    drawn = thinned(np.full(repeats, n), beta, SystemRandomness())
    assert chi_square(drawn, n, beta) > FALSE_ALARM
    assert chi_square(drawn, n, beta * 1.02) < FALSE_ALARM
    off = thinned(np.full(repeats, n), beta * 1.02, SystemRandomness())
    assert chi_square(off, n, beta) < FALSE_ALARM


def test_draws_of_neighbouring_counts_are_independent() -> None:
    drawn = thinned(np.full(100_000, 20), 0.4, SystemRandomness())
    correlation = float(np.corrcoef(drawn[:-1], drawn[1:])[0, 1])
    assert abs(correlation) * math.sqrt(len(drawn)) < 5
