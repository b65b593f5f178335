"""Small pairs of a table and its release, as the measures of utility are given them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from incrowd.arrays import Floats
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.measure.utility import (
    TablePair,
)


def make_frequencies(rows: Sequence[tuple[int, ...]], width: int = 0) -> Frequencies:
    """Frequencies of (code, ..., code, count) rows."""
    array = np.array(rows, dtype=np.int64).reshape(len(rows), -1 if rows else width + 1)
    return merge_tuples(array[:, :-1].astype(np.int32), array[:, -1])


def make_uniform_shares(*labels: Sequence[int], bins: int) -> Floats:
    """The shares of labels that cover these bins."""
    shares = np.zeros((len(labels), bins))
    for label, covered in enumerate(labels):
        shares[label, list(covered)] = 1 / len(covered)
    return shares


def make_pair(
    original: Frequencies,
    released: Frequencies,
    *shares: Floats,
    ordered: tuple[bool, ...] | None = None,
) -> TablePair:
    names = tuple("abcdefghijk"[: len(shares)])
    return TablePair(names, original, released, shares, ordered or (True,) * len(shares))


def make_identity_pair(original: Frequencies, *bins: int) -> TablePair:
    ordered = tuple(at % 2 == 0 for at in range(len(bins)))
    return make_pair(original, original, *(np.eye(size) for size in bins), ordered=ordered)


def draw_frequencies(rows: int, *bins: int, seed: int = 1) -> Frequencies:
    """Rows whose columns all lean on one hidden number, with counts of 1 to 3."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(rows)
    columns = [((0.6 * hidden + 0.4 * rng.random(rows)) * size).astype(np.int32) for size in bins]
    return merge_tuples(np.column_stack(columns), rng.integers(1, 4, rows))


@st.composite
def utility_pairs(draw: st.DrawFn) -> TablePair:
    """Any table, any release, unrelated; one to three columns."""
    width = draw(st.integers(1, 3))
    shares = []
    for _ in range(width):
        bins = draw(st.integers(1, 5))
        weights = st.lists(st.integers(0, 4), min_size=bins, max_size=bins).filter(any)
        chosen = np.array(draw(st.lists(weights, min_size=1, max_size=4)), dtype=float)
        shares.append(chosen / chosen.sum(axis=1, keepdims=True))

    def rows(sizes: list[int]) -> Frequencies:
        row = st.tuples(*(st.integers(0, size - 1) for size in sizes), st.integers(1, 9))
        return make_frequencies(draw(st.lists(row, min_size=1, max_size=12)))

    original = rows([share.shape[1] for share in shares])
    released = rows([len(share) for share in shares])
    ordered = tuple(draw(st.booleans()) for _ in shares)
    return make_pair(original, released, *shares, ordered=ordered)


def compute_expected_rows(
    frequencies: Frequencies, shares: Sequence[Floats]
) -> dict[tuple[int, ...], float]:
    """The rows expected in every tuple of bins, by going through all of them."""
    bins = [share.shape[1] for share in shares]
    expected_rows = dict.fromkeys(np.ndindex(*bins), 0.0)
    for codes, count in zip(frequencies.codes.tolist(), frequencies.counts.tolist(), strict=True):
        for place in expected_rows:
            chance = 1.0
            for share, label, at in zip(shares, codes, place, strict=True):
                chance *= float(share[label, at])
            expected_rows[place] += count * chance
    return expected_rows


def repeat_rows(frequencies: Frequencies) -> Frequencies:
    """The same rows, with every tuple listed once per row."""
    codes = np.repeat(frequencies.codes, frequencies.counts, axis=0)
    return Frequencies(codes, np.ones(len(codes), dtype=np.int64))


def scale_pair(pair: TablePair, times: int) -> TablePair:
    original = Frequencies(pair.original.codes, pair.original.counts * times)
    released = Frequencies(pair.released.codes, pair.released.counts * times)
    return TablePair(pair.names, original, released, pair.shares, pair.ordered)
