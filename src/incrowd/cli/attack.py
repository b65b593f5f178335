"""The command that tries to break a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli import evaluation_facts, terminal
from incrowd.cli.options import (
    EngineName,
    Json,
    Master,
    Settings,
    Verbose,
    choose_engine,
    number_option,
    parse_number,
)
from incrowd.evaluation.attacks.catalog import ATTACKS  # loads nothing else


def attack(
    original: Annotated[str, typer.Option(metavar="TABLE", help="Original table.")],
    released: Annotated[
        str, typer.Option(metavar="TABLE", help="Released table of any tool, or a release folder.")
    ],
    spec: Annotated[Path, typer.Option(metavar="SPEC", help="Spec with the hierarchies.")],
    control: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE", help="Control group: similar people who are not in the table."
        ),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Column to infer. Default: sensitive columns. Repeatable."
        ),
    ] = None,
    knows: Annotated[
        str | None,
        number_option(
            "Number of quasi-identifiers the attacker knows; the worst are used. Default: all."
        ),
    ] = None,
    errors: Annotated[
        str, number_option("Probability that a value known to the attacker is wrong.")
    ] = "0",
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="ATTACK", help=f"One of {', '.join(ATTACKS)}. Repeatable."),
    ] = None,
    tries: Annotated[str, number_option("Number of people to attack.")] = "2000",
    classifier: Annotated[
        bool,
        typer.Option("--classifier", help="Train a classifier, too (--control)."),
    ] = False,
    shadows: Annotated[
        bool,
        typer.Option("--shadows", help="Run membership inference with shadow releases (minutes)."),
    ] = False,
    also: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE", help="Another release of the same table, to intersect. Repeatable."
        ),
    ] = None,
    identity: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="Column that identifies a row in both tables."),
    ] = None,
    curator: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Private folder of the release. Default: beside it."),
    ] = None,
    seed: Annotated[str | None, number_option("Seed of the choice of people.")] = None,
    engine: EngineName = None,
    master: Master = None,
    conf: Settings = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Attack a release, and compare each success with guessing and a control group.

    The result is private: it is computed from the original table.
    """
    from incrowd.evaluation.attacks.attack import attack as tried

    report = tried(
        original,
        released,
        spec,
        control=control,
        secrets=secret or None,
        knows=parse_number("knows", knows),
        errors=float(parse_number("errors", errors)),
        only=only or ATTACKS,
        tries=parse_number("tries", tries),
        classifier=classifier,
        shadows=shadows,
        also=also or (),
        identity=identity,
        curator=curator,
        seed=parse_number("seed", seed),
        engine=choose_engine(engine, master, conf),
    )
    if as_json:
        terminal.print_json(report.as_dict())
    else:
        evaluation_facts.print_attacks(report, verbose=verbose)
