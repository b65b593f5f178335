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

**Rows instead of people.** Of each person at most m rows are chosen, before any scheme is looked
at, and at every scheme at most c of them count in one cell.

**Claim.** For two tables that differ by all rows of one person this costs no more than the worst of
the vectors of whole numbers up to c that add up to m, each number the shift of a pair of its own,
all of them in one direction: :class:`~incrowd.privacy.events.RowCounts`. It is attained where the
person's rows lie so in cells of at least 2 r + c (k - 1) + 1 other rows each.

*Proof.* Given the rows that were chosen, alike of all others in both tables, the counts of two
tables differ by such a vector, of a sum of at most m. Cells are drawn independently, and of each
that differs what is shown is one function of n + X or of n + s + X, also where n is 0, since the
threshold is above r; so the pairs of its numbers dominate. By the claim above a vector whose sum is
below m may be replaced by one of sum m that is nowhere smaller: some number below c grows, or a
cell more is moved. :func:`list_row_shifts` lists those, each order once. Which of them a person has
may depend on the scheme, hence on earlier results: the largest of their profiles at each epsilon
holds whatever it was, and so it may be composed as the profile of one pair. Averages over the rows
chosen are no further apart, since divergences are jointly convex.

No vector is left out for being smaller than another by its sum of squares: that (c, ..., c) is the
worst is true of the noise without bound, and seen but not proved of the truncated one.

With geometric noise of epsilon e each vector is (m e, sum of P[X > r - s])-differentially private.

Rounding is that of :mod:`incrowd.privacy.counts`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from incrowd.arrays import Counts, Floats
from incrowd.privacy.counts import build_event_law
from incrowd.privacy.events import GeometricCounts, RowCounts, ShiftedCounts
from incrowd.privacy.partition import list_partitions
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
    law, beyond = build_event_law(shifted.event), compute_lost_mass(shifted)
    inside = law.tail[np.abs(_list_shared_noise(shifted))] * _UP
    losses = _compute_losses(shifted)

    def either(x: Floats) -> Floats:
        delta = np.empty(len(x))
        width = max(_AT_ONCE // max(len(losses), 1), 1)
        for start in range(0, len(x), width):
            block = x[start : start + width, None]
            share = -np.expm1(np.minimum(block - losses, 0.0))
            delta[start : start + width] = beyond + share @ inside
        return np.minimum(delta, 1.0)

    return Profile(either, either, float(losses.max(initial=0.0)) * (1 + 1e-14))


def _list_shared_noise(shifted: ShiftedCounts) -> Counts:
    """Return the noise j that the shifted law can be, too, and where it is the less likely.

    Half way and beyond, the shifted law is at least as likely.
    """
    s = shifted.distance
    return np.arange(s - shifted.event.r, (s + 1) // 2, dtype=np.int64)


def _compute_losses(shifted: ShiftedCounts) -> Floats:
    """Return the losses at this noise, rounded up."""
    j, s = _list_shared_noise(shifted), shifted.distance
    if isinstance(shifted.event, GeometricCounts):
        losses = shifted.event.epsilon * (np.abs(j - s) - np.abs(j)).astype(np.float64)
    else:
        losses = (s * (s - 2 * j)).astype(np.float64) / (2 * shifted.event.variance)
    return losses * (1 + 1e-15)


def list_row_shifts(event: RowCounts) -> Iterator[list[ShiftedCounts]]:
    """Yield the ways in which a person moves counts of rows, each as one shift per cell."""
    for sizes in list_partitions(event.rows, event.per_group):
        yield [ShiftedCounts(event.event, size) for size in sizes]


def bound_losses(shifts: Sequence[ShiftedCounts]) -> float:
    """Return the largest loss of shifts together, where both tables may show the same."""
    largest = (_compute_losses(shift).max(initial=0.0) for shift in shifts)
    return math.fsum(largest) * (1 + 1e-14)
