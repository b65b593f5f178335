"""The command that holds several releases of one table side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli import terminal
from incrowd.cli.options import (
    EngineName,
    Json,
    Master,
    Settings,
    choose_engine,
    number_option,
    parse_number,
)
from incrowd.cli.terminal import print_text as print  # noqa: A004 - names and values come from anywhere
from incrowd.findings import format_percent
from incrowd.privacy.presentation import format_parameter

if TYPE_CHECKING:
    from incrowd.evaluation.comparison import ComparedRelease, Comparison


def compare(
    releases: Annotated[
        list[str],
        typer.Argument(metavar="A B...", help="Releases: folders, or tables of any tool."),
    ],
    original: Annotated[str, typer.Option(metavar="TABLE", help="Original table.")],
    spec: Annotated[
        list[Path],
        typer.Option(metavar="SPEC", help="Spec of all releases, or one for each. Repeatable."),
    ],
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column to predict from the others."),
    ] = None,
    attacks: Annotated[
        bool, typer.Option("--attacks/--no-attacks", help="Attack each release, too.")
    ] = True,
    tries: Annotated[str, number_option("Number of people to attack.")] = "500",
    seed: Annotated[str | None, number_option("Seed of the choice of people.")] = None,
    engine: EngineName = None,
    master: Master = None,
    conf: Settings = None,
    as_json: Json = False,
) -> None:
    """Compare releases of one table: loss, risk, utility and attacks, side by side.

    The result is private, and no way to choose a differentially private release.
    """
    from incrowd.evaluation.comparison import compare as measure
    from incrowd.evaluation.comparison import require_releases

    require_releases(releases)
    with terminal.show_steps(len(releases)) as step:
        comparison = measure(
            original, releases, [*spec],
            attacks=attacks, tries=parse_number("tries", tries), target=target,
            seed=parse_number("seed", seed),
            engine=choose_engine(engine, master, conf), step=step,
        )  # fmt: skip
    if as_json:
        terminal.print_json(comparison.as_dict())
        return
    _print_comparison(comparison)


def _print_comparison(comparison: Comparison) -> None:
    from rich.table import Table

    from incrowd.evaluation.comparison import CHOICE_WARNING

    print(f"Original table: {comparison.rows:,} rows.")
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("")
    for release in comparison.releases:
        table.add_column(release.name, justify="right", overflow="fold")
    table.add_row("guarantee", *(_describe_guarantee(release) for release in comparison.releases))
    for kind in comparison.kinds:
        figures = (release.figures[kind.name] for release in comparison.releases)
        table.add_row(kind.label, *(_format_figure(value, kind.form) for value in figures))
    for attack, name in comparison.attacks:
        rates = (_describe_attack(release, attack, name) for release in comparison.releases)
        table.add_row(f"{attack}: {name}", *rates)
    terminal.make_console().print(table, markup=False)
    for release in comparison.releases:
        terminal.print_findings(release.findings, about=f"{release.name}: ")
    if comparison.attacks:
        print("Attacks: success, and success of guessing without the release.")
    if comparison.has_private:
        terminal.print_wrapped(CHOICE_WARNING)
    print("The result is private: it is computed from the original table.")


def _describe_guarantee(release: ComparedRelease) -> str:
    if release.method is None:
        return "no certificate"
    parts = []
    if release.epsilon is not None and release.delta is not None:
        epsilon = format_parameter("epsilon", release.epsilon, 4)
        parts.append(f"({epsilon}, {format_parameter('delta', release.delta, 3)})-DP")
    if release.k is not None and release.k > 1:
        parts.append(f"{release.k}-anonymity" if release.epsilon is None else f"k = {release.k}")
    return ", ".join(parts) or release.method


def _format_figure(value: float | None, form: str) -> str:
    if value is None:
        return "-"
    if form == "count":
        return f"{value:,.0f}"
    return format_percent(value, 2) if form == "percent" else f"{value:.4f}"


def _describe_attack(release: ComparedRelease, attack: str, name: str) -> str:
    for estimate in release.attacks:
        if (estimate.attack, estimate.name) == (attack, name):
            success, guess = estimate.success.value, estimate.guess.value
            return f"{format_percent(success)} ({format_percent(guess)})"
    return "-"
