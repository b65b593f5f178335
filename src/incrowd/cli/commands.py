"""The commands: where each is, the parser that finds the one asked for, and how it ends."""

from __future__ import annotations

import sys
import traceback
import warnings
from importlib import import_module
from typing import Annotated, TextIO

import typer

from incrowd import __version__
from incrowd.cli.status import FAULT, INTERRUPTED, NO, WRONG_USE
from incrowd.cli.terminal import StoppedError
from incrowd.cli.terminal import say as print  # noqa: A004 - names and values come from anywhere
from incrowd.errors import IncrowdError, IncrowdWarning, Refusal

_COMMANDS = {  # by the module that each is in, in the order in which help lists them
    "cli.specs": ("init", "confirm", "check", "rehearse", "schema", "sample"),
    "cli.plan": ("plan",),
    "cli.explore": ("explore",),
    "cli.attack": ("attack",),
    "cli.audit": ("audit",),
    "studio.command": ("studio",),
    "cli.doctor": ("doctor",),
    "cli.reproduce": ("reproduce",),
    "cli.releases": ("publish", "verify", "evaluate", "demo"),
}
_GROUPS = {"ledger": ("cli.ledger", "ledgers"), "hierarchy": ("cli.groups", "hierarchies")}


def command_line(only: str | None = None) -> typer.Typer:
    """The parser of all commands, or, if ``only`` is the name of one, of that one.

    To load and to describe all of them takes longer than a small release.
    """
    app = typer.Typer(
        name="incrowd",
        help="Publish tables about people so that each person hides in a crowd, provably.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    names = [name for one in _COMMANDS.values() for name in one]
    known = {only} if only in (*names, *_GROUPS) else {*names, *_GROUPS}
    for module, commands in _COMMANDS.items():
        for name in commands:
            if name in known:
                app.command(name)(getattr(import_module(f"incrowd.{module}"), name))
    for name, (module, group) in _GROUPS.items():
        if name in known:
            app.add_typer(getattr(import_module(f"incrowd.{module}"), group), name=name)
    return app


def run() -> int:
    """Run the command that was asked for, and return its exit status."""
    warnings.showwarning = _show_warning
    warnings.simplefilter("ignore", IncrowdWarning)  # commands say themselves what is to be known
    try:
        app = command_line(sys.argv[1] if len(sys.argv) > 1 else None)
        status = app(prog_name="incrowd", standalone_mode=False)
        if status == INTERRUPTED:  # so the parser tells of it
            _complain("Interrupted.")
    except StoppedError as error:
        _complain(str(error), error.__cause__)
        status = INTERRUPTED
    except IncrowdError as error:
        _complain(str(error), error)
        status = NO if isinstance(error, Refusal) else WRONG_USE
    except OSError as error:
        status = _complain(f"{error.strerror}: '{error.filename}'", error)
    except Exception as error:  # noqa: BLE001 - the last one to see it
        # The parser's own errors know their message; anything else is a fault of ours.
        if hasattr(error, "format_message"):
            status = _complain(error.format_message() or "Say what to do; --help lists it.")
        else:
            print(traceback.format_exc(), end="", file=sys.stderr)
            status = FAULT
    return status if isinstance(status, int) else 0


def _complain(message: str, error: BaseException | None = None) -> int:
    """Say what is wrong, and what is to be known besides: that a spend was booked, say."""
    notes = getattr(error, "__notes__", [])
    print(f"incrowd: {' '.join([message, *notes])}", file=sys.stderr)
    return WRONG_USE


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001 - the signature is Python's
    line: str | None = None,
) -> None:
    """A library's warning, as Python shows it; it may hold a name or a value."""
    text = warnings.formatwarning(message, category, filename, lineno, line)
    print(text, end="", file=sys.stderr)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"incrowd {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Publish tables about people so that each person hides in a crowd, provably."""
