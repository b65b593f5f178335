"""How a plan of tables of counts looks on a terminal."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.cli import terminal
from incrowd.cli.protection import print_weakness
from incrowd.cli.terminal import make_console, print_facts
from incrowd.privacy.presentation import format_parameter

if TYPE_CHECKING:
    from incrowd.curate.table_plan import TablePlan

_SHOWN = 40


def answer_table_plan(path: Path, error: float | None, compare: bool, as_json: bool) -> None:
    """Print the errors of the tables of a spec, or the epsilon for an error."""
    from incrowd.curate.table_plan import plan_tables

    plan = plan_tables(path, error=error)
    if as_json:
        terminal.print_json(plan.as_dict())
        return
    print_table_plan(plan, compare=compare)


def print_table_plan(plan: TablePlan, *, compare: bool) -> None:
    """Print the planned errors, the largest first."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("table")
    for name in ("cells", "95 % within", *(("independent",) if compare else ())):
        table.add_column(name, justify="right", no_wrap=True)
    listed = sorted(plan.tables, key=lambda entry: -entry.error)
    for entry in listed[:_SHOWN]:
        levels = zip(entry.columns, entry.levels, strict=True)
        words = " by ".join(f"{name} (level {level})" if level else name for name, level in levels)
        if entry.sum_error is not None:
            words += f"; sums of {entry.sum} within ±{_format_error(entry.sum_error)}"
        more = [f"±{_format_error(entry.independent)}"] if compare else []
        table.add_row(words, f"{entry.cells:,}", f"±{_format_error(entry.error)}", *more)
    more = [f"±{_format_error(plan.independent_total)}"] if compare else []
    table.add_row("total of everything", "1", f"±{_format_error(plan.total)}", *more)
    make_console().print(table, markup=False)
    if len(listed) > _SHOWN:
        make_console().print(f"... and {len(listed) - _SHOWN:,} more with smaller errors (--json)")
    epsilon = format_parameter("epsilon", plan.epsilon, 4)
    delta = format_parameter("delta", plan.delta, 3)
    facts = [
        ("Guarantee", f"({epsilon}, {delta})-differential privacy, all tables together"),
        ("Errors", "from the spec alone; nothing was read or spent"),
    ]
    if compare:
        facts.append(
            (
                "Independent",
                "noise of its own for each table and total, same budget; nothing adds up",
            )
        )
    print_facts(facts, indent=0)
    print_weakness(plan.epsilon, plan.delta)


def _format_error(error: float) -> str:
    """Format an error, rounded up: whole numbers from 10, one digit below."""
    return f"{math.ceil(error):,}" if error >= 10 else f"{math.ceil(error * 10) / 10:.1f}"
