"""How the budget is shared."""

from __future__ import annotations

import pytest

from incrowd.anonymize.synthetic.allocation import (
    TOTAL_SHARE,
    count_choices,
    fill_up,
    limit_choices,
    share_one_ways,
)


def test_filling_up_evens_information_per_need() -> None:
    added = fill_up([4.0, 1.0, 0.5], [1.0, 1.0, 2.0], 3.0)
    assert added.sum() == pytest.approx(3.0)
    assert added[0] == 0
    assert (1.0 + added[1]) / 1.0 == pytest.approx((0.5 + added[2]) / 2.0)


def test_next_to_nothing_is_shared_without_warnings() -> None:
    assert fill_up([1.0, 1.0], [1.0, 1.0], 1e-25).sum() == pytest.approx(1e-25)


def test_few_rows_and_many_columns_give_one_ways_more() -> None:
    usual = share_one_ways(9, 24_000, 0.054)
    assert share_one_ways(9, 1_000, 0.054) > 2 * usual
    assert share_one_ways(60, 100_000, 0.054) > 2 * usual
    assert share_one_ways(1, 24_000, 0.054) == 1 - TOTAL_SHARE


def test_choices_are_made_only_where_they_pay() -> None:
    assert limit_choices(36, 0.024, 24_000, 9) == 36
    assert limit_choices(36, 0.024, 300, 9) == 0
    assert limit_choices(36, 0.024, 900, 9) == 3
    assert limit_choices(300, 0.01, 5_800, 86) == 0
    assert limit_choices(300, 0.01, 100_000, 86) == 300


def test_all_choices_are_counted_whatever_is_made() -> None:
    assert count_choices(1).total == 0
    assert count_choices(2).total == 2
    assert count_choices(9).total == 24 + 6
    assert count_choices(171).total == 8 * 57 + 2 * 57
