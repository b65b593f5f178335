"""Counts with bounded noise: the law, its cost against enumerations of many digits, the draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.noise_law import is_drawn_from

from incrowd.arrays import Floats
from incrowd.errors import ParameterError
from incrowd.privacy.accountant import Accountant, BasicAccountant
from incrowd.privacy.counts import (
    NoiseLaw,
    build_gaussian_law,
    build_geometric_law,
    find_smallest_reach,
    sample_gaussian_noise,
    sample_geometric_noise,
)
from incrowd.privacy.events import (
    Coin,
    Composition,
    Event,
    GaussianCounts,
    GeometricCounts,
    SampledEvent,
    Selection,
    describe_event,
    parse_event,
    serialize_event,
)
from incrowd.privacy.randomness import SeededRandomness

Weights = dict[int, mpmath.mpf]


def exactly(event: GeometricCounts | GaussianCounts) -> Weights:
    """The law to fifty digits."""
    if isinstance(event, GeometricCounts):
        power: Callable[[int], mpmath.mpf] = lambda x: -mpmath.mpf(repr(event.epsilon)) * abs(x)  # noqa: E731
    else:
        power = lambda x: -mpmath.mpf(x * x) / (2 * mpmath.mpf(repr(event.variance)))  # noqa: E731
    weights = {x: mpmath.exp(power(x)) for x in range(-event.r, event.r + 1)}
    total = sum(weights.values())
    return {x: value / total for x, value in weights.items()}


def shown(event: GeometricCounts | GaussianCounts, n: int, k: int, threshold: int) -> Weights:
    """The distribution of what a cell of n rows shows; 0 stands for nothing."""
    result: Weights = {}
    for x, chance in exactly(event).items() if n else ():
        seen = n + x if n + x >= threshold else 0
        result[seen] = result.get(seen, mpmath.mpf(0)) + chance
    return result or {0: mpmath.mpf(1)}


def divergence(first: Weights, second: Weights, epsilon: float) -> float:
    grown = mpmath.exp(mpmath.mpf(repr(epsilon)))
    return float(sum(max(p - grown * second.get(x, 0), 0) for x, p in first.items()))


EVENTS: list[GeometricCounts | GaussianCounts] = [
    GeometricCounts(1, 0.7), GeometricCounts(5, 1.0), GeometricCounts(9, 0.31),
    GaussianCounts(4, 2.5), GaussianCounts(8, 9.125), GaussianCounts(1, 0.2),
]  # fmt: skip


@pytest.mark.parametrize("event", EVENTS, ids=str)
@pytest.mark.parametrize("k", [1, 2, 5])
def test_no_cell_tells_more_than_the_profile_and_a_large_one_tells_all_of_it(
    event: GeometricCounts | GaussianCounts, k: int
) -> None:
    with mpmath.workdps(50):
        for epsilon in (0.0, 0.05, 0.31, 0.7, 1.0, 1.5):
            result = Accountant(event).delta(epsilon=epsilon)
            worst = 0.0
            for n in range(3 * event.r + k + 2):
                less, more = (shown(event, m, k, event.r + k) for m in (n, n + 1))
                true = max(divergence(less, more, epsilon), divergence(more, less, epsilon))
                assert true <= result
                worst = max(worst, true)
            assert worst == pytest.approx(result, rel=1e-10)


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_every_cell_that_is_shown_has_k_rows(event: GeometricCounts | GaussianCounts) -> None:
    for k in (1, 3):
        for n in range(k):
            assert set(shown(event, n, k, event.r + k)) == {0}
        assert len(shown(event, k, k, event.r + k)) > 1


def test_mistakes_would_be_seen() -> None:
    """A reach too small, a clamp, half the ratio, a threshold too low or in the wrong place."""
    with mpmath.workdps(50):
        event, k = GeometricCounts(14, 1.0), 5
        promised = Accountant(event).delta(epsilon=1.0)
        law = exactly(event)
        assert Accountant(GeometricCounts(13, 1.0)).delta(epsilon=1.0) > 2 * promised
        clamped = {x: p for x, p in exactly(GeometricCounts(60, 1.0)).items() if abs(x) < 14}
        clamped[14] = clamped[-14] = (1 - sum(clamped.values())) / 2
        assert float(clamped[14]) > 1.5 * promised
        assert Accountant(event).delta(epsilon=0.5) > 0.1  # as if half of epsilon were enough
        low = shown(event, k - 1, k, event.r + k - 1)
        assert len(low) > 1  # a cell of k - 1 rows would be shown
        wrong = [shown(event, n, k, event.r + 1) if n >= k else {0: mpmath.mpf(1)} for n in (4, 5)]
        assert divergence(wrong[1], wrong[0], 1.0) == pytest.approx(3.3e-5, rel=0.02)
        assert float(law[14]) == pytest.approx(3.84264e-7, rel=1e-5)


def test_the_smallest_reach_is_the_smallest() -> None:
    assert [find_smallest_reach(epsilon, 1e-6) for epsilon in (0.5, 1.0, 2.0)] == [25, 14, 7]


@given(st.floats(0.01, 5.0), st.floats(1e-12, 0.3))
def test_reaches_hold_and_no_smaller_one_does(epsilon: float, delta: float) -> None:
    r = find_smallest_reach(epsilon, delta)
    assert build_geometric_law(epsilon, r).min_delta <= delta
    assert r == 0 or build_geometric_law(epsilon, r - 1).min_delta > delta * (1 - 1e-9)


def test_a_coin_uses_delta_up_and_meets_the_limit() -> None:
    """The limit is that of optimal partition selection (Desfontaines and others)."""
    chance = 0.9325
    event = Coin(GeometricCounts(13, 1.0), GeometricCounts(14, 1.0), chance)
    spent = Accountant(event).delta(epsilon=1.0)
    assert 0.9999e-6 < spent <= 1e-6
    limit, shown_ = 0.0, []
    for n in range(1, 40):
        grown = min(math.e * limit + spent, 1 - (1 - limit - spent) / math.e, 1.0)
        limit = grown
        likely = chance * build_geometric_law(1.0, 13).compute_tail(14 - n)
        likely += (1 - chance) * build_geometric_law(1.0, 14).compute_tail(15 - n)
        shown_.append((likely, limit))
    assert all(likely <= limit * (1 + 1e-9) for likely, limit in shown_)
    assert max(limit - likely for likely, limit in shown_) < 1e-7


def test_what_the_law_says_of_cells() -> None:
    law = build_geometric_law(1.0, 14)
    assert [round(law.compute_tail(15 - n), 2) for n in (14, 15)] == [0.27, 0.73]
    assert law.find_error_bound(0.95) == 3
    assert law.compute_tail(15) == 0.0
    assert law.compute_tail(-14) == 1.0
    assert law.compute_tail(14) == pytest.approx(law.min_delta)
    for noise_law in (law, build_gaussian_law(7.5, 9)):
        both = noise_law.tail[0] + 2 * noise_law.tail[1:].sum()
        assert both == pytest.approx(1, abs=1e-12)
        for x in range(-9, 10):
            assert noise_law.compute_tail(x) - noise_law.compute_tail(x + 1) == pytest.approx(
                noise_law.tail[abs(x)], abs=1e-15
            )


def composed(law: NoiseLaw, times: int, epsilon: float) -> float:
    """Delta of several releases, by enumerating what each of them may show."""
    p = np.concatenate([law.tail[:0:-1], law.tail])
    present, absent = np.append(p, 0.0), np.append(0.0, p)
    joint, beside = np.ones(1), np.ones(1)
    for _ in range(times):
        joint, beside = np.outer(joint, present).ravel(), np.outer(beside, absent).ravel()
    return float(np.maximum(joint - math.exp(epsilon) * beside, 0).sum())


@pytest.mark.parametrize("event", [GeometricCounts(6, 0.4), GaussianCounts(7, 6.25)], ids=str)
def test_several_tables_compose_as_their_pairs_do(event: GeometricCounts | GaussianCounts) -> None:
    law = (
        build_geometric_law(event.epsilon, event.r)
        if isinstance(event, GeometricCounts)
        else build_gaussian_law(event.variance, event.r)
    )
    for times in (2, 3):
        for epsilon in (0.3, 0.8, 1.1):
            true = composed(law, times, epsilon)
            result = Accountant([event] * times).delta(epsilon=epsilon)
            assert true <= result * (1 + 1e-12)
            assert result <= true * 1.01


def test_from_three_tables_on_the_gaussian_needs_the_smaller_crowd() -> None:
    def delta(event: Event, times: int) -> float:
        return Accountant([event] * times).delta(epsilon=1.0)

    assert delta(GeometricCounts(40, 0.333), 3) <= 1e-6 < delta(GeometricCounts(39, 0.333), 3)
    assert delta(GaussianCounts(45, 76.0), 4) <= 1e-6
    assert delta(GaussianCounts(75, 210.0), 11) <= 1e-6


def test_choices_before_it_and_samples_of_it_are_accounted() -> None:
    event = GeometricCounts(15, 0.95)
    both = Accountant([Selection(0.05), event])
    assert both.delta(epsilon=1.0) == pytest.approx(
        build_geometric_law(0.95, 15).min_delta, rel=1e-9
    )
    assert both.epsilon(delta=1e-6) <= 1.0
    alone = Accountant(event)
    assert alone.epsilon(delta=1e-7) == math.inf  # below P[X = r] no epsilon is enough
    assert BasicAccountant([event] * 2).epsilon(delta=1e-6) == pytest.approx(1.9)
    sampled = Accountant(SampledEvent(event, 0.1))
    assert sampled.delta(epsilon=0.2) < alone.delta(epsilon=0.2)


@pytest.mark.parametrize(
    "event",
    [*EVENTS, Coin(EVENTS[0], EVENTS[1], 0.25), Composition([Selection(0.5), EVENTS[4]])],
    ids=str,
)
def test_events_are_written_and_read(event: Event) -> None:
    assert parse_event(serialize_event(event)) == event
    assert describe_event(event)


def test_what_events_refuse() -> None:
    for wrong in (
        lambda: GeometricCounts(0, 1.0), lambda: GeometricCounts(3, 0.0),
        lambda: GeometricCounts(3, 1 / 3), lambda: GaussianCounts(3, 0.0),
        lambda: GaussianCounts(3, 1 / 3), lambda: GeometricCounts(10**7, 1.0),
        lambda: Coin(EVENTS[0], EVENTS[1], 1.0),
    ):  # fmt: skip
        with pytest.raises(ParameterError):
            wrong()


def law_of(event: GeometricCounts | GaussianCounts, stretch: float = 1.0) -> Floats:
    law = (
        build_geometric_law(event.epsilon / stretch, event.r)
        if isinstance(event, GeometricCounts)
        else build_gaussian_law(event.variance * stretch**2, event.r)
    )
    return np.concatenate([law.tail[:0:-1], law.tail])


@pytest.mark.parametrize(
    "event",
    [GeometricCounts(14, 1.0), GeometricCounts(3, 0.25), GeometricCounts(40, 0.333),
     GaussianCounts(45, 76.0), GaussianCounts(6, 10.375), GaussianCounts(9, 2.5)],
    ids=str,
)  # fmt: skip
def test_draws_have_the_law_and_no_other(event: GeometricCounts | GaussianCounts) -> None:
    bits = SeededRandomness(3)
    draws = (
        sample_geometric_noise(300_000, Fraction(repr(event.epsilon)), event.r, bits)
        if isinstance(event, GeometricCounts)
        else sample_gaussian_noise(300_000, Fraction(repr(event.variance)), event.r, bits)
    )
    assert int(np.abs(draws).max()) <= event.r
    assert is_drawn_from(draws, law_of(event))
    if event.r > 3:
        assert not is_drawn_from(draws, law_of(event, 1.03))
        assert not is_drawn_from(draws, law_of(event, 0.97))
    clamped = np.clip(sample_geometric_noise(300_000, Fraction(1, 4), 40, bits), -3, 3)
    assert not is_drawn_from(clamped, law_of(GeometricCounts(3, 0.25)))


@pytest.mark.parametrize("event", [GeometricCounts(800, 1.0), GaussianCounts(40, 0.05)], ids=str)
def test_what_no_float_holds_is_not_said_to_be_nothing(
    event: GeometricCounts | GaussianCounts,
) -> None:
    assert Accountant(event).delta(epsilon=1000.0) > 0
    assert Accountant(event).epsilon(delta=0.0) == math.inf


def test_noise_of_few_sizes_has_its_law() -> None:
    """Where nearly all noise without a bound would lie beyond r."""
    event = GeometricCounts(3, 0.2)
    draws = sample_geometric_noise(200_000, Fraction(1, 5), 3, SeededRandomness(5))
    assert is_drawn_from(draws, law_of(event))
    assert not is_drawn_from(draws, law_of(event, stretch=1.3))
    assert set(np.unique(sample_geometric_noise(500, Fraction(1, 10_000), 1, SeededRandomness(6)))) == {-1, 0, 1}  # fmt: skip  # noqa: E501


def test_a_bound_far_beyond_the_noise_is_refused() -> None:
    with pytest.raises(ParameterError, match="forty standard deviations"):
        GaussianCounts(1_000_000, 1e6)
