from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.privacy.sample import Definition, delta
from incrowd.privacy.sample_inverse import beta, crowd_size, epsilon

definitions = st.sampled_from(["tight", "paper"])
targets = st.floats(-30, -0.7).map(lambda x: 10**x)


@pytest.mark.parametrize(
    ("at", "rate", "by_paper", "tight"),
    [
        (0.25, 0.1, 23, 16),
        (0.25, 0.2, 52, 35),
        (0.5, 0.1, 13, 10),
        (0.5, 0.2, 25, 18),
        (1, 0.2, 14, 12),
        (1, 0.4, 31, 25),
    ],
)
def test_reference_values_of_the_smallest_k(
    at: float, rate: float, by_paper: int, tight: int
) -> None:
    assert crowd_size(beta=rate, epsilon=at, delta=1e-6) == tight
    assert crowd_size(beta=rate, epsilon=at, delta=1e-6, definition="paper") == by_paper


@given(k=st.integers(1, 300), rate=st.floats(1e-4, 0.99), target=targets, definition=definitions)
def test_epsilon_satisfies_its_target_and_no_smaller_one_does(
    k: int, rate: float, target: float, definition: Definition
) -> None:
    smallest = epsilon(k=k, beta=rate, delta=target, definition=definition)
    least = -math.log1p(-rate) if definition == "paper" else 0.0
    if math.isinf(smallest):
        far = max(least, 50.0)
        assert delta(k=k, beta=rate, epsilon=far, definition=definition) > target
        return
    assert delta(k=k, beta=rate, epsilon=smallest, definition=definition) <= target
    smaller = smallest * (1 - 1e-9) - 1e-12
    if smaller > least:
        assert delta(k=k, beta=rate, epsilon=smaller, definition=definition) > target


@given(rate=st.floats(1e-4, 0.97), at=st.floats(0.01, 8), target=targets, definition=definitions)
def test_k_satisfies_its_target_and_its_neighbor_does_not(
    rate: float, at: float, target: float, definition: Definition
) -> None:
    if definition == "paper":
        at = max(at, -math.log1p(-rate) + 1e-9)
    smallest = crowd_size(beta=rate, epsilon=at, delta=target, definition=definition)
    if math.isinf(smallest):
        assert at < 0.1
        return
    assert delta(k=smallest, beta=rate, epsilon=at, definition=definition) <= target
    if smallest > 1:
        assert delta(k=smallest - 1, beta=rate, epsilon=at, definition=definition) > target


@given(k=st.integers(1, 300), at=st.floats(0, 8), target=targets)
def test_beta_satisfies_its_target_and_no_larger_one_does(k: int, at: float, target: float) -> None:
    largest = beta(k=k, epsilon=at, delta=target)
    assert delta(k=k, beta=largest, epsilon=at) <= target
    larger = largest + 1e-7 * min(largest, 1 - largest)
    if larger < 1:
        assert delta(k=k, beta=larger, epsilon=at) > target


@given(k=st.integers(2, 200), at=st.floats(0.05, 8), target=targets)
def test_the_papers_beta_satisfies_its_target(k: int, at: float, target: float) -> None:
    largest = beta(k=k, epsilon=at, delta=target, definition="paper")
    assert largest <= -math.expm1(-at)
    assert delta(k=k, beta=largest, epsilon=at, definition="paper") <= target
    # No larger one on a coarse grid up to the limit of the definition satisfies it.
    above = np.linspace(largest * 1.001, -math.expm1(-at) * (1 - 1e-12), 200)
    above = above[above > largest * 1.001]
    if above.size:
        assert np.all(delta(k=k, beta=above, epsilon=at, definition="paper") > target * 0.95)


def test_arrays_are_solved_element_by_element() -> None:
    rates = np.array([0.05, 0.2, 0.6, 0.9])
    sizes = crowd_size(beta=rates, epsilon=1.0, delta=1e-6)
    assert sizes.tolist() == [crowd_size(beta=float(b), epsilon=1.0, delta=1e-6) for b in rates]
    grid = epsilon(k=[[10], [40]], beta=rates, delta=1e-6)
    assert grid.shape == (2, 4)
    assert grid[1, 1] == pytest.approx(epsilon(k=40, beta=0.2, delta=1e-6), rel=1e-12)
    solved = beta(k=[10, 40], epsilon=[1.0, 0.5], delta=1e-6)
    assert solved[1] == pytest.approx(beta(k=40, epsilon=0.5, delta=1e-6), rel=1e-12)


def test_extreme_targets_are_solved_too() -> None:
    rate = beta(k=10_000, epsilon=0.0, delta=1e-50)
    assert (
        delta(k=10_000, beta=rate, epsilon=0.0)
        <= 1e-50
        < delta(k=10_000, beta=rate * 1.001, epsilon=0.0)
    )
    tiny = beta(k=3, epsilon=1e-9, delta=1e-300, definition="paper")
    assert 0 < tiny < 1e-9


def test_no_epsilon_and_no_k_are_inf() -> None:
    assert epsilon(k=2, beta=0.5, delta=1e-6) == math.inf
    assert crowd_size(beta=0.5, epsilon=0.0, delta=1e-9) == math.inf
