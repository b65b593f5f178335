"""The private search of levels for whole households: exact, and as sensitive as one row."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from support.household_law import make_household, make_members, score_types
from support.people import PeopleProblem
from support.search_law import THREE, TWO

from incrowd.anonymize import household_search
from incrowd.anonymize.household_search import (
    MOST_SCHEMES,
    refuse_many_schemes,
    search_household_scheme,
)
from incrowd.anonymize.lattice import Lattice
from incrowd.anonymize.safe_search import W, make_ramp
from incrowd.errors import ParameterError
from incrowd.privacy.randomness import SeededRandomness

RAMP = make_ramp(3, 1.0)
PROBLEM = PeopleProblem((TWO, THREE), Lattice((0, 0), (1, 1)), (RAMP,), rows=4)


def draw_households(draws: np.random.Generator) -> tuple[tuple[tuple[int, ...], ...], ...]:
    return tuple(
        make_household(int(draws.integers(2)), *draws.integers(0, 3, draws.integers(1, 4)))
        for _ in range(draws.integers(1, 60))
    )


def test_the_best_noisy_score_is_found_whatever_is_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draws, fewer = np.random.default_rng(7), 0
    for _ in range(150):
        people = draw_households(draws)
        noise = draws.integers(0, draws.choice([1, 2000, 60000]), 4)
        monkeypatch.setattr(
            household_search, "sample_one_sided_noise", lambda *_, x=noise, **__: x.astype(np.int64)
        )
        choice = search_household_scheme(
            make_members(PROBLEM, people, (0, 0)), PROBLEM.lattice, (RAMP,), epsilon=Fraction(1),
            power=1, weights=PROBLEM.shares, bits=SeededRandomness(0),
        )  # fmt: skip
        every = list(itertools.product((0, 1), (0, 1)))
        noisy = {
            node: score_types(PROBLEM, people, node) + int(noise[place])
            for place, node in enumerate(every)
            if PROBLEM.is_candidate(node)
        }
        best = max(noisy.values())
        assert choice.levels == min(node for node in noisy if noisy[node] == best)
        fewer += choice.scored < len(noisy)
    assert fewer > 20


def test_a_household_moves_every_score_as_far_as_one_row_may() -> None:
    draws, largest = np.random.default_rng(8), 0
    for _ in range(100):
        people = draw_households(draws)
        for at, node in itertools.product(range(len(people)), PROBLEM.nodes):
            rest = people[:at] + people[at + 1 :]
            moved = score_types(PROBLEM, people, node) - score_types(PROBLEM, rest, node)
            assert 0 <= moved <= W * RAMP.d
            largest = max(largest, moved)
    assert largest > W * RAMP.d / 2


def test_more_schemes_than_can_be_counted_are_refused() -> None:
    with pytest.raises(ParameterError, match="Narrow `levels`"):
        refuse_many_schemes(Lattice((0,) * 15, (1,) * 15))
    refuse_many_schemes(Lattice((0,) * 14, (1,) * 14))
    assert 2**14 < MOST_SCHEMES < 2**15
