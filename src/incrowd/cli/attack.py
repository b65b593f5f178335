"""The command that tries to break a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli import results, terminal
from incrowd.cli.options import EngineName, Master, Settings, engine_of, number, parsed


def attack(
    original: Annotated[str, typer.Option(help="The table as it was.")],
    released: Annotated[str, typer.Option(help="The table as it is shown, by whatever tool.")],
    spec: Annotated[Path, typer.Option(help="The spec with the hierarchies.")],
    control: Annotated[
        str | None, typer.Option(help="Rows of people like those in the table who are not in it.")
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(help="A column to find out; the sensitive ones by default. Can be repeated."),
    ] = None,
    knows: Annotated[
        str | None, number("How many quasi columns an attacker knows; the worst ones are found.")
    ] = None,
    errors: Annotated[str, number("How often a value that an attacker knows is wrong.")] = "0",
    only: Annotated[
        list[str] | None, typer.Option(help="One of the attacks, by name. Can be repeated.")
    ] = None,
    tries: Annotated[str, number("How many people are attacked.")] = "2000",
    classifier: Annotated[
        bool, typer.Option("--classifier", help="Train one, too (scikit-learn, a control group).")
    ] = False,
    shadows: Annotated[
        bool,
        typer.Option("--shadows", help="Make releases with and without single people (minutes)."),
    ] = False,
    also: Annotated[
        list[str] | None,
        typer.Option(help="Another release of the same table, to be intersected. Can be repeated."),
    ] = None,
    identity: Annotated[
        str | None, typer.Option("--id", help="A column that names the same row in both tables.")
    ] = None,
    seed: Annotated[str | None, number("To attack the same people again.")] = None,
    engine: EngineName = None,
    master: Master = None,
    conf: Settings = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Try to break a release: find people's rows and secrets, and whether they are in it.

    For you alone: it looks at the original.
    """
    from incrowd.evaluation.attacks.attack import attack as tried
    from incrowd.evaluation.attacks.trial import ATTACKS

    found = tried(
        original,
        released,
        spec,
        control=control,
        secrets=secret or None,
        knows=parsed("knows", knows),
        errors=float(parsed("errors", errors)),
        only=only or ATTACKS,
        tries=parsed("tries", tries),
        classifier=classifier,
        shadows=shadows,
        also=also or (),
        identity=identity,
        seed=parsed("seed", seed),
        engine=engine_of(engine, master, conf),
    )
    terminal.print_json(found.as_dict()) if as_json else results.print_attacks(found)
