"""What must hold of sensitive values inside each class: diversity, closeness, likeness, disclosure.

Each rule judges classes by their *spread*, a row per class with the number of rows of each
sensitive value. A rule is ``monotone`` if a class that satisfies it still does whatever joins it;
then rows suppressed at a node are suppressed at every finer one. It is ``closed`` if the union of
two classes that satisfy it satisfies it; then a scheme all of whose classes satisfy it stays one at
every coarser node.

**delta-presence.** Where the table is a population and a column says who is in a study, the share
of its members in a class is the chance that somebody of the class is one (Nergiz, Atzori and
Clifton 2007). :class:`ShareRule` bounds it from both sides.

**Which is what.** Distinct values are monotone: joining rows removes no value. No other rule is:
joining very many rows of one value breaks each of them.

Closed are all but one. The shares q of a union are a mean of the shares of its parts, with weights.
A bound of each share by a number, q(s) <= b(s) or q(s) >= b(s), passes to the mean: so the share of
one value, the largest share (alpha), both kinds of likeness, and disclosure over every value.
Entropy is concave in q, and the distances to the table are convex: they pass, too. For recursive
diversity write r1 for the rows of the most frequent value and R for the rows of all but the l - 1
most frequent ones. The number of rows in a fixed set of values adds up over parts, so the largest
such number over sets of a given size is at most the sum of the largest ones: r1 of the union is at
most the sum of both r1, and R, all rows minus the largest number over sets of l - 1 values, at
least the sum of both R. Hence r1 < c R passes.

Not closed is disclosure over the values present: a class without a value does not bound its share
from below, and so can lower that of the union until it is too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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

    @property
    def closed(self) -> bool:
        """Whether the union of classes that satisfy it does so."""
        ...

    def check_classes(self, spread: Counts, overall: Counts) -> npt.NDArray[np.bool_]:
        """Return which classes satisfy it, given the values' counts in each class and in all."""
        ...


@dataclass(frozen=True)
class DistinctRule:
    """At least ``l`` distinct values in every class."""

    l: float  # noqa: E741 - the name it has in the literature
    monotone = True
    closed = True

    def check_classes(self, spread: Counts, overall: Counts) -> npt.NDArray[np.bool_]:  # noqa: ARG002
        """Return which classes have as many values."""
        return np.asarray(np.count_nonzero(spread, axis=1) >= self.l)


@dataclass(frozen=True)
class EntropyRule:
    """An entropy of at least log(l): as spread out as ``l`` equally frequent values."""

    l: float  # noqa: E741
    monotone = False
    closed = True

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
    closed = True

    def check_classes(self, spread: Counts, overall: Counts) -> npt.NDArray[np.bool_]:
        """Return which classes are as close to the table."""
        return compute_distance(spread, overall, ordered=self.ordered) <= self.t + _SLACK


@dataclass(frozen=True)
class RecursiveRule:
    """Recursive (c,l)-diversity: the most frequent value has few rows beside the rare ones.

    Fewer than ``c`` times the rows of the l-th most frequent value and all rarer ones together.
    """

    c: float
    l: int  # noqa: E741
    monotone = False
    closed = True

    def check_classes(self, spread: Counts, overall: Counts) -> npt.NDArray[np.bool_]:  # noqa: ARG002
        """Return which classes are as diverse; none is whose rare values have no row."""
        ordered = -np.sort(-spread, axis=1)
        rare = ordered[:, self.l - 1 :].sum(axis=1)
        return np.asarray(ordered[:, 0] < self.c * rare * (1 - _SLACK))


@dataclass(frozen=True)
class AlphaRule:
    """The demand of (alpha,k)-anonymity: no value has a share above ``alpha`` of a class."""

    alpha: float
    monotone = False
    closed = True

    def check_classes(self, spread: Counts, overall: Counts) -> npt.NDArray[np.bool_]:  # noqa: ARG002
        """Return which classes have no such value."""
        return np.asarray(spread.max(axis=1) / spread.sum(axis=1) <= self.alpha + _SLACK)


@dataclass(frozen=True)
class ShareRule:
    """Delta-presence: the share of one value, at a place among all, lies within two bounds."""

    place: int
    least: float = 0.0
    most: float = 1.0
    monotone = False
    closed = True

    def check_classes(self, spread: Counts, overall: Counts) -> npt.NDArray[np.bool_]:  # noqa: ARG002
        """Return which classes have such a share."""
        shares = spread[:, self.place] / spread.sum(axis=1)
        return np.asarray((shares >= self.least - _SLACK) & (shares <= self.most + _SLACK))


@dataclass(frozen=True)
class LikenessRule:
    """Beta-likeness: no share is larger than in the table by a factor of more than 1 + beta.

    ``enhanced`` also bounds it by 1 - ln p, of the share p in the table, so that frequent values
    gain less. Shares may be as much smaller as they like.
    """

    beta: float
    enhanced: bool = False
    monotone = False
    closed = True

    def check_classes(self, spread: Counts, overall: Counts) -> npt.NDArray[np.bool_]:
        """Return which classes are as like the table."""
        return compute_gain(spread, overall, enhanced=self.enhanced) <= self.beta + _SLACK


def compute_gain(spread: Counts, overall: Counts, *, enhanced: bool) -> Floats:
    """Return the least beta that each class satisfies; infinite where none does.

    None does, with ``enhanced``, where a share p in the table has become larger than p(1 - ln p).
    """
    values = overall > 0
    before = overall[values] / overall.sum()
    gains = spread[:, values] / spread.sum(axis=1, keepdims=True) / before - 1
    beyond = gains > -np.log(before) + _SLACK if enhanced else np.zeros(gains.shape, dtype=bool)
    return np.where(beyond, np.inf, np.maximum(gains, 0.0)).max(axis=1)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class DisclosureRule:
    """Delta-disclosure: no share is in another order of size than in the table, by powers of 2.

    Of ``every`` value of the table the binary logarithm of share over share is above -delta and
    below delta, so that each value is in each class; or of the values present in the class alone.
    """

    delta: float
    every: bool = True
    monotone = False

    @property
    def closed(self) -> bool:
        """Whether it bounds every value."""
        return self.every

    def check_classes(self, spread: Counts, overall: Counts) -> npt.NDArray[np.bool_]:
        """Return which classes disclose as little."""
        return compute_disclosure(spread, overall, every=self.every) < self.delta - _SLACK


def compute_disclosure(spread: Counts, overall: Counts, *, every: bool) -> Floats:
    """Return the largest absolute binary logarithm of a share over that in the table."""
    values = overall > 0
    before = overall[values] / overall.sum()
    ratios = spread[:, values] / spread.sum(axis=1, keepdims=True) / before
    logs = np.abs(np.log2(ratios, out=np.full(ratios.shape, np.inf), where=ratios > 0))
    return np.where((ratios > 0) | every, logs, 0.0).max(axis=1)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class HierarchyClosenessRule:
    """A distribution at most ``t`` from the table's, by a hierarchy of the values.

    Two values are as far apart as the level at which they meet, over the level of the root.
    ``groups`` has the group of each value at each level below the root.
    """

    t: float
    groups: tuple[Codes, ...] = field(repr=False)
    monotone = False
    closed = True

    def check_classes(self, spread: Counts, overall: Counts) -> npt.NDArray[np.bool_]:
        """Return which classes are as close to the table."""
        return compute_hierarchy_distance(spread, overall, self.groups) <= self.t + _SLACK


def compute_hierarchy_distance(spread: Counts, overall: Counts, groups: Sequence[Codes]) -> Floats:
    """Return the earth mover's distance of each class from the table along a hierarchy, 0 to 1.

    On a tree whose edges all have the length 1 / (2H), H levels below the root, two leaves are as
    far apart as the rule says. What crosses the edge above a group is the difference of its shares,
    and no plan moves less: so the distance is the sum of these differences, times that length.
    """
    difference = spread / spread.sum(axis=1, keepdims=True) - overall / overall.sum()
    total = np.zeros(len(spread))
    for group in groups:
        sums = np.zeros((int(group.max(initial=0)) + 1, len(spread)))
        np.add.at(sums, group, difference.T)
        total += np.abs(sums).sum(axis=0)
    return total / (2 * len(groups))


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
