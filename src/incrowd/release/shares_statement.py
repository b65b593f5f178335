"""The sentence of a statement on a column that was counted beside the rows."""

from __future__ import annotations

from incrowd.release.facts import quote_names
from incrowd.release.noise_sentences import format_exact
from incrowd.release.shares_part import ShareTable, compute_sd


def describe_shares(table: ShareTable, rows: int, *, by_person: bool) -> str:
    """Return what was counted of a column, and with which noise."""
    unit = "people" if by_person else "rows"
    law = f"exp(-|x| × {format_exact(table.epsilon)}{f' / {rows}' if rows > 1 else ''})"
    return (
        f"The {unit} with each declared value of {quote_names([table.column])} were counted beside "
        f"the rows (ε = {format_exact(table.epsilon)}, included above): every value is listed, "
        "whether or not it occurs, and its count carries two-sided geometric noise of any size "
        f"(standard deviation {compute_sd(table.epsilon, rows):.3g}; x with a probability "
        f"proportional to {law}). These counts are not k-anonymous; no value is listed because "
        "someone has it."
    )
