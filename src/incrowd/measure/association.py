"""Associations of columns, Cramér's V: in a table, and as a reader of its release sees them.

**Counts with noise.** They mislead in two ways, and both can be allowed for by whoever has the
release and its certificate alone. Noise makes columns look associated that are not: what it is
expected to add is taken off V squared. And cells with few rows are missing, which looks like an
association where labels are rare: a missing cell is taken to have as many rows as it would have if
the columns were independent, but no more than a quarter of the crowd from which it would likely be
shown. Independence is judged by the cells that are shown (quasi-independence), and only labels that
are shown somewhere count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from incrowd.arrays import Bools, Floats
from incrowd.codes.counted_table import CountNoise
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.measure.utility import TablePair

_CHUNK = 1 << 16  # pairs of labels whose shares are held at once
_GRID = 1 << 20  # pairs of labels that are counted in a grid, and cells that are filled
_MISSING = 0.25  # of the crowd: the most rows that a missing cell is taken to have
_ROUNDS = 40


@dataclass(frozen=True)
class Association:
    """Cramér's V of two columns, 0 (independent) to 1 (one decides the other)."""

    first: str
    second: str
    original: float
    released: float


def compute_associations(pair: TablePair) -> list[Association]:
    """Return Cramér's V of every two columns, in the original and as the release implies it.

    No pair is left out: V is 0 where a column is constant and where the table is empty. Each
    V counts the bins that its own table has or implies, not those of the domain. Within a
    tuple of labels the values are taken to be independent, so generalizing tends to weaken V.
    Where counts have noise, V is that of a reader who allows for it: see this module's words.
    """
    published = (
        pair.released if pair.noise is None else fill_missing_cells(pair.released, pair.noise.crowd)
    )
    # Once for all pairs: made anew for each, time grows by the cube of the number of columns.
    exact_shares = pair.exact_shares
    squared_shares = () if pair.noise is None else _square_shares(pair)
    return [
        Association(
            pair.names[first],
            pair.names[second],
            _compute_cramers_v(_count_joint(pair.original, exact_shares, first, second)),
            _compute_cramers_v(
                _count_joint(published, pair.shares, first, second),
                None
                if pair.noise is None
                else _compute_noise_variance(pair, pair.noise, squared_shares, first, second),
            ),
        )
        for first, second in combinations(range(len(pair.names)), 2)
    ]


def compute_mean_error(associations: Sequence[Association]) -> float:
    """Return the mean absolute difference of V over the pairs of columns; 0 if there are none."""
    if not associations:
        return 0.0
    return float(np.mean([abs(pair.original - pair.released) for pair in associations]))


def fill_missing_cells(released: Frequencies, crowd: float) -> Frequencies:
    """Return what is published, plus what missing cells are taken to have; not whole numbers.

    Of more than a million possible cells none is filled: there, most are rightly empty.
    """
    label_codes = [np.unique(column, return_inverse=True) for column in released.codes.T]
    free = [at for at, (labels, _) in enumerate(label_codes) if len(labels) > 1]
    # There may be more columns than an array has axes.
    shape = tuple(len(label_codes[at][0]) for at in free)
    if not free or math.prod(shape) > _GRID:
        return released
    places = tuple(label_codes[at][1] for at in free)
    rows, is_published = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    rows[places], is_published[places] = released.counts, True
    expected = np.where(
        is_published, rows, np.minimum(_fit_independence(rows, is_published), _MISSING * crowd)
    )
    cells = np.nonzero(expected)
    codes = np.repeat(released.codes[:1], len(cells[0]), axis=0)
    for at, place in zip(free, cells, strict=True):
        codes[:, at] = label_codes[at][0][place]
    # Rows here are expectations; what reads them takes weights.
    return Frequencies(codes, expected[cells])


def _fit_independence(rows: Floats, is_published: Bools) -> Floats:
    """Return a product of one factor per label that has the margins of the cells published."""
    fit = np.ones(rows.shape)
    for _ in range(_ROUNDS):
        for axis in range(rows.ndim):
            other_axes = tuple(at for at in range(rows.ndim) if at != axis)
            fit *= rows.sum(axis=other_axes, keepdims=True) / (fit * is_published).sum(
                axis=other_axes, keepdims=True
            )
    return fit


def _count_joint(table: Frequencies, shares: Sequence[Floats], first: int, second: int) -> Floats:
    """Return the number of rows expected in each pair of bins of two columns."""
    first_shares, second_shares = shares[first], shares[second]
    if len(first_shares) * len(second_shares) <= _GRID:
        places = (
            table.codes[:, first].astype(np.int64) * len(second_shares) + table.codes[:, second]
        )
        counts = np.bincount(
            places, weights=table.counts, minlength=len(first_shares) * len(second_shares)
        )
        return np.asarray(
            first_shares.T @ counts.reshape(len(first_shares), len(second_shares)) @ second_shares,
            dtype=np.float64,
        )
    # Too many labels for a grid: only the pairs that occur are visited, in chunks.
    pairs = merge_tuples(table.codes[:, [first, second]], table.counts)
    # So many labels cover few bins each: as sparse rows they are multiplied far faster.
    from scipy import sparse  # slow to load, and few tables need it

    left, right = sparse.csr_matrix(first_shares), sparse.csr_matrix(second_shares)
    joint = np.zeros((first_shares.shape[1], second_shares.shape[1]))
    for start in range(0, len(pairs), _CHUNK):
        codes = pairs.codes[start : start + _CHUNK]
        weights = sparse.diags_array(pairs.counts[start : start + _CHUNK].astype(np.float64))
        joint += (left[codes[:, 0]].T @ weights @ right[codes[:, 1]]).toarray()
    return joint


def _square_shares(pair: TablePair) -> tuple[Floats, ...]:
    """Return, for each column, the squares of the shares that its labels have in its bins."""
    return tuple(shares**2 for shares in pair.shares)


def _compute_noise_variance(
    pair: TablePair,
    noise: CountNoise,
    squared_shares: Sequence[Floats],
    first: int,
    second: int,
) -> Floats:
    """Return the variance of the noise in the row count of each pair of bins of two columns."""
    cells = Frequencies(pair.released.codes, np.ones(len(pair.released), dtype=np.int64))
    return noise.variance * _count_joint(cells, squared_shares, first, second)


def _compute_cramers_v(joint: Floats, noise: Floats | None = None) -> float:
    """Return Cramér's V of a table of weights; bins without weight are no categories.

    Of weights with noise of known variances its expected part is taken off. With p the share of a
    pair of bins and q that of independence, V squared sums (p - q)^2 / q; noise of variance s in
    a weight, of n in all, adds s / n^2 to (p - q)^2, but for what the margins follow: (1 - the
    share of the row) (1 - that of the column) of it.
    """
    nonempty = np.ix_(joint.sum(axis=1) > 0, joint.sum(axis=0) > 0)
    joint = joint[nonempty]
    if min(joint.shape) < 2:
        return 0.0
    total = joint.sum()
    shares = joint / total
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    expected_shares = np.outer(rows, columns)
    square = float(((shares - expected_shares) ** 2 / expected_shares).sum())
    if noise is not None:
        free = np.outer(1 - rows, 1 - columns)
        square -= float((noise[nonempty] * free / expected_shares).sum() / total**2)
    return min(1.0, float(np.sqrt(max(square, 0.0) / (min(joint.shape) - 1))))
