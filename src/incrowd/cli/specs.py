"""Commands about specs: draft one, confirm it, hold it against its table, rehearse by it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli import results, terminal
from incrowd.cli.options import (
    EngineName,
    Json,
    Master,
    Settings,
    SpecPath,
    Verbose,
    engine_of,
    number,
    parsed,
)
from incrowd.cli.status import DONE, EMPTY
from incrowd.cli.terminal import say as print  # noqa: A004 - names and values come from anywhere
from incrowd.errors import IncrowdError
from incrowd.findings import Severity, count_findings, sort_findings


def init(
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="[TABLE]", help="File, PostgreSQL address, or Spark table (--engine spark)."
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="SPEC", help="Path of the new spec.")
    ] = Path("spec.yaml"),
    arx: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="ARX hierarchies NAME_hierarchy_COLUMN.csv, and NAME.csv if TABLE is not given.",
        ),
    ] = None,
    sheet: Annotated[
        str | None, typer.Option(help="Sheet of a workbook. Default: the first one.")
    ] = None,
    header: Annotated[
        str | None, number("Row of a workbook that holds the column names, counted from 1.")
    ] = None,
    engine: EngineName = None,
    master: Master = None,
    conf: Settings = None,
) -> None:
    """Draft a spec for a table: a role and a hierarchy per column."""
    from incrowd.curate.draft.draft import draft as drafted
    from incrowd.curate.draft.draft import draft_from_arx, shown_source
    from incrowd.engine.source import open_table

    if output.exists():
        raise IncrowdError(f"File '{output}' exists already. Name another one with -o.")
    beside, row = output.absolute().parent, parsed("header", header)
    worker = engine_of(engine, master, conf)
    if arx is not None:
        draft = draft_from_arx(
            arx, beside=beside, table=table, sheet=sheet, header=row, engine=worker
        )
    elif table is not None:
        opened = open_table(table, engine=worker, sheet=sheet, header=row)
        draft = drafted(opened, name=shown_source(table, beside))
    else:
        raise IncrowdError("No table given. Name TABLE, or a folder of ARX files with --arx.")
    output.write_text(draft.yaml(), encoding="utf-8")
    print(f"Drafted {output}: {len(draft.guesses)} columns")
    width = max(len(guess.column) for guess in draft.guesses)
    for guess in draft.guesses:
        terminal.print_wrapped(
            f"{guess.column:<{width}}  {guess.role:<10}  {guess.reason}",
            indent=2,
            hanging=width + 14,
        )
    if arx is not None:
        print(f"ARX hierarchies used: {', '.join(draft.used) or 'none'}.")
        print(f"ARX files without a column: {', '.join(draft.unused) or 'none'}.")
    for note in draft.notes:
        print(f"Note: {note}")
    terminal.print_wrapped(draft.personal())
    print(f"Next: incrowd confirm {output}")


def confirm(
    spec: SpecPath,
    every: Annotated[
        bool, typer.Option("--roles", help="Confirm all roles and formats at once.")
    ] = False,
    unit: Annotated[
        bool, typer.Option("--unit", help="Confirm the unit that is protected: row or person.")
    ] = False,
    values_are_public: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Confirm that its values or bounds are public. Repeatable."
        ),
    ] = None,
) -> int:
    """Confirm what a draft read from the data, one question at a time.

    Exit status 1: entries are left to confirm.
    """
    from incrowd.curate import confirm as task
    from incrowd.spec.file import load

    file = load(spec)
    named = values_are_public or []
    answers = [*(task.free(file) if every else ()), *task.public(file, named)]
    answers += [(task.UNIT, task.UNIT)] if unit and file.spec.confirm else []
    if answers:
        file = task.confirm(file, answers)
        task.save(file)
        print(f"Confirmed {len(answers)} entries of {spec}.")
    asked = list(task.questions(file)) if not (every or named or unit) else []
    for at, question in enumerate(asked, 1):
        results.print_question(question, at, len(asked))
        answer = terminal.ask(f"{question.asks} [y]es, [n]o, [q]uit")
        if answer == "q":
            break
        if answer == "y":
            file = task.confirm(file, [(question.column, question.entry)])
            task.save(file)
    if file.spec.is_confirmed:
        print(f"All entries are confirmed. Next: incrowd check {spec}")
        return 0
    print("Not confirmed:")
    left = file.spec.unconfirmed
    facts = [("unit", "the protected unit, row or person (--unit)")] if file.spec.confirm else []
    facts += [(name, _describe_entries(name, entries)) for name, entries in left.items()]
    terminal.print_facts(facts)
    print(f"Next: correct {spec} where it is wrong, then: incrowd confirm {spec}")
    return 1


def _describe_entries(name: str, entries: Sequence[str]) -> str:
    """Return the entries of a column that are left to confirm, and the option that does so."""
    from incrowd.curate.confirm import FREE

    option = "--roles" if set(entries) <= set(FREE) else f"--values-are-public {name}"
    return f"{', '.join(entries)} ({option})"


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
    from incrowd.curate.check import foreseen
    from incrowd.spec.file import load

    file = load(spec)
    findings = checked(None, file, engine=engine_of(engine, master, conf))
    if file.spec.release is not None and file.spec.is_confirmed:
        findings = [*foreseen(file), *findings]
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
        str | None, number("Number of fictional people. Default: `size` of the spec.")
    ] = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> int:
    """Do a dry run: publish a fictional table by the spec, without spending budget.

    Neither the table nor the ledger is opened, and `incrowd verify` rejects the result. Exit
    status 4: fewer than 5 % of rows are published.
    """
    from incrowd.curate.rehearse import rehearse as run
    from incrowd.spec.file import load

    with terminal.progress("splitting the budget") as (step, tell):
        release = run(
            load(spec), size=parsed("size", size), output=output, step=step, progress=tell
        )
    if as_json:
        known = release.certificate.model_dump(exclude_none=True)
        known |= {"empty": release.empty, "nearly_empty": release.nearly_empty}
        terminal.print_json({**known, "findings": results.list_findings(release)})
        return EMPTY if release.empty or release.nearly_empty else DONE
    terminal.print_findings(release.findings, stderr=True)
    results.print_release(release, verbose=verbose)
    return EMPTY if release.empty or release.nearly_empty else DONE


def schema() -> None:
    """Print the JSON Schema of specs, for editors."""
    from incrowd.spec.model import json_schema

    print(json.dumps(json_schema(), indent=2))


def sample(
    kind: Annotated[str, typer.Argument(metavar="NAME", help="Table: voters, patients or census.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="New file: .parquet, .csv or .arrow."),
    ],
    rows: Annotated[str | None, number("Number of rows. Default: that of the table.")] = None,
    seed: Annotated[str, number("Seed of the random numbers.")] = "1",
    spec: Annotated[
        Path | None, typer.Option(metavar="SPEC", help="Write a spec for the table, too.")
    ] = None,
) -> None:
    """Write a fictional table to try things on, and a spec for it."""
    from incrowd.curate.demo_tables import SPECS
    from incrowd.curate.demo_tables import sample as make
    from incrowd.curate.draft.draft import written
    from incrowd.spec.base import quoted

    if spec is not None and spec.exists():
        raise IncrowdError(f"File '{spec}' exists already. Name another one with --spec.")
    table = make(kind, rows=parsed("rows", rows), seed=parsed("seed", seed))
    table.write(output)
    print(f"Wrote {table.rows():,} {kind} to {output}.")
    if spec is not None:
        name = quoted(written(output, spec.absolute().parent))
        text = SPECS[kind].replace(f"table: {kind}.parquet", f"table: {name}")
        spec.write_text(text, encoding="utf-8")
        print(f"Next: incrowd publish {spec} -o out")
