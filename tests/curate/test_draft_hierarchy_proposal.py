"""Ladders for numbers and dates: all that was met lies in them, and their levels are nested."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from support.drafts import (
    draft_column,
    find_outside_values,
    get_hierarchy_kind,
    get_intervals,
    make_quasi_column,
)

from incrowd.codes.values import canonicalize_value
from incrowd.curate.draft import hierarchy_proposal
from incrowd.spec.build import build_hierarchy
from incrowd.spec.hierarchies import Dates, Order
from incrowd.spec.model import Column


def many(low: int, high: int, places: int) -> st.SearchStrategy[list[Decimal]]:
    """Columns of numbers with so many decimals at most, as they are written canonically."""
    numbers = st.decimals(low, high, places=places).map(
        lambda x: Decimal(canonicalize_value(x) or "0")
    )
    return st.lists(numbers, min_size=2, max_size=60, unique=True)


# Some of these build a hundred thousand steps each: to find a smaller failure would take long.
FEWER = settings(max_examples=20, phases=(Phase.explicit, Phase.reuse, Phase.generate))
COLUMNS = st.one_of(
    many(0, 100, 0), many(-(10**6), 10**6, 0), many(-5, 5, 3), many(0, 10**12, 0), many(10, 12, 6),
    many(10**9, 10**9 + 50, 0), many(-(10**4), -(10**4) + 2, 2),
)  # fmt: skip


def ordered(column: Column) -> tuple[str, ...]:
    """The values that an order lists."""
    assert column.hierarchy is not None
    declared = column.hierarchy.declaration
    assert isinstance(declared, Order)
    return declared.values


def dates(column: Column) -> Dates:
    assert column.hierarchy is not None
    declared = column.hierarchy.declaration
    assert isinstance(declared, Dates)
    return declared


def assert_nested(column: Column) -> None:
    """Every level is made of whole groups of the level below, up to one root."""
    levels = list(zip(*build_hierarchy(column, folder=Path()).list_rows(), strict=True))
    for below, above in itertools.pairwise(levels):
        assert len(set(zip(below, above, strict=True))) == len(set(below)) > len(set(above))
    assert len(set(levels[-1])) == 1


# Numbers -----------------------------------------------------------------------------------------


@FEWER
@given(COLUMNS)
def test_every_number_that_was_met_lies_inside(numbers: list[Decimal]) -> None:
    column = make_quasi_column(hierarchy_proposal.propose_numbers(numbers))
    assert find_outside_values(column, numbers) == []
    assert find_outside_values(column, [float(x) for x in numbers]) == []
    declared = get_intervals(column)
    assert (declared.high - declared.low) / declared.step <= 200_000


@given(COLUMNS)
def test_widths_rise_and_divide_one_another(numbers: list[Decimal]) -> None:
    declared = get_intervals(make_quasi_column(hierarchy_proposal.propose_numbers(numbers)))
    for narrow, wide in itertools.pairwise((declared.step, *declared.widths)):
        assert narrow < wide
        assert wide % narrow == 0, declared.widths


@given(COLUMNS)
def test_no_gap_lies_between_two_widths(numbers: list[Decimal]) -> None:
    """A column must not go from fine to hardly anything: 10, then 50."""
    declared = get_intervals(make_quasi_column(hierarchy_proposal.propose_numbers(numbers)))
    for narrow, wide in itertools.pairwise(declared.widths):
        assert wide / narrow in (2, 3), declared.widths


def test_widths_of_years_and_degrees_and_runs_of_lists_rise_by_two_or_three() -> None:
    for last in range(1910, 2100, 10):
        years = [Decimal(1900), Decimal(last + 5)]
        widths = get_intervals(make_quasi_column(hierarchy_proposal.propose_years(years))).widths
        assert all(wide / narrow in (2, 3) for narrow, wide in itertools.pairwise(widths))
        assert 2 <= math.ceil((last + 10 - 1900) / int(widths[-1])) <= 3
    for high in (1, 3, 10, 90):
        column = hierarchy_proposal.propose_degrees(
            [Decimal("0.5"), Decimal(high) + Decimal("0.2")]
        )
        widths = get_intervals(make_quasi_column(column)).widths
        assert all(wide / narrow in (2, 3) for narrow, wide in itertools.pairwise(widths))
    for size in range(4, 60):
        proposal = hierarchy_proposal.propose_listed_order([f"v{at}" for at in range(size)])
        declared = make_quasi_column(proposal).hierarchy
        assert declared is not None
        assert isinstance(declared.declaration, Order)
        runs = declared.declaration.runs
        assert all(wide == 2 * narrow for narrow, wide in itertools.pairwise((1, *runs)))
        assert 2 <= math.ceil(size / runs[-1]) <= 3


@given(COLUMNS)
def test_the_coarsest_is_about_half_the_range(numbers: list[Decimal]) -> None:
    """More would be one interval and a rest, less would leave many at the last step to nothing."""
    declared = get_intervals(make_quasi_column(hierarchy_proposal.propose_numbers(numbers)))
    spread = declared.high - declared.low
    assume(spread > 10 * declared.step)
    assert spread / 2 <= declared.widths[-1] <= spread * Decimal("0.7")


@given(COLUMNS)
def test_the_range_is_not_far_beyond_the_data(numbers: list[Decimal]) -> None:
    """Rounded outwards, by a part of the range, and not to zero or to the next power of ten."""
    declared = get_intervals(make_quasi_column(hierarchy_proposal.propose_numbers(numbers)))
    spread = max(numbers) - min(numbers)
    assume(spread > 20 * declared.step)
    assert declared.low <= min(numbers) <= max(numbers) <= declared.high + declared.step
    assert declared.high - declared.low <= 2 * spread + spread / 5


@FEWER
@given(st.lists(st.integers(0, 500), min_size=13, max_size=40, unique=True))
def test_no_level_says_what_another_does(tenths: list[int]) -> None:
    numbers = [Decimal(canonicalize_value(x / 10) or "0") for x in tenths]
    assert_nested(make_quasi_column(hierarchy_proposal.propose_numbers(numbers)))


def test_one_number_alone_has_a_ladder() -> None:
    for number in ("0", "7", "-3", "0.25", "1000000"):
        assert (
            find_outside_values(
                make_quasi_column(hierarchy_proposal.propose_numbers([Decimal(number)])), [number]
            )
            == []
        )


# Ages and years ----------------------------------------------------------------------------------


def test_ages_need_nobody() -> None:
    """From 0 to 89, and the rest as one, whoever is in the table."""
    young, old = (draft_column("age", list(range(low, low + 20)), times=5) for low in (18, 85))
    assert young == old
    assert young.confirm == ("role",)
    assert find_outside_values(young, [0, 17, 89, 90, 104]) == []
    assert_nested(young)
    hierarchy = build_hierarchy(young, folder=Path())
    labels = [hierarchy.values[code] for code in hierarchy.encode([88, 89, 90, 104])]
    assert labels == ["88", "89", ">89", ">89"]


@pytest.mark.parametrize("name", ["age", "Age", "age_at_death", "patient_age", "AgeYears"])
def test_ages_by_name(name: str) -> None:
    assert draft_column(name, list(range(18, 60)), times=5).confirm == ("role",)


@pytest.mark.parametrize("name", ["stage", "page", "wage", "village", "average"])
def test_not_all_that_ends_like_age_is_one(name: str) -> None:
    assert draft_column(name, list(range(18, 60)), times=5).confirm == ("role", "hierarchy")


def test_ages_that_nobody_has_are_none() -> None:
    for odd in ([997, 998, 999], [-1, -8, -9]):
        assert draft_column("age", [*range(18, 60), *odd], times=5).confirm == ("role", "hierarchy")


@given(st.lists(st.integers(1800, 2100), min_size=1, unique=True))
def test_years_go_by_decades(years: list[int]) -> None:
    column = make_quasi_column(hierarchy_proposal.propose_years([Decimal(year) for year in years]))
    assert find_outside_values(column, years) == []
    declared = get_intervals(column)
    assert declared.low % 10 == 0
    assert declared.high % 10 == 9 or declared.high == dt.datetime.now(dt.UTC).year
    assert declared.low > min(years) - 10
    assert declared.high < max(years) + 10
    assert_nested(column)


def test_years_by_their_name_and_by_their_values() -> None:
    assert get_intervals(draft_column("ModelYear", [1931, *range(1950, 1990)], times=5)).low == 1930
    assert get_intervals(draft_column("built", list(range(1950, 1990)), times=5)).low == 1950
    assert get_intervals(draft_column("meters", list(range(150, 2500, 7)), times=5)).low == 0


# Degrees and amounts -----------------------------------------------------------------------------


@given(st.lists(st.decimals(-180, 179, places=4), min_size=2, max_size=40, unique=True))
def test_degrees_east_and_west(degrees: list[Decimal]) -> None:
    declared = get_intervals(make_quasi_column(hierarchy_proposal.propose_degrees(degrees)))
    assert declared.low <= min(degrees) <= max(degrees) <= declared.high  # both ends are included
    assert declared.high - declared.low <= max(degrees) - min(degrees) + 2
    assert declared.step == Decimal("0.01")
    for narrow, wide in itertools.pairwise((declared.step, *declared.widths)):
        assert narrow < wide
        assert wide % narrow == 0


def test_west_of_greenwich() -> None:
    values = [f"-{122 + at / 10000}" for at in range(1, 400)]
    assert find_outside_values(draft_column("longitude", values, times=3), values) == []


@given(
    st.lists(st.decimals(1, 1000, places=2), min_size=19, max_size=60, unique=True),
    st.decimals(10**5, 10**8, places=2),
)
def test_skewed_amounts_have_cuts_that_nest(amounts: list[Decimal], largest: Decimal) -> None:
    numbers = [*amounts, largest]
    assert hierarchy_proposal.is_skewed(numbers)
    declared = get_intervals(make_quasi_column(hierarchy_proposal.propose_amounts(numbers)))
    assert declared.low <= min(numbers) <= max(numbers) <= declared.high  # both ends are included
    fine, *coarser = declared.cuts
    for cuts in (fine, *coarser):
        assert list(cuts) == sorted(set(cuts))
        assert declared.low < cuts[0] <= cuts[-1] <= declared.high
    for below, above in itertools.pairwise(declared.cuts):
        assert set(above) < set(below)


def test_few_large_amounts_do_not_flatten_the_others() -> None:
    values = [*range(10, 60), 100_000]
    drafted = draft_column("donation", values, times=3)
    assert get_intervals(drafted).cuts
    hierarchy = build_hierarchy(drafted, folder=Path())
    rows = hierarchy.list_rows()
    assert len({rows[code][1] for code in hierarchy.encode(values)}) > 3
    assert not get_intervals(draft_column("donation", list(range(10, 60)), times=3)).cuts
    debts = draft_column("balance", [*values, -5], times=3)  # below zero no power of ten leads
    assert find_outside_values(debts, [*values, -5]) == []


def test_the_largest_amount_lies_inside_though_it_is_next_to_a_power_of_ten() -> None:
    values = [*range(10, 60), "99999.9"]
    assert find_outside_values(draft_column("donation", values, times=3), values) == []


# Days --------------------------------------------------------------------------------------------


@given(st.lists(st.dates(dt.date(1300, 1, 1), dt.date(2200, 1, 1)), min_size=1))
def test_every_day_that_was_met_lies_inside(days: list[dt.date]) -> None:
    declared = dates(make_quasi_column(hierarchy_proposal.propose_days(days)))
    assert declared.low <= min(days) <= max(days) <= declared.high
    short = max(days).year - min(days).year <= 2
    assert ("decade" in declared.levels) is not short
    assert (declared.low.month, declared.low.day) == (1, 1)
    assert (declared.high.month, declared.high.day) == (12, 31)
    assert min(days).year - declared.low.year <= (0 if short else 9)
    assert declared.high.year - max(days).year <= (0 if short else 9)


def test_early_days_have_a_ladder() -> None:
    values = ["0900-01-01", "0901-05-02", "0950-12-31"]
    assert find_outside_values(draft_column("seen", values, times=30), values) == []


def test_days_that_stand_for_nothing_are_proposed_as_null() -> None:
    column = draft_column("seen", ["0001-01-01", "2020-05-06", "9999-12-31"], times=30)
    assert column.written is not None
    assert column.written.nulls == ("0001-01-01", "9999-12-31")
    assert dates(column).low.year == 2020


# Ordered texts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        ["70", "80", "100"],
        ["18-24", "25-34", "35-64", "65+"],
        ["1. < HS Grad", "2. HS Grad", "3. Some College", "10. Advanced"],
        ["< 5", "10 to 20", "> 30"],
        ["-10", "-2", "0", "3"],
        ["0.5", "2", "10"],
    ],
)
def test_texts_that_begin_with_numbers_are_ordered_by_them(values: list[str]) -> None:
    drafted = draft_column("x", sorted(values), times=40)
    assert get_hierarchy_kind(drafted) == "order"
    assert ordered(drafted) == tuple(values)
    assert drafted.confirm == ("role", "hierarchy")
    assert find_outside_values(drafted, values) == []


@pytest.mark.parametrize(
    "values",
    [["<18", "18-24", "25+"], ["red", "green", "blue"], ["1a", "1b", "2"], ["1", "2x y", "z"]],
)
def test_texts_without_an_order_are_a_list(values: list[str]) -> None:
    assert get_hierarchy_kind(draft_column("x", values, times=40)) == "flat"


def test_words_that_have_an_order() -> None:
    assert ordered(draft_column("x", ["High", "Low", "Medium"], times=40)) == (
        "Low",
        "Medium",
        "High",
    )
    assert ordered(draft_column("x", ["severe", "none", "mild"], times=40)) == (
        "none",
        "mild",
        "severe",
    )


@given(st.lists(st.integers(-50, 50), min_size=3, max_size=12, unique=True))
def test_runs_of_ordered_values_nest(values: list[int]) -> None:
    ladder = hierarchy_proposal.propose_number_order([str(x) for x in values])
    assert ladder is not None
    column = make_quasi_column(ladder)
    assert ordered(column) == tuple(str(x) for x in sorted(values))
    build_hierarchy(column, folder=Path())
    assert find_outside_values(column, values) == []


def test_a_drafted_range_ends_in_the_future_only_where_values_do() -> None:
    now = dt.datetime.now(dt.UTC).year
    days = [dt.date(now - 30, 1, 1), dt.date(now, 1, 1)]
    assert f"to: {now}-12-31" in hierarchy_proposal.propose_days(days).hierarchy
    assert (
        f"to: {now},"
        in hierarchy_proposal.propose_years([Decimal(now - 30), Decimal(now)]).hierarchy
    )
    ahead = now + 21
    assert f"to: {ahead // 10 * 10 + 9}-12-31" in (
        hierarchy_proposal.propose_days([*days, dt.date(ahead, 1, 1)]).hierarchy
    )
    assert f"to: {(now - 20) // 10 * 10 + 9}-12-31" in (
        hierarchy_proposal.propose_days(
            [dt.date(now - 40, 1, 1), dt.date(now - 20, 1, 1)]
        ).hierarchy
    )
