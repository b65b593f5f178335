"""The extreme value is read off data-dependent intervals, always, and off public ones never."""

from __future__ import annotations

import numpy as np
import pytest
from support.victims import bits

from incrowd.arrays import Codes
from incrowd.codes.axis import Boxes
from incrowd.papers.baselines import clustered
from incrowd.papers.extreme import AREAS, KNOWN, TOP, VALUES, WORTH, axes, extreme, town
from incrowd.papers.safe_steps import SafeSteps, most
from incrowd.privacy.events import SafeRelease


def test_one_person_of_a_town_is_rich() -> None:
    worth = town(500, np.random.default_rng(0))[:, WORTH]
    assert (worth > KNOWN).sum() == 1
    assert worth.argmax() == 499
    assert worth.max() <= TOP


@pytest.mark.parametrize("by", ["cluster", "mondrian"])
def test_ends_from_the_data_are_somebodys_for_certain(by: str) -> None:
    """It is right of every town, whatever the seed: the proof leaves nothing to chance."""
    found = extreme(
        lambda points, _: clustered(axes(), points, k=10, by=by).boxes,
        name=by,
        rng=np.random.default_rng(1),
        towns=40,
        people=100,
    )
    assert found.success.hits == found.success.tries == 40
    # The control guesses one of 450 values; four or more of 40 are right with probability 2e-6.
    assert found.control is not None
    assert found.control.hits <= 3
    assert found.guess.hits <= 3
    assert found.succeeds


def test_public_ends_tell_nothing() -> None:
    scheme = SafeSteps((AREAS, 125), SafeRelease(k=20, beta=0.3))
    shown = scheme.publish(town(200, np.random.default_rng(2)), bits(np.random.default_rng(2)))
    assert shown.high[:, WORTH].max() > KNOWN  # so the attacker reads it, and is misled
    bound = most([scheme], 1 / VALUES)
    found = extreme(
        lambda points, rng: scheme.publish(points, bits(rng)),
        name="safe",
        rng=np.random.default_rng(3),
        towns=300,
        bound=bound,
    )
    # Right with probability 1/450: six or more of 300 with probability 1e-4.
    assert found.success.hits <= 5
    assert found.control is not None
    assert found.success.low <= found.control.high
    assert found.success.low <= bound
    assert not found.succeeds


def test_a_ladder_whose_last_end_is_from_the_data_is_caught() -> None:
    def topped(points: Codes, _: np.random.Generator) -> Boxes:
        return Boxes(np.zeros((1, 2), np.int32), points.max(axis=0)[None], np.array([len(points)]))

    found = extreme(topped, name="topped", rng=np.random.default_rng(4), towns=50)
    assert found.success.value == 1
