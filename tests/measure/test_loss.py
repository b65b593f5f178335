"""Losses against sums that go through the rows one by one."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.arrays import Floats
from incrowd.codes.hierarchy import Hierarchy, build_from_rows
from incrowd.measure.loss import (
    LOSSES,
    compute_average_class_size,
    compute_discernibility,
    compute_entropy_costs,
    compute_entropy_scale,
    compute_normalized_costs,
    compute_precision_costs,
    compute_release_loss,
    compute_separable_costs,
)
from incrowd.spec.build import build_hierarchy
from incrowd.spec.model import Column

TREE = [("a", "AB", "*"), ("b", "AB", "*"), ("c", "CDE", "*"), ("d", "CDE", "*"), ("e", "CDE", "*")]
VALUES = [*"abcde", None, "stranger"]


def shown(value: str | None, level: int) -> str:
    """What a value shows at a level: null until the top, a stranger the root throughout."""
    if value == "stranger" or level == 2:
        return "*"
    if value is None:
        return "null"
    return value if level == 0 else {row[0]: row[1] for row in TREE}[value]


def covered(label: str) -> int:
    """How many of the five values a label stands for; null is one value."""
    return {"AB": 2, "CDE": 3, "*": 5}.get(label, 1)


def summed(
    costs: list[Floats], hierarchy: Hierarchy, values: list[str | None], level: int
) -> float:
    codes = hierarchy.groups[level][hierarchy.encode(values)]
    return float(costs[level][codes].sum())


tables = st.lists(st.sampled_from(VALUES), min_size=1, max_size=30)


@given(values=tables, level=st.integers(0, 2))
def test_normalized_loss_row_by_row(values: list[str | None], level: int) -> None:
    hierarchy = build_from_rows(TREE)
    expected = sum((covered(shown(value, level)) - 1) / 4 for value in values)
    assert summed(compute_normalized_costs(hierarchy), hierarchy, values, level) == pytest.approx(
        expected
    )


@given(values=tables, level=st.integers(0, 2))
def test_precision_is_the_level_over_the_highest(values: list[str | None], level: int) -> None:
    hierarchy = build_from_rows(TREE)
    result = summed(compute_precision_costs(hierarchy), hierarchy, values, level)
    assert result == pytest.approx(len(values) * level / 2)


@given(values=tables, level=st.integers(0, 2))
def test_entropy_is_the_share_of_bits_lost(values: list[str | None], level: int) -> None:
    """A stranger without a name of its own is a value like any other until the top."""
    hierarchy = build_from_rows(TREE, other="elsewhere")

    def label(value: str | None) -> str:
        return "elsewhere" if value == "stranger" and level < 2 else shown(value, level)

    alike = Counter(values)
    groups = Counter(map(label, values))
    lost = sum(math.log2(groups[label(value)] / alike[value]) for value in values)
    most = sum(math.log2(len(values) / alike[value]) for value in values)
    value_counts = np.bincount(hierarchy.encode(values), minlength=7).astype(float)
    result = summed(compute_entropy_costs(hierarchy, value_counts), hierarchy, values, level)
    # The costs of the values themselves cancel over all rows, not in each.
    assert result / len(values) == pytest.approx(lost / most if most else 0.0, abs=1e-12)


def test_the_scale_of_entropy() -> None:
    assert compute_entropy_scale(np.array([4.0, 4.0, 0.0])) == (2.0, 3.0)
    assert compute_entropy_scale(np.array([8.0, 0.0])) == (3.0, 3.0)
    assert compute_entropy_scale(np.zeros(3)) == (0.0, 0.0)
    alone = compute_entropy_costs(
        build_from_rows([("a", "*"), ("b", "*")]), np.array([8.0, 0, 0, 0])
    )
    assert all((costs == 0).all() for costs in alone)  # nothing there to be lost


@pytest.mark.parametrize(("level", "expected"), [(0, 0.0), (1, 0.2), (3, 0.6), (5, 1.0)])
def test_an_open_domain_loses_with_every_level_alike(level: int, expected: float) -> None:
    column = Column.model_validate({"role": "quasi", "hierarchy": {"mask": {"length": 5}}})
    hierarchy = build_hierarchy(column, folder=Path(), values=["48001", "48002", "49000"])
    codes = hierarchy.groups[level][hierarchy.encode(["48001", "49000"])]
    assert compute_normalized_costs(hierarchy)[level][codes].tolist() == pytest.approx(
        [expected] * 2
    )


def test_null_is_one_value_and_a_stranger_shown_as_the_root_is_all() -> None:
    plain, other = build_from_rows(TREE), build_from_rows(TREE, other="elsewhere")
    assert compute_normalized_costs(plain)[0].tolist() == [0, 0, 0, 0, 0, 0, 1]
    assert compute_normalized_costs(other)[0].tolist() == [0, 0, 0, 0, 0, 0, 0]
    assert compute_normalized_costs(plain)[2].tolist() == [1]
    assert compute_normalized_costs(build_from_rows([("a", "*")]))[1].tolist() == [
        0
    ]  # one value: nothing to lose


@given(
    sizes=st.lists(st.integers(1, 9), max_size=8),
    suppressed=st.integers(0, 9),
)
def test_discernibility_pair_by_pair(sizes: list[int], suppressed: int) -> None:
    """The pairs of rows (each with itself too) that cannot be told apart, over all pairs."""
    rows = [at for at, size in enumerate(sizes) for _ in range(size)] + [-1] * suppressed
    alike = sum(row == -1 or row == two for row in rows for two in rows)
    discernibility = compute_discernibility(np.array(sizes, np.int64), suppressed, len(rows))
    assert discernibility == pytest.approx(alike / len(rows) ** 2 if rows else 0.0)


def test_discernibility_of_many_rows_does_not_overflow() -> None:
    sizes = np.array([4_000_000_000, 1], np.int64)
    assert compute_discernibility(sizes, 0, 4_000_000_001) == pytest.approx(1.0)


def test_average_class_size_does_not_see_what_is_not_shown() -> None:
    assert compute_average_class_size(np.array([2, 3, 7], np.int64)) == 4.0
    assert compute_average_class_size(np.zeros(0, np.int64)) == math.inf


def test_missing_and_surplus_rows_have_lost_everything() -> None:
    costs, counts = np.array([0.0, 0.5]), np.array([6, 2], np.int64)
    assert compute_release_loss(costs, counts, missing=0, surplus=0) == 1 / 8
    assert compute_release_loss(costs, counts, missing=1, surplus=1) == 3 / 10
    assert compute_release_loss(costs, 0 * counts, missing=3, surplus=0) == 1.0
    assert compute_release_loss(costs[:0], counts[:0], missing=0, surplus=0) == 1.0


def test_which_losses_are_sums_over_columns() -> None:
    hierarchies = [build_from_rows(TREE), build_from_rows([("x", "*"), ("y", "*")])]
    value_counts = [np.array([1.0, 2, 0, 0, 0, 1, 0]), np.array([3.0, 1, 0, 0])]
    sums = {name: compute_separable_costs(name, hierarchies, value_counts) for name in LOSSES}
    assert {name for name, costs in sums.items() if costs is None} == {
        "discernibility", "class-size",
    }  # fmt: skip
    for name, alone in (
        ("normalized", compute_normalized_costs),
        ("precision", compute_precision_costs),
    ):
        costs = sums[name]  # type: ignore[index]
        assert costs is not None
        for column, hierarchy in zip(costs, hierarchies, strict=True):
            for first, two in zip(column, alone(hierarchy), strict=True):
                assert first.tolist() == two.tolist()
    costs = sums["entropy"]
    assert costs is not None
    assert [x.tolist() for x in costs[1]] == [
        x.tolist() for x in compute_entropy_costs(hierarchies[1], value_counts[1])
    ]
