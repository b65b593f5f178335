"""One number from several files: at most the truth but for noise, enumerated over laws of noise."""

from __future__ import annotations

import math

import pytest

from incrowd.release.shares_combined import CombinedRows, write_combined
from incrowd.release.shares_part import RowsByValue


@pytest.mark.parametrize(("epsilon", "r"), [(1.0, 14), (0.2, 70), (2.0, 7), (0.01, 9)])
@pytest.mark.parametrize("k", [1, 5])
def test_what_is_shown_of_a_group_is_expected_to_be_at_most_its_rows(
    epsilon: float, r: int, k: int
) -> None:
    """By the claim, for every size of a group; a threshold below r + 1 would break it."""
    law = {x: math.exp(-abs(x) * epsilon) for x in range(-r, r + 1)}
    total = sum(law.values())

    def expect_shown(n: int, threshold: int) -> float:
        return sum((n + x) * p / total for x, p in law.items() if n + x >= threshold)

    sizes = range(1, 4 * r + 10)
    assert all(expect_shown(n, r + k) <= n * (1 + 1e-12) for n in sizes)
    assert any(expect_shown(n, 1) > n * (1 + 1e-9) for n in sizes)


def test_the_file_has_the_largest_number_and_each() -> None:
    files = [
        RowsByValue(file="data-1.csv", rows=[5, 0]),
        RowsByValue(file="data-2.csv", rows=[3, 9]),
    ]
    table = CombinedRows(column="x", level=0, values=["a", None], files=files)
    assert write_combined(table).decode().splitlines() == [
        "value,rows,data-1.csv,data-2.csv", "a,5,5,3", ",9,0,9",
    ]  # fmt: skip
