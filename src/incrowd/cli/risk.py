"""The command that estimates the risk of a table before release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from incrowd.cli.terminal import Facts
from incrowd.cli.terminal import print_text as print  # noqa: A004 - names and values come from anywhere
from incrowd.errors import ParameterError
from incrowd.findings import format_count, format_percent

if TYPE_CHECKING:
    from incrowd.measure.individual_risk import RiskSummary
    from incrowd.measure.table_risk import TableRisk


def risk(
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="Table. Default: that of the spec.")
    ] = None,
    spec: Annotated[
        Path | None, typer.Option(metavar="SPEC", help="Spec with the quasi-identifiers.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Quasi-identifier, in place of the spec's. Repeatable."
        ),
    ] = None,
    weight: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of survey weights.")
    ] = None,
    household: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column that tells the household.")
    ] = None,
    population: Annotated[
        str | None,
        typer.Option(metavar="NUMBER|TABLE", help="Population: its size, or a table of it."),
    ] = None,
    k: Annotated[
        str | None, number_option("k of the sets of columns. Default: that of the spec, or 3.")
    ] = None,
    threshold: Annotated[str, number_option("Risk from which records are counted.")] = "0.05",
    sets: Annotated[
        str | None, number_option("Largest number of columns in a set. Default: 3.")
    ] = None,
    limit: Annotated[int, typer.Option(help="Largest number of sets and records to list.")] = 10,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the figures of every combination of values (.csv, .parquet).",
        ),
    ] = None,
    engine: EngineName = None,
    master: Master = None,
    conf: Settings = None,
    as_json: Json = False,
) -> None:
    """Estimate the risk of reidentification in a table before it is released.

    The table_risk is private: it is computed from the table. It is an estimate, not a guarantee.
    """
    from incrowd.curate.risk_assessment import risk as assess
    from incrowd.engine.source import local_engine

    if table is None and spec is None:
        raise ParameterError("table", "be a table, or --spec a spec that names one", None)
    with terminal.show_progress("comparing sets of columns") as (_, tell):
        table_risk = assess(
            table, spec,
            columns=column or None, weight=weight, household=household,
            population=_parse_population(population),
            k=parse_number("k", k), threshold=float(parse_number("threshold", threshold)),
            largest_set=parse_number("sets", sets),
            engine=choose_engine(engine, master, conf), progress=tell,
        )  # fmt: skip
    if output is not None:
        local_engine().from_columns(table_risk.records).write(output)
    if as_json:
        terminal.print_json(table_risk.as_dict())
        return
    _print_risk(table_risk, limit)
    if output is not None:
        print(f"Wrote {output}, which is private, too.")


def _parse_population(text: str | None) -> int | str | None:
    if text is None or not text.replace("_", "").replace(",", "").isdecimal():
        return text
    return int(text.replace(",", ""))


def _print_risk(table_risk: TableRisk, limit: int) -> None:
    terminal.print_facts(list_risk_facts(table_risk), indent=0)
    print()
    _print_sets(table_risk, limit)
    print()
    _print_riskiest(table_risk, limit)
    terminal.print_wrapped(
        "These are estimates for attackers who know the columns above, not guarantees. They are "
        "private: they are computed from the table."
    )


def list_risk_facts(table_risk: TableRisk) -> Facts:
    """Return the figures of a table as facts."""
    rows = max(table_risk.rows, 1)
    small = ", ".join(
        f"{number:,} in groups below {least} ({format_percent(number / rows)})"
        for least, number in table_risk.violating.items()
    )
    return [
        ("Table", (
            f"{format_count(table_risk.rows, 'record', 'records')}, {table_risk.groups:,} "
            f"combinations of {', '.join(table_risk.columns)}"
        )),
        ("Population", _describe_population(table_risk)),
        ("Unique records", f"{table_risk.uniques:,} ({format_percent(table_risk.uniques / rows)})"),
        ("Small groups", small),
        ("Individual risk", _describe_summary(table_risk.individual)),
        ("Household risk", _describe_summary(table_risk.household)),
        ("k-map", _describe_map(table_risk)),
        ("Population uniques", _describe_uniqueness(table_risk)),
        ("Log-linear model", _describe_models(table_risk)),
        ("Special uniques", _describe_special(table_risk)),
    ]  # fmt: skip


def _describe_population(table_risk: TableRisk) -> str:
    size = f"{table_risk.population:,.0f} people"
    match table_risk.basis:
        case "table":
            missing = f"; {table_risk.missing:,} records match nobody" if table_risk.missing else ""
            return f"{size}, counted in the population table{missing}"
        case "weights":
            return f"{size}, by survey weights"
        case "size":
            return f"{size}, as given"
    return "the table itself (no weights, size or population table are given)"


def _describe_summary(summary: RiskSummary | None) -> str:
    if summary is None:
        return ""
    return (
        f"mean {format_percent(summary.mean, 2)}, highest {format_percent(summary.highest, 2)}; "
        f"{summary.expected:,.2f} reidentifications expected; "
        f"{format_count(summary.above, 'record', 'records')} above "
        f"{format_percent(summary.threshold, 2)}"
    )


def _describe_map(table_risk: TableRisk) -> str:
    if table_risk.basis == "sample":
        return ""
    if table_risk.sample_threshold:
        parts = ", ".join(f"{m} for k = {k}" for k, m in table_risk.sample_threshold.items())
        return f"records from which a group stands for k people, with 95 % confidence: {parts}"
    below = ", ".join(f"{number:,} fewer than {k}" for k, number in table_risk.below_map.items())
    least = f"each group matches {table_risk.smallest_map:,.0f} or more people"
    return f"{least}; of the records, {below}"


def _describe_uniqueness(table_risk: TableRisk) -> str:
    unique = table_risk.uniqueness
    if unique is None:
        return ""
    others = {"Zayatz": unique.zayatz, "Pitman": unique.pitman, "SNB": unique.snb}
    texts = [
        f"{name} {'no answer' if share is None else format_percent(share, 2)}"
        for name, share in others.items()
    ]
    return (
        f"{format_percent(unique.dankar, 2)} of the population (rule of Dankar: {unique.model}); "
        f"{', '.join(texts)}"
    )


def _describe_models(table_risk: TableRisk) -> str:
    texts = [
        f"{model.population_uniques:,.2f} unique in the population and {model.matches:,.2f} "
        f"correct matches expected ({'pairs' if model.interactions > 1 else 'main effects'})"
        for model in (table_risk.loglinear, table_risk.pairs)
        if model is not None
    ]
    return f"of {table_risk.uniques:,} unique records, {'; '.join(texts)}" if texts else ""


def _describe_special(table_risk: TableRisk) -> str:
    special = table_risk.special
    if not special.records:
        return f"none by up to {table_risk.largest_set} columns"
    dis = special.highest_dis
    worst = max(special.contributions, key=lambda name: special.contributions[name])
    score = f"highest SUDA score {special.highest_score:,.4g}"
    return (
        f"{format_count(special.records, 'record', 'records')} unique by up to "
        f"{table_risk.largest_set} columns; {score}"
        f"{'' if dis is None else f', highest DIS-SUDA {format_percent(dis, 2)}'}; column "
        f"'{worst}' has a part in {format_percent(special.contributions[worst])} of the scores"
    )


def _print_sets(table_risk: TableRisk, limit: int) -> None:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("columns, worst sets first")
    for name in ("groups", "unique", f"below {table_risk.k}", "distinction", "separation"):
        table.add_column(name, justify="right", no_wrap=True)
    for risks in table_risk.sets[:limit]:
        table.add_row(
            ", ".join(risks.columns),
            f"{risks.groups:,}",
            f"{risks.uniques:,}",
            f"{risks.violating:,}",
            f"{risks.distinction:.4f}",
            f"{risks.separation:.4f}",
        )
    terminal.make_console().print(table, markup=False)


def _print_riskiest(table_risk: TableRisk, limit: int) -> None:
    """Print the riskiest combinations, one a line: figures first, then the values."""
    records = table_risk.riskiest[:limit]
    if not records:
        return
    household = [] if table_risk.household is None else [[*records[0]][len(table_risk.columns)]]
    values = [*table_risk.columns, *household]
    heads = {name: name.replace("_frequency", "") for name in records[0] if name not in values}
    lines = [
        [*(f"{record[name]:,.4g}" for name in heads), ", ".join(_show_value(record, values))]
        for record in records
    ]
    titles = [*(head.replace("_", " ") for head in heads.values()), "riskiest combinations"]
    widths = [max(len(line[at]) for line in [titles, *lines]) for at in range(len(heads))]
    for line in [titles, *lines]:
        cells = [text.rjust(width) for text, width in zip(line, widths, strict=False)]
        start = "  ".join(cells)
        terminal.print_wrapped(f"{start}  {line[-1]}", hanging=len(start) + 2)
    print()


def _show_value(record: dict[str, Any], names: list[str]) -> list[str]:
    return ["null" if record[name] is None else str(record[name]) for name in names]
