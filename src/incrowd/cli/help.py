"""Help of commands: usage, description, arguments, options and an example, on one screen."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

EXAMPLES = {
    "init": "incrowd init people.csv -o spec.yaml",
    "confirm": "incrowd confirm spec.yaml",
    "hierarchy preview": "incrowd hierarchy preview spec.yaml age",
    "hierarchy tree": "incrowd hierarchy tree spec.yaml age --counts",
    "hierarchy convert": "incrowd hierarchy convert spec.yaml age -o age.csv",
    "schema": "incrowd schema > spec.schema.json",
    "rehearse": "incrowd rehearse spec.yaml -o trial --size 5000",
    "publish": "incrowd publish spec.yaml -o out --ledger people.ledger",
    "synthesize": "incrowd synthesize out -o rows.csv",
    "cumulate": "incrowd cumulate q1 q2 q3 -o totals.csv",
    "calibrate": "incrowd calibrate out --totals region=regions.csv -o weighted.csv",
    "describe": "incrowd describe out -o deposit --spec spec.yaml",
    "studio": "incrowd studio people.csv",
    "check": "incrowd check spec.yaml",
    "verify": "incrowd verify out",
    "risk": "incrowd risk people.csv --spec spec.yaml --weight weight",
    "evaluate": "incrowd evaluate --original people.csv --released out --spec spec.yaml",
    "attack": "incrowd attack --original people.csv --released out --spec spec.yaml",
    "audit": "incrowd audit spec.yaml --seconds 60",
    "compare": "incrowd compare out1 out2 --original people.csv --spec spec.yaml",
    "explore": "incrowd explore spec.yaml --limit 5",
    "plan": "incrowd plan --epsilon 1 --delta 1e-6",
    "ledger budget": "incrowd ledger budget people.ledger --epsilon 2 --delta 1e-5",
    "ledger unit": "incrowd ledger unit people.ledger --row",
    "ledger plan": "incrowd ledger plan people.ledger --spec spec.yaml --releases 4",
    "ledger show": "incrowd ledger show people.ledger",
    "demo": "incrowd demo -o demo",
    "sample": "incrowd sample voters -o voters.csv --spec spec.yaml",
    "doctor": "incrowd doctor --try",
    "reproduce": "incrowd reproduce a -o paper-a",
}
_MOST_COLUMNS = 100


class HelpCommand(TyperCommand):
    """A command with our help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the command."""
        formatter.write(write_command_help(self, ctx))


class HelpGroup(TyperGroup):
    """A group of commands with our help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the group: its commands by panel, then its options."""
        formatter.write(write_group_help(self, ctx))


def write_command_help(command: Any, ctx: Any) -> str:
    """Return the help of a command."""
    arguments = [param for param in command.params if is_argument(param)]
    options = [param for param in command.get_params(ctx) if not is_argument(param)]
    rows = {
        "Arguments": [format_parameter(param) for param in arguments],
        "Options": [format_parameter(param) for param in options],
    }
    lines = [f"Usage: {format_usage(ctx.command_path, command)}", "", *_wrap_help(command.help)]
    lines += _format_sections(rows)
    example = EXAMPLES.get(ctx.command_path.partition(" ")[2])
    return "\n".join([*lines, *(["", "Example:", f"  {example}"] if example else []), ""])


def write_group_help(group: Any, ctx: Any) -> str:
    """Return the help of a group of commands."""
    rows: dict[str, list[tuple[str, str]]] = {}
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        panel = command.rich_help_panel
        panel = panel if isinstance(panel, str) else "Commands"
        rows.setdefault(panel, []).append((name, command.get_short_help_str(limit=200)))
    options = {"Options": [format_parameter(param) for param in group.get_params(ctx)]}
    width = max(len(name) for name in group.list_commands(ctx))
    lines = [f"Usage: {ctx.command_path} COMMAND [OPTIONS]", "", *_wrap_help(group.help)]
    lines += [*_format_sections(rows, width), *_format_sections(options)]
    lines += ["", f"Help of a command: {ctx.command_path} COMMAND --help"]
    return "\n".join([*lines, ""])


def format_usage(path: str, command: Any) -> str:
    """Return how a command is called: arguments, required options, and that there are others."""
    parts = [path]
    for param in command.params:
        if is_argument(param):
            name = name_parameter(param)
            parts.append(name if param.required else f"[{name}]")
    required = [param for param in command.params if not is_argument(param) and param.required]
    parts += map(name_parameter, required)
    return f"{' '.join(parts)} [OPTIONS]"


def name_parameter(param: Any) -> str:
    """Return an argument, or an option with its value, as a call writes it."""
    name = _get_value_name(param)
    return name if is_argument(param) else f"{max(param.opts, key=len)} {name}"


def format_parameter(param: Any) -> tuple[str, str]:
    """Return an argument or option as it is written, and what it does."""
    text = param.help or ""
    if is_argument(param):
        return _get_value_name(param), text
    short = [name for name in param.opts if not name.startswith("--")]
    long = [name for name in (*param.opts, *param.secondary_opts) if name.startswith("--")]
    form = ", ".join([*short, "/".join(long)])
    form = form if short else f"    {form}"
    form = form if param.is_flag else f"{form} {_get_value_name(param)}"
    if param.required:
        text = f"{text} Required."
    elif not param.is_flag and "Default" not in text and _has_default(param):
        text = f"{text} Default: {param.default}."
    return form, text


def _has_default(param: Any) -> bool:
    return isinstance(param.default, str | int | float | Path) and param.default != ""


def is_argument(param: Any) -> bool:
    """Return whether a parameter is given by its place, not by its name."""
    return bool(param.param_type_name == "argument")


def _get_value_name(param: Any) -> str:
    name = param.metavar or param.name.upper().replace("_", "-")
    return str(name).strip("[]")


def _wrap_help(text: str | None) -> list[str]:
    """Return the paragraphs of a description as lines."""
    lines: list[str] = []
    for paragraph in (text or "").split("\n\n"):
        lines += ["", *textwrap.wrap(" ".join(paragraph.split()), _find_width())]
    return lines[1:]


def _format_sections(sections: dict[str, list[tuple[str, str]]], width: int = 0) -> Iterator[str]:
    """Yield each section with its rows in two columns, the first of at least some width."""
    for title, rows in sections.items():
        if rows:
            yield from ("", f"{title}:", *_format_rows(rows, width))


def _format_rows(rows: Sequence[tuple[str, str]], least: int) -> Iterator[str]:
    width = max(least, *(len(name) for name, _ in rows))
    room = max(_find_width() - width - 4, 30)
    for name, text in rows:
        first, *rest = textwrap.wrap(text, room) or [""]
        yield f"  {name:<{width}}  {first}".rstrip()
        yield from (f"  {'':<{width}}  {line}" for line in rest)


def _find_width() -> int:
    return min(shutil.get_terminal_size().columns, _MOST_COLUMNS)
