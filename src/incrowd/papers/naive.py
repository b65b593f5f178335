"""What others do wrong, kept to be caught: methods that claim an epsilon and do not have it.

Each is small, looks reasonable, and was proposed or programmed by somebody. None of them may be
used for a release. :data:`VARIANTS` holds each with two neighboring inputs on which an audit
(:mod:`incrowd.evaluation.audit.bound`) sees far more than the claim allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from incrowd.anonymize.mondrian import partition_points
from incrowd.anonymize.safe_sample import drop_small_cells
from incrowd.arrays import Bools, Codes, Counts, Floats, Steps
from incrowd.codes.axis import Axis
from incrowd.codes.frequency import Frequencies
from incrowd.codes.hierarchy import ROOT, build_from_rows
from incrowd.privacy.counts import sample_geometric_noise
from incrowd.privacy.discrete_noise import sample_laplace
from incrowd.privacy.randomness import Randomness, sample_binomial
from incrowd.privacy.selection import sample_one_sided_noise

_NEAR = 8  # so many neighbors of a uniform number are tried either side


def publish_reused_sample(
    frequencies: Frequencies,
    schemes: Sequence[Sequence[Codes]],
    *,
    k: int,
    beta: float,
    bits: Randomness,
) -> tuple[int, Frequencies]:
    """Publish a sample by the first scheme, from fine to coarse, that drops none of it.

    Wrong: the sample that chose the scheme is the one that is published, so the scheme tells of
    rows that the threshold hides. Who is alone in a cell turns the scheme whenever they are drawn.
    """
    sample_counts = sample_binomial(frequencies.counts, beta, bits)
    places = np.flatnonzero(sample_counts)
    sample = Frequencies(frequencies.codes[places], sample_counts[places])
    cells = sample
    for at, maps in enumerate(schemes):
        cells = sample.roll_up(maps)
        if (cells.counts >= k).all():
            return at, cells
    return len(schemes) - 1, drop_small_cells(cells, k=k)


def add_noise_per_column(
    values: Steps, *, width: int, epsilon: Fraction, bits: Randomness
) -> Steps:
    """Add noise that hides ``width`` steps with epsilon to every column of each row.

    Wrong: epsilon is spent whole on each column, so that m of them cost m times as much. Where one
    column is a copy of another, the average of both has less noise than either.
    """
    t = np.full(values.size, width * epsilon.denominator, dtype=np.int64)
    return values + sample_laplace(t, epsilon.numerator, bits).reshape(values.shape)


def choose_by_exact_score(
    scores: Counts, *, steps: int, sensitivity: int, epsilon: Fraction, runs: int, bits: Randomness
) -> Counts:
    """Return the best candidate of a private search in which each step names one with noise.

    As many searches as there are ``runs``, independent of each other.

    Wrong: the steps spend epsilon, and then the best of those named is returned by its exact score.
    The last choice is a choice, too, and it has no noise at all.
    """
    number = runs * steps * len(scores)
    noise = sample_one_sided_noise(
        number, sensitivity=sensitivity, epsilon=epsilon / steps, bits=bits
    )
    candidates = np.argmax(scores + noise.reshape(runs, steps, len(scores)), axis=2)
    is_candidate = (candidates[:, :, None] == np.arange(len(scores))).any(axis=1)
    best: Counts = np.argmax(np.where(is_candidate, scores, np.iinfo(np.int64).min), axis=1)
    return best


def threshold_true_counts(
    frequencies: Frequencies, *, k: int, epsilon: Fraction, r: int, bits: Randomness
) -> Frequencies:
    """Return counts with noise of at most r, of the cells that have at least k rows.

    Wrong: which cells are shown is decided by their true counts. Whoever is the k-th of a cell
    makes it appear.
    """
    published = drop_small_cells(frequencies, k=k)
    noise = sample_geometric_noise(len(published), epsilon, r, bits)
    return Frequencies(published.codes, published.counts + noise)


def add_float_laplace(values: Floats, scale: float, rng: np.random.Generator) -> Floats:
    """Add Laplace noise by the inverse of its distribution, in floating point.

    Wrong: uniform numbers are multiples of 2^-53, their logarithms are rounded, and so is the sum.
    Which floats can come out at all depends on the value (Mironov, 2012); many come out of the one
    value and cannot come out of the other.
    """
    size = -scale * np.log(1.0 - rng.random(len(values)))
    return np.asarray(values + np.where(rng.random(len(values)) < 0.5, -size, size))


def find_reachable(outputs: Floats, value: float, scale: float) -> Bools:
    """Find which outputs :func:`add_float_laplace` can give for a value.

    The uniform number behind an output is known up to rounding; those near it are tried.
    """
    distance = outputs - value
    middle = np.rint(np.exp(-np.abs(distance) / scale) * 2.0**53)
    reachable = np.zeros(len(outputs), dtype=bool)
    for offset in range(-_NEAR, _NEAR + 1):
        uniform = np.clip(middle + offset, 1.0, 2.0**53) * 2.0**-53
        size = -scale * np.log(uniform)
        reachable |= (value + np.where(distance < 0, -size, size)) == outputs
    return reachable


def box_sample_by_data(
    axes: Sequence[Axis],
    points: Codes,
    counts: Counts,
    *,
    k: int,
    beta: float,
    bits: Randomness,
) -> tuple[Codes, Codes, Counts]:
    """Return the lowest and highest positions of classes that Mondrian makes of a sample.

    Wrong: a class is shown as the smallest box around its rows. The ends of the boxes are values of
    single people, and the largest of all is the largest of the table.
    """
    sample_counts = sample_binomial(counts, beta, bits)
    places = np.flatnonzero(sample_counts)
    points, sample_counts = points[places], sample_counts[places]
    members = partition_points(axes, points, sample_counts, k=k)
    classes = int(members.max(initial=-1)) + 1
    low = np.full((classes, points.shape[1]), np.iinfo(np.int32).max, dtype=np.int32)
    high = np.full((classes, points.shape[1]), -1, dtype=np.int32)
    np.minimum.at(low, members, points)
    np.maximum.at(high, members, points)
    rows = np.bincount(members, weights=sample_counts, minlength=classes).astype(np.int64)
    return low, high, rows


@dataclass(frozen=True)
class NaiveVariant:
    """A wrong method with two neighboring inputs, and what an attacker looks at.

    ``outcomes(first, runs, bits)`` are whole numbers, one for each run on the first input or the
    second; ``claim`` is the epsilon that the method says it has.
    """

    name: str
    tables: str
    claim: float
    outcomes: Callable[[bool, int, Randomness], Counts]


_K, _BETA = 14, 0.2537  # of a sample: epsilon 1, delta 1e-6
_R = 14  # of counts: the same
_COLUMNS = 8
_STEPS = 12


def _make_int_array(values: Sequence[int]) -> Counts:
    return np.array(values, dtype=np.int64)


def _run_reused_sample(has_row: bool, runs: int, bits: Randomness) -> Counts:
    """Return which of two schemes is used where somebody is alone in a third cell."""
    codes = np.arange(3, dtype=np.int32)[:, None]
    table = (
        Frequencies(codes, _make_int_array([200, 200, 1])) if has_row else _make_two_cells(codes)
    )
    schemes = [[np.arange(3, dtype=np.int32)], [np.zeros(3, dtype=np.int32)]]
    return _make_int_array(
        [publish_reused_sample(table, schemes, k=_K, beta=_BETA, bits=bits)[0] for _ in range(runs)]
    )


def _make_two_cells(codes: Codes) -> Frequencies:
    return Frequencies(codes[:2], _make_int_array([200, 200]))


def _run_noise_per_column(has_row: bool, runs: int, bits: Randomness) -> Counts:
    """Return the sum of a value that is written in several columns: 1 or 0."""
    values = np.full((runs, _COLUMNS), int(has_row), dtype=np.int64)
    return np.asarray(
        add_noise_per_column(values, width=1, epsilon=Fraction(1), bits=bits).sum(axis=1)
    )


def _run_exact_choice(has_row: bool, runs: int, bits: Randomness) -> Counts:
    """Return which of two candidates is chosen: they tie, or a row lets the second win."""
    scores = _make_int_array([100, 101 if has_row else 100])
    return choose_by_exact_score(
        scores, steps=_STEPS, sensitivity=1, epsilon=Fraction(1), runs=runs, bits=bits
    )


def _run_true_threshold(has_row: bool, runs: int, bits: Randomness) -> Counts:
    """Return whether a cell of k rows, or of k - 1, is shown; every run is its own cell."""
    codes = np.arange(runs, dtype=np.int32)[:, None]
    table = Frequencies(codes, np.full(runs, _K if has_row else _K - 1, dtype=np.int64))
    published = threshold_true_counts(table, k=_K, epsilon=Fraction(1), r=_R, bits=bits)
    is_published = np.zeros(runs, dtype=np.int64)
    is_published[published.codes[:, 0]] = 1
    return is_published


def _run_float_laplace(has_row: bool, runs: int, bits: Randomness) -> Counts:
    """Return the values that an output can come from: 1 the one, 2 the other, 3 both."""
    rng = np.random.default_rng(int(bits.draw_words(1)[0]))
    outputs = add_float_laplace(np.full(runs, 1.0 if has_row else 0.0), 1.0, rng)
    from_one, from_zero = find_reachable(outputs, 1.0, 1.0), find_reachable(outputs, 0.0, 1.0)
    return from_one.astype(np.int64) + 2 * from_zero


def _run_boxed_sample(has_row: bool, runs: int, bits: Randomness) -> Counts:
    """Return the largest value shown of 400 people at 0 to 9, and perhaps one at 35."""
    values = [*range(10), 35]
    axis = Axis(build_from_rows([(str(value), ROOT) for value in range(40)]), ordered=True)
    number = len(values) if has_row else len(values) - 1
    points = np.array(values[:number], dtype=np.int32)[:, None]
    counts = _make_int_array([40] * 10 + [1])[:number]
    highest = []
    for _ in range(runs):
        _, high, _ = box_sample_by_data([axis], points, counts, k=_K, beta=_BETA, bits=bits)
        highest.append(int(high.max(initial=-1)))
    return _make_int_array(highest)


VARIANTS = (
    NaiveVariant(
        "sample reused", "somebody who is alone in a cell, or nobody there", 1.0, _run_reused_sample
    ),
    NaiveVariant(
        "epsilon on each column", "one value in eight columns: 1 or 0", 1.0, _run_noise_per_column
    ),
    NaiveVariant(
        "argmax without noise at the end", "two schemes tie, or not", 1.0, _run_exact_choice
    ),
    NaiveVariant(
        "cells shown by true counts", "a cell of k rows, or k - 1", 1.0, _run_true_threshold
    ),
    NaiveVariant("floating-point Laplace", "the value 1 or 0", 1.0, _run_float_laplace),
    NaiveVariant(
        "boxes from the data", "somebody who has far more than all others", 1.0, _run_boxed_sample
    ),
)
