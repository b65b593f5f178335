"""A choice cuts no tails: a candidate far behind the best has its exact probability.

The law is read from the code: for each number that the uniform draw can return, the candidate that
is named, and the exponent with which it is kept. Scripted bits then show that the coin for a large
exponent comes true exactly if as many coins of probability 1/e do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pytest

from incrowd.arrays import Counts, Floats, Words
from incrowd.privacy import discrete_noise, randomness, selection
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import BoundedChoice
from incrowd.privacy.randomness import Randomness, SeededRandomness

BITS = SeededRandomness(0)


class Choose(Protocol):
    def __call__(self, scores: Counts, *, epsilon: Fraction, bits: Randomness) -> int: ...


def choose_near(cut: float) -> Choose:
    """A planted fault: candidates are left out if they are named with probability e^-cut or so."""

    def choose(scores: Counts, *, epsilon: Fraction, bits: Randomness) -> int:
        near = np.flatnonzero((scores.max() - scores) * float(epsilon) <= cut)
        return int(near[selection.choose(scores[near], epsilon=epsilon, bits=bits)])

    return choose


def read_exponents(choose: Choose, scores: Counts, epsilon: Fraction) -> list[Fraction | None]:
    """For each candidate x, if it is named with probability proportional to e^-x; None if never."""
    result: list[Fraction | None] = [None] * len(scores)
    place, bound = 0, 1
    while place < bound:
        exponents: list[Fraction] = []

        def sample_below(bounds: Counts, bits: Randomness) -> Counts:
            nonlocal bound
            assert not exponents, "a candidate that is drawn and kept is not named"  # noqa: B023
            bound = int(bounds[0])
            assert (bounds == bound).all()
            return np.full(len(bounds), place)  # noqa: B023

        def flip_exp(over: npt.NDArray[Any], under: int, bits: Randomness) -> npt.NDArray[np.bool_]:
            exponents.append(Fraction(int(over[0]), under))  # noqa: B023
            return np.ones(len(over), dtype=bool)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(selection, "sample_below", sample_below)
            patch.setattr(discrete_noise, "flip_exp", flip_exp)
            candidate = choose(scores, epsilon=epsilon, bits=BITS)
        assert result[candidate] is None  # one number for each candidate: uniform
        assert len(exponents) == 1
        result[candidate] = exponents[0]
        place += 1
    return result


@pytest.mark.parametrize(
    ("scores", "epsilon"),
    [
        ([0, 3, 3, -5], "1/3"),
        ([10**4, 0, 9_999, 10**4 - 40], "1"),
        ([10**12, 0, -(10**12)], "0.003214"),
        ([2**61, 0, -(2**61)], "123456789/1000000000"),
    ],
)
def test_every_candidate_is_kept_by_its_whole_gap(scores: list[int], epsilon: str) -> None:
    exact = Fraction(epsilon)
    read = read_exponents(selection.choose, np.array(scores, dtype=np.int64), exact)
    assert read == [(max(scores) - score) * exact for score in scores]


class ScriptedBits:
    """Words that make the far one of two candidates drawn, and so many coins of 1/e come true."""

    private = False

    def __init__(self, coins: int) -> None:
        self._words = self._script(coins)

    def _script(self, coins: int) -> Iterator[int]:
        yield 1  # candidate 1 is drawn, 64 times
        yield 0  # the coin of exp(-0): the first throw, below 0, always ends with true
        for _ in range(coins):
            yield 0  # throw 2 goes on
            yield 1  # throw 3 ends: an odd number
        while True:
            yield 1  # throw 2 ends: false; and candidate 1 is drawn again
            yield 0

    def draw_words(self, count: int) -> Words:
        return np.full(count, next(self._words), dtype=np.uint64)


class EndOfScriptError(Exception):
    """The far candidate was not kept: a second round of draws begins."""


@pytest.mark.parametrize("gap", [1, 5, 40, 300])
def test_a_far_candidate_is_named_if_as_many_coins_come_true_and_not_otherwise(gap: int) -> None:
    """Each coin has the probability 1/e, so that of the candidate, once drawn, is e^-gap."""
    scores = np.array([gap, 0], dtype=np.int64)
    rounds = 0

    def draw_once(bounds: Counts, bits: Randomness) -> Counts:
        nonlocal rounds
        rounds += 1
        if rounds > 1:
            raise EndOfScriptError
        return randomness.sample_below(bounds, bits)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "sample_below", draw_once)
        assert selection.choose(scores, epsilon=Fraction(1), bits=ScriptedBits(gap)) == 1
        rounds = 0
        with pytest.raises(EndOfScriptError):
            selection.choose(scores, epsilon=Fraction(1), bits=ScriptedBits(gap - 1))


def read_law(choose: Choose, scores: Counts, epsilon: Fraction) -> Floats:
    exponents = read_exponents(choose, scores, epsilon)
    weights = np.array([0.0 if x is None else math.exp(-x) for x in exponents])
    result: Floats = weights / weights.sum()
    return result


def find_worst_delta(choose: Choose, epsilon: Fraction, at: float) -> float:
    """The largest exact delta over tables whose scores a row raises by 0 or 1, either way."""
    worst = 0.0
    laws: dict[tuple[int, ...], Floats] = {}

    def law(scores: tuple[int, ...]) -> Floats:
        if scores not in laws:
            laws[scores] = read_law(choose, np.array(scores, dtype=np.int64), epsilon)
        return laws[scores]

    for base in ((0, 0, -24), (0, -1, -24), (0, -11, -25)):
        for raises in product((0, 1), repeat=3):
            more = tuple(score + rise for score, rise in zip(base, raises, strict=True))
            for p, q in ((law(base), law(more)), (law(more), law(base))):
                delta = float(np.maximum(p - math.exp(at) * q * (1 + 1e-12), 0).sum())
                worst = max(worst, delta)
    return worst


@pytest.mark.parametrize("at", [0.0, 0.1, 0.3, 0.5])
def test_the_exact_law_costs_what_is_charged(at: float) -> None:
    """The comparison with the accountant that is made for choices of synthetic rows."""
    charged = Accountant([BoundedChoice(0.5)]).delta(epsilon=at)
    assert find_worst_delta(selection.choose, Fraction(1, 2), at) <= charged + 1e-12


@pytest.mark.parametrize("cut", [5.0, 5.25, 12.0])
def test_cut_tails_would_be_noticed(cut: float) -> None:
    """A row brings a candidate over the cut: its loss is infinite, and no epsilon covers it."""
    charged = Accountant([BoundedChoice(0.5)]).delta(epsilon=0.5)
    faulty = find_worst_delta(choose_near(cut), Fraction(1, 2), 0.5)
    assert faulty > charged + 1e-9
    assert faulty == find_worst_delta(choose_near(cut), Fraction(1, 2), 20.0)
    scores = np.array([60, 0], dtype=np.int64)
    assert read_exponents(choose_near(cut), scores, Fraction(1, 2)) == [0, None]
    assert read_exponents(selection.choose, scores, Fraction(1, 2)) == [0, 30]
