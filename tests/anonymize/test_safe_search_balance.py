"""What the private search does to columns: none dies for the finest level of another."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from support.search_law import SearchProblem

from incrowd.anonymize.lattice import Lattice, Rollups
from incrowd.anonymize.safe_search import make_ramp, search_scheme
from incrowd.anonymize.scheme_balance import find_balanced
from incrowd.anonymize.target_score import TargetValues
from incrowd.codes.counted_table import CountedTable
from incrowd.codes.frequency import merge_tuples
from incrowd.codes.hierarchy import Hierarchy, build_from_rows
from incrowd.curate.demo_tables import SPECS, make_demo_table
from incrowd.methods.registry import make_method
from incrowd.privacy.presentation import read_as_decimal
from incrowd.privacy.randomness import SeededRandomness
from incrowd.spec.file import parse_spec

DEEP = build_from_rows([(f"v{i:02}", f"g{i // 4}", f"h{i // 8}", "*") for i in range(16)])
FLAG = build_from_rows([("no", "*"), ("yes", "*")])


def search(
    hierarchies: tuple[Hierarchy, ...], codes: np.ndarray, weights: tuple[float, ...] = ()
) -> tuple[int, ...]:
    """Search without noise worth the name."""
    top = tuple(hierarchy.height - 1 for hierarchy in hierarchies)
    lattice = Lattice((0,) * len(top), top)
    problem = SearchProblem(hierarchies, lattice, (make_ramp(20, 1.0),), 1, weights)
    table = tuple(tuple(row) for row in codes.tolist())
    return problem.run_search(table, Fraction(10**8), SeededRandomness(1)).levels


def make_codes(rows: int, copies: int) -> np.ndarray:
    """Some columns that are the same, and one apart from them that divides every cell."""
    deep = np.arange(rows) // (rows // 16)
    return np.column_stack([deep] * copies + [np.arange(rows) % 16])


def test_no_column_is_suppressed_for_the_finest_level_of_another() -> None:
    """Six columns are as fine as can be, or a seventh is shown: the loss prefers the six."""
    for order in ([0, 1, 2, 3, 4, 5, 6], [6, 0, 1, 2, 3, 4, 5]):
        levels = search((DEEP,) * 7, make_codes(512, 6)[:, order])
        assert 3 not in levels


def test_a_larger_weight_may_stay_fine_while_another_column_is_suppressed() -> None:
    weighty = (30.0, 1.0)
    trees = (DEEP, DEEP)
    mask = find_balanced(Lattice((0, 0), (3, 3)), trees, np.array(weighty))
    assert mask[0, 3]
    assert not mask[3, 0]
    assert not find_balanced(Lattice((0, 0), (3, 3)), trees, np.ones(2))[0, 3]
    assert search(trees, make_codes(512, 1), weighty) == (0, 3)


def test_columns_with_one_informative_level_are_free_and_so_are_fixed_ones() -> None:
    assert find_balanced(Lattice((0, 0), (1, 3)), (FLAG, DEEP), np.ones(2))[0, 3]
    assert find_balanced(Lattice((0, 0), (0, 3)), (DEEP, DEEP), np.ones(2)).all()
    assert find_balanced(Lattice((3, 0), (3, 3)), (DEEP, DEEP), np.ones(2)).all()


def test_a_suppressed_column_costs_more_than_its_detail() -> None:
    """By detail alone two columns in four groups beat three columns in two, by a little."""
    assert search((DEEP,) * 3, make_codes(112, 2), (1.05, 1.05, 1.0)) == (2, 2, 2)


@pytest.mark.parametrize(("kind", "epsilon"), [("census", 1.5), ("patients", 1.0), ("voters", 0.5)])
def test_every_column_stays_where_nine_rows_of_ten_can_show_something_of_each(
    kind: str, epsilon: float
) -> None:
    """On the sample tables; the least of rows is met by the coarsest scheme that informs."""
    spec = parse_spec(SPECS[kind]).with_entry(("release", "epsilon"), epsilon)
    method = make_method(spec)
    distinct = method.count(make_demo_table(kind))
    assert isinstance(distinct, CountedTable)
    rollups = Rollups(distinct.hierarchies, distinct.frequencies)
    threshold = int(method.planned_release.crowd)
    top = tuple(hierarchy.height - 1 for hierarchy in distinct.hierarchies)
    informative = tuple(
        level - int(hierarchy.is_rooted)
        for level, hierarchy in zip(top, distinct.hierarchies, strict=True)
    )
    _, sizes = rollups.count_cells(informative)
    assert sizes[sizes >= threshold].sum() >= 0.9 * sizes.sum()  # or the test says nothing
    for seed in range(3):
        levels = search_scheme(
            rollups, Lattice((0,) * len(top), top), [make_ramp(threshold, 1.0)],
            epsilon=read_as_decimal(epsilon / 20), power=1, weights=np.ones(len(top)),
            bits=SeededRandomness(seed),
        ).levels  # fmt: skip
        assert not any(
            level == high and hierarchy.is_rooted
            for level, high, hierarchy in zip(levels, top, distinct.hierarchies, strict=True)
        )


def test_a_target_keeps_its_rare_value() -> None:
    """One row in eight has it. A score by the most frequent value would drop every such cell."""
    draw = np.random.default_rng(5)
    first, second = draw.integers(0, 16, 3000), draw.integers(0, 16, 3000)
    rare = (draw.random(3000) < np.where(first < 8, 0.05, 0.2)).astype(np.int64)
    trees = (DEEP, DEEP, FLAG)
    codes = np.column_stack([first, second, rare]).astype(np.int32)
    rollups = Rollups(trees, merge_tuples(codes, np.ones(3000, dtype=np.int64)))
    levels = search_scheme(
        rollups, Lattice((0, 0, 0), (3, 3, 0)), [make_ramp(19, 1.0)], epsilon=Fraction(1, 20),
        power=2, weights=np.ones(3), bits=SeededRandomness(1),
        target=TargetValues.from_counts(2, np.array([2_600, 400, -20, 5]), 19.0),
    ).levels  # fmt: skip
    keys, sizes = rollups.count_cells(levels)
    has_rare = rollups.decode_keys(levels, keys)[:, 2] == 1
    published = sizes * (sizes >= 19)
    assert published[has_rare].sum() / published.sum() == pytest.approx(rare.mean(), abs=0.03)
    assert 3 not in levels[:2]
