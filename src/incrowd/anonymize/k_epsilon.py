"""(k, epsilon)-anonymity (Holohan and others): how wide the noise inside each class must be.

Values are whole numbers of grid steps. Each class gets noise as wide as its own diameter (or
the declared range) asks for. With diameter d, any two values of the class become each released
value with probabilities that differ by a factor of at most e^epsilon: noise of scale
d / epsilon shifts by at most d. The diameter is read from the data, so this is no differential
privacy of the table; with the declared range it is epsilon-local privacy of each value.
"""

from __future__ import annotations

import numpy as np

from incrowd.arrays import Bools, Counts, Floats, Members, Steps
from incrowd.errors import ParameterError

_LIMITS = np.iinfo(np.int64)


def compute_diameters(values: Steps, members: Members, classes: int) -> Counts:
    """Return the largest value of each class less its smallest; 0 for a class without values."""
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


def add_noise(values: Steps, noise: Steps) -> Steps:
    """Return values with their noise; what would leave the 64-bit range stays at its edge."""
    with np.errstate(over="ignore"):
        plain = values + noise  # wraps around at the edges
    over, under = (noise > 0) & (plain < values), (noise < 0) & (plain > values)
    return np.where(over, _LIMITS.max, np.where(under, _LIMITS.min, plain))


def count_within(members: Members, originals: Steps, low: Floats, high: Floats) -> Counts:
    """Count for each row the originals of its class that lie from low to high; O(n log n)."""
    upto = _rank_queries(members, originals, high, ties_after=True)
    before = _rank_queries(members, originals, low, ties_after=False)
    return upto - before


def _rank_queries(members: Members, originals: Steps, at: Floats, *, ties_after: bool) -> Counts:
    """Count the originals before each query, in the order of classes and values.

    With ``ties_after`` an original equal to the query comes before it, else after.
    """
    n = len(members)
    values = np.concatenate([originals.astype(np.float64), at])
    classes = np.concatenate([members, members])
    query = np.repeat([0, 1], n) if ties_after else np.repeat([1, 0], n)
    order = np.lexsort((query, values, classes))
    originals_before = np.cumsum(order < n)
    ranks = np.empty(2 * n, dtype=np.int64)
    ranks[order] = originals_before
    return ranks[n:]


def select_confident_rows(
    members: Members, originals: Steps, released: Steps, radii: Floats, *, k: int
) -> Bools:
    """Mark the rows that confidence-based k-anonymity keeps in a column, before class counts.

    Around a released value at least k originals of its class must lie within the radius, or
    none: then the noise has carried it away from everyone.
    """
    base = np.full(len(radii), _LIMITS.max, dtype=np.int64)
    np.minimum.at(base, members, originals)  # counted from there, no step is lost in a float
    original_offsets, released_offsets = (
        originals - base[members],
        (released - base[members]).astype(np.float64),
    )
    reach = np.floor(radii[members])  # values are whole, so sums with it are exact
    within = count_within(
        members, original_offsets, released_offsets - reach, released_offsets + reach
    )
    return np.asarray((within == 0) | (within >= k))


def select_large_classes(is_kept: Bools, members: Members, *, k: int) -> Bools:
    """Return of the rows kept those whose class keeps at least k of them."""
    class_sizes = np.bincount(members[is_kept], minlength=int(members.max(initial=-1)) + 1)
    return np.asarray(is_kept & (class_sizes[members] >= k))
