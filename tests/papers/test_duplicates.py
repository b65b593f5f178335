"""A group of k identical rows of k-Duplication is one person, who can be named."""

from __future__ import annotations

import numpy as np
from support.victims import SIZES, draw_people, make_bits

from incrowd.codes.axis import ClassBounds
from incrowd.papers.baselines import make_number_axis, publish_duplicates
from incrowd.papers.duplicates import attack_duplicates
from incrowd.papers.safe_steps import SteppedRelease
from incrowd.privacy.events import SafeRelease

KNOWN = (0, 1, 2)


def test_k_duplication_names_people_with_all_they_have() -> None:
    rng = np.random.default_rng(1)
    members, others = draw_people(1000, rng), draw_people(1000, rng)
    published = publish_duplicates(
        [make_number_axis(size) for size in SIZES], members, k=10, bits=make_bits(rng)
    )
    duplicates = attack_duplicates(
        published, members, others, known_columns=KNOWN, name="10-Duplication", rng=rng
    )
    # A group misses with probability about 2000 / 240,000 / 2: three of a hundred or more, 8e-3;
    # more than eight, 1e-9.
    assert duplicates.success.tries >= 95
    assert duplicates.success.hits >= duplicates.success.tries - 8
    assert duplicates.control is not None
    assert duplicates.control.hits == 0
    assert duplicates.succeeds
    assert float(duplicates.details["rows in a group"]) >= 10


def test_a_safe_release_names_nobody_better_than_a_guess() -> None:
    rng = np.random.default_rng(2)
    members, others = draw_people(5000, rng), draw_people(5000, rng)
    published = SteppedRelease((20, 40, 50, 20, 10), SafeRelease(k=20, beta=0.3)).publish(
        members, make_bits(rng)
    )
    duplicates = attack_duplicates(
        published, members, others, known_columns=KNOWN, name="safe", rng=rng
    )
    assert duplicates.success.tries >= 10
    assert duplicates.success.hits <= 2  # each is right with probability 1/200
    assert duplicates.control is not None
    assert duplicates.success.low <= duplicates.control.high
    assert not duplicates.succeeds


def test_one_of_several_who_fit_is_named_at_random() -> None:
    """Two people who are alike in what is known, and not in the rest: he is right half the time."""
    rng = np.random.default_rng(3)
    members = np.array([[1, 2, 3, 4, 5], [1, 2, 3, 9, 9]], dtype=np.int32)
    rows = np.repeat(members[:1], 2000, axis=0)
    published = ClassBounds(rows, rows, np.full(2000, 5))
    duplicates = attack_duplicates(
        published, members, draw_people(1, rng) + 20, known_columns=KNOWN, name="twins", rng=rng
    )
    assert 0.44 < duplicates.success.value < 0.56  # fails with probability 1e-7
