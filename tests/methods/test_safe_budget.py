"""What is settled for a table that is itself a sample: within the budget, and no smaller crowd."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest
from support.exact import OutcomePair, make_neighbors
from support.releases import list_sample_draws

from incrowd.errors import IncrowdError, UnsolvableError
from incrowd.methods.safe.budget import (
    split_fixed_budget,
    split_search_budget,
    split_single_release,
)
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.amplification import Guarantee
from incrowd.privacy.events import Composition, Event, SafeRelease, SampledEvent
from incrowd.privacy.plan import plan
from incrowd.privacy.randomness import round_down_rate
from incrowd.privacy.split import BudgetSplit
from incrowd.release.ledger import Ledger
from incrowd.spec.release import SafeSpec


def settled(**parameters: Any) -> BudgetSplit:
    return split_fixed_budget(SafeSpec(**parameters))


def delta_of(pair: SafeRelease, rate: float, epsilon: float) -> float:
    return Accountant(SampledEvent(pair, rate)).delta(epsilon=epsilon)


def enumerated(pair: SafeRelease, rate: float, epsilon: float, sizes: Sequence[int]) -> float:
    """Delta with everybody else known to be in the table, over cell sizes, either way."""
    with mpmath.workdps(60):
        t = Fraction(str(mpmath.exp(epsilon) * (1 + mpmath.mpf(10) ** -55)))
    b, worst = Fraction(rate), Fraction(0)
    for n in sizes:
        cell = make_neighbors(n, pair.k, Fraction(pair.beta))
        mixed = [b * x + (1 - b) * y for x, y in zip(cell.present, cell.absent, strict=True)]
        scale = b.denominator
        outcomes = OutcomePair(
            [int(x * scale) for x in mixed], [y * scale for y in cell.absent], cell.total * scale
        )
        worst = max(
            worst, outcomes.compute_divergence(t), outcomes.swap_sides().compute_divergence(t)
        )
    return float(worst)


@pytest.mark.parametrize(("rate", "epsilon"), [(0.1, 1.0), (0.5, 0.5), (0.9, 1.0)])
def test_the_settled_pair_holds_although_everybody_else_is_known(
    rate: float, epsilon: float
) -> None:
    budget = settled(epsilon=epsilon, delta=1e-6, already_sampled=rate)
    (pair,) = list_sample_draws(budget)
    true = enumerated(pair, rate, epsilon, range(1, 3 * math.ceil(pair.k / pair.beta)))
    assert budget.events == [SampledEvent(pair, rate)]
    result = Accountant(budget.events).delta(epsilon=epsilon)
    assert true <= result <= true * (1 + 1e-9)
    assert result <= budget.delta <= 1e-6
    floor = rate * pair.beta**pair.k
    assert floor <= 0.25e-6  # a second release of the table must have an epsilon
    assert max(result / 1e-6, floor / 0.25e-6) > 0.9  # and what is allowed is used


def largest_rate(k: int, rate: float, epsilon: float, delta: float) -> float:
    """The largest beta that fits, its floor four times, by bisection on the accountant's answer."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        fits = 4 * rate * middle**k <= delta
        fits = fits and delta_of(SafeRelease(k, middle), rate, epsilon) <= delta
        low, high = (middle, high) if fits else (low, middle)
    return low


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.3, 0.95])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-6), (1.0, 1e-6), (2.0, 1e-4)])
def test_no_crowd_is_smaller(rate: float, epsilon: float, delta: float) -> None:
    (pair,) = list_sample_draws(settled(epsilon=epsilon, delta=delta, already_sampled=rate))
    assert delta_of(pair, rate, epsilon) <= delta
    crowd = pair.k / pair.beta
    for k in range(max(1, pair.k - 8), pair.k + 9):
        best = largest_rate(k, rate, epsilon, delta)
        assert crowd <= k / best * (1 + 1e-3)  # beta is cut to four digits
    if rate < 0.3:
        assert crowd < plan(epsilon=epsilon, delta=delta).crowd


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("beta", [0.05, 0.5, 0.95])
def test_with_a_rate_k_is_the_smallest(rate: float, beta: float) -> None:
    for word in ("beta", "keep"):
        (pair,) = list_sample_draws(
            settled(epsilon=0.5, delta=1e-5, already_sampled=rate, **{word: beta})
        )
        assert pair.beta == round_down_rate(beta)
        assert delta_of(pair, rate, 0.5) <= 1e-5
        assert pair.k == 1 or delta_of(SafeRelease(pair.k - 1, beta), rate, 0.5) > 1e-5


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("k", [1, 7, 60])
def test_with_a_k_the_rate_is_the_largest(rate: float, k: int) -> None:
    (pair,) = list_sample_draws(settled(epsilon=0.5, delta=1e-5, already_sampled=rate, k=k))
    assert pair.k == k
    assert delta_of(pair, rate, 0.5) <= 1e-5
    assert delta_of(SafeRelease(k, pair.beta * (1 + 1e-6)), rate, 0.5) > 1e-5


def test_the_direction_of_the_absent_counts_too() -> None:
    """At a large beta and a small epsilon it decides, and the smallest k is that of both."""
    rate, epsilon, delta, beta = 0.9, 0.05, 1e-2, 0.95
    (pair,) = list_sample_draws(
        settled(epsilon=epsilon, delta=delta, already_sampled=rate, beta=beta)
    )
    one_less = SafeRelease(pair.k - 1, beta)
    assert delta_of(pair, rate, epsilon) <= delta < delta_of(one_less, rate, epsilon)


def test_what_is_given_is_accounted_by_the_same_formula() -> None:
    parameters = {"k": 20, "beta": 0.5, "already_sampled": 0.2}
    event = SampledEvent(SafeRelease(20, 0.5), 0.2)
    by_epsilon, by_delta = settled(epsilon=1.0, **parameters), settled(delta=1e-5, **parameters)
    assert by_epsilon.events == by_delta.events == [event]
    assert by_epsilon.delta == pytest.approx(Accountant(event).delta(epsilon=1.0), rel=1e-5)
    assert by_delta.epsilon == pytest.approx(Accountant(event).epsilon(delta=1e-5), rel=1e-5)
    with pytest.raises(IncrowdError, match="more than 1e-12 of the spec"):
        settled(epsilon=1.0, delta=1e-12, **parameters)


def test_a_sample_that_cannot_be_settled_says_what_is_missing() -> None:
    for parameters in ({"epsilon": 1.0}, {"delta": 1e-6, "k": 20}, {"epsilon": 1.0, "beta": 0.5}):
        with pytest.raises(IncrowdError, match="`epsilon` and `delta`.*`k` and `beta`"):
            settled(already_sampled=0.5, **parameters)
    with pytest.raises(UnsolvableError, match=r"No k up to 10,000,000 .* already_sampled = 0.9"):
        settled(epsilon=1e-9, delta=1e-9, beta=0.99, already_sampled=0.9)


def test_a_sample_rarer_than_delta_has_an_answer() -> None:
    """Then membership itself is unlikelier than delta, whatever is shown."""
    (pair,) = list_sample_draws(settled(epsilon=0.5, delta=1e-3, already_sampled=1e-4))
    assert pair.k == 1
    assert 0.99 < pair.beta < 1
    assert (
        list_sample_draws(settled(epsilon=0.5, delta=1e-3, already_sampled=1e-4, beta=0.5))[0].k
        == 1
    )
    slices = split_fixed_budget(SafeSpec(epsilon=0.5, delta=1e-3, already_sampled=1e-4), tables=3)
    assert Accountant(slices.events).delta(epsilon=0.5) <= 1e-3


def test_several_tables_have_the_rate_of_the_smallest_crowd() -> None:
    release = SafeSpec(epsilon=1.0, delta=1e-6, already_sampled=0.1)
    fixed_budget = split_fixed_budget(release, tables=3)
    (pair,) = list_sample_draws(fixed_budget)
    assert fixed_budget.events == [SampledEvent(Composition([pair] * 3), 0.1)]
    assert Accountant(fixed_budget.events).delta(epsilon=1.0) <= 1e-6
    for beta in (0.1, 0.2, 0.3, 0.5, 0.7, 0.9):
        safe_spec = SafeSpec(epsilon=1.0, delta=1e-6, already_sampled=0.1, beta=beta)
        (other,) = list_sample_draws(split_fixed_budget(safe_spec, tables=3))
        assert pair.k / pair.beta <= other.k / other.beta * 1.03
    (chosen,) = list_sample_draws(split_search_budget(release, selections=(0.02,), tables=3))
    assert chosen.beta == pair.beta


def test_a_search_of_a_sample_may_spend_what_amplification_leaves() -> None:
    """Choices are amplified with the rest: what exceeds epsilon without it may fit with it."""
    release = SafeSpec(epsilon=1.0, delta=1e-6, already_sampled=0.1)
    budget = split_search_budget(release, selections=(1.5,))
    assert Accountant(budget.events).delta(epsilon=1.0) <= 1e-6
    with pytest.raises(IncrowdError, match="leave none for the release"):
        split_search_budget(release, selections=(3.0,))


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_two_releases_of_a_sample_have_a_price(tmp_path: Path, rate: float) -> None:
    split = settled(epsilon=1.0, delta=1e-6, already_sampled=rate)
    (event,) = split.events
    book = Ledger(tmp_path / "table.ledger")
    book.set_budget(epsilon=9.0, delta=4e-6)
    assert isinstance(event, SampledEvent)
    certified = Guarantee(split.epsilon, split.delta)
    book.book([event], guarantee=certified)
    assert book.total() == certified
    book.book([Composition([event])], guarantee=certified)  # however it is written
    both: Event = SampledEvent(Composition([event.event] * 2), rate)
    true = Accountant(both).epsilon(delta=book.total().delta)
    assert true <= book.total().epsilon < 4.0  # more than the sum of what each satisfies
    assert book.total().epsilon > 2.0


def test_one_of_planned_releases_is_certified_by_itself_and_all_together() -> None:
    single, together = split_single_release(
        split_fixed_budget(SafeSpec(epsilon=1.0, delta=1e-6), tables=6), 3
    )
    assert single.tables == 2
    assert together == Guarantee(1.0, single.delta)
    assert single.delta <= 1e-6
    assert Accountant(single.events).delta(epsilon=single.epsilon) <= single.delta
    assert Accountant(single.events * 3).delta(epsilon=1.0) <= 1e-6
    assert single.epsilon < 1.0
