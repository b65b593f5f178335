"""What the values of a target weigh, by the counts that were measured of them."""

from __future__ import annotations

import numpy as np

from incrowd.anonymize.target_score import Regions, TargetValues

ONE = Regions(np.arange(3), np.array([0]))


def test_rare_values_weigh_more_and_hopeless_ones_do_not() -> None:
    values = TargetValues.from_counts(0, np.array([9_000, 1_800, 100, 50, -3]), 19.0)
    assert values.weights.tolist() == [4, 20, 32, 4, 4]
    assert values.guarded.tolist() == [True, True, True, False, False]
    assert values.ceiling == 3_200 * 7 // 10  # of the third, which has least of weight times rows
    assert values.guard_factor == 6


def test_a_value_that_is_lost_costs_all_that_survival_is_worth() -> None:
    values = TargetValues.from_counts(0, np.array([8_000, 1_000]), 19.0)
    both = values.rate_cells(np.array([0, 1, 1]), np.array([8_000, 500, 400]) * 1024, ONE, 1024)
    none = values.rate_cells(np.array([0, 0, 0]), np.array([8_000, 500, 400]) * 1024, ONE, 1024)
    assert both[1] == 4 * (1_000 * 32 * 7 // 10 * 1024 // 256)  # nine tenths are more than seven
    assert none[1] == 0


def test_codes_with_one_label_are_one_value() -> None:
    """Else a value whose rows have another code of its label would seem to be lost."""
    first_codes = np.array([0, 1, 1], dtype=np.int32)
    counts = np.array([8_000, 1_000, 1_000])
    values = TargetValues.from_counts(0, counts, 19.0, first_codes)
    assert values.guarded.tolist() == [True, True, False]
    _, survival = values.rate_cells(
        np.array([0, 2, 2]), np.array([8_000, 500, 400]) * 1024, ONE, 1024
    )
    assert survival > 0


def test_without_counts_no_value_is_guarded() -> None:
    values = TargetValues.from_labels(0, 3)
    assert values.guard_factor == 0
    gain, survival = values.rate_cells(np.array([0, 1, 2]), np.array([9, 9, 9]) * 64, ONE, 64)
    assert (gain.tolist(), survival) == ([36], 0)
    assert values.compute_sensitivity(1024, 1741) == 2 * 1024 * 28
