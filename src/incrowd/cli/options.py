"""Options of commands that are numbers, read so that an error names the option and its value."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.errors import IncrowdError, ParameterError, check_choice

if TYPE_CHECKING:
    from incrowd.engine.table import Engine

SpecPath = Annotated[Path, typer.Argument(metavar="SPEC", help="Path of the spec (YAML).")]
EngineName = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        help="Engine that reads the table: local or spark. Default: local.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Address of Spark, such as spark://HOST:7077. Default: this machine.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="NAME=VALUE", help="Setting of Spark. Repeatable."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print more details.")]


def number_option(help_text: str) -> typer.models.OptionInfo:
    """Make an option for a number; :func:`parse_number` reads it, so that errors name it."""
    option: typer.models.OptionInfo = typer.Option(metavar="NUMBER", help=help_text)
    return option


def choose_engine(
    name: str | None, master: str | None, conf: Sequence[str] | None
) -> Engine | None:
    """Return the engine that options name; None leaves it to the table."""
    from incrowd.engine.source import local_engine, spark_engine

    chosen = check_choice("engine", name or ("spark" if master or conf else "local"), _ENGINES)
    if chosen == "local":
        if master or conf:
            raise IncrowdError(
                "--master and --conf apply to Spark only. Add --engine spark, or drop them."
            )
        return None if name is None else local_engine()
    settings = {}
    for setting in conf or ():
        key, sign, value = setting.partition("=")
        if not sign or not key:
            raise ParameterError("conf", "be NAME=VALUE", setting)
        settings[key.strip()] = value
    return spark_engine(master, settings)


_ENGINES = ("local", "spark")


def parse_number(name: str, text: str | None) -> Any:
    """Return the number that an option holds; its name and value are in the error."""
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ParameterError(name, "be a number", text) from None
