"""Counts that one person moves by more than one: what they cost.

**Claim.** Write p for the law of the noise, truncated at r, and l(j) = ln p(j) / p(j - s). For two
tables between which the count differs by s, either of them first, the smallest delta at epsilon =
x >= 0 of what is shown is at most

    delta(x) = P[X > r - s] + sum over j >= s - r with l(j) > 0 of p(j) [1 - e^(x - l(j))]_+

and it grows with s: who moves the count by less loses no more.

*Proof.* What is shown is one function of n + X or of n + s + X, so the pair (X, X + s) dominates.
The sum of [p(j) - e^x p(j - s)]_+ has the terms p(j) where j - s < -r, which by symmetry add up to
P[X > r - s], and those above. X + s against X is the same pair, mirrored. Both laws are
log-concave on an interval, so p(j) / p(j - s) falls with j, and by Neyman and Pearson the best test
is a threshold: delta(x) is the largest F(t) - e^x F(t - s) over t, F the distribution function, and
F(t - s) falls with s.

Rounding is that of :mod:`incrowd.privacy.counts`.
"""

from __future__ import annotations

import math

import numpy as np

from incrowd.arrays import Floats
from incrowd.privacy.counts import build_event_law
from incrowd.privacy.events import GeometricCounts, ShiftedCounts
from incrowd.privacy.profile import Profile
from incrowd.privacy.sample import SMALLEST

_UP = 1 + 1e-12
_AT_ONCE = 1 << 22  # so many numbers are held at a time


def compute_lost_mass(shifted: ShiftedCounts) -> float:
    """Return P[X > r - s]: the delta that no epsilon takes away; rounded up, and never 0."""
    law = build_event_law(shifted.event)
    edge = max(law.reach - shifted.distance + 1, -law.reach)
    mass = math.fsum(law.tail[edge:]) if edge > 0 else law.compute_tail(edge)
    return min(max(mass * _UP, SMALLEST), 1.0)


def build_shifted_profile(shifted: ShiftedCounts) -> Profile:
    """Return delta at every epsilon, both directions alike; see the module's claim."""
    law, s, beyond = build_event_law(shifted.event), shifted.distance, compute_lost_mass(shifted)
    # Half way and beyond, the shifted law is at least as likely.
    j = np.arange(s - law.reach, (s + 1) // 2, dtype=np.int64)
    inside = law.tail[np.abs(j)] * _UP
    if isinstance(shifted.event, GeometricCounts):
        losses = shifted.event.epsilon * (np.abs(j - s) - np.abs(j)).astype(np.float64)
    else:
        losses = (s * (s - 2 * j)).astype(np.float64) / (2 * shifted.event.variance)
    losses = losses * (1 + 1e-15)

    def either(x: Floats) -> Floats:
        delta = np.empty(len(x))
        width = max(_AT_ONCE // max(len(losses), 1), 1)
        for start in range(0, len(x), width):
            block = x[start : start + width, None]
            share = -np.expm1(np.minimum(block - losses, 0.0))
            delta[start : start + width] = beyond + share @ inside
        return np.minimum(delta, 1.0)

    return Profile(either, either, float(losses.max(initial=0.0)) * (1 + 1e-14))
