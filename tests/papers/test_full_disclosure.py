"""Delta-sampling shows n delta people whole; a safe release shows none."""

from __future__ import annotations

import numpy as np
from support.victims import draw_people, make_bits

from incrowd.codes.axis import ClassBounds
from incrowd.measure.estimate import compute_interval
from incrowd.papers.baselines import draw_delta_sample
from incrowd.papers.full_disclosure import attack_full_disclosure
from incrowd.papers.safe_steps import SteppedRelease
from incrowd.privacy.events import SafeRelease
from incrowd.privacy.smooth import delta_sampling


def test_delta_sampling_shows_people_whole() -> None:
    rng = np.random.default_rng(1)
    members, others = draw_people(20_000, rng), draw_people(20_000, rng)
    published = draw_delta_sample(members, delta=0.01, bits=make_bits(rng))
    bound = float(delta_sampling(delta=0.01, epsilon=0.0).delta_at(0.0))
    full_disclosure = attack_full_disclosure(
        published, members, others, name="0.01", rng=rng, bound=bound
    )
    low, high = compute_interval(
        full_disclosure.success.hits, 20_000, 1 - 1e-6
    )  # fails with probability 1e-6
    assert low < bound < high < 2 * bound
    assert low > bound / 2
    assert full_disclosure.succeeds
    assert full_disclosure.details["people published whole"] == full_disclosure.success.hits
    assert full_disclosure.control is not None
    assert full_disclosure.control.hits <= 2  # 200 rows of 96 million: any hit has probability 0.04


def test_a_safe_release_shows_nobody_whole() -> None:
    rng = np.random.default_rng(2)
    members, others = draw_people(5000, rng), draw_people(5000, rng)
    published = SteppedRelease((20, 40, 50, 20, 10), SafeRelease(k=20, beta=0.3)).publish(
        members, make_bits(rng)
    )
    assert len(published.sizes) > 10
    full_disclosure = attack_full_disclosure(published, members, others, name="safe", rng=rng)
    assert full_disclosure.success.hits == 0
    assert not full_disclosure.succeeds


def test_a_row_that_shows_all_columns_but_one_is_not_whole() -> None:
    rng = np.random.default_rng(3)
    members, others = draw_people(20, rng), draw_people(20, rng) + 100
    high = members.copy()
    high[5:, 4] += 1
    full_disclosure = attack_full_disclosure(
        ClassBounds(members, high, np.ones(20, np.int64)), members, others, name="", rng=rng
    )
    assert full_disclosure.success.hits == 5
