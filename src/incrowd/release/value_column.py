"""A column of synthetic rows as recipients see it: its values, their groups, how they are written.

Values are numbered in their declared order; null comes after them, and then the label ``other``,
if the column has one.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from incrowd.arrays import Codes, Counts
from incrowd.codes.hierarchy import Hierarchy
from incrowd.codes.values import canonicalize_value
from incrowd.spec.leaves import ISO_DAY, Leaves


@dataclass(frozen=True, eq=False)
class ValueColumn:
    """A column: its hierarchy, the points of its values, and its label for other values."""

    name: str
    hierarchy: Hierarchy
    leaves: Leaves
    other: str | None

    @property
    def size(self) -> int:
        """The number of finest values, null and ``other`` included."""
        return len(self.hierarchy.values) + (1 if self.other is None else 2)

    def list_groups(self, level: int) -> Codes:
        """Return the group at a level of each finest value."""
        groups: Codes = self.hierarchy.groups[level][: self.size]
        return groups

    def list_labels(self, level: int) -> tuple[str | None, ...]:
        """Return the labels of the groups of a level."""
        return self.hierarchy.labels[level][: int(self.list_groups(level).max()) + 1]

    def write_label(self, code: int) -> str | None:
        """Return a finest value as text; a single day in the format of its column."""
        text = self.hierarchy.labels[0][code]
        single = self.leaves.kind == "date" and not self.leaves.has_spans
        if text is None or not single or code >= len(self.hierarchy.values):
            return text
        return self.write_day(text)

    def write_point(self, point: int) -> str:
        """Return a number or a day as text."""
        text = self.leaves.text(point)
        return self.write_day(text) if self.leaves.kind == "date" else text

    def write_day(self, text: str) -> str:
        """Return an ISO day in the format of the column."""
        form = self.leaves.format
        return text if form == ISO_DAY else dt.date.fromisoformat(text).strftime(form)

    def read_point(self, value: object) -> int | None:
        """Return the point that a published value is; None if it is none."""
        if self.leaves.kind != "date" or not isinstance(value, str):
            return self.leaves.point(canonicalize_value(value))
        try:
            return dt.datetime.strptime(value, self.leaves.format).date().toordinal()
        except ValueError:
            return None

    def read_code(self, value: object, *, drawn: bool) -> int | None:
        """Return the finest value that a published value stands for; None if there is none."""
        if value is None:
            return len(self.hierarchy.values)
        if self.other is not None and value == self.other:
            return len(self.hierarchy.values) + 1
        if drawn:
            return self._find_leaf(self.read_point(value))
        return self._codes.get(canonicalize_value(value) if not isinstance(value, str) else value)

    def _find_leaf(self, point: int | None) -> int | None:
        if point is None:
            return None
        at = int(np.searchsorted(self._lows, point, side="right")) - 1
        high = self.leaves.highs[at] if at >= 0 else None
        return at if high is not None and point <= high else None

    @cached_property
    def _lows(self) -> Counts:
        return np.array([low or 0 for low in self.leaves.lows], dtype=np.int64)

    @cached_property
    def _codes(self) -> dict[str | None, int]:
        return {self.write_label(code): code for code in range(len(self.hierarchy.values))}
