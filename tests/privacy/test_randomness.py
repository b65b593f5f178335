from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from incrowd.arrays import Words
from incrowd.errors import ParameterError
from incrowd.privacy import randomness
from incrowd.privacy.randomness import (
    SeededRandomness,
    SystemRandomness,
    round_down_rate,
    sample_below,
    sample_binomial,
)

FALSE_ALARM = 1e-6  # each statistical test below fails for a right sampler once in a million runs


def counts(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


class Fixed:
    """Words that a test chooses."""

    private = False

    def __init__(self, words: list[int]) -> None:
        self._words = words

    def draw_words(self, count: int) -> Words:
        words, self._words = self._words[:count], self._words[count:]
        return np.array(words, dtype=np.uint64)


def test_words_are_never_handed_out_twice() -> None:
    stream, again = SeededRandomness(5), SeededRandomness(5)
    parts = np.concatenate([stream.draw_words(3), stream.draw_words(1), stream.draw_words(6)])
    assert np.array_equal(parts, again.draw_words(10))
    assert len(set(SystemRandomness().draw_words(1000).tolist())) == 1000
    assert not np.array_equal(SystemRandomness().draw_words(4), SystemRandomness().draw_words(4))


def test_only_the_systems_bits_are_private() -> None:
    assert SystemRandomness().private
    assert not SeededRandomness(1).private


@pytest.mark.parametrize("beta", [0.1, 0.25, 0.999, 1e-5, 3e-9, 2.0**-64])
def test_the_realized_rate_is_a_multiple_of_two_to_the_minus_64_and_not_above(beta: float) -> None:
    rate = Fraction(round_down_rate(beta))
    assert (rate * 2**64).denominator == 1
    assert rate <= Fraction(beta) < rate + Fraction(1, 2**64)


def test_a_rate_that_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ParameterError):
        round_down_rate(2.0**-65)


def test_the_threshold_is_exact_at_its_edge() -> None:
    edge = 2**62  # beta = 1/4
    assert sample_binomial(counts(4), 0.25, Fixed([edge - 1, edge, 0, 2**64 - 1])).tolist() == [2]


def test_every_row_has_a_bit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the block size, count i gets the words that are its turn, none twice."""
    low, high = 0, 2**64 - 1
    words = [low, high, high, low, low, low, high, low, high, low]
    for block in (1, 2, 3, 4, 7, 10, 100):
        monkeypatch.setattr(randomness, "_BLOCK", block)
        draws = sample_binomial(counts(0, 3, 0, 4, 1, 0, 2, 0), 0.5, Fixed(list(words)))
        assert draws.tolist() == [0, 1, 0, 3, 1, 0, 1, 0]


def chi_square(draws: np.ndarray[tuple[int], np.dtype[np.int64]], n: int, beta: float) -> float:
    """The p-value of draws against Binomial(n, beta), with rare outcomes put together."""
    expected = stats.binom.pmf(np.arange(n + 1), n, beta) * len(draws)
    seen = np.bincount(draws, minlength=n + 1).astype(float)
    common = expected >= 10
    seen = np.append(seen[common], seen[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    return float(stats.chisquare(seen, expected).pvalue)


def test_draws_are_binomial_and_the_test_would_notice_two_per_cent() -> None:
    n, beta, repeats = 60, 0.3, 200_000
    draws = sample_binomial(np.full(repeats, n), beta, SystemRandomness())
    assert chi_square(draws, n, beta) > FALSE_ALARM
    assert chi_square(draws, n, beta * 1.02) < FALSE_ALARM
    off = sample_binomial(np.full(repeats, n), beta * 1.02, SystemRandomness())
    assert chi_square(off, n, beta) < FALSE_ALARM


def test_draws_of_neighboring_counts_are_independent() -> None:
    draws = sample_binomial(np.full(100_000, 20), 0.4, SystemRandomness())
    correlation = float(np.corrcoef(draws[:-1], draws[1:])[0, 1])
    assert abs(correlation) * math.sqrt(len(draws)) < 5


LAST = 2**64 - 1


@pytest.mark.parametrize(
    ("bound", "fair"),
    [
        (1, 2**64), (2, 2**64), (3, 2**64 - 1), (7, 2**64 - 2), (10, 2**64 - 6),
        (2**62, 2**64), (2**62 - 1, 2**64 - 4), (2**62 + 1, 3 * (2**62 + 1)),
        (5 * 2**60, 15 * 2**60), (2**63 - 1, 2**64 - 2),
    ],
)  # fmt: skip
def test_below_takes_the_words_that_every_remainder_has_equally_many_of(
    bound: int, fair: int
) -> None:
    assert fair % bound == 0
    assert sample_below(counts(bound), Fixed([fair - 1])).tolist() == [bound - 1]
    assert sample_below(counts(bound), Fixed([0])).tolist() == [0]
    assert sample_below(counts(bound), Fixed([bound + bound // 2])).tolist() == [bound // 2]
    if fair <= LAST:  # words from there on are drawn again, until one is not
        assert sample_below(counts(bound), Fixed([fair, LAST, fair - 2])).tolist() == [bound - 2]


def test_below_draws_again_for_those_alone_that_must_wait() -> None:
    words = [5, LAST, 8, LAST, 7, LAST, 3]
    assert sample_below(counts(4, 3, 10, 10), Fixed(words)).tolist() == [1, 1, 8, 3]
    assert sample_below(counts(4, 10), Fixed([0, LAST, LAST, 13])).tolist() == [0, 3]  # as 10 asks
    assert sample_below(counts(), Fixed([])).tolist() == []


def evenly(draws: np.ndarray[tuple[int], np.dtype[np.int64]], bound: int, bins: int) -> float:
    """The p-value of draws against the uniform distribution, in equally wide bins."""
    seen = np.bincount(draws // -(-bound // bins), minlength=bins)
    return float(stats.chisquare(seen).pvalue)


@pytest.mark.parametrize(
    ("bound", "bins"),
    [(2, 2), (3, 3), (7, 7), (16, 16), (2**62, 16), (5 * 2**60, 15), (3 * 2**61, 12)],
)
def test_below_is_uniform(bound: int, bins: int) -> None:
    draws = sample_below(np.full(60_000, bound), SystemRandomness())
    assert draws.min() >= 0
    assert draws.max() < bound
    assert evenly(draws, bound, bins) > FALSE_ALARM
    favored = np.where(np.arange(60_000) % 20 == 0, 0, draws)
    assert evenly(favored, bound, bins) < FALSE_ALARM
    if bound in (5 * 2**60, 3 * 2**61):  # as if no word were drawn again
        plain = SystemRandomness().draw_words(60_000) % np.uint64(bound)
        assert evenly(plain.astype(np.int64), bound, bins) < FALSE_ALARM


def test_below_draws_for_each_bound_on_its_own() -> None:
    bounds = np.tile(counts(2, 5, 9), 30_000)
    draws = sample_below(bounds, SystemRandomness()).reshape(-1, 3)
    for at, bound in enumerate((2, 5, 9)):
        assert (
            float(stats.chisquare(np.bincount(draws[:, at], minlength=bound)).pvalue) > FALSE_ALARM
        )
    correlation = float(np.corrcoef(draws[:, 1], draws[:, 2])[0, 1])
    assert abs(correlation) * math.sqrt(len(draws)) < 5
