"""What the terminal says of synthetic rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from incrowd.measure.synthetic import SyntheticEvaluation


def describe_rows(found: SyntheticEvaluation) -> list[str]:
    """Return how far synthetic rows are from their table, for the curator alone."""
    pairs = found.mean_pair_distance
    of_pairs = "" if pairs is None else f", of pairs of columns {pairs:.4f}"
    equal = found.equal_rows
    return [
        (
            f"For you only: mean distance of shares {found.mean_distance:.4f}{of_pairs}; shares of "
            f"values with 100 or more people within ±{found.largest_error:.2%}."
        ),
        (
            f"For you only: {equal.equal:,} of {equal.rows:,} rows equal a row of the table; "
            f"{equal.expected:,} would by chance."
        ),
    ]
