"""Ids of people: found by their names and by counts of the whole table, and never published."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
import pytest
from support.cli import run_command

from incrowd.curate import confirm as task
from incrowd.curate.check import check
from incrowd.curate.draft.draft import draft
from incrowd.engine.source import local_engine, open_table
from incrowd.engine.table import Table
from incrowd.methods.person_id import find_ids
from incrowd.spec.file import SpecFile, parse_spec, read_spec_file
from incrowd.spec.model import PersonId

ROWS, PEOPLE = 3000, 2300
FORMS: dict[str, Callable[[int], object]] = {
    "prefixed": lambda at: f"P{at:05}",
    "number": lambda at: 10_000 + at,
    "text": lambda at: f"{at * 7919 % 1_000_003:06}",
    "uuid": lambda at: f"{at:08x}-0000-4000-8000-{at * 31:012x}",
}
NAMES = (
    "idcode", "patient", "subject", "respondent", "hhid", "nhs_number", "mrn", "id", "PatientID",
    "subjid", "participant_no", "person", "study_id", "household_id", "nhsno", "usubjid",
)  # fmt: skip


def people_of(rows: int = ROWS, people: int = PEOPLE) -> list[int]:
    draw = random.Random(7)
    return [draw.randrange(people) for _ in range(rows)]


def table_of(name: str, ids: Sequence[object]) -> Table:
    draw = random.Random(1)
    return local_engine().from_columns(
        {
            name: ids,
            "sex": [draw.choice(["f", "m"]) for _ in ids],
            "age": [draw.randrange(95) for _ in ids],
        }
    )


def drafted(table: Table) -> SpecFile:
    return parse_spec(draft(table, name="t.csv").yaml())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_a_repeated_id_is_the_unit_and_is_not_published(name: str, form: str) -> None:
    file = drafted(table_of(name, [FORMS[form](at) for at in people_of()]))
    assert file.spec.columns[name].role == "identifier"
    assert isinstance(file.spec.unit, PersonId)
    assert file.spec.unit.id == name


@pytest.mark.parametrize("form", ["prefixed", "uuid"])
def test_a_repeated_id_is_found_under_any_name(form: str) -> None:
    """What looked like diagnoses and was published as P00-P09."""
    file = drafted(table_of("x", [FORMS[form](at) for at in people_of()]))
    assert file.spec.columns["x"].role == "identifier"
    assert file.spec.unit == PersonId(id="x")


def test_an_id_that_repeats_beyond_the_first_rows_is_the_unit() -> None:
    """The first rows of every person come first: a head alone shows an id in one row each."""
    ids = [f"K{at:06}" for at in range(250_000)] * 2
    file = parse_spec(draft(local_engine().from_columns({"patient": ids}), name="t").yaml())
    assert file.spec.unit == PersonId(id="patient")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("patient", ["inpatient", "outpatient"]),
        ("subject", ["maths", "physics", "history", "arts"]),
        ("hospital_id", [f"H{at}" for at in range(25)]),
        ("diagnosis", ["E11.9", "I10", "J45.0", "P00.1", "K35"]),
        ("member", ["yes", "no"]),
        ("zip", [f"{at:05}" for at in range(1000, 1900)]),
    ],
)
def test_words_and_places_are_no_ids(name: str, values: list[str]) -> None:
    draw = random.Random(2)
    file = drafted(table_of(name, [draw.choice(values) for _ in range(ROWS)]))
    assert file.spec.unit == "one row per person"
    assert file.spec.columns[name].role in ("quasi", "sensitive")


def test_an_id_of_one_row_each_is_no_unit() -> None:
    file = drafted(table_of("patient_id", [f"P{at:05}" for at in range(ROWS)]))
    assert file.spec.unit == "one row per person"
    assert file.spec.columns["patient_id"].role == "identifier"


def test_an_id_of_visits_is_no_unit_beside_one_of_people() -> None:
    ids = people_of()
    table = local_engine().from_columns(
        {
            "visit_id": [f"V{at // 2:06}" for at in range(ROWS)],
            "patient_id": [f"P{at:05}" for at in ids],
            "hhid": [at // 2 for at in ids],
        }
    )
    file = drafted(table)
    assert file.spec.unit == PersonId(id="patient_id")
    assert {column.role for column in file.spec.columns.values()} == {"identifier"}


# The unit is confirmed ---------------------------------------------------------------------------


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """A draft of a table of 1,000 people with three rows each."""
    draw = random.Random(3)
    pl.DataFrame(
        {
            "patient": [f"P{at % 1000:05}" for at in range(3000)],
            "sex": [draw.choice(["f", "m"]) for _ in range(3000)],
        }
    ).write_csv(tmp_path / "t.csv")
    path = tmp_path / "spec.yaml"
    path.write_text(draft(tmp_path / "t.csv", name="t.csv").yaml(), encoding="utf-8")
    return path


def test_the_unit_is_asked_first_with_rows_per_id(visits: Path) -> None:
    questions = list(task.list_questions(read_spec_file(visits)))
    assert (questions[0].column, questions[0].entry) == ("unit", "unit")
    text = " ".join(questions[0].seen)
    assert "1,000" in text
    assert "3,000" in text
    assert "median 3, largest 3" in text


def test_a_guessed_unit_is_refused_until_it_is_confirmed(visits: Path) -> None:
    roles = [
        (question.column, question.entry)
        for question in task.list_questions(read_spec_file(visits))
    ][1:]
    task.save_spec(task.confirm(read_spec_file(visits), roles))
    refused = run_command("publish", str(visits), "-o", str(visits.parent / "out"))
    assert refused.returncode == 2
    assert "unit" in refused.stderr
    assert "incrowd confirm" in refused.stderr
    assert run_command("confirm", str(visits), "--roles").returncode == 1  # it is no matter of form
    assert run_command("confirm", str(visits), "--unit").returncode == 0
    process = run_command("publish", str(visits), "-o", str(visits.parent / "out"))
    assert process.returncode == 0, process.stderr
    for output in (process.stdout, run_command("verify", str(visits.parent / "out")).stdout):
        assert "one person; one row of each" in output


@pytest.mark.parametrize("method", ["safe", "k-anonymity"])
def test_a_guessed_unit_is_refused_by_every_method(visits: Path, method: str) -> None:
    text = visits.read_text(encoding="utf-8")
    if method != "safe":
        text = f"{text[: text.index('release:')]}release: {{method: {method}, k: 5}}\n"
    visits.write_text(text, encoding="utf-8")
    roles = [
        (question.column, question.entry)
        for question in task.list_questions(read_spec_file(visits))
    ][1:]
    task.save_spec(task.confirm(read_spec_file(visits), roles))
    assert "unit" in run_command("publish", str(visits), "-o", str(visits.parent / "out")).stderr


def test_check_says_that_the_unit_is_not_confirmed(visits: Path) -> None:
    assert any(
        finding.code == "UNIT_NOT_CONFIRMED" for finding in check(None, read_spec_file(visits))
    )


def test_terminal_and_verify_say_that_a_row_is_protected(visits: Path) -> None:
    text = "columns: {patient: {role: identifier}, sex: {role: quasi, hierarchy: flat}}\n"
    release = "release: {method: safe, epsilon: 1.0, delta: 1.0e-6}\n"
    visits.write_text(f"table: t.csv\n{text}{release}", encoding="utf-8")
    process = run_command("publish", str(visits), "-o", str(visits.parent / "out"))
    assert process.returncode == 0, process.stderr
    for output in (process.stdout, run_command("verify", str(visits.parent / "out")).stdout):
        assert "one row, not all rows of a person" in output


# What check says ---------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["identifier", "drop", "sensitive", "quasi"])
@pytest.mark.parametrize("name", ["patient", "x"])
def test_check_names_every_id_of_several_rows(name: str, role: str) -> None:
    more = ", hierarchy: flat" if role in ("quasi", "sensitive") else ""
    file = parse_spec(
        f"columns: {{{name}: {{role: {role}{more}}}, sex: {{role: quasi, hierarchy: flat}}, "
        "age: {role: drop}}"
    )
    table = table_of(name, [f"P{at:05}" for at in people_of()])
    text = [
        str(finding)
        for finding in check(table, file)
        if finding.column == name and finding.severity != "note"
    ]
    assert any("unit: {id:" in finding and "rows per value: median" in finding for finding in text)
    quiet = table_of(name, [f"P{at:05}" for at in range(ROWS)])
    assert not any("unit: {id:" in str(finding) for finding in check(quiet, file))


def test_counts_of_ids_are_of_the_whole_table() -> None:
    table = open_table(pl.DataFrame({"patient": [f"K{at:06}" for at in range(250_000)] * 2}))
    result = find_ids(table)
    assert (result["patient"].ids, result["patient"].median, result["patient"].largest) == (
        250_000, 2, 2,
    )  # fmt: skip


@pytest.mark.parametrize("role", ["quasi", "sensitive"])
def test_the_id_of_the_unit_is_not_published(role: str) -> None:
    with pytest.raises(Exception, match="patient.*identifier"):
        parse_spec(
            f"unit: {{id: patient}}\ncolumns: {{patient: {{role: {role}, hierarchy: flat}}}}\n"
            "release: {method: k-anonymity, k: 5}\n"
        )
