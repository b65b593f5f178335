"""Means and medians by class, against the standard library."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from incrowd.methods.k_anonymity.aggregates import aggregate_numbers


@pytest.mark.parametrize("median", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_numbers_of_classes(seed: int, median: bool) -> None:
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 9, 60).astype(np.float64)
    numbers[rng.random(60) < 0.3] = math.nan
    counts, classes = rng.integers(1, 4, 60), rng.integers(0, 12, 60)
    result = aggregate_numbers(numbers, counts, classes, least=4, median=median)
    function = statistics.median if median else statistics.mean
    for at in range(int(classes.max()) + 1):
        is_member = (classes == at) & ~np.isnan(numbers)
        values = np.repeat(numbers[is_member], counts[is_member]).tolist()
        if len(values) < 4:
            assert math.isnan(result[at])
        else:
            assert result[at] == pytest.approx(function(values))
