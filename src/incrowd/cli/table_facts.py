"""Facts about tables of counts for the terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from incrowd.findings import format_percent

if TYPE_CHECKING:
    from incrowd.cli.terminal import Facts
    from incrowd.measure.tables import TablesEvaluation
    from incrowd.release.certificate import Certificate

_SHOWN = 6  # tables that are listed one by one


def describe_tables(certificate: Certificate) -> str:
    """Return how many tables with how many lines there are."""
    number = len(certificate.tables)
    lines = sum(table.release.rows for table in certificate.tables)
    return f"{number:,} {'table' if number == 1 else 'tables'} with {lines:,} lines"


def list_table_facts(certificate: Certificate) -> Facts:
    """Return what everyone may know of tables: their columns and planned errors."""
    part = certificate.tabulation
    assert part is not None
    facts = []
    for entry, table in list(zip(part.tables, certificate.tables, strict=True))[:_SHOWN]:
        error = math.ceil(1.96 * entry.rmse)
        names = " by ".join(entry.columns)
        facts.append((table.release.file, f"{names}: 95 % of cells within ±{error:,}"))
    more = len(part.tables) - len(facts)
    if more:
        facts.append(("", f"and {more:,} more; README.md lists them"))
    return facts


def list_error_facts(evaluation: TablesEvaluation) -> Facts:
    """Return the true errors of tables, for the curator alone."""
    if not evaluation.tables:
        return []
    worst = max(evaluation.tables, key=lambda table: table.distance)
    biases = [table.bias for table in evaluation.tables if table.bias is not None]
    names = " by ".join(worst.columns)
    return [
        ("Coverage", f"{format_percent(evaluation.coverage)} of 95 % intervals hold the truth"),
        ("Largest error", f"{names}: {format_percent(worst.distance, 2)} in another cell"),
        *([("Empty cells", f"a mean count of up to {max(biases):.2f}")] if biases else []),
    ]
