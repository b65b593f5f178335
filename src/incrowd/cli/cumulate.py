"""The command that adds up releases of a table, period by period."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli import terminal
from incrowd.cli.options import Json
from incrowd.cli.terminal import print_text as print  # noqa: A004 - names and values come from anywhere
from incrowd.errors import IncrowdError
from incrowd.release.ledger_entries import format_guarantee


def cumulate(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RELEASE...", help="Folders of the releases.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="Totals to write (.csv or .parquet)."),
    ],
    as_json: Json = False,
) -> None:
    """Add up releases period by period, with the error of each total.

    The releases are verified first. The totals follow from them, so no budget is spent.
    """
    from incrowd.curate.cumulate import cumulate as compute_totals

    if output.exists():
        raise IncrowdError(f"File '{output}' exists already. Name another one with -o.")
    totals = compute_totals(folders)
    totals.write(output)
    if as_json:
        terminal.print_json(
            {
                "file": str(output), "rows": totals.table.rows(), "incomplete": totals.incomplete,
                "periods": [vars(period) for period in totals.periods],
                "epsilon": totals.guarantee.epsilon, "delta": totals.guarantee.delta,
            }
        )  # fmt: skip
        return
    from rich.table import Table

    print(f"Wrote {totals.table.rows():,} running totals to {output}.")
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("through", "groups", "standard error", "95 % within", "all within"):
        table.add_column(name, justify="left" if name == "through" else "right", no_wrap=True)
    for period in totals.periods:
        table.add_row(
            period.period, f"{period.groups:,}", f"{period.error:.3g}", f"±{period.within:,}",
            f"±{period.bound:,}",
        )  # fmt: skip
    terminal.make_console().print(table, markup=False)
    if totals.incomplete:
        print(f"{totals.incomplete:,} groups are suppressed in a release: they have no full total.")
    print(
        f"All releases together satisfy {format_guarantee(totals.guarantee)}-differential privacy "
        "for a person within one period. A person of several periods counts in each."
    )
