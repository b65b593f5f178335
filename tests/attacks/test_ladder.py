"""The safe release that attacks are held against, and what its guarantee says of an attack."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.victims import bits, uniform

from incrowd.attacks.ladder import Ladder, most
from incrowd.privacy.binomial import delta


def test_cells_are_public_and_hold_k_drawn_rows() -> None:
    rng = np.random.default_rng(1)
    points = uniform(4000, rng)
    ladder = Ladder((30, 40, 50, 40, 10), k=20, beta=0.2)
    shown = ladder.publish(points, bits(rng))
    assert len(shown.sizes) == 4
    assert shown.sizes.min() >= 20
    assert (shown.low % ladder.widths == 0).all()
    assert (shown.high - shown.low + 1 == ladder.widths).all()
    # Binomial(4000, 0.2) is beyond 700 and 900 with probability 1e-4.
    assert 700 < shown.sizes.sum() < 900


def test_the_most_an_attack_can_do_follows_from_the_guarantee() -> None:
    ladder = Ladder((1,), k=20, beta=0.2)
    bound = most([ladder], 0.01, delta=1e-5)
    epsilon = math.log((bound - 1e-5) / 0.01)
    assert delta(k=20, beta=0.2, epsilon=epsilon + 1e-9) <= 1e-5
    assert delta(k=20, beta=0.2, epsilon=epsilon - 1e-3) > 1e-5
    assert bound < most([ladder] * 2, 0.01, delta=1e-5) < 0.01 * math.exp(2 * epsilon) + 1e-5
    assert most([ladder], 0.0, delta=1e-5) == pytest.approx(1e-5)
    assert most([ladder], 1.0, delta=1e-5) == 1.0
