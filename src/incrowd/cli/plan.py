"""The command that plans, and how its answers look: a sample, counts, or both side by side."""

from __future__ import annotations

import math
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli import terminal
from incrowd.cli.options import Json, Verbose, number_option, parse_number
from incrowd.cli.protection import describe_meaning, print_weakness
from incrowd.cli.terminal import make_console, print_facts
from incrowd.errors import IncrowdError, UnsolvableError, check_choice
from incrowd.findings import format_percent
from incrowd.privacy.presentation import format_parameter, round_crowd_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incrowd.curate.person_rows import RowsPerPerson
    from incrowd.curate.tradeoff import TradeoffGrid, TradeoffPoint
    from incrowd.privacy.plan import Plan, PlanTable
    from incrowd.privacy.plan_counts import CountsPlan


def plan(
    epsilon: Annotated[str | None, number_option("Privacy budget ε.")] = None,
    delta: Annotated[str | None, number_option("Privacy budget δ.")] = None,
    k: Annotated[
        str | None,
        number_option("Smallest group: sampled rows, or original rows behind a count."),
    ] = None,
    beta: Annotated[str | None, number_option("Sampling rate β, between 0 and 1.")] = None,
    keep: Annotated[
        str | None, number_option("Share of rows to publish, between 0 and 1; sets β.")
    ] = None,
    draw: Annotated[
        str | None,
        typer.Option(metavar="DRAW", help="sample or counts. Default: both, side by side."),
    ] = None,
    crowd: Annotated[
        str | None,
        number_option("Crowd size of noisy counts: group size published with probability 1/2."),
    ] = None,
    releases: Annotated[str, number_option("Number of releases that share the budget.")] = "1",
    rows: Annotated[
        str, number_option("Largest number of rows of one person (--draw counts).")
    ] = "1",
    per_group: Annotated[
        str, number_option("Largest number of these rows that count in one group (with --rows).")
    ] = "1",
    typical: Annotated[
        str | None,
        number_option("With --spec: a typical number of rows per person, to compare `rows`."),
    ] = None,
    definition: Annotated[
        str, typer.Option(help="Definition of δ: tight, or paper (Theorem 1 of paper A).")
    ] = "tight",
    grid: Annotated[
        str | None, typer.Option("--grid", help="Print a grid of k, beta or epsilon instead.")
    ] = None,
    spec: Annotated[
        Path | None,
        typer.Option(
            metavar="SPEC",
            help="Of a k-epsilon spec, print error and linking risk by k and ε; of a safe spec "
            "with a person id, print what rows per person cost.",
        ),
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option(metavar="SPEC", help="Print the error of each table of a tables spec."),
    ] = None,
    error: Annotated[
        str | None,
        number_option("With --tables: find ε so that 95 % of cells are within ± this."),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="With --tables: show independent noise per table.")
    ] = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Plan a privacy budget: solve for k, β, ε or δ.

    Give ε and δ, or any three of k, β, ε and δ. For noisy counts, give two of ε, δ and the crowd
    size.
    """
    from incrowd.privacy.plan import plan as planned
    from incrowd.privacy.plan import plan_grid

    if tables is None and (error is not None or compare):
        raise IncrowdError("--error and --compare belong to --tables SPEC. Add it.")
    for path, name in ((spec, "--spec"), (tables, "--tables")):
        excluded = (epsilon, delta, k, beta, keep, draw, crowd, grid)
        is_excluded = any(option is not None for option in excluded)
        if path is not None and (is_excluded or {releases, rows, per_group} != {"1"}):
            raise IncrowdError(
                f"{name} excludes other options, because the spec holds them. Drop them."
            )
    if spec is not None:
        _plan_from_spec(spec, parse_number("typical", typical), as_json)
        return
    if tables is not None:
        from incrowd.cli.plan_tables import answer_table_plan

        answer_table_plan(tables, parse_number("error", error), compare, as_json)
        return
    if typical is not None:
        raise IncrowdError("--typical applies to a spec. Add --spec SPEC.")
    for option, name in ((rows, "--rows"), (per_group, "--per-group")):
        if option != "1" and draw != "counts":
            raise IncrowdError(f"{name} applies to counts only. Add --draw counts.")
    if draw is not None:
        check_choice("draw", draw, ("sample", "counts"))
    if crowd is not None and draw != "counts":
        raise IncrowdError("--crowd applies to counts only. Add --draw counts.")
    parameters: dict[str, Any] = {
        "epsilon": parse_number("epsilon", epsilon),
        "delta": parse_number("delta", delta),
        "k": parse_number("k", k),
        "beta": parse_number("beta", beta),
        "releases": parse_number("releases", releases),
        "definition": definition,
    }
    if grid is not None:
        if keep is not None:
            raise IncrowdError("--keep and --grid exclude each other. Drop one.")
        if draw == "counts":
            raise IncrowdError("--grid applies to samples only. Drop --grid or --draw counts.")
        answers = plan_grid(grid, **parameters)
        terminal.print_json(answers.as_dict()) if as_json else print_grid(answers)
        return
    parameters["keep"] = parse_number("keep", keep)
    if draw == "counts":
        counts = planned(
            draw="counts", crowd=parse_number("crowd", crowd),
            rows=parse_number("rows", rows), per_group=parse_number("per-group", per_group),
            **parameters,
        )  # fmt: skip
        terminal.print_json(counts.as_dict()) if as_json else print_counts(counts, verbose=verbose)
        return
    answer = planned(**parameters)
    if not as_json:
        _print_solution(answer, epsilon, delta)
    if draw == "sample":
        terminal.print_json(answer.as_dict()) if as_json else print_plan(answer, verbose=verbose)
        return
    beside = _plan_matching_counts(answer)
    if as_json:
        matching_counts = None if beside is None else beside.as_dict()
        terminal.print_json({**answer.as_dict(), "counts": matching_counts})
        return
    if beside is None:
        print_plan(answer, verbose=verbose)
    else:
        print_comparison(answer, beside, verbose=verbose)


def _print_solution(answer: Plan, epsilon: str | None, delta: str | None) -> None:
    """Print the part of the budget that was not given, before everything that follows from it."""
    if delta is None:
        print_facts([("δ", format_parameter("delta", answer.delta, 3))], indent=0)
    if epsilon is None:
        print_facts([("ε", format_parameter("epsilon", answer.epsilon, 4))], indent=0)


def _plan_matching_counts(answer: Plan) -> CountsPlan | None:
    """Plan counts for the same budget, where there are any; None for the paper's delta."""
    from incrowd.privacy.plan_counts import plan_counts

    if answer.definition == "paper":
        return None
    try:
        return plan_counts(epsilon=answer.epsilon, delta=answer.delta, releases=answer.releases)
    except UnsolvableError:
        return None


def _plan_from_spec(path: Path, typical: float | None, as_json: bool) -> None:
    from incrowd.curate.tradeoff import compute_tradeoff
    from incrowd.engine.source import open_spec_table
    from incrowd.privacy.randomness import SystemRandomness
    from incrowd.spec.file import read_spec_file

    file = read_spec_file(path)
    if file.spec.release is not None and file.spec.release.method == "safe":
        from incrowd.curate.person_rows import compare_rows_per_group, compare_rows_per_person

        comparison = compare_rows_per_person(file, typical=typical)
        per_group = compare_rows_per_group(file)
        if as_json:
            terminal.print_json({
                "rows": [choice.as_dict() for choice in comparison],
                "per_group": [choice.as_dict() for choice in per_group],
            })  # fmt: skip
        else:
            print_rows_per_person(comparison, typical)
            print_rows_per_group(per_group)
            if file.spec.household is not None and file.spec.household.linked:
                print(
                    "Households are published whole: with more people fewer households agree. "
                    "`incrowd check` says how many are kept."
                )
        return
    if typical is not None:
        raise IncrowdError("--typical is for `method: safe` with a person id. Drop it.")
    table = open_spec_table(file)
    with terminal.show_progress("computing") as (_, tell):
        tradeoff = compute_tradeoff(file, table, bits=SystemRandomness(), progress=tell)
    terminal.print_json(tradeoff.as_dict()) if as_json else print_tradeoff(tradeoff)


def print_rows_per_person(comparison: Sequence[RowsPerPerson], typical: float | None) -> None:
    """Print what each number of rows per person costs, and what it keeps."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("rows per person", "95 % of noise", "smallest groups", "rows kept", "error"):
        table.add_column(name, justify="right", no_wrap=True)
    for choice in comparison:
        share = "–" if choice.share is None else format_percent(choice.share)
        error = "–" if choice.error is None else f"{choice.error:.2f}"
        table.add_row(
            f"{choice.rows:,}", f"±{choice.noise:,}", f"{choice.crowd:,} {choice.counted_unit}",
            share, error,
        )  # fmt: skip
    make_console().print(table)
    if typical is None:
        print("Add --typical NUMBER, a typical number of rows per person, for what is kept.")
    else:
        print(
            f"Error: noise of a count relative to all counts, 1 = {_name_first(comparison)} per "
            "person. The table is not opened."
        )


def _name_first(comparison: Sequence[RowsPerPerson]) -> str:
    """Name the rows that the others are compared with: households need two people to be linked."""
    return "one row" if comparison[0].rows == 1 else f"{comparison[0].rows} rows"


def print_rows_per_group(comparison: Sequence[RowsPerPerson]) -> None:
    """Print what counting rows costs against counting people; nothing of one row per person."""
    from rich.table import Table

    if len(comparison) < 2:
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("per_group", "counts", "95 % of noise", "smallest groups"):
        table.add_column(name, justify="right", no_wrap=True)
    for choice in comparison:
        crowd = f"{choice.crowd:,} {choice.counted_unit}"
        table.add_row(f"{choice.per_group:,}", choice.counted_unit, f"±{choice.noise:,}", crowd)
    print(f"\nCounting rows instead of people, with rows: {comparison[0].rows}:")
    make_console().print(table)


_MEANINGS = {
    "k": "smallest number of sampled rows in a group",
    "beta": "sampling rate",
    "epsilon": "privacy budget",
    "delta": "privacy budget",
    "definition": "definition of δ",
    "crowd": "crowd size, k / β people",
    "releases": "releases that share the budget",
}


def print_plan(answer: Plan, *, verbose: bool = False) -> None:
    """Print a plan for a sample as facts."""
    crowd = round_crowd_size(answer.crowd)
    facts = [
        ("Crowd size", f"{crowd:,} people: {_describe_crowd(crowd)}"),
        (
            "Sample",
            f"{format_percent(answer.beta)} of rows, drawn at random (β = {answer.beta:.4g})",
        ),
        ("Groups", f"at least {answer.k:,} sampled rows (k = {answer.k:,})"),
        *_guarantee_facts(answer),
    ]
    if answer.definition != "tight":
        facts.append(("Definition", "δ as in Theorem 1 of paper A (--definition tight is smaller)"))
    print_facts(facts, indent=0)
    print_weakness(answer.epsilon, answer.delta)
    if verbose:
        _print_figures(answer.format_figures(), _MEANINGS)


def _describe_crowd(size: int) -> str:
    return f"groups of {size:,} or more are published with probability 1/2 or more"


def _guarantee_facts(answer: Plan | CountsPlan) -> list[tuple[str, str]]:
    epsilon, delta = (
        format_parameter("epsilon", answer.epsilon, 4),
        format_parameter("delta", answer.delta, 3),
    )
    many = f", all {answer.releases:,} releases together" if answer.releases > 1 else ""
    return [
        ("Guarantee", f"({epsilon}, {delta})-differential privacy{many}"),
        ("Meaning", describe_meaning(answer.epsilon, answer.delta, _describe_members(answer))),
    ]


def _describe_members(answer: Plan | CountsPlan) -> str:
    rows = getattr(answer, "rows", 1)
    return "people with one row in the table" if rows == 1 else "people in the table"


def print_grid(grid: PlanTable) -> None:
    """Print a grid of answers."""
    from rich.table import Table

    terminal = make_console()
    terminal.print(grid.describe(), style="bold")
    table = Table(box=None, padding=(0, 0, 0, 2), collapse_padding=True)
    corner = f"{grid.rows_name} \\ {grid.columns_name}"
    table.add_column(corner, justify="right", style="bold", no_wrap=True)
    for column in grid.columns:
        table.add_column(f"{column:g}", justify="right", no_wrap=True)
    for row, cells in zip(grid.rows, grid.cells, strict=True):
        table.add_row(f"{row:g}", *(_format_cell(grid.unknown, cell) for cell in cells))
    terminal.print(table)


def _format_cell(unknown: str, value: float) -> str:
    """Format a cell of a grid; epsilon is rounded up and beta down, so that it holds."""
    if math.isinf(value):
        return "–"
    if unknown == "k":
        return f"{value:,.0f}"
    round_safely = math.floor if unknown == "beta" else math.ceil
    return f"{round_safely(value * 1000) / 1000:.3f}"


def print_tradeoff(tradeoff: TradeoffGrid) -> None:
    """Print what each k and epsilon would cost and risk."""
    from rich.table import Table

    terminal = make_console()
    epsilons = sorted({choice.epsilon for choice in tradeoff.choices})
    by_k: dict[int, list[TradeoffPoint]] = {}
    for choice in tradeoff.choices:
        by_k.setdefault(choice.k, []).append(choice)
    for title, figure in (
        ("Expected relative error", attrgetter("error")),
        ("Expected share of linked rows", attrgetter("linking")),
    ):
        terminal.print(title, style="bold")
        table = Table(box=None, padding=(0, 0, 0, 2), collapse_padding=True)
        table.add_column("k \\ epsilon", justify="right", style="bold", no_wrap=True)
        for epsilon in epsilons:
            table.add_column(f"{epsilon:g}", justify="right", no_wrap=True)
        table.add_column("suppressed", justify="right", no_wrap=True)
        for k, row in by_k.items():
            cells = [
                format_percent(figure(choice)) for choice in sorted(row, key=lambda c: c.epsilon)
            ]
            table.add_row(str(k), *cells, format_percent(row[0].suppressed / max(tradeoff.rows, 1)))
        terminal.print(table)
    how = "simulated" if tradeoff.simulated else "computed exactly"
    terminal.print(f"Linked rows are {how}. The result is private: it is read from the table.")


_COUNTS_MEANINGS = {
    "k": "smallest number of original rows in a group",
    "r": "largest noise of a count",
    "crowd": "crowd size, r + k people; of rows, r + per_group (k - 1) + 1",
    "always": "group size that is always published, r more",
    "error": "95 % of noise lies within ± this",
    "epsilon": "privacy budget",
    "delta": "privacy budget",
    "noise": "distribution of the noise",
    "noise_epsilon": "ε of the noise",
    "noise_variance": "variance of the noise",
    "chance": "probability of r - 1 instead of r, independent of the data",
    "releases": "releases that share the budget",
    "rows": "largest number of rows of one person",
    "per_group": "largest number of them that count in one group",
}


def print_counts(answer: CountsPlan, *, verbose: bool = False) -> None:
    """Print a plan for noisy counts as facts."""
    least = "different people" if answer.rows > 1 else "original rows"
    crowd, always = answer.crowd, f"groups of {answer.certain_crowd:,} or more always"
    facts = [
        ("Crowd size", f"{crowd:,} {answer.counted_unit}: {_describe_crowd(crowd)}, {always}"),
        ("Accuracy", f"95 % of noise within ±{answer.error:,}, every count within ±{answer.r:,}"),
        ("Groups", f"at least {answer.k:,} {least} each (k = {answer.k:,})"),
        *_guarantee_facts(answer),
    ]
    print_facts(facts, indent=0)
    print_weakness(answer.epsilon, answer.delta)
    if verbose:
        _print_figures(answer.format_figures(), _COUNTS_MEANINGS)


def print_comparison(sample: Plan, counts: CountsPlan, *, verbose: bool = False) -> None:
    """Print a sample and counts of the same budget side by side."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("", "noisy counts", "sample"):
        table.add_column(name, no_wrap=True)
    crowd = round_crowd_size(sample.crowd)
    for row in (
        ("Crowd size", f"{counts.crowd:,} people", f"{crowd:,} people"),
        ("Rows of a group", "all", f"{format_percent(sample.beta)}, drawn at random"),
        (
            "Noise of counts",
            f"95 % within ±{counts.error}, all within ±{counts.r}",
            "sampling error only",
        ),
        ("Smallest group", f"{counts.k:,} original rows", f"{sample.k:,} sampled rows"),
        ("Surplus rows", "some", "none"),
        ("Parameters", f"k = {counts.k}, r = {counts.r}", f"k = {sample.k}, β = {sample.beta:.4g}"),
    ):
        table.add_row(*row)
    make_console().print(table)
    make_console().print()
    facts = [
        ("Crowd size", "groups of this size or more are published with probability 1/2 or more"),
        *_guarantee_facts(sample),
        (
            "Choose",
            "--draw counts if counts may carry noise, --draw sample if no row may be made up",
        ),
    ]
    print_facts(facts, indent=0)
    print_weakness(sample.epsilon, sample.delta)
    if verbose:
        for title, answer, meanings in (
            ("Noisy counts", counts, _COUNTS_MEANINGS),
            ("Sample", sample, _MEANINGS),
        ):
            make_console().print(f"\n{title}", style="bold")
            _print_figures(answer.format_figures(), meanings)


def _print_figures(figures: list[tuple[str, str]], meanings: dict[str, str]) -> None:
    """Print every parameter by its symbol, with its meaning."""
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in figures:
        table.add_row(f"[bold]{name}[/bold]", value, f"[dim]{meanings[name]}[/dim]")
    make_console().print(table)
