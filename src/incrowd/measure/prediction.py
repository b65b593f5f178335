"""How well a release still predicts one of its columns: a classifier, its accuracy and its AUC."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from incrowd.arrays import Bools, Codes, Floats
from incrowd.codes.frequency import Frequencies
from incrowd.errors import check_choice
from incrowd.measure.logistic import LogisticModel, fit_logistic
from incrowd.measure.utility import TablePair, compute_implied_rows, draw_by_weight, limit_tuples


def use_one_thread() -> AbstractContextManager[object]:
    """Keep BLAS on one thread while it lasts.

    Its threads wait for each other by turning in a loop. Where others use the processor, or where
    products are small, that takes far longer than the work: on two busy cores a product of 0.014 s
    took 1 s. It holds for the whole process; where several threads ask at once, it may stay so.
    """
    from threadpoolctl import threadpool_limits  # most commands need no BLAS

    limits: AbstractContextManager[object] = threadpool_limits(1, user_api="blas")
    return limits


_CHUNK = 1 << 13  # tuples whose scores are held at once
_CELLS = 1 << 23  # cells of the matrix that a model learns from
_ITERATIONS = 200


@dataclass(frozen=True)
class Accuracy:
    """The share of test rows whose target is predicted right, by what the model learned from.

    ``majority`` is the share for always saying the original's most frequent bin. The two AUC, of a
    target with two bins, are how often a row of the second scores above one of the first: 0.5 by
    guessing, 1 at best; None of any other target.
    """

    target: str
    original: float
    released: float
    majority: float
    auc_original: float | None = None
    auc_released: float | None = None


def compute_accuracy(
    pair: TablePair, *, target: str, held_out: Frequencies | None = None, seed: int = 0
) -> Accuracy:
    """Measure how well a logistic regression on the other columns predicts the target's bin.

    One model learns from the original, one from the release; both are tested on the same rows,
    whose bins are known. With ``held_out`` (codes are bins) these are its rows. Without, they
    are a random fifth of the original, and the original's model learns from the other four
    fifths; the release has then seen the test rows, in generalized form, so that its accuracy
    is somewhat flattered.

    A column is described by the share of each bin and, if ordered, the mean position of the
    bins, from 0 to 1. A row released whose target may be in several bins counts in each by its
    share; of bins that stay equally likely the first is said. Where more than 10,000 rows, and
    8 million cells, would be learned from, random rows drawn by weight stand for all.

    A model that saw one bin only, or no other column, always says the most frequent bin; one
    that saw no row is never right (0), and without test rows nothing is (0).
    """
    at = pair.names.index(check_choice("target", target, pair.names))
    accuracy, test = (
        _split_rows(pair.original, seed) if held_out is None else (pair.original, held_out)
    )
    original = _TestResult(
        _train_classifier(accuracy, pair.exact_shares, pair.ordered, at, seed + 1), test, pair, at
    )
    released = _TestResult(
        _train_classifier(pair.released, pair.shares, pair.ordered, at, seed + 1), test, pair, at
    )
    return Accuracy(
        target,
        original=original.right,
        released=released.right,
        majority=_compute_share(
            test,
            test.codes[:, at]
            == _find_frequent_bin(compute_implied_rows(accuracy, pair.exact_shares[at], at)),
        ),
        auc_original=original.auc,
        auc_released=released.auc,
    )


def _split_rows(table: Frequencies, seed: int) -> tuple[Frequencies, Frequencies]:
    """Return four fifths of the rows and the other fifth: each row is in it by chance 1/5."""
    test_counts = np.random.default_rng(seed).binomial(table.counts, 0.2)
    training_counts = table.counts - test_counts
    return (
        Frequencies(table.codes[training_counts > 0], training_counts[training_counts > 0]),
        Frequencies(table.codes[test_counts > 0], test_counts[test_counts > 0]),
    )


def _find_frequent_bin(rows: Floats) -> int:
    """Return the bin with most rows; if there are no rows -1, which is no bin."""
    return int(np.argmax(rows)) if rows.any() else -1


def _compute_share(table: Frequencies, is_chosen: Bools) -> float:
    """Return the share of the rows that have the tuples chosen; 0 if there are none."""
    return float(table.counts[is_chosen].sum() / max(table.total, 1))


def _build_features(shares: Sequence[Floats], ordered: Sequence[bool], at: int) -> list[Floats]:
    """Return for each column but the target what its labels tell a model: one row per label."""
    features = []
    for column, (share, has_order) in enumerate(zip(shares, ordered, strict=True)):
        if column != at:
            position = np.linspace(0, 1, share.shape[1])[:, None]
            features.append(np.hstack([share, share @ position]) if has_order else share)
    return features


def _train_classifier(
    table: Frequencies, shares: Sequence[Floats], ordered: Sequence[bool], at: int, seed: int
) -> LogisticModel:
    """Return the logistic regression of the target on the other columns, learned from a table."""
    label_features = _build_features(shares, ordered, at)
    width = sum(part.shape[1] for part in label_features)
    rows = compute_implied_rows(table, shares[at], at)
    if np.count_nonzero(rows) < 2 or not width:
        bins_found = np.array([_find_frequent_bin(rows)], dtype=np.int32)
        return LogisticModel(bins_found, np.zeros((width, 1)), np.zeros(1))
    limit = max(10_000, _CELLS // width)
    codes, bins, weights = _draw_examples(table, shares[at], at, limit, seed)
    with use_one_thread():
        model = fit_logistic(label_features, codes, bins, weights, iterations=_ITERATIONS)
    # What is the same in every row learned from tells nothing; what it got is part of the start.
    used_features = [
        part[np.unique(column)] for part, column in zip(label_features, codes.T, strict=True)
    ]
    low = np.concatenate([part.min(axis=0) for part in used_features])
    is_constant = low == np.concatenate([part.max(axis=0) for part in used_features])
    factors = model.weights.copy()
    start = model.start + low[is_constant] @ factors[is_constant]
    factors[is_constant] = 0.0
    return LogisticModel(model.classes, factors, start)


def _draw_examples(
    table: Frequencies, target: Floats, at: int, limit: int, seed: int
) -> tuple[Codes, Codes, Floats]:
    """Return labels of the other columns, the target's bin, and the weight, of each example.

    A tuple is an example of every bin that its target may be in. There are at most ``limit``
    examples, with the total weight of the table.
    """
    sample = limit_tuples(table, limit, seed)
    possible = target[sample.codes[:, at]]
    tuples, bins = np.nonzero(possible)
    weights = sample.counts[tuples] * possible[tuples, bins]
    if len(weights) > limit:
        weights = draw_by_weight(weights, limit, seed + 1).astype(np.float64)
    has_weight = weights > 0
    other_columns = np.delete(sample.codes, at, axis=1)[tuples[has_weight]]
    return (
        other_columns,
        bins[has_weight].astype(np.int32),
        weights[has_weight] * (table.total / weights.sum()),
    )


class _TestResult:
    """The result of a model on test rows: the share ``right`` and, of two bins, the ``auc``."""

    def __init__(self, model: LogisticModel, test: Frequencies, pair: TablePair, at: int) -> None:
        features = _build_features(pair.exact_shares, pair.ordered, at)
        ends = np.cumsum([part.shape[1] for part in features], dtype=int)
        # A score is a sum over the columns, so what each bin adds is looked up.
        scores_by_label = [
            part @ weights
            for part, weights in zip(features, np.split(model.weights, ends)[:-1], strict=True)
        ]
        bins = np.unique(test.codes[:, at])
        places = [np.flatnonzero(model.classes == code) for code in bins]
        hit, lead = np.zeros(len(test), dtype=np.bool_), np.zeros(len(test))
        for start in range(0, len(test), _CHUNK):
            codes = test.codes[start : start + _CHUNK]
            scores = np.tile(model.start, (len(codes), 1))
            for column, lookup in zip(np.delete(codes, at, axis=1).T, scores_by_label, strict=True):
                scores += lookup[column]
            hit[start : start + _CHUNK] = model.classes[np.argmax(scores, axis=1)] == codes[:, at]
            if len(bins) == 2 and all(len(place) for place in places):
                ahead = scores[:, places[1][0]] - scores[:, places[0][0]]
                lead[start : start + _CHUNK] = ahead
        self.right = _compute_share(test, hit)
        self.auc = (
            _compute_auc(lead, test, test.codes[:, at] == bins[1]) if len(bins) == 2 else None
        )


def _compute_auc(scores: Floats, test: Frequencies, is_second: Bools) -> float:
    """Return how often a row of the second bin scores above one of the first; ties count half."""
    _, place = np.unique(scores, return_inverse=True)
    high = np.bincount(place, weights=test.counts * is_second)
    low = np.bincount(place, weights=test.counts * ~is_second, minlength=len(high))
    below = np.cumsum(low) - low
    return float((high * (below + low / 2)).sum() / (high.sum() * low.sum()))
