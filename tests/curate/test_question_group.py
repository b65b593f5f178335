"""One question for each kind of thing, however many columns there are; answers from a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support.cli import run_command, run_successfully

from incrowd.curate.confirm import list_questions
from incrowd.curate.confirm_answers import apply_answers, read_answers
from incrowd.curate.draft.draft import draft
from incrowd.curate.question_group import confirm_group, group_questions
from incrowd.engine.source import open_table
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.spec.file import SpecFile, parse_spec, read_spec_file


def make_wide_table(rows: int = 300) -> pl.DataFrame:
    """171 columns of a survey: ids, answers, amounts, dates, towns, with nulls as NA."""
    draw = np.random.default_rng(3)
    columns: dict[str, object] = {"person_id": [f"p{at:05}" for at in range(rows)]}
    for at in range(60):
        columns[f"flag{at}"] = draw.choice(["0", "1", "NA"], rows, p=[0.6, 0.3, 0.1])
    for at in range(50):
        columns[f"trust_{at}"] = draw.integers(1, 6, rows)
    for at in range(30):
        columns[f"amount{at}"] = np.round(draw.normal(50 + 9 * at, 8 + at, rows), 1)
    for at in range(20):
        columns[f"place{at}"] = draw.choice([f"town {at}.{x}" for x in range(5 + at % 7)], rows)
    for at in range(10):
        days = draw.integers(0, 900 + 400 * at, rows)
        columns[f"day{at}"] = [str(np.datetime64("2015-01-01") + int(day)) for day in days]
    return pl.DataFrame(columns)


@pytest.fixture(scope="module")
def wide() -> tuple[SpecFile, Table]:
    table = open_table(make_wide_table())
    return parse_spec(draft(table, name="wide.csv").yaml()), table


def test_at_most_thirty_questions_of_171_columns(wide: tuple[SpecFile, Table]) -> None:
    file, table = wide
    assert len(file.spec.columns) == 171
    groups = group_questions(file, table)
    assert len(groups) <= 30
    single = [(question.column, question.entry) for question in list_questions(file, table)]
    grouped = [(x.column, x.entry) for group in groups for x in group.questions]
    assert len(single) > 300
    assert sorted(grouped) == sorted(single)  # each entry in one group, and none forgotten


def test_groups_are_of_one_kind_and_confirm_what_they_show(wide: tuple[SpecFile, Table]) -> None:
    file, table = wide
    groups = group_questions(file, table)
    assert [group.kind for group in groups][:2] == ["unit", "role"]
    shared = next(group for group in groups if group.kind == "shared")
    assert len({question.says for question in shared.questions}) == 1
    first, *others = shared.columns
    done = confirm_group(file, shared, but=[first])
    assert "hierarchy" in done.spec.columns[first].confirm
    assert not any("hierarchy" in done.spec.columns[name].confirm for name in others)
    for group in groups:
        file = confirm_group(file, group)
    assert file.spec.is_confirmed


def test_lists_with_rare_values_are_asked_by_themselves() -> None:
    towns = {f"t{at}": ["Rome", "Oslo", "Bonn"] * 30 for at in range(3)}
    towns["t1"] = [*towns["t1"][:-1], "Ulm"]
    table = open_table(pl.DataFrame(towns))
    file = parse_spec(draft(table, name="t.csv").yaml())
    rare = [group for group in group_questions(file, table) if group.kind == "rare lists"]
    assert [group.columns for group in rare] == [("t1",)]
    assert "Ulm (1)" in rare[0].questions[0].seen[0]


@pytest.fixture
def drafted(tmp_path: Path) -> Path:
    draw = np.random.default_rng(2)
    rows = {
        "age": draw.integers(20, 70, 300), "town": draw.choice(["Rome", "Oslo"], 300),
        "wage": 1000 + 7 * draw.integers(0, 90, 300), "smoker": draw.choice(["yes", "no"], 300),
    }  # fmt: skip
    pl.DataFrame(rows).write_csv(tmp_path / "t.csv")
    run_successfully("init", str(tmp_path / "t.csv"), "-o", str(tmp_path / "spec.yaml"))
    return tmp_path / "spec.yaml"


def test_answers_come_from_a_file(drafted: Path) -> None:
    answers = drafted.parent / "answers.yaml"
    answers.write_text(
        "unit: true\nroles: true\nformats: true\npublic: [wage]\n"
        "change:\n  town: {values: [Rome, Oslo, Bonn]}\n  smoker: {role: sensitive}\n"
        "  age: {range: [0, 109]}\n"
    )
    result = run_command("confirm", str(drafted), "--answers", str(answers))
    assert result.returncode == 0, result.stdout
    assert "All entries are confirmed" in result.stdout
    columns = read_spec_file(drafted).spec.columns
    assert columns["smoker"].role == "sensitive"
    assert columns["age"].hierarchy is not None
    assert columns["age"].hierarchy.intervals is not None
    assert columns["age"].hierarchy.intervals.high == 109
    assert columns["town"].hierarchy is not None
    assert columns["town"].hierarchy.flat is not None
    assert columns["town"].hierarchy.flat.values == ("Rome", "Oslo", "Bonn")


def test_what_a_file_does_not_answer_is_left(drafted: Path) -> None:
    answers = drafted.parent / "answers.yaml"
    answers.write_text("roles: true\n")
    result = run_command("confirm", str(drafted), "--answers", str(answers))
    assert result.returncode == 1
    spec = read_spec_file(drafted).spec
    assert spec.confirm == ("unit",)
    assert set(spec.unconfirmed_entries) == {"town", "wage"}  # the range of ages is public


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rolls: true", "rolls: Extra inputs"),
        ("change: {age: {}}", "give `role`, `range` or `values`"),
        ("change: {aeg: {role: drop}}", "Column 'aeg': not in the spec"),
        ("change: {age: {range: [90, 10]}}", "a range is two numbers that rise"),
        ("change: {town: {range: [0, 10]}}", "has no range"),
        ("change: {age: {values: [a]}}", "values are listed for `flat` and `order`"),
        ("public: [aeg]", "Column 'aeg': not in the spec"),
        ("a: [", "not valid YAML"),
    ],
)
def test_answers_that_cannot_be_are_refused(drafted: Path, text: str, problem: str) -> None:
    answers = drafted.parent / "answers.yaml"
    answers.write_text(text)
    before = drafted.read_text()
    with pytest.raises(IncrowdError, match=problem):
        apply_answers(read_spec_file(drafted), read_answers(answers))
    assert run_command("confirm", str(drafted), "--answers", str(answers)).returncode > 1
    assert drafted.read_text() == before
