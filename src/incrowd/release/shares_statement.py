"""The sentence of a statement on a column that was counted beside the rows."""

from __future__ import annotations

from incrowd.release.facts import Facts, quote_names
from incrowd.release.noise_sentences import format_exact
from incrowd.release.shares_part import ShareTable, compute_sd


def describe_shares(table: ShareTable, facts: Facts) -> str:
    """Return what was counted of a column, and with which noise."""
    rows, column = facts.rows_per_person, quote_names([table.column])
    unit = "people" if facts.by_person else "rows"
    subject = f"The {unit} with each declared value of {column}"
    if facts.rows_per_group > 1:
        subject = (
            f"The used rows with each declared value of {column}, up to {facts.rows_per_group} of "
            "one person,"
        )
    law = f"exp(-|x| × {format_exact(table.epsilon)}{f' / {rows}' if rows > 1 else ''})"
    return (
        f"{subject} were counted beside the rows (ε = {format_exact(table.epsilon)}, included "
        "above): every value is listed, whether or not it occurs, and its count carries two-sided "
        "geometric noise of any size "
        f"(standard deviation {compute_sd(table.epsilon, rows):.3g}; x with a probability "
        f"proportional to {law}). These counts are not k-anonymous; no value is listed because "
        "someone has it."
    )
