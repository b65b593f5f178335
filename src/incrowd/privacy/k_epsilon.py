"""Noise for classes of rows, drawn exactly: each class has a width, each column its epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from incrowd.arrays import Counts, Floats, Members, Steps
from incrowd.errors import ParameterError
from incrowd.privacy import discrete_noise
from incrowd.privacy.randomness import Randomness


@dataclass(frozen=True, eq=False)
class ClassNoise:
    """The noise of one column: for each class its width, 0 for none.

    Laplace noise has P[y] proportional to exp(-|y| s / t); Gaussian noise has a whole sigma.
    """

    t: Counts
    s: int
    sigma: Counts | None = None

    def draw(self, members: Members, bits: Randomness) -> Steps:
        """Draw independent noise for each row, by its class."""
        noise = np.zeros(len(members), dtype=np.int64)
        width = self.t if self.sigma is None else self.sigma
        noisy = np.flatnonzero(width[members] > 0)
        if self.sigma is None:
            noise[noisy] = discrete_noise.sample_laplace(self.t[members[noisy]], self.s, bits)
        else:
            noise[noisy] = discrete_noise.sample_gaussian(self.sigma[members[noisy]], bits)
        return noise

    @property
    def mean(self) -> Floats:
        """The mean of the noise's absolute value, for each class."""
        width = self.t if self.sigma is None else self.sigma
        means = np.zeros(len(width))
        is_noisy = width > 0
        means[is_noisy] = (
            discrete_noise.compute_laplace_mean(self.t[is_noisy], self.s)
            if self.sigma is None
            else discrete_noise.compute_gaussian_mean(self.sigma[is_noisy])
        )
        return means

    def compute_shifted_mean(self, shift: Floats, members: Members) -> Floats:
        """Return the mean of |Y + shift| per row: for Laplace noise |shift| + q^|shift| E|Y|."""
        distance, mean = np.abs(shift), self.mean[members]
        if self.sigma is None:
            rate = np.divide(self.s, self.t, out=np.full(len(self.t), 1e300), where=self.t > 0)
            return np.where(
                distance == 0, mean, distance + np.exp(-rate[members] * distance) * mean
            )
        wide = np.maximum(self.sigma[members].astype(np.float64), 1e-9)
        erf = np.vectorize(math.erf, otypes=[float])
        near_term = mean * np.exp(-((distance / wide) ** 2) / 2)
        return np.where(
            distance == 0, mean, near_term + distance * erf(distance / (wide * math.sqrt(2)))
        )

    @property
    def scale(self) -> Floats:
        """t / s, or sigma: what distances in a class are measured by."""
        return self.t / self.s if self.sigma is None else self.sigma.astype(np.float64)

    def compute_radius(self, confidence: float) -> Floats:
        """Return how far from a released value its original lies, with a confidence, by class."""
        if self.sigma is None:
            return -self.scale * math.log1p(-confidence)
        return self.scale * NormalDist().inv_cdf((1 + confidence) / 2)

    def compute_probability(self, below: Floats, above: Floats, members: Members) -> Floats:
        """Return P[-below <= Y <= above] for each row, of whole steps; infinity is allowed."""
        return (
            self._compute_probability_to(above, members)
            + self._compute_probability_to(below, members)
            - self._compute_probability_zero(members)
        )

    def _compute_probability_to(self, bound: Floats, members: Members) -> Floats:
        """Return P[0 <= Y <= bound], bound a whole number or infinity."""
        if self.sigma is None:
            rate = np.divide(self.s, self.t, out=np.full(len(self.t), np.inf), where=self.t > 0)
            q = np.exp(-rate)[members]
            return (1 - q ** (np.minimum(bound, 2.0**53) + 1)) / (1 + q)  # type: ignore[no-any-return]
        # Half a step more makes the continuous distribution agree closely with the discrete.
        wide = np.maximum(self.sigma, 1e-9)[members]
        erf = np.vectorize(math.erf, otypes=[float])
        half = erf(np.minimum((bound + 0.5) / (wide * math.sqrt(2)), 30.0)) / 2
        return np.where(
            self.sigma[members] > 0, half + self._compute_probability_zero(members) / 2, 1.0
        )

    def _compute_probability_zero(self, members: Members) -> Floats:
        """Return P[Y = 0]."""
        if self.sigma is None:
            rate = np.divide(self.s, self.t, out=np.full(len(self.t), np.inf), where=self.t > 0)
            q = np.exp(-rate)[members]
            return (1 - q) / (1 + q)  # type: ignore[no-any-return]
        wide = np.maximum(self.sigma, 1e-9)[members]
        erf = np.vectorize(math.erf, otypes=[float])
        return np.where(
            self.sigma[members] > 0, erf(np.minimum(0.5 / (wide * math.sqrt(2)), 30.0)), 1.0
        )


def split_epsilon(epsilon: float, weights: Sequence[float]) -> list[Fraction]:
    """Return what each noisy column gets of epsilon, by weight; together exactly epsilon.

    The columns of a row are one record. A column that is a copy of another must not let an
    attacker average the noise away, so epsilon is shared, never spent on each. Numbers are
    taken as they are written: 0.1 is a tenth.
    """
    if not epsilon > 0 or math.isinf(epsilon):
        raise ParameterError("epsilon", "be a finite number above 0", epsilon)
    parts = [Fraction(repr(float(weight))) for weight in weights]
    return [Fraction(repr(float(epsilon))) * part / sum(parts) for part in parts]


def make_laplace_noise(widths: Counts, epsilon: Fraction) -> ClassNoise:
    """Return Laplace noise of scale width / epsilon for each class."""
    largest = int(widths.max(initial=0)) * epsilon.denominator
    if largest >= 2**52:
        raise ParameterError(
            "epsilon",
            "leave fewer than 2**52 steps of noise",
            float(epsilon),
            "Give it fewer digits, or the columns a coarser precision.",
        )
    return ClassNoise(widths * epsilon.denominator, epsilon.numerator)


def make_gaussian_noise(widths: Counts, epsilon: Fraction, delta: float) -> ClassNoise:
    """Return Gaussian noise that makes values a class's width apart indistinguishable."""
    sigma = np.zeros(len(widths), dtype=np.int64)
    for width in np.unique(widths[widths > 0]):
        sigma[widths == width] = discrete_noise.find_sigma(
            int(width), epsilon=float(epsilon), delta=delta
        )
    return ClassNoise(np.zeros_like(widths), 1, sigma)
