"""The extreme value is read off data-dependent intervals, always, and off public ones never."""

from __future__ import annotations

import numpy as np
import pytest
from support.victims import make_bits

from incrowd.arrays import Codes
from incrowd.codes.axis import ClassBounds
from incrowd.papers.baselines import recode_clusters
from incrowd.papers.extreme_value import (
    AREAS,
    KNOWN,
    TOP,
    VALUES,
    WORTH,
    attack_extreme_value,
    draw_town,
    make_town_axes,
)
from incrowd.papers.safe_steps import SteppedRelease, bound_attack_success
from incrowd.privacy.events import SafeRelease


def test_one_person_of_a_town_is_rich() -> None:
    worth = draw_town(500, np.random.default_rng(0))[:, WORTH]
    assert (worth > KNOWN).sum() == 1
    assert worth.argmax() == 499
    assert worth.max() <= TOP


@pytest.mark.parametrize("by", ["cluster", "mondrian"])
def test_ends_from_the_data_are_somebodys_for_certain(by: str) -> None:
    """It is right of every town, whatever the seed: the proof leaves nothing to chance."""
    extreme_value = attack_extreme_value(
        lambda points, _: recode_clusters(make_town_axes(), points, k=10, by=by).boxes,
        name=by,
        rng=np.random.default_rng(1),
        towns=40,
        people=100,
    )
    assert extreme_value.success.hits == extreme_value.success.tries == 40
    # The control guesses one of 450 values; four or more of 40 are right with probability 2e-6.
    assert extreme_value.control is not None
    assert extreme_value.control.hits <= 3
    assert extreme_value.guess.hits <= 3
    assert extreme_value.succeeds


def test_public_ends_tell_nothing() -> None:
    scheme = SteppedRelease((AREAS, 125), SafeRelease(k=20, beta=0.3))
    published = scheme.publish(
        draw_town(200, np.random.default_rng(2)), make_bits(np.random.default_rng(2))
    )
    assert published.high[:, WORTH].max() > KNOWN  # so the attacker reads it, and is misled
    bound = bound_attack_success([scheme], 1 / VALUES)
    extreme_value = attack_extreme_value(
        lambda points, rng: scheme.publish(points, make_bits(rng)),
        name="safe",
        rng=np.random.default_rng(3),
        towns=300,
        bound=bound,
    )
    # Right with probability 1/450: six or more of 300 with probability 1e-4.
    assert extreme_value.success.hits <= 5
    assert extreme_value.control is not None
    assert extreme_value.success.low <= extreme_value.control.high
    assert extreme_value.success.low <= bound
    assert not extreme_value.succeeds


def test_a_ladder_whose_last_end_is_from_the_data_is_caught() -> None:
    def topped(points: Codes, _: np.random.Generator) -> ClassBounds:
        return ClassBounds(
            np.zeros((1, 2), np.int32), points.max(axis=0)[None], np.array([len(points)])
        )

    extreme_value = attack_extreme_value(
        topped, name="topped", rng=np.random.default_rng(4), towns=50
    )
    assert extreme_value.success.value == 1
