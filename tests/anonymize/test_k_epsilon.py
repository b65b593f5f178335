"""The pure part of (k,epsilon)-anonymity against its definitions, row by row."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.class_rows import make_arrays, tables

from incrowd.anonymize import k_epsilon


@given(tables)
def test_diameters(rows: list[tuple[int, int, int]]) -> None:
    classes, originals, _ = make_arrays(rows)
    diameters = k_epsilon.compute_diameters(originals, classes, int(classes.max()) + 2)
    for at in range(int(classes.max()) + 1):
        inside = originals[classes == at]
        assert diameters[at] == inside.max() - inside.min()
    assert diameters[-1] == 0


def test_noise_at_the_edge_of_64_bits_stays_there() -> None:
    limits = np.iinfo(np.int64)
    values = np.array([limits.max, limits.max, limits.min, limits.min, 5])
    noise = np.array([3, -1, -3, 1, 2])
    expected = [limits.max, limits.max - 1, limits.min, limits.min + 1, 7]
    assert k_epsilon.add_noise(values, noise).tolist() == expected


@given(tables, st.floats(0, 6), st.integers(1, 4))
def test_confidence_suppresses_what_the_definition_says(
    rows: list[tuple[int, int, int]], radius: float, k: int
) -> None:
    classes, originals, released = make_arrays(rows)
    radii = np.full(int(classes.max()) + 1, radius)
    is_kept = k_epsilon.select_confident_rows(classes, originals, released, radii, k=k)
    for at in range(len(rows)):
        near = np.abs(originals[classes == classes[at]] - released[at]) <= radius
        assert is_kept[at] == (near.sum() == 0 or near.sum() >= k)
    is_shown = k_epsilon.select_large_classes(is_kept, classes, k=k)
    for at in range(len(rows)):
        assert is_shown[at] == (is_kept[at] and is_kept[classes == classes[at]].sum() >= k)


def test_confidence_counts_around_the_released_value_far_from_zero() -> None:
    base = 2**60
    classes = np.zeros(4, dtype=np.int64)
    originals = base + np.array([0, 1, 2, 9])
    released = base + np.array([1, 1, 1, 6])
    is_kept = k_epsilon.select_confident_rows(classes, originals, released, np.array([1.0]), k=3)
    assert is_kept.tolist() == [True, True, True, True]  # three, three, three, and none
    is_kept = k_epsilon.select_confident_rows(classes, originals, released, np.array([3.0]), k=3)
    assert is_kept.tolist() == [True, True, True, False]  # only 9 is within 3 of 6
