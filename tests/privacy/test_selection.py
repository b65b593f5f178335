"""Report noisy max: the law of its noise, and the exact probability of every choice."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from incrowd.arrays import Counts
from incrowd.errors import ParameterError
from incrowd.privacy import selection
from incrowd.privacy.randomness import Randomness, SeededRandomness
from incrowd.privacy.selection import sample_one_sided_noise, select_candidate

FALSE_ALARM = 1e-6
HALF = Fraction(1, 2)
Scores = tuple[int, ...]
Law = list[Fraction]
Mechanism = Callable[[Scores], Law]


def fits(draws: Counts, rate: float) -> bool:
    """Whether a chi-square test accepts P[X >= x] = exp(-x rate); about 40 equal groups."""
    edges = np.unique(np.ceil(-np.log1p(-np.arange(40) / 40) / rate).astype(np.int64))
    tails = np.append(np.exp(-edges * rate), 0.0)
    request = -np.diff(tails) * len(draws)
    seen = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=len(edges) + 1)
    if seen[0]:
        return False  # below 0
    chance = stats.chi2.sf(((seen[1:] - request) ** 2 / request).sum(), len(request) - 1)
    return bool(chance > FALSE_ALARM)


@pytest.mark.parametrize(
    ("sensitivity", "epsilon"),
    [(1, "1"), (1, "3/2"), (3, "1/10"), (7, "2"), (1_605_632, "0.05"), (1_605_632, "0.034999")],
)
def test_noise_has_its_law_and_no_other(sensitivity: int, epsilon: str) -> None:
    exact = Fraction(epsilon)
    noise = sample_one_sided_noise(
        200_000, sensitivity=sensitivity, epsilon=exact, bits=SeededRandomness(sensitivity)
    )
    rate = float(exact) / sensitivity
    assert fits(noise, rate)
    assert not fits(noise, rate * 1.03)
    assert not fits(noise, rate / 1.03)
    assert not fits(noise + max(1, int(0.05 / rate)), rate)


def test_draws_are_independent_of_each_other() -> None:
    noise = sample_one_sided_noise(
        200_000, sensitivity=10, epsilon=Fraction(1), bits=SeededRandomness(1)
    ).astype(float)
    for lag in (1, 2, 7):
        correlation = float(np.corrcoef(noise[:-lag], noise[lag:])[0, 1])
        assert abs(correlation) * math.sqrt(200_000) < 5


def law(scores: Sequence[int], q: Fraction) -> Law:
    """The probability of each candidate where P[X >= x] = q**x, exactly.

    With noise x candidate i beats j if X_j < g_j + x, g_j = s_i - s_j, plus 1 where j comes
    later. Nothing is won while some g_j + x <= 0; from then on the product of 1 - q**(g_j + x)
    is a polynomial in q**x, and each of its terms a geometric series.
    """
    result = []
    for i, score in enumerate(scores):
        gaps = [score - s + (i < j) for j, s in enumerate(scores) if j != i]
        start = max([0, *(-gap for gap in gaps)])
        terms = [Fraction(1)]
        for gap in gaps:
            share = q ** (gap + start)
            longer, shifted = [*terms, Fraction(0)], [Fraction(0), *terms]
            terms = [a - share * b for a, b in zip(longer, shifted, strict=True)]
        series = (term * (1 - q) / (1 - q ** (n + 1)) for n, term in enumerate(terms))
        result.append(q**start * sum(series, Fraction(0)))
    return result


class Fixed:
    """Noise that is given instead of drawn."""

    def __init__(self, noise: Sequence[int]) -> None:
        self._noise = np.array(noise, dtype=np.int64)

    def __call__(
        self, count: int, *, sensitivity: int, epsilon: Fraction, bits: Randomness
    ) -> Counts:
        assert count == len(self._noise)
        return self._noise


BITS = SeededRandomness(0)


def chosen(scores: Sequence[int]) -> int:
    return select_candidate(
        np.array(scores, dtype=np.int64), sensitivity=1, epsilon=HALF, bits=BITS
    )


@pytest.mark.parametrize("scores", [(0, 0), (3, 1), (0, 4), (2, 2, 2), (1, 3, 0), (0, 0, 2)])
def test_enumeration_of_the_noise_gives_the_same_probabilities(
    scores: Scores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What select names for every noise up to 15 a candidate; the rest is smaller than 2**-13."""
    reach = 15
    enumerated = [Fraction(0)] * len(scores)
    for noise in itertools.product(range(reach), repeat=len(scores)):
        monkeypatch.setattr(selection, "sample_one_sided_noise", Fixed(noise))
        enumerated[chosen(scores)] += HALF ** (sum(noise) + len(scores))
    missing = 1 - sum(enumerated)
    assert missing <= len(scores) * HALF**reach
    exact = law(scores, HALF)
    assert sum(exact) == 1
    for seen, true in zip(enumerated, exact, strict=True):
        assert seen <= true <= seen + missing


@given(
    pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=6),
)
def test_the_first_of_the_largest_sums_is_named(pairs: list[tuple[int, int]]) -> None:
    scores, noise = zip(*pairs, strict=True)
    sums = [score + more for score, more in pairs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "sample_one_sided_noise", Fixed(noise))
        assert chosen(scores) == sums.index(max(sums))


def chi_square(observed: npt.NDArray[np.int64], expected_law: Law, draws: int) -> float:
    expected = np.array([float(p) * draws for p in expected_law])
    return float(stats.chisquare(observed, expected).pvalue)


def test_choices_have_the_exact_probabilities_and_no_others() -> None:
    scores, sensitivity, draws = (8, 0, 10, 4), 3, 3_000
    bits = SeededRandomness(4)
    seen = np.zeros(4, dtype=np.int64)
    for _ in range(draws):
        seen[
            select_candidate(
                np.array(scores), sensitivity=sensitivity, epsilon=Fraction(1), bits=bits
            )
        ] += 1
    q = Fraction(math.exp(-1 / 3))
    assert chi_square(seen, law(scores, q), draws) > FALSE_ALARM
    assert chi_square(seen, law(scores, q * q), draws) < FALSE_ALARM  # half the noise
    assert chi_square(seen, law((8, 0, 9, 4), q), draws) < FALSE_ALARM


SENSITIVITY = 2
GRID = range(-3, 4)


def neighbors(count: int, low: int) -> Iterator[tuple[Scores, Scores]]:
    """Pairs of scores where the second is up to SENSITIVITY above, from ``low``, in each place.

    Only differences of scores matter, so the first candidate's score is always 0.
    """
    for rest in itertools.product(GRID, repeat=count - 1):
        base = (0, *rest)
        for rise in itertools.product(range(low, SENSITIVITY + 1), repeat=count):
            yield base, tuple(s + r for s, r in zip(base, rise, strict=True))


def worst_ratio(mechanism: Mechanism, count: int, low: int = 0) -> Fraction | float:
    """The largest ratio of the probabilities of one candidate on neighbors, either way."""
    laws: dict[Scores, Law] = {}

    def of(scores: Scores) -> Law:
        bare = tuple(score - scores[0] for score in scores)
        if bare not in laws:
            laws[bare] = mechanism(bare)
        return laws[bare]

    worst: Fraction | float = Fraction(0)
    for first, other in neighbors(count, low):
        for p, q in zip(of(first), of(other), strict=True):
            if p == q:
                continue
            worst = max(worst, p / q if q else math.inf, q / p if p else math.inf)
    return worst


def noisy_max(q: Fraction) -> Mechanism:
    return lambda scores: law(scores, q)


# q stands for exp(-epsilon / SENSITIVITY), so e^epsilon is q**-2.
@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(9, 10), Fraction(1, 20)])
@pytest.mark.parametrize("count", [2, 3])
def test_no_probability_changes_by_more_than_e_to_the_epsilon_and_one_does(
    count: int, q: Fraction
) -> None:
    assert worst_ratio(noisy_max(q), count) == q**-SENSITIVITY


def test_four_candidates_stay_within_epsilon_as_well() -> None:
    q = Fraction(4, 5)
    draw = np.random.default_rng(1)
    for _ in range(1500):
        base = tuple(int(x) for x in draw.integers(-4, 5, 4))
        more = tuple(int(x) for x in np.array(base) + draw.integers(0, SENSITIVITY + 1, 4))
        for p, r in zip(law(base, q), law(more, q), strict=True):
            assert q**SENSITIVITY <= p / r <= q**-SENSITIVITY


@pytest.mark.parametrize("count", [2, 3])
def test_half_the_sensitivity_is_not_private(count: int) -> None:
    q = Fraction(9, 10)
    assert worst_ratio(noisy_max(q * q), count) == q ** (-2 * SENSITIVITY)


@pytest.mark.parametrize("count", [2, 3])
def test_scores_that_move_both_ways_need_twice_the_noise(count: int) -> None:
    q = Fraction(9, 10)
    ratio = worst_ratio(noisy_max(q), count, low=-SENSITIVITY)
    assert ratio > q**-SENSITIVITY
    assert ratio == q ** (-2 * SENSITIVITY)


def test_the_best_without_noise_is_not_private() -> None:
    def plain(scores: Scores) -> Law:
        best = scores.index(max(scores))
        return [Fraction(at == best) for at in range(len(scores))]

    assert worst_ratio(plain, 2) == math.inf


def best_seen(q: Fraction, steps: int) -> Mechanism:
    """So many private choices, then the best of those chosen, without noise."""

    def mechanism(scores: Scores) -> Law:
        each = law(scores, q)
        order = sorted(range(len(scores)), key=lambda at: (scores[at], -at))
        result, below = [Fraction(0)] * len(scores), Fraction(0)
        for at in order:  # the best seen is at, if all chosen are at or worse, not all worse
            result[at] = (below + each[at]) ** steps - below**steps
            below += each[at]
        return result

    return mechanism


@pytest.mark.parametrize("count", [2, 3])
def test_the_best_of_several_private_choices_is_not_covered_by_their_sum(count: int) -> None:
    """The known pitfall: every step is paid for, the last choice is not."""
    q, steps = Fraction(19, 20), 2
    paid = q ** (-SENSITIVITY * steps)
    assert worst_ratio(best_seen(q, 1), count) == q**-SENSITIVITY
    assert worst_ratio(best_seen(q, steps), count) > paid


def test_thresholds_below_zero_are_met_by_any_noise() -> None:
    """A candidate that leads by more than the sensitivity loses no more than e^-epsilon either."""
    q = Fraction(1, 3)
    for lead in range(12):
        for rise in range(SENSITIVITY + 1):
            ahead, behind = law((lead, 0), q), law((lead, rise), q)
            assert behind[0] >= ahead[0] * q**SENSITIVITY
            assert ahead[1] >= behind[1] * q**SENSITIVITY


@pytest.mark.parametrize("sensitivity", [0, -1])
def test_a_sensitivity_below_one_is_refused(sensitivity: int) -> None:
    with pytest.raises(ParameterError, match="'sensitivity'"):
        sample_one_sided_noise(3, sensitivity=sensitivity, epsilon=HALF, bits=BITS)


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1, 2)])
def test_an_epsilon_of_zero_is_refused(epsilon: Fraction) -> None:
    with pytest.raises(ParameterError, match="'epsilon' parameter must be above 0"):
        sample_one_sided_noise(3, sensitivity=1, epsilon=epsilon, bits=BITS)
