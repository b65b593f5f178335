"""The command ``audit``: a lower bound on ε from many runs on two neighboring tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli import terminal
from incrowd.cli.options import Json, number_option, parse_number
from incrowd.errors import IncrowdError


def audit(
    spec: Annotated[
        Path | None, typer.Argument(metavar="[SPEC]", help="Path of the spec; or use --command.")
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(help='Command of any tool, CSV to CSV: "tool {input} {output}".'),
    ] = None,
    table: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV file, for --command.")
    ] = None,
    claim: Annotated[str | None, number_option("ε that --command claims.")] = None,
    claim_delta: Annotated[
        str | None, number_option("δ that --command claims. Default: 0.")
    ] = None,
    delta: Annotated[str, number_option("δ at which the lower bound on ε is computed.")] = "0.01",
    confidence: Annotated[str, number_option("Confidence of the lower bound.")] = "0.95",
    seconds: Annotated[str, number_option("Time to run, in seconds over all cores.")] = "60",
    runs: Annotated[
        str | None, number_option("Number of runs on each table, instead of --seconds.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Audit a method: bound ε from below by many runs on neighboring tables.

    Tables are fictional; the table of the spec is not opened. Exit status 1: the lower bound
    exceeds the claimed ε.
    """
    how = {
        name: parse_number(name, text)
        for name, text in (
            ("delta", delta), ("confidence", confidence), ("seconds", seconds), ("runs", runs),
        )
    }  # fmt: skip
    if (spec is None) == (command is None):
        raise IncrowdError("Expected either a spec or --command. Name one of them.")
    if command is None:
        from incrowd.evaluation.audit.audit import audit as run
        from incrowd.spec.file import read_spec_file

        if any(option is not None for option in (table, claim, claim_delta)):
            raise IncrowdError(
                "--table, --claim and --claim-delta apply to --command only. Drop them."
            )
        assert spec is not None
        audit_result = run(read_spec_file(spec), **how)
    else:
        from incrowd.evaluation.audit.command import audit_command

        if table is None or claim is None:
            raise IncrowdError("--command needs a table and a claimed ε. Add --table and --claim.")
        claimed = parse_number("claim", claim), parse_number("claim-delta", claim_delta or "0")
        audit_result = audit_command(
            command, table, claim=claimed[0], claim_delta=claimed[1], **how
        )
    if as_json:
        terminal.print_json(audit_result.as_dict())
    else:
        for line in audit_result.format_lines():
            terminal.print_wrapped(line, hanging=12)
    return int(audit_result.is_above_claim)
