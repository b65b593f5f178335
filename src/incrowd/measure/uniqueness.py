"""How many people are unique in the population, estimated from the groups of a sample.

A *histogram* says how many groups of the sample have one record, two records, and so on. Each
estimator returns the expected number of people of the population who are alone with their values,
None where it has no answer.

- Zayatz (1991) asks which groups of one record come from groups of one person, under simple random
  sampling, taking the sizes of the groups of the sample for those of the population.
- Pitman (Hoshino 2001): group sizes follow Pitman's sampling formula; its two parameters are those
  of greatest likelihood.
- SNB (Chen and Keller-McNulty 1998): the size of a population group is 1 plus a negative binomial
  number. Each person is sampled with probability f, so that the number of records of a group has
  the generating function G(1 - f + f s), G(s) = s (b / (1 - (1 - b) s))^a; a and b make the
  expected numbers of groups of one and two records those of the sample. The number of population
  groups is Shlosser's third estimator (Haas and Stokes 1998).
- Dankar and others (2012) choose: Pitman up to a sampling fraction of 0.1 (Zayatz where it has no
  answer), and the smaller of Zayatz and SNB beyond.

ARX computes the SNB otherwise: it multiplies by (1 - c)^(a + 2) where the second equation divides
by it, and subtracts 1 from a product where Shlosser's estimator subtracts it from a factor. Ours
are derived as above, so that the figures of the two differ beyond a sampling fraction of 0.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Counts, Floats

_SMALL_FRACTION = 0.1


@dataclass(frozen=True)
class SizeHistogram:
    """How many groups of a sample have each size; sizes ascend."""

    sizes: Counts
    groups: Counts

    @classmethod
    def from_counts(cls, counts: Counts) -> SizeHistogram:
        """Return the histogram of groups of so many records each."""
        sizes, groups = np.unique(counts, return_counts=True)
        return cls(sizes.astype(np.int64), groups.astype(np.int64))

    @property
    def records(self) -> int:
        """The number of records of the sample."""
        return int(self.sizes @ self.groups)

    @property
    def total(self) -> int:
        """The number of groups."""
        return int(self.groups.sum())

    def count_groups(self, size: int) -> int:
        """Return how many groups have exactly this size."""
        return int(self.groups[self.sizes == size].sum())


@dataclass(frozen=True)
class PopulationUniqueness:
    """Estimated share of the population that is unique, by several models.

    Attributes:
        population: Size of the population.
        fraction: Sampling fraction.
        zayatz: Estimate by Zayatz.
        pitman: Estimate by Pitman's sampling formula.
        snb: Estimate by the slide negative binomial model.
        dankar: Estimate that the decision rule of Dankar and others chooses.
        model: The model that it chooses.
    """

    population: float
    fraction: float
    zayatz: float
    pitman: float | None
    snb: float | None
    dankar: float
    model: str


def estimate_uniqueness(histogram: SizeHistogram, population: float) -> PopulationUniqueness:
    """Return the share of a population that is unique, from the groups of a sample."""
    population = max(float(population), float(histogram.records))
    fraction = histogram.records / population if population else 1.0
    numbers = {
        "zayatz": estimate_zayatz(histogram, population),
        "pitman": estimate_pitman(histogram, population),
        "snb": estimate_snb(histogram, population),
    }
    model = choose_model(fraction, numbers)
    shares = {
        name: None if number is None else number / max(population, 1.0)
        for name, number in numbers.items()
    }
    zayatz, dankar = shares["zayatz"], shares[model]
    assert zayatz is not None
    assert dankar is not None
    return PopulationUniqueness(
        population, fraction, zayatz, shares["pitman"], shares["snb"], dankar, model
    )


def choose_model(fraction: float, numbers: dict[str, float | None]) -> str:
    """Return the model that the decision rule of Dankar and others chooses."""
    zayatz, snb = numbers["zayatz"], numbers["snb"]
    if fraction <= _SMALL_FRACTION:
        return "zayatz" if numbers["pitman"] is None else "pitman"
    return "snb" if snb is not None and zayatz is not None and snb < zayatz else "zayatz"


def estimate_zayatz(histogram: SizeHistogram, population: float) -> float:
    """Return the estimated number of population uniques by Zayatz.

    A group of i people has one record in the sample with the hypergeometric probability h(i); so
    a group of one record is one of one person with probability g(1) h(1) / sum of g(i) h(i).
    """
    from scipy.stats import hypergeom

    single = histogram.count_groups(1)
    if not single:
        return 0.0
    people, records = round(population), histogram.records
    chances = hypergeom.pmf(1, people, histogram.sizes, records)
    mixed = float(histogram.groups @ chances)
    share = single * float(hypergeom.pmf(1, people, 1, records)) / mixed
    return single * share * population / records


def estimate_pitman(histogram: SizeHistogram, population: float) -> float | None:
    """Return the estimated number of population uniques by Pitman's sampling formula.

    It is G(t + 1) / G(t + a) * N^a with the parameters t and a of greatest likelihood, G being the
    gamma function. A fit at the edge of 0 < a < 1 has no answer.
    """
    from scipy.special import gammaln

    if not histogram.count_groups(1):
        return 0.0
    fit = _fit_pitman(histogram)
    if fit is None:
        return None
    theta, alpha = fit
    logarithm = gammaln(theta + 1) - gammaln(theta + alpha) + alpha * np.log(population)
    number = float(np.exp(logarithm))
    return number if number <= population else None


def _fit_pitman(histogram: SizeHistogram) -> tuple[float, float] | None:
    """Return the parameters of greatest likelihood; None where there is none inside the domain.

    The likelihood is that of a partition of n records into u groups of sizes i, s(i) of each:
    prod_{j<u} (t + j a) / prod_{j<n} (t + j) * prod (prod_{j<i} (j - a))^s(i), j from 1.
    """
    from scipy.optimize import minimize
    from scipy.special import expit, gammaln

    total, records = histogram.total, histogram.records
    steps = np.arange(1, total)

    def compute_loss(point: Floats) -> float:
        alpha = float(expit(point[1]))
        theta = float(np.exp(point[0])) - alpha
        with np.errstate(all="ignore"):
            value = np.log(theta + alpha * steps).sum()
            value -= gammaln(theta + records) - gammaln(theta + 1)
            sizes = gammaln(histogram.sizes - alpha) - gammaln(1 - alpha)
            value += float(histogram.groups @ sizes)
        return -float(value) if np.isfinite(value) else 1e300

    starts = ((0.0, 0.0), (5.0, -1.0), (8.0, 1.0))
    best = min(
        (
            minimize(
                compute_loss, start, method="Nelder-Mead",
                options={"xatol": 1e-10, "fatol": 1e-10, "maxiter": 4000},
            )
            for start in starts
        ),
        key=lambda fit: float(fit.fun),
    )  # fmt: skip
    alpha = float(expit(best.x[1]))
    inside = 1e-6 < alpha < 1 - 1e-6 and abs(best.x[0]) < 40
    if not inside or best.fun >= 1e300:
        return None
    return _polish_pitman(histogram, float(np.exp(best.x[0])) - alpha, alpha)


def _polish_pitman(histogram: SizeHistogram, theta: float, alpha: float) -> tuple[float, float]:
    """Return the zero of the likelihood's gradient near a maximum; the maximum if none is near."""
    from scipy.optimize import root
    from scipy.special import psi

    steps = np.arange(1, histogram.total)

    def compute_gradient(point: Floats) -> Floats:
        theta, alpha = point
        ratios = 1 / (theta + alpha * steps)
        sizes = psi(histogram.sizes - alpha) - psi(1 - alpha)
        return np.array([
            ratios.sum() - psi(theta + histogram.records) + psi(theta + 1),
            steps @ ratios - histogram.groups @ sizes,
        ])  # fmt: skip

    solution = root(compute_gradient, [theta, alpha], tol=1e-13)
    change = np.abs(solution.x - [theta, alpha]) / np.abs([theta, alpha])
    near = bool(solution.success and np.isfinite(solution.x).all() and change.max() < 1e-3)
    return (float(solution.x[0]), float(solution.x[1])) if near else (theta, alpha)


def estimate_snb(
    histogram: SizeHistogram, population: float, *, groups: float | None = None
) -> float | None:
    """Return the estimated number of population uniques by the slide negative binomial model.

    Of K groups of the population, K b^a have one person. ``groups`` is K, by default as Shlosser
    estimates it.
    """
    from scipy.optimize import least_squares
    from scipy.special import expit

    single, double = histogram.count_groups(1), histogram.count_groups(2)
    if not single:
        return 0.0
    fraction = min(histogram.records / population, 1.0)
    if fraction == 1.0:
        return float(single)
    number = groups or estimate_groups(histogram, fraction)

    def compute_residual(point: Floats) -> Floats:
        shape, success = np.exp(point[0]), expit(point[1])
        first, second = expect_small_groups(shape, success, fraction)
        return np.array([number * first / single - 1, number * second / max(double, 1) - 1])

    fits = [
        least_squares(
            compute_residual, start, bounds=([-14, -25], [14, 25]), xtol=1e-14, ftol=1e-14
        )
        for start in _iterate_starts()
    ]
    best = min(fits, key=lambda fit: float(fit.cost))
    if best.cost > 1e-12 or not double:
        return None
    shape, success = float(np.exp(best.x[0])), float(expit(best.x[1]))
    return float(number * np.exp(shape * np.log(success)))


def _iterate_starts() -> Iterator[tuple[float, float]]:
    for shape in (-4.0, -1.0, 1.0):
        for success in (-6.0, -2.0, 1.0):
            yield shape, success


def expect_small_groups(shape: float, success: float, fraction: float) -> tuple[float, float]:
    """Return the chances that a group of the SNB model has one and two records in the sample.

    They are the first two coefficients of G(1 - f + f s); c is (1 - f)(1 - b).
    """
    rest = (1 - fraction) * (1 - success)
    power = np.exp(shape * (np.log(success) - np.log1p(-rest)))
    first = fraction * power * (1 + shape * rest / (1 - rest))
    second = (
        shape * fraction**2 * (1 - success) * power
        * (2 - (1 - shape) * rest) / (2 * (1 - rest) ** 2)
    )  # fmt: skip
    return float(first), float(second)


def estimate_groups(histogram: SizeHistogram, fraction: float) -> float:
    """Return Shlosser's third estimate of the number of groups in the population."""
    sizes, groups = histogram.sizes.astype(np.float64), histogram.groups.astype(np.float64)
    left, square = 1 - fraction, fraction**2
    unseen = groups @ left**sizes
    first = groups @ (sizes * square * (1 - square) ** (sizes - 1))
    second = groups @ (left**sizes * ((1 + fraction) ** sizes - 1))
    single = groups @ (sizes * fraction * left ** (sizes - 1))
    return float(
        histogram.total + histogram.count_groups(1) * first / second * (unseen / single) ** 2
    )
