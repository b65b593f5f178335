"""What is to be confirmed: asked with its reasons, written back whole, and refused until then."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import polars as pl
import pytest
from support.cli import CommandResult, run_command, run_successfully

from incrowd.curate import confirm as task
from incrowd.engine.source import open_spec_table
from incrowd.errors import IncrowdError
from incrowd.spec.file import parse_spec, read_spec_file

SPEC = """\
# of the clinic
table: t.csv  # where it lies
columns:
  name: {role: identifier, confirm: [role]}  # almost every row has its own
  # the town is where they live
  town: {role: quasi, written: {nulls: [NA]}, hierarchy: {flat: {values: [Rome, Oslo, Bonn, Ulm]}},
    confirm: [role, written, hierarchy]}  # towns
  age: {role: quasi, hierarchy: {intervals: {from: 0, to: 119, widths: [10, 60]}},
    confirm: [role, hierarchy]}  # ages
  seen: {role: quasi, hierarchy: {dates: {from: 2020-01-01, to: 2021-12-31}}, confirm: [hierarchy]}
  ill: {role: sensitive, hierarchy: icd}
release: {method: safe, epsilon: 1.0, delta: 1.0e-6}  # as agreed
# the end
"""
ENTRIES = [
    ("name", "role"), ("town", "role"), ("town", "written"), ("town", "hierarchy"), ("age", "role"),
    ("age", "hierarchy"), ("seen", "hierarchy"),
]  # fmt: skip
COMMENTS = ["# of the clinic", "# where it lies", "# almost every row has its own", "# towns",
            "# the town is where they live", "# ages", "# as agreed", "# the end"]  # fmt: skip


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """600 people: 9 of Oslo, 10 of Bonn, none of Ulm; one is 3 years old and two are 101."""
    rows = ["name,town,age,seen,ill"]
    for at in range(600):
        town = "Oslo" if at < 9 else "Bonn" if at < 19 else "NA" if at < 40 else "Rome"
        age = 3 if at == 50 else 101 if at in (60, 61) else 20 + at % 60
        day = "2020-02-03" if at == 5 else "2021-11-30" if at < 5 else "2021-01-02"
        rows.append(f"p{at},{town},{age},{day},{('I10', 'E11.9')[at % 2]}")
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC, encoding="utf-8")
    return path


def answer(spec: Path, lines: str, monkeypatch: pytest.MonkeyPatch) -> CommandResult:
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    return run_command("confirm", str(spec))


def left(spec: Path) -> list[tuple[str, str]]:
    return [
        (name, entry)
        for name, entries in read_spec_file(spec).spec.unconfirmed_entries.items()
        for entry in entries
    ]


# What is asked -----------------------------------------------------------------------------------


def test_questions_come_column_by_column_with_their_reasons(spec: Path) -> None:
    questions = list(task.list_questions(read_spec_file(spec)))
    assert [(item.column, item.entry) for item in questions] == ENTRIES
    assert all(item.why and item.says for item in questions)
    roles = {item.column: item.says for item in questions if item.entry == "role"}
    assert roles["name"].startswith("identifier: ")
    assert roles["town"].startswith("quasi: ")
    says = {(item.column, item.entry): item.says for item in questions}
    assert "NA" in says["town", "written"]
    assert "Rome, Oslo, Bonn, Ulm" in says["town", "hierarchy"]
    why = {(item.column, item.entry): item.why for item in questions}
    assert "published" in why["town", "hierarchy"]
    assert "0 to 119" in why["age", "hierarchy"]
    assert "2020-01-01 to 2021-12-31" in why["seen", "hierarchy"]


def test_rare_values_are_shown_and_others_not(spec: Path) -> None:
    """9 are few, 10 are not; a value that nobody has is not rare among people."""
    (seen,) = next(
        question.seen
        for question in task.list_questions(read_spec_file(spec))
        if (question.column, question.entry) == ENTRIES[3]
    )
    assert "fewer than 10 rows" in seen
    assert "Oslo (9)" in seen
    for other in ("Bonn", "Rome", "Ulm", "NA"):
        assert other not in seen


def test_that_no_value_is_rare_is_said(spec: Path) -> None:
    spec.write_text(SPEC.replace("[Rome, Oslo, Bonn, Ulm]", "[Rome, Bonn]"), encoding="utf-8")
    request = {
        (question.column, question.entry): question
        for question in task.list_questions(read_spec_file(spec))
    }
    assert request["town", "hierarchy"].seen == (
        "Every listed value in the table occurs in at least 10 rows.",
    )


def test_the_ends_of_a_range_are_shown_with_how_many_explain_them(spec: Path) -> None:
    request = {
        (question.column, question.entry): question
        for question in task.list_questions(read_spec_file(spec))
    }
    assert "3 (1 row) and 101 (2 rows)" in request["age", "hierarchy"].seen[0]
    assert "2020-02-03 (1 row) and 2021-11-30 (5 rows)" in request["seen", "hierarchy"].seen[0]


def test_what_is_confirmed_is_not_asked_and_nothing_is_opened(spec: Path) -> None:
    file = task.confirm(read_spec_file(spec), ENTRIES[:-1])
    assert [(question.column, question.entry) for question in task.list_questions(file)] == ENTRIES[
        -1:
    ]
    done = task.confirm(file, ENTRIES)
    (spec.parent / "t.csv").unlink()
    assert list(task.list_questions(done)) == []


# What is confirmed unasked -----------------------------------------------------------------------


def test_all_leaves_lists_and_bounds(spec: Path) -> None:
    done = run_command("confirm", str(spec), "--roles")
    assert done.returncode == 1
    hierarchies = [item for item in ENTRIES if item[1] == "hierarchy"]
    assert left(spec) == hierarchies
    assert "hierarchy (--values-are-public town)" in done.stdout
    assert "--values-are-public" in done.stdout


def test_public_values_are_named_one_by_one(spec: Path) -> None:
    done = run_command(
        "confirm", str(spec), "--values-are-public", "town", "--values-are-public", "seen"
    )
    assert done.returncode == 1
    assert left(spec) == [item for item in ENTRIES if item not in (ENTRIES[3], ENTRIES[6])]
    successfully = run_successfully("confirm", str(spec), "--roles", "--values-are-public", "age")
    assert left(spec) == []
    assert "All entries are confirmed" in successfully


def test_an_unknown_column_is_refused_and_nothing_confirmed(spec: Path) -> None:
    done = run_command("confirm", str(spec), "--roles", "--values-are-public", "twon")
    assert done.returncode not in (0, 1)
    assert "Column 'twon': not in the spec" in done.stderr
    assert spec.read_text(encoding="utf-8") == SPEC
    with pytest.raises(IncrowdError, match="Column 'twon': not in the spec"):
        task.list_public_entries(read_spec_file(spec), ["town", "twon"])


# What is answered --------------------------------------------------------------------------------


def test_yes_and_no(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No to both roles, one by one not changed; no to the range; an answer that is none."""
    done = answer(spec, "y\nn\n\n\nYes\nwhat?\nn\n\n\ny\ny\n", monkeypatch)
    assert done.returncode == 1
    assert left(spec) == [ENTRIES[1], ENTRIES[4], ENTRIES[5]]
    assert "1 of 6: name, role" in done.stdout
    assert "2 of 6: role quasi (2 columns)" in done.stdout
    assert "6 of 6: town, hierarchy" in done.stdout
    assert "Oslo (9)" in done.stdout
    assert answer(spec, "y\ny\n", monkeypatch).returncode == 0
    assert left(spec) == []


@pytest.mark.parametrize("line", ["", "?", "what?"])
def test_an_answer_that_is_none_lists_the_answers(
    line: str, spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = answer(spec, f"{line}\nq\n", monkeypatch)
    assert [done.stdout.count(f"{word}: ") for word in ("yes", "no", "quit")] == [1, 1, 1]
    assert left(spec) == ENTRIES


def test_a_no_comes_back_with_what_to_edit(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = answer(spec, "y\nn\ntown\n\ny\nn\n\nq\n", monkeypatch)
    refused, _, rest = done.stdout.partition("You answered no")[2].partition("Not confirmed yet")
    assert "town, role" in refused
    assert "age, role" not in refused
    assert "set `from` and `to`" in refused  # of age
    assert "--values-are-public seen" in rest
    assert "age" not in rest


def test_a_role_is_changed_and_what_it_asks_for_goes_with_it(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is no role is asked again; the list of a dropped column is not asked."""
    done = answer(spec, "y\nn\ntown\nqasi\ndrop\ny\ny\n", monkeypatch)
    assert "'qasi' is no role." in done.stdout
    assert done.returncode == 0
    file = read_spec_file(spec)
    assert file.spec.columns["town"].role == "drop"
    assert file.spec.columns["town"].hierarchy is None
    assert file.spec.is_confirmed


def test_what_is_published_after_all_is_asked_for(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SPEC.replace("hierarchy: {flat: {values: [Rome, Oslo, Bonn, Ulm]}},", "").replace(
        "town: {role: quasi, written: {nulls: [NA]}, \n    confirm: [role, written, hierarchy]}",
        "town: {role: drop, confirm: [role]}",
    )
    spec.write_text(text, encoding="utf-8")
    answer(spec, "y\nn\nquasi\ny\ny\ny\nq\n", monkeypatch)
    file = read_spec_file(spec)
    assert file.spec.columns["town"].role == "quasi"
    assert file.spec.columns["town"].hierarchy is not None
    assert "hierarchy" in file.spec.columns["town"].confirm  # read from the table: not confirmed


def test_a_no_to_a_range_or_a_list_offers_the_public_one(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "y\ny\ny\nn\n110 to 5\n0 to 109\nn\n2019-01-01 to 2024-12-31\nn\nRome, Oslo, Bonn\n"
    done = answer(spec, lines, monkeypatch)
    assert done.returncode == 0, done.stderr
    assert "such as 0 to 119" in done.stdout  # by the name of the column
    assert "a range is two numbers that rise" in done.stdout
    columns = read_spec_file(spec).spec.columns
    age, seen, town = (columns[name].hierarchy for name in ("age", "seen", "town"))
    assert age is not None
    assert age.intervals is not None
    assert age.intervals.low == 0
    assert age.intervals.high == 109
    assert [int(width) for width in age.intervals.widths] == [10, 60]
    assert seen is not None
    assert seen.dates is not None
    assert str(seen.dates.low) == "2019-01-01"
    assert town is not None
    assert town.flat is not None
    assert town.flat.values == ("Rome", "Oslo", "Bonn")


@pytest.mark.parametrize("end", ["q\ny\ny\n", "", "Q"])
def test_who_quits_or_goes_away_keeps_what_was_said(
    end: str, spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = answer(spec, f"y\ny\n{end}", monkeypatch)
    assert done.returncode == 1
    assert left(spec) == [ENTRIES[2], ENTRIES[3], *ENTRIES[5:]]
    assert "3 of 6" in done.stdout
    assert "4 of 6" not in done.stdout


def test_whoever_says_nothing_has_confirmed_nothing(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert answer(spec, "", monkeypatch).returncode == 1
    assert spec.read_text(encoding="utf-8") == SPEC


# What is written ---------------------------------------------------------------------------------


def test_comments_survive(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(spec, "y\n" * 3, monkeypatch)
    run_successfully("confirm", str(spec), "--roles", *(
        word for name in ("town", "age", "seen") for word in ("--values-are-public", name)
    ))  # fmt: skip
    text = spec.read_text(encoding="utf-8")
    assert [comment for comment in COMMENTS if comment not in text] == []
    assert "confirm" not in text
    before = parse_spec(SPEC).with_all_confirmed().spec
    assert read_spec_file(spec).spec == before  # nothing else has changed


def test_comments_of_a_spec_in_lines_survive(tmp_path: Path) -> None:
    """What stands below an entry that goes is about what follows."""
    path = tmp_path / "spec.yaml"
    path.write_text(
        "columns:\n  a:\n    role: quasi  # why\n    hierarchy: flat\n"
        "    confirm: [role, hierarchy]\n"
        "  # about b\n  b:\n    confirm:\n      - role\n    role: drop\n# the end\n"
    )
    file = task.confirm(read_spec_file(path), [("a", "role")])
    for answers in ([("a", "hierarchy")], [("b", "role")]):
        file = task.confirm(file, answers)
        for comment in ("# why", "# about b", "# the end"):
            assert comment in file.text(), file.text()
    assert not file.spec.unconfirmed_entries


def test_nothing_is_half_written(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = task.confirm(read_spec_file(spec), ENTRIES)

    def fail(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="full"):
            task.save_spec(file)
    assert spec.read_text(encoding="utf-8") == SPEC
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", fail)
        with pytest.raises(OSError, match="full"):
            task.save_spec(file)
    assert spec.read_text(encoding="utf-8") == SPEC
    assert sorted(path.name for path in spec.parent.iterdir()) == ["spec.yaml", "t.csv"]
    task.save_spec(file)
    assert left(spec) == []


# What it is for ----------------------------------------------------------------------------------


def test_only_what_is_confirmed_is_published(spec: Path, settled_once: None) -> None:
    def publish() -> CommandResult:
        return run_command("publish", str(spec), "-o", str(spec.parent / "out"))

    for more in ([], ["--roles"], ["--values-are-public", "town"], ["--values-are-public", "age"]):
        if more:
            assert run_command("confirm", str(spec), *more).returncode == 1
        done = publish()
        assert done.returncode not in (0, 1)
        assert "confirm" in done.stderr
        assert not (spec.parent / "out").exists()
    run_successfully("confirm", str(spec), "--values-are-public", "seen")
    done = publish()
    assert done.returncode == 0, done.stderr
    assert (spec.parent / "out" / "certificate.json").exists()


def test_the_area_of_squares_must_be_public() -> None:
    file = parse_spec(
        "columns:\n  lat: {role: drop}\n  lon: {role: drop}\n"
        "  place: {role: quasi, confirm: [hierarchy], hierarchy: {geo: {lat: lat, lon: lon, "
        "sizes: [0.25, 1], south: 52, north: 53, west: 13, east: 14}}}\n"
    )
    table = open_spec_table(file, pl.DataFrame({"lat": [52.5, 52.6], "lon": [13.4, 13.5]}))
    (question,) = task.list_questions(file, table)
    assert "The area 52 to 53, 13 to 14 degrees was rounded from the data" in question.why
    assert "set `south`, `north`, `west` and `east`" in question.correction
