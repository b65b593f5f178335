"""What a click changes in a spec."""

from __future__ import annotations

from decimal import Decimal

import polars as pl

from incrowd.curate.draft.draft import Draft, draft
from incrowd.engine.source import open_table
from incrowd.spec.file import SpecFile, parse_spec
from incrowd.spec.model import PersonId
from incrowd.studio import spec_edits

TABLE = pl.DataFrame({"name": ["Ann", "Bob"] * 40, "score": list(range(20, 60)) * 2})


def drafted() -> tuple[SpecFile, Draft]:
    guessed = draft(open_table(TABLE), name="t.csv")
    return parse_spec(guessed.yaml()), guessed


def test_another_role_is_confirmed_by_whoever_chose_it() -> None:
    file, guessed = drafted()
    assert "role" in file.spec.columns["score"].confirm
    changed = file.with_entries(spec_edits.set_role(file, guessed, "score", "identifier"))
    assert changed.spec.columns["score"].role == "identifier"
    assert changed.spec.columns["score"].confirm == ()
    assert changed.spec.columns["score"].hierarchy is None


def test_a_quasi_column_gets_the_ladder_that_was_guessed() -> None:
    file, guessed = drafted()
    dropped = file.with_entries(spec_edits.set_role(file, guessed, "score", "drop"))
    again = dropped.with_entries(
        spec_edits.set_role(dropped, guessed, "score", "quasi")
    ).spec.columns["score"]
    assert again.hierarchy == file.spec.columns["score"].hierarchy
    assert again.confirm == ("hierarchy",)  # it was read from the data


def test_a_quasi_column_without_a_guess_shows_its_value_or_nothing() -> None:
    file, guessed = drafted()
    name = file.with_entries(spec_edits.set_role(file, guessed, "name", "quasi")).spec.columns[
        "name"
    ]
    assert name.hierarchy is not None
    assert name.hierarchy.flat is not None


def test_what_belongs_to_the_old_role_goes() -> None:
    file = parse_spec(
        "columns:\n  x: {role: noisy, precision: 0.1, bounds: [0, 9]}\n  y: {role: drop}\n"
        "release: {method: k-epsilon, k: 5, epsilon: 1}"
    )
    changed = file.with_entries(spec_edits.set_role(file, Draft(None, ()), "x", "sensitive"))
    assert changed.spec.columns["x"].precision is None
    assert changed.spec.columns["x"].bounds is None


def test_a_noisy_column_gets_the_precision_of_its_values_to_be_confirmed() -> None:
    table = open_table(pl.DataFrame({"kg": [50.5 + at % 40 / 10 for at in range(200)]}))
    guessed = draft(table)
    file = parse_spec(guessed.yaml()).with_entry(
        ("release",), {"method": "k-epsilon", "k": 2, "epsilon": 1}
    )
    noisy_file = file.with_entries(spec_edits.set_role(file, guessed, "kg", "noisy"))
    column = noisy_file.spec.columns["kg"]
    assert (column.precision, column.confirm) == (Decimal("0.1"), ("precision",))
    sure = noisy_file.with_entries(
        spec_edits.set_noisy_column(noisy_file, "kg", {"precision": "0.1"})
    ).spec.columns["kg"]
    assert sure.confirm == ()
    back = noisy_file.with_entries(
        spec_edits.set_role(noisy_file, guessed, "kg", "quasi")
    ).spec.columns["kg"]
    assert (back.precision, back.confirm) == (None, ("hierarchy",))


def test_one_question_is_answered() -> None:
    file, _ = drafted()
    changed = file.with_entries(
        spec_edits.confirm_entries(file, ["score"], ("role",))
    ).spec.columns["score"]
    assert changed.confirm == tuple(x for x in file.spec.columns["score"].confirm if x != "role")


def test_the_unit_says_what_becomes_of_rows_without_an_id() -> None:
    file = parse_spec("columns: {a: {role: drop}, b: {role: drop}}")
    unit = file.with_entries(spec_edits.set_unit("b", without_id=True)).spec.unit
    assert unit == PersonId(id="b", without_id="drop")
    assert file.with_entries(spec_edits.set_unit("b")).spec.unit == PersonId(id="b")
    assert (
        file.with_entries(spec_edits.set_unit("", without_id=True)).spec.unit
        == "one row per person"
    )
