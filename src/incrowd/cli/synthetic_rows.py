"""Facts about synthetic rows for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from incrowd.cli.terminal import Facts
    from incrowd.measure.synthetic import SyntheticEvaluation


def synthetic_facts(found: SyntheticEvaluation) -> Facts:
    """Return how far synthetic rows are from their table, for the curator alone."""
    pairs, equal = found.mean_pair_distance, found.equal_rows
    of_pairs = "" if pairs is None else f", of pairs of columns {pairs:.4f}"
    by_chance = f"{equal.expected:,} would by chance"
    return [
        ("Distance", f"mean total variation of columns {found.mean_distance:.4f}{of_pairs}"),
        ("Shares", f"of values with 100 or more people within ±{100 * found.largest_error:.2f} %"),
        ("Equal rows", f"{equal.equal:,} of {equal.rows:,} equal a row of the table; {by_chance}"),
    ]
