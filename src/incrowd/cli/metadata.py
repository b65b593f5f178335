"""Commands about descriptions of a release: files for catalogs, and the questions they ask."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli import terminal
from incrowd.cli.options import Json
from incrowd.cli.terminal import print_text as print  # noqa: A004 - names and values come from anywhere
from incrowd.errors import IncrowdError

if TYPE_CHECKING:
    from incrowd.curate.questionnaire import AboutQuestion
    from incrowd.spec.file import SpecFile


def describe(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="Folder of the release.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="New folder of the files.")
    ],
    spec: Annotated[
        Path | None,
        typer.Option(metavar="SPEC", help="Spec whose `about` is used. Default: the release's."),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Ledger whose total is stated. Default: the release's."),
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="croissant, dcat, registry, ddi, frictionless or dossier; repeatable. Default: all.",  # noqa: E501
        ),
    ] = None,
    attacks: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Output of `incrowd attack --json`, for the private part of the dossier.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Describe a release to catalogs, registries, repositories and regulators.

    The files follow from certificate, scheme and `about`; the table is not opened. They refer to
    the data as if they stood beside them.
    """
    from incrowd.curate.deposit import describe as write_files

    deposit = write_files(
        release, output, spec=spec, ledger=ledger, formats=formats, attacks=attacks
    )
    if as_json:
        terminal.print_json(deposit.as_dict())
        return
    print(f"Described {release} in {output}:")
    terminal.print_facts((name, words) for name, words in deposit.files.items())
    if deposit.unstated:
        terminal.print_wrapped(f"Not stated: {', '.join(deposit.unstated)}.")
    for note in deposit.notes:
        terminal.print_wrapped(note)
    if deposit.private is not None:
        print(f"Private part of the dossier: {deposit.private}")


def ask_about(file: SpecFile) -> SpecFile:
    """Ask the questions about a release on one screen, and save each answer to the spec."""
    from incrowd.curate.confirm import save_spec
    from incrowd.curate.questionnaire import answer_about, list_about_questions

    while True:
        questions = list_about_questions(file)
        print_questions(questions)
        number = _read_line("Number of a question to answer (Enter to finish): ")
        if not number:
            return file
        if not number.isdigit() or not 1 <= int(number) <= len(questions):
            print(f"Name a number from 1 to {len(questions)}.")
            continue
        question = questions[int(number) - 1]
        listed = f" [{', '.join(question.choices)}]" if question.choices else ""
        answer = _read_line(f"{question.words} ({question.hint}){listed}\n> ")
        try:
            file = answer_about(file, {question.entry: answer})
        except IncrowdError as error:
            print(error)
            continue
        save_spec(file)


def print_questions(questions: list[AboutQuestion]) -> None:
    """Print all questions with their answers: those of a registry's record, then the others."""
    titles = {True: "For a registry, a catalog and the dossier", False: "For catalogs, besides"}
    for in_record, title in titles.items():
        print(f"{title}:")
        terminal.print_facts(
            (f"{number:>2}. {question.words}", question.answer)
            for number, question in enumerate(questions, 1)
            if question.in_record is in_record
        )


def _read_line(prompt: str) -> str:
    """Read a line; the end of the input is an empty one."""
    import sys

    print(prompt, end="")
    sys.stdout.flush()
    return sys.stdin.readline().strip()
