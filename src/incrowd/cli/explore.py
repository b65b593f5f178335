"""The command that explores the schemes of a k-anonymous release, and how they look."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli import terminal
from incrowd.cli.options import EngineName, Master, Settings, engine_of

if TYPE_CHECKING:
    from incrowd.curate.explore import Explored

_SHOWN = 20


def explore(
    spec: Annotated[Path, typer.Argument(help="A spec with the method k-anonymity.")],
    engine: EngineName = None,
    master: Master = None,
    conf: Settings = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, of every scheme.")] = False,
) -> int:
    """List the best schemes of a k-anonymous release: loss, suppression, risk. For you alone.

    Exit status 1 if no scheme does what is asked.
    """
    from incrowd.curate.explore import explore as look
    from incrowd.engine.source import open_for
    from incrowd.spec.file import load

    file = load(spec)
    table = open_for(file, engine=engine_of(engine, master, conf))
    with terminal.progress("looking at schemes") as (_, tell):
        found = look(file, table, progress=tell)
    terminal.print_json(found.as_dict()) if as_json else _print(found)
    return int(found.best is None)


def _print(found: Explored) -> None:
    from rich.table import Table

    screen = terminal.console()
    looked = len(found.schemes)
    how = "all of them" if found.whole else f"{looked:,}, near the best and on the way to both ends"
    screen.print(f"{found.size:,} schemes; looked at {how}.", soft_wrap=True)
    if found.one_row_each:
        screen.print(
            f"Judged by one row of each of {found.rows:,} people, the row that publish uses.",
            soft_wrap=True,
        )
    good = [one for one in found.schemes if one.holds]
    if not good:
        screen.print(
            f"No scheme that was looked at has k = {found.k} with at most {found.limit:,} rows "
            "suppressed. Allow more suppression or higher levels, or ask for less.",
            soft_wrap=True,
        )
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("loss", "suppressed", "classes", "smallest", "highest risk", "mean risk"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("levels", no_wrap=True)
    for one in good[:_SHOWN]:
        table.add_row(
            f"{one.loss:.4g}", f"{one.suppressed / max(found.rows, 1):.2%}", f"{one.classes:,}",
            f"{one.smallest:,}", f"{one.risk:.2%}", f"{one.mean_risk:.2%}",
            " ".join(map(str, one.levels)),
        )  # fmt: skip
    screen.print(table)
    names = ", ".join(column.name for column in found.columns)
    screen.print(f"Levels are those of: {names}.", soft_wrap=True, markup=False)
    screen.print(
        f"{len(good):,} of them have k = {found.k} with at most {found.limit:,} of {found.rows:,} "
        "rows suppressed. To publish one, fix its levels under 'release': levels: {COLUMN: LEVEL}. "
        "All of this is read from the table and private.",
        soft_wrap=True, markup=False,
    )  # fmt: skip
