"""Sums of charges: valid against adversaries who choose by results, exact, and never too small."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.arrays import Floats
from incrowd.privacy.accountant import Accountant, BasicAccountant
from incrowd.privacy.amplification import Guarantee, invert_amplification
from incrowd.privacy.events import (
    Composition,
    Event,
    GaussianCounts,
    GeometricCounts,
    Mechanism,
    SafeRelease,
    SampledEvent,
    Selection,
)
from incrowd.privacy.filter import (
    Charge,
    charge_guarantee,
    charge_share,
    charges_fit,
    repeat_event,
    sum_charges,
)

Counts = GeometricCounts | GaussianCounts
Pair = tuple[Floats, Floats]
BUDGET = Guarantee(1.0, 1e-6)


def pair_of(event: Counts) -> Pair:
    """The noisy counts of n and of n + 1 rows, on the values that either may have."""
    x = np.arange(-event.r, event.r + 1)
    if isinstance(event, GeometricCounts):
        weights = np.exp(-event.epsilon * np.abs(x))
    else:
        weights = np.exp(-(x**2) / (2 * event.variance))
    law = weights / weights.sum()
    return np.append(law, 0.0), np.insert(law, 0, 0.0)


def together(*pairs: Pair) -> Pair:
    """Independent outcomes: their joint laws, the outcomes of the first along the first axis."""
    p, q = pairs[0]
    for more_p, more_q in pairs[1:]:
        p, q = np.multiply.outer(p, more_p), np.multiply.outer(q, more_q)
    return p, q


def excess(pair: Pair, epsilon: float, outcomes: int) -> Floats:
    """Delta at epsilon, split up by the first so many outcomes."""
    p, q = pair
    axes = tuple(range(outcomes, p.ndim))
    return np.asarray(np.maximum(p - math.exp(epsilon) * q, 0.0).sum(axis=axes))


def adaptive_delta(first: Sequence[Counts], thirds: Sequence[Counts], epsilon: float) -> float:
    """Delta of an adversary who sees the first releases and takes the worst next one."""
    seen = together(*map(pair_of, first))
    each = [excess(together(seen, pair_of(third)), epsilon, len(first)) for third in thirds]
    return float(np.max(each, axis=0).sum()) if each else float(excess(seen, epsilon, 0))


FIRST = [GaussianCounts(50, 46.0)] * 2
THIRDS: list[Counts] = [
    GaussianCounts(50, 100.0), GaussianCounts(232, 3000.0), GeometricCounts(90, 0.15),
]  # fmt: skip


def test_tight_composition_is_no_filter() -> None:
    """Each path fits tightly; whoever chooses the third by the results has twice delta."""
    for third in THIRDS:
        assert Accountant([*FIRST, third]).delta(epsilon=1.0) <= 1e-6
        assert adaptive_delta(FIRST, [third], 1.0) <= 1e-6
    assert adaptive_delta(FIRST, THIRDS, 1.0) > 2e-6


def charge_at(event: Event, delta: float) -> Charge:
    return charge_guarantee(event, Guarantee(Accountant(event).epsilon(delta=delta), delta))


def test_sums_are_a_filter_for_whoever_chooses_by_results() -> None:
    """Of the releases above the sum allows one alone; of less costly ones, a choice of three."""
    assert not charges_fit([charge_at(event, 2.5e-7) for event in FIRST], BUDGET)
    first = [GaussianCounts(80, 160.0), GaussianCounts(120, 400.0)]
    thirds: list[Counts] = [
        GaussianCounts(120, 400.0), GaussianCounts(300, 3000.0), GeometricCounts(160, 0.1),
    ]  # fmt: skip
    booked = [charge_at(event, 2.5e-7) for event in first]
    budget = Guarantee(1.2, 1e-6)
    assert all(charges_fit([*booked, charge_at(event, 5e-7)], budget) for event in thirds)
    total = max(sum_charges([*booked, charge_at(event, 5e-7)]).epsilon for event in thirds)
    assert 0 < adaptive_delta(first, thirds, total) <= 1e-6


def test_a_block_composes_tightly_while_others_interleave() -> None:
    """A release between the two of a block is chosen by the first; sums still bound delta."""
    event = GaussianCounts(50, 46.0)
    block = Guarantee(Accountant([event] * 2).epsilon(delta=5e-7), 5e-7)
    between: list[Counts] = [
        GaussianCounts(80, 200.0), GaussianCounts(300, 3000.0), GeometricCounts(160, 0.1),
    ]  # fmt: skip
    most = max(charge_at(other_event, 5e-7).guarantee.epsilon for other_event in between)
    charges = [charge_guarantee(repeat_event(event, 2), block)]
    budget = Guarantee(block.epsilon + most + 1e-9, 1e-6)
    assert all(
        charges_fit([*charges, charge_at(other_event, 5e-7)], budget) for other_event in between
    )
    each = [
        excess(together(pair_of(event), pair_of(event), pair_of(other_event)), budget.epsilon, 1)
        for other_event in between
    ]
    assert 0 < float(np.max(each, axis=0).sum()) <= 1e-6
    # The block by itself is worth what it is booked at, not the sum of two releases.
    assert block.epsilon < 0.9 * 2 * charge_at(event, 2.5e-7).guarantee.epsilon


small = st.one_of(
    st.builds(GeometricCounts, st.integers(1, 4), st.sampled_from([0.1, 0.5, 1.0, 2.0])),
    st.builds(GaussianCounts, st.integers(1, 4), st.sampled_from([0.5, 1.0, 4.0])),
)


@settings(max_examples=60, deadline=None)
@given(
    first=small,
    choices=st.lists(st.tuples(small, st.sampled_from([0.01, 0.1])), min_size=1, max_size=3),
    key=st.integers(0, 2**30),
    share=st.sampled_from([0.01, 0.1]),
)
def test_any_strategy_is_within_the_largest_sum(
    first: Counts, choices: list[tuple[Counts, float]], key: int, share: float
) -> None:
    """The second release, and its point, is any function of the first one's outcome."""
    booked = charge_share(first, share)
    nexts = [(event, charge_share(event, event_share)) for event, event_share in choices]
    sums = [sum_charges([booked, charge]) for _, charge in nexts]
    epsilon, delta = max(s.epsilon for s in sums), max(s.delta for s in sums)
    p, q = pair_of(first)
    each = [excess(together((p, q), pair_of(event)), epsilon, 1) for event, _ in nexts]
    chosen = np.random.default_rng(key).integers(0, len(nexts), p.size)
    assert sum(float(each[at][x]) for x, at in enumerate(chosen)) <= delta + 1e-12
    assert float(np.max(each, axis=0).sum()) <= delta + 1e-12


events = st.one_of(
    st.builds(SafeRelease, st.integers(5, 40), st.sampled_from([0.05, 0.2, 0.5])),
    st.builds(GeometricCounts, st.integers(10, 60), st.sampled_from([0.1, 0.5, 1.0])),
    st.builds(Selection, st.sampled_from([0.05, 0.3])),
    st.builds(Mechanism, st.sampled_from([0.1, 0.9]), st.sampled_from([0.0, 1e-6, 1e-3])),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(events, st.sampled_from([None, 0.01, 0.3])), min_size=2, max_size=4))
def test_sums_are_never_below_the_truth(entries: list[tuple[Event, float | None]]) -> None:
    """Of events that were fixed: tight composition is at most the sum, in any order."""
    all_events = [event if rate is None else SampledEvent(event, rate) for event, rate in entries]
    charges = [charge_share(event, 1e-6 / 2**at) for at, event in enumerate(all_events, 1)]
    total = sum_charges(charges)
    assert sum_charges(charges[::-1]) == total
    assert sum_charges(charges[:-1]).delta <= total.delta
    rates = {rate for _, rate in entries}
    inner: Event = Composition([event for event, _ in entries])
    true = (
        inner if len(rates) > 1 or None in rates else SampledEvent(inner, next(iter(rates)) or 0.5)
    )
    if math.isfinite(total.epsilon) and total.delta < 1:
        # The accountants are above the truth too: one's grid is coarse, the other shares equally.
        bounds = (Accountant(true), BasicAccountant(true))
        assert min(b.epsilon(delta=total.delta) for b in bounds) <= total.epsilon * 1.02


def test_amplified_guarantees_of_one_sample_do_not_add() -> None:
    """Two of (0.9, 1e-6), each amplified: (1.8, 2e-6) is false by four orders of magnitude."""
    inside = invert_amplification(epsilon=0.9, delta=1e-6, rate=0.01)
    sampled_event = SampledEvent(Mechanism(inside.epsilon, inside.delta), 0.01)
    charges = [charge_guarantee(sampled_event, Guarantee(0.9, 1e-6))] * 2
    true = Accountant(repeat_event(sampled_event, 2))
    assert true.delta(epsilon=1.8) > 0.009
    assert not charges_fit(charges, Guarantee(1.8, 2e-6))
    assert charges_fit(charges[:1], Guarantee(0.9, 1e-6))
    total = sum_charges(charges)
    assert total.epsilon == pytest.approx(math.log1p(0.01 * math.expm1(2 * inside.epsilon)))
    assert true.delta(epsilon=total.epsilon) <= total.delta * (1 + 1e-9)  # a grid's rounding
    mixed = [charges[0], charge_guarantee(Mechanism(0.1), Guarantee(0.1, 0.0))]
    assert sum_charges(mixed).epsilon >= inside.epsilon + 0.1


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=20))
def test_decimals_add_up_exactly(millionths: list[int]) -> None:
    numbers = [number / 10**6 for number in millionths]
    total = sum(millionths) / 10**6
    charges = [Charge(Guarantee(x, x * 1e-9), Guarantee(x, x * 1e-9)) for x in numbers]
    assert charges_fit(charges, Guarantee(total, 0.9))
    less = (sum(millionths) - 1) / 10**6
    assert not charges_fit(charges, Guarantee(less, 0.9))
    assert sum_charges(charges).epsilon == total
    assert Fraction(repr(sum_charges(charges).delta)) >= sum(
        Fraction(repr(charge.inside.delta)) for charge in charges
    )


@pytest.mark.parametrize(
    ("event", "share", "expected"),
    [
        (GeometricCounts(30, 0.5), 1e-4, lambda c: c.epsilon == 0.5 and c.delta < 1e-6),
        (Selection(0.3), 1e-6, lambda c: (c.epsilon, c.delta) == (0.3, 0.0)),
        (Mechanism(0.3, 1e-5), 1e-6, lambda c: (c.epsilon, c.delta) == (0.3, 1e-5)),
        (SafeRelease(20, 0.1), 1e-6, lambda c: 0.18 < c.epsilon < 0.19 and c.delta == 1e-6),
        (SafeRelease(20, 0.1), 1e-30, lambda c: math.isinf(c.epsilon)),
    ],
)
def test_delta_is_taken_where_it_lowers_epsilon(
    event: Event, share: float, expected: Callable[[Guarantee], bool]
) -> None:
    assert expected(charge_share(event, share).guarantee)


def test_what_promises_nothing_does_not_fit() -> None:
    lost = charge_share(SafeRelease(1, 0.999), 1e-9)
    assert math.isinf(lost.guarantee.epsilon)
    assert not charges_fit([lost], BUDGET)
    assert charges_fit([], BUDGET)
    assert sum_charges([]) == Guarantee(0.0, 0.0)
