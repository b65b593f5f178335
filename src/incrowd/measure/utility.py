"""What a release is still good for: associations (Cramér's V), range counts, a classifier.

A release shows labels where the table has values. A reader who knows nothing else takes the
values to be uniform within what a label covers; every measure here is of the table that this
reader sees. All of it is for the curator alone: none is covered by the guarantee.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from incrowd.arrays import Bools, Codes, Counts, Floats
from incrowd.codes.frequency import Frequencies, merged
from incrowd.errors import IncrowdError, ParameterError, check_choice, check_whole, single

_CHUNK = 1 << 13  # tuples whose shares, or scores, are held at once
_GRID = 1 << 20  # pairs of labels that are counted in a grid
_TUPLES = 200_000  # tuples that queries are answered on
_SELECTED = 0.1  # of the domain of a query's columns, together
_RARE = 0.001  # a query about a smaller share of the rows counts as one about this share
_BLOCK = 128  # queries whose masses per label are held at once
_CELLS = 1 << 23  # cells of the matrix that a model learns from
_ITERATIONS = 200


@dataclass(frozen=True, eq=False)
class Pair:
    """A table and a release of it, over the same columns.

    The codes of ``original`` are bins: the values of the domain, or groups of them. The codes
    of ``released`` are labels, and ``shares[c][label, bin]`` is the probability that a row
    with that label in column c has its value in that bin, so each row of it sums to 1.
    ``ordered[c]`` says whether the bins of column c have an order.
    """

    names: tuple[str, ...]
    original: Frequencies
    released: Frequencies
    shares: tuple[Floats, ...]
    ordered: tuple[bool, ...]

    @property
    def exact(self) -> tuple[Floats, ...]:
        """The shares of the original: every bin is its own label."""
        return tuple(np.eye(shares.shape[1]) for shares in self.shares)


@dataclass(frozen=True)
class Association:
    """Cramér's V of two columns, 0 (independent) to 1 (one decides the other)."""

    first: str
    second: str
    original: float
    released: float


@dataclass(frozen=True)
class Queries:
    """How far off the release answers random counting queries; 0.1 is a tenth of the truth."""

    count: int
    median_error: float
    mean_error: float


@dataclass(frozen=True)
class Accuracy:
    """The share of test rows whose target is predicted right, by what the model learnt from.

    ``majority`` is the share for always saying the original's most frequent bin.
    """

    target: str
    original: float
    released: float
    majority: float


def distances(pair: Pair) -> dict[str, float]:
    """For each column, how far its distribution over the bins has moved.

    The total variation distance: 0 if the release implies the distribution of the original,
    1 if the two share no bin. An empty table is at distance 1 from everything.
    """
    if not pair.original.total or not pair.released.total:
        return dict.fromkeys(pair.names, 1.0)
    return {
        name: _half_difference(
            _implied(pair.original, exact, at), _implied(pair.released, shares, at)
        )
        for at, (name, exact, shares) in enumerate(
            zip(pair.names, pair.exact, pair.shares, strict=True)
        )
    }


def associations(pair: Pair) -> list[Association]:
    """Cramér's V of every two columns, in the original and as the release implies it.

    No pair is left out: V is 0 where a column is constant and where the table is empty. Each
    V counts the bins that its own table has or implies, not those of the domain. Within a
    tuple of labels the values are taken to be independent, so generalising tends to weaken V.
    """
    return [
        Association(
            pair.names[first],
            pair.names[second],
            _cramers_v(_joint(pair.original, pair.exact, first, second)),
            _cramers_v(_joint(pair.released, pair.shares, first, second)),
        )
        for first, second in combinations(range(len(pair.names)), 2)
    ]


def mean_error(found: Sequence[Association]) -> float:
    """The mean absolute difference of V over the pairs of columns; 0 if there are none."""
    if not found:
        return 0.0
    return float(np.mean([abs(pair.original - pair.released) for pair in found]))


def queries(
    pair: Pair, *, count: int = 1000, columns: Sequence[int] = (1, 2, 3), seed: int = 0
) -> Queries:
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
    asked = int(single("count", check_whole("count", count)))
    sizes = check_whole("columns", columns)
    if sizes.ndim != 1 or not len(sizes):
        raise ParameterError("columns", "list at least one number of columns", columns)
    if not pair.original.total or not pair.names:
        return Queries(count=0, median_error=0.0, mean_error=0.0)
    regions = _regions(pair, asked, sizes.astype(int).tolist(), np.random.default_rng(seed))
    # Rows are drawn alike in both tables, but apart from the regions: a seed for each draw.
    truth = _answers(_limited(pair.original, _TUPLES, seed + 1), pair.exact, regions)
    answer = _answers(_limited(pair.released, _TUPLES, seed + 1), pair.shares, regions)
    errors = np.abs(answer - truth) / np.maximum(truth, _RARE)
    return Queries(asked, float(np.median(errors)), float(np.mean(errors)))


def accuracy(
    pair: Pair, *, target: str, held_out: Frequencies | None = None, seed: int = 0
) -> Accuracy:
    """How well the bin of the target is predicted by a logistic regression on the other columns.

    One model learns from the original, one from the release; both are tested on the same rows,
    whose bins are known. With ``held_out`` (codes are bins) these are its rows. Without, they
    are a random fifth of the original, and the original's model learns from the other four
    fifths; the release has then seen the test rows, in generalised form, so that its accuracy
    is somewhat flattered.

    A column is described by the share of each bin and, if ordered, the mean position of the
    bins, from 0 to 1. A row released whose target may be in several bins counts in each by its
    share; of bins that stay equally likely the first is said. Where more than 10,000 rows, and
    8 million cells, would be learnt from, random rows drawn by weight stand for all.

    A model that saw one bin only, or no other column, always says the most frequent bin; one
    that saw no row is never right (0), and without test rows nothing is (0).
    """
    at = pair.names.index(check_choice("target", target, pair.names))
    known, test = _split(pair.original, seed) if held_out is None else (pair.original, held_out)
    return Accuracy(
        target,
        original=_tested(_learnt(known, pair.exact, pair.ordered, at, seed + 1), test, pair, at),
        released=_tested(
            _learnt(pair.released, pair.shares, pair.ordered, at, seed + 1), test, pair, at
        ),
        majority=_share(test, test.codes[:, at] == _frequent(_implied(known, pair.exact[at], at))),
    )


def _implied(table: Frequencies, shares: Floats, at: int) -> Floats:
    """The number of rows expected in each bin of a column."""
    labels = np.bincount(table.codes[:, at], weights=table.counts, minlength=len(shares))
    return np.asarray(labels @ shares, dtype=np.float64)


def _half_difference(one: Floats, other: Floats) -> float:
    """The total variation distance of two distributions given as weights."""
    return min(1.0, float(np.abs(one / one.sum() - other / other.sum()).sum() / 2))


def _joint(table: Frequencies, shares: Sequence[Floats], first: int, second: int) -> Floats:
    """The number of rows expected in each pair of bins of two columns."""
    one, two = shares[first], shares[second]
    if len(one) * len(two) <= _GRID:
        places = table.codes[:, first].astype(np.int64) * len(two) + table.codes[:, second]
        counted = np.bincount(places, weights=table.counts, minlength=len(one) * len(two))
        return np.asarray(one.T @ counted.reshape(len(one), len(two)) @ two, dtype=np.float64)
    # Too many labels for a grid: only the pairs that occur are visited, in chunks.
    pairs = merged(table.codes[:, [first, second]], table.counts)
    joint = np.zeros((one.shape[1], two.shape[1]))
    for start in range(0, len(pairs), _CHUNK):
        codes = pairs.codes[start : start + _CHUNK]
        weights = pairs.counts[start : start + _CHUNK, None]
        joint += (one[codes[:, 0]] * weights).T @ two[codes[:, 1]]
    return joint


def _cramers_v(joint: Floats) -> float:
    """Cramér's V of a table of weights; bins without weight are no categories."""
    joint = joint[np.ix_(joint.sum(axis=1) > 0, joint.sum(axis=0) > 0)]
    if min(joint.shape) < 2:
        return 0.0
    shares = joint / joint.sum()
    independent = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    squared = float(((shares - independent) ** 2 / independent).sum())
    return min(1.0, float(np.sqrt(squared / (min(joint.shape) - 1))))


@dataclass(frozen=True, eq=False)
class _Regions:
    """``selected[c][q]`` are the bins of column c in region q, if ``restricted[q, c]``."""

    restricted: Bools
    selected: tuple[Bools, ...]


def _regions(pair: Pair, count: int, sizes: list[int], rng: np.random.Generator) -> _Regions:
    """Random regions, each around a random row of the original."""
    width = len(pair.names)
    bins = [shares.shape[1] for shares in pair.shares]
    restricted = np.zeros((count, width), dtype=np.bool_)
    selected = tuple(np.ones((count, size), dtype=np.bool_) for size in bins)
    chance = pair.original.counts / pair.original.total
    rows = pair.original.codes[rng.choice(len(chance), count, p=chance)]
    for query, row in enumerate(rows):
        size = min(int(rng.choice(sizes)), width)
        for at in rng.choice(width, size, replace=False):
            covered = max(1, min(bins[at] - 1, round(bins[at] * _SELECTED ** (1 / size))))
            restricted[query, at] = True
            selected[at][query] = _around(
                int(row[at]), bins[at], covered, ordered=pair.ordered[at], rng=rng
            )
    return _Regions(restricted, selected)


def _around(
    place: int, bins: int, covered: int, *, ordered: bool, rng: np.random.Generator
) -> Bools:
    """A random interval, or set, of so many bins that contains the bin ``place``."""
    mask = np.zeros(bins, dtype=np.bool_)
    if ordered:
        first = rng.integers(max(0, place - covered + 1), min(place, bins - covered) + 1)
        mask[first : first + covered] = True
    else:
        others = np.delete(np.arange(bins), place)
        mask[rng.permutation(others)[: covered - 1]] = True
        mask[place] = True
    return mask


def _answers(table: Frequencies, shares: Sequence[Floats], regions: _Regions) -> Floats:
    """For each region, the share of the rows expected in it."""
    columns = np.ascontiguousarray(table.codes.T)
    answers = np.zeros(len(regions.restricted))
    for start in range(0, len(answers), _BLOCK):
        chunk = slice(start, start + _BLOCK)
        masses = [
            mask[chunk].astype(np.float64) @ share.T
            for mask, share in zip(regions.selected, shares, strict=True)
        ]
        for query, restricted in enumerate(regions.restricted[chunk]):
            weights = table.counts.astype(np.float64)
            for at in np.flatnonzero(restricted):
                weights *= masses[at][query][columns[at]]
            answers[start + query] = weights.sum()
    return answers / max(table.total, 1)


def _limited(table: Frequencies, most: int, seed: int) -> Frequencies:
    """The table, or if it has more than ``most`` tuples that many random rows of it.

    The seed alone decides the draws, so equal tables are limited to equal tables.
    """
    if len(table) <= most:
        return table
    drawn = _drawn(table.counts, most, seed)
    return Frequencies(table.codes[drawn > 0], drawn[drawn > 0])


def _drawn(weights: Counts | Floats, size: int, seed: int) -> Counts:
    """How often each entry comes up in so many draws by weight, with replacement."""
    picked = np.random.default_rng(seed).choice(len(weights), size, p=weights / weights.sum())
    return np.bincount(picked, minlength=len(weights)).astype(np.int64)


def _split(table: Frequencies, seed: int) -> tuple[Frequencies, Frequencies]:
    """Four fifths of the rows and the other fifth: each row is in the second by chance 1/5."""
    apart = np.random.default_rng(seed).binomial(table.counts, 0.2)
    rest = table.counts - apart
    return (
        Frequencies(table.codes[rest > 0], rest[rest > 0]),
        Frequencies(table.codes[apart > 0], apart[apart > 0]),
    )


@dataclass(frozen=True, eq=False)
class _Model:
    """Says, of ``classes``, the one with the highest of the scores ``x @ weights + start``."""

    classes: Codes
    weights: Floats
    start: Floats


def _frequent(rows: Floats) -> int:
    """The bin with most rows; if there are no rows -1, which is no bin."""
    return int(np.argmax(rows)) if rows.any() else -1


def _share(table: Frequencies, chosen: Bools) -> float:
    """The share of the rows that have the tuples chosen; 0 if there are none."""
    return float(table.counts[chosen].sum() / max(table.total, 1))


def _described(shares: Sequence[Floats], ordered: Sequence[bool], at: int) -> list[Floats]:
    """For each column but the target, what its labels tell a model: one row per label."""
    described = []
    for column, (share, has_order) in enumerate(zip(shares, ordered, strict=True)):
        if column != at:
            position = np.linspace(0, 1, share.shape[1])[:, None]
            described.append(np.hstack([share, share @ position]) if has_order else share)
    return described


def _learnt(
    table: Frequencies, shares: Sequence[Floats], ordered: Sequence[bool], at: int, seed: int
) -> _Model:
    """The logistic regression of the target on the other columns, learnt from a table."""
    described = _described(shares, ordered, at)
    width = sum(part.shape[1] for part in described)
    rows = _implied(table, shares[at], at)
    if np.count_nonzero(rows) < 2 or not width:
        said = np.array([_frequent(rows)], dtype=np.int32)
        return _Model(said, np.zeros((width, 1)), np.zeros(1))
    try:
        from scipy import sparse
        from sklearn.exceptions import (  # type: ignore[import-untyped, unused-ignore]
            ConvergenceWarning,
        )
        from sklearn.linear_model import (  # type: ignore[import-untyped, unused-ignore]
            LogisticRegression,
        )
    except ImportError as error:
        raise IncrowdError(
            "Classification needs scikit-learn: pip install 'incrowd[utility]'."
        ) from error
    most = max(10_000, _CELLS // width)
    codes, bins, weights = _examples(table, shares[at], at, most, seed)
    # One-hot rows are mostly zeros: sparse, they are learnt several times faster.
    features = sparse.hstack(
        [sparse.csr_matrix(part)[column] for part, column in zip(described, codes.T, strict=True)],
        format="csr",
    )
    regression = LogisticRegression(tol=1e-3, max_iter=_ITERATIONS)
    with warnings.catch_warnings():
        # A model that is stopped early predicts as well as it can, and that is what is measured.
        warnings.simplefilter("ignore", ConvergenceWarning)
        regression.fit(features, bins, sample_weight=weights)
    factors, start = regression.coef_.T, regression.intercept_
    if len(regression.classes_) == 2:  # scores of the second class against 0 for the first
        factors, start = np.hstack([0 * factors, factors]), np.append(0.0, start)
    return _Model(regression.classes_, factors, start)


def _examples(
    table: Frequencies, target: Floats, at: int, most: int, seed: int
) -> tuple[Codes, Codes, Floats]:
    """Labels of the other columns, the bin of the target, and the weight, of each example.

    A tuple is an example of every bin that its target may be in. There are at most ``most``
    examples, with the total weight of the table.
    """
    limited = _limited(table, most, seed)
    possible = target[limited.codes[:, at]]
    tuples, bins = np.nonzero(possible)
    weights = limited.counts[tuples] * possible[tuples, bins]
    if len(weights) > most:
        weights = _drawn(weights, most, seed + 1).astype(np.float64)
    kept = weights > 0
    others = np.delete(limited.codes, at, axis=1)[tuples[kept]]
    return others, bins[kept].astype(np.int32), weights[kept] * (table.total / weights.sum())


def _tested(model: _Model, test: Frequencies, pair: Pair, at: int) -> float:
    """The share of test rows whose target the model says."""
    described = _described(pair.exact, pair.ordered, at)
    ends = np.cumsum([part.shape[1] for part in described], dtype=int)
    # A score is a sum over the columns, so what each bin adds is looked up.
    added = [
        part @ weights
        for part, weights in zip(described, np.split(model.weights, ends)[:-1], strict=True)
    ]
    hit = np.zeros(len(test), dtype=np.bool_)
    for start in range(0, len(test), _CHUNK):
        codes = test.codes[start : start + _CHUNK]
        scores = np.tile(model.start, (len(codes), 1))
        for column, lookup in zip(np.delete(codes, at, axis=1).T, added, strict=True):
            scores += lookup[column]
        hit[start : start + _CHUNK] = model.classes[np.argmax(scores, axis=1)] == codes[:, at]
    return _share(test, hit)
