from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from incrowd.errors import ParameterError
from incrowd.measure.estimate import AttackReport, Estimate, Rate, compute_interval


@pytest.mark.parametrize(("hits", "tries"), [(0, 10), (10, 10), (3, 100), (999, 1000), (1, 1)])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_the_interval_is_that_of_clopper_and_pearson(
    hits: int, tries: int, confidence: float
) -> None:
    interval = binomtest(hits, tries).proportion_ci(confidence, method="exact")
    assert compute_interval(hits, tries, confidence) == pytest.approx(
        (interval.low, interval.high), abs=1e-12
    )


@pytest.mark.parametrize("share", [0.001, 0.02, 0.3, 0.5, 0.97])
def test_the_interval_holds_its_confidence(share: float) -> None:
    """The chance of all outcomes whose interval misses the true share, summed up exactly."""
    tries = 60
    missed = 0.0
    for hits in range(tries + 1):
        low, high = compute_interval(hits, tries, 0.9)
        missed += float(binom.pmf(hits, tries, share)) if not low <= share <= high else 0.0
    assert missed <= 0.1


@pytest.mark.parametrize(("hits", "tries"), [(-1, 5), (6, 5)])
def test_more_hits_than_tries_are_refused(hits: int, tries: int) -> None:
    with pytest.raises(ParameterError, match="hits"):
        compute_interval(hits, tries)


def test_chances_are_drawn_one_by_one() -> None:
    rng = np.random.default_rng(1)
    sure = Rate.from_chances(np.array([1.0, 0.0, 1.0]), rng)
    assert (sure.hits, sure.tries) == (2, 3)
    many = Rate.from_chances(np.full(10_000, 0.3), rng)
    assert many.low < 0.3 < many.high
    assert Rate.from_value(0.25).low == Rate.from_value(0.25).high == 0.25


def estimate(success: Rate, guess: Rate, control: Rate | None = None, **more: float) -> Estimate:
    return Estimate("linkage", "all", "everything", success, guess, control, **more)  # type: ignore[arg-type]


def test_what_the_release_adds_is_held_beside_the_better_of_guess_and_control() -> None:
    high = estimate(Rate.from_hits(900, 1000), Rate.from_hits(100, 1000), Rate.from_hits(500, 1000))
    assert high.baseline is high.control
    assert high.excess[0] == pytest.approx(0.8)
    assert high.excess[1] < 0.8 < high.excess[2]
    assert high.succeeds
    assert high.verdict == "finds 80 of 100 people who were safe without it"
    low = estimate(Rate.from_hits(500, 1000), Rate.from_hits(600, 1000), Rate.from_hits(100, 1000))
    assert low.baseline is low.guess
    assert (low.excess[0], low.succeeds, low.verdict) == (0.0, False, "none detected")
    near = estimate(Rate.from_hits(520, 1000), Rate.from_hits(100, 1000), Rate.from_hits(500, 1000))
    assert not near.succeeds  # the intervals overlap


def test_the_interval_of_guessing_decides_and_not_its_value() -> None:
    """Success of 16.2 % [14.6, 17.9] lies above 13.2 %, and not above [11.7, 14.8]."""
    near = estimate(Rate.from_hits(324, 2000), Rate.from_hits(264, 2000))
    assert near.guess.value < near.success.low < near.guess.high
    assert not near.succeeds
    assert estimate(near.success, Rate.from_value(near.guess.value)).succeeds


def test_the_guarantee_is_part_of_the_verdict() -> None:
    rates = Rate.from_hits(900, 1000), Rate.from_hits(100, 1000), Rate.from_hits(500, 1000)
    assert estimate(*rates, bound=0.95).verdict.endswith("within the theoretical bound")
    assert not estimate(*rates, bound=0.7).verdict.endswith("within the theoretical bound")
    alone = estimate(*rates[:2])
    assert alone.verdict == "finds 89 of 100 people whom guessing would not find"


def test_everybody_hit_leaves_nothing_to_add() -> None:
    assert estimate(Rate.from_value(1.0), Rate.from_value(1.0)).excess == (0.0, 0.0, 0.0)


def test_attacks_as_plain_values() -> None:
    result = AttackReport(
        (estimate(Rate.from_hits(5, 10), Rate.from_value(0.1)),), 10, 0, ("a note",)
    ).as_dict()
    (attack,) = result["attacks"]
    assert (attack["success"]["hits"], attack["succeeds"], result["notes"]) == (5, True, ["a note"])
    assert set(attack["excess"]) == {"value", "low", "high"}
