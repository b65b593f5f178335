"""Budgets of counts: within epsilon and delta, and no crowd larger than it must be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from incrowd.errors import IncrowdError, ParameterError, UnsolvableError
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.counts import is_even
from incrowd.privacy.draw_parameters import CountsEvent
from incrowd.privacy.events import (
    Coin,
    Composition,
    GaussianCounts,
    GeometricCounts,
    SampledEvent,
)
from incrowd.privacy.split import BudgetSplit, split_for_counts


def spent(split: BudgetSplit) -> float:
    return Accountant(split.events).delta(epsilon=split.epsilon)


def largest(split: BudgetSplit) -> CountsEvent:
    draws = split.draws[-1]
    assert isinstance(draws, CountsEvent)
    return draws


def bound(split: BudgetSplit) -> int:
    return largest(split).r


def shorter(split: BudgetSplit) -> CountsEvent:
    """The same noise with a bound that is one smaller."""
    event = largest(split)
    if isinstance(event, GeometricCounts):
        return GeometricCounts(event.r - 1, event.epsilon)
    return GaussianCounts(event.r - 1, event.variance)


@pytest.mark.parametrize(("epsilon", "r"), [(0.5, 25), (1.0, 14)])
def test_one_table_has_the_smallest_bound_and_a_coin_that_uses_delta_up(
    epsilon: float, r: int
) -> None:
    split = split_for_counts(epsilon=epsilon, delta=1e-6)
    assert bound(split) == r
    assert isinstance(split.event, Coin)
    first, second = split.draws
    assert first == GeometricCounts(r - 1, epsilon)
    assert second == GeometricCounts(r, epsilon)
    assert 0.999e-6 < spent(split) <= 1e-6
    assert spent(replace(split, event=first)) > 1e-6


def test_no_coin_whose_rarer_side_would_be_much_weaker() -> None:
    """At epsilon = 2 one step less of r has seven times the delta."""
    split = split_for_counts(epsilon=2.0, delta=1e-6)
    assert split.event == GeometricCounts(7, 2.0)
    coin = Coin(GeometricCounts(6, 2.0), GeometricCounts(7, 2.0), 0.09)
    assert spent(replace(split, event=coin)) <= 1e-6
    assert not is_even(coin)
    assert is_even(Coin(GeometricCounts(13, 1.0), GeometricCounts(14, 1.0), 0.9))
    assert not is_even(Coin(GeometricCounts(13, 1.0), GeometricCounts(15, 1.0), 0.9))
    assert not is_even(Coin(GeometricCounts(13, 1.0), GeometricCounts(14, 0.9), 0.9))


def test_the_coin_of_the_reference() -> None:
    split = split_for_counts(epsilon=1.0, delta=1e-6)
    assert isinstance(split.event, Coin)
    assert split.event.chance == pytest.approx(0.9325, abs=1e-4)


@pytest.mark.parametrize(
    ("tables", "r", "kind"),
    [(2, 27, GeometricCounts), (3, 39, GaussianCounts), (4, 45, GaussianCounts),
     (11, 75, GaussianCounts), (36, 139, GaussianCounts)],
)  # fmt: skip
def test_of_several_tables_the_law_with_the_smaller_crowd_is_taken(
    tables: int, r: int, kind: type
) -> None:
    split = split_for_counts(epsilon=1.0, delta=1e-6, tables=tables)
    assert isinstance(split.event, kind)
    assert bound(split) == r
    assert spent(split) <= 1e-6
    assert spent(replace(split, event=shorter(split))) > 1e-6


@pytest.mark.parametrize("population", [None, 0.5, 0.1])
@pytest.mark.parametrize(
    ("tables", "selections", "choices"),
    [(1, [0.05], []), (1, [], []), (1, [0.1, 0.3], []), (2, [0.03], []), (5, [0.02], [0.01] * 4)],
)
def test_what_is_settled_holds_and_a_smaller_bound_would_not(
    tables: int, selections: list[float], choices: list[float], population: float | None
) -> None:
    split = split_for_counts(
        epsilon=1.0, delta=1e-5, selections=selections, choices=choices,
        tables=tables, population=population,
    )  # fmt: skip
    assert spent(split) <= 1e-5
    assert spent(replace(split, event=shorter(split))) > 1e-5


def test_choices_are_paid_for_by_the_noise() -> None:
    """Past what choices leave, noise would cost far more than any delta."""
    split = split_for_counts(epsilon=1.0, delta=1e-6, selections=[0.05])
    (_, event) = split.draws
    assert event == GeometricCounts(14, 0.95)
    assert spent(replace(split, event=GeometricCounts(14, 0.96))) > 1e-4


def test_a_table_that_is_a_sample_is_amplified_whole() -> None:
    split = split_for_counts(epsilon=1.0, delta=1e-6, selections=[0.05], population=0.1)
    (event,) = split.events
    assert isinstance(event, SampledEvent)
    assert isinstance(event.event, Composition)
    assert bound(split) < 5
    rare = split_for_counts(epsilon=1.0, delta=1e-3, population=1e-4)
    assert bound(rare) == 1
    assert spent(rare) <= 1e-3


def test_certificates_say_what_was_drawn() -> None:
    split = split_for_counts(epsilon=1.0, delta=1e-6, selections=[0.05])
    assert split.list_parameters(split.draws[0]) == {
        "noise": "geometric", "r": 13.0, "noise_epsilon": 0.95, "search_epsilon": 0.05,
        "coin": 0.220983, "coin_r": 14.0,
    }  # fmt: skip
    several = split_for_counts(epsilon=1.0, delta=1e-6, tables=4, choices=[0.02, 0.03])
    (event,) = several.draws
    assert isinstance(event, GaussianCounts)
    assert several.list_parameters(event) == {
        "noise": "gaussian", "r": float(event.r), "noise_variance": event.variance,
    }  # fmt: skip
    assert several.shared_parameters == {"slices_epsilon": 0.05}


@pytest.mark.parametrize("epsilon", [999_999.0, 1_000_001.0, 1e9])
def test_an_absurd_epsilon_is_settled_at_once(epsilon: float) -> None:
    split = split_for_counts(epsilon=epsilon, delta=1e-6)
    assert bound(split) == 1
    assert 0 < spent(split) <= 1e-6


def test_what_cannot_be_settled() -> None:
    with pytest.raises(IncrowdError, match=", and leave none for the release"):
        split_for_counts(epsilon=1.0, delta=1e-6, selections=[1.0])
    with pytest.raises(UnsolvableError, match="No noisy counts with noise of at most"):
        split_for_counts(epsilon=1e-6, delta=1e-9)
    for delta in (1e-301, 3e-320):
        with pytest.raises(ParameterError, match="be at least 1e-300"):
            split_for_counts(epsilon=1.0, delta=delta)
    with pytest.raises(UnsolvableError, match="No noisy counts with noise of at most"):
        split_for_counts(epsilon=1e-6, delta=1e-200)
    with pytest.raises(UnsolvableError, match="tables: 3"):
        split_for_counts(epsilon=1e-5, delta=1e-12, tables=3)
