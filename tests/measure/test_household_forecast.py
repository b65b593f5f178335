"""What to expect of whole households, against sums over all types of tiny domains."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from incrowd.arrays import Floats
from incrowd.measure.forecast import GroupShares, TableForecast
from incrowd.measure.household_forecast import HouseholdForecast

REGION, AGE = np.array([0.7, 0.3]), np.array([0.6, 0.3, 0.1])
COLUMNS = {
    "region": {0: GroupShares.from_shares(REGION), 1: GroupShares.from_shares(np.ones(1))},
    "age": {0: GroupShares.from_shares(AGE), 1: GroupShares.from_shares(np.ones(1))},
}
LEAST = 20


def publish(rows: Floats) -> Floats:
    return np.asarray(rows >= LEAST, dtype=np.float64)


def sum_over_types(size: float, people: int) -> float:
    """The expected share of published households, in which the same people have j! orders."""
    published = 0.0
    for number in range(1, people + 1):
        for region, ages in itertools.product(REGION, itertools.product(AGE, repeat=number)):
            share = float(region * np.prod(ages))
            mean = size / people * share * math.factorial(number)
            below = sum(math.exp(-mean) * mean**j / math.factorial(j) for j in range(LEAST - 1))
            published += share * (1 - below) / people
    return published


@pytest.mark.parametrize(("size", "people"), [(300, 1), (500, 2), (2000, 3), (20_000, 3)])
def test_the_forecast_is_the_sum_over_all_types(size: int, people: int) -> None:
    forecast = HouseholdForecast(COLUMNS, publish, ["region"], people)
    share = forecast.predict_share({"region": 0, "age": 0}, size).rows
    assert share == pytest.approx(sum_over_types(size, people), abs=0.03)


def test_a_household_of_one_person_is_a_row() -> None:
    lone = HouseholdForecast(COLUMNS, publish, ["region"], 1)
    row = TableForecast(COLUMNS, publish)
    for size in (100, 400, 3000):
        for levels in ({"region": 0, "age": 0}, {"region": 1, "age": 0}):
            expected = row.predict_share(levels, size).rows
            assert lone.predict_share(levels, size).rows == pytest.approx(expected, abs=0.02)


def test_more_people_need_more_households() -> None:
    sizes = [
        HouseholdForecast(COLUMNS, publish, ["region"], people).find_table_size(
            {"region": 0, "age": 0}, 0.9
        )
        for people in (1, 2, 4)
    ]
    assert sizes == sorted(sizes)
    assert sizes[2] > 3 * sizes[0]


def test_levels_are_chosen_for_all_people_of_a_household_together() -> None:
    forecast = HouseholdForecast(COLUMNS, publish, ["region"], 3)
    assert forecast.find_finest_levels(60, 0.9)["age"] == 1
    assert Counter(forecast.find_finest_levels(1e6, 0.9).values()) == {0: 2}
