"""The law of how many rows of a cell a safe release shows, and what it tells of one more row.

The attacker knows everybody else, hence that a cell has n rows if a person is in the table and
n - 1 if not, and sees how many rows are shown of it, 0 if none. Let P and Q be the laws of that.

**Claim.** Of all tests, the one that says "in" if at least ``least(n)`` rows are shown has the
largest P[in] - Q[in]. That is the total variation distance of P and Q.

Proof. The sum of P - Q over any set is largest for the set of all outcomes with P >= Q; what is
shown with P = Q adds nothing. That nothing is shown is at most as likely with one row more.

- Samples: rows are drawn with ``beta`` and shown from k on. For z >= k rows shown, P / Q is
  n (1 - beta) / (n - z), which is 1 or more from z = n beta on. So ``least`` is the larger of k and
  n beta, rounded up. The distance is beta times the chance that z - 1 of n - 1 rows are drawn.
- Counts: n + X is shown from r + k on, and p, the law of X, is symmetric and falls from 0 on. For
  z rows shown, P / Q is p(z - n) / p(z - n + 1), which is 1 or more where z is nearer to n than to
  n - 1: from n on. So ``least`` is the larger of r + k and n, and the distance p(z - n).

Of a cell with fewer than k rows nothing is ever shown, and nobody can tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from incrowd.arrays import Bools, Counts, Floats
from incrowd.errors import ParameterError
from incrowd.privacy.counts import NoiseSpread, build_gaussian_law, build_geometric_law
from incrowd.privacy.draw_parameters import (
    ROWS_PER_GROUP,
    SERIES,
    build_noise_spread,
    compute_threshold,
)


class ReleaseLaw(Protocol):
    """How many rows of a cell are shown, by how many it has; what was drawn is known."""

    def decision_threshold(self, rows: Counts) -> Counts:
        """Return from how many rows shown on it is rather ``rows`` than one fewer."""
        ...

    def tail_probability(self, rows: Counts, published: Counts) -> Floats:
        """Return how likely at least so many rows are shown, from the decision threshold on."""
        ...

    def allows_shown(self, rows: Counts, published: Counts) -> Bools:
        """Return whether so many rows, 0 for none, can be shown of so many."""
        ...

    def total_variation(self, rows: Counts) -> Floats:
        """Return the total variation distance between ``rows`` and one fewer."""
        ...

    def draw_rows(self, rows: Counts, rng: np.random.Generator) -> Counts:
        """Draw what another release would show, for an attacker's trials; 0 where nothing."""
        ...


@dataclass(frozen=True)
class SampleLaw:
    """Rows drawn with a rate, shown if at least k are."""

    k: int
    beta: float

    def decision_threshold(self, rows: Counts) -> Counts:
        """Return the larger of k and n beta.

        Should the product be rounded past a whole number, a count with P = Q is missed, no more.
        """
        threshold: Counts = np.maximum(self.k, np.ceil(rows * self.beta).astype(np.int64))
        return threshold

    def tail_probability(self, rows: Counts, published: Counts) -> Floats:
        """Return P[B(n, beta) >= z]."""
        from scipy.special import betainc  # slow to load, and only samples need it

        beyond = np.maximum(rows - published, 0) + 1.0
        tail: Floats = np.where(rows >= published, betainc(published, beyond, self.beta), 0.0)
        return tail

    def allows_shown(self, rows: Counts, published: Counts) -> Bools:
        """Return whether nothing is shown, or from k to all."""
        is_possible: Bools = (published == 0) | ((self.k <= published) & (published <= rows))
        return is_possible

    def total_variation(self, rows: Counts) -> Floats:
        """Return P[at least z of n] - P[at least z of n - 1]."""
        return _compute_distance(self, rows)

    def draw_rows(self, rows: Counts, rng: np.random.Generator) -> Counts:
        """Thin the rows, and drop them below k."""
        sampled = rng.binomial(rows, self.beta)
        published: Counts = np.where(sampled >= self.k, sampled, 0)
        return published


@dataclass(frozen=True, eq=False)
class CountLaw:
    """Counts with noise of at most r, shown from a threshold on.

    It is r + k where people are counted; of rows, c of a person in a cell, r + c (k - 1) + 1.
    """

    noise: NoiseSpread
    k: int
    per_group: int = 1

    @property
    def threshold(self) -> int:
        """The smallest noisy count that is shown."""
        return compute_threshold(self.noise.reach, self.k, self.per_group)

    def decision_threshold(self, rows: Counts) -> Counts:
        """Return the larger of the threshold and n."""
        return np.maximum(self.threshold, rows)

    def tail_probability(self, rows: Counts, published: Counts) -> Floats:
        """Return P[n + X >= z]."""
        r = self.noise.reach
        upper_tail: Floats = self._upper_tail[np.clip(published - rows, -r, r + 1) + r]
        return upper_tail

    @cached_property
    def _upper_tail(self) -> Floats:
        """P[X >= x] for x from -r to r + 1."""
        tail = self.noise.tail
        both = np.concatenate([tail[:0:-1], tail])
        return np.append(np.cumsum(both[::-1])[::-1], 0.0)

    def allows_shown(self, rows: Counts, published: Counts) -> Bools:
        """Return whether noise can hide the rows, or make so many of them from there on."""
        r = self.noise.reach
        hidden = (published == 0) & (rows - r < self.threshold)
        is_possible: Bools = hidden | (
            (published >= self.threshold) & (np.abs(published - rows) <= r)
        )
        return is_possible

    def total_variation(self, rows: Counts) -> Floats:
        """Return P[n + X >= z] - P[n - 1 + X >= z]."""
        return _compute_distance(self, rows)

    def draw_rows(self, rows: Counts, rng: np.random.Generator) -> Counts:
        """Add noise, drop what is below: that is more than r, so an empty cell never shows."""
        above = self._upper_tail[1:-1][::-1]  # P[X >= x] for x from r down to 1 - r
        noisy = rows + self.noise.reach - np.searchsorted(above, rng.random(len(rows)), "right")
        published: Counts = np.where(noisy >= self.threshold, noisy, 0)
        return published


@dataclass(frozen=True, eq=False)
class CoinLaw:
    """What was ``drawn``, where a coin without data could have taken the ``other``.

    How it fell is told, so a test knows the law. What is expected is the average of both, with the
    ``chance`` that the coin falls as it did.
    """

    drawn: ReleaseLaw
    other: ReleaseLaw
    chance: float

    def decision_threshold(self, rows: Counts) -> Counts:
        """Return that of the law that was drawn."""
        return self.drawn.decision_threshold(rows)

    def tail_probability(self, rows: Counts, published: Counts) -> Floats:
        """Return that of the law that was drawn."""
        return self.drawn.tail_probability(rows, published)

    def allows_shown(self, rows: Counts, published: Counts) -> Bools:
        """Return what the law that was drawn allows."""
        return self.drawn.allows_shown(rows, published)

    def total_variation(self, rows: Counts) -> Floats:
        """Return the average of both: the coin is seen as well, and alike for both tables."""
        first, second = self.drawn.total_variation(rows), self.other.total_variation(rows)
        return self.chance * first + (1 - self.chance) * second

    def draw_rows(self, rows: Counts, rng: np.random.Generator) -> Counts:
        """Draw by the law that was drawn."""
        return self.drawn.draw_rows(rows, rng)


def _compute_distance(law: ReleaseLaw, rows: Counts) -> Floats:
    least = law.decision_threshold(rows)
    return law.tail_probability(rows, least) - law.tail_probability(rows - 1, least)


def law_from_parameters(parameters: Mapping[str, float | str]) -> ReleaseLaw:
    """Return the law of a safe release, from the parameters that its certificate tells."""
    release_law = {name: x for name, x in parameters.items() if not isinstance(x, str)}
    kind = parameters.get("noise")
    if kind is None and {"k", "beta"} <= set(release_law):
        return SampleLaw(int(release_law["k"]), release_law["beta"])
    if kind not in ("geometric", "gaussian", SERIES) or not {"k", "r"} <= set(release_law):
        raise ParameterError("parameters", "be those of a safe release", dict(parameters))
    k, r = int(release_law["k"]), int(release_law["r"])
    per_group = int(release_law.get(ROWS_PER_GROUP, 1))
    if kind == SERIES:
        return CountLaw(build_noise_spread(parameters), k)

    def noisy(reach: int) -> CountLaw:
        if kind == "geometric":
            return CountLaw(build_geometric_law(release_law["noise_epsilon"], reach), k, per_group)
        return CountLaw(build_gaussian_law(release_law["noise_variance"], reach), k, per_group)

    if "coin" not in release_law:
        return noisy(r)
    second = int(release_law["coin_r"])  # the first side is one less
    if r == second:
        return CoinLaw(noisy(r), noisy(r - 1), 1 - release_law["coin"])
    return CoinLaw(noisy(r), noisy(second), release_law["coin"])
