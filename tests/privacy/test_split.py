"""Pairs of k and beta after a search, and the event that stands for a choice among them."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.releases import list_sample_draws

from incrowd.errors import IncrowdError, ParameterError, UnsolvableError
from incrowd.privacy.accountant import Accountant, BasicAccountant
from incrowd.privacy.events import (
    Composition,
    Event,
    Mechanism,
    OneOf,
    SafeRelease,
    SampledEvent,
    Selection,
    parse_event,
    serialize_event,
)
from incrowd.privacy.profile import build_release_profile, build_worst_profile
from incrowd.privacy.randomness import round_down_rate
from incrowd.privacy.split import RATES, split_for_samples

EPSILONS = np.array([0.0, 0.05, 0.2, 0.7, 1.0, 1.5, 2.5])


# One of several.


def of_cell(n: int, k: int, beta: float, epsilon: float) -> tuple[float, float]:
    """Both divergences of a cell of n rows, outcome by outcome."""
    t = math.exp(epsilon)
    p, q = (stats.binom.pmf(np.arange(n + 1), m, beta) for m in (n, n - 1))
    p, q = (np.append(law[:k].sum(), law[k:]) for law in (p, q))
    return float(np.maximum(p - t * q, 0).sum()), float(np.maximum(q - t * p, 0).sum())


def of_release(release: SafeRelease, epsilon: float) -> tuple[float, float]:
    """The largest divergences over cells of many sizes; below zero both are turned round."""
    if epsilon < 0:
        present, absent = of_release(release, -epsilon)
        t = math.exp(epsilon)
        return 1 - t + t * absent, 1 - t + t * present
    last = 3 * release.k / release.beta + 30
    sizes = {int(n) for n in np.linspace(release.k, last, 80)} | set(
        range(release.k, release.k + 30)
    )
    result = [of_cell(n, release.k, release.beta, epsilon) for n in sizes]
    return max(x for x, _ in result), max(y for _, y in result)


def after_search(
    releases: Sequence[SafeRelease], searches: Sequence[float], epsilon: float
) -> float:
    """Randomized responses, then the worst of the releases, either way: the exact mixture."""
    present = absent = 0.0
    for signs in itertools.product((1, -1), repeat=len(searches)):
        pairs = list(zip(signs, searches, strict=True))
        share = math.prod(
            1 / (1 + math.exp(-sign * search_epsilon)) for sign, search_epsilon in pairs
        )
        at = epsilon - sum(sign * search_epsilon for sign, search_epsilon in pairs)
        ways = [of_release(release, at) for release in releases]
        present += share * max(x for x, _ in ways)
        absent += share * max(y for _, y in ways)
    return max(present, absent)


def test_one_of_several_costs_what_the_worst_costs_at_each_epsilon() -> None:
    parts = [SafeRelease(3, 0.25), SafeRelease(9, 0.5), SafeRelease(1, 0.01)]
    each = [build_release_profile(part.k, part.beta) for part in parts]
    both = build_worst_profile(each)
    by_part = np.array([[profile.present(EPSILONS), profile.absent(EPSILONS)] for profile in each])
    np.testing.assert_array_equal(both.present(EPSILONS), by_part[:, 0].max(axis=0))
    np.testing.assert_array_equal(both.absent(EPSILONS), by_part[:, 1].max(axis=0))
    # No part is the worst everywhere: a test of any single one would fail.
    assert len(set(by_part[:, 0].argmax(axis=0))) > 1
    accountant = Accountant(OneOf(parts))
    for at, epsilon in enumerate(EPSILONS):
        single = max(Accountant(part).delta(epsilon=float(epsilon)) for part in parts)
        assert accountant.delta(epsilon=float(epsilon)) == pytest.approx(single, rel=1e-9)
        assert accountant.delta(epsilon=float(epsilon)) == by_part[:, :, at].max()


def test_one_of_one_is_that_one() -> None:
    for event in (SafeRelease(5, 0.3), Selection(0.4), Mechanism(0.3, 1e-5)):
        for epsilon in (0.0, 0.2, 1.0):
            alone = Accountant(event).delta(epsilon=epsilon)
            delta = Accountant(OneOf([event])).delta(epsilon=epsilon)
            assert delta == pytest.approx(alone, rel=1e-12)
            assert delta >= alone
        alone = Accountant([event] * 3).epsilon(delta=1e-3)
        assert Accountant([OneOf([event])] * 3).epsilon(delta=1e-3) == pytest.approx(alone)


@pytest.mark.parametrize("searches", [[0.05], [0.4], [0.1, 0.2, 0.1]])
@pytest.mark.parametrize(
    "releases",
    [[SafeRelease(4, 0.25)], [SafeRelease(3, 0.25), SafeRelease(9, 0.5), SafeRelease(2, 0.05)]],
)
def test_a_search_and_a_release_cost_the_mixture(
    releases: list[SafeRelease], searches: list[float]
) -> None:
    accountant = Accountant([*map(Selection, searches), OneOf(releases)])
    for epsilon in (0.1, 0.5, 0.9, 1.4):
        exact = after_search(releases, searches, epsilon)
        assert exact <= accountant.delta(epsilon=epsilon) * (1 + 1e-9)
        assert accountant.delta(epsilon=epsilon) <= exact * 1.02


def test_choices_compose_as_an_independent_accountant_says() -> None:
    parts = [SafeRelease(20, 0.1), SafeRelease(60, 0.3)]
    profile, step, bottom, top = (
        build_worst_profile([build_release_profile(p.k, p.beta) for p in parts]),
        1e-3,
        370,
        900,
    )
    grid = np.arange(-bottom, top + 1, dtype=np.float64) * step
    low = grid[:bottom]
    deltas = np.append(
        -np.expm1(low) + np.exp(low) * profile.absent(-low), profile.present(grid[bottom:])
    )
    theirs = pld_pmf.create_pmf_pessimistic_connect_dots(
        step, np.arange(-bottom, top + 1), np.minimum(deltas, 1.0)
    ).self_compose(4)
    ours = Accountant([OneOf(parts)] * 4, step=step)
    for delta in (1e-3, 1e-5):
        epsilon = ours.epsilon(delta=delta)
        assert epsilon == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=1e-3)
        # and dearer than four times either: the worst changes along the curve
        assert epsilon >= max(Accountant([part] * 4).epsilon(delta=delta) for part in parts) * 0.999


def test_a_sampled_choice_is_a_choice_of_sampled_events() -> None:
    parts: list[Event] = [SafeRelease(6, 0.4), SafeRelease(12, 0.6), Mechanism(0.3, 1e-6)]
    sampled = Accountant(SampledEvent(OneOf(parts), 0.3))
    for epsilon in (0.0, 0.1, 0.4, 1.0):
        each = [Accountant(SampledEvent(part, 0.3)).delta(epsilon=epsilon) for part in parts]
        assert sampled.delta(epsilon=epsilon) == pytest.approx(max(each), rel=1e-9)
        assert sampled.delta(epsilon=epsilon) < Accountant(OneOf(parts)).delta(epsilon=epsilon)


def test_a_choice_keeps_the_delta_of_its_worst_mechanism() -> None:
    event = OneOf([Mechanism(0.1, 1e-6), Mechanism(0.5, 1e-8)])
    accountant = Accountant(event)
    assert accountant.delta(epsilon=5.0) >= 1e-6
    assert accountant.epsilon(delta=1e-7) == math.inf
    assert accountant.epsilon(delta=2e-6) <= 0.5
    assert accountant.epsilon(delta=2e-6) >= 0.49
    assert BasicAccountant([Selection(0.2), OneOf([Selection(0.1), Selection(0.3)])]).epsilon(
        delta=0.0
    ) == pytest.approx(0.5)


def test_adding_up_takes_a_choice_of_mechanisms_at_its_worst() -> None:
    epsilon = BasicAccountant(OneOf([Mechanism(0.1, 1e-6)])).epsilon(delta=2e-6)
    assert epsilon == BasicAccountant(Mechanism(0.1, 1e-6)).epsilon(delta=2e-6)


def test_a_choice_needs_the_largest_delta_that_a_part_needs() -> None:
    either = OneOf([Mechanism(0.1, 1e-6), Mechanism(0.2, 1e-9)])
    assert BasicAccountant(either).epsilon(delta=5e-7) == float("inf")
    assert BasicAccountant(either).epsilon(delta=2e-6) == pytest.approx(0.2)


events: st.SearchStrategy[Event] = st.recursive(
    st.one_of(
        st.builds(SafeRelease, st.integers(1, 50), st.floats(0.01, 0.9)),
        st.builds(Selection, st.floats(0, 2)),
        st.builds(Mechanism, st.floats(0, 2), st.sampled_from([0.0, 1e-9])),
    ),
    lambda inner: st.one_of(
        st.builds(OneOf, st.lists(inner, min_size=1, max_size=3)),
        st.builds(Composition, st.lists(inner, max_size=3)),
        st.builds(SampledEvent, inner, st.floats(0.1, 0.9)),
    ),
    max_leaves=6,
)


@given(event=events)
def test_events_survive_being_written_down(event: Event) -> None:
    assert parse_event(json.loads(json.dumps(serialize_event(event)))) == event


def test_a_choice_among_nothing_is_refused() -> None:
    with pytest.raises(ParameterError, match="'events' parameter must hold at least one event"):
        OneOf([])
    with pytest.raises(ParameterError, match="at least one event"):
        parse_event({"kind": "one of", "events": []})
    with pytest.raises(ParameterError, match="must hold events such as SafeRelease"):
        OneOf(["safe"])  # type: ignore[list-item]
    release = serialize_event(SafeRelease(3, 0.5))
    with pytest.raises(ParameterError, match="hold nothing else"):
        parse_event({"kind": "one of", "events": [release], "worst": 0})
    with pytest.raises(ParameterError, match="known event"):
        parse_event({"kind": "one of", "events": release})


# Pairs.


@pytest.mark.parametrize(
    ("epsilon", "delta", "searches"),
    [(1.0, 1e-6, [0.05]), (0.5, 1e-4, [0.2]), (2.0, 1e-6, [0.1, 0.3, 0.1])],
)
def test_pairs_are_within_the_budget_and_no_larger_than_they_must_be(
    epsilon: float, delta: float, searches: list[float]
) -> None:
    budget = split_for_samples(epsilon=epsilon, delta=delta, selections=searches)
    pairs, spent = list_sample_draws(budget), budget.events
    assert [pair.beta for pair in pairs] == [round_down_rate(rate) for rate in RATES]
    assert spent == [*map(Selection, searches), OneOf(pairs)]
    assert Accountant(spent).delta(epsilon=epsilon) <= delta
    for pair in pairs:
        exact = after_search([pair], searches, epsilon)
        assert exact <= delta
        if pair.k > 1:
            # k - 1 would not fit, up to what the maximum over pairs and the grid add
            assert (
                after_search([SafeRelease(pair.k - 1, pair.beta)], searches, epsilon) > 0.85 * delta
            )


def test_all_pairs_together_are_accounted_not_the_chosen_one() -> None:
    """Each pair by itself leaves something; at the epsilons between, another is the worst."""
    budget = split_for_samples(epsilon=1.0, delta=1e-6, selections=[0.05])
    pairs, spent = list_sample_draws(budget), budget.events
    together = Accountant(spent).delta(epsilon=1.0)
    each = [Accountant([Selection(0.05), pair]).delta(epsilon=1.0) for pair in pairs]
    assert max(each) <= together <= 1e-6


@pytest.mark.parametrize("searches", [[1.0], [1.5], [0.5, 0.5]])
def test_a_search_that_leaves_nothing_is_refused(searches: list[float]) -> None:
    with pytest.raises(IncrowdError, match=r"use ε = 1(.5)? of 1, and leave none"):
        split_for_samples(epsilon=1.0, delta=1e-6, selections=searches)


def test_a_search_that_leaves_next_to_nothing_ends_in_a_refusal_or_a_pair() -> None:
    with pytest.raises(UnsolvableError, match="Use a larger ε or δ, or a smaller β"):
        split_for_samples(epsilon=0.001, delta=1e-300, selections=[0.000999], rates=[0.9])


def test_one_rate_gives_one_pair() -> None:
    budget = split_for_samples(epsilon=1.0, delta=1e-6, selections=[0.05], rates=(0.25,))
    pairs, spent = list_sample_draws(budget), budget.events
    assert len(pairs) == 1
    assert spent == [Selection(0.05), OneOf(pairs)]
    free = list_sample_draws(
        split_for_samples(epsilon=1.0, delta=1e-6, selections=[1e-6], rates=(0.25,))
    )
    assert free == (SafeRelease(14, 0.25),)  # what a release without a search needs
    assert pairs[0].k >= free[0].k


@pytest.mark.parametrize("population", [0.05, 0.5])
def test_a_table_that_is_a_sample_needs_smaller_crowds(population: float) -> None:
    request = {"epsilon": 1.0, "delta": 1e-6, "selections": [0.05]}
    budget = split_for_samples(**request, population=population)  # type: ignore[arg-type]
    pairs, spent = list_sample_draws(budget), budget.events
    (event,) = spent
    assert event == SampledEvent(Composition([Selection(0.05), OneOf(pairs)]), population)
    assert Accountant(spent).delta(epsilon=1.0) <= 1e-6
    full_pairs = list_sample_draws(split_for_samples(**request))  # type: ignore[arg-type]
    assert all(first.k <= other.k for first, other in zip(pairs, full_pairs, strict=True))
    assert sum(draw.k for draw in pairs) < sum(other.k for other in full_pairs)
    # By a bound that needs no grid: the inside amplified, present'(x) = rate present(y).
    inside = math.log1p(math.expm1(1.0) / population)
    for pair in pairs:
        fewer = SafeRelease(pair.k - 1, pair.beta) if pair.k > 1 else pair
        assert population * after_search([pair], [0.05], inside) <= 1e-6
        assert pair.k == 1 or population * after_search([fewer], [0.05], inside) > 0.5e-6
