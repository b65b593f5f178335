"""What is accounted is the law that is drawn, to the last digit: against sums of sixty digits.

Noise is drawn with the decimal that epsilon is written as. The float that stands for it is a binary
number, a little larger or smaller. Delta must not be reported below the truth by either reading of
the epsilon that it is asked at.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from incrowd.privacy.accountant import Accountant, BasicAccountant
from incrowd.privacy.events import (
    Coin,
    Composition,
    Event,
    GaussianCounts,
    GeometricCounts,
    Mechanism,
    Selection,
)
from incrowd.privacy.presentation import read_as_decimal
from incrowd.privacy.split import split_for_counts

mp = mpmath.mpf
EPSILONS = [*(i / 100 for i in range(1, 200, 3)), 0.7, 2.3, 3.98, 7.1, 12.34, 0.000007, 0.123457]


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    with mpmath.workdps(60):
        yield


def exact(number: Fraction) -> Any:
    return mp(number.numerator) / number.denominator


def near(epsilon: float) -> list[float]:
    """A float and those beside it."""
    below, above = [epsilon], [epsilon]
    for _ in range(3):
        below.append(math.nextafter(below[-1], 0.0))
        above.append(math.nextafter(above[-1], math.inf))
    return [*below, *above[1:]]


def law(event: GeometricCounts | GaussianCounts) -> dict[int, Any]:
    """What is drawn, by the decimal."""
    if isinstance(event, GeometricCounts):
        rate = exact(read_as_decimal(event.epsilon))
        weights = {x: mpmath.exp(-rate * abs(x)) for x in range(-event.r, event.r + 1)}
    else:
        spread = 2 * exact(read_as_decimal(event.variance))
        weights = {x: mpmath.exp(-mp(x * x) / spread) for x in range(-event.r, event.r + 1)}
    total = mpmath.fsum(weights.values())
    return {x: weight / total for x, weight in weights.items()}


def divergence(p: dict[Any, Any], q: dict[Any, Any], x: Any) -> Any:
    grown = mpmath.exp(x)
    return mpmath.fsum(max(p[outcome] - grown * q.get(outcome, mp(0)), mp(0)) for outcome in p)


def cell(event: GeometricCounts | GaussianCounts, n: int, k: int) -> dict[int, Any]:
    """What a cell of n rows shows; 0 stands for nothing."""
    result: dict[int, Any] = {}
    for noise, chance in law(event).items():
        seen = n + noise if n + noise >= event.r + k else 0
        result[seen] = result.get(seen, mp(0)) + chance
    return result


def readings(x: float) -> tuple[Any, Any]:
    return exact(Fraction(x)), exact(read_as_decimal(x))


@pytest.mark.parametrize("r", [1, 2, 7, 15, 60])
def test_no_cell_is_reported_below_the_truth_at_its_own_epsilon(r: int) -> None:
    """By the formula of the claim, which the next test holds against cells."""
    for epsilon in EPSILONS:
        event = GeometricCounts(r, epsilon)
        p = law(event)
        inside = mpmath.fsum(p[x] for x in range(1 - r, 1))
        accountant = Accountant(event)
        for x in near(epsilon):
            result = accountant.delta(epsilon=x)
            for reading in readings(x):
                gap = max(-mpmath.expm1(reading - exact(read_as_decimal(epsilon))), mp(0))
                assert p[r] + gap * inside <= result, (epsilon, x)
            assert result <= (p[r] + mp("4e-15") * max(epsilon, 1)) * (1 + mp("1e-11"))


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("r", [1, 3, 9])
@pytest.mark.parametrize("epsilon", [0.7, 0.9, 1.1, 2.3, 3.98, 0.123457])
def test_no_cell_of_any_size_and_in_neither_direction(epsilon: float, r: int, k: int) -> None:
    event = GeometricCounts(r, epsilon)
    accountant = Accountant(event)
    for n in {1, k, r + k, 2 * r + k - 1, 2 * r + k, 2 * r + k + 1}:
        with_row, without_row = cell(event, n, k), cell(event, n - 1, k) if n > 1 else {0: mp(1)}
        for x in near(epsilon):
            result = accountant.delta(epsilon=x)
            for reading in readings(x):
                assert divergence(with_row, without_row, reading) <= result, (n, x)
                assert divergence(without_row, with_row, reading) <= result, (n, x)


@pytest.mark.parametrize("variance", [0.3, 1.7, 46.1, 2.345])
def test_gaussian_counts_at_every_loss(variance: float) -> None:
    event = GaussianCounts(6, variance)
    p = law(event)
    moved = {x + 1: chance for x, chance in p.items()}
    accountant = Accountant(event)
    for j in range(6):
        for x in near((1 + 2 * j) / (2 * variance)):
            for reading in readings(x):
                assert divergence(p, moved, reading) <= accountant.delta(epsilon=x), (j, x)


@pytest.mark.parametrize(
    ("chosen", "epsilon"),
    [((0.1,), 0.9), ((0.035,), 0.665), ((0.05,), 0.95), ((0.1, 0.2), 0.4), ((0.07,), 0.63)],
)
def test_choices_and_counts_at_the_sum_of_their_epsilons(
    chosen: tuple[float, ...], epsilon: float
) -> None:
    """Choices at their worst are randomized responses, of the decimals that they are drawn with."""
    event = GeometricCounts(40, epsilon)
    p: dict[Any, Any] = dict(law(event))
    q: dict[Any, Any] = {x + 1: chance for x, chance in p.items()}
    for choice_epsilon in chosen:
        yes = 1 / (1 + mpmath.exp(-exact(read_as_decimal(choice_epsilon))))
        p = {(x, sign): c * (yes if sign else 1 - yes) for x, c in p.items() for sign in (0, 1)}
        q = {(x, sign): c * (1 - yes if sign else yes) for x, c in q.items() for sign in (0, 1)}
    accountant = Accountant([*map(Selection, chosen), event])
    total = float(sum(map(read_as_decimal, (*chosen, epsilon))))
    for x in near(total):
        result = accountant.delta(epsilon=x)
        for reading in readings(x):
            assert divergence(p, q, reading) <= result, x
    least = law(event)[event.r]  # nothing but a rounding is added
    assert accountant.delta(epsilon=total) <= least * (1 + mp("1e-11")) + mp("1e-15")


def test_a_coin_at_its_epsilon() -> None:
    for epsilon in (0.7, 1.1, 3.98):
        coin = Coin(GeometricCounts(9, epsilon), GeometricCounts(10, epsilon), 0.375)
        less, more = law(GeometricCounts(9, epsilon)), law(GeometricCounts(10, epsilon))
        p = {**{(0, x): 3 * c / 8 for x, c in less.items()},
             **{(1, x): 5 * c / 8 for x, c in more.items()}}  # fmt: skip
        q = {(side, x + 1): c for (side, x), c in p.items()}
        for x in near(epsilon):
            for reading in readings(x):
                assert divergence(p, q, reading) <= Accountant(coin).delta(epsilon=x), x


def test_decimals_add_up_as_people_expect() -> None:
    """Three times 0.1 is 0.3, and pure events cost no delta at the sum of their epsilons."""
    three = Accountant([Selection(0.1)] * 3)
    assert three.epsilon(delta=0.0) == 0.3
    assert three.delta(epsilon=0.3) == 0.0
    assert three.delta(epsilon=math.nextafter(0.3, 0.0)) > 0.0
    for epsilon in EPSILONS:
        assert Accountant(Selection(epsilon)).epsilon(delta=0.0) == epsilon
        assert Accountant(Selection(epsilon)).delta(epsilon=epsilon) == 0.0
        assert BasicAccountant(Mechanism(epsilon, 1e-6)).epsilon(delta=1e-6) == epsilon
        assert Accountant(Mechanism(epsilon, 1e-6)).delta(epsilon=epsilon) == 1e-6


def test_epsilon_and_delta_agree_to_the_last_digit() -> None:
    draw = random.Random(3)
    for _ in range(60):
        chosen = [Selection(round(draw.uniform(0.01, 0.5), 6)) for _ in range(draw.randrange(3))]
        events: list[Event] = [*chosen, GeometricCounts(30, round(draw.uniform(0.3, 3), 6))]
        accountant = Accountant(Composition(events))
        fixed_delta = accountant.delta(epsilon=50.0)
        for delta in (
            fixed_delta,
            fixed_delta * (1 + 1e-15),
            fixed_delta + 1e-17,
            fixed_delta + 1e-9,
        ):
            assert accountant.delta(epsilon=accountant.epsilon(delta=delta)) <= delta


@pytest.mark.parametrize("delta", [1e-6, 1e-9, 1e-13, 1e-17, 1e-30])
@pytest.mark.parametrize("epsilon", [0.7, 1.2, 2.3, 3.98])
def test_what_is_settled_holds_by_either_reading(epsilon: float, delta: float) -> None:
    """Of these the binary number is the smaller one."""
    assert Fraction(epsilon) < read_as_decimal(epsilon)
    split = split_for_counts(epsilon=epsilon, delta=delta)
    result = mp(0)
    sides = [(1.0, split.draws[0])]
    if isinstance(split.event, Coin):
        chance = split.event.chance
        sides = list(zip((chance, 1 - chance), split.draws, strict=True))
    for share, event in sides:
        assert isinstance(event, GeometricCounts)
        p = law(event)
        q = {x + 1: c for x, c in p.items()}
        result += share * divergence(p, q, exact(Fraction(epsilon)))
    assert result <= delta
