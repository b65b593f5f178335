"""What the private search does to columns: none dies for the finest level of another."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from support.search_law import SearchProblem

from incrowd.anonymize.lattice import Lattice, Rollups
from incrowd.anonymize.safe_search import find_balanced, make_ramp, search_scheme
from incrowd.codes.counted_table import CountedTable
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


def make_codes() -> np.ndarray:
    """A column that is nearly free at its finest level, and one that costs a fifth of the rows."""
    draw = np.random.default_rng(3)
    deep = np.minimum(draw.geometric(0.75, 900) - 1, 15)
    costly = draw.integers(0, 16, 900)
    return np.column_stack([deep, costly, deep])


def test_no_column_is_suppressed_for_the_finest_level_of_another() -> None:
    codes = make_codes()
    for columns in ([0, 1], [1, 0], [0, 1, 2]):
        levels = search((DEEP,) * len(columns), codes[:, columns])
        assert not (3 in levels and 0 in levels)


def test_a_larger_weight_may_stay_fine_while_another_column_is_suppressed() -> None:
    weighty = (30.0, 1.0)
    trees = (DEEP, DEEP)
    mask = find_balanced(Lattice((0, 0), (3, 3)), trees, np.array(weighty))
    assert mask[0, 3]
    assert not mask[3, 0]
    assert not find_balanced(Lattice((0, 0), (3, 3)), trees, np.ones(2))[0, 3]
    assert search(trees, make_codes()[:250, :2], weighty) == (0, 3)


def test_columns_with_one_informative_level_are_free_and_so_are_fixed_ones() -> None:
    assert find_balanced(Lattice((0, 0), (1, 3)), (FLAG, DEEP), np.ones(2))[0, 3]
    assert find_balanced(Lattice((0, 0), (0, 3)), (DEEP, DEEP), np.ones(2)).all()
    assert find_balanced(Lattice((3, 0), (3, 3)), (DEEP, DEEP), np.ones(2)).all()


def test_a_suppressed_column_costs_more_than_its_detail() -> None:
    """Two labels of a second column are worth more than more detail of the first."""
    codes = np.column_stack([np.tile(np.arange(16), 40), np.repeat(np.arange(4) * 4, 160)])
    levels = search((DEEP, DEEP), codes)
    assert 3 not in levels


@pytest.mark.parametrize(("kind", "epsilon"), [("census", 1.5), ("patients", 1.0), ("voters", 0.5)])
def test_every_column_stays_where_nine_rows_of_ten_can_show_something_of_each(
    kind: str, epsilon: float
) -> None:
    """On the sample tables; the least of rows is met by the coarsest scheme that informs."""
    spec = parse_spec(SPECS[kind]).with_entry(("release", "epsilon"), epsilon)
    method = make_method(spec)
    counted = method.count(make_demo_table(kind))
    assert isinstance(counted, CountedTable)
    rollups = Rollups(counted.hierarchies, counted.frequencies)
    threshold = int(method.planned_release.crowd)
    top = tuple(hierarchy.height - 1 for hierarchy in counted.hierarchies)
    informative = tuple(
        level - int(hierarchy.is_rooted)
        for level, hierarchy in zip(top, counted.hierarchies, strict=True)
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
            for level, high, hierarchy in zip(levels, top, counted.hierarchies, strict=True)
        )
