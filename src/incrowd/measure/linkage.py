"""Linking risk of noisy columns (Holohan and others): who is nearest is found again.

The attacker knows everybody's class and original values, and takes each released row to be
the person of its class whose values are nearest. With several columns distances are added up
in units of each class's noise, which is the best guess against Laplace noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Counts, Floats, Members, Steps
from incrowd.privacy.k_epsilon import ClassNoise


@dataclass(frozen=True)
class LinkingRisk:
    """The share of released rows that are linked to their own original.

    Attributes:
        risk: The share if a tie for the nearest row counts as a success, as in paper B.
        shared: The share if one of t tied rows counts as 1 / t, the expected success of a guess.
        rows: Number of rows.
    """

    risk: float
    shared: float
    rows: int


@dataclass(frozen=True)
class RunMean:
    """A mean over runs with its 95 % confidence interval."""

    mean: float
    low: float
    high: float
    runs: int


def linking_risk(
    *,
    classes: Members,
    originals: Sequence[Steps],
    released: Sequence[Steps],
    scales: Sequence[Floats] | None = None,
) -> LinkingRisk:
    """Link every released row to the nearest original of its class.

    Takes O(n log n) steps.

    Args:
        classes: The class of each row, numbered from 0.
        originals: One array of original values per noisy column, in steps of its grid.
        released: One array of released values per noisy column, in the same row order.
        scales: The scale of the noise per class, one array per column. Needed for several columns.

    Returns:
        The share of rows that are linked to their own original.

    Examples:
        >>> import numpy as np
        >>> classes = np.array([0, 0, 1, 1])
        >>> heights = [np.array([170, 180, 160, 190])]
        >>> noisy = [np.array([171, 182, 180, 165])]
        >>> linking_risk(classes=classes, originals=heights, released=noisy)
        LinkingRisk(risk=0.5, shared=0.5, rows=4)
    """
    won, tie_shares = link_rows(classes, originals, released, scales)
    if not len(won):
        return LinkingRisk(0.0, 0.0, 0)
    return LinkingRisk(float(won.mean()), float(tie_shares.mean()), len(won))


def link_rows(
    classes: Members,
    originals: Sequence[Steps],
    released: Sequence[Steps],
    scales: Sequence[Floats] | None = None,
) -> tuple[Floats, Floats]:
    """Return for each released row 1 if linked to its own original, and its share of a tie."""
    if not len(classes):
        return np.zeros(0), np.zeros(0)
    if len(originals) == 1:
        won, ties = _find_nearest_on_line(classes, originals[0], released[0])
    else:
        won, ties = _find_nearest(classes, originals, released, scales)
    return won.astype(np.float64), won / np.maximum(ties, 1)


def compute_run_mean(values: Floats) -> RunMean:
    """Return the mean of independent runs and its confidence interval, by Student's t."""
    from scipy.special import stdtrit

    mean, runs = float(values.mean()), len(values)
    if runs < 2:
        return RunMean(mean, mean, mean, runs)
    reach = float(stdtrit(runs - 1, 0.975) * values.std(ddof=1)) / math.sqrt(runs)
    return RunMean(mean, mean - reach, mean + reach, runs)


def predict_linking(classes: Members, originals: Steps, noise: ClassNoise) -> Floats:
    """Return for each row of one column how likely it will be linked, before noise is drawn.

    A value wins if its noise leaves it at most half way to the nearest other value on either
    side; equal values tie, which counts as a success.
    """
    if not len(originals):
        return np.zeros(0)
    below, above = _compute_gaps(classes, originals)
    return noise.compute_probability(np.floor(below / 2), np.floor(above / 2), classes)


def _compute_gaps(classes: Members, originals: Steps) -> tuple[Floats, Floats]:
    """Return how far the next smaller and larger value of the class are; infinite if none."""
    order = _sort_by_columns(classes, originals)
    values, owner = originals[order], classes[order]
    new = np.append(True, (values[1:] != values[:-1]) | (owner[1:] != owner[:-1]))
    group = np.cumsum(new) - 1
    starts = np.flatnonzero(new)
    heads, owners = values[starts], owner[starts]
    is_same_class = owners[1:] == owners[:-1]
    steps = np.where(is_same_class, np.diff(heads).astype(np.float64), np.inf)
    below, above = np.append(np.inf, steps)[group], np.append(steps, np.inf)[group]
    back_below, back_above = np.empty(len(order)), np.empty(len(order))
    back_below[order], back_above[order] = below, above
    return back_below, back_above


def _sort_by_columns(*columns: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Return the order by the first column, then the second, and so on; equal rows stay as is.

    Sorting one number per row is far faster than sorting by one column after another.
    """
    lows = [int(column.min()) for column in columns]
    spans = [int(column.max()) - low + 1 for column, low in zip(columns, lows, strict=True)]
    if math.prod(spans) >= 2**62:
        return np.lexsort(columns[::-1])
    numbers = np.zeros(len(columns[0]), dtype=np.int64)
    for column, low, span in zip(columns, lows, spans, strict=True):
        numbers = numbers * span + (column.astype(np.int64) - low)
    return np.argsort(numbers, kind="stable")


def _find_nearest_on_line(
    classes: Members, originals: Steps, released: Steps
) -> tuple[npt.NDArray[np.bool_], Counts]:
    """Return whether each row's own value is among the nearest of its class, and how many are.

    Originals and released values are put in one order; the nearest original is the last one
    before or the first one after. Everything is whole numbers, so ties are exact.
    """
    n = len(classes)
    values, owner = np.concatenate([originals, released]), np.concatenate([classes, classes])
    order = _sort_by_columns(owner, values, np.repeat([0, 1], n))
    original, place = order < n, np.arange(2 * n)
    last = np.maximum.accumulate(np.where(original, place, -1))
    after = np.minimum.accumulate(np.where(original, place, 2 * n)[::-1])[::-1]
    query = np.empty(2 * n, dtype=np.int64)
    query[order] = place
    query = query[n:]
    equal_counts = _count_alike(order[original], values, owner)
    sides = []
    for neighbor in (last[query], after[query]):
        row = order[np.clip(neighbor, 0, 2 * n - 1)]
        inside = (neighbor >= 0) & (neighbor < 2 * n) & (owner[row] == classes)
        distance = np.where(inside, np.abs(released - values[row]), np.iinfo(np.int64).max)
        sides.append((distance, np.where(inside, equal_counts[np.minimum(row, n - 1)], 0)))
    (smaller, before), (larger, behind) = sides
    nearest = np.minimum(smaller, larger)
    ties = np.where(smaller == nearest, before, 0) + np.where(larger == nearest, behind, 0)
    return np.abs(released - originals) == nearest, ties


def _count_alike(order: Counts, values: Steps, owner: Members) -> Counts:
    """Return for each original how many of its class have its value; ``order`` sorts them."""
    sorted_values, sorted_owners = values[order], owner[order]
    new = np.append(
        True, (sorted_values[1:] != sorted_values[:-1]) | (sorted_owners[1:] != sorted_owners[:-1])
    )
    group = np.cumsum(new) - 1
    equal_counts = np.empty(len(order), dtype=np.int64)
    equal_counts[order] = np.bincount(group)[group]
    return equal_counts


def _find_nearest(
    classes: Members,
    originals: Sequence[Steps],
    released: Sequence[Steps],
    scales: Sequence[Floats] | None,
) -> tuple[npt.NDArray[np.bool_], Counts]:
    """Return the same in several columns, by one tree in which classes lie far apart."""
    from scipy.spatial import cKDTree

    widths = [
        np.maximum(scale, 1e-9)[classes]
        for scale in scales or [np.ones(int(classes.max()) + 1)] * len(originals)
    ]
    original_points = np.column_stack([x / w for x, w in zip(originals, widths, strict=True)])
    released_points = np.column_stack([x / w for x, w in zip(released, widths, strict=True)])
    # Whole numbers keep their differences exactly; no distance inside a class reaches this far.
    largest = float(np.abs(released_points).max() + np.abs(original_points).max() + 1)
    span = 4 * largest * original_points.shape[1]
    offset = (classes * span)[:, None]
    tree = cKDTree(np.hstack([original_points, offset]))
    places = np.hstack([released_points, offset])
    nearest, _ = tree.query(places, p=1)
    own_distance = np.abs(released_points - original_points).sum(axis=1)
    reach = nearest * (1 + 1e-9) + 1e-12
    ties = tree.query_ball_point(places, reach, p=1, return_length=True)
    return own_distance <= reach, ties
