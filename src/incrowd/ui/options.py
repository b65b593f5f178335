"""Options of commands that are numbers, read so that an error names the option and its value."""

from __future__ import annotations

from typing import Any

import typer

from incrowd.errors import ParameterError


def number(help_text: str) -> typer.models.OptionInfo:
    """An option for a number; parsed by :func:`parsed`, so that errors name the value."""
    option: typer.models.OptionInfo = typer.Option(metavar="NUMBER", help=help_text)
    return option


def parsed(name: str, text: str | None) -> Any:
    """The number that an option holds; its name and value are in the error."""
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
