"""The command that calibrates the weights of a released table to known totals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli.terminal import print_text as print  # noqa: A004 - names and values come from anywhere
from incrowd.errors import ParameterError


def calibrate(
    released: Annotated[
        str, typer.Argument(metavar="RELEASED", help="Released table, or the folder of a release.")
    ],
    totals: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN=FILE",
            help="Known totals of a column: a CSV file with a label and a total in each line. "
            "Repeatable.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="New file (.csv, .parquet).")
    ],
    weight: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Weights to start from. Default: equal weights."),
    ] = None,
) -> None:
    """Calibrate weights of a released table to known totals, by raking.

    It reads nothing but the release and the totals, so the guarantee of the release holds.
    """
    from incrowd.curate.survey_weights import calibrate as rake

    files = {}
    for entry in totals:
        name, sign, path = entry.partition("=")
        if not sign or not name or not path:
            raise ParameterError("totals", "be COLUMN=FILE", entry)
        files[name] = Path(path)
    calibrated = rake(released, files, weight=weight)
    calibrated.write(output)
    print(f"Wrote {output} with weights in column '{calibrated.weight}'.")
    print(
        f"Totals of {', '.join(files)} are met. Weights changed by factors from "
        f"{calibrated.smallest_factor:.4g} to {calibrated.largest_factor:.4g}."
    )
