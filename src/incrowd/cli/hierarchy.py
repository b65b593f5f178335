"""Commands about hierarchies: those below `incrowd hierarchy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli import results, terminal
from incrowd.cli.options import Json, SpecPath
from incrowd.errors import IncrowdError

_Column = Annotated[str, typer.Argument(metavar="COLUMN", help="Name of the column.")]
_Counts = Annotated[bool, typer.Option("--counts", help="Count the rows of the table (private).")]

hierarchies = typer.Typer(
    help="Show hierarchies, and convert them from and to ARX.", no_args_is_help=True
)


@hierarchies.command()
def preview(
    spec: SpecPath,
    column: _Column,
    counts: _Counts = False,
    limit: Annotated[int, typer.Option(help="Largest number of values to print.")] = 40,
    as_json: Json = False,
) -> None:
    """Print a hierarchy as a table: one row per value, one column per level."""
    from incrowd.curate.hierarchy_preview import preview_hierarchy as look
    from incrowd.spec.file import read_spec_file

    hierarchy_preview = look(read_spec_file(spec), column, with_counts=counts)
    terminal.print_json(hierarchy_preview.as_dict()) if as_json else results.print_preview(
        hierarchy_preview, counts, limit
    )


@hierarchies.command()
def tree(
    spec: SpecPath,
    column: _Column,
    counts: _Counts = False,
    limit: Annotated[int, typer.Option(help="Largest number of groups and values to print.")] = 200,
    as_json: Json = False,
) -> None:
    """Print a hierarchy as a tree, with the number of groups of each level."""
    from incrowd.curate.hierarchy_preview import build_tree as look
    from incrowd.spec.file import read_spec_file

    hierarchy_tree = look(read_spec_file(spec), column, with_counts=counts, most=limit)
    terminal.print_json(hierarchy_tree.as_dict()) if as_json else results.print_tree(hierarchy_tree)


@hierarchies.command()
def convert(
    source: Annotated[
        Path,
        typer.Argument(metavar="SOURCE", help="Spec (.yaml), or hierarchy in ARX form (.csv)."),
    ],
    column: Annotated[
        str | None, typer.Argument(metavar="COLUMN", help="Column of the spec.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="New file. Default: standard output."),
    ] = None,
    delimiter: Annotated[str, typer.Option(help="Delimiter between levels.")] = ";",
    values_are_public: Annotated[
        bool,
        typer.Option(
            "--values-are-public",
            help="Assert that the values are public; read them from the table.",
        ),
    ] = False,
) -> None:
    """Convert the hierarchy of a column to ARX form, or an ARX file to YAML."""
    from incrowd.curate.hierarchy_preview import format_as_groups, load_hierarchy
    from incrowd.spec.arx import format_rows, read_rows
    from incrowd.spec.file import read_spec_file

    if source.suffix.lower() not in (".yaml", ".yml"):
        text = f"hierarchy: {format_as_groups(read_rows(source))}\n"
    elif column is None:
        raise IncrowdError("No column given. Name the column whose hierarchy to convert.")
    else:
        hierarchy = load_hierarchy(
            read_spec_file(source), column, values_are_public=values_are_public
        )
        text = format_rows(hierarchy, delimiter)
    if output is None:
        terminal.write_output(text)
    elif output.exists():
        raise IncrowdError(f"File '{output}' exists already. Name another one with -o.")
    else:
        output.write_text(text, encoding="utf-8")
