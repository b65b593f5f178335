"""Facts about synthetic rows for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.findings import format_percent

if TYPE_CHECKING:
    from incrowd.cli.terminal import Facts
    from incrowd.measure.synthetic import EqualRows, MethodOutcome, SyntheticEvaluation


def synthetic_facts(evaluation: SyntheticEvaluation) -> Facts:
    """Return how far synthetic rows are from their table, for the curator alone."""
    pairs = evaluation.mean_pair_distance
    of_pairs = "" if pairs is None else f", of pairs of columns {pairs:.4f}"
    facts = [
        ("Distance", f"mean total variation of columns {evaluation.mean_distance:.4f}{of_pairs}"),
        ("Values", _describe_error(evaluation)),
        ("Equal rows", describe_equal_rows(evaluation.equal_rows)),
    ]
    return [(name, text) for name, text in facts if text]


def list_synthetic_facts(evaluation: SyntheticEvaluation) -> Facts:
    """Return all that was measured of synthetic rows, but for columns and the classifier."""
    utility = evaluation.utility
    assert utility is not None
    facts = [
        ("Rows", f"{evaluation.rows_original:,} original, {evaluation.rows_released:,} synthetic"),
        ("Shares, 1-way", f"mean distance {evaluation.mean_distance:.4f}"),
        ("Values", _describe_error(evaluation)),
        ("Shares, 2-way", _describe_distance(
            evaluation.mean_pair_distance, len(evaluation.distance_by_pair), evaluation.pairs,
            "pairs",
        )),
        ("Shares, 3-way", _describe_distance(
            evaluation.mean_triple_distance, len(evaluation.distance_by_triple),
            evaluation.triples, "triples",
        )),
        ("Associations", (
            f"mean error of V {utility.association_error:.4f}" if utility.associations else ""
        )),
        ("Range counts", f"median error {format_percent(utility.query_error)} by value"),
        ("Target", evaluation.target_advice),
        ("Equal rows", describe_equal_rows(evaluation.equal_rows)),
    ]  # fmt: skip
    return [(name, text) for name, text in facts if text]


def _describe_error(evaluation: SyntheticEvaluation) -> str:
    """Return the largest error of the share of a value; nothing if no value has enough people."""
    error = evaluation.largest_error
    if error is None:
        return ""
    return f"shares of values with 100 or more people within ±{100 * error:.2f} percentage points"


def _describe_distance(mean: float | None, compared: int, every: int, what: str) -> str:
    if mean is None:
        return ""
    of = f"all {every:,}" if compared == every else f"{compared:,} of {every:,}"
    return f"mean distance {mean:.4f} (over {of} {what} of columns)"


def describe_equal_rows(equal: EqualRows) -> str:
    """Return how many published rows equal a row of the table, beside what chance explains."""
    text = f"{equal.equal:,} of {equal.rows:,} equal a row of the table"
    return text if equal.expected is None else f"{text}; {equal.expected:,} expected by chance"


def list_other_methods(evaluation: SyntheticEvaluation) -> Facts:
    """Return what other methods would have kept of the table, one line each."""
    return [
        (f"{outcome.method[0].upper()}{outcome.method[1:]}", _describe_outcome(outcome))
        for outcome in evaluation.others
    ]


def _describe_outcome(outcome: MethodOutcome) -> str:
    if outcome.problem is not None:
        return outcome.problem
    if outcome.method == "synthetic":
        columns = "all columns" if outcome.columns > 1 else "the column"
        return f"{columns}{_describe_pairs(outcome)}"
    assert outcome.rows is not None
    columns = f"{outcome.informative} of {outcome.columns} columns informative"
    return f"{format_percent(outcome.rows)} of rows, {columns}{_describe_pairs(outcome)}"


def _describe_pairs(outcome: MethodOutcome) -> str:
    return "" if outcome.pair_distance is None else f", 2-way distance {outcome.pair_distance:.4f}"
