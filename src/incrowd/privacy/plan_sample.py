"""Solve a plan for samples: k, beta, epsilon or delta of several under one budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from incrowd.arrays import Floats
from incrowd.privacy import sample, sample_inverse
from incrowd.privacy.accountant import Accountant
from incrowd.privacy.events import LARGEST_K, SafeRelease, SampledEvent
from incrowd.privacy.profile import amplify_profile, build_release_profile
from incrowd.privacy.sample import Definition
from incrowd.privacy.sample_inverse import Cost


def choose_solver(releases: int, definition: Definition) -> Solver:
    """Return the tightest solver there is for so many releases under a definition."""
    if definition == "tight" and releases > 1:
        return ComposedSolver(releases)
    return BasicSolver(releases, definition)


class Solver(Protocol):
    """Any one of the four from the other three, and (k, beta) for the smallest k / beta.

    No answer is inf for epsilon and k; there always is a beta.
    """

    def delta(self, k: int, beta: float, epsilon: float) -> float: ...
    def epsilon(self, k: int, beta: float, delta: float) -> float: ...
    def k(self, beta: float, epsilon: float, delta: float) -> float: ...
    def beta(self, k: int, epsilon: float, delta: float) -> float: ...
    def minimize_crowd(self, epsilon: float, delta: float) -> tuple[float, float]: ...


@dataclass(frozen=True)
class BasicSolver:
    """Releases whose epsilons and deltas are added up; exact for one release."""

    releases: int
    definition: Definition

    def delta(self, k: int, beta: float, epsilon: float) -> float:
        share = epsilon / self.releases
        single_delta = sample.delta(k=k, beta=beta, epsilon=share, definition=self.definition)
        return (
            min(math.nextafter(single_delta * self.releases, 1.0), 1.0)
            if self.releases > 1
            else single_delta
        )

    def epsilon(self, k: int, beta: float, delta: float) -> float:
        share = delta / self.releases
        single_epsilon = sample_inverse.epsilon(
            k=k, beta=beta, delta=share, definition=self.definition
        )
        return (
            math.nextafter(single_epsilon * self.releases, math.inf)
            if self.releases > 1
            else single_epsilon
        )

    def k(self, beta: float, epsilon: float, delta: float) -> float:
        return float(self._find_sizes(np.array([beta]), epsilon, delta)[0])

    def beta(self, k: int, epsilon: float, delta: float) -> float:
        return float(self._find_rates(np.array(k), epsilon, delta))

    def minimize_crowd(self, epsilon: float, delta: float) -> tuple[float, float]:
        """Return the k near the best of a beta grid whose largest beta makes the crowd least."""
        limit = -math.expm1(-epsilon / self.releases) if self.definition == "paper" else 1.0
        rates = np.minimum(1 / (1 + np.exp(-np.linspace(-14, 7, 33))), limit * (1 - 1e-12))
        best = middle = math.inf
        for rate in np.array_split(rates, 6):
            # From the smallest rates up: a k above the best crowd so far cannot win.
            sizes = self._find_sizes(rate, epsilon, delta, largest=min(best, LARGEST_K))
            at = int(np.argmin(sizes / rate))
            if sizes[at] / rate[at] < best:
                best, middle = float(sizes[at] / rate[at]), float(sizes[at])
        if math.isinf(middle):
            return middle, math.nan
        k_grid = np.unique(np.linspace(max(middle / 1.6, 1.0), middle * 1.6 + 1, 64).round())
        rates = self._find_rates(k_grid, epsilon, delta)
        best = int(np.argmin(k_grid / rates))
        return float(k_grid[best]), float(rates[best])

    def _find_sizes(
        self, beta: Floats, epsilon: float, delta: float, largest: float = LARGEST_K
    ) -> Floats:
        share = np.full_like(beta, epsilon / self.releases)
        sample.check_definition(self.definition, beta=beta, epsilon=share)
        part = np.full_like(beta, delta / self.releases * (1 - 1e-12))
        return sample_inverse.find_smallest_k(
            beta, share, part, sample_inverse.make_cost(self.definition), math.floor(largest)
        )

    def _find_rates(self, k: Floats, epsilon: float, delta: float) -> Floats:
        return np.asarray(
            sample_inverse.beta(
                k=k,
                epsilon=epsilon / self.releases,
                delta=delta / self.releases,
                definition=self.definition,
            )
        )


@dataclass(frozen=True)
class SampleSolver(BasicSolver):
    """One release of a table that is itself a sample, drawn with ``rate`` from a population.

    Delta is that of :func:`incrowd.privacy.profile.amplify_profile`, both directions. It falls with
    k and grows with beta, as the inner release's does at every epsilon. Its floor, rate
    beta^k, which no epsilon brings down, must fit into delta ``room`` times: a release whose
    floor were all of it would leave a second one of the same table without any epsilon.
    """

    releases: int = 1
    definition: Definition = "tight"
    rate: float = field(kw_only=True)
    room: float = field(default=1.0, kw_only=True)

    def delta(self, k: int, beta: float, epsilon: float) -> float:
        return Accountant(SampledEvent(SafeRelease(k, beta), self.rate)).delta(epsilon=epsilon)

    def epsilon(self, k: int, beta: float, delta: float) -> float:
        return Accountant(SampledEvent(SafeRelease(k, beta), self.rate)).epsilon(delta=delta)

    def _find_sizes(
        self, beta: Floats, epsilon: float, delta: float, largest: float = LARGEST_K
    ) -> Floats:
        targets = (np.full_like(beta, epsilon), np.full_like(beta, delta * (1 - 1e-12)))
        return sample_inverse.find_smallest_k(beta, *targets, self._cost, math.floor(largest))

    def _find_rates(self, k: Floats, epsilon: float, delta: float) -> Floats:
        flat = np.asarray(k, dtype=np.float64).reshape(-1)
        targets = (np.full_like(flat, epsilon), np.full_like(flat, delta * (1 - 1e-12)))
        return sample_inverse.find_largest_beta(flat, *targets, self._cost).reshape(np.shape(k))

    @property
    def _cost(self) -> Cost:
        def cost(k: Floats, beta: Floats, epsilon: Floats) -> Floats:
            amplified = amplify_profile(build_release_profile(k, beta), self.rate).delta(epsilon)
            return np.maximum(amplified, self.room * self.rate * np.exp(k * np.log(beta)))

        return cost


@dataclass(frozen=True)
class ComposedSolver:
    """Releases composed by the accountant.

    Searches start from one release at epsilon / sqrt(releases) and delta / releases, which
    is close, because independent losses add like independent errors.
    """

    releases: int

    def delta(self, k: int, beta: float, epsilon: float) -> float:
        return self._make_accountant(k, beta).delta(epsilon=epsilon)

    def epsilon(self, k: int, beta: float, delta: float) -> float:
        return self._make_accountant(k, beta).epsilon(delta=delta)

    def k(self, beta: float, epsilon: float, delta: float) -> float:
        guess = self._single_solver.k(
            beta, epsilon / math.sqrt(self.releases), delta / self.releases
        )
        if math.isinf(guess):
            return guess
        k = find_smallest_whole(lambda k: self.epsilon(k, beta, delta) <= epsilon, int(guess))
        # Asked for delta, the accountant's grid is another one: the answer must hold there too.
        while k < LARGEST_K and self.delta(int(k), beta, epsilon) > delta:
            k += 1
        return k

    def beta(self, k: int, epsilon: float, delta: float) -> float:
        guess = self._single_solver.beta(
            k, epsilon / math.sqrt(self.releases), delta / self.releases
        )
        rate = _find_largest_rate(lambda beta: self.epsilon(k, beta, delta), epsilon, guess, 1e-9)
        return self._lower_rate(k, rate, epsilon, delta)

    def minimize_crowd(self, epsilon: float, delta: float) -> tuple[float, float]:
        """Go downhill in k, each with its largest beta on a rough grid; the last one exactly."""
        start = self._single_solver.minimize_crowd(
            epsilon / math.sqrt(self.releases), delta / self.releases
        )
        if math.isinf(start[0]):
            return start
        rates: dict[int, float] = {}

        def crowd(k: int, guess: float) -> float:
            if k not in rates:
                rates[k] = _find_largest_rate(
                    lambda beta: self._make_rough_accountant(k, beta).epsilon(delta=delta),
                    epsilon,
                    guess,
                    1e-4,
                )
            return k / rates[k]

        k = int(start[0])
        best, step = crowd(k, start[1]), max(k // 4, 1)
        while step:
            neighbors = [x for x in (k - step, k + step) if x >= 1]
            nearest = min(neighbors, key=lambda x: crowd(x, rates[k]))
            if nearest / rates[nearest] < best:
                k, best = nearest, nearest / rates[nearest]
            else:
                step //= 2
        exact = _find_largest_rate(
            lambda beta: self.epsilon(k, beta, delta), epsilon, rates[k], 1e-5
        )
        return k, self._lower_rate(k, exact, epsilon, delta)

    def _lower_rate(self, k: int, beta: float, epsilon: float, delta: float) -> float:
        """Return the rate, or one a little smaller at which delta holds as well as epsilon does."""
        shrinkage = 1e-9
        while self.delta(k, beta, epsilon) > delta:
            beta *= 1 - shrinkage
            shrinkage *= 2
        return beta

    @property
    def _single_solver(self) -> BasicSolver:
        return BasicSolver(1, "tight")

    def _make_accountant(self, k: int, beta: float) -> Accountant:
        return Accountant([SafeRelease(k, beta)] * self.releases)

    def _make_rough_accountant(self, k: int, beta: float) -> Accountant:
        """Return an accountant with a grid of about 1/8 of one loss's spread: quick, and safe."""
        spread = beta / math.sqrt((1 - beta) * k)
        step = max(spread / 8, math.log(k + 1) / 3000)
        return Accountant([SafeRelease(k, beta)] * self.releases, step=step)


def _find_largest_rate(
    cost: Callable[[float], float], budget: float, guess: float, within: float
) -> float:
    """Return the largest rate whose cost is at most ``budget``, to ``within`` of itself.

    The cost grows with the rate, nearly as a power of it, so the crossing is looked for on
    the straight line between two points in logarithms, a little to either side.
    """
    low, high = guess, guess
    low_cost = high_cost = cost(guess)
    while high_cost <= budget:
        low, low_cost = high, high_cost
        high = min(high * 1.1, (high + 1) / 2)
        high_cost = cost(high)
    while low_cost > budget:
        high, high_cost = low, low_cost
        low /= 1.1
        low_cost = cost(low)
    halve = False
    while high - low > within * low:
        share = 0.5
        if not halve and low_cost > 0 and math.isfinite(high_cost):
            share = math.log(budget / low_cost) / math.log(high_cost / low_cost)
        crossing = low * (high / low) ** share
        for rate in (crossing * (1 - within / 3), crossing * (1 + within / 3)):
            if low < rate < high:
                rate_cost = cost(rate)
                if rate_cost <= budget:
                    low, low_cost = rate, rate_cost
                else:
                    high, high_cost = rate, rate_cost
        halve = not halve
    return low


def find_smallest_whole(
    holds: Callable[[int], bool], guess: int, largest: int = LARGEST_K
) -> float:
    """Return the smallest whole number from which on ``holds`` is true, searched near a guess.

    Inf where it would be above ``largest``.
    """
    low, high, width = 0, guess, max(guess // 8, 1)
    while not holds(high):
        if high >= largest:
            return math.inf
        low, high, width = high, min(high + width, largest), width * 2
    if low == 0:
        low = max(high - width, 0)
        while low > 0 and holds(low):
            high, width = low, width * 2
            low = max(high - width, 0)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return float(high)
