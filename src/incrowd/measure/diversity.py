"""What must hold of sensitive values inside each class: l-diversity and t-closeness.

Each rule judges classes by their *spread*, a row per class with the number of rows of each
sensitive value. A rule is monotone if a class that satisfies it still does whatever joins
it; then rows suppressed at a node are suppressed at every finer one. For all rules here the
union of two classes that satisfy them satisfies them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Codes, Counts, Floats

# Sums of floating-point shares may differ from the truth in the last digits. A class that
# meets a bound exactly, such as two equally frequent values for l = 2, must not fail by that.
_SLACK = 1e-12


class DiversityRule(Protocol):
    """A demand on the sensitive values of a class."""

    @property
    def monotone(self) -> bool:
        """Whether a class that satisfies it does so whatever joins the class."""
        ...

    def check_classes(self, spread: Counts, overall: Counts) -> npt.NDArray[np.bool_]:
        """Return which classes satisfy it, given the values' counts in each class and in all."""
        ...


@dataclass(frozen=True)
class DistinctRule:
    """At least ``l`` distinct values in every class."""

    l: float  # noqa: E741 - the name it has in the literature
    monotone = True

    def check_classes(self, spread: Counts, overall: Counts) -> npt.NDArray[np.bool_]:  # noqa: ARG002
        """Return which classes have as many values."""
        return np.asarray(np.count_nonzero(spread, axis=1) >= self.l)


@dataclass(frozen=True)
class EntropyRule:
    """An entropy of at least log(l): as spread out as ``l`` equally frequent values."""

    l: float  # noqa: E741
    monotone = False

    def check_classes(self, spread: Counts, overall: Counts) -> npt.NDArray[np.bool_]:  # noqa: ARG002
        """Return which classes have as much entropy."""
        return np.asarray(_compute_entropy(spread) >= np.log(self.l) - _SLACK)


@dataclass(frozen=True)
class ClosenessRule:
    """A distribution of values at most ``t`` from the table's: the earth mover's distance.

    Between values that are all equally far apart (``ordered=False``) that is half the sum of
    the differences; along an order, the mean absolute difference of the cumulated shares.
    """

    t: float
    ordered: bool = False
    monotone = False

    def check_classes(self, spread: Counts, overall: Counts) -> npt.NDArray[np.bool_]:
        """Return which classes are as close to the table."""
        return compute_distance(spread, overall, ordered=self.ordered) <= self.t + _SLACK


def compute_distance(spread: Counts, overall: Counts, *, ordered: bool) -> Floats:
    """Return how far each class's distribution of values is from the table's, from 0 to 1."""
    if spread.shape[1] < 2:
        return np.zeros(len(spread))
    difference = spread / spread.sum(axis=1, keepdims=True) - overall / overall.sum()
    if not ordered:
        return np.abs(difference).sum(axis=1) / 2  # type: ignore[no-any-return]
    cumulative = np.abs(np.cumsum(difference, axis=1))
    return cumulative.sum(axis=1) / (spread.shape[1] - 1)  # type: ignore[no-any-return]


def _compute_entropy(spread: Counts) -> Floats:
    shares = spread / spread.sum(axis=1, keepdims=True)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return -(shares * logs).sum(axis=1)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class SensitiveColumn:
    """A sensitive column: its code in each distinct tuple, in the order of its values, and rules.

    ``overall`` counts each value in the whole table.
    """

    codes: Codes
    overall: Counts
    rules: tuple[DiversityRule, ...]
    name: str = ""

    @cached_property
    def value_count(self) -> int:
        """The number of values."""
        return len(self.overall)

    def count_values(self, at: npt.NDArray[np.int64], counts: Counts, *, classes: int) -> Counts:
        """Return how many rows of each value each class has; ``at`` is the class of each tuple."""
        cells = np.bincount(
            at * self.value_count + self.codes, weights=counts, minlength=classes * self.value_count
        )
        return cells.reshape(classes, self.value_count).astype(np.int64)


def check_rules(
    at: npt.NDArray[np.int64],
    counts: Counts,
    *,
    classes: int,
    sensitive_columns: Sequence[SensitiveColumn],
) -> npt.NDArray[np.bool_]:
    """Return which classes satisfy every rule; ``at`` is the class of each tuple."""
    good = np.ones(classes, dtype=bool)
    for column in sensitive_columns:
        spread = column.count_values(at, counts, classes=classes)
        for rule in column.rules:
            good &= rule.check_classes(spread, column.overall)
    return good
