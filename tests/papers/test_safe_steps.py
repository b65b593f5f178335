"""The safe release that attacks are held against, and what its guarantee says of an attack."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.victims import draw_people, make_bits

from incrowd.papers.safe_steps import SteppedRelease, bound_attack_success
from incrowd.privacy.events import GeometricCounts, SafeRelease
from incrowd.privacy.sample import delta


def test_cells_are_public_and_hold_k_drawn_rows() -> None:
    rng = np.random.default_rng(1)
    points = draw_people(4000, rng)
    scheme = SteppedRelease((30, 40, 50, 40, 10), SafeRelease(k=20, beta=0.2))
    published = scheme.publish(points, make_bits(rng))
    assert len(published.sizes) == 4
    assert published.sizes.min() >= 20
    assert (published.low % scheme.widths == 0).all()
    assert (published.high - published.low + 1 == scheme.widths).all()
    # Binomial(4000, 0.2) is beyond 700 and 900 with probability 1e-4.
    assert 700 < published.sizes.sum() < 900


def test_the_most_an_attack_can_do_follows_from_the_guarantee() -> None:
    scheme = SteppedRelease((1,), SafeRelease(k=20, beta=0.2))
    bound = bound_attack_success([scheme], 0.01, delta=1e-5)
    epsilon = math.log((bound - 1e-5) / 0.01)
    assert delta(k=20, beta=0.2, epsilon=epsilon + 1e-9) <= 1e-5
    assert delta(k=20, beta=0.2, epsilon=epsilon - 1e-3) > 1e-5
    assert (
        bound
        < bound_attack_success([scheme] * 2, 0.01, delta=1e-5)
        < 0.01 * math.exp(2 * epsilon) + 1e-5
    )
    assert bound_attack_success([scheme], 0.0, delta=1e-5) == pytest.approx(1e-5)
    assert bound_attack_success([scheme], 1.0, delta=1e-5) == 1.0


def test_counts_have_their_own_law() -> None:
    rng = np.random.default_rng(2)
    points = draw_people(4000, rng)
    event = GeometricCounts(r=14, epsilon=1.0)
    published = SteppedRelease((30, 40, 50, 40, 10), event, k=5).publish(points, make_bits(rng))
    true = SteppedRelease((30, 40, 50, 40, 10), SafeRelease(k=1, beta=1 - 1e-15)).publish(
        points, make_bits(rng)
    )
    assert np.abs(published.sizes - true.sizes).max() <= 14
    assert (published.low == true.low).all()
    few = SteppedRelease((1, 1, 1, 1, 1), event, k=5).publish(points, make_bits(rng))
    assert len(few.sizes) == 0
    bound = bound_attack_success([SteppedRelease((1,), event)], 0.01, delta=1e-6)
    assert 0.9 * math.e * 0.01 < bound <= math.e * 0.01 + 1e-6
