"""What is public by name and meaning: the same whoever is in the table."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from support.drafts import draft_column, find_outside_values, get_hierarchy_kind, get_intervals

from incrowd.curate.draft.public_values import is_known_set, suggest_public_range


@pytest.mark.parametrize("name", ["birth_year", "YearOfBirth", "yob"])
def test_years_of_birth_need_nobody(name: str) -> None:
    old, young = (draft_column(name, list(range(low, low + 30)), times=9) for low in (1921, 1980))
    assert old == young
    assert old.confirm == ("role",)
    assert get_intervals(old).low == 1900
    assert get_intervals(old).high == dt.datetime.now(dt.UTC).year
    assert draft_column(name, [1899, *range(1921, 1950)], times=9).confirm == ("role", "hierarchy")


def test_years_of_birth_may_have_two_digits() -> None:
    low, high = (draft_column("birth_year", list(range(x, x + 30)), times=9) for x in (0, 60))
    assert low == high
    assert low.confirm == ("role",)
    assert (get_intervals(low).low, get_intervals(low).high) == (0, 99)
    assert draft_column("birth_year", [*range(60, 99), 100], times=9).confirm != ("role",)
    assert draft_column("birth_weight", list(range(60, 90)), times=9).confirm != ("role",)


def test_percentages_go_from_0_to_100() -> None:
    low, high = (
        draft_column("pct_urban", values, times=9) for values in ([1, 2.5, 4], [88, 99, 3])
    )
    assert low == high
    assert low.confirm == ("role",)
    assert find_outside_values(low, [0, 37.5, 100]) == []
    assert draft_column("pct_urban", [1, 2, 101], times=9).confirm == ("role", "hierarchy")
    assert draft_column("pct_urban", [0.1, 0.2, 0.9], times=9).confirm == ("role", "hierarchy")


def test_a_scale_is_asked_for_because_its_end_was_met() -> None:
    for values, high in (([1, 2, 4], 5), ([1, 2, 3, 6], 7), ([0, 9, 10], 10)):
        drafted = draft_column("trust_police", values, times=30)
        assert get_intervals(drafted).high == high
        assert drafted.confirm == ("role", "hierarchy")
    assert get_hierarchy_kind(draft_column("rooms", [1, 2, 4], times=30)) == "order"


def test_states_are_listed_whole() -> None:
    for name, values in (
        ("state", ["CA", "GA", "DE"]), ("home", ["Texas", "Ohio", "New York"]),
        ("x", ["AK", "AL", "AR", "AZ", "CA", "CO", "CT", "DE", "FL", "GA", "HI", "IA"]),
    ):  # fmt: skip
        drafted = draft_column(name, values, times=50)
        assert get_hierarchy_kind(drafted) == "groups"
        assert drafted.confirm == ("role",)
        assert find_outside_values(drafted, values) == []
    assert get_hierarchy_kind(draft_column("a", ["CA", "GA", "DE", "PA"], times=50)) == "flat"


@pytest.mark.parametrize("words", ["Ja Nein", "OUI NON", "sí no", "sim não", "tak nie", "да нет"])
def test_yes_and_no_are_known(words: str) -> None:
    assert is_known_set(words.split())
    assert draft_column("x", words.split(), times=50).confirm == ("role",)
    assert not is_known_set([*words.split(), "maybe"])
    assert not is_known_set(words.split()[:1])


def test_ranges_are_suggested_by_name_alone() -> None:
    assert suggest_public_range("age") == (Decimal(0), Decimal(119))
    assert suggest_public_range("hours_per_week") == (Decimal(0), Decimal(168))
    assert suggest_public_range("wage") is None
