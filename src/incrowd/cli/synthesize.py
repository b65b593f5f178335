"""The command ``synthesize``: rows of all columns from a release by slices, at no cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli import terminal
from incrowd.cli.options import Json
from incrowd.cli.terminal import print_text as print  # noqa: A004 - names and values come from anywhere


def synthesize(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the release.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Rows to write (.parquet or .csv)."),
    ],
    as_json: Json = False,
) -> None:
    """Draw rows of all columns from a release by slices, at no cost.

    A model is fitted to the counts of the slices. The guarantee of the release covers the rows.
    """
    from incrowd.curate.synthesize import write_synthetic_rows

    rows = write_synthetic_rows(folder, output)
    if as_json:
        terminal.print_json(
            {"file": str(output), "rows": rows.rows(), "columns": list(rows.columns)}
        )
        return
    print(f"Wrote {rows.rows():,} synthetic rows of {len(rows.columns)} columns to {output}.")
    print("They follow from the release: its guarantee covers them, and no budget is spent.")
