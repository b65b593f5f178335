"""A table that is itself a sample: what is accounted, against all outcomes, with the rest known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from support.exact import OutcomePair, compute_outcomes, make_neighbors

from incrowd.privacy.accountant import Accountant, BasicAccountant, _iterate_leaves
from incrowd.privacy.amplification import amplify_guarantee
from incrowd.privacy.events import Composition, Event, OneOf, SafeRelease, SampledEvent, Selection


def e_to(epsilon: float) -> Fraction:
    """e^epsilon to 60 digits, rounded up: what is compared with it is rounded down."""
    with mpmath.workdps(60):
        return Fraction(str(mpmath.exp(epsilon) * (1 + mpmath.mpf(10) ** -55)))


def sampled(pair: OutcomePair, rate: Fraction) -> OutcomePair:
    """The target is in the table with probability ``rate``; everybody else is as they are."""
    a, d = rate.numerator, rate.denominator
    mixture = [a * x + (d - a) * y for x, y in zip(pair.present, pair.absent, strict=True)]
    return OutcomePair(mixture, [d * y for y in pair.absent], d * pair.total)


def true_delta(k: int, beta: float, rate: float, epsilon: float, sizes: Sequence[int]) -> float:
    """The larger direction at the worst of several cell sizes, by enumeration."""
    t, b = e_to(epsilon), Fraction(rate)
    pairs = [sampled(make_neighbors(n, k, Fraction(beta)), b) for n in sizes]
    return float(
        max(max(p.compute_divergence(t), p.swap_sides().compute_divergence(t)) for p in pairs)
    )


def test_the_other_rows_of_a_cell_may_be_known() -> None:
    """Six others in the table: whoever is the seventh shows with probability 0.1 * 0.99**7."""
    true = true_delta(7, 0.99, 0.1, 1.0, range(1, 12))
    assert true == pytest.approx(0.1 * 0.99**7) == pytest.approx(0.0932, abs=1e-4)
    assert Accountant(SampledEvent(SafeRelease(7, 0.99), 0.1)).delta(epsilon=1.0) >= true


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5, 0.9])
@pytest.mark.parametrize(("k", "beta"), [(1, 0.25), (3, 0.5), (5, 0.875), (12, 0.3125)])
def test_a_sampled_release_costs_what_all_outcomes_say(k: int, beta: float, rate: float) -> None:
    accountant = Accountant(SampledEvent(SafeRelease(k, beta), rate))
    for epsilon in (0.0, 0.05, 0.3, 1.0, 2.0):
        true = true_delta(k, beta, rate, epsilon, range(1, int(8 * k / beta) + 20))
        claimed = accountant.delta(epsilon=epsilon)
        assert true <= claimed <= true * (1 + 1e-9) + 1e-300, epsilon


@pytest.mark.parametrize("rate", [0.125, 0.75])
def test_others_who_may_or_may_not_be_there_tell_less(rate: float) -> None:
    """The rest of the population drawn as well, and unknown: an average, so never dearer."""
    k, beta, b = 2, Fraction(1, 2), Fraction(rate)
    event = Accountant(SampledEvent(SafeRelease(k, 0.5), rate))
    once = Accountant(SafeRelease(k, math.nextafter(0.5 * rate, 1)))
    for epsilon in (0.0, 0.2, 0.7):
        t = e_to(epsilon)
        for others in range(8):
            p, q = _law(others, 1, b, beta, k), _law(others, 0, b, beta, k)
            ways = [sum(max(x - t * y, Fraction(0)) for x, y in zip(*two, strict=True))
                    for two in ((p, q), (q, p))]  # fmt: skip
            assert float(max(ways)) <= event.delta(epsilon=epsilon)
            # and with everybody's membership secret it is the release of the product's rate
            assert float(max(ways)) <= once.delta(epsilon=epsilon)


def _law(others: int, target: int, b: Fraction, beta: Fraction, k: int) -> list[Fraction]:
    """What a cell shows where everybody of the population is in the table with probability b."""
    law = [Fraction(0)] * (others + 3)
    for present in itertools.product((0, 1), repeat=others + target):
        n = sum(present)
        share = b**n * (1 - b) ** (len(present) - n)
        for at, x in enumerate(compute_outcomes(n, k, beta)):
            law[at] += share * Fraction(x, beta.denominator**n)
    return law


@pytest.mark.parametrize("rate", [0.1, 0.6])
def test_two_releases_of_one_sample_cost_what_all_outcomes_say(rate: float) -> None:
    """The target is in the table for both of them, or for neither."""
    k, beta = 2, 0.25
    accountant = Accountant(SampledEvent(Composition([SafeRelease(k, beta)] * 2), rate))
    for epsilon in (0.05, 0.3, 0.8):
        worst = 0.0
        for n in range(1, 14):
            pair = make_neighbors(n, k, Fraction(beta))
            both = OutcomePair(
                [x * y for x, y in itertools.product(pair.present, repeat=2)],
                [x * y for x, y in itertools.product(pair.absent, repeat=2)],
                pair.total**2,
            )
            mixed, t = sampled(both, Fraction(rate)), e_to(epsilon)
            worst = max(
                worst,
                float(mixed.compute_divergence(t)),
                float(mixed.swap_sides().compute_divergence(t)),
            )
        assert worst <= accountant.delta(epsilon=epsilon) <= 1.05 * worst


def test_a_sample_of_a_sample_is_a_sample_of_the_product_rounded_up() -> None:
    """Only the target's membership is secret in either; both together draw with the product."""
    for first, second in ((0.1, 0.3), (0.7, 0.1), (0.3, 0.3)):
        nested = SampledEvent(SampledEvent(SafeRelease(4, 0.5), first), second)
        (leaf,) = _iterate_leaves(nested)
        assert isinstance(leaf, SampledEvent)
        assert leaf.event == SafeRelease(4, 0.5)
        product = Fraction(first) * Fraction(second)
        assert product <= Fraction(leaf.rate) <= product * (1 + Fraction(1, 2**50))
        for epsilon in (0.0, 0.1, 1.0):
            delta = Accountant(nested).delta(epsilon=epsilon)
            once = Accountant(SampledEvent(SafeRelease(4, 0.5), first * second))
            assert delta == pytest.approx(once.delta(epsilon=epsilon), rel=1e-9)


def test_every_form_of_one_sampled_release_costs_the_same() -> None:
    """Alone, as a composition of one, as a choice of one: one formula."""
    release = SafeRelease(9, 0.4)
    forms: list[Event] = [release, Composition([release]), OneOf([release]),
                          Composition([OneOf([release]), Selection(0.0)])]  # fmt: skip
    for epsilon in (0.0, 0.2, 1.0):
        costs = [Accountant(SampledEvent(form, 0.2)).delta(epsilon=epsilon) for form in forms]
        assert costs == pytest.approx([costs[0]] * 4, rel=1e-3)
        assert min(costs) >= costs[0] * (1 - 1e-12)
    crude = amplify_guarantee(epsilon=Accountant(release).epsilon(delta=5e-3), rate=0.2).epsilon
    assert Accountant(SampledEvent(release, 0.2)).epsilon(delta=1e-3) <= crude * (1 + 1e-9)
    assert BasicAccountant(SampledEvent(release, 0.2)).epsilon(delta=1e-3) <= crude * (1 + 1e-9)


def test_more_sampling_costs_less() -> None:
    rates = np.array([0.01, 0.1, 0.4, 0.8, 0.999])
    costs = [
        Accountant(SampledEvent(SafeRelease(9, 0.4), float(r))).delta(epsilon=0.3) for r in rates
    ]
    assert costs == sorted(costs)
    assert costs[-1] <= Accountant(SafeRelease(9, 0.4)).delta(epsilon=0.3)
