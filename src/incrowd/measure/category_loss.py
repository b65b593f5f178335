"""What randomized response does to categories: how many rows keep theirs, and the shares again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Codes, Counts
from incrowd.privacy.randomized_response import estimate_shares, round_up_epsilon


@dataclass(frozen=True)
class CategoryShare:
    """A category: its share of the rows in the table, as published, and as readers estimate it.

    Attributes:
        value: The category.
        before: Share in the table.
        released: Share in the release.
        estimate: Unbiased estimate from the release.
        error: Its standard error, for the response alone.
    """

    value: str
    before: float
    released: float
    estimate: float
    error: float


@dataclass(frozen=True)
class CategoryLoss:
    """A column with randomized response.

    Attributes:
        keep: Probability that a row shows its own category.
        epsilon: The local epsilon of the column.
        unchanged: Rows that show their own category; None where nobody knows which row is whose.
        shares: Each category.
    """

    keep: float
    epsilon: float
    unchanged: int | None
    shares: tuple[CategoryShare, ...]


def measure_categories(
    values: Sequence[str], before: Counts, released: Counts, keep: float, unchanged: int | None
) -> CategoryLoss:
    """Compare the counts of each category in the table and in the release."""
    rows = int(released.sum())
    shares = released / max(rows, 1)
    estimates, errors = estimate_shares(shares, keep, rows)
    originals = before / max(int(before.sum()), 1)
    listed = zip(values, originals, shares, estimates, errors, strict=True)
    return CategoryLoss(
        keep,
        round_up_epsilon([(keep, len(values))]),
        unchanged,
        tuple(CategoryShare(value, *map(float, figures)) for value, *figures in listed),
    )


def count_categories(codes: Codes, number: int) -> Counts:
    """Return how many rows have each category."""
    return np.bincount(codes, minlength=number).astype(np.int64)
