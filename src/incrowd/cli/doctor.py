"""The command ``doctor``: what is installed, and what is missing."""

from __future__ import annotations

from typing import Annotated

import typer

from incrowd.cli import terminal
from incrowd.cli.terminal import say as print  # noqa: A004 - names and values come from anywhere


def doctor(
    attempt: Annotated[
        bool, typer.Option("--try", help="Make and verify a release of made-up people, too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Show what is installed, which extras are missing, Java, browser, cores and memory.

    Exit status 1 if something that every release needs is missing or does not work.
    """
    from incrowd.curate.doctor import diagnose

    found = diagnose(attempt=attempt)
    if as_json:
        terminal.print_json(found.as_dict())
    else:
        for line in found.lines():
            print(line)
    return int(not found.works)
