"""Cells that are counted from coarser ones are those that are counted from the tuples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.anonymize import refined_cells as module
from incrowd.anonymize.lattice import Node, Rollups
from incrowd.anonymize.refined_cells import CellRefiner, Cells, Refinement
from incrowd.codes.frequency import merge_tuples
from incrowd.codes.hierarchy import build_from_rows

DEEP = build_from_rows([(f"v{i}", f"g{i // 2}", f"h{i // 6}", "*") for i in range(13)])
FLAT = build_from_rows([(f"v{i}", "*") for i in range(4)])
OPEN_TOP = build_from_rows([(f"v{i}", f"g{i % 3}") for i in range(7)])
HIERARCHIES = (DEEP, FLAT, OPEN_TOP, DEEP)
HIGH = (3, 1, 1, 3)


def make_rollups(rows: int, seed: int, *, are_distinct: bool) -> Rollups:
    draw = np.random.default_rng(seed)
    codes = np.column_stack(
        [draw.integers(0, tree.outside + 1, rows) // draw.integers(1, 4) for tree in HIERARCHIES]
    ).astype(np.int32)
    codes = np.unique(codes, axis=0) if are_distinct else codes
    return Rollups(HIERARCHIES, merge_tuples(codes, np.ones(len(codes), dtype=np.int64)))


def list_cells(cells: Cells) -> dict[tuple[int, ...], int]:
    codes = map(tuple, cells.codes.T.tolist())
    return dict(zip(codes, cells.sizes.tolist(), strict=True))


def count_directly(rollups: Rollups, node: Node, threshold: int) -> dict[tuple[int, ...], int]:
    keys, sizes = rollups.count_cells(node)
    codes = map(tuple, rollups.decode_keys(node, keys).tolist())
    return {c: n for c, n in zip(codes, sizes.tolist(), strict=True) if n > threshold}


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_cells_are_those_of_the_tuples_whichever_way_a_node_is_reached(
    data: st.DataObject,
) -> None:
    """Several steps from each node; each time some are announced, rightly or not."""
    rows, seed = data.draw(st.integers(0, 400)), data.draw(st.integers(0, 99))
    rollups = make_rollups(rows, seed, are_distinct=data.draw(st.booleans()))
    threshold = data.draw(st.integers(0, 6))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FEWER", data.draw(st.sampled_from([0, 1, 4])))
        patch.setattr(module, "_DENSE", data.draw(st.sampled_from([0, 1 << 12])))
        patch.setattr(module, "_ALIVE", data.draw(st.sampled_from([0.0, 0.7, 1.0])))
        refiner = CellRefiner(rollups, (0,) * len(HIGH), threshold)
        reached: list[tuple[Node, Cells]] = [(HIGH, refiner.count_coarsest(HIGH))]
        assert list_cells(reached[0][1]) == count_directly(rollups, HIGH, threshold)
        for _ in range(8):
            node, cells = data.draw(st.sampled_from(reached))
            finer = tuple(data.draw(st.integers(0, level)) for level in node)
            steps = [
                Refinement(at, fine, coarse)
                for at, (fine, coarse) in enumerate(zip(finer, node, strict=True))
                if fine < coarse
            ]
            if not steps:
                continue
            soon = [
                Refinement(at, level - 1, level)
                for at, level in enumerate(node)
                if level and data.draw(st.booleans())
            ]
            refined = refiner.refine(cells, steps, soon)
            assert list_cells(refined) == count_directly(rollups, finer, threshold)
            reached.append((finer, refined))


def test_tuples_are_merged_for_the_steps_to_come() -> None:
    """What is counted next is counted from few tuples; a test of the cells alone is blind to it."""
    rollups = make_rollups(20_000, 1, are_distinct=False)
    refiner = CellRefiner(rollups, (0,) * len(HIGH), 3)
    top = refiner.count_coarsest(HIGH)
    first, second = Refinement(0, 2, 3), Refinement(3, 2, 3)
    refiner.refine(top, [first], [second])
    assert top.merged is not None
    tuples, _ = top.merged
    assert tuples.size * 4 <= len(rollups.frequencies)
    assert tuples.weights is not None
    assert int(tuples.weights.sum()) == 20_000
    refiner.refine(top, [second], [])
    assert top.merged[0] is tuples
    assert not tuples.allows([Refinement(1, 0, 1)])
