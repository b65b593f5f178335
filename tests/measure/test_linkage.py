"""Linking by the nearest value: what it finds, what is predicted, and what averaging gains."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.class_rows import make_arrays, tables

from incrowd.anonymize import k_epsilon
from incrowd.measure.linkage import compute_run_mean, linking_risk, predict_linking
from incrowd.privacy.k_epsilon import make_gaussian_noise, make_laplace_noise, split_epsilon
from incrowd.privacy.randomness import SeededRandomness


@given(tables)
def test_linking_is_the_nearest_neighbor_ties_included(rows: list[tuple[int, int, int]]) -> None:
    classes, originals, released = make_arrays(rows)
    result = linking_risk(classes=classes, originals=[originals], released=[released])
    won = shared = 0.0
    for at in range(len(rows)):
        apart = np.abs(originals[classes == classes[at]] - released[at])
        if abs(originals[at] - released[at]) == apart.min():
            won += 1
            shared += 1 / (apart == apart.min()).sum()
    assert result.risk == pytest.approx(won / len(rows))
    assert result.shared == pytest.approx(shared / len(rows))


@given(tables, st.randoms(use_true_random=False))
def test_linking_by_several_columns(rows: list[tuple[int, int, int]], random: object) -> None:
    classes, first, released = make_arrays(rows)
    draw = np.random.default_rng(random.randrange(2**32))  # type: ignore[attr-defined]
    second = draw.integers(-4, 5, len(rows))
    other = second + draw.integers(-3, 4, len(rows))
    number = int(classes.max()) + 1
    scales = [np.full(number, 2.0), np.full(number, 4.0)]
    result = linking_risk(
        classes=classes, originals=[first, second], released=[released, other], scales=scales
    )
    won = shared = 0.0
    for at in range(len(rows)):
        inside = classes == classes[at]
        apart = np.abs(first[inside] - released[at]) / 2 + np.abs(second[inside] - other[at]) / 4
        own_distance = abs(first[at] - released[at]) / 2 + abs(second[at] - other[at]) / 4
        if own_distance == apart.min():
            won += 1
            shared += 1 / (apart == apart.min()).sum()
    assert result.risk == pytest.approx(won / len(rows))
    assert result.shared == pytest.approx(shared / len(rows))


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_predicted_risk_is_what_linking_finds(kind: str) -> None:
    draw = np.random.default_rng(4)
    classes = np.sort(draw.integers(0, 60, 3000))
    originals = draw.normal(1700, 70, 3000).round().astype(np.int64)
    widths = k_epsilon.compute_diameters(originals, classes, 60)
    noise = (
        make_laplace_noise(widths, Fraction(4))
        if kind == "laplace"
        else make_gaussian_noise(widths, Fraction(4), 1e-3)
    )
    bits = SeededRandomness(9)

    def once() -> float:
        released = originals + noise.draw(classes, bits)
        return linking_risk(classes=classes, originals=[originals], released=[released]).risk

    measured = compute_run_mean(np.array([once() for _ in range(40)]))
    expected = float(predict_linking(classes, originals, noise).mean())
    reach = measured.high - measured.mean
    assert abs(measured.mean - expected) < 2.5 * reach  # five standard errors
    assert reach < 0.05 * expected


def test_averaging_copies_gains_nothing_unless_epsilon_is_spent_on_each() -> None:
    draw = np.random.default_rng(2)
    values = draw.integers(0, 1000, 20_000)
    members = np.zeros(20_000, dtype=np.int64)
    widths = k_epsilon.compute_diameters(values, members, 1)
    bits = SeededRandomness(8)

    def error(parts: list[Fraction]) -> float:
        """How far the mean of noisy copies is from the value."""
        copies = [values + make_laplace_noise(widths, part).draw(members, bits) for part in parts]
        return float(np.abs(np.mean(copies, axis=0) - values).mean())

    single = error(split_epsilon(2, [1]))
    shared = error(split_epsilon(2, [1] * 8))
    wrong = error([Fraction(2)] * 8)
    assert shared > 1.5 * single  # sharing costs more than averaging gains
    assert wrong < 0.5 * single
