"""Identifiers: found by what they look like, and words that are not taken for them."""

from __future__ import annotations

import pytest
from support.drafts import draft_column, get_hierarchy_kind, get_intervals, parse_guess

from incrowd.curate.draft.draft import draft
from incrowd.curate.draft.guess import guess_column
from incrowd.engine.source import local_engine
from incrowd.spec.identifiers import HIPAA, identify_by_name, identify_by_values

N = 60
FAMILIES = [
    "Braund", "Cumings", "Heikkinen", "Futrelle", "Allen", "Moran", "McCarthy", "Palsson", "Nasser",
    "Johnson", "Sandstrom", "Bonnell", "Saundercock", "Andersson", "Vestrom", "Hewlett", "Rice",
    "Williams", "Masselmani", "Fynney",
]  # fmt: skip
TITLES = ("Mr.", "Mrs.", "Miss.", "Master.", "Dr.")
IDENTIFIERS = {
    "e-mail addresses": [f"p.{at}@mail{at % 7}.example.org" for at in range(N)],
    "telephone numbers": [f"+49 30 {at:03} {at * 7 + 1000}" for at in range(N)],
    "social security numbers": [f"{at + 123}-{at % 90 + 10}-{at + 4000}" for at in range(N)],
    "network addresses": [f"10.{at}.{at * 3 % 256}.{at + 1}" for at in range(N)],
    "account numbers": [f"DE{at + 10} 3704 0044 0532 {at + 1000} 00" for at in range(N)],
    "web addresses": [f"https://example.org/people/{at}" for at in range(N)],
    "names": [
        f"{FAMILIES[at % 20]}, {TITLES[at % 5]} Owen {'ABC'[at // 20]}. Harris" for at in range(N)
    ],
}


@pytest.mark.parametrize("what", IDENTIFIERS)
def test_identifiers_are_found_under_an_innocent_name(what: str) -> None:
    guess = guess_column("info", IDENTIFIERS[what], N)
    assert (guess.role, guess.hipaa) == ("identifier", what)
    assert parse_guess(guess).hierarchy is None


@pytest.mark.parametrize("what", [name for name in IDENTIFIERS if name != "names"])
def test_identifiers_that_repeat_are_found_too(what: str) -> None:
    """Five visits of each: nobody would call them values of their own."""
    guess = guess_column("info", IDENTIFIERS[what], 5 * N)
    assert (guess.role, guess.hipaa) == ("identifier", what)


@pytest.mark.parametrize("what", IDENTIFIERS)
def test_a_few_others_among_them_do_not_hide_them(what: str) -> None:
    mixed = [*IDENTIFIERS[what], "none given", "refused", "see file"]
    assert guess_column("info", mixed, len(mixed)).hipaa == what
    assert guess_column("info", ["NA", *IDENTIFIERS[what]], N + 1).hipaa == what


@pytest.mark.parametrize(
    "form",
    [
        "(030) {0:03}-4567",
        "555-{0:03}-4567",
        "0049 30 {0:03}45",
        "+1{0:03}5551234",
        "6{0:02} 123 456",
    ],
)
def test_telephone_numbers_as_people_write_them(form: str) -> None:
    """Also those in threes, which numbers with spaces between thousands look like."""
    values = [form.format(at) for at in range(N)]
    assert guess_column("info", values, 3 * N).role == "identifier"


@pytest.mark.parametrize(
    "values",
    [
        [f"2001:db8:0:1:0:0:{at:x}:1" for at in range(N)],
        [f"2001:db8::{at:x}" for at in range(N)],
        [f"fe80::{at:x}:1" for at in range(N)],
        [f"aa:bb:cc:dd:ee:{at:02x}" for at in range(N)],
    ],
)
def test_addresses_of_devices(values: list[str]) -> None:
    guess = guess_column("info", values, 3 * N)
    assert guess.role == "identifier"
    assert guess.hipaa in ("network addresses", "device identifiers")


def test_coordinates_are_places() -> None:
    guess = guess_column("x", [f"{52 + at * 0.0137:.4f}" for at in range(N)], N)
    assert guess.hipaa == "geographic subdivisions"
    assert get_intervals(parse_guess(guess)).step < 1  # generalized, not left out


WORDS = {
    "towns": ["New York", "San Jose", "Fort Worth", "El Paso", "Las Vegas", "Berlin", "Paris"],
    "occupations": ["Sales Manager", "Nurse", "Machine Operator", "Adm-clerical", "Farm Worker"],
    "days": ["2020-04-03", "2020-04-05", "2020-05-07", "2020-06-09"],
    "days as people write them": ["03.04.2020", "05.04.2020", "17.05.2020", "19.06.2020"],
    "days and times": ["2020-04-03 10:00:00", "2020-04-05 11:30:00", "2020-05-07 09:00:00"],
    "diagnoses": ["E11.9", "I10", "J45.0", "F32.1", "M54.5"],
    "decimals": ["12.3456", "1234.567", "0.25", "7.5"],
    "long decimals": ["54.30000000", "1.123456789", "40.40000153", "0.99999999"],
    "whole numbers": ["5551234", "5551235", "5551236", "1000000"],
    "thousands": ["1,234,567", "2,345,678", "3,456,789"],
    "ages": ["18-24", "25-34", "35-64", "65+"],
    "versions": ["1.2.3", "1.2.4", "1.10.0"],
    "incomes": ["10000-19999", "20000-29999", "30000-39999"],
    "seasons": ["2018-2019", "2019-2020", "2020-2021"],
}


@pytest.mark.parametrize("what", WORDS)
def test_words_that_repeat_are_not_taken_for_identifiers(what: str) -> None:
    guess = guess_column("info", WORDS[what], 100 * len(WORDS[what]))
    assert guess.role == "quasi", guess.reason
    assert guess.hipaa in (None, "dates")


def test_many_towns_that_repeat_are_no_names() -> None:
    towns = [f"{first} {last}" for first in ("New", "Old", "Upper", "Lower") for last in FAMILIES]
    assert identify_by_values(towns, 10 * len(towns)) is None
    assert identify_by_values(towns, len(towns)) == "names"  # nobody could tell


@pytest.mark.parametrize("values", [["a@b.org"], ["a@b.org", "c@d.org"], []])
def test_so_few_tell_nothing(values: list[str]) -> None:
    assert identify_by_values(values, 100) is None


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("e_mail", "e-mail addresses"),
        ("home_phone", "telephone numbers"),
        ("ssn", "social security numbers"),
        ("date_of_birth", "dates"),
        ("last_name", "names"),
        ("postcode", "geographic subdivisions"),
        ("patient_id", "any other unique number"),
        ("enamel", None),
        ("telling", None),
        ("update", None),
        ("income", None),
    ],
)
def test_names_of_columns(name: str, what: str | None) -> None:
    assert identify_by_name(name) == what


def test_what_is_called_like_an_identifier_is_one_whatever_it_holds() -> None:
    assert draft_column("LastName", ["x", "y", "z"], times=30).role == "identifier"
    assert draft_column("HomePhone", ["1", "2", "3"], times=30).role == "identifier"
    city = draft_column("city", ["Berlin", "Paris", "Rome"], times=30)
    assert (city.role, get_hierarchy_kind(city)) == ("quasi", "flat")  # a place can be generalized


# What is said of all of them ---------------------------------------------------------------------


def test_what_was_found_is_named_with_its_columns() -> None:
    columns = {"a": IDENTIFIERS["names"], "b": IDENTIFIERS["e-mail addresses"], "c": ["x"] * N}
    drafted_spec = draft(local_engine().from_columns(columns), name="t.csv")
    identifiers = drafted_spec.describe_identifiers()
    assert "names (a); e-mail addresses (b)." in identifiers
    assert "Check free text yourself" in identifiers
    assert dict(drafted_spec.list_hipaa_columns()) == {
        **dict.fromkeys(HIPAA, ()), "names": ("a",), "e-mail addresses": ("b",),
    }  # fmt: skip


@pytest.mark.parametrize("values", [["x", "y"], [None, None], ["1", "2"]])
def test_that_nothing_was_found_is_never_said_alone(values: list[str | None]) -> None:
    """Who reads "none" stops looking: what was looked at is said, and that it is no proof."""
    table = local_engine().from_columns({"c": values * 30})
    identifiers = draft(table, name="t.csv").describe_identifiers()
    assert "by name and by up to 1,000 values of each column" in identifiers
    assert "This is no proof" in identifiers
    assert "personal data" in identifiers
    assert "none" not in identifiers.lower().split()
