"""Noise on whole numbers: distributions to the last digit, and the attacks that it withstands."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from support.noise_law import compute_gaussian_law, compute_laplace_law, is_drawn_from

from incrowd.arrays import Floats
from incrowd.errors import ParameterError
from incrowd.privacy import discrete_noise
from incrowd.privacy.randomness import SeededRandomness


@pytest.mark.parametrize(
    ("t", "s"), [(1, 1), (3, 2), (2, 7), (10, 1), (370, 20), (100_000, 900), (2**50, 2**44)]
)
def test_laplace_noise_has_its_law_and_no_other(t: int, s: int) -> None:
    draws = discrete_noise.sample_laplace(np.full(200_000, t), s, SeededRandomness(t + s))
    reach = max(int(14 * t / s), 3)
    assert is_drawn_from(draws, compute_laplace_law(t, s, reach))
    if t > 2 * s:  # where the scale is felt at all
        assert not is_drawn_from(draws, compute_laplace_law(103 * t, 100 * s, reach))
        assert not is_drawn_from(draws, compute_laplace_law(97 * t, 100 * s, reach))
    assert not is_drawn_from(draws + max(1, t // s // 20), compute_laplace_law(t, s, reach))


def test_each_value_has_a_scale_of_its_own() -> None:
    t = np.tile([3, 50], 100_000)
    draws = discrete_noise.sample_laplace(t, 2, SeededRandomness(5))
    assert is_drawn_from(draws[::2], compute_laplace_law(3, 2, 30))
    assert is_drawn_from(draws[1::2], compute_laplace_law(50, 2, 400))


@pytest.mark.parametrize("sigma", [1, 2, 13, 200])
def test_gaussian_noise_has_its_law_and_no_other(sigma: int) -> None:
    draws = discrete_noise.sample_gaussian(np.full(200_000, sigma), SeededRandomness(sigma))
    assert is_drawn_from(draws, compute_gaussian_law(sigma, 8 * sigma))
    assert not is_drawn_from(draws, compute_gaussian_law(1.03 * sigma, 8 * sigma))
    assert not is_drawn_from(draws, compute_gaussian_law(0.97 * sigma, 8 * sigma))


def test_means_of_absolute_noise_are_exact() -> None:
    for t, s in [(1, 1), (3, 2), (500, 7)]:
        law = compute_laplace_law(t, s, 60 * t)
        mean = (np.abs(np.arange(-60 * t, 60 * t + 1)) * law).sum()
        assert discrete_noise.compute_laplace_mean(np.array([t]), s)[0] == pytest.approx(
            mean, rel=1e-9
        )
    for sigma in [1, 5, 64, 65, 300]:
        reach = 30 * sigma
        mean = (np.abs(np.arange(-reach, reach + 1)) * compute_gaussian_law(sigma, reach)).sum()
        assert discrete_noise.compute_gaussian_mean(np.array([sigma]))[0] == pytest.approx(
            mean, rel=1e-7
        )


def hockey_stick(diameter: int, sigma: int, epsilon: float) -> float:
    reach = 40 * sigma + diameter
    y = np.arange(-reach, reach + diameter + 1)
    result, other = (
        np.exp(-(y**2) / (2 * sigma**2)),
        np.exp(-((y - diameter) ** 2) / (2 * sigma**2)),
    )
    return float(
        np.maximum(result / result.sum() - math.exp(epsilon) * other / other.sum(), 0).sum()
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize(("diameter", "sigma"), [(1, 1), (3, 7), (10, 22), (40, 300)])
def test_the_delta_of_gaussian_noise(diameter: int, sigma: int, epsilon: float) -> None:
    true = hockey_stick(diameter, sigma, epsilon)
    gaussian_delta = discrete_noise.compute_gaussian_delta(diameter, sigma, epsilon)
    assert true * (1 - 1e-12) <= gaussian_delta <= true * (1 + 3e-3)
    # Values that are nearer to each other are told apart less easily.
    assert all(hockey_stick(d, sigma, epsilon) <= gaussian_delta for d in range(1, diameter))


def test_large_sigmas_are_bounded_from_above(monkeypatch: pytest.MonkeyPatch) -> None:
    for diameter, sigma, epsilon in [(900, 1500, 0.5), (2000, 1999, 1.0), (30, 1000, 0.05)]:
        bounded = discrete_noise.compute_gaussian_delta(diameter, sigma, epsilon)
        with monkeypatch.context() as patch:
            patch.setattr(discrete_noise, "_SUMMED", sigma)
            summed = discrete_noise.compute_gaussian_delta(diameter, sigma, epsilon)
        assert summed < bounded <= (1 + 1e-5) * summed


@pytest.mark.parametrize(
    ("diameter", "epsilon", "delta"), [(1, 1, 1e-6), (55, 0.5, 1e-4), (3, 6, 0.3), (400, 2, 1e-6)]
)
def test_sigma_is_the_smallest(diameter: int, epsilon: float, delta: float) -> None:
    sigma = discrete_noise.find_sigma(diameter, epsilon=epsilon, delta=delta)
    assert hockey_stick(diameter, sigma, epsilon) <= delta
    assert sigma == 1 or hockey_stick(diameter, sigma - 1, epsilon) > delta


def test_noise_that_would_have_too_many_steps_is_refused() -> None:
    bits = SeededRandomness(1)
    with pytest.raises(ParameterError, match="'precision'.*coarser precision"):
        discrete_noise.sample_laplace(np.array([2**53]), 1, bits)
    with pytest.raises(ParameterError, match="'precision'.*coarser precision"):
        discrete_noise.sample_gaussian(np.array([2**27]), bits)
    with pytest.raises(ParameterError, match="'epsilon'"):
        discrete_noise.find_sigma(10, epsilon=0, delta=0.1)


def finer_than_one(outputs: Floats) -> npt.NDArray[np.bool_]:
    """The precision attack: numbers that no sum of 1 and a float near -1 to 1 can have."""
    return np.asarray(outputs * 2.0**53 % 1 != 0)


def test_the_precision_attack_finds_nothing_here_and_breaks_floating_point_noise() -> None:
    n, scale = 20_000, 1.0
    draw = np.random.default_rng(1)
    naive = [value + draw.laplace(0, scale, n) for value in (0.0, 1.0)]
    assert finer_than_one(naive[0]).mean() > 0.2  # these outputs give the value 0 away
    assert finer_than_one(naive[1]).mean() == 0
    bits = SeededRandomness(3)
    step = 0.1
    ours = [
        np.round((steps + discrete_noise.sample_laplace(np.full(n, 10), 1, bits)) * step, 1)
        for steps in (0, 10)
    ]
    # The same numbers come out, bit by bit, whatever the value was.
    grid = {round(x / step): x for x in ours[0]}
    assert all(grid.get(round(x / step), x) == x for x in ours[1])
    given_away = [finer_than_one(outputs[np.abs(outputs) < 1]).mean() for outputs in ours]
    assert abs(given_away[0] - given_away[1]) < 0.2
    common = np.intersect1d(ours[0], ours[1])
    assert len(common) > 60
