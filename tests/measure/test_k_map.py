"""k-map by records: the threshold against binomial laws, summed by hand."""

from __future__ import annotations

import math

import pytest

from incrowd.measure.k_map import derive_sample_threshold


def error(least: int, people: int, fraction: float) -> float:
    """The chance that a group of so many people, once in the sample, has enough records."""
    law = [
        math.comb(people, n) * fraction**n * (1 - fraction) ** (people - n)
        for n in range(people + 1)
    ]
    return sum(law[least:]) / sum(law[1:])


@pytest.mark.parametrize("k", [2, 3, 5, 11])
@pytest.mark.parametrize("fraction", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("significance", [0.01, 0.05, 0.3])
def test_threshold_is_the_least_that_holds_for_every_smaller_group(
    k: int, fraction: float, significance: float
) -> None:
    least = derive_sample_threshold(k, fraction, significance)
    for people in range(1, k):
        assert error(least, people, fraction) <= significance * (1 + 1e-12)
    if least > 1:
        assert error(least - 1, k - 1, fraction) > significance
    assert 1 <= least <= k


def test_a_whole_population_needs_k_records() -> None:
    assert derive_sample_threshold(7, 1.0) == 7
    assert derive_sample_threshold(1, 0.2) == 1
