"""Commands about hierarchies: those below `incrowd hierarchy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli import results, terminal
from incrowd.errors import IncrowdError

hierarchies = typer.Typer(help="Look at hierarchies and convert them.", no_args_is_help=True)


@hierarchies.command()
def preview(
    spec: Annotated[Path, typer.Argument(help="The spec.")],
    column: Annotated[str, typer.Argument(help="The column.")],
    counts: Annotated[bool, typer.Option("--counts", help="Count the table's rows.")] = False,
    most: Annotated[int, typer.Option(help="Show so many values at most.")] = 40,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a hierarchy: one row per value, one column per level."""
    from incrowd.curate.preview import preview as look
    from incrowd.spec.file import load

    shown = look(load(spec), column, counted=counts)
    terminal.print_json(shown.as_dict()) if as_json else results.print_preview(shown, counts, most)


@hierarchies.command()
def tree(
    spec: Annotated[Path, typer.Argument(help="The spec.")],
    column: Annotated[str, typer.Argument(help="The column.")],
    counts: Annotated[bool, typer.Option("--counts", help="Count the table's rows.")] = False,
    most: Annotated[int, typer.Option(help="Show so many groups and values at most.")] = 200,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a hierarchy as a tree, with the groups of each level; large ones are folded."""
    from incrowd.curate.preview import tree as look
    from incrowd.spec.file import load

    shown = look(load(spec), column, counted=counts, most=most)
    terminal.print_json(shown.as_dict()) if as_json else results.print_tree(shown)


@hierarchies.command()
def convert(
    source: Annotated[Path, typer.Argument(help="A spec, or a hierarchy in ARX form (.csv).")],
    column: Annotated[str | None, typer.Argument(help="The column of the spec.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file.")] = None,
    delimiter: Annotated[str, typer.Option(help="Between the levels.")] = ";",
    values_are_public: Annotated[
        bool,
        typer.Option("--values-are-public", help="Take unlisted values from the table."),
    ] = False,
) -> None:
    """Turn a column's hierarchy into ARX form, or an ARX file into YAML for a spec."""
    from incrowd.curate.preview import as_groups, hierarchy_of
    from incrowd.spec.arx import read_rows, write_rows
    from incrowd.spec.file import load

    if source.suffix.lower() not in (".yaml", ".yml"):
        text = f"hierarchy: {as_groups(read_rows(source))}\n"
    elif column is None:
        raise IncrowdError("Name the column of the spec whose hierarchy is to be written.")
    else:
        found = hierarchy_of(load(source), column, values_are_public=values_are_public)
        text = write_rows(found, delimiter)
    if output is None:
        terminal.hand_out(text)
    elif output.exists():
        raise IncrowdError(f"'{output}' exists already. Name another file with -o.")
    else:
        output.write_text(text, encoding="utf-8")
