"""Downcoding: what is minimal can be made finer, as often as the proof says, and no other."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from support.victims import make_bits

from incrowd.anonymize.safe_sample import sample_cells
from incrowd.codes.frequency import map_levels, merge_tuples
from incrowd.measure.estimate import compute_interval
from incrowd.papers.downcode import (
    Villages,
    attack_by_downcoding,
    compute_departure_chance,
    make_level_classes,
)
from incrowd.papers.minimal_recoder import recode_minimally


def test_the_chance_is_that_of_one_who_departs() -> None:
    """Every village of three people and two columns, with its probability."""
    k, columns = 3, 2
    total = 0.0
    for people in product(product((0, 1), repeat=columns), repeat=k):
        apart = [any(person) for person in people]
        share = [1 / k / 4 if far else 1 - 1 / k + 1 / k / 4 for far in apart]
        total += float(np.prod(share)) * (sum(apart) == 1)
    assert compute_departure_chance(k, columns) == pytest.approx(total, rel=1e-12)
    assert all(compute_departure_chance(k, 4) > 1 / 3 for k in range(2, 200))


@pytest.mark.parametrize(("k", "columns"), [(2, 6), (5, 8)])
def test_minimal_records_are_made_finer(k: int, columns: int) -> None:
    rng = np.random.default_rng(10 * k)
    villages = Villages.draw_villages(500, k=k, columns=columns, width=3, rng=rng)
    minimally = recode_minimally(villages.hierarchies, villages.codes, k=k)
    assert len(minimally.classes.counts) == 500  # each village is a class of its own
    attack = attack_by_downcoding(minimally.classes, villages, name="minimal", rng=rng)
    departing = villages.members.any(axis=2).sum(axis=1)
    alone = int((departing == 1).sum())
    assert alone <= attack.success.hits <= alone + int((departing == k).sum())  # as proved
    low, high = compute_interval(alone, 500, 1 - 1e-6)  # fails with probability 1e-6
    assert low < compute_departure_chance(k, columns) < high
    assert attack.success.value > 1 / 3
    assert attack.control is not None
    # The control is right with probability below 2^-columns: 25 or more of 500, below 1e-6.
    assert attack.control.hits < 25
    assert attack.guess.hits <= 2  # and guessing with 3^-columns
    assert attack.succeeds


def test_without_minimality_it_is_a_guess() -> None:
    """Every village by its groups: as k-anonymous, and what is general says nothing."""
    rng = np.random.default_rng(3)
    villages = Villages.draw_villages(500, k=5, columns=8, width=3, rng=rng)
    codes = np.column_stack([np.arange(500), villages.groups]).astype(np.int32)
    published = make_level_classes((0, *[1] * 8), codes, np.full(500, 5))
    attack = attack_by_downcoding(published, villages, name="by groups", rng=rng)
    assert attack.success.hits <= 8  # right with probability 0.41 / 255: nine or more, 1e-7
    assert not attack.succeeds


@pytest.mark.parametrize("levels", [(1, 0, 1, 2, 2, 2, 2), (1, *[2] * 6), (0, *[1] * 6)])
def test_a_safe_release_is_not_made_finer(levels: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    villages = Villages.draw_villages(400, k=5, columns=6, width=3, rng=rng)
    frequencies = merge_tuples(villages.codes, np.ones(2000, dtype=np.int64))
    cells = frequencies.roll_up(map_levels(villages.hierarchies, [0] * 7, levels))
    published = sample_cells(cells, k=15, beta=0.2, bits=make_bits(rng))
    assert bool(len(published)) == (levels[0] == 1)
    classes = make_level_classes(levels, published.codes, published.counts)
    attack = attack_by_downcoding(classes, villages, name="safe", rng=rng)
    # Right with probability below 1e-4 for each village: three or more of 400 below 2e-5.
    assert attack.success.hits <= 2
    assert attack.control is not None
    assert attack.success.low <= attack.control.high
    assert not attack.succeeds
