"""Cells to suppress row by row: the cheapest set of each row, against all sets of columns."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from incrowd.anonymize.suppression import TupleKeys, list_patterns, suppress_by_row
from incrowd.arrays import Codes, Counts, Floats
from incrowd.codes.frequency import Frequencies, merge_tuples
from incrowd.errors import ParameterError


def draw_tuples(seed: int, rows: int, columns: int, values: int = 3) -> Frequencies:
    raw = np.random.default_rng(seed).integers(0, values, size=(rows, columns)).astype(np.int32)
    return merge_tuples(raw, np.ones(rows, dtype=np.int64))


def fits(codes: Codes, counts: Counts, row: int, columns: tuple[int, ...]) -> int:
    """Rows that have the values of a row in some columns."""
    equal = (codes[:, columns] == codes[row, columns]).all(axis=1)
    return int(counts[equal].sum())


def cheapest(
    tuples: Frequencies, row: int, k: int, weights: Floats, subsets: dict[int, int]
) -> float:
    """The least cost of a set of cells that leaves enough, by the words of the claim."""
    columns = range(tuples.codes.shape[1])
    best = np.inf
    for size in range(len(columns) + 1):
        for hidden in combinations(columns, size):
            left = tuple(at for at in columns if at not in hidden)
            enough = fits(tuples.codes, tuples.counts, row, left) >= k and all(
                fits(
                    tuples.codes, tuples.counts, row,
                    tuple(at for at in chosen if at not in hidden),
                ) >= least
                for demanded, least in subsets.items()
                for chosen in combinations(columns, demanded)
            )  # fmt: skip
            if enough:
                best = min(best, float(weights[list(hidden)].sum()))
    return best


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    ("k", "subsets"), [(3, {}), (1, {2: 6}), (2, {1: 12, 3: 4}), (1, {2: 4, 3: 6})]
)
def test_every_row_has_the_cheapest_set_of_cells(
    seed: int, k: int, subsets: dict[int, int]
) -> None:
    tuples = draw_tuples(seed, 25, 4)
    weights = np.random.default_rng(seed).integers(1, 4, 4).astype(float)
    patterns = list_patterns(tuples.codes, weights)
    assert patterns.complete
    assert len(patterns) == 16
    chosen = suppress_by_row(tuples.codes, tuples.counts, patterns, k=k, subsets=subsets)
    for row, number in enumerate(chosen):
        assert patterns.costs[number] == cheapest(tuples, row, k, weights, subsets)
        assert patterns.costs[number] == weights[patterns.hidden[number]].sum()


# Cases of minimum unsafe combinations of de Waal (1998), from sdcMicro's test of them: k = 2.
@pytest.mark.parametrize(
    ("rows", "weights", "hidden"),
    [
        ([(1, 1), (1, 2), (2, 2)], (1, 1), {0: [1], 2: [0]}),
        ([(1, 1), (1, 2), (2, 2)], (1, 2), {0: [1], 1: [0], 2: [0]}),
        ([(1, 1), (1, 2), (2, 2)], (2, 1), {0: [1], 1: [1], 2: [0]}),
        ([(1, 1), (1, 1), (2, 2), (2, 2)], (1, 1), {0: [], 1: []}),
    ],
)
def test_published_cases(
    rows: list[tuple[int, int]], weights: tuple[int, int], hidden: dict[int, list[int]]
) -> None:
    tuples = merge_tuples(np.array(rows, dtype=np.int32), np.ones(len(rows), dtype=np.int64))
    patterns = list_patterns(tuples.codes, np.array(weights, dtype=float))
    chosen = suppress_by_row(tuples.codes, tuples.counts, patterns, k=2)
    for row, columns in hidden.items():
        assert np.flatnonzero(patterns.hidden[chosen[row]]).tolist() == columns
    if weights == (1, 1):
        assert patterns.costs[chosen].sum() == (3 if hidden[0] else 0)


def test_many_columns_have_small_sets_and_one_chain() -> None:
    """Not all sets of 20 columns are tried; what is chosen fits enough rows all the same."""
    tuples = draw_tuples(3, 60, 20)
    patterns = list_patterns(tuples.codes, np.ones(20))
    assert not patterns.complete
    assert len(patterns) < 2**14 + 20
    assert patterns.hidden[-1].all()
    chosen = suppress_by_row(tuples.codes, tuples.counts, patterns, k=3)
    for row, number in enumerate(chosen):
        left = tuple(np.flatnonzero(~patterns.hidden[number]).tolist())
        assert fits(tuples.codes, tuples.counts, row, left) >= 3


def test_keys_tell_tuples_apart_however_many_values_there_are() -> None:
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 2**31 - 1, size=(40, 6)).astype(np.int32)
    codes[20:, :3] = codes[:20, :3]
    keys = TupleKeys(codes)
    for hidden in ([False] * 6, [False] * 3 + [True] * 3, [True] * 3 + [False] * 3, [True] * 6):
        numbers, size = keys.make_keys(np.array(hidden))
        left = [at for at in range(6) if not hidden[at]]
        expected = np.unique(codes[:, left], axis=0, return_inverse=True)[1].ravel() if left else 0
        assert len(np.unique(numbers)) == len(np.unique(expected))
        assert numbers.max() < size


def test_too_many_sets_are_refused() -> None:
    tuples = draw_tuples(1, 30, 20)
    patterns = list_patterns(tuples.codes, np.ones(20))
    with pytest.raises(ParameterError, match="20,000 sets of columns"):
        suppress_by_row(tuples.codes, tuples.counts, patterns, k=1, subsets={10: 3})
