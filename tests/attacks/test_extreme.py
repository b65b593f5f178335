"""The extreme value is read off data-dependent intervals, always, and off public ones never."""

from __future__ import annotations

import numpy as np
import pytest
from support.scenes import scene
from support.victims import bits

from incrowd.arrays import Codes
from incrowd.attacks.baselines import clustered
from incrowd.attacks.extreme import AREAS, KNOWN, TOP, VALUES, WORTH, at_ends, axes, extreme, town
from incrowd.attacks.safe_steps import SafeSteps, most
from incrowd.codes.axis import Boxes
from incrowd.measure.estimate import Estimate
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


AGES = {"intervals": {"from": 0, "to": 99, "widths": [1, 10]}}
TOWNS = {"flat": {"values": ["a", "b"]}}


def at_ends_of(rows: list[list[object]], shown: list[list[object]], **more: object) -> Estimate:
    here = scene({"age": AGES, "town": TOWNS}, rows, shown, **more)  # type: ignore[arg-type]
    rng = np.random.default_rng(1)
    found = at_ends(
        here.release, here.everybody, ordered=[0], control=here.control, tries=500, rng=rng
    )
    assert found is not None
    return found


def people_of(number: int, seed: int) -> list[list[object]]:
    rng = np.random.default_rng(seed)
    return [[int(rng.integers(100)), "ab"[rng.integers(2)]] for _ in range(number)]


def around(rows: list[list[object]], size: int) -> list[list[object]]:
    """Classes of neighbours of a town, each shown by its lowest and highest age."""
    shown: list[list[object]] = []
    for place in "ab":
        ages = sorted(int(str(age)) for age, where in rows if where == place)
        for start in range(0, len(ages) - size + 1, size):
            own = ages[start : start + size]
            shown += [[f"{own[0]}-{own[-1]}", place]] * size
    return shown


def test_ends_drawn_around_people_are_theirs() -> None:
    rows = people_of(60, 1)
    found = at_ends_of(rows, around(rows, 10), control=people_of(60, 2))
    assert found.success.value == 1.0
    assert found.control is not None
    assert found.control.value < 0.6
    assert found.guess.value < 0.9


def test_public_ends_are_those_of_people_by_chance_alone() -> None:
    """Thirty people in steps of ten: some have the first or last age of one, others as often."""
    rows = people_of(30, 1)
    shown = [[f"{int(str(a)) // 10 * 10}-{int(str(a)) // 10 * 10 + 9}", t] for a, t in rows]
    found = at_ends_of(rows, shown, control=people_of(3000, 2))  # thinned to thirty
    assert not found.succeeds
    assert found.control is not None
    assert 0 < found.success.value < 0.6
    exact = {(int(str(a)), t) for a, t in rows}
    classes = {(int(str(a)) // 10 * 10, t) for a, t in rows}
    hits = sum((low + end, t) in exact for low, t in classes for end in (0, 9))
    assert (found.success.hits, found.success.tries) == (hits, 2 * len(classes))


def test_without_intervals_there_are_no_ends() -> None:
    rows = people_of(20, 1)
    here = scene({"age": AGES, "town": TOWNS}, rows, rows)
    rng = np.random.default_rng(1)
    assert at_ends(here.release, here.everybody, ordered=[0], tries=10, rng=rng) is None
