"""Noise as wide as each class: its scale, and what it hides."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.errors import ParameterError
from incrowd.privacy import k_epsilon
from incrowd.privacy.discrete_noise import compute_gaussian_delta
from incrowd.privacy.randomness import SeededRandomness


def test_epsilon_is_shared_exactly() -> None:
    parts = k_epsilon.split_epsilon(0.3, [1, 2, 0.7])
    assert sum(parts) == Fraction(3, 10)
    assert parts[1] == 2 * parts[0]
    with pytest.raises(ParameterError, match="'epsilon'"):
        k_epsilon.split_epsilon(0, [1])


def test_scales_are_diameter_over_epsilon() -> None:
    noise = k_epsilon.make_laplace_noise(np.array([0, 3, 10]), Fraction(1, 4))
    assert noise.scale.tolist() == [0, 12, 40]
    assert noise.mean[0] == 0
    assert noise.compute_radius(0.99)[2] == pytest.approx(-40 * math.log(0.01))
    assert (noise.draw(np.zeros(50, dtype=np.int64), SeededRandomness(1)) == 0).all()


def test_any_two_values_of_a_class_are_alike_up_to_e_to_the_epsilon() -> None:
    """The ratio of probabilities at the full diameter is exactly e^epsilon, never more."""
    diameter, epsilon = 7, Fraction(1, 2)
    noise = k_epsilon.make_laplace_noise(np.array([diameter]), epsilon)
    rate = noise.s / noise.t[0]
    y = np.arange(-100, 101)
    ratio = np.exp(-np.abs(y) * rate) / np.exp(-np.abs(y - diameter) * rate)
    assert ratio.max() == pytest.approx(math.exp(0.5), rel=1e-12)


def test_gaussian_noise_hides_the_whole_width_of_a_class_and_no_more() -> None:
    widths, delta = np.array([0, 1, 3, 10, 41]), 1e-4
    for epsilon in (Fraction(1, 2), Fraction(2)):
        sigmas = k_epsilon.make_gaussian_noise(widths, epsilon, delta).sigma
        assert sigmas is not None
        assert sigmas[0] == 0
        for width, sigma in zip(widths[1:].tolist(), sigmas[1:].tolist(), strict=True):
            assert compute_gaussian_delta(width, sigma, float(epsilon)) <= delta
            assert sigma == 1 or compute_gaussian_delta(width, sigma - 1, float(epsilon)) > delta
