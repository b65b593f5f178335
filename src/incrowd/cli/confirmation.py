"""The questions of ``confirm`` on a terminal, one for each kind of thing, and their answers."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from incrowd.cli import terminal
from incrowd.cli.terminal import print_text as print  # noqa: A004 - names and values come from anywhere
from incrowd.errors import IncrowdError
from incrowd.findings import format_count

if TYPE_CHECKING:
    from incrowd.curate.confirm import Question
    from incrowd.curate.confirm_answers import ColumnChanger
    from incrowd.curate.question_group import QuestionGroup
    from incrowd.spec.file import SpecFile

_ANSWERS = {
    "y": "yes: confirm all of it",
    "n": "no: say which columns are wrong, and what is true of them",
    "q": "quit: answers up to here are saved",
}


def ask_questions(file: SpecFile) -> tuple[SpecFile, list[Question]]:
    """Ask each question and save each answer; return the spec, and what is left as wrong."""
    from incrowd.curate.confirm import save_spec
    from incrowd.curate.question_group import confirm_group, group_questions

    refused: list[Question] = []
    places_asked: set[tuple[str, str]] = set()
    groups, at, is_role_changed = group_questions(file), 0, False
    while groups:
        group = groups.pop(0).keep_open(file, places_asked)
        if group is not None:
            at += 1
            _print_group(group, at, at + len(groups))
            answer = terminal.ask_choice(group.prompt, _ANSWERS)
            if answer == "q":
                break
            places_asked |= {(question.column, question.entry) for question in group.questions}
            wrong = _ask_columns(group) if answer == "n" else ()
            file, left = _ask_changes(file, group, wrong)
            refused += left
            is_role_changed |= group.entry == "role" and len(left) < len(wrong)
            file = confirm_group(file, group, but=wrong)
            save_spec(file)
        if not groups and is_role_changed:  # what is published after all has to be confirmed
            groups, is_role_changed = group_questions(file), False
    return file, refused


def apply_file(file: SpecFile, path: Path) -> SpecFile:
    """Apply the answers of a file to a spec, and save it."""
    from incrowd.curate.confirm import save_spec
    from incrowd.curate.confirm_answers import apply_answers, read_answers

    before = _count_unconfirmed(file)
    file = apply_answers(file, read_answers(path))
    save_spec(file)
    confirmed = before - _count_unconfirmed(file)
    print(f"Confirmed {format_count(confirmed, 'entry', 'entries')} by {path}.")
    return file


def place_question(question: Question) -> str:
    """Return the column and the entry of a question."""
    return ", ".join(dict.fromkeys((question.column, question.entry)))


def _count_unconfirmed(file: SpecFile) -> int:
    return len(file.spec.confirm) + sum(map(len, file.spec.unconfirmed_entries.values()))


def _print_group(group: QuestionGroup, at: int, every: int) -> None:
    """Show what is to be confirmed, on a screen of its own where there is one."""
    screen = terminal.make_console()
    if screen.is_terminal:
        screen.clear()
    (first, *others) = group.questions
    if not others:
        print(f"\nQuestion {at} of {every}: {place_question(first)}")
        facts = [("Draft", first.says), *(("Data", line) for line in first.seen)]
        terminal.print_facts([*facts, ("Why", group.why)])
        return
    print(f"\nQuestion {at} of {every}: {group.title}")
    if group.says:
        terminal.print_facts([("Draft", group.says), ("Columns", ", ".join(group.columns))])
        seen = [(question.column, " ".join(question.seen)) for question in group.questions]
    else:
        seen = [
            (question.column, ". ".join((question.says, *question.seen)))
            for question in group.questions
        ]
    terminal.print_facts(seen)
    terminal.print_facts([("Why", group.why)])


def _ask_columns(group: QuestionGroup) -> tuple[str, ...]:
    """Ask which columns of a group are wrong; all of them if none is named."""
    if len(group.questions) == 1:
        return group.columns
    while True:
        line = _read_line("Which columns are wrong? (names, with commas; empty: all of them)")
        named = tuple(dict.fromkeys(part.strip() for part in line.split(",") if part.strip()))
        unknown = [name for name in named if name not in group.columns]
        if not unknown:
            return named or group.columns
        print(f"'{unknown[0]}' is none of these columns.")


def _ask_changes(
    file: SpecFile, group: QuestionGroup, wrong: Sequence[str]
) -> tuple[SpecFile, list[Question]]:
    """Ask what is true instead; return the spec, and the questions that are left open."""
    from incrowd.curate.confirm_answers import ColumnChanger

    questions = [question for question in group.questions if question.column in wrong]
    if not questions:
        return file, []
    changer = ColumnChanger(file)
    if group.entry == "role":
        return (changer.file, []) if _ask_role(changer, wrong) else (file, questions)
    if group.entry != "hierarchy":
        return file, questions
    left = [question for question in questions if not _ask_domain(changer, question.column)]
    return changer.file, left


def _ask_role(changer: ColumnChanger, columns: Sequence[str]) -> bool:
    """Ask for the role of columns, and set it; return whether it was given."""
    from incrowd.curate.confirm_answers import ColumnChange
    from incrowd.spec.model import Role

    roles = get_args(Role)
    while line := _read_line(f"What is it? ({', '.join(roles)}; empty: leave it)"):
        if line in roles:
            for name in columns:
                changer.change(name, ColumnChange.model_validate({"role": line}))
            return True
        print(f"'{line}' is no role.")
    return False


def _ask_domain(changer: ColumnChanger, name: str) -> bool:
    """Ask for the public range or list of a column, and set it; return whether it was given."""
    from incrowd.curate.confirm_answers import ColumnChange
    from incrowd.curate.draft.public_values import suggest_public_range
    from incrowd.methods.person_id import simplify_name
    from incrowd.spec.hierarchies import Dates, Flat, Intervals, Order

    hierarchy = changer.file.spec.columns[name].hierarchy
    declared = None if hierarchy is None else hierarchy.declaration
    if not isinstance(declared, Intervals | Dates | Flat | Order):
        return False
    is_range = isinstance(declared, Intervals | Dates)
    suggested = suggest_public_range(simplify_name(name)) or (0, 100)
    example = (
        "2015-01-01 to 2024-12-31" if isinstance(declared, Dates) else "{} to {}".format(*suggested)
    )
    what = (
        f"range of '{name}', such as {example}" if is_range else f"values of '{name}', with commas"
    )
    while line := _read_line(f"Which {what}, is public knowledge? (empty: leave it)"):
        parts = re.split(r"\s+to\s+|\s*,\s*" if is_range else r"\s*,\s*", line)
        try:
            change = {"range": parts} if is_range else {"values": parts}
            if is_range and len(parts) != 2:
                raise IncrowdError(f"A range has two ends, such as {example}.")
            changer.change(name, ColumnChange.model_validate(change))
        except IncrowdError as error:
            print(error)
        else:
            return True
    return False


def _read_line(question: str) -> str:
    """Return what is answered; nothing at the end of the input."""
    print(f"{question}: ", end="")
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        print("")
    return line.strip()
