"""How the budget is shared, and that it never does much worse than on independent columns."""

from __future__ import annotations

import math
from itertools import combinations
from unittest import mock

import numpy as np
import pytest
from support.small_domains import nested, related_rows

from incrowd.anonymize.synthetic import stage, synthesize
from incrowd.anonymize.synthetic.allocation import (
    TOTAL_SHARE,
    average_cells,
    count_choices,
    fill_up,
    find_rows_need,
    limit_choices,
    share_one_ways,
)
from incrowd.anonymize.synthetic.domain import Domain, TableCounter, make_column
from incrowd.arrays import Codes, Floats
from incrowd.privacy.information import InformationPlan, plan_information
from incrowd.privacy.randomness import SeededRandomness

SEEDS = 12  # means of fewer are too far off to tell a ratio of 1.02
LARGEST = np.array([1.2, 1.02])  # of one-way and two-way errors, over those of independent columns


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
    assert share_one_ways(9, 24_000, 1.1) == usual


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("columns", [4, 10, 50])
def test_few_rows_keep_the_precision_of_single_columns(epsilon: float, columns: int) -> None:
    """Up to 3,000 rows, and of many columns always: deviations 1.2 times those of independent ones.

    The promise is about information before anything is chosen; what choices cost is in it.
    """
    choices = count_choices(columns).total
    alone = plan_information(epsilon=epsilon, delta=1e-6, choices=0).information
    chosen = plan_information(epsilon=epsilon, delta=1e-6, choices=choices).information
    for rows in (500, 1_000, 3_000, 3_250) if columns < 40 else (1_000, 100_000):
        share = share_one_ways(columns, rows, chosen)
        assert (1 - TOTAL_SHARE) * alone / (share * chosen) <= 1.2**2


def test_choices_are_made_only_where_they_pay() -> None:
    assert limit_choices(36, 0.024, 24_000, 9) == 36
    assert limit_choices(36, 0.024, 300, 9) == 0
    assert limit_choices(36, 0.024, 900, 9) == 3
    assert limit_choices(300, 0.01, 5_800, 86) == 0
    assert limit_choices(300, 0.01, 100_000, 86) == 300


def test_small_tables_need_fewer_rows_to_be_worth_a_choice() -> None:
    """Noise adds up over cells; from 32 of them on, the rule is the usual one."""
    assert average_cells([2, 2, 2, 2]) == pytest.approx(4)
    assert average_cells([2, 8]) == pytest.approx(16)
    assert limit_choices(36, 0.0084, 500, 4) == limit_choices(36, 0.0084, 500, 4, 32) == 0
    assert limit_choices(36, 0.0084, 500, 4, 16) == limit_choices(36, 0.0084, 1000, 4) == 0
    assert limit_choices(36, 0.0084, 500, 4, 8) == 3
    assert limit_choices(36, 0.0084, 500, 4, 4) == 13
    assert limit_choices(300, 0.0084, 500, 86, 4) == limit_choices(300, 0.0084, 500, 86) == 0
    for cells in (32, 100, 10_000):
        for rows in (900, 5_000):
            assert limit_choices(36, 0.024, rows, 9, cells) == limit_choices(36, 0.024, rows, 9)


def test_all_choices_are_counted_whatever_is_made() -> None:
    assert count_choices(1).total == 0
    assert count_choices(2).total == 2
    assert count_choices(9).total == 24 + 6
    assert count_choices(171).total == 8 * 57 + 2 * 57


# Beside independent columns.


def make_domain(columns: int) -> Domain:
    """Columns of 2 to 9 values."""
    return Domain(tuple(make_column(nested(2 + 3 * at % 8)) for at in range(columns)))


def measure_errors(domain: Domain, first: Codes, second: Codes) -> list[float]:
    """Return the mean total variation distance of all one-way and of all two-way tables."""
    errors = []
    for ways in (1, 2):
        distances = []
        for columns in combinations(range(len(domain)), ways):
            shape = domain.shape(columns, (0,) * ways)
            shares = [
                np.bincount(
                    np.ravel_multi_index([rows[:, x] for x in columns], shape),
                    minlength=math.prod(shape),
                )
                / len(rows)
                for rows in (first, second)
            ]
            distances.append(np.abs(shares[0] - shares[1]).sum() / 2)
        errors.append(float(np.mean(distances)))
    return errors


def synthesize_rows(domain: Domain, codes: Codes, plan: InformationPlan, seed: int) -> Codes:
    count = TableCounter(domain, codes)
    return synthesize.synthesize(domain, count, plan, bits=SeededRandomness(seed)).rows


def synthesize_alone(domain: Domain, codes: Codes, seed: int) -> Codes:
    """Rows of independent columns: no choices are paid for, and one-ways get everything."""
    alone = plan_information(epsilon=1.0, delta=1e-6, choices=0)
    plan = InformationPlan(alone.information, count_choices(len(domain)).total, 1e-9)
    with (
        mock.patch.object(stage, "limit_choices", return_value=0),
        mock.patch.object(synthesize, "share_one_ways", return_value=1 - TOTAL_SHARE),
    ):
        return synthesize_rows(domain, codes, plan, seed)


def compare(domain: Domain, codes: Codes) -> Floats:
    """Return one-way and two-way errors over those of independent columns, means of seeds."""
    plan = synthesize.plan_synthesis(domain, epsilon=1.0, delta=1e-6)
    ours, alone = [], []
    for seed in range(SEEDS):
        ours.append(measure_errors(domain, codes, synthesize_rows(domain, codes, plan, seed)))
        alone.append(measure_errors(domain, codes, synthesize_alone(domain, codes, seed + 50)))
    result: Floats = np.mean(ours, axis=0) / np.mean(alone, axis=0)
    return result


@pytest.mark.parametrize(("columns", "rows"), [(7, 500), (7, 1000), (40, 300)])
def test_few_rows_and_many_columns_are_no_worse_than_independent_ones(
    columns: int, rows: int
) -> None:
    domain = make_domain(columns)
    assert (compare(domain, related_rows(domain, rows, 3)) <= LARGEST).all()


def test_a_stated_size_that_is_too_small_for_relations_pays_for_no_choice() -> None:
    """Then the rows are those of independent columns with the whole budget, bit by bit."""
    domain = make_domain(7)
    codes = related_rows(domain, 500, 3)
    plan = synthesize.plan_synthesis(domain, epsilon=1.0, delta=1e-6, size=500)
    assert plan == plan_information(epsilon=1.0, delta=1e-6, choices=0)
    for seed in range(3):
        rows = synthesize_rows(domain, codes, plan, seed)
        assert np.array_equal(rows, synthesize_alone(domain, codes, seed))


def test_a_larger_stated_size_pays_for_all_choices() -> None:
    for size in (3_000, None):
        plan = synthesize.plan_synthesis(make_domain(7), epsilon=1.0, delta=1e-6, size=size)
        assert plan.choices == count_choices(7).total


def test_tables_that_are_asked_for_are_measured_without_choices() -> None:
    domain = make_domain(7)
    plan = synthesize.plan_synthesis(domain, epsilon=1.0, delta=1e-6, size=500)
    count = TableCounter(domain, related_rows(domain, 500, 3))
    done = synthesize.synthesize(domain, count, plan, bits=SeededRandomness(1), tables=[(0, 3)])
    measured = {measurement.columns for measurement in done.measurements}
    assert {columns for columns in measured if len(columns) > 1} == {(0, 3)}
    assert sum(measurement.information for measurement in done.measurements) <= plan.information


def test_few_rows_of_small_tables_keep_their_relations() -> None:
    """Tables of four cells are told from noise by some hundred rows."""
    domain = Domain((make_column(nested(2)),) * 5)
    one_way, two_way = compare(domain, related_rows(domain, 700, 3))
    assert one_way <= 1.5  # 1.16 in the mean of 40 seeds; of so few it varies
    assert two_way < 0.8


def test_the_number_of_rows_is_measured_as_well_as_centered_tables_need_it() -> None:
    """Their shares are differences over it: of skewed columns, its error is most of theirs."""
    assert find_rows_need(9) == 3 * find_rows_need(1) == 3 * find_rows_need(0)
    shares = []
    for size, columns in ((2, 6), (100, 1)):
        domain = Domain((make_column(nested(size)),) * columns)
        plan = synthesize.plan_synthesis(domain, epsilon=1.0, delta=1e-6)
        codes = np.zeros((400, columns), dtype=np.int32)
        done = synthesize.synthesize(
            domain, TableCounter(domain, codes), plan, bits=SeededRandomness(2)
        )
        rows = [some.information for some in done.measurements if not some.columns]
        shares.append(float(sum(rows)) / plan.information)
    assert shares[0] > 0.15
    assert shares[1] < 0.1


def test_enough_rows_are_much_better_than_independent_ones() -> None:
    domain = make_domain(7)
    one_way, two_way = compare(domain, related_rows(domain, 3000, 3))
    assert one_way <= 1.35  # 1.16 in the mean of 60 seeds; of so few it varies by 0.07
    assert two_way < 0.8


def test_choosing_tables_of_few_rows_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: all choices are made, however few the rows."""
    monkeypatch.setattr(stage, "limit_choices", lambda most, *_: most)
    monkeypatch.setattr(synthesize, "share_one_ways", lambda *_: 0.1)
    domain = make_domain(7)
    assert (compare(domain, related_rows(domain, 500, 3)) > LARGEST).any()
