"""Plans of information and choices, and the budget that is spent from them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.errors import ParameterError, UnsolvableError
from incrowd.privacy.accountant import Accountant, BasicAccountant
from incrowd.privacy.events import (
    BoundedChoice,
    Composition,
    GaussianMeasurements,
    SafeRelease,
    Selection,
    describe_event,
    parse_event,
    serialize_event,
)
from incrowd.privacy.gaussian import LARGEST_MEASURED
from incrowd.privacy.information import InformationBudget, plan_information


@pytest.mark.parametrize("epsilon", [0.01, 0.2, 1.0, 5.0])
@pytest.mark.parametrize("choices", [0, 1, 42, 300])
def test_a_plan_is_within_its_budget_and_uses_it(epsilon: float, choices: int) -> None:
    plan = plan_information(epsilon=epsilon, delta=1e-6, choices=choices)
    spent = Accountant(plan.events).delta(epsilon=epsilon)
    assert 0.998e-6 < spent <= 1e-6
    assert len(plan.events) == choices + 1
    alone = plan_information(epsilon=epsilon, delta=1e-6, choices=0).information
    assert plan.information >= 0.96 * alone


def test_a_choice_that_is_not_charged_would_be_noticed() -> None:
    plan = plan_information(epsilon=1.0, delta=1e-6, choices=40)
    more = [*plan.events, *[BoundedChoice(plan.choice_epsilon)] * 10]
    assert Accountant(more).delta(epsilon=1.0) > 1.01e-6


def test_a_thousand_measurements_alone_are_the_known_mu() -> None:
    """mu for (1, 1e-6), computed independently with mpmath to six digits: 0.236704."""
    assert math.sqrt(plan_information(epsilon=1.0, delta=1e-6, choices=0).information) == (
        pytest.approx(0.236704, abs=2e-6)
    )


def test_choices_cost_less_than_selections_and_no_less_than_the_exact_law() -> None:
    """Of k randomized responses with losses t and t - e the exact delta is a binomial sum."""
    e, k = 0.1, 20
    charged = Accountant([BoundedChoice(e)] * k)
    assert charged.epsilon(delta=1e-6) < 0.75 * Accountant([Selection(e)] * k).epsilon(delta=1e-6)
    for t in np.linspace(0.005, 0.095, 19):
        q = (math.exp(-t) - math.exp(-e)) / (1 - math.exp(-e))  # of the loss t, under Q
        p = q * math.exp(t)
        for epsilon in (0.1, 0.3, 0.6):
            exact = sum(
                math.comb(k, j) * max(
                    p**j * (1 - p) ** (k - j)
                    - math.exp(epsilon) * q**j * (1 - q) ** (k - j), 0
                )
                for j in range(k + 1)
            )  # fmt: skip
            assert exact <= charged.delta(epsilon=epsilon)


def test_one_choice_is_as_private_as_its_range_at_most() -> None:
    assert Accountant(BoundedChoice(0.3)).delta(epsilon=0.3) <= 1e-300
    assert Accountant(BoundedChoice(0.3)).delta(epsilon=0.29) > 1e-6
    assert BasicAccountant([BoundedChoice(0.3)] * 2).epsilon(delta=0) == pytest.approx(0.6)


def test_new_events_compose_with_all_others_and_come_back_from_plain_values() -> None:
    events = Composition(
        [BoundedChoice(0.011835216), GaussianMeasurements(0.0543), SafeRelease(k=20, beta=0.1)]
    )
    assert parse_event(serialize_event(events)) == events
    assert "range 0.0118352" in describe_event(events)
    assert "information 0.0543" in describe_event(events)
    together = Accountant(events).epsilon(delta=1e-6)
    least = max(Accountant(event).epsilon(delta=1e-6) for event in events.events)
    assert least < together < BasicAccountant(events).epsilon(delta=1e-6)


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-10, float("nan")])
def test_events_refuse_what_cannot_be_drawn(value: float) -> None:
    with pytest.raises(ParameterError):
        BoundedChoice(value)
    with pytest.raises(ParameterError):
        GaussianMeasurements(value if value != 1e-10 else 1e-13)


def test_parts_are_exact_and_never_exceed_the_budget() -> None:
    budget = InformationBudget(0.3)
    parts = [budget.spend(0.1, 5), budget.spend(Fraction(1, 7), 5), budget.spend(1.0, 5)]
    assert sum(parts) == budget.total == Fraction(0.3)
    assert parts[0] <= Fraction(0.1)
    with pytest.raises(ParameterError, match="part"):
        budget.spend(0.1, 5)


def test_the_proof_covers_so_many_numbers_and_no_more() -> None:
    budget = InformationBudget(1.0)
    budget.spend(0.1, LARGEST_MEASURED)
    with pytest.raises(ParameterError, match="numbers"):
        budget.spend(0.1, 1)


def test_a_hopeless_budget_is_refused() -> None:
    with pytest.raises(UnsolvableError, match="epsilon"):
        plan_information(epsilon=1e-6, delta=1e-12, choices=10)
    with pytest.raises(ParameterError, match="epsilon"):
        plan_information(epsilon=0.0, delta=1e-6, choices=10)
