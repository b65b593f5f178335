"""What a release is still good for: distributions of columns, and range counts.

A release shows labels where the table has values. A reader who knows nothing else takes the
values to be uniform within what a label covers; every measure here is of the table that this
reader sees. All of it is for the curator alone: none is covered by the guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Bools, Counts, Floats, Places
from incrowd.codes.counted_table import CountNoise
from incrowd.codes.frequency import Frequencies
from incrowd.errors import ParameterError, check_whole, require_single

_CHUNK = 1 << 13  # tuples whose shares are held at once
_TUPLES = 200_000  # tuples that queries are answered on
_SELECTED = 0.1  # of the domain of a query's columns, together
_RARE = 0.001  # a query about a smaller share of the rows counts as one about this share
_DENSE = 8  # with so many cells for each tuple or fewer, queries are answered by cells
_BLOCK = 128  # queries whose masses per label are held at once


@dataclass(frozen=True, eq=False)
class TablePair:
    """A table and a release of it, over the same columns.

    The codes of ``original`` are bins: the values of the domain, or groups of them. The codes
    of ``released`` are labels, and ``shares[c][label, bin]`` is the probability that a row
    with that label in column c has its value in that bin, so each row of it sums to 1.
    ``ordered[c]`` says whether the bins of column c have an order. Where the counts of
    ``released`` have noise, ``noise`` says what is known of it.
    """

    names: tuple[str, ...]
    original: Frequencies
    released: Frequencies
    shares: tuple[Floats, ...]
    ordered: tuple[bool, ...]
    noise: CountNoise | None = None

    @property
    def exact_shares(self) -> tuple[Floats, ...]:
        """The shares of the original: every bin is its own label."""
        return tuple(np.eye(shares.shape[1]) for shares in self.shares)


@dataclass(frozen=True)
class QueryErrors:
    """The error of the release on random counting queries; 0.1 is a tenth of the truth."""

    count: int
    median_error: float
    mean_error: float


def compute_distances(pair: TablePair) -> dict[str, float]:
    """Return for each column how far its distribution over the bins has moved.

    The total variation distance: 0 if the release implies the distribution of the original,
    1 if the two share no bin. An empty table is at distance 1 from everything.
    """
    if not pair.original.total or not pair.released.total:
        return dict.fromkeys(pair.names, 1.0)
    return {
        name: _compute_total_variation(
            compute_implied_rows(pair.original, exact, at),
            compute_implied_rows(pair.released, shares, at),
        )
        for at, (name, exact, shares) in enumerate(
            zip(pair.names, pair.exact_shares, pair.shares, strict=True)
        )
    }


def measure_query_errors(
    pair: TablePair, *, count: int = 1000, columns: Sequence[int] = (1, 2, 3), seed: int = 0
) -> QueryErrors:
    """Ask for the share of rows that lie in a random region, and compare the answers.

    A query restricts a random choice of columns, as many as one of ``columns`` says (or all,
    if there are fewer): an ordered column to an interval of bins, another to a set of bins.
    A region covers about a tenth of the domain of its columns, in each at least one bin and,
    where there are several, not all. It contains a random row of the original, so that queries
    are asked where the rows are.

    The answer is a share of the rows released, values uniform within labels. Its error is
    ``|answer - truth| / max(truth, 0.001)``. Of a table with more than 200,000 distinct tuples
    that many random rows stand for all. An empty release answers 0; about an empty original
    nothing is asked (count 0, errors 0). The seed decides everything random.
    """
    query_errors = int(require_single("count", check_whole("count", count)))
    sizes = check_whole("columns", columns)
    if sizes.ndim != 1 or not len(sizes):
        raise ParameterError("columns", "list at least one number of columns", columns)
    if not pair.original.total or not pair.names:
        return QueryErrors(count=0, median_error=0.0, mean_error=0.0)
    regions = _draw_regions(
        pair, query_errors, sizes.astype(int).tolist(), np.random.default_rng(seed)
    )
    # Rows are drawn alike in both tables, but apart from the regions: a seed for each draw.
    truth = _answer_queries(
        limit_tuples(pair.original, _TUPLES, seed + 1), pair.exact_shares, regions
    )
    answer = _answer_queries(limit_tuples(pair.released, _TUPLES, seed + 1), pair.shares, regions)
    errors = np.abs(answer - truth) / np.maximum(truth, _RARE)
    return QueryErrors(query_errors, float(np.median(errors)), float(np.mean(errors)))


def compute_implied_rows(table: Frequencies, shares: Floats, at: int) -> Floats:
    """Return the number of rows expected in each bin of a column."""
    labels = np.bincount(table.codes[:, at], weights=table.counts, minlength=len(shares))
    return np.asarray(labels @ shares, dtype=np.float64)


def _compute_total_variation(first: Floats, second: Floats) -> float:
    """Return the total variation distance of two distributions given as weights."""
    return min(1.0, float(np.abs(first / first.sum() - second / second.sum()).sum() / 2))


@dataclass(frozen=True, eq=False)
class _QueryRegions:
    """``selected[c][q]`` are the bins of column c in region q, if ``restricted[q, c]``."""

    restricted: Bools
    selected: tuple[Bools, ...]


def _draw_regions(
    pair: TablePair, count: int, sizes: list[int], rng: np.random.Generator
) -> _QueryRegions:
    """Draw random regions, each around a random row of the original."""
    width = len(pair.names)
    bins = [shares.shape[1] for shares in pair.shares]
    is_restricted = np.zeros((count, width), dtype=np.bool_)
    is_selected = tuple(np.ones((count, size), dtype=np.bool_) for size in bins)
    chance = pair.original.counts / pair.original.total
    rows = pair.original.codes[rng.choice(len(chance), count, p=chance)]
    for query, row in enumerate(rows):
        size = min(sizes[rng.integers(len(sizes))], width)
        for at in rng.choice(width, size, replace=False):
            width_covered = max(1, min(bins[at] - 1, round(bins[at] * _SELECTED ** (1 / size))))
            is_restricted[query, at] = True
            is_selected[at][query] = _draw_around(
                int(row[at]), bins[at], width_covered, ordered=pair.ordered[at], rng=rng
            )
    return _QueryRegions(is_restricted, is_selected)


def _draw_around(
    place: int, bins: int, width: int, *, ordered: bool, rng: np.random.Generator
) -> Bools:
    """Draw a random interval, or set, of so many bins that contains the bin ``place``."""
    mask = np.zeros(bins, dtype=np.bool_)
    if ordered:
        first = rng.integers(max(0, place - width + 1), min(place, bins - width) + 1)
        mask[first : first + width] = True
    else:
        other_bins = np.arange(bins - 1)
        other_bins[place:] += 1
        mask[rng.permutation(other_bins)[: width - 1]] = True
        mask[place] = True
    return mask


def _answer_queries(table: Frequencies, shares: Sequence[Floats], regions: _QueryRegions) -> Floats:
    """Return for each region the share of the rows expected in it.

    Regions that restrict the same columns are answered together, by the rows of those columns.
    """
    answers = np.zeros(len(regions.restricted))
    if not len(table):
        return answers
    codes = [column.astype(np.int64) for column in table.codes.T]
    counts = table.counts.astype(np.float64)
    sets, set_number = np.unique(regions.restricted, axis=0, return_inverse=True)
    for number, restricted_columns in enumerate(sets):
        columns = np.flatnonzero(restricted_columns).tolist()
        queries = np.flatnonzero(set_number.ravel() == number)
        for start in range(0, len(queries), _BLOCK):
            request = queries[start : start + _BLOCK]
            masses = [
                regions.selected[at][request].astype(np.float64) @ shares[at].T for at in columns
            ]
            cells = math.prod(mass.shape[1] for mass in masses)
            answer = _answer_by_cells if cells <= _DENSE * len(table) else _answer_by_rows
            answers[request] = answer(counts, [codes[at] for at in columns], masses)
    return answers / max(table.total, 1)


def _answer_by_rows(counts: Floats, codes: Sequence[Places], masses: Sequence[Floats]) -> Floats:
    """Return for each region the rows expected in it, by the tuples of the table."""
    shares, buffer = np.empty(len(counts)), np.empty(len(counts))
    answers = np.zeros(len(masses[0]))
    for place in range(len(answers)):
        np.take(masses[0][place], codes[0], out=shares, mode="clip")
        for mass, code in zip(masses[1:], codes[1:], strict=True):
            shares *= np.take(mass[place], code, out=buffer, mode="clip")
        answers[place] = shares @ counts
    return answers


def _answer_by_cells(counts: Floats, codes: Sequence[Places], masses: Sequence[Floats]) -> Floats:
    """Return for each region the rows expected in it, by the rows in each cell of its columns."""
    sizes = [mass.shape[1] for mass in masses]
    cells = codes[0]
    for column, size in zip(codes[1:], sizes[1:], strict=True):
        cells = cells * size + column
    cell_rows = np.bincount(cells, weights=counts, minlength=math.prod(sizes))
    answers = masses[0] @ cell_rows.reshape(sizes[0], -1)
    for mass, size in zip(masses[1:], sizes[1:], strict=True):
        parts = answers.reshape(len(mass), size, -1)
        answers = (mass[:, None, :] @ parts)[:, 0]
    return np.asarray(answers, dtype=np.float64).reshape(-1)


def limit_tuples(table: Frequencies, limit: int, seed: int) -> Frequencies:
    """Return the table, or if it has more than ``limit`` tuples that many random rows of it.

    The seed alone decides the draws, so equal tables are limited to equal tables.
    """
    if len(table) <= limit:
        return table
    rows = draw_by_weight(table.counts, limit, seed)
    return Frequencies(table.codes[rows > 0], rows[rows > 0])


def draw_by_weight(weights: Counts | Floats, size: int, seed: int) -> Counts:
    """Return how often each entry comes up in so many draws by weight, with replacement."""
    draws = np.random.default_rng(seed).choice(len(weights), size, p=weights / weights.sum())
    return np.bincount(draws, minlength=len(weights)).astype(np.int64)
