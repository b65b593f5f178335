"""Commands about specs: draft one, confirm it, hold it against its table, rehearse by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli import results, terminal
from incrowd.cli.options import EngineName, Master, Settings, engine_of, number, parsed
from incrowd.cli.status import DONE, EMPTY
from incrowd.cli.terminal import say as print  # noqa: A004 - names and values come from anywhere
from incrowd.errors import IncrowdError
from incrowd.findings import Severity, count_findings, sort_findings


def init(
    table: Annotated[
        str | None,
        typer.Argument(help="A file, a PostgreSQL address, or what Spark reads (--engine spark)."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The spec.")] = Path("spec.yaml"),
    arx: Annotated[
        Path | None,
        typer.Option(help="A folder with NAME_hierarchy_COLUMN.csv, and NAME.csv without TABLE."),
    ] = None,
    sheet: Annotated[str | None, typer.Option(help="Of a workbook; the first by default.")] = None,
    header: Annotated[str | None, number("The row that names the columns, from 1.")] = None,
    engine: EngineName = None,
    master: Master = None,
    conf: Settings = None,
) -> None:
    """Draft a spec: roles and hierarchies guessed from the table, to be confirmed by you."""
    from incrowd.curate.draft.draft import draft as drafted
    from incrowd.curate.draft.draft import draft_from_arx, shown_source
    from incrowd.engine.source import open_table

    if output.exists():
        raise IncrowdError(f"'{output}' exists already. Name another file with -o.")
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
        raise IncrowdError("Name a table, or a folder of ARX files with --arx, or both.")
    output.write_text(draft.yaml(), encoding="utf-8")
    for note in draft.notes:
        print(note)
    print(f"Drafted {output} for {len(draft.guesses)} columns. Look at each:")
    width = max(len(guess.column) for guess in draft.guesses)
    for guess in draft.guesses:
        print(f"  {guess.column:{width}}  {guess.role}: {guess.reason}")
    if arx is not None:
        print(f"Hierarchies taken from {arx}: {', '.join(draft.used) or 'none'}.")
        print(f"Files there that fit no column: {', '.join(draft.unused) or 'none'}.")
    print(draft.personal())
    print(f"Then: incrowd confirm {output}, and incrowd check {output}")


def confirm(
    spec: Annotated[Path, typer.Argument(help="The spec.")],
    every: Annotated[
        bool, typer.Option("--roles", help="Confirm all roles and formats of values at once.")
    ] = False,
    unit: Annotated[
        bool, typer.Option("--unit", help="The unit is right: what is protected, row or person.")
    ] = False,
    values_are_public: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Its values or bounds are public knowledge."),
    ] = None,
) -> int:
    """Go through what a draft has read from the data, one screen each, and confirm it.

    Exit status 1 if something is left to be confirmed.
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
        print(f"Nothing is left to confirm. Then: incrowd check {spec}")
        return 0
    left = file.spec.unconfirmed
    if file.spec.confirm:
        print(
            "The unit is left to confirm: does a release protect a row, or a person with several "
            f"rows? Look at the counts (incrowd confirm {spec}), or add --unit if it is right."
        )
    if not left:
        return 1
    number_left = sum(len(entries) for entries in left.values())
    print(f"{number_left} entries of {len(left)} columns are left to confirm: {', '.join(left)}.")
    if every or named or unit:
        print(
            "Lists of values and bounds are published: look at each (incrowd confirm "
            f"{spec}), or name those that are public: --values-are-public COLUMN."
        )
    else:
        print(f"Put right in {spec} what is wrong, or go on: incrowd confirm {spec}")
    return 1


def check(
    spec: Annotated[Path, typer.Argument(help="The spec.")],
    engine: EngineName = None,
    master: Master = None,
    conf: Settings = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Check a spec against its table: one line per finding, errors first."""
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
    spec: Annotated[Path, typer.Argument(help="The spec; a draft will do.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the rehearsal.")],
    size: Annotated[
        str | None, number("How many people to make up; else 'size' of the spec.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Publish a made-up table by the spec, to see the whole journey for nothing.

    The table, a ledger and the record of released tables are not opened. `verify` says no to it.
    Exit status 4 if nothing of the made-up table survived, or less than 5 %.
    """
    from incrowd.curate.rehearse import rehearse as run
    from incrowd.spec.file import load

    with terminal.progress("settling the budget") as (step, tell):
        release = run(
            load(spec), size=parsed("size", size), output=output, step=step, progress=tell
        )
    if as_json:
        known = release.certificate.model_dump(exclude_none=True)
        known |= {"empty": release.empty, "nearly_empty": release.nearly_empty}
        terminal.print_json({**known, "findings": results.list_findings(release)})
        return EMPTY if release.empty or release.nearly_empty else DONE
    terminal.print_findings(release.findings, stderr=True)
    for line in results.published(release):
        print(line)
    return EMPTY if release.empty or release.nearly_empty else DONE


def schema() -> None:
    """Print the JSON Schema of the spec, for editors."""
    from incrowd.spec.model import json_schema

    print(json.dumps(json_schema(), indent=2))


def sample(
    kind: Annotated[str, typer.Argument(help="voters, patients or census.")],
    output: Annotated[Path, typer.Option("--output", "-o", help=".parquet, .csv or .arrow.")],
    rows: Annotated[str | None, number("How many rows.")] = None,
    seed: Annotated[str, number("Decides the table.")] = "1",
    spec: Annotated[Path | None, typer.Option(help="Write a spec for it, too.")] = None,
) -> None:
    """Write a sample table of people who do not exist, and a spec that publishes it."""
    from incrowd.curate.demo_tables import SPECS
    from incrowd.curate.demo_tables import sample as make
    from incrowd.curate.draft.draft import written
    from incrowd.spec.base import quoted

    if spec is not None and spec.exists():
        raise IncrowdError(f"'{spec}' exists already. Name another file with --spec.")
    table = make(kind, rows=parsed("rows", rows), seed=parsed("seed", seed))
    table.write(output)
    print(f"Wrote {table.rows():,} {kind} to {output}.")
    if spec is not None:
        name = quoted(written(output, spec.absolute().parent))
        text = SPECS[kind].replace(f"table: {kind}.parquet", f"table: {name}")
        spec.write_text(text, encoding="utf-8")
        print(f"Then: incrowd publish {spec} -o out")
