"""A column of synthetic rows as recipients see it: its values, their groups, how they are written.

Values are numbered in their declared order; null comes after them, and then the label ``other``,
if the column has one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from incrowd.arrays import Codes, Counts
from incrowd.codes.hierarchy import Hierarchy
from incrowd.codes.values import canonicalize_value
from incrowd.spec.leaves import ISO_DAY, Leaves
from incrowd.spec.value_format import ValueFormat


@dataclass(frozen=True, eq=False)
class ValueColumn:
    """A column: its hierarchy, the points of its values, and its label for other values.

    Numbers and days are shown as ``written`` says, if it is given.
    """

    name: str
    hierarchy: Hierarchy
    leaves: Leaves
    other: str | None
    written: ValueFormat | None = None

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
        """Return a finest value as text; a single number or day in the format of its column."""
        text = self.hierarchy.labels[0][code]
        single = self.leaves.kind is not None and not self.leaves.has_spans
        if text is None or not single or code >= len(self.hierarchy.values):
            return text
        return self._write(text)

    def write_point(self, point: int) -> str:
        """Return a number or a day as text."""
        return self._write(self.leaves.text(point))

    def _write(self, text: str) -> str:
        """Return a canonical number or an ISO day in the format of the column."""
        if self.leaves.kind == "date" and self.leaves.format != ISO_DAY:
            return dt.date.fromisoformat(text).strftime(self.leaves.format)
        return text if self.written is None else self.written.write(text)

    def read_point(self, value: object) -> int | None:
        """Return the point that a published value is; None if it is none.

        A text must be written exactly as a release writes it: other ways to write the same value
        could carry a message.
        """
        if not isinstance(value, str):
            return self.leaves.point(canonicalize_value(value))
        point = self._parse(value)
        return point if point is not None and self.write_point(point) == value else None

    def _parse(self, text: str) -> int | None:
        if self.leaves.kind == "date" and self.leaves.format != ISO_DAY:
            try:
                return dt.datetime.strptime(text, self.leaves.format).date().toordinal()
            except ValueError:
                return None
        return self.leaves.point(canonicalize_value(self._reader(text)))

    @cached_property
    def _reader(self) -> Callable[[object], object]:
        return canonicalize_value if self.written is None else self.written.make_reader()

    def read_code(self, value: object, *, as_point: bool) -> int | None:
        """Return the finest value that a published value stands for; None if there is none."""
        if value is None:
            return len(self.hierarchy.values)
        if self.other is not None and value == self.other:
            return len(self.hierarchy.values) + 1
        if as_point:
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
