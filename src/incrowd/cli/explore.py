"""The command that explores the schemes of a k-anonymous release, and how they look."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli import terminal
from incrowd.cli.options import EngineName, Master, Settings, choose_engine
from incrowd.cli.results import describe_generalization
from incrowd.cli.terminal import print_text as print  # noqa: A004 - names and values come from anywhere
from incrowd.findings import format_percent

if TYPE_CHECKING:
    from incrowd.curate.explore import Exploration


def explore(
    spec: Annotated[
        Path, typer.Argument(metavar="SPEC", help="Path of a spec with `method: k-anonymity`.")
    ],
    engine: EngineName = None,
    master: Master = None,
    conf: Settings = None,
    limit: Annotated[int, typer.Option(help="Largest number of schemes to list.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print every scheme as JSON.")] = False,
) -> int:
    """Compare schemes of a k-anonymous release: loss, suppression, risk.

    The result is private: it is computed from the table. Exit status 1: no scheme meets the spec.
    """
    from incrowd.curate.explore import explore_schemes as look
    from incrowd.engine.source import open_spec_table
    from incrowd.spec.file import read_spec_file

    file = read_spec_file(spec)
    table = open_spec_table(file, engine=choose_engine(engine, master, conf))
    with terminal.show_progress("comparing schemes") as (_, tell):
        exploration = look(file, table, progress=tell)
    terminal.print_json(exploration.as_dict()) if as_json else _print_exploration(
        exploration, limit
    )
    return int(exploration.best is None)


def _print_exploration(exploration: Exploration, limit: int) -> None:
    from rich.table import Table

    screen = terminal.make_console()
    compared = len(exploration.schemes)
    which = "" if exploration.is_complete else f"{compared:,} of "
    terminal.print_wrapped(
        f"Compared {which}{exploration.size:,} schemes with k = {exploration.k}."
    )
    if exploration.one_row_each:
        print(f"Unit: one person. One row of each of {exploration.rows:,} people is used.")
    if exploration.people:
        print("Unit: one person, who may have several rows. k counts people, figures count rows.")
    good = [scheme for scheme in exploration.schemes if scheme.holds]
    if not good:
        terminal.print_wrapped(
            f"No scheme has k = {exploration.k} with at most {exploration.limit:,} rows "
            "suppressed. Allow more suppression, higher levels or a smaller k."
        )
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    payout = () if good[0].payout is None else ("payout",)
    for name in ("", *payout, "loss", "suppressed", "groups", "smallest", "highest risk",
                 "mean risk"):  # fmt: skip
        table.add_column(name, justify="right", no_wrap=True)
    for number, first in enumerate(good[:limit], 1):
        table.add_row(
            f"{number}",
            *([] if first.payout is None else [f"{first.payout:,.0f}"]),
            f"{first.loss:.4f}",
            format_percent(first.suppressed / max(exploration.rows, 1), 2),
            f"{first.classes:,}",
            f"{first.smallest:,}",
            format_percent(first.risk, 2),
            format_percent(first.mean_risk, 2),
        )
    screen.print(table)
    print()
    names = [column.name for column in exploration.columns]
    for number, first in enumerate(good[:limit], 1):
        levels = ", ".join(f"{name}: {at}" for name, at in zip(names, first.levels, strict=True))
        terminal.print_wrapped(
            f"{number:>2}  {describe_generalization(exploration.describe_scheme(first))}", hanging=4
        )
        print(f"    levels: {{{levels}}}")
    terminal.print_wrapped(
        f"{len(good):,} schemes have k = {exploration.k} with at most {exploration.limit:,} of "
        f"{exploration.rows:,} rows suppressed. To publish one, add its levels under "
        "`release` of the spec."
    )
    print("The result is private: it is computed from the table.")
