from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.privacy.sample import delta
from incrowd.privacy.smooth import delta_sampling, expected_failures, smooth_bound


@given(
    k=st.integers(1, 200),
    beta=st.floats(1e-3, 0.6),
    start=st.floats(0.01, 3),
    z=st.floats(1, 8),
)
def test_the_bound_lies_above_the_papers_delta(k: int, beta: float, start: float, z: float) -> None:
    start = max(start, -math.log1p(-beta) + 1e-9)
    bound = smooth_bound(k=k, beta=beta, epsilon=start)
    paper_delta = delta(k=k, beta=beta, epsilon=start * z, definition="paper")
    assert bound.delta_at(start * z) >= paper_delta * (1 - 1e-9)


def test_the_bound_is_not_idle() -> None:
    """The misprinted numerator, gamma(1 - beta), would make the bound at z = 1 far too small."""
    bound = smooth_bound(k=20, beta=0.1, epsilon=0.5)
    paper = delta(k=20, beta=0.1, epsilon=0.5, definition="paper")
    assert paper < bound.delta < 1000 * paper


def test_f_starts_at_one_and_falls() -> None:
    f = smooth_bound(k=20, beta=0.2, epsilon=0.25).f(np.linspace(1, 6, 50))
    assert f[0] == pytest.approx(1.0)
    assert np.all(np.diff(f) < 0)


def test_composition_adds_and_takes_the_larger_f() -> None:
    first = smooth_bound(k=20, beta=0.1, epsilon=0.5)
    second = smooth_bound(k=30, beta=0.2, epsilon=0.4)
    both = first.compose(second)
    assert both.epsilon == pytest.approx(0.9)
    assert both.delta == pytest.approx(first.delta + second.delta)
    for x in (1.0, 1.5, 4.0):
        exact = first.delta_at(0.5 * x) + second.delta_at(0.4 * x)
        assert both.delta_at(0.9 * x) >= exact * (1 - 1e-12)


def test_delta_sampling_exposes_five_people_and_never_falls() -> None:
    warning = delta_sampling(delta=1e-7, epsilon=0.1)
    assert expected_failures(delta=1e-7, n=50_000_000) == pytest.approx(5.0)
    assert warning.delta_at([0.1, 1.0, 50.0]) == pytest.approx([1e-7] * 3)
    assert delta_sampling(delta=1e-7, epsilon=0.0).delta_at(3.0) == pytest.approx(1e-7)
