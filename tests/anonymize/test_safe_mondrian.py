"""Safe Mondrian: boxes of the declared domain, and choices that one row hardly moves."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st
from support.pinned_randomness import PinnedRandomness

from incrowd.anonymize.safe_mondrian import CellPartition, _CutRound, cut_cells
from incrowd.anonymize.safe_search import Ramp, W
from incrowd.codes.axis import Axis
from incrowd.codes.hierarchy import Hierarchy, build_from_rows
from incrowd.methods.safe.scheme import make_contiguous
from incrowd.spec.build import build_hierarchy
from incrowd.spec.model import Column

Points = npt.NDArray[np.int32]


def numbers(count: int) -> Hierarchy:
    column = Column.model_validate(
        {"role": "quasi", "hierarchy": {"intervals": {"from": 0, "to": count - 1, "widths": [2]}}}
    )
    return build_hierarchy(column, folder=Path())


TREE = build_from_rows(
    [("a", "ab", "*"), ("b", "ab", "*"), ("c", "cd", "*"), ("d", "cd", "*"), ("e", "e", "*")]
)
AXES = [Axis(numbers(7), ordered=True), Axis(TREE, ordered=False)]
RAMP = Ramp(k=2, beta=0.5, a=1, b=5, d=9)
ONES = np.ones(2)
rows = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 6)), min_size=1, max_size=40)


def whole(points: Points) -> CellPartition:
    """Everything in one box."""
    return CellPartition(
        np.zeros((1, 2), np.int32),
        np.array([[8, 6]], np.int32),
        np.zeros(len(points), dtype=np.int64),
        np.zeros(1),
    )


def made(
    points: Points, rounds: int, seed: int, epsilon: Fraction = Fraction(100)
) -> CellPartition:
    return cut_cells(
        AXES, points, np.ones(len(points), np.int64), whole(points), ramp=RAMP,
        epsilons=[epsilon] * rounds, power=1, shares=ONES / 2, bits=PinnedRandomness(seed),
    )  # fmt: skip


@given(pairs=rows, seed=st.integers(0, 5), rounds=st.integers(1, 4))
def test_every_point_lies_in_its_box_and_boxes_do_not_overlap(
    pairs: list[tuple[int, int]], seed: int, rounds: int
) -> None:
    points = np.array(pairs, np.int32)
    result = made(points, rounds, seed, Fraction(1, 10))
    low, high = result.low[result.members], result.high[result.members]
    assert ((low <= points) & (points <= high)).all()
    for box in range(len(result.low)):
        for other_box in range(box):
            apart = (result.high[box] < result.low[other_box]) | (
                result.high[other_box] < result.low[box]
            )
            assert apart.any()


@given(pairs=rows, seed=st.integers(0, 5))
def test_boxes_do_not_depend_on_where_rows_lie(pairs: list[tuple[int, int]], seed: int) -> None:
    """Every box can be named without the table: halves of halves, and groups."""
    points = np.array(pairs, np.int32)
    result = made(points, 3, seed, Fraction(1, 10))
    runs = {(0, 8), (7, 7), (8, 8)}
    pending = [(0, 6)]
    while pending:
        low, high = pending.pop()
        runs.add((low, high))
        middle = (low + high) // 2
        if low < high:
            pending += [(low, middle), (middle + 1, high)]
    for low, high in zip(result.low[:, 0].tolist(), result.high[:, 0].tolist(), strict=True):
        assert (low, high) in runs
    positions = AXES[1].positions
    groups = {(0, 6), (5, 5), (6, 6)} | {(int(x), int(x)) for x in positions[:5]}
    groups |= {tuple(sorted((int(positions[0]), int(positions[1]))))}  # type: ignore[arg-type]
    groups |= {tuple(sorted((int(positions[2]), int(positions[3]))))}  # type: ignore[arg-type]
    for low, high in zip(result.low[:, 1].tolist(), result.high[:, 1].tolist(), strict=True):
        assert (low, high) in groups


@settings(max_examples=50)
@given(pairs=rows, extra=st.tuples(st.integers(0, 8), st.integers(0, 6)), power=st.integers(1, 3))
def test_a_row_raises_the_scores_of_its_own_cell_by_little(
    pairs: list[tuple[int, int]], extra: tuple[int, int], power: int
) -> None:
    """By 0 to W D in every column, and by nothing in any other cell: what the proof rests on."""
    points = np.array([*pairs, extra], np.int32)
    cells = made(points, 2, 1, Fraction(1, 10))
    scores = []
    for count in (0, 1):
        counts = np.append(np.ones(len(pairs), np.int64), count)
        this = _CutRound(AXES, points, counts, cells, RAMP, power, ONES / 2)
        scores.append(
            np.column_stack([this._score_cuts(this._find_parts(at), at) for at in range(2)])
        )
    moved = scores[1] - scores[0]
    own_cell = cells.members[-1]
    assert (np.delete(moved, own_cell, axis=0) == 0).all()
    assert (moved[own_cell] >= 0).all()
    assert (moved[own_cell] <= W * RAMP.d).all()


def test_scores_by_hand() -> None:
    points = np.array([[0, 0]] * 6 + [[6, 0]] * 4 + [[7, 0]], np.int32)
    this = _CutRound(AXES, points, np.ones(11, np.int64), whole(points), RAMP, 1, ONES / 2)
    assert this._find_parts(0).tolist() == [0] * 6 + [1] * 4 + [2]
    # Halves 0-3 and 4-6 keep 1/2 and 2/3 of the column, null all of it; psi is 30, 20 and 0.
    first = int(W * (0.5 * (1 - 3 / 6))) * 30 + int(W * (0.5 * (1 - 2 / 6))) * 20
    assert this._score_cuts(this._find_parts(0), 0).tolist() == [first]
    # All are in group ab, two of five values.
    assert this._score_cuts(this._find_parts(1), 1).tolist() == [int(W * 0.5 * (1 - 1 / 4)) * 55]


def test_a_large_budget_cuts_where_it_pays_and_a_small_one_hardly_ever() -> None:
    points = np.array([[x % 7, x % 5] for x in range(700)], np.int32)
    assert len(made(points, 4, 1).low) > 10
    stays = [len(made(points[:20], 1, seed, Fraction(1, 1000)).low) == 1 for seed in range(200)]
    assert 0.05 < np.mean(stays) < 0.9


def test_an_order_whose_groups_are_scattered_is_taken_for_a_tree() -> None:
    scattered = build_from_rows([("1", "odd", "*"), ("2", "even", "*"), ("3", "odd", "*")])
    assert not make_contiguous(Axis(scattered, ordered=True)).ordered
    assert make_contiguous(Axis(numbers(5), ordered=True)).ordered
