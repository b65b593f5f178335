"""Privacy profiles: delta as a function of epsilon, for both directions of neighboring.

Let P and Q be the outputs on a table with a person's row and without it. A profile holds
upper bounds on the two hockey-stick divergences at every epsilon >= 0,

    present(epsilon) >= sup sum [P - e^epsilon Q]_+
    absent(epsilon)  >= sup sum [Q - e^epsilon P]_+

These two decide everything, negative epsilon included: for x > 0,
sum [P - e^-x Q]_+ = 1 - e^-x + e^-x sum [Q - e^x P]_+. A profile that is attained for no
single pair of tables is still that of some dominating pair (Zhu, Dong, Wang 2022), so
profiles may be composed as if it were one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from incrowd.arrays import Floats
from incrowd.privacy.amplification import amplify_epsilon, invert_epsilon
from incrowd.privacy.presentation import read_as_decimal
from incrowd.privacy.sample import log_absent_divergence, log_present_divergence, round_up_exp

_UP = 1 + 1e-14  # more than a product of a few factors is off by


@dataclass(frozen=True)
class Profile:
    """Upper bounds on delta at epsilon >= 0; past ``reach`` they hardly fall any further."""

    present: Callable[[Floats], Floats]
    absent: Callable[[Floats], Floats]
    reach: float

    def swap_tables(self) -> Profile:
        """Return the same mechanism with the two tables exchanged."""
        return Profile(self.absent, self.present, self.reach)

    def delta(self, epsilon: Floats) -> Floats:
        """Return the larger of the two directions."""
        return np.maximum(self.present(epsilon), self.absent(epsilon))


def build_release_profile(k: float | Floats, beta: float | Floats) -> Profile:
    """Return the tight profile of a safe release, each direction at its own worst cell size.

    Arrays of k and beta give the profiles of as many releases, each at its own epsilon.
    """
    k, beta = np.asarray(k, dtype=np.float64), np.asarray(beta, dtype=np.float64)

    def present(epsilon: Floats) -> Floats:
        return round_up_exp(log_present_divergence(*np.broadcast_arrays(k, beta, epsilon)))

    def absent(epsilon: Floats) -> Floats:
        return round_up_exp(log_absent_divergence(*np.broadcast_arrays(k, beta, epsilon)))

    # Past ln k the worst cell has exactly k rows (present); past -ln(1 - beta) absent is 0.
    reach = max(float(np.max(np.log(k))), float(np.max(-np.log1p(-beta))))
    return Profile(present, absent, reach + 1e-9)


def build_guarantee_profile(epsilon: float, delta: float) -> Profile:
    """Return the profile of the worst mechanism that satisfies (epsilon, delta).

    That is randomized response: with probability delta it tells the truth in a way that
    cannot be denied, otherwise with odds e^epsilon to 1 in favor of it. Epsilon is the float, or
    the decimal that it is written as, whichever is larger; near it x - epsilon is exact.
    """
    shift = 0.0
    if math.isfinite(epsilon):
        shift = max(float(read_as_decimal(epsilon) - Fraction(epsilon)), 0.0) * (1 + 1e-15)

    def either(x: Floats) -> Floats:
        odds: Floats = -np.expm1(np.minimum(x - epsilon - shift, 0.0)) / (1 + np.exp(-epsilon))
        return np.minimum((delta + (1 - delta) * odds) * (1 + 1e-14), 1.0)  # rounded up

    return Profile(either, either, math.nextafter(epsilon, math.inf) if shift else epsilon)


def of_bounded_range(epsilon: float) -> Profile:
    """Return the profile of the worst mechanism whose privacy losses span at most epsilon.

    Claim: (1 - e^((x - epsilon) / 2))^2 / (1 - e^-epsilon) at every x from 0 to epsilon, either
    way, and 0 beyond; no smaller one holds. (Dong, Durfee, Rogers 2020.)

    Proof. Let the losses ln P/Q lie between t - epsilon and t. P/Q has the mean 1 under Q, and
    [P/Q - e^x]_+ is convex in it, so its mean is largest where P/Q takes the two outermost values
    alone: e^t with probability q = (e^-t - e^-epsilon) / (1 - e^-epsilon), else e^(t - epsilon).
    That mean is q (e^t - e^x) = (1 - e^(x - t) - e^(t - epsilon) + e^(x - epsilon)) / (1 -
    e^-epsilon), largest at t = (x + epsilon) / 2. Exchanging P and Q changes the sign of the
    losses, not their range. The largest over t, at every x by itself, is the profile of a pair
    that dominates them all.
    """

    def either(x: Floats) -> Floats:
        inside: Floats = np.expm1((np.minimum(x, epsilon) - epsilon) / 2) ** 2 / -np.expm1(-epsilon)
        return np.minimum(inside * (1 + 1e-14), 1.0)  # rounded up

    return Profile(either, either, epsilon)


def build_worst_profile(profiles: Sequence[Profile]) -> Profile:
    """Return the profile of a mechanism chosen among several, each direction at its largest.

    The maximum of profiles is a profile (it is convex in e^epsilon), and its dominating pair
    dominates each of them, hence also whichever is chosen by what came before.
    """

    def present(epsilon: Floats) -> Floats:
        return np.asarray(np.max([profile.present(epsilon) for profile in profiles], axis=0))

    def absent(epsilon: Floats) -> Floats:
        return np.asarray(np.max([profile.absent(epsilon) for profile in profiles], axis=0))

    return Profile(present, absent, max(profile.reach for profile in profiles))


def mix_profiles(first: Profile, second: Profile, chance: float) -> Profile:
    """Return the profile of a mechanism chosen by a coin that sees no data and may be told.

    The output is (coin, what was chosen), and the coin is alike for both tables: divergences are
    averaged. For any two tables that is at most the average of the two profiles.
    """

    def present(epsilon: Floats) -> Floats:
        mixture = chance * first.present(epsilon) + (1 - chance) * second.present(epsilon)
        return np.minimum(mixture * _UP, 1.0)

    def absent(epsilon: Floats) -> Floats:
        mixture = chance * first.absent(epsilon) + (1 - chance) * second.absent(epsilon)
        return np.minimum(mixture * _UP, 1.0)

    return Profile(present, absent, max(first.reach, second.reach))


def amplify_profile(profile: Profile, rate: float) -> Profile:
    """Return the profile for a population of which the table is a sample with the given rate.

    Claim: it holds if the target's own membership of the table is unknown to the attacker,
    whatever he knows of everybody else's, and no smaller one does.

    Proof. Let the others of the table be fixed, P the output with the target among them and
    Q without. If the target is in the population the output is M = (1 - rate) Q + rate P,
    else it is Q. M - e^x Q = rate (P - e^y Q) where e^x = 1 + rate (e^y - 1), so
    present'(x) = rate present(y). For the other direction take -x and -y and turn both sides
    round: absent'(x) = rate e^(x - y) absent(y), and 0 where e^-x <= 1 - rate. Both are exact
    for one pair of tables, and where the attacker knows the others that is all there is. To
    an attacker who does not know them, outputs are averages over them, with the same weights
    with and without the target: divergences are jointly convex, so he sees no more.

    Rounding: both fall with y, which is rounded down. Where absent comes to its end,
    e^-y = 1 - (1 - e^-x) / rate is a small difference; it is rounded up as y is down.
    """

    def present(x: Floats) -> Floats:
        return rate * profile.present(invert_epsilon(x, rate)) * _UP

    def absent(x: Floats) -> Floats:
        share = -np.expm1(-x) / rate * (1 - 2e-15)
        below = np.minimum(share, 1 - 1e-15)
        inside = profile.absent(-np.log1p(-below))
        value = rate * np.exp(np.minimum(x, 50.0)) * (1 - below) * inside * _UP
        return np.where(share < 1, value, 0.0)

    top = np.array([profile.reach])
    present_end = float(amplify_epsilon(top, rate)[0])
    absent_end = float(-np.log1p(rate * np.expm1(-top[0])))
    # A little further, so that y reaches the inner profile's end although it is rounded down.
    return Profile(present, absent, max(present_end, absent_end) * (1 + 1e-12))
