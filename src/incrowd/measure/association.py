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
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from incrowd.arrays import Bools, Codes, Counts, Floats, Places
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
    noise, original = pair.noise, pair.original
    published = pair.released if noise is None else fill_missing_cells(pair.released, noise.crowd)
    # Once for all pairs: made anew for each, time grows by the cube of the number of columns.
    columns = range(len(pair.names))
    exact = [_collect_bins(original.codes[:, at]) for at in columns]
    pieces = [_collect_pieces(published.codes[:, at], pair.shares[at]) for at in columns]
    squared = [
        piece.square_shares(pair.released.codes[:, at]) if noise is not None else piece
        for at, piece in enumerate(pieces)
    ]
    cells = np.ones(len(pair.released), dtype=np.int64)
    associations = []
    for first, second in combinations(columns, 2):
        before = _count_joint(exact[first], exact[second], original.counts)
        after = _count_joint(pieces[first], pieces[second], published.counts)
        variance = None
        if noise is not None:
            variance = noise.variance * _count_joint(squared[first], squared[second], cells)
        associations.append(
            Association(
                pair.names[first],
                pair.names[second],
                _compute_cramers_v(before),
                _compute_cramers_v(after, variance, (pieces[first], pieces[second])),
            )
        )
    return associations


@dataclass(frozen=True, eq=False)
class _BinPieces:
    """A column of a table, by pieces of its bins that no label divides; for pairs of columns.

    ``codes`` are the labels of the tuples, of ``labels`` those that occur, ``shares`` how a label
    is divided among the pieces; None where labels are bins. A piece has so many ``bins``;
    ``focus`` is the sum of the squares of their shares in it, 1 for a single bin.

    **Claim.** Cramér's V of pieces is that of bins. Of a piece A with a row of share r, the bin a
    has u r, where u is its share in A whatever the label is; so in a pair of pieces each pair of
    bins has the same ratio of p to q, and (p - q)^2 / q sums up. The number of categories is that
    of bins. Noise of variance s in a bin is u^2 of what it would be in the piece, so that
    s (1 - r u) / (r u) sums up to s (1 - r focus) / r.
    """

    codes: Places
    labels: Codes
    shares: Floats | None
    bins: Floats
    focus: Floats

    def square_shares(self, codes: Codes) -> _BinPieces:
        """Return the squares of the shares, for tuples with these labels."""
        assert self.shares is not None
        places = np.searchsorted(self.labels, codes).astype(np.int64)
        return replace(self, codes=places, shares=self.shares**2)


def _collect_bins(codes: Codes) -> _BinPieces:
    """Return the column of a table whose labels are bins."""
    labels, places = np.unique(codes, return_inverse=True)
    ones = np.ones(len(labels))
    return _BinPieces(places.astype(np.int64), labels, None, ones, ones)


def _collect_pieces(codes: Codes, shares: Floats) -> _BinPieces:
    """Return the column of a release, bins together that all of its labels divide alike."""
    labels, places = np.unique(codes, return_inverse=True)
    met = shares[labels]
    met = met[:, met.sum(axis=0) > 0]
    weights = met.sum(axis=0)
    _, begins, group = np.unique(
        np.round(met / weights, 12), axis=1, return_index=True, return_inverse=True
    )
    piece = np.argsort(np.argsort(begins))[group.ravel()]  # in the order of the bins
    number = len(begins)
    together = np.zeros((len(labels), number))
    np.add.at(together.T, piece, met.T)
    within = weights / np.bincount(piece, weights, number)[piece]
    return _BinPieces(
        places.astype(np.int64), labels, together,
        np.bincount(piece, minlength=number).astype(np.float64),
        np.bincount(piece, within**2, number).astype(np.float64),
    )  # fmt: skip


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


def _count_joint(first: _BinPieces, second: _BinPieces, counts: Counts) -> Floats:
    """Return the number of rows expected in each pair of pieces of two columns."""
    shape = len(first.labels), len(second.labels)
    if first.shares is None or second.shares is None:
        places = first.codes * shape[1] + second.codes
        return np.bincount(places, counts, math.prod(shape)).reshape(shape).astype(np.float64)
    if math.prod(shape) <= _GRID:
        places = first.codes * shape[1] + second.codes
        grid = np.bincount(places, weights=counts, minlength=math.prod(shape)).reshape(shape)
        return np.asarray(first.shares.T @ grid @ second.shares, dtype=np.float64)
    # Too many labels for a grid: only the pairs that occur are visited, in chunks.
    tuples = np.column_stack([first.codes, second.codes]).astype(np.int32)
    pairs = merge_tuples(tuples, counts)
    # So many labels cover few bins each: as sparse rows they are multiplied far faster.
    from scipy import sparse  # slow to load, and few tables need it

    left, right = sparse.csr_matrix(first.shares), sparse.csr_matrix(second.shares)
    joint = np.zeros((first.shares.shape[1], second.shares.shape[1]))
    for start in range(0, len(pairs), _CHUNK):
        codes = pairs.codes[start : start + _CHUNK]
        weights = sparse.diags_array(pairs.counts[start : start + _CHUNK].astype(np.float64))
        joint += (left[codes[:, 0]].T @ weights @ right[codes[:, 1]]).toarray()
    return joint


def _compute_cramers_v(
    joint: Floats,
    noise: Floats | None = None,
    pieces: tuple[_BinPieces, _BinPieces] | None = None,
) -> float:
    """Return Cramér's V of a table of weights; bins without weight are no categories.

    Rows and columns are bins, or ``pieces`` of them.

    Of weights with noise of known variances its expected part is taken off. With p the share of a
    pair of bins and q that of independence, V squared sums (p - q)^2 / q; noise of variance s in
    a weight, of n in all, adds s / n^2 to (p - q)^2, but for what the margins follow: (1 - the
    share of the row) (1 - that of the column) of it.
    """
    has_rows = joint.sum(axis=1) > 0, joint.sum(axis=0) > 0
    nonempty = np.ix_(*has_rows)
    joint = joint[nonempty]
    categories = [float(size) for size in joint.shape]
    focus: Sequence[Any] = (1.0, 1.0)
    if pieces is not None:
        categories = [
            float(piece.bins[mask].sum()) for piece, mask in zip(pieces, has_rows, strict=True)
        ]
        focus = [piece.focus[mask] for piece, mask in zip(pieces, has_rows, strict=True)]
    if min(categories) < 2:
        return 0.0
    total = joint.sum()
    shares = joint / total
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    expected_shares = np.outer(rows, columns)
    square = float(((shares - expected_shares) ** 2 / expected_shares).sum())
    if noise is not None:
        free = np.outer(1 - rows * focus[0], 1 - columns * focus[1])
        square -= float((noise[nonempty] * free / expected_shares).sum() / total**2)
    return min(1.0, float(np.sqrt(max(square, 0.0) / (min(categories) - 1))))
