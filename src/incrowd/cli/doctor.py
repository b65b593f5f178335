"""The command ``doctor``: what is installed, and what is missing."""

from __future__ import annotations

from typing import Annotated

import typer

from incrowd.cli import terminal
from incrowd.cli.options import Json
from incrowd.cli.terminal import print_text as print  # noqa: A004 - names and values come from anywhere


def doctor(
    attempt: Annotated[
        bool, typer.Option("--try", help="Publish and verify a fictional table, too.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Check the installation: libraries, extras, Java, browser, memory.

    Exit status 1: a required library is missing or does not work.
    """
    from incrowd.curate.doctor import diagnose_installation

    diagnosis = diagnose_installation(attempt=attempt)
    if as_json:
        terminal.print_json(diagnosis.as_dict())
    else:
        for line in diagnosis.format_lines():
            print(line)
    return int(not diagnosis.is_working)
