"""Commands about specs: draft one, confirm it, hold it against its table, rehearse by it."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from incrowd.cli import terminal
from incrowd.cli.options import (
    EngineName,
    Json,
    Master,
    Settings,
    SpecPath,
    Verbose,
    choose_engine,
    number_option,
    parse_number,
)
from incrowd.cli.status import DONE, EMPTY
from incrowd.cli.terminal import print_text as print  # noqa: A004 - names and values come from anywhere
from incrowd.errors import IncrowdError
from incrowd.findings import Severity, count_findings, format_count, sort_findings

if TYPE_CHECKING:
    from incrowd.curate.confirm import Question
    from incrowd.spec.file import SpecFile
    from incrowd.spec.purpose import Purpose


def init(
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE", help="File, PostgreSQL address, or Spark table (--engine spark)."
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="SPEC", help="Path of the new spec.")
    ] = Path("spec.yaml"),
    arx: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE|FOLDER",
            help="ARX project (.deid), or a folder of hierarchies NAME_hierarchy_COLUMN.csv, and "
            "NAME.csv if TABLE is not given.",
        ),
    ] = None,
    sheet: Annotated[
        str | None, typer.Option(help="Sheet of a workbook. Default: the first one.")
    ] = None,
    header: Annotated[
        str | None, number_option("Row of a workbook that holds the column names, counted from 1.")
    ] = None,
    purpose: Annotated[
        str | None,
        typer.Option(
            metavar="PURPOSE",
            help="What the release is for: explore, model, statistics or test-data.",
        ),
    ] = None,
    size: Annotated[
        str | None,
        number_option("Number of people, if it is public: it is printed in the certificate."),
    ] = None,
    hipaa: Annotated[
        bool,
        typer.Option(
            "--hipaa",
            help="Keep to HIPAA's safe harbor: three digits of ZIP codes, years, ages up to 89.",
        ),
    ] = False,
    engine: EngineName = None,
    master: Master = None,
    conf: Settings = None,
) -> None:
    """Draft a spec for a table: a role and a hierarchy per column, and a method for its size."""
    from incrowd.cli import recommendation
    from incrowd.curate.draft.draft import draft as drafted
    from incrowd.curate.draft.draft import draft_from_arx, draft_from_arx_project, format_source
    from incrowd.engine.source import open_table
    from incrowd.spec.file import load_spec
    from incrowd.spec.purpose import PURPOSES

    if output.exists():
        raise IncrowdError(f"File '{output}' exists already. Name another one with -o.")
    beside, row = output.absolute().parent, parse_number("header", header)
    worker = choose_engine(engine, master, conf)
    if arx is not None and arx.is_file():
        if table is not None:
            raise IncrowdError("A project of ARX has its own table. Leave out TABLE.")
        draft = draft_from_arx_project(arx, beside=beside)
    elif arx is not None:
        draft = draft_from_arx(
            arx, beside=beside, table=table, sheet=sheet, header=row, engine=worker
        )
    elif table is not None:
        opened = open_table(table, engine=worker, sheet=sheet, header=row)
        draft = drafted(opened, name=format_source(table, beside))
    else:
        raise IncrowdError("No table given. Name TABLE, or a folder of ARX files with --arx.")
    if purpose is not None and purpose not in PURPOSES:
        raise IncrowdError(f"No purpose '{purpose}'. Choose one of {', '.join(PURPOSES)}.")
    draft = draft.with_purpose(cast("Purpose | None", purpose), parse_number("size", size))
    draft = draft.with_safe_harbor() if hipaa else draft
    output.write_text(draft.yaml(), encoding="utf-8")
    print(f"Drafted {output}: {len(draft.guesses)} columns")
    width = max(len(guess.column) for guess in draft.guesses)
    for guess in draft.guesses:
        terminal.print_wrapped(
            f"{guess.column:<{width}}  {guess.role:<10}  {guess.explanation}",
            indent=2,
            hanging=width + 14,
        )
    if arx is not None:
        print(f"ARX hierarchies used: {', '.join(draft.used) or 'none'}.")
        print(f"ARX files without a column: {', '.join(draft.unused) or 'none'}.")
    for entry in draft.unmatched:
        terminal.print_wrapped(f"Without an equal here: {entry}.", hanging=2)
    for note in draft.notes:
        print(f"Note: {note}")
    terminal.print_wrapped(draft.describe_identifiers())
    terminal.print_findings(draft.findings())
    if draft.size is not None:
        recommendation.print_recommendation(load_spec(draft), draft.size)
    print(f"Next: incrowd confirm {shlex.quote(str(output))}")


def confirm(
    spec: SpecPath,
    every: Annotated[
        bool, typer.Option("--roles", help="Confirm that all roles and formats are correct.")
    ] = False,
    unit: Annotated[
        bool, typer.Option("--unit", help="Confirm the protected unit, row or person.")
    ] = False,
    values_are_public: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Confirm that its range or list is public. Repeatable."
        ),
    ] = None,
    answers_file: Annotated[
        Path | None,
        typer.Option(
            "--answers",
            metavar="FILE",
            help="Take the answers from a file: unit, roles, formats, public and change.",
        ),
    ] = None,
    about: Annotated[
        bool,
        typer.Option(
            "--about",
            help="Answer what catalogs and registries ask, on one screen, and nothing else.",
        ),
    ] = False,
) -> int:
    """Confirm what a draft read from the data, one question for each kind of thing.

    Roles and formats must be correct. Ranges and lists of values must be public knowledge. After
    a no, say what is true instead. Exit status 1: entries are left to confirm.
    """
    from incrowd.cli import confirmation
    from incrowd.curate import confirm as task
    from incrowd.spec.file import read_spec_file

    file = read_spec_file(spec)
    if about:
        _describe_release(file)
        return 0
    if answers_file is not None:
        file = confirmation.apply_file(file, answers_file)
    named = values_are_public or []
    answers = [
        *(task.list_harmless_entries(file) if every else ()),
        *task.list_public_entries(file, named),
    ]
    answers += [(task.UNIT, task.UNIT)] if unit and file.spec.confirm else []
    if answers:
        file = task.confirm(file, answers)
        task.save_spec(file)
        print(f"Confirmed {format_count(len(answers), 'entry', 'entries')} of {spec}.")
    refused: list[Question] = []
    is_scripted = bool(every or named or unit or answers_file)
    if not is_scripted:
        file, refused = confirmation.ask_questions(file)
    if file.spec.is_confirmed:
        if sys.stdin.isatty() and not is_scripted:
            _offer_questions(file)
        print(f"All entries are confirmed. Next: incrowd check {file.shell_name}")
        return 0
    if refused:
        print(f"You answered no. Correct these entries in {spec}:")
        terminal.print_facts(
            (confirmation.place_question(question), question.correction) for question in refused
        )
    _print_unconfirmed(file, {(question.column, question.entry) for question in refused})
    print(f"Next: incrowd confirm {file.shell_name}")
    return 1


def _offer_questions(file: SpecFile) -> None:
    """Offer the questions about the release, unless those of a registry's record are answered."""
    from incrowd.curate.questionnaire import list_about_questions

    if all(question.is_stated for question in list_about_questions(file) if question.in_record):
        return
    answers = {
        "y": "yes: answer some of ten questions on one screen",
        "n": "no: nothing is stated; `incrowd confirm --about` asks later",
    }
    if terminal.ask_choice("Describe the release for catalogs and registries?", answers) == "y":
        _describe_release(file)


def _describe_release(file: SpecFile) -> None:
    """Ask what catalogs and registries ask; say which formats there are if none is named."""
    from incrowd.cli.metadata import ask_about

    file = ask_about(file)
    if file.spec.about is not None and not file.spec.describe:
        print("To publish metadata with the release, add to the spec, for example:")
        print("  describe: [croissant, dcat, frictionless, dossier]")


def _print_unconfirmed(file: SpecFile, refused: Collection[tuple[str, str]]) -> None:
    """Print the entries that are left to confirm and were not answered, with their options."""
    from incrowd.spec.model import HARMLESS_ENTRIES

    facts = []
    if file.spec.confirm and ("unit", "unit") not in refused:
        facts.append(("unit", "row or person (--unit)"))
    for name, entries in file.spec.unconfirmed_entries.items():
        left = [entry for entry in entries if (name, entry) not in refused]
        correct = [entry for entry in left if entry in HARMLESS_ENTRIES]
        public = [entry for entry in left if entry not in HARMLESS_ENTRIES]
        parts = [f"{', '.join(correct)} (--roles)"] if correct else []
        if public:
            parts.append(f"{', '.join(public)} (--values-are-public {shlex.quote(name)})")
        facts.append((name, "; ".join(parts)))
    facts = [fact for fact in facts if fact[1]]
    if facts:
        print("Not confirmed yet; the option in brackets confirms without a question:")
        terminal.print_facts(facts)


def check(
    spec: SpecPath,
    engine: EngineName = None,
    master: Master = None,
    conf: Settings = None,
    as_json: Json = False,
) -> int:
    """Check a spec against its table: errors, warnings and a forecast.

    Exit status 1: there are errors.
    """
    from incrowd.curate.check import check as checked
    from incrowd.curate.check import find_refusals
    from incrowd.spec.file import read_spec_file

    file = read_spec_file(spec)
    findings = checked(None, file, engine=choose_engine(engine, master, conf))
    if file.spec.release is not None and file.spec.is_confirmed:
        findings = [*find_refusals(file), *findings]
        findings = sort_findings(findings)
    severities = {finding.severity for finding in findings}
    wrong = Severity.ERROR in severities
    if as_json:
        listed = [finding.as_dict() for finding in findings]
        terminal.print_json({"ok": not wrong, "findings": listed})
        return int(wrong)
    terminal.print_findings(findings)
    ready = file.spec.release is not None and severities <= {Severity.NOTE}
    print(f"{count_findings(findings)}{' Ready to publish.' if ready else ''}")
    return int(wrong)


def rehearse(
    spec: Annotated[
        Path, typer.Argument(metavar="SPEC", help="Path of the spec (YAML); a draft will do.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="New folder of the dry run.")
    ],
    size: Annotated[
        str | None, number_option("Number of fictional people. Default: `size` of the spec.")
    ] = None,
    typical: Annotated[
        str | None, number_option("Median number of rows per person, where the unit is an id.")
    ] = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> int:
    """Do a dry run: publish a fictional table, without spending budget.

    Neither the table nor the ledger is opened, and `incrowd verify` rejects the result. Exit
    status 4: fewer than 5 % of rows are published.
    """
    from incrowd.cli import results
    from incrowd.curate.rehearse import rehearse as run
    from incrowd.spec.file import read_spec_file

    with terminal.show_progress("splitting the budget") as (step, tell):
        release = run(
            read_spec_file(spec),
            size=parse_number("size", size),
            typical=parse_number("typical", typical),
            output=output,
            step=step,
            progress=tell,
        )
    if as_json:
        document = release.certificate.model_dump(exclude_none=True)
        document |= {"empty": release.is_empty, "nearly_empty": release.is_nearly_empty}
        terminal.print_json({**document, "findings": results.list_findings(release)})
        return EMPTY if release.is_empty or release.is_nearly_empty else DONE
    results.print_fictional_findings(release.findings, stderr=True)
    results.print_release(release, verbose=verbose)
    return EMPTY if release.is_empty or release.is_nearly_empty else DONE


def schema() -> None:
    """Print the JSON Schema of specs, for editors."""
    from incrowd.spec.model import build_json_schema

    print(json.dumps(build_json_schema(), indent=2))


def sample(
    kind: Annotated[str, typer.Argument(metavar="NAME", help="Table: voters, patients or census.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="New file: .parquet, .csv or .arrow."),
    ],
    rows: Annotated[
        str | None, number_option("Number of rows. Default: that of the table.")
    ] = None,
    seed: Annotated[str, number_option("Seed of the random numbers.")] = "1",
    spec: Annotated[
        Path | None, typer.Option(metavar="SPEC", help="Write a spec for the table, too.")
    ] = None,
) -> None:
    """Write a fictional table to try things on, and a spec for it."""
    from incrowd.curate.demo_tables import SPECS
    from incrowd.curate.demo_tables import make_demo_table as make
    from incrowd.curate.draft.draft import format_path
    from incrowd.spec.base import quote_scalar

    if spec is not None and spec.exists():
        raise IncrowdError(f"File '{spec}' exists already. Name another one with --spec.")
    table = make(kind, rows=parse_number("rows", rows), seed=parse_number("seed", seed))
    table.write(output)
    print(f"Wrote {table.rows():,} fictional rows ({kind}) to {output}.")
    if spec is not None:
        name = quote_scalar(format_path(output, spec.absolute().parent))
        text = SPECS[kind].replace(f"table: {kind}.parquet", f"table: {name}")
        spec.write_text(text, encoding="utf-8")
        print(f"Wrote a spec to {spec}. Next: incrowd publish {shlex.quote(str(spec))} -o out")
