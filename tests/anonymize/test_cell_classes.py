"""Classes by suppressing cells: valid always, fewest on tiny tables, near a bound on others."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

from incrowd.anonymize import cell_classes, suppression
from incrowd.anonymize.cell_classes import CellClasses, suppress_cells
from incrowd.codes.frequency import Frequencies, merge_tuples


def make_tuples(rows: np.ndarray) -> Frequencies:
    return merge_tuples(rows.astype(np.int32), np.ones(len(rows), dtype=np.int64))


def check_classes(tuples: Frequencies, classes: CellClasses, k: int, weights: np.ndarray) -> None:
    """Every row is there, with its own values, in a class of at least k; the cost is true."""
    label_codes = np.where(
        classes.patterns.hidden[classes.pattern], 0, tuples.codes[classes.owner] + 1
    )
    assert merge_tuples(label_codes.astype(np.int32), classes.counts).counts.min() >= k
    assert (classes.counts > 0).all()
    assert (np.bincount(classes.owner, weights=classes.counts) == tuples.counts).all()
    hidden = classes.patterns.hidden[classes.pattern] * classes.counts[:, None]
    assert classes.cost == pytest.approx(float((hidden @ weights).sum()))
    assert classes.least <= classes.cost * (1 + 1e-12)


def find_least_cost(rows: np.ndarray, k: int, weights: np.ndarray) -> float:
    """The least cost by trying every partition of the rows into classes of at least k.

    A class hides the columns in which its rows differ, and no more; so the best partition is the
    best of all choices of cells.
    """
    number = len(rows)

    @cache
    def price(group: int) -> float:
        members = rows[[at for at in range(number) if group >> at & 1]]
        return float(len(members) * weights[(members != members[0]).any(axis=0)].sum())

    @cache
    def best(left: int) -> float:
        if not left:
            return 0.0
        first = left & -left
        rest, chosen, least = left ^ first, left ^ first, np.inf
        while True:  # every subset of the others, with the first
            group = chosen | first
            if k <= group.bit_count() < 2 * k:  # a larger class is no cheaper than its parts
                least = min(least, price(group) + best(left ^ group))
            if not chosen:
                return float(least)
            chosen = (chosen - 1) & rest

    return best((1 << number) - 1)


def test_the_search_over_partitions_equals_the_search_over_cells() -> None:
    """The oracle against every choice of cells of a table of four rows and two columns."""
    rng = np.random.default_rng(4)
    weights = np.array([1.0, 1.5])
    for _ in range(6):
        rows = rng.integers(0, 3, size=(4, 2))
        best = np.inf
        for cells in product([False, True], repeat=8):
            hidden = np.array(cells).reshape(4, 2)
            label_codes = np.where(hidden, 9, rows)
            if min(np.unique(label_codes, axis=0, return_counts=True)[1]) >= 2:
                best = min(best, float((hidden @ weights).sum()))
        assert find_least_cost(rows, 2, weights) == best


@pytest.mark.parametrize("seed", range(24))
def test_tiny_tables_have_the_fewest_cells(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    columns, k = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    rows = rng.integers(0, 3, size=(int(rng.integers(2 * k, 10)), columns))
    weights = np.ones(columns) if seed % 2 else rng.integers(1, 4, columns).astype(float)
    tuples = make_tuples(rows)
    least = find_least_cost(rows, k, weights)
    classes = suppress_cells(tuples.codes, tuples.counts, k=k, weights=weights)
    check_classes(tuples, classes, k, weights)
    assert classes.cost == classes.least == pytest.approx(least)
    monkeypatch.setattr(cell_classes, "_VARIABLES", 0)  # rounds alone
    greedy = suppress_cells(tuples.codes, tuples.counts, k=k, weights=weights)
    check_classes(tuples, greedy, k, weights)
    assert greedy.least <= least * (1 + 1e-12)
    assert least <= greedy.cost * (1 + 1e-12)
    assert greedy.cost <= 1.7 * least + 1e-9


@pytest.mark.parametrize(("rows", "columns", "k"), [(300, 4, 2), (800, 6, 5), (2000, 5, 10)])
def test_larger_tables_are_valid_and_near_the_bound(rows: int, columns: int, k: int) -> None:
    rng = np.random.default_rng(rows)
    base = rng.integers(0, 6, rows)
    table = np.column_stack(
        [np.where(rng.random(rows) < 0.2, rng.integers(0, 5, rows), base * (at + 1) % 5)
         for at in range(columns)]
    )  # fmt: skip
    tuples = make_tuples(table)
    weights = np.ones(columns)
    classes = suppress_cells(tuples.codes, tuples.counts, k=k, weights=weights)
    check_classes(tuples, classes, k, weights)
    assert 0 < classes.least <= classes.cost <= 2 * classes.least


def test_a_common_tuple_lends_rows_to_a_rare_one() -> None:
    """Three rows alike and one apart: one of the three joins it, so that two cells suffice."""
    tuples = make_tuples(np.array([[0, 0]] * 3 + [[0, 1]]))
    classes = suppress_cells(tuples.codes, tuples.counts, k=2, weights=np.ones(2))
    assert classes.cost == 2
    assert sorted(classes.counts.tolist()) == [1, 1, 2]


def test_weights_steer_the_choice() -> None:
    tuples = make_tuples(np.array([[0, 0], [0, 1], [1, 0], [1, 1]]))
    for weights, hidden in (((1.0, 3.0), [True, False]), ((3.0, 1.0), [False, True])):
        classes = suppress_cells(tuples.codes, tuples.counts, k=2, weights=np.array(weights))
        assert (classes.patterns.hidden[classes.pattern] == hidden).all()


def test_many_columns_are_put_into_classes_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suppression, "MOST_COLUMNS", 6)
    tuples = make_tuples(np.random.default_rng(2).integers(0, 3, size=(40, 9)))
    classes = suppress_cells(tuples.codes, tuples.counts, k=4, weights=np.ones(9))
    check_classes(tuples, classes, 4, np.ones(9))
    assert len(classes.patterns) <= 64 + 9
    assert classes.least == 0.0
