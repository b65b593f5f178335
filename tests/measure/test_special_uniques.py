"""Special uniques: figures of sdcMicro and its guide, and all sets by brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from support.survey import count_rows, guide_rows, spread_by_row

from incrowd.arrays import Codes
from incrowd.measure.special_uniques import (
    compute_dis,
    compute_msu_score,
    find_special_uniques,
    iterate_minimal_uniques,
)


def test_scores_of_the_guide() -> None:
    """Table 4.5 and sdcMicro's test «suda2 sdc guideline»."""
    codes, frequencies = guide_rows()
    scores = find_special_uniques(frequencies, most=3).scores
    assert spread_by_row(codes, frequencies, scores) == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]


def test_scores_of_the_book() -> None:
    """SdcMicro's test «suda2 book example»; ages, genders, incomes and educations."""
    rows: list[tuple[object, ...]] = [
        *[(20, "m", "high", "h")] * 2, *[(20, "m", "low", "h")] * 2, (20, "f", "low", "u"),
        (20, "f", "low", "h"), (20, "f", "low", "m"), (60, "m", "low", "u"),
    ]  # fmt: skip
    codes, frequencies = count_rows(rows)
    scores = find_special_uniques(frequencies).scores
    assert spread_by_row(codes, frequencies, scores) == [0, 0, 0, 0, 4, 2, 6, 8]


def test_dis_suda_of_the_guide() -> None:
    """Example 4.7, whose scores are those of early sdcMicro, at a fraction of 1 %."""
    codes, frequencies = guide_rows()
    result = find_special_uniques(frequencies, fraction=0.01, score="ihsn")
    scores = spread_by_row(codes, frequencies, result.scores)
    assert scores == [0, 0, 1.75, 0, 3.25, 0, 1.75, 2.75, 0, 0]
    dis = spread_by_row(codes, frequencies, result.dis)
    expected = [0, 0, 0.005120313, 0, 0.010702061, 0, 0.005120313, 0.008775093, 0, 0]
    assert dis == pytest.approx(expected, abs=6e-10)


def test_dis_by_hand() -> None:
    """4 unique records and 3 pairs, of 1 %: 0.04 of 0.04 + 5.94."""
    assert compute_dis(4, 6, 0.01) == pytest.approx(0.04 / 5.98)
    assert compute_dis(0, 0, 0.5) == 0
    assert compute_dis(3, 0, 0.5) == 1


def find_by_brute_force(codes: Codes, most: int) -> dict[int, set[tuple[int, ...]]]:
    """Return the minimal sample uniques of each record, by the definition."""
    result: dict[int, set[tuple[int, ...]]] = {}
    for at, row in enumerate(codes):
        unique = {
            places
            for size in range(1, most + 1)
            for places in combinations(range(codes.shape[1]), size)
            if (codes[:, places] == row[[*places]]).all(axis=1).sum() == 1
        }
        result[at] = {s for s in unique if not any(set(part) < set(s) for part in unique)}
    return result


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("most", [2, 5])
def test_minimal_uniques_against_brute_force(seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [tuple(row) for row in rng.integers(0, [2, 3, 2, 4, 3], (25, 5)).tolist()]
    codes, frequencies = count_rows(rows)
    by_tuple: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for places, records in iterate_minimal_uniques(frequencies, most):
        for at in records:
            by_tuple.setdefault(tuple(frequencies.codes[at].tolist()), set()).add(places)
    expected = find_by_brute_force(codes, most)
    assert {at: by_tuple.get(tuple(codes[at].tolist()), set()) for at in expected} == expected
    assert any(expected.values())


def test_contributions_are_shares_of_the_scores() -> None:
    """By hand, of the guide: «primary» of rows 3 and 7 alone, four sets of row 5, three of 8."""
    _, frequencies = guide_rows()
    result = find_special_uniques(frequencies, most=3)
    assert result.sizes == (4, 5, 0)
    assert result.records == 4
    residence, gender, education, labor = result.contributions
    assert residence == pytest.approx((6 + 2) / 34)  # rural; urban and unemployed
    assert gender == pytest.approx((2 + 2 + 2) / 34)
    assert education == pytest.approx((6 + 6 + 6 + 2 + 2) / 34)
    assert labor == pytest.approx((2 + 2 + 2 + 2) / 34)


def test_scores_of_one_set() -> None:
    assert [compute_msu_score(size, 4, 3, "elliot") for size in (1, 2, 3)] == [6, 2, 1]
    assert [compute_msu_score(size, 4, 4, "elliot") for size in (1, 4)] == [6, 1]
    assert [compute_msu_score(size, 4, 4, "ihsn") for size in (1, 2, 4)] == [1.75, 0.5, 0]


def test_nobody_is_special_where_nobody_is_unique() -> None:
    _, frequencies = count_rows([("a", "b")] * 3)
    result = find_special_uniques(frequencies, fraction=0.1)
    assert (result.records, result.sizes) == (0, (0, 0))
    assert result.dis is not None
    assert result.dis.tolist() == [0]
