"""What columns probably are: roles, public lists, and what was read from the data."""

from __future__ import annotations

import uuid

import pytest
from support.drafts import draft_column, find_outside_values, get_hierarchy_kind, parse_guess

from incrowd.curate.draft.draft import Draft
from incrowd.curate.draft.guess import guess_column
from incrowd.engine.table import RowsPerId
from incrowd.spec.file import parse_spec
from incrowd.spec.model import PersonId

STATES = (
    "Alabama Alaska Arizona Arkansas California Colorado Connecticut Delaware Florida Georgia "
    "Hawaii Idaho Illinois Indiana Iowa Kansas Kentucky Louisiana Maine Maryland Massachusetts "
    "Michigan Minnesota Mississippi Missouri Montana Nebraska Nevada Ohio Oklahoma Oregon "
    "Pennsylvania Tennessee Texas Utah Vermont Virginia Washington Wisconsin Wyoming"
)
FIFTY = [*STATES.split(), *(f"New {item}" for item in STATES.split()[:10])]


# Ids and row numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["patient_id", "PatientID", "pid", "subject_no", "id", "user_uuid"]
)
def test_an_id_that_repeats_says_whose_rows_they_are(name: str) -> None:
    guess = guess_column(name, [f"P{at:03}" for at in range(50)], 150)
    guess = guess.with_counts(RowsPerId(50, 3, 3), 150)
    assert (guess.role, guess.has_repeated_ids) == ("identifier", True)
    file = parse_spec(Draft("t.csv", (guess,)).yaml())
    assert file.spec.unit == PersonId(id=name)


@pytest.mark.parametrize(
    ("name", "values", "rows"),
    [
        ("patient_id", [f"P{at:03}" for at in range(50)], 50),  # each once
        ("patient_id", [f"P{at}" for at in range(5)], 150),  # too few to be people
        ("ward", [f"P{at:03}" for at in range(50)], 150),  # called otherwise
    ],
)
def test_other_ids_leave_one_row_to_each(name: str, values: list[str], rows: int) -> None:
    guess = guess_column(name, values, rows)
    if guess.identifies is not None:
        guess = guess.with_counts(RowsPerId(len(values), 1, -(-rows // len(values))), rows)
    assert not guess.has_repeated_ids
    assert parse_spec(Draft("t.csv", (guess,)).yaml()).spec.unit == "one row per person"


@pytest.mark.parametrize("name", ["x", "key1", "ward", "who"])
@pytest.mark.parametrize("often", [1, 30, 400])
def test_serial_codes_are_never_taken_for_diagnoses(name: str, often: int) -> None:
    """P00123 has the form of an ICD-10 code; so have whole blocks of serial numbers."""
    for texts in (
        [f"P{at:05d}" for at in range(100, 9000, 3)],
        [f"C{at:04d}" for at in range(1, 120)],
        [f"E{at:06d}" for at in range(0, 900_000, 3001)],
    ):
        guess = guess_column(name, texts, often * len(texts))
        assert "icd" not in (guess.hierarchy or "")
        assert guess.role in ("identifier", "drop") or name == "ward", guess


def test_diagnoses_and_zones_are_still_what_they_are() -> None:
    codes = ["E11.9", "I10", "J45.909", "M54.5", "K21.9", "F32.9", "E78.5", "J06.9", "N39.0"]
    assert "ICD" in guess_column("code", codes * 9, 900).reason
    assert guess_column("code", [f"E{at}" for at in range(100, 170)], 9000).role != "identifier"
    assert guess_column("ward_zone", ["Z01", "Z02", "Z03"], 900).role == "quasi"


def test_an_id_by_name_is_an_identifier_however_few_it_has() -> None:
    for name in ("patient_id", "hhid", "id", "subject_no"):
        guess = guess_column(name, ["P1", "P2", "P3", "P4"], 400)
        assert (guess.role, guess.hierarchy) == ("identifier", None)


@pytest.mark.parametrize("first", [0, 1, 1000])
def test_row_numbers_are_dropped(first: int) -> None:
    guess = guess_column("n", list(range(first, first + 200)), 200)
    assert (guess.role, guess.reason) == ("drop", "row numbers")
    gap = [*range(first, first + 199), first + 5000]
    assert guess_column("n", gap, 200).reason != "row numbers"
    assert (
        guess_column("n", list(range(first, first + 200)), 400).reason != "row numbers"
    )  # each twice


def test_uuids_are_identifiers_however_often_they_occur() -> None:
    result = [str(uuid.UUID(int=at * 7919 + 1)) for at in range(40)]
    for values in (result, [f"{{{item.upper()}}}" for item in result]):
        guess = guess_column("key", values, 1000)
        assert (guess.role, guess.hipaa) == ("identifier", "any other unique number")


def test_an_id_that_could_be_a_diagnosis_is_an_id() -> None:
    codes = [f"P{10000 + at}" for at in range(400)]
    assert guess_column("Patient-ID", codes, 400).role == "identifier"
    assert guess_column("code", codes, 400).role == "identifier"
    assert guess_column("diagnosis", codes, 400).hierarchy == "{icd: {version: 10}}"


def test_what_every_row_has_for_itself_is_an_identifier() -> None:
    assert draft_column("x", [f"the {at * at}th of x" for at in range(100)]).role == "identifier"
    assert draft_column("x", [str(at * at + 0.25) for at in range(100)]).role == "quasi"  # measured
    assert draft_column("x", [f"2020-01-{at:02}" for at in range(1, 29)]).role == "quasi"


# Public lists ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("a", ["DE", "FR", "IT", "JP"], "countries"),
        ("a", ["DEU", "FRA", "ITA", "JPN"], "countries"),
        ("a", ["Germany", "France", "Italy", "Japan"], "countries"),
        ("a", ["E11.9", "I10", "J45.0", "F32.1"], "icd"),
        ("a", ["SW1A 1AA", "M1 1AE", "CR2 6XH", "DN55 1PT"], "postcodes"),
        ("a", ["1011 AB", "3581 CD", "9712 GH"], "postcodes"),
        ("zip", ["10001", "94105", "60601", "02139"], "mask"),
        ("ZipCode", [10001, 94105, 60601], "mask"),
    ],
)
def test_public_lists_need_no_confirmation(name: str, values: list[object], expected: str) -> None:
    drafted = draft_column(name, values, times=50)
    assert (drafted.role, get_hierarchy_kind(drafted), drafted.confirm) == (
        "quasi",
        expected,
        ("role",),
    )
    assert find_outside_values(drafted, values) == []


def test_states_are_no_countries() -> None:
    assert get_hierarchy_kind(draft_column("a", ["CA", "GA", "DE", "PA"], times=50)) == "flat"


def test_diagnoses_are_sensitive_by_name() -> None:
    drafted = draft_column("icd_code", ["E11.9", "I10", "J45.0"], times=50)
    assert (drafted.role, get_hierarchy_kind(drafted), drafted.confirm) == (
        "sensitive",
        "icd",
        ("role",),
    )


# Lists -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        ["yes", "no"],
        ["Yes", "No"],
        ["M", "F"],
        ["male", "female"],
        [0, 1],
        [True, False],
        ["dead", "alive"],
    ],
)
def test_two_values_that_everybody_knows_need_no_confirmation(values: list[object]) -> None:
    drafted = draft_column("x", values, times=50)
    assert (get_hierarchy_kind(drafted), drafted.confirm) == ("flat", ("role",))
    assert find_outside_values(drafted, values) == []


@pytest.mark.parametrize(
    "values", [["Ann", "Bob"], ["yes", "perhaps"], ["3", "7"], ["M", "F", "Q"]]
)
def test_other_lists_were_read_from_the_data(values: list[str]) -> None:
    assert draft_column("x", values, times=50).confirm == ("role", "hierarchy")


def test_fifty_states_are_listed_where_there_are_many_rows() -> None:
    assert len(FIFTY) == 50
    drafted = draft_column("state", FIFTY, times=20)
    assert (drafted.role, get_hierarchy_kind(drafted)) == ("quasi", "flat")
    assert find_outside_values(drafted, FIFTY) == []
    assert drafted.confirm == ("role", "hierarchy")
    assert draft_column("state", FIFTY, times=5).role == "drop"


def test_free_text_is_dropped() -> None:
    texts = [f"came with {at} complaints, sent home" for at in range(300)]
    drafted = draft_column("remark", texts, times=2)
    assert (drafted.role, drafted.hierarchy) == ("drop", None)


def test_nothing_but_nulls_is_dropped() -> None:
    for values in ([None], ["", "  "], [float("nan")], []):
        assert parse_guess(guess_column("x", values, 30)).role == "drop"


def test_few_numbers_are_ordered_and_many_have_intervals() -> None:
    assert get_hierarchy_kind(draft_column("rooms", list(range(1, 13)), times=20)) == "order"
    assert get_hierarchy_kind(draft_column("rooms", list(range(1, 14)), times=20)) == "intervals"


def test_a_description_is_kept_with_the_reason() -> None:
    guess = guess_column("v101", ["yes", "no"], 50, "Ever #smoked:\n 'daily'")
    assert guess.reason.endswith("'Ever #smoked:\n 'daily''")
    assert parse_guess(guess).role == "quasi"  # it is a comment, of one line


def test_a_number_that_no_computer_holds_is_text() -> None:
    values: list[object] = ["9" * 1_000_001, "2", "4"]
    guess = guess_column("amount", values, 3)
    assert guess.hierarchy is None or "intervals" not in guess.hierarchy


@pytest.mark.parametrize("name", ["sampling_weight", "hhweight", "fnlwgt", "design_wt", "PERWT"])
def test_survey_weights_are_found_by_their_names(name: str) -> None:
    guess = guess_column(name, [310.0, 240.5, 35.25], 900)
    assert (guess.role, guess.reason) == ("weight", "survey weights, by name")
    assert parse_guess(guess).role == "weight"


@pytest.mark.parametrize(
    ("name", "values"),
    [("weight", [61.5, 80.0]), ("birth_weight", [3100, 2500]), ("sampling_weight", [0, 35.5]),
     ("survey_weight", ["heavy", "light"])],
)  # fmt: skip
def test_other_weights_are_no_survey_weights(name: str, values: list[object]) -> None:
    assert guess_column(name, values, 900).role != "weight"
