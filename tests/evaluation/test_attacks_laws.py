"""The laws of what is shown of a cell, against sums over all outcomes, term by term."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import comb, exp

import numpy as np
import pytest

from incrowd.arrays import Counts
from incrowd.errors import ParameterError
from incrowd.evaluation.attacks.laws import (
    CoinLaw,
    CountLaw,
    ReleaseLaw,
    SampleLaw,
    law_from_parameters,
)
from incrowd.evaluation.attacks.membership import max_success_of_events, max_success_rate
from incrowd.privacy.counts import build_event_law, build_gaussian_law, build_geometric_law
from incrowd.privacy.events import Coin, Event, GaussianCounts, GeometricCounts, SafeRelease

Outcomes = dict[int, float]


def drawn(n: int, k: int, beta: Fraction) -> Outcomes:
    """How likely each count is shown of n rows, each drawn with beta; 0 stands for none."""
    result: dict[int, Fraction] = {}
    for z in range(n + 1):
        count = z if z >= k else 0
        chance = comb(n, z) * beta**z * (1 - beta) ** (n - z)
        result[count] = result.get(count, Fraction(0)) + chance
    return {z: float(chance) for z, chance in result.items()}


def noisy(n: int, k: int, r: int, weights: dict[int, float]) -> Outcomes:
    """How likely each count is shown of n rows with noise of some weights."""
    if n == 0:
        return {0: 1.0}
    total, result = sum(weights.values()), {0: 0.0}
    for x, weight in weights.items():
        count = n + x if n + x >= r + k else 0
        result[count] = result.get(count, 0.0) + weight / total
    return result


def distance(p: Outcomes, q: Outcomes) -> float:
    return sum(abs(p.get(z, 0.0) - q.get(z, 0.0)) for z in {*p, *q}) / 2


def cases() -> Iterator[tuple[ReleaseLaw, list[Outcomes]]]:
    """Laws, and beside each what is shown of 0, 1, 2, ... rows by brute force."""
    for k, beta in (
        (1, Fraction(1, 2)),
        (3, Fraction(1, 4)),
        (4, Fraction(3, 4)),
        (2, Fraction(9, 10)),
    ):
        yield SampleLaw(k, float(beta)), [drawn(n, k, beta) for n in range(25)]
    for k, r, epsilon in ((1, 2, 1.0), (3, 4, 0.5), (2, 6, 0.1)):
        weights = {x: exp(-epsilon * abs(x)) for x in range(-r, r + 1)}
        law = CountLaw(build_geometric_law(epsilon, r), k)
        yield law, [noisy(n, k, r, weights) for n in range(25)]
    for k, r, variance in ((2, 5, 2.0), (5, 3, 9.0)):
        weights = {x: exp(-(x**2) / (2 * variance)) for x in range(-r, r + 1)}
        yield (
            CountLaw(build_gaussian_law(variance, r), k),
            [noisy(n, k, r, weights) for n in range(25)],
        )


def one(*numbers: int) -> Counts:
    return np.array(numbers, dtype=np.int64)


@pytest.mark.parametrize(("law", "outcomes"), list(cases()))
def test_the_distance_is_that_of_all_outcomes(law: ReleaseLaw, outcomes: list[Outcomes]) -> None:
    for n in range(1, len(outcomes)):
        p, q = outcomes[n], outcomes[n - 1]
        assert law.total_variation(one(n))[0] == pytest.approx(distance(p, q), abs=1e-12)
        assert (law.total_variation(one(n))[0] > 0) == (max(p) > 0)


@pytest.mark.parametrize(("law", "outcomes"), list(cases()))
def test_no_other_cut_does_better(law: ReleaseLaw, outcomes: list[Outcomes]) -> None:
    """Says "in" from any other count on, the attacker is right less often, or as often."""
    for n in range(1, len(outcomes)):
        p, q = outcomes[n], outcomes[n - 1]
        gains = [
            sum(p.get(z, 0.0) - q.get(z, 0.0) for z in {*p, *q} if z >= cut)
            for cut in range(1, max(*p, *q, 1) + 2)
        ]
        least = int(law.decision_threshold(one(n))[0])
        gain = gains[least - 1] if least <= len(gains) else 0.0
        assert gain == pytest.approx(max(gains), abs=1e-12)


@pytest.mark.parametrize(("law", "outcomes"), list(cases()))
def test_chances_and_what_is_possible(law: ReleaseLaw, outcomes: list[Outcomes]) -> None:
    for n, p in enumerate(outcomes):
        counts = one(*range(max(p) + 4))
        possible = [p.get(int(z), 0.0) > 0 for z in counts]
        assert law.allows_shown(np.full(len(counts), n), counts).tolist() == possible
        for cut in range(int(law.decision_threshold(one(n))[0]), max(p) + 3):
            expected = sum(chance for z, chance in p.items() if z >= cut)
            assert law.tail_probability(one(n), one(cut))[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("law", "outcomes"), list(cases()))
def test_draws_have_the_law(law: ReleaseLaw, outcomes: list[Outcomes]) -> None:
    """Of 20,000 draws each share is off by less than 0.025 [1e-8 for a random seed]."""
    rng = np.random.default_rng(1)
    for n in (0, 1, 5, 11, 24):
        counts = law.draw_rows(np.full(20_000, n), rng)
        assert law.allows_shown(np.full(20_000, n), counts).all()
        for z, chance in outcomes[n].items():
            assert (counts == z).mean() == pytest.approx(chance, abs=0.025)


def best(law: ReleaseLaw, most_rows: int = 3000) -> float:
    return float((1 + law.total_variation(np.arange(1, most_rows))).max() / 2)


def test_geometric_counts_attain_what_epsilon_allows() -> None:
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        event = GeometricCounts(round(20 / epsilon), epsilon)
        noise = build_event_law(event)
        law = CountLaw(noise, 5)
        allowed = max_success_rate(epsilon, noise.min_delta)
        assert best(law) <= allowed
        assert best(law) == pytest.approx(exp(epsilon) / (1 + exp(epsilon)), rel=1e-6)
        assert best(law) == pytest.approx(allowed, rel=1e-6)
        # A large cell is shown for certain; one below the threshold seldom, and tells less.
        n = one(2 * event.r + 5, event.r + 5, event.r + 4, 5, 4)
        each = law.total_variation(n)
        assert each[0] == each[1] > each[2] > each[3] > each[4] == 0


@pytest.mark.parametrize(
    ("event", "law"),
    [
        (SafeRelease(20, 0.1), SampleLaw(20, 0.1)),
        (SafeRelease(3, 0.5), SampleLaw(3, 0.5)),
        (SafeRelease(60, 0.85), SampleLaw(60, 0.85)),
        (GeometricCounts(12, 1.0), CountLaw(build_geometric_law(1.0, 12), 2)),
        (GaussianCounts(15, 9.0), CountLaw(build_gaussian_law(9.0, 15), 5)),
    ],
)
def test_what_the_profile_allows_is_attained_and_not_passed(event: Event, law: ReleaseLaw) -> None:
    allowed = max_success_of_events([event])
    assert allowed is not None
    assert best(law) <= allowed
    assert best(law) == pytest.approx(allowed, rel=1e-9)


def test_a_coin_is_known_and_averaged() -> None:
    event = Coin(GeometricCounts(3, 1.0), GeometricCounts(4, 1.0), 0.25)
    parameters: dict[str, float | str] = {
        "k": 2.0,
        "noise": "geometric",
        "noise_epsilon": 1.0,
        "coin": 0.25,
        "coin_r": 4.0,
    }
    sides = [CountLaw(build_geometric_law(1.0, r), 2) for r in (3, 4)]
    n = np.arange(1, 40)
    mean = 0.25 * sides[0].total_variation(n) + 0.75 * sides[1].total_variation(n)
    for r, side in zip((3.0, 4.0), sides, strict=True):
        law = law_from_parameters({**parameters, "r": r})
        assert isinstance(law, CoinLaw)
        assert law.total_variation(n) == pytest.approx(mean)
        assert law.decision_threshold(n).tolist() == side.decision_threshold(n).tolist()
        assert law.tail_probability(n, law.decision_threshold(n)) == pytest.approx(
            side.tail_probability(n, side.decision_threshold(n))
        )
        counts = np.full(len(n), 6)
        assert law.allows_shown(n, counts).tolist() == side.allows_shown(n, counts).tolist()
    allowed = max_success_of_events([event])
    assert allowed is not None
    assert best(law) == pytest.approx(allowed, rel=1e-9)
    # The side with the smaller bound alone is told more easily than both on average.
    assert best(sides[0]) > allowed


def test_laws_are_read_from_what_certificates_tell() -> None:
    assert law_from_parameters({"k": 20.0, "beta": 0.1, "search_epsilon": 0.05}) == SampleLaw(
        20, 0.1
    )
    law = law_from_parameters({"k": 5.0, "noise": "gaussian", "r": 15.0, "noise_variance": 9.0})
    assert law.total_variation(one(40))[0] == pytest.approx(build_gaussian_law(9.0, 15).tail[0])
    wrongs: tuple[dict[str, float | str], ...] = (
        {"k": 5.0},
        {"k": 5.0, "noise": "laplace", "epsilon": 1.0},
    )
    for wrong in wrongs:
        with pytest.raises(ParameterError, match="safe release"):
            law_from_parameters(wrong)
