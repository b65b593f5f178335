"""The command that plans, and how its answers look: a sample, counts, or both side by side."""

from __future__ import annotations

import math
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli import terminal
from incrowd.cli.guarantee import print_strength
from incrowd.cli.options import number, parsed
from incrowd.cli.terminal import console
from incrowd.errors import IncrowdError, UnsolvableError, check_choice
from incrowd.privacy.plan import Plan, PlanTable, plan_grid
from incrowd.privacy.plan import plan as planned
from incrowd.privacy.plan_counts import CountsPlan, plan_counts
from incrowd.privacy.rounded import people_alike

if TYPE_CHECKING:
    from incrowd.curate.tradeoff import Choice, Choices


def plan(
    epsilon: Annotated[str | None, number("Privacy budget epsilon.")] = None,
    delta: Annotated[str | None, number("Privacy budget delta.")] = None,
    k: Annotated[str | None, number("Least alike rows kept; of counts, in the table.")] = None,
    beta: Annotated[str | None, number("Share of rows drawn at random.")] = None,
    keep: Annotated[str | None, number("Share of rows wanted; sets beta.")] = None,
    draw: Annotated[
        str | None, typer.Option(help="sample or counts; without it, both side by side.")
    ] = None,
    crowd: Annotated[
        str | None, number("Of counts: people alike, shown more often than not.")
    ] = None,
    releases: Annotated[str, number("How many releases share the budget.")] = "1",
    definition: Annotated[
        str, typer.Option(help="tight: the smallest true delta; paper: Theorem 1 as printed.")
    ] = "tight",
    table: Annotated[
        str | None, typer.Option(help="Print a grid of k, beta or epsilon to choose from.")
    ] = None,
    spec: Annotated[
        Path | None, typer.Option(help="A k-epsilon spec: error and risk for k against epsilon.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Solve for k, beta, epsilon or delta: give three of them, or just epsilon and delta.

    For counts give two of epsilon, delta and the crowd.
    """
    if spec is not None:
        given = (epsilon, delta, k, beta, keep, draw, crowd, table)
        if any(option is not None for option in given) or releases != "1":
            raise IncrowdError("The option --spec stands alone: the spec says everything else.")
        _from_spec(spec, as_json)
        return
    if draw is not None:
        check_choice("draw", draw, ("sample", "counts"))
    if crowd is not None and draw != "counts":
        raise IncrowdError("The option --crowd is for counts: say --draw counts as well.")
    known: dict[str, Any] = {
        "epsilon": parsed("epsilon", epsilon),
        "delta": parsed("delta", delta),
        "k": parsed("k", k),
        "beta": parsed("beta", beta),
        "releases": parsed("releases", releases),
        "definition": definition,
    }
    if table is not None:
        if keep is not None:
            raise IncrowdError("The options --keep and --table exclude each other; drop one.")
        if draw == "counts":
            raise IncrowdError("A grid is for samples; drop --table or --draw counts.")
        grid = plan_grid(table, **known)
        terminal.print_json(grid.as_dict()) if as_json else print_grid(grid)
        return
    known["keep"] = parsed("keep", keep)
    if draw == "counts":
        counts = planned(draw="counts", crowd=parsed("crowd", crowd), **known)
        terminal.print_json(counts.as_dict()) if as_json else print_counts(counts)
        return
    answer = planned(**known)
    if draw == "sample":
        terminal.print_json(answer.as_dict()) if as_json else print_plan(answer)
        return
    beside = _beside(answer)
    if as_json:
        counted = None if beside is None else beside.as_dict()
        terminal.print_json({**answer.as_dict(), "counts": counted})
        return
    print_plan(answer)
    if beside is not None:
        print_both(answer, beside)


def _beside(answer: Plan) -> CountsPlan | None:
    """Counts for the same budget, where there are any; the paper's delta is of samples alone."""
    if answer.definition == "paper":
        return None
    try:
        return plan_counts(epsilon=answer.epsilon, delta=answer.delta, releases=answer.releases)
    except UnsolvableError:
        return None


def _from_spec(path: Path, as_json: bool) -> None:
    from incrowd.curate.tradeoff import choices
    from incrowd.engine.source import open_for
    from incrowd.privacy.randomness import SystemRandomness
    from incrowd.spec.file import load

    file = load(path)
    table = open_for(file)
    with terminal.progress("trying k") as (_, tell):
        found = choices(file, table, bits=SystemRandomness(), progress=tell)
    terminal.print_json(found.as_dict()) if as_json else print_choices(found)


_MEANINGS = {
    "k": "a tuple seen fewer times is dropped",
    "beta": "share of the rows drawn at random",
    "epsilon": "privacy loss allowed",
    "delta": "added to any probability",
    "definition": "how delta is computed",
    "crowd": "k / beta, people alike in the table",
    "releases": "that share the budget",
}


def print_plan(answer: Plan) -> None:
    """Print a plan as a table and in words."""
    _print_figures(answer.shown(), _MEANINGS, answer.words())
    print_strength(answer.epsilon, answer.delta)


def print_grid(grid: PlanTable) -> None:
    """Print a grid of answers."""
    from rich.table import Table

    terminal = console()
    terminal.print(grid.words(), style="bold")
    table = Table(box=None, padding=(0, 0, 0, 2), collapse_padding=True)
    corner = f"{grid.rows_name} \\ {grid.columns_name}"
    table.add_column(corner, justify="right", style="bold", no_wrap=True)
    for column in grid.columns:
        table.add_column(f"{column:g}", justify="right", no_wrap=True)
    for row, cells in zip(grid.rows, grid.cells, strict=True):
        table.add_row(f"{row:g}", *(_cell(grid.unknown, cell) for cell in cells))
    terminal.print(table)


def _cell(unknown: str, value: float) -> str:
    """A cell of a grid; epsilon is rounded up and beta down, so that what is shown holds."""
    if math.isinf(value):
        return "–"
    if unknown == "k":
        return f"{value:,.0f}"
    whole = math.floor if unknown == "beta" else math.ceil
    return f"{whole(value * 1000) / 1000:.3f}"


def print_choices(found: Choices) -> None:
    """Print what each k and epsilon would cost and risk."""
    from rich.table import Table

    terminal = console()
    epsilons = sorted({choice.epsilon for choice in found.choices})
    by_k: dict[int, list[Choice]] = {}
    for choice in found.choices:
        by_k.setdefault(choice.k, []).append(choice)
    for title, figure in (
        ("Expected relative error", attrgetter("error")),
        ("Expected share of rows linked", attrgetter("linking")),
    ):
        terminal.print(title, style="bold")
        table = Table(box=None, padding=(0, 0, 0, 2), collapse_padding=True)
        table.add_column("k \\ epsilon", justify="right", style="bold", no_wrap=True)
        for epsilon in epsilons:
            table.add_column(f"{epsilon:g}", justify="right", no_wrap=True)
        table.add_column("suppressed", justify="right", no_wrap=True)
        for k, row in by_k.items():
            cells = [f"{figure(choice):.1%}" for choice in sorted(row, key=lambda c: c.epsilon)]
            table.add_row(str(k), *cells, f"{row[0].suppressed / max(found.rows, 1):.1%}")
        terminal.print(table)
    how = "tried out with fresh noise" if found.simulated else "computed, nothing is drawn"
    terminal.print(f"The share linked is {how}. All of this is read from the table and private.")


_COUNTS_MEANINGS = {
    "k": "rows of the table behind each row shown, at least",
    "r": "the noise of a count, at most",
    "crowd": "r + k, people alike, shown more often than not",
    "always": "2 r + k, people alike that are always shown",
    "error": "the noise of a count, at most, with probability 0.95",
    "epsilon": "privacy loss allowed",
    "delta": "added to any probability",
    "noise": "the law of the noise",
    "noise_epsilon": "of the noise",
    "noise_variance": "of the noise",
    "chance": "of r - 1 in place of r, by a coin that sees no data",
    "releases": "that share the budget",
}


def print_counts(answer: CountsPlan) -> None:
    """Print a plan for counts as a table and in words."""
    _print_figures(answer.shown(), _COUNTS_MEANINGS, answer.words())
    print_strength(answer.epsilon, answer.delta)


def print_both(sample: Plan, counts: CountsPlan) -> None:
    """Print what a sample and counts of the same budget come to, side by side."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("the same budget:", "a sample", "counts"):
        table.add_column(name, no_wrap=True)
    crowd, kept = people_alike(sample.crowd), f"{sample.beta:.1%}"
    for row in (
        ("shown more often than not", f"{crowd:,} alike", f"{counts.crowd:,} alike"),
        ("of their rows", f"{kept}, by chance", "all"),
        ("noise in their number", "that chance", f"{counts.error} (95 %), {counts.r} at worst"),
        ("rows of the table behind", f"at least {sample.k:,}", f"at least {counts.k:,}"),
        ("made-up rows", "none", "those too many"),
    ):
        table.add_row(*row)
    terminal = console()
    terminal.print()
    terminal.print(table)
    terminal.print()
    terminal.print(
        "Take counts (--draw counts) where counts may carry noise: smaller groups are shown. "
        "Take a sample (--draw sample) where no row may be made up."
    )


def _print_figures(figures: list[tuple[str, str]], meanings: dict[str, str], words: str) -> None:
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in figures:
        table.add_row(f"[bold]{name}[/bold]", value, f"[dim]{meanings[name]}[/dim]")
    terminal = console()
    terminal.print(table)
    terminal.print()
    terminal.print(words)
