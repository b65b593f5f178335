"""The sentences of a statement that are about tables of counts."""

from __future__ import annotations

from collections.abc import Iterator

from incrowd.release.facts import quote_names
from incrowd.release.parameters import Parameters
from incrowd.release.tables_part import TabulationPart

_EVERY_CELL = (
    "Every combination of declared values has a count, whether or not it occurs in the input. No "
    "cell is suppressed, and no cell was chosen by looking at the input."
)
_NOISE = (
    "Each estimate is unbiased and carries random noise; sd is its standard deviation, and "
    "low to high covers the true count with probability 95 %, before rounding."
)
_COUNTS = (
    "Each count is a whole number, 0 or more, near the estimates. All counts add up: totals are "
    "the sums of their parts, and tables that share columns agree. Counts near 0 are biased upward."
)
_MISSING = {
    "counted": (
        "An empty label stands for a value that is missing in the input or outside the declared "
        "values of its column, unless the column shows the latter as a label of its own."
    ),
    "excluded": (
        "Rows with a missing or undeclared value in a published column are not counted in any "
        "table. How many these are is not published."
    ),
}
_HIDDEN = (
    "Numbers of cells with a count below {} are hidden. This is presentation and protects nobody: "
    "they follow from the measured numbers, which are published."
)
_SUM = (
    "Sums of {}: the value of each row is rounded to a multiple of {} above {} and moved into "
    "{} to {}; the noise covers all of this range. Rows without a number there are in no table. "
    "Sums are possible for their counts and add up like them; mean is sum divided by count, and "
    "mean_low to mean_high covers the true mean with probability 95 %."
)
_INFORMATION = (
    "The information of all measurements is {!r}: for each, the squared length by which one row of "
    "the input moves it, divided by the variance of its noise."
)
_RESIDUALS = (
    "{:,} residuals (differences between groups and the mean of their siblings) were measured with "
    "discrete Gaussian noise, with the variances that minimize {}, planned from the spec alone. ε "
    "and δ include all of them."
)
_OBJECTIVES = {
    "sum": "the sum of the squared errors of all cells",
    "max": "the largest mean squared error of a table",
}


def describe_tables(part: TabulationPart, *, by_person: bool) -> Iterator[tuple[str, str]]:
    """Return a key and a text for each sentence; they follow from the certificate alone."""
    people = "people, each counted by one row" if by_person else "input rows"
    yield "cells", f"{_EVERY_CELL} Counts are numbers of {people}."
    yield "noise", _NOISE
    yield "counts", _COUNTS
    yield "missing_values", _MISSING[part.missing]
    for at, summed in enumerate(part.sums or (), 1):
        key = "sums" if at == 1 else f"sums_{at}"
        lower, upper = summed.lower, format(summed.upper, "f")
        yield key, _SUM.format(quote_names([summed.column]), summed.step, lower, lower, upper)
    if part.hide_below is not None:
        yield "hidden_cells", _HIDDEN.format(part.hide_below)


def describe_tables_details(
    part: TabulationPart, parameters: Parameters
) -> Iterator[tuple[str, str]]:
    """Return a key and a text for each sentence that is shown under technical details."""
    yield "information", _INFORMATION.format(parameters["information"])
    objective = _OBJECTIVES[part.objective]
    if any(table.weight != 1 for table in part.tables):
        objective += ", weighted by table"
    yield "residuals", _RESIDUALS.format(len(part.residuals), objective)
