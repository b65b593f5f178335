"""(k, epsilon)-anonymity (Holohan and others): noise on some columns inside each class.

Values are whole numbers of grid steps. Each class gets noise as wide as its own diameter (or
the declared range) asks for. With diameter d, any two values of the class become each released
value with probabilities that differ by a factor of at most e^epsilon: noise of scale
d / epsilon shifts by at most d. The diameter is read from the data, so this is no differential
privacy of the table; with the declared range it is epsilon-local privacy of each value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from incrowd.codes.axis import Members
from incrowd.errors import Floats, ParameterError
from incrowd.privacy import noise
from incrowd.privacy.randomness import Counts, Randomness

Steps = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_LIMITS = np.iinfo(np.int64)


def shares(epsilon: float, weights: Sequence[float]) -> list[Fraction]:
    """What each noisy column gets of epsilon, by weight; together exactly epsilon.

    The columns of a row are one record. A column that is a copy of another must not let an
    attacker average the noise away, so epsilon is shared, never spent on each. Numbers are
    taken as they are written: 0.1 is a tenth.
    """
    if not epsilon > 0 or math.isinf(epsilon):
        raise ParameterError("epsilon", "be a finite number above 0", epsilon)
    parts = [Fraction(repr(float(weight))) for weight in weights]
    return [Fraction(repr(float(epsilon))) * part / sum(parts) for part in parts]


def diameters(values: Steps, members: Members, classes: int) -> Counts:
    """The largest value of each class less its smallest; 0 for a class without values."""
    low = np.full(classes, _LIMITS.max, dtype=np.int64)
    high = np.full(classes, _LIMITS.min, dtype=np.int64)
    np.minimum.at(low, members, values)
    np.maximum.at(high, members, values)
    wide = np.where(low <= high, high.astype(np.float64) - low.astype(np.float64), 0.0)
    if wide.max(initial=0.0) >= 2.0**52:
        raise ParameterError(
            "precision",
            "leave fewer than 2**52 steps between the values of a class",
            float(wide.max()),
            "Declare a coarser precision.",
        )
    return np.where(low <= high, high - low, 0)


@dataclass(frozen=True, eq=False)
class Noise:
    """How noise is drawn for one column: for each class its width, 0 for none.

    Laplace noise has P[y] proportional to exp(-|y| s / t); Gaussian noise has a whole sigma.
    """

    t: Counts
    s: int
    sigma: Counts | None = None

    def draw(self, members: Members, bits: Randomness) -> Steps:
        """Independent noise for each row, by its class."""
        drawn = np.zeros(len(members), dtype=np.int64)
        width = self.t if self.sigma is None else self.sigma
        noisy = np.flatnonzero(width[members] > 0)
        if self.sigma is None:
            drawn[noisy] = noise.laplace(self.t[members[noisy]], self.s, bits)
        else:
            drawn[noisy] = noise.gaussian(self.sigma[members[noisy]], bits)
        return drawn

    @property
    def mean(self) -> Floats:
        """The mean of the noise's absolute value, for each class."""
        width = self.t if self.sigma is None else self.sigma
        means = np.zeros(len(width))
        some = width > 0
        means[some] = (
            noise.mean_laplace(self.t[some], self.s)
            if self.sigma is None
            else noise.mean_gaussian(self.sigma[some])
        )
        return means

    def mean_apart(self, shift: Floats, members: Members) -> Floats:
        """The mean of |Y + shift| for each row: for Laplace noise |shift| + q^|shift| E|Y|."""
        away, mean = np.abs(shift), self.mean[members]
        if self.sigma is None:
            rate = np.divide(self.s, self.t, out=np.full(len(self.t), 1e300), where=self.t > 0)
            return np.where(away == 0, mean, away + np.exp(-rate[members] * away) * mean)
        wide = np.maximum(self.sigma[members].astype(np.float64), 1e-9)
        erf = np.vectorize(math.erf, otypes=[float])
        near = mean * np.exp(-((away / wide) ** 2) / 2)
        return np.where(away == 0, mean, near + away * erf(away / (wide * math.sqrt(2))))

    @property
    def scale(self) -> Floats:
        """t / s, or sigma: what distances in a class are measured by."""
        return self.t / self.s if self.sigma is None else self.sigma.astype(np.float64)

    def radius(self, confidence: float) -> Floats:
        """How far from a released value its original lies, with that confidence, by class."""
        if self.sigma is None:
            return -self.scale * math.log1p(-confidence)
        return self.scale * NormalDist().inv_cdf((1 + confidence) / 2)

    def between(self, below: Floats, above: Floats, members: Members) -> Floats:
        """P[-below <= Y <= above] for each row, of whole steps; infinity is allowed."""
        return self._upto(above, members) + self._upto(below, members) - self._at_zero(members)

    def _upto(self, most: Floats, members: Members) -> Floats:
        """P[0 <= Y <= most], most a whole number or infinity."""
        if self.sigma is None:
            rate = np.divide(self.s, self.t, out=np.full(len(self.t), np.inf), where=self.t > 0)
            q = np.exp(-rate)[members]
            return (1 - q ** (np.minimum(most, 2.0**53) + 1)) / (1 + q)  # type: ignore[no-any-return]
        # Half a step more makes the continuous distribution agree closely with the discrete.
        wide = np.maximum(self.sigma, 1e-9)[members]
        erf = np.vectorize(math.erf, otypes=[float])
        half = erf(np.minimum((most + 0.5) / (wide * math.sqrt(2)), 30.0)) / 2
        return np.where(self.sigma[members] > 0, half + self._at_zero(members) / 2, 1.0)

    def _at_zero(self, members: Members) -> Floats:
        """P[Y = 0]."""
        if self.sigma is None:
            rate = np.divide(self.s, self.t, out=np.full(len(self.t), np.inf), where=self.t > 0)
            q = np.exp(-rate)[members]
            return (1 - q) / (1 + q)  # type: ignore[no-any-return]
        wide = np.maximum(self.sigma, 1e-9)[members]
        erf = np.vectorize(math.erf, otypes=[float])
        return np.where(
            self.sigma[members] > 0, erf(np.minimum(0.5 / (wide * math.sqrt(2)), 30.0)), 1.0
        )


def laplace(widths: Counts, epsilon: Fraction) -> Noise:
    """Laplace noise of scale width / epsilon for each class."""
    largest = int(widths.max(initial=0)) * epsilon.denominator
    if largest >= 2**52:
        raise ParameterError(
            "epsilon",
            "leave fewer than 2**52 steps of noise",
            float(epsilon),
            "Give it fewer digits, or the columns a coarser precision.",
        )
    return Noise(widths * epsilon.denominator, epsilon.numerator)


def gaussian(widths: Counts, epsilon: Fraction, delta: float) -> Noise:
    """Gaussian noise that makes values as far apart as each class is wide indistinguishable."""
    sigma = np.zeros(len(widths), dtype=np.int64)
    for width in np.unique(widths[widths > 0]):
        sigma[widths == width] = noise.sigma_for(int(width), epsilon=float(epsilon), delta=delta)
    return Noise(np.zeros_like(widths), 1, sigma)


def added(values: Steps, drawn: Steps) -> Steps:
    """Values with their noise; what would leave the 64-bit range stays at its edge."""
    with np.errstate(over="ignore"):
        plain = values + drawn  # wraps around at the edges
    over, under = (drawn > 0) & (plain < values), (drawn < 0) & (plain > values)
    return np.where(over, _LIMITS.max, np.where(under, _LIMITS.min, plain))


def within(members: Members, originals: Steps, low: Floats, high: Floats) -> Counts:
    """For each row, how many originals of its class lie from low to high; O(n log n)."""
    upto = _ranked(members, originals, high, ties_after=True)
    before = _ranked(members, originals, low, ties_after=False)
    return upto - before


def _ranked(members: Members, originals: Steps, at: Floats, *, ties_after: bool) -> Counts:
    """How many originals come before each query, in the order of classes and values.

    With ``ties_after`` an original equal to the query comes before it, else after.
    """
    n = len(members)
    values = np.concatenate([originals.astype(np.float64), at])
    classes = np.concatenate([members, members])
    query = np.repeat([0, 1], n) if ties_after else np.repeat([1, 0], n)
    order = np.lexsort((query, values, classes))
    seen = np.cumsum(order < n)
    ranks = np.empty(2 * n, dtype=np.int64)
    ranks[order] = seen
    return ranks[n:]


def confident(
    members: Members, originals: Steps, released: Steps, radii: Floats, *, k: int
) -> Mask:
    """Which rows confidence-based k-anonymity keeps in one column, before classes are counted.

    Around a released value at least k originals of its class must lie within the radius, or
    none: then the noise has carried it away from everyone.
    """
    base = np.full(len(radii), _LIMITS.max, dtype=np.int64)
    np.minimum.at(base, members, originals)  # counted from there, no step is lost in a float
    known, shown = originals - base[members], (released - base[members]).astype(np.float64)
    reach = np.floor(radii[members])  # values are whole, so sums with it are exact
    found = within(members, known, shown - reach, shown + reach)
    return np.asarray((found == 0) | (found >= k))


def whole_classes(kept: Mask, members: Members, *, k: int) -> Mask:
    """Of the rows kept, those whose class keeps at least k of them."""
    left = np.bincount(members[kept], minlength=int(members.max(initial=-1)) + 1)
    return np.asarray(kept & (left[members] >= k))
