"""The accountant against exact convolutions, an independent accountant, and known answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf
from hypothesis import example, given
from hypothesis import strategies as st
from support.exact import make_neighbors

from incrowd.arrays import Floats
from incrowd.privacy import pld, sample_inverse
from incrowd.privacy.accountant import Accountant, BasicAccountant, _iterate_leaves
from incrowd.privacy.amplification import amplify_guarantee, invert_amplification
from incrowd.privacy.events import (
    Composition,
    Event,
    Mechanism,
    OneOf,
    SafeRelease,
    SampledEvent,
    Selection,
)
from incrowd.privacy.profile import Profile, amplify_profile, build_release_profile

RELEASE = SafeRelease(k=20, beta=0.1)
Pair = tuple[Sequence[float], Sequence[float]]


def divergence(p: Sequence[float], q: Sequence[float], epsilon: float) -> float:
    return math.fsum(max(x - math.exp(epsilon) * y, 0) for x, y in zip(p, q, strict=True))


def product(pairs: Sequence[Pair]) -> Pair:
    """The exact convolution: all outcomes of all pairs together."""
    p = [math.prod(x) for x in itertools.product(*(pair[0] for pair in pairs))]
    q = [math.prod(x) for x in itertools.product(*(pair[1] for pair in pairs))]
    return p, q


def profile_of(pair: Pair) -> Profile:
    p, q = pair

    def side(x: Sequence[float], y: Sequence[float]) -> object:
        return lambda epsilon: np.array([divergence(x, y, e) for e in epsilon])

    reach = max(abs(math.log(x / y)) for x, y in zip(p, q, strict=True) if x and y)
    return Profile(side(p, q), side(q, p), reach)  # type: ignore[arg-type]


def cell(n: int, k: int, beta: str) -> Pair:
    pair = make_neighbors(n, k, Fraction(beta))
    return (
        [x / pair.total for x in pair.present],
        [x / pair.total for x in pair.absent],
    )


PAIRS: list[list[Pair]] = [
    [cell(9, 3, "1/4")] * 3,
    [cell(5, 2, "1/2"), cell(20, 2, "1/10"), cell(20, 2, "1/10")],
    [([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])] * 6,
    [([0.7, 0.25, 0.05], [0.75, 0.25, 0.0])] * 4,
    [([0.9, 0.1, 0.0], [0.6, 0.39, 0.01]), cell(12, 4, "3/10")],
]


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("turned", [False, True])
def test_losses_are_never_below_exact_convolution_and_close(
    pairs: list[Pair], turned: bool
) -> None:
    if turned:
        pairs = [(q, p) for p, q in pairs]
    p, q = product(pairs)
    parts = [pld.discretize_losses(profile_of(pair), 1e-3, 1e-12) for pair in pairs]
    composed = parts[0]
    for part in parts[1:]:
        composed = pld.compose_losses(composed, part, 1e-12)
    for epsilon in (0.0, 0.1, 0.3, 0.7, 1.2, 2.0):
        exact = divergence(p, q, epsilon)
        bound = float(composed.delta(np.array([epsilon]))[0])
        assert exact <= bound <= exact * 1.02 + 1e-8
    for delta in (0.3, 0.1, 0.02):
        bound = composed.epsilon(delta)
        if math.isfinite(bound):
            assert divergence(p, q, bound) <= delta
            if bound > 0.01:
                assert divergence(p, q, bound * 0.98) > delta


def test_the_grid_reproduces_a_profile_at_its_points() -> None:
    profile = build_release_profile(20, 0.1)
    grid = pld.discretize_losses(profile, 1e-3, 1e-30)
    points = np.arange(0.0, 900.0, 37.0, dtype=np.float64) * 1e-3
    assert grid.delta(points) == pytest.approx(profile.present(points), rel=1e-6)
    between = points + 5e-4
    assert np.all(grid.delta(between) >= profile.present(between))
    assert grid.masses.sum() + grid.infinite == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(("releases", "most"), [(1, 0.184), (4, 0.277), (16, 0.480), (64, 0.920)])
@pytest.mark.parametrize("step", [None, 1e-3])
def test_reference_values_of_many_releases(releases: int, most: float, step: float | None) -> None:
    epsilon = Accountant([RELEASE] * releases, step=step).epsilon(delta=1e-6)
    assert most - 0.01 < epsilon <= most


@pytest.mark.parametrize(
    ("releases", "by_adding"), [(1, 0.183), (4, 0.862), (16, 4.00), (64, 18.4)]
)
def test_reference_values_of_adding_up(releases: int, by_adding: float) -> None:
    epsilon = BasicAccountant([RELEASE] * releases).epsilon(delta=1e-6)
    assert epsilon == pytest.approx(by_adding, rel=2e-3)


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize(("k", "beta"), [(1, "1/10"), (2, "1/4"), (3, "1/2"), (4, "9/10")])
def test_releases_cost_at_least_what_the_worst_single_cells_cost(k: int, beta: str, m: int) -> None:
    """Whatever cell the row is in, both ways round, the exact product is covered."""
    accountant = Accountant([SafeRelease(k, float(Fraction(beta)))] * m)
    for epsilon in (0.0, 0.05, 0.4, 1.0, 2.5):
        claimed = accountant.delta(epsilon=epsilon)
        worst = 0.0
        for n in (k, k + 1, k + 3, 2 * k + 4, 12, 16):
            p, q = product([cell(n, k, beta)] * m)
            worst = max(worst, divergence(p, q, epsilon), divergence(q, p, epsilon))
        assert worst <= claimed * (1 + 1e-12)


@pytest.mark.parametrize("m", [4, 16, 64])
def test_agreement_with_an_independent_accountant(m: int) -> None:
    """The same dots through Google's dp-accounting, which composes by Fourier transforms."""
    profile, step = build_release_profile(20, 0.1), 1e-3
    top, bottom = 900, 110
    grid = np.arange(-bottom, top + 1, dtype=np.float64) * step
    below = profile.absent(-grid[:bottom])
    deltas = np.append(
        -np.expm1(grid[:bottom]) + np.exp(grid[:bottom]) * below, profile.present(grid[bottom:])
    )
    theirs = pld_pmf.create_pmf_pessimistic_connect_dots(
        step, np.arange(-bottom, top + 1), np.minimum(deltas, 1.0)
    ).self_compose(m)
    ours = Accountant([RELEASE] * m, step=step)
    for delta in (1e-4, 1e-6, 1e-8):
        assert ours.epsilon(delta=delta) == pytest.approx(
            theirs.get_epsilon_for_delta(delta), rel=1e-4
        )


def test_deltas_far_below_the_noise_of_a_fourier_transform() -> None:
    """The exact product of the worst cells is covered, closely, where noise would be larger."""
    k, beta = 16, "1/20"
    accountant = Accountant([SafeRelease(k, 0.05)] * 2)
    epsilon = 1.2
    exact = max(divergence(*product([cell(n, k, beta)] * 2), epsilon) for n in range(k, 60))
    assert exact < 1e-17
    assert exact <= accountant.delta(epsilon=epsilon) <= 3 * exact


def test_composing_selections_is_composing_randomized_responses() -> None:
    each, m = 0.3, 5
    truth = math.exp(each) / (1 + math.exp(each))
    p, q = product([([truth, 1 - truth], [1 - truth, truth])] * m)
    accountant = Accountant([Selection(each)] * m)
    for epsilon in (0.0, 0.2, 0.5, 1.1):
        exact = divergence(p, q, epsilon)
        assert exact <= accountant.delta(epsilon=epsilon) <= exact * 1.01
    assert accountant.delta(epsilon=1.5) == 0.0
    assert accountant.epsilon(delta=0) == pytest.approx(1.5)
    assert accountant.epsilon(delta=1e-3) < 1.5


def test_a_selection_enters_the_same_composition() -> None:
    together = Accountant([Selection(0.05), RELEASE]).epsilon(delta=1e-6)
    alone = Accountant(RELEASE).epsilon(delta=1e-6)
    assert alone < together < alone + 0.05


def test_mechanisms_keep_their_own_delta() -> None:
    accountant = Accountant([Mechanism(0.1, 1e-7)] * 3)
    assert accountant.epsilon(delta=2e-7) == math.inf
    assert accountant.epsilon(delta=1e-6) <= 0.3 + 1e-9
    assert accountant.delta(epsilon=0.3) >= 3e-7 * (1 - 1e-6)


@pytest.mark.parametrize(
    ("epsilon", "rate", "expected"),
    [
        (math.log(11), 0.1, math.log(2)),
        (math.log(11), 0.01, math.log(1.1)),
        (1, 0.1, 0.159),
        (1, 0.01, 0.017),
    ],
)
def test_amplification_of_pure_events(epsilon: float, rate: float, expected: float) -> None:
    assert amplify_guarantee(epsilon=epsilon, rate=rate).epsilon == pytest.approx(
        expected, abs=5e-4
    )
    accountant = Accountant(SampledEvent(Selection(epsilon), rate))
    assert accountant.epsilon(delta=0) == pytest.approx(
        amplify_guarantee(epsilon=epsilon, rate=rate).epsilon
    )
    assert (
        accountant.delta(epsilon=amplify_guarantee(epsilon=epsilon, rate=rate).epsilon * 0.999) > 0
    )


def test_amplification_of_delta_and_back() -> None:
    assert amplify_guarantee(epsilon=1.0, delta=1e-5, rate=0.1).delta == pytest.approx(1e-6)
    assert invert_amplification(epsilon=0.1, rate=0.01).epsilon == pytest.approx(2.44, abs=5e-3)
    there = amplify_guarantee(epsilon=0.7, delta=1e-7, rate=0.3)
    back = invert_amplification(epsilon=there.epsilon, delta=there.delta, rate=0.3)
    assert (back.epsilon, back.delta) == pytest.approx((0.7, 1e-7))


@pytest.mark.parametrize("rate", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("pair", [cell(9, 3, "1/4"), ([0.7, 0.25, 0.05], [0.75, 0.25, 0.0])])
def test_a_sampled_profile_equals_the_mixture(pair: Pair, rate: float) -> None:
    p, q = pair
    mixture = [rate * x + (1 - rate) * y for x, y in zip(p, q, strict=True)]
    profile = amplify_profile(profile_of(pair), rate)
    epsilons = np.array([0.0, 0.01, 0.1, 0.3, 1.0, 2.0])
    exact_present = [divergence(mixture, q, e) for e in epsilons]
    exact_absent = [divergence(q, mixture, e) for e in epsilons]
    np.testing.assert_allclose(profile.present(epsilons), exact_present, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(profile.absent(epsilons), exact_absent, rtol=1e-9, atol=1e-15)


def test_a_sampled_release_costs_more_than_a_release_with_a_smaller_beta() -> None:
    """Where everybody's membership is secret it would cost as much; only one person's is."""
    epsilon = Accountant(SampledEvent(SafeRelease(20, 0.2), 0.5)).epsilon(delta=1e-6)
    assert epsilon > 1.2 * Accountant(RELEASE).epsilon(delta=1e-6)
    crude = amplify_guarantee(
        epsilon=Accountant(SafeRelease(20, 0.2)).epsilon(delta=2e-6), rate=0.5
    ).epsilon
    assert epsilon == pytest.approx(crude, rel=1e-9)


def test_a_shared_sample_amplifies_the_whole_and_costs_more_than_fresh_samples() -> None:
    inner = [RELEASE] * 8
    shared = Accountant(SampledEvent(Composition(inner), 0.2))
    # never more than the closed formula applied to the composed guarantee
    inner_epsilon = Accountant(inner).epsilon(delta=5e-6)
    assert (
        shared.epsilon(delta=1e-6)
        <= amplify_guarantee(epsilon=inner_epsilon, rate=0.2).epsilon * 1.001
    )
    fresh = Accountant([SampledEvent(event, 0.2) for event in inner])
    assert fresh.epsilon(delta=1e-6) < shared.epsilon(delta=1e-6)


def test_nothing_costs_nothing() -> None:
    for accountant in (Accountant([]), BasicAccountant([]), Accountant(Composition([]))):
        assert accountant.epsilon(delta=1e-6) == 0.0
        assert accountant.delta(epsilon=0.0) == 0.0


events: st.SearchStrategy[Event] = st.one_of(
    st.builds(SafeRelease, st.integers(2, 40), st.floats(0.01, 0.5)),
    st.builds(Selection, st.floats(0, 0.5)),
    st.builds(Mechanism, st.floats(0, 0.5), st.sampled_from([0.0, 1e-9])),
)


@example(first=SafeRelease(19, 0.01), second=Selection(0.5), delta=1e-5)
@given(first=events, second=events, delta=st.sampled_from([1e-3, 1e-5]))
def test_composition_costs_more_than_its_parts_and_less_than_their_sum(
    first: Event, second: Event, delta: float
) -> None:
    both = Accountant([first, second]).epsilon(delta=delta)
    assert both <= BasicAccountant([first, second]).epsilon(delta=delta) * 1.01 + 1e-6
    for part in (first, second):
        assert Accountant(part).epsilon(delta=delta) <= both * (1 + 1e-6) + 1e-9


@given(event=events, epsilon=st.floats(0.01, 2))
def test_epsilon_and_delta_are_inverse(event: Event, epsilon: float) -> None:
    accountant = Accountant([event, event])
    delta = accountant.delta(epsilon=epsilon)
    if 1e-12 < delta < 0.9:
        back = accountant.epsilon(delta=delta * 1.001)
        assert back <= epsilon * (1 + 1e-6) + 1e-9
        assert accountant.delta(epsilon=back) <= delta * 1.002


@pytest.mark.parametrize(
    ("events", "delta"),
    [
        ([SafeRelease(1, 0.5)] * 7, 1e-15),
        ([SafeRelease(1, 1e-4)] * 7, 1e-12),
        ([SafeRelease(2, 0.5)] * 2, 1e-80),
        ([SafeRelease(1000, 1e-4)] * 2, 1e-290),
        ([SafeRelease(20, 0.001)] * 3, 1e-80),
        ([Selection(5.0)] * 300, 1e-300),
    ],
)
def test_extreme_compositions_have_an_answer(events: list[Event], delta: float) -> None:
    epsilon = Accountant(events).epsilon(delta=delta)
    fixed_delta = sum(e.beta**e.k for e in events if isinstance(e, SafeRelease))
    assert math.isinf(epsilon) == (fixed_delta * (1 - 1e-6) > delta)
    if math.isfinite(epsilon):
        assert Accountant(events).delta(epsilon=epsilon) <= delta * 1.001


def test_the_absent_direction_can_decide_a_composition() -> None:
    truth = 1 / (1 + math.exp(-2.0))
    q, p = [1 - truth, truth], [truth, 1 - truth]
    mixture = [0.3 * x + 0.7 * y for x, y in zip(p, q, strict=True)]
    present, absent = product([(mixture, q)] * 3)
    exact = divergence(absent, present, 0.5)
    assert exact > 1.01 * divergence(present, absent, 0.5)
    delta = Accountant([SampledEvent(Selection(2.0), 0.3)] * 3).delta(epsilon=0.5)
    assert exact <= delta <= 1.01 * exact


def test_unlike_events_share_a_grid_that_is_fine_enough_for_each() -> None:
    for release, selection in ((SafeRelease(100, 0.01), 2.0), (SafeRelease(1000, 0.001), 5.0)):
        both: list[Event] = [release, Selection(selection)]
        alone = Accountant(release).epsilon(delta=1e-6)
        assert Accountant(both).epsilon(delta=1e-6) <= selection + alone + 1e-9


def test_a_sampled_mechanism_keeps_its_share_of_delta() -> None:
    event = SampledEvent(Mechanism(0.1, 1e-6), 0.5)
    assert Accountant(event).delta(epsilon=5.0) >= 5e-7
    assert Accountant([event, event]).delta(epsilon=5.0) >= 1e-6 * (1 - 1e-6)


def test_adding_up_inside_a_sample_uses_the_amplified_delta() -> None:
    epsilon = BasicAccountant(SampledEvent(Composition([RELEASE] * 2), 0.2)).epsilon(delta=1e-6)
    inner = BasicAccountant([RELEASE] * 2).epsilon(delta=5e-6)
    assert epsilon == pytest.approx(amplify_guarantee(epsilon=inner, rate=0.2).epsilon, rel=1e-9)


def test_a_large_composition_inside_a_sample_is_not_cut_away() -> None:
    inner = [SafeRelease(20, 0.01)] * 5000
    shared = Accountant(SampledEvent(Composition(inner), 0.5)).delta(epsilon=1.5)
    assert shared <= Accountant(inner).delta(epsilon=math.log1p(math.expm1(1.5) / 0.5))


def test_a_product_of_rates_is_rounded_up() -> None:
    for first, second in ((0.1, 0.3), (0.7, 0.1), (0.3, 0.3)):
        (leaf,) = _iterate_leaves(SampledEvent(SampledEvent(Selection(1.0), first), second))
        assert isinstance(leaf, SampledEvent)
        assert Fraction(leaf.rate) >= Fraction(first) * Fraction(second)


def test_one_release_is_answered_right_up_to_its_floor() -> None:
    target = 0.1**20 * 1.01
    exact = sample_inverse.epsilon(k=20, beta=0.1, delta=target)
    assert Accountant(RELEASE).epsilon(delta=target) == pytest.approx(exact, rel=1e-9)


def floats(x: list[float]) -> Floats:
    return np.array(x)


def test_cut_mass_is_never_lost() -> None:
    loss_distribution = pld.LossDistribution(0.1, -1, floats([0.2, 0.5, 0.3 - 1e-9, 1e-9]), 0.0)
    cut = pld.compose_losses(loss_distribution, loss_distribution, 1e-6)
    assert cut.masses.sum() + cut.infinite == pytest.approx(1.0, abs=1e-15)
    assert cut.infinite > 0
    low = pld.LossDistribution(0.1, -1, floats([1e-9, 0.5, 0.5 - 1e-9]), 0.0)
    cut_below = pld.compose_losses(low, low, 1e-6)
    assert cut_below.masses.size < 5
    assert cut_below.masses.sum() + cut_below.infinite == pytest.approx(1.0, abs=1e-15)
    exact = pld.compose_losses(loss_distribution, loss_distribution, 0.0)
    grid = np.linspace(0, 0.6, 13)
    assert np.all(cut.delta(grid) >= exact.delta(grid))


def test_one_of_several_costs_the_worst_of_their_deltas() -> None:
    event = OneOf([Mechanism(1.0, 1e-3), Mechanism(1.0, 1e-6)])
    assert Accountant(event).delta(epsilon=1.0) == pytest.approx(1e-3)
    assert Accountant(event).epsilon(delta=1e-4) == math.inf
    assert BasicAccountant([event] * 2).epsilon(delta=1.9e-3) == math.inf
    assert BasicAccountant([event] * 2).epsilon(delta=2e-3) == 2.0
