"""The command ``audit``: what many runs on two neighbouring tables show of epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli import terminal
from incrowd.cli.options import number, parsed
from incrowd.cli.terminal import say as print  # noqa: A004 - names and values come from anywhere
from incrowd.errors import IncrowdError


def audit(
    spec: Annotated[Path | None, typer.Argument(help="The spec; or --command instead.")] = None,
    command: Annotated[
        str | None, typer.Option(help='Of any tool: "tool {input} {output}", CSV to CSV.')
    ] = None,
    table: Annotated[Path | None, typer.Option(help="A CSV file, for --command.")] = None,
    claim: Annotated[str | None, number("The epsilon that --command claims.")] = None,
    claim_delta: Annotated[str | None, number("The delta that --command claims; 0.")] = None,
    delta: Annotated[str, number("At which epsilon is bounded.")] = "0.01",
    confidence: Annotated[str, number("With which the bound holds.")] = "0.95",
    seconds: Annotated[str, number("Of all cores together.")] = "60",
    runs: Annotated[
        str | None, number("On each table, however long they take, in place of --seconds.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Run a method again and again on made-up neighbouring tables: what it shows of epsilon.

    No table of a spec is opened. Exit status 1 if more is shown than is claimed.
    """
    how = {
        name: parsed(name, text)
        for name, text in (
            ("delta", delta), ("confidence", confidence), ("seconds", seconds), ("runs", runs),
        )
    }  # fmt: skip
    if (spec is None) == (command is None):
        raise IncrowdError("Name a spec, or a command with --command; one of them.")
    if command is None:
        from incrowd.evaluation.audit.audit import audit as run
        from incrowd.spec.file import load

        if any(option is not None for option in (table, claim, claim_delta)):
            raise IncrowdError("The options --table, --claim and --claim-delta are for --command.")
        assert spec is not None
        found = run(load(spec), **how)
    else:
        from incrowd.evaluation.audit.command import audit_command

        if table is None or claim is None:
            raise IncrowdError("--command needs a table and what is claimed: --table, --claim.")
        claimed = parsed("claim", claim), parsed("claim-delta", claim_delta or "0")
        found = audit_command(command, table, claim=claimed[0], claim_delta=claimed[1], **how)
    if as_json:
        terminal.print_json(found.as_dict())
    else:
        for line in found.lines():
            print(line)
    return int(found.above)
