"""The pure part of (k,epsilon)-anonymity against its definitions, row by row."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.anonymize import k_epsilon
from incrowd.arrays import Steps
from incrowd.errors import ParameterError
from incrowd.measure.linking import linking_risk, predicted, repeated
from incrowd.privacy import class_noise
from incrowd.privacy.randomness import SeededRandomness

tables = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-9, 9), st.integers(-12, 12)), min_size=1, max_size=40
)


def arrays(rows: list[tuple[int, int, int]]) -> tuple[Steps, Steps, Steps]:
    classes, originals, released = np.array(rows, dtype=np.int64).T
    return np.unique(classes, return_inverse=True)[1], originals, released


def test_epsilon_is_shared_exactly() -> None:
    parts = k_epsilon.shares(0.3, [1, 2, 0.7])
    assert sum(parts) == Fraction(3, 10)
    assert parts[1] == 2 * parts[0]
    with pytest.raises(ParameterError, match="'epsilon'"):
        k_epsilon.shares(0, [1])


@given(tables)
def test_diameters(rows: list[tuple[int, int, int]]) -> None:
    classes, originals, _ = arrays(rows)
    found = k_epsilon.diameters(originals, classes, int(classes.max()) + 2)
    for at in range(int(classes.max()) + 1):
        inside = originals[classes == at]
        assert found[at] == inside.max() - inside.min()
    assert found[-1] == 0


def test_scales_are_diameter_over_epsilon() -> None:
    noise = class_noise.laplace(np.array([0, 3, 10]), Fraction(1, 4))
    assert noise.scale.tolist() == [0, 12, 40]
    assert noise.mean[0] == 0
    assert noise.radius(0.99)[2] == pytest.approx(-40 * math.log(0.01))
    assert (noise.draw(np.zeros(50, dtype=np.int64), SeededRandomness(1)) == 0).all()


def test_any_two_values_of_a_class_are_alike_up_to_e_to_the_epsilon() -> None:
    """The ratio of probabilities at the full diameter is exactly e^epsilon, never more."""
    diameter, epsilon = 7, Fraction(1, 2)
    noise = class_noise.laplace(np.array([diameter]), epsilon)
    rate = noise.s / noise.t[0]
    y = np.arange(-100, 101)
    ratio = np.exp(-np.abs(y) * rate) / np.exp(-np.abs(y - diameter) * rate)
    assert ratio.max() == pytest.approx(math.exp(0.5), rel=1e-12)


def test_noise_at_the_edge_of_64_bits_stays_there() -> None:
    limits = np.iinfo(np.int64)
    values = np.array([limits.max, limits.max, limits.min, limits.min, 5])
    drawn = np.array([3, -1, -3, 1, 2])
    expected = [limits.max, limits.max - 1, limits.min, limits.min + 1, 7]
    assert k_epsilon.added(values, drawn).tolist() == expected


@given(tables, st.floats(0, 6), st.integers(1, 4))
def test_confidence_suppresses_what_the_definition_says(
    rows: list[tuple[int, int, int]], radius: float, k: int
) -> None:
    classes, originals, released = arrays(rows)
    radii = np.full(int(classes.max()) + 1, radius)
    kept = k_epsilon.confident(classes, originals, released, radii, k=k)
    for at in range(len(rows)):
        near = np.abs(originals[classes == classes[at]] - released[at]) <= radius
        assert kept[at] == (near.sum() == 0 or near.sum() >= k)
    whole = k_epsilon.whole_classes(kept, classes, k=k)
    for at in range(len(rows)):
        assert whole[at] == (kept[at] and kept[classes == classes[at]].sum() >= k)


def test_confidence_counts_around_the_released_value_far_from_zero() -> None:
    base = 2**60
    classes = np.zeros(4, dtype=np.int64)
    originals = base + np.array([0, 1, 2, 9])
    released = base + np.array([1, 1, 1, 6])
    kept = k_epsilon.confident(classes, originals, released, np.array([1.0]), k=3)
    assert kept.tolist() == [True, True, True, True]  # three, three, three, and none
    kept = k_epsilon.confident(classes, originals, released, np.array([3.0]), k=3)
    assert kept.tolist() == [True, True, True, False]  # only 9 is within 3 of 6


@given(tables)
def test_linking_is_the_nearest_neighbour_ties_included(rows: list[tuple[int, int, int]]) -> None:
    classes, originals, released = arrays(rows)
    found = linking_risk(classes=classes, originals=[originals], released=[released])
    won = shared = 0.0
    for at in range(len(rows)):
        apart = np.abs(originals[classes == classes[at]] - released[at])
        if abs(originals[at] - released[at]) == apart.min():
            won += 1
            shared += 1 / (apart == apart.min()).sum()
    assert found.risk == pytest.approx(won / len(rows))
    assert found.shared == pytest.approx(shared / len(rows))


@given(tables, st.randoms(use_true_random=False))
def test_linking_by_several_columns(rows: list[tuple[int, int, int]], random: object) -> None:
    classes, first, shown = arrays(rows)
    draw = np.random.default_rng(random.randrange(2**32))  # type: ignore[attr-defined]
    second = draw.integers(-4, 5, len(rows))
    other = second + draw.integers(-3, 4, len(rows))
    number = int(classes.max()) + 1
    scales = [np.full(number, 2.0), np.full(number, 4.0)]
    found = linking_risk(
        classes=classes, originals=[first, second], released=[shown, other], scales=scales
    )
    won = shared = 0.0
    for at in range(len(rows)):
        inside = classes == classes[at]
        apart = np.abs(first[inside] - shown[at]) / 2 + np.abs(second[inside] - other[at]) / 4
        own = abs(first[at] - shown[at]) / 2 + abs(second[at] - other[at]) / 4
        if own == apart.min():
            won += 1
            shared += 1 / (apart == apart.min()).sum()
    assert found.risk == pytest.approx(won / len(rows))
    assert found.shared == pytest.approx(shared / len(rows))


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_predicted_risk_is_what_linking_finds(kind: str) -> None:
    draw = np.random.default_rng(4)
    classes = np.sort(draw.integers(0, 60, 3000))
    originals = draw.normal(1700, 70, 3000).round().astype(np.int64)
    widths = k_epsilon.diameters(originals, classes, 60)
    noise = (
        class_noise.laplace(widths, Fraction(4))
        if kind == "laplace"
        else class_noise.gaussian(widths, Fraction(4), 1e-3)
    )
    bits = SeededRandomness(9)

    def once() -> float:
        shown = originals + noise.draw(classes, bits)
        return linking_risk(classes=classes, originals=[originals], released=[shown]).risk

    measured = repeated(once, 40)
    expected = float(predicted(classes, originals, noise).mean())
    reach = measured.high - measured.mean
    assert abs(measured.mean - expected) < 2.5 * reach  # five standard errors
    assert reach < 0.05 * expected


def test_averaging_copies_gains_nothing_unless_epsilon_is_spent_on_each() -> None:
    draw = np.random.default_rng(2)
    values = draw.integers(0, 1000, 20_000)
    members = np.zeros(20_000, dtype=np.int64)
    widths = k_epsilon.diameters(values, members, 1)
    bits = SeededRandomness(8)

    def error(parts: list[Fraction]) -> float:
        """How far the mean of noisy copies is from the value."""
        copies = [values + class_noise.laplace(widths, part).draw(members, bits) for part in parts]
        return float(np.abs(np.mean(copies, axis=0) - values).mean())

    single = error(k_epsilon.shares(2, [1]))
    shared = error(k_epsilon.shares(2, [1] * 8))
    wrong = error([Fraction(2)] * 8)
    assert shared > 1.5 * single  # sharing costs more than averaging gains
    assert wrong < 0.5 * single
