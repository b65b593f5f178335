"""The commands: where each is, the parser that finds the one asked for, and how it ends."""

from __future__ import annotations

import sys
import traceback
import warnings
from importlib import import_module
from typing import Annotated, Any, TextIO

import typer

from incrowd import __version__
from incrowd.cli.help import HelpCommand, HelpGroup, name_parameter
from incrowd.cli.status import FAULT, INTERRUPTED, NO, WRONG_USE
from incrowd.cli.terminal import StoppedError
from incrowd.cli.terminal import print_text as print  # noqa: A004 - names and values come from anywhere
from incrowd.errors import IncrowdError, IncrowdWarning, Refusal

_PANELS = {  # in the order in which help lists them: panel, command, module
    "Prepare": {
        "init": "cli.specs", "confirm": "cli.specs", "hierarchy": "cli.hierarchy",
        "schema": "cli.specs",
    },
    "Publish": {
        "rehearse": "cli.specs", "publish": "cli.releases", "synthesize": "cli.synthesize",
        "cumulate": "cli.cumulate",
        "calibrate": "cli.calibrate", "describe": "cli.metadata", "studio": "studio.command",
    },
    "Check": {"check": "cli.specs", "verify": "cli.releases"},
    "Judge": {
        "risk": "cli.risk",
        "evaluate": "cli.releases", "attack": "cli.attack", "audit": "cli.audit",
        "compare": "cli.compare", "explore": "cli.explore",
    },
    "Budget": {"plan": "cli.plan", "ledger": "cli.ledger"},
    "Learn": {
        "demo": "cli.releases", "sample": "cli.specs", "doctor": "cli.doctor",
        "reproduce": "cli.reproduce",
    },
}  # fmt: skip
_GROUPS = {"ledger": "ledgers", "hierarchy": "hierarchies"}  # commands that have commands
_VERSION = "--version"
_HINTS = {
    (f"incrowd {command}", f"--{entry}"): f"{what} is in the spec: `release: {{{entry}: …}}`."
    for command in ("publish", "rehearse", "check")
    for entry, what in {"method": "The method", "epsilon": "ε", "delta": "δ", "k": "k"}.items()
}
_NAMES = tuple(name for commands in _PANELS.values() for name in commands)


class _JourneyGroup(HelpGroup):
    """Commands in the order of the journey; Typer would list groups last."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in the order of ``_PANELS``."""
        return [name for name in _NAMES if name in super(_JourneyGroup, self).list_commands(ctx)]


def build_parser(only: str | None = None) -> typer.Typer:
    """Build the parser of all commands, or, if ``only`` names one, of that one.

    To load and to describe all of them takes longer than a small release; the version needs none.
    """
    app = typer.Typer(
        name="incrowd",
        cls=_JourneyGroup,
        help="Publish person-level tables with a provable privacy guarantee.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_define_options)
    for panel, commands in _PANELS.items():
        for name, module in commands.items():
            if only in (*_NAMES, _VERSION) and name != only:
                continue
            command = getattr(import_module(f"incrowd.{module}"), _GROUPS.get(name, name))
            if name in _GROUPS:
                for info in command.registered_commands:
                    info.cls = HelpCommand
                app.add_typer(command, name=name, cls=HelpGroup, rich_help_panel=panel)
            else:
                app.command(name, cls=HelpCommand, rich_help_panel=panel)(command)
    return app


def run_command() -> int:
    """Run the command that was asked for, and return its exit status."""
    warnings.showwarning = _show_warning
    warnings.simplefilter("ignore", IncrowdWarning)  # commands say themselves what is to be known
    try:
        app = build_parser(sys.argv[1] if len(sys.argv) > 1 else None)
        status = app(prog_name="incrowd", standalone_mode=False)
        if status == INTERRUPTED:  # so the parser tells of it
            _print_error("Interrupted.")
    except StoppedError as error:
        _print_error(str(error), error.__cause__)
        status = INTERRUPTED
    except IncrowdError as error:
        _print_error(str(error), error)
        status = NO if isinstance(error, Refusal) else WRONG_USE
    except OSError as error:
        status = _print_error(f"{error.strerror}: '{error.filename}'", error)
    except Exception as error:  # noqa: BLE001 - the last one to see it
        # The parser's own errors know their message; anything else is a fault of ours.
        if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help
            print(error, file=sys.stderr)
            status = WRONG_USE
        elif hasattr(error, "format_message"):
            status = _print_error(_explain_usage(error))
        else:
            print(traceback.format_exc(), end="", file=sys.stderr)
            status = FAULT
    return status if isinstance(status, int) else 0


def _explain_usage(error: Any) -> str:
    """Return an error of the parser, with the command that helps."""
    path = error.ctx.command_path if getattr(error, "ctx", None) else "incrowd"
    message = _list_missing(error) or error.format_message()
    hint = _HINTS.get((path, getattr(error, "option_name", "")))
    if hint is None and "No such command 'version'" in message:
        hint = "Use `incrowd --version`."
    if hint is None and path == "incrowd ledger budget" and "Missing" in message:
        hint = "To print the budget, use `incrowd ledger show FILE`."
    if hint is not None:
        return f"{message.partition('.')[0]}. {hint}"
    return f"{message.removesuffix('.')}. See `{path} --help`." if "?" not in message else message


def _list_missing(error: Any) -> str:
    """Return all required parameters that a call lacks, where it lacks several."""
    if type(error).__name__ != "MissingParameter" or error.ctx is None:
        return ""
    read = error.ctx.params  # those of the call come first, so that all of them are here
    missing = [
        param
        for param in error.ctx.command.params
        if param.required and read.get(param.name) is None
    ]
    return f"Missing: {', '.join(map(name_parameter, missing))}." if len(missing) > 1 else ""


def _print_error(message: str, error: BaseException | None = None) -> int:
    """Print what is wrong, and the notes of the error: that a spend was booked, say."""
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
    """Show a library's warning as Python shows it; it may hold a name or a value."""
    text = warnings.formatwarning(message, category, filename, lineno, line)
    print(text, end="", file=sys.stderr)


def _show_version(is_set: bool) -> None:
    if is_set:
        print(f"incrowd {__version__}")
        raise typer.Exit


def _define_options(
    version: Annotated[
        bool,
        typer.Option(
            _VERSION, callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Publish person-level tables with a provable privacy guarantee."""
