"""Generalization hierarchies: levels as integer codes.

A hierarchy is a list of levels. Level 0 holds the values, each further level groups the
groups of the one below, and mapping a column to a level is one array lookup. Codes of
level 0 are 0 to m-1 for the m values of the domain, then m for null and m+1 for anything
outside the domain. Null stays null until the top level, where it joins the root; a value
outside the domain is shown as the declared ``other``, or as the root at every level.

Everything is built from declarations, never from data, except in an *open* domain (a mask,
or values that nobody listed): there codes are given to the values met, and only the rule
that maps a value to its groups is declared.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Codes
from incrowd.codes.values import canonicalize_value, parse_number
from incrowd.errors import IncrowdError

ROOT = "*"
SUPPRESSED, UNCHANGED = "suppressed", "unchanged"  # the words for the root and for the values


class HierarchyError(IncrowdError):
    """A hierarchy that cannot be one; the text names the values at fault."""


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Levels over a closed domain.

    ``groups[l][i]`` is the code at level l of the value with code i, and ``labels[l]`` names
    the codes of level l. ``locate`` finds the value of the domain that a raw value stands
    for. ``size`` is the number of leaves that losses are measured against. In an ``open``
    domain the values are those met, and nothing that a release rests on may depend on them:
    there the rule tells how many values a code covers. ``ordered`` values lie on a line.
    """

    values: tuple[str, ...]
    groups: tuple[Codes, ...]
    labels: tuple[tuple[str | None, ...], ...]
    size: int
    open: bool = False
    ordered: bool = False
    locate: Callable[[object], str | None] = canonicalize_value

    @property
    def height(self) -> int:
        """The number of levels, the values included."""
        return len(self.groups)

    @property
    def null(self) -> int:
        """The code of null."""
        return len(self.values)

    @property
    def outside(self) -> int:
        """The code of everything outside the domain."""
        return len(self.values) + 1

    @cached_property
    def _codes(self) -> dict[str | None, int]:
        return {**{value: code for code, value in enumerate(self.values)}, None: self.null}

    @cached_property
    def numbers(self) -> tuple[Decimal | None, ...]:
        """The values as numbers; None for what is none."""
        return tuple(map(parse_number, self.values))

    @cached_property
    def line(self) -> Codes:
        """The codes of the values along a line: by number where all are numbers, else as listed."""
        numbers = self.numbers
        codes = list(range(len(numbers)))
        if all(x is not None for x in numbers):
            codes.sort(key=lambda code: numbers[code])  # type: ignore[arg-type, return-value]
        return np.array(codes, dtype=np.int32)

    def encode(self, values: Iterable[object]) -> Codes:
        """Return the level-0 codes of raw values."""
        codes, outside, locate = self._codes, self.outside, self.locate
        return np.fromiter((codes.get(locate(x), outside) for x in values), dtype=np.int32)

    def encode_value(self, value: object) -> int:
        """Return the level-0 code of one raw value."""
        return self._codes.get(self.locate(value), self.outside)

    def list_rows(self) -> list[tuple[str, ...]]:
        """Return one row per value with its label at every level, as in an ARX file."""
        columns = [
            [str(labels[group]) for group in groups[: len(self.values)].tolist()]
            for groups, labels in zip(self.groups, self.labels, strict=True)
        ]
        return list(zip(*columns, strict=True))

    def map_equal_labels(self, level: int) -> Codes:
        """Return for each code of a level the first code with the same label."""
        if len(set(self.labels[level])) == len(self.labels[level]):
            return np.arange(len(self.labels[level]), dtype=np.int32)
        first_codes: dict[str | None, int] = {}
        for code, label in enumerate(self.labels[level]):
            first_codes.setdefault(label, code)
        return np.array([first_codes[label] for label in self.labels[level]], dtype=np.int32)

    def count_leaves(self, level: int) -> npt.NDArray[np.int64]:
        """Return how many values of the domain each code of a level covers."""
        leaves = np.bincount(
            self.groups[level][: len(self.values)], minlength=len(self.labels[level])
        )
        return np.maximum(leaves, 1)

    @property
    def is_rooted(self) -> bool:
        """Whether the top level is a single group."""
        return len(self.labels[-1]) == 1

    @property
    def root(self) -> str:
        """What stands for everything."""
        return str(self.labels[-1][0]) if self.is_rooted else ROOT

    def count_by_rule(self, level: int) -> float:
        """Return how many values a code of an open domain counts for, where none were counted.

        Every level counts alike: a mask that hides h of n characters as h / n of its domain.
        """
        return 1 + (self.size - 1) * (level / (self.height - 1))

    @overload
    def normalize_loss(self, covered: float) -> float: ...

    @overload
    def normalize_loss(self, covered: npt.NDArray[Any]) -> npt.NDArray[np.float64]: ...

    def normalize_loss(self, covered: Any) -> Any:
        """Return (a - 1) / (m - 1) for a of m values covered: 0 for a single value, 1 for all."""
        return (covered - 1) / max(self.size - 1, 1)

    def count_covered(self, level: int) -> npt.NDArray[np.float64]:
        """Return how many values each code of a level may stand for, met or not.

        The root stands for all of them, and so does a value outside the domain where it is
        shown as the root. In an open domain the rule tells, not the values met.
        """
        if level == self.height - 1 and self.is_rooted:
            return np.array([float(self.size)])
        sizes = self.count_leaves(level).astype(np.float64)
        if self.open:
            sizes[:-2] = self.count_by_rule(level)
        if self.labels[level][-1] == self.root:
            sizes[-1] = self.size
        return sizes


def build_from_rows(
    rows: Sequence[Sequence[str]],
    *,
    other: str | None = None,
    size: int | None = None,
    exact: bool = False,
) -> Hierarchy:
    """Build a hierarchy from one row per value: the value, its label at level 1, and so on.

    Values are taken in their canonical form, or as they are written if ``exact``.
    Raises :class:`HierarchyError` if rows differ in length, a value occurs twice, or levels
    do not nest.
    """
    if not rows:
        raise HierarchyError("The hierarchy has no values. List at least one.")
    height = len(rows[0])
    for number, row in enumerate(rows, start=1):
        if len(row) != height:
            raise HierarchyError(
                f"Row {number} ('{row[0] if row else ''}') has {len(row)} levels, row 1 "
                f"('{rows[0][0]}') has {height}. Give every value the same number of levels."
            )
    values = [row[0] if exact else canonicalize_value(row[0]) or "" for row in rows]
    _refuse_duplicates(values)
    columns = [values, *([row[level] for row in rows] for level in range(1, height))]
    _refuse_unnested(values, columns)
    return _assign_codes(values, columns, other=other, size=len(values) if size is None else size)


@dataclass(frozen=True)
class LabelRuns:
    """The labels of one level, and how many neighboring values each covers."""

    labels: list[str]
    lengths: list[int]

    def add_first(self, label: str) -> None:
        """Put a label of one value before the others."""
        self.labels.insert(0, label)
        self.lengths.insert(0, 1)

    def add_last(self, label: str) -> None:
        """Put a label of one value behind the others."""
        self.labels.append(label)
        self.lengths.append(1)


def build_from_runs(levels: Sequence[LabelRuns], *, other: str | None = None) -> Hierarchy:
    """Build the hierarchy of values in a row, with runs of them at each level, and a root.

    It is that of :func:`build_from_rows`, taken exactly, whose messages it has; but what is long is
    not spelled out value by value.
    """
    values = levels[0].labels
    runs = [*levels, LabelRuns([ROOT], [len(values)])]
    groups = [np.repeat(np.arange(len(run.labels)), run.lengths) for run in runs]
    nests = all(
        (np.diff(above) <= np.diff(below)).all()  # a run ends where one below it does
        for below, above in itertools.pairwise(groups)
    )
    is_distinct = all(len(set(run.labels)) == len(run.labels) for run in runs)
    is_covered = all(length > 0 for run in runs for length in run.lengths)
    if not (nests and is_distinct and is_covered):
        columns = [
            [run.labels[code] for code in group] for run, group in zip(runs, groups, strict=True)
        ]
        return build_from_rows(list(zip(*columns, strict=True)), other=other, exact=True)
    codes = [
        np.append(group, [len(run.labels), len(run.labels) + 1]).astype(np.int32)
        for run, group in zip(levels, groups, strict=False)
    ]
    codes.append(np.zeros(len(values) + 2, dtype=np.int32))
    beyond = ROOT if other is None else other
    labels = [*((*run.labels, None, beyond) for run in levels), (ROOT,)]
    return Hierarchy(tuple(values), tuple(codes), tuple(labels), len(values))


def _refuse_duplicates(values: Sequence[str]) -> None:
    seen: dict[str, int] = {}
    for number, value in enumerate(values, start=1):
        if value in seen:
            raise HierarchyError(
                f"Rows {seen[value]} and {number} both list the value '{value}'. Remove one of "
                "them."
            )
        seen[value] = number


def _refuse_unnested(values: Sequence[str], columns: Sequence[Sequence[str]]) -> None:
    """Refuse two values that are alike at a level but not above it."""
    for level in range(1, len(columns)):
        parent: dict[str, tuple[str, str]] = {}
        for value, child, above in zip(values, columns[level - 1], columns[level], strict=True):
            first, label = parent.setdefault(child, (value, above))
            if label != above:
                raise HierarchyError(
                    f"Levels do not nest: '{first}' and '{value}' are both '{child}' at level "
                    f"{level - 1}, but '{label}' and '{above}' at level {level}. Correct one of "
                    "them."
                )


def _assign_codes(
    values: Sequence[str], columns: Sequence[Sequence[str]], *, other: str | None, size: int
) -> Hierarchy:
    """Give codes to labels, in the order of their first value, with null and outside last.

    Below the root, null and outside have codes of their own even where their label is that
    of a group, so that each code has one parent.
    """
    groups: list[Codes] = []
    labels: list[tuple[str | None, ...]] = []
    top = len(columns) - 1
    single = top > 0 and len(set(columns[top])) == 1
    root = columns[top][0] if single else ROOT
    for level, column in enumerate(columns):
        numbers: dict[str, int] = {}
        for label in column:
            numbers.setdefault(label, len(numbers))
        codes = np.fromiter((numbers[label] for label in column), np.int32, count=len(values))
        if level == top and single:
            groups.append(np.append(codes, [0, 0]).astype(np.int32))
            labels.append(tuple(numbers))
        else:
            null = len(numbers)
            groups.append(np.append(codes, [null, null + 1]).astype(np.int32))
            labels.append((*numbers, None, root if other is None else other))
    return Hierarchy(tuple(values), tuple(groups), tuple(labels), size)
