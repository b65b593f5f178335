"""Risk of a table before release, from the table to its figures."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from support.survey import GUIDE_COLUMNS, guide_table

import incrowd as ic
from incrowd.measure.table_risk import choose_largest_set

HOMES = [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_the_survey_of_the_guide() -> None:
    """Every record has the figures of table 4.1, wherever they are listed."""
    result = ic.risk(pl.DataFrame(guide_table()), columns=GUIDE_COLUMNS, weight="weight")
    assert (result.rows, result.groups, result.uniques) == (10, 7, 4)
    assert result.violating == {2: 4, 3: 10, 5: 10}  # example 4.4
    assert result.individual.mean == pytest.approx(0.01582, abs=6e-6)
    assert result.population == 1570
    assert sum(result.records["rows"]) == 10
    by_weight = dict(
        zip(result.records["population_frequency"], result.records["risk"], strict=True)
    )
    assert by_weight[360] == pytest.approx(0.005424520, abs=6e-10)
    assert by_weight[262] == pytest.approx(0.007403834, abs=6e-10)
    assert result.records["risk"] == sorted(result.records["risk"], reverse=True)
    assert max(result.records["suda"]) == 12
    json.dumps(result.as_dict(), allow_nan=False)


def test_households_join_the_risks_of_their_members() -> None:
    table = guide_table(HOMES)
    result = ic.risk(
        pl.DataFrame(table), columns=GUIDE_COLUMNS, weight="weight", household="household"
    )
    assert result.household is not None
    risks = {1: 0.005424520, 2: 0.025096439, 3: 0.028247279, 4: 0.029010932, 5: 0.007403834}
    others = {1: 0.005424520, 2: 0.012563425, 3: 0.012563425, 4: 0.025096439, 5: 0.007403834}
    expected = {home: 1 - (1 - risks[home]) * (1 - others[home]) for home in risks}
    listed = zip(result.records["household"], result.records["household_risk"], strict=True)
    for home, risk in listed:
        assert risk == pytest.approx(expected[int(str(home))], abs=2e-9)
    assert result.household.expected == pytest.approx(2 * sum(expected.values()), abs=2e-8)


def test_a_record_without_a_household_stands_alone() -> None:
    table = pl.DataFrame({"sex": ["f", "f", "m"], "home": ["1", None, None], "w": [4, 4, 5]})
    result = ic.risk(table, columns=["sex"], weight="w", household="home")
    assert result.household is not None
    assert result.household.mean == pytest.approx(result.individual.mean)


def test_a_population_table_is_counted() -> None:
    sample = pl.DataFrame({"sex": ["f", "f", "m"], "age": [30, 30, 41]})
    people = pl.DataFrame({"age": ["30"] * 8 + ["41", "41"], "sex": ["f"] * 8 + ["m", "f"]})
    result = ic.risk(sample, columns=["sex", "age"], population=people, k=2)
    assert result.basis == "table"
    assert (result.smallest_map, result.below_map[2], result.below_map[3]) == (1, 1, 1)
    assert result.individual.mean == pytest.approx((1 / 8 + 1 / 8 + 1) / 3)
    assert result.missing == 0
    stranger = pl.DataFrame({"sex": ["x"], "age": [30]})
    assert ic.risk(stranger, columns=["sex", "age"], population=people).missing == 1


def test_a_size_spreads_evenly_and_estimates_uniqueness() -> None:
    sample = pl.DataFrame({"age": [*range(20), *range(5)]})
    result = ic.risk(sample, columns=["age"], population=250)
    assert result.basis == "size"
    assert result.uniqueness is not None
    assert result.uniqueness.fraction == 0.1
    assert result.sample_threshold[5] == 3
    assert ic.risk(sample, columns=["age"]).uniqueness is None


def test_a_null_is_a_value() -> None:
    table = pl.DataFrame({"a": ["x", None, None], "b": ["1", "1", "1"]})
    assert ic.risk(table, columns=["a", "b"]).violating[2] == 1


def test_a_table_with_counts_has_their_rows() -> None:
    """A release with `rows: counted` is judged by the rows that it stands for."""
    table = pl.DataFrame({"sex": ["f", "m"], "count": [30, 12]})
    result = ic.risk(table, columns=["sex"])
    assert (result.rows, result.uniques, result.individual.highest) == (42, 0, 1 / 12)


def test_columns_may_be_called_like_figures() -> None:
    table = pl.DataFrame({"rows": ["a", "b"], "risk": ["c", "c"]})
    result = ic.risk(table, columns=["rows", "risk"])
    assert result.records["rows"] == ["a", "b"]
    assert result.records["risk_"] == [1.0, 1.0]


def test_the_spec_names_columns_and_k() -> None:
    spec = {
        "columns": {
            "sex": {"role": "quasi", "hierarchy": "flat"},
            "name": {"role": "identifier"},
        },
        "release": {"method": "k-anonymity", "k": 4},
    }
    table = pl.DataFrame({"sex": ["f", "m", "m"], "name": ["a", "b", "c"]})
    result = ic.risk(table, spec)
    assert (result.columns, result.k) == (("sex",), 4)


def test_one_row_of_each_person_is_judged() -> None:
    spec = {
        "unit": {"id": "who"},
        "columns": {
            "sex": {"role": "quasi", "hierarchy": "flat"},
            "who": {"role": "identifier"},
        },
    }
    table = pl.DataFrame({"sex": ["f", "f", "f"], "who": [1, 1, 2]})
    assert ic.risk(table, spec).rows == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "No quasi-identifiers are named"),
        ({"columns": ["height"]}, "Column 'height': not in the table"),
        ({"columns": ["sex"], "weight": "sex"}, "be none of the quasi-identifiers"),
        ({"columns": ["w"], "weight": "sex"}, "Column 'sex': 'f' is not a positive number"),
        ({"columns": ["sex"], "weight": "v", "household": "v"}, "be another column than"),
        ({"columns": ["sex"], "weight": "w"}, "Column 'w': '0' is not a positive number"),
        ({"columns": ["sex"], "population": 0.5}, "'population' parameter must be an integer"),
        ({"columns": ["sex"], "threshold": 2}, "'threshold' parameter must lie strictly"),
        ({"columns": ["sex"], "largest_set": 0}, "'largest_set' parameter must be an integer"),
        (
            {"columns": ["sex"], "weight": "v", "population": "people.csv"},
            "'population' parameter must be a number where there are weights",
        ),
    ],
)  # fmt: skip
def test_mistakes_are_named(options: dict[str, Any], words: str) -> None:
    table = pl.DataFrame({"sex": ["f", "m"], "w": [0, 1], "v": [1, 1]})
    with pytest.raises(ic.IncrowdError, match=words):
        ic.risk(table, **options)


def test_sets_stay_few_enough() -> None:
    assert choose_largest_set(9, None) == 3
    assert choose_largest_set(2, None) == 2
    assert choose_largest_set(60, None) == 2
    assert choose_largest_set(300, None) == 1
    table = pl.DataFrame({f"c{at}": [at] for at in range(40)})
    with pytest.raises(ic.ParameterError, match="leave at most 20,000 sets of 40 columns"):
        ic.risk(table, columns=table.columns, largest_set=4)
