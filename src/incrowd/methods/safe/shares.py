"""Which columns of a safe release are counted by themselves beside it, and what that spends.

A column is if its entry says ``rare: keep``, and the target of a search whose values are listed:
the search weighs the values of its target by these counts, and may lose the rare ones all the same.
All of it follows from the spec, so that which counts there are tells nothing of a table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.anonymize.declared_counts import measure_counts
from incrowd.arrays import Counts
from incrowd.codes.counted_table import CountedTable
from incrowd.codes.hierarchy import Hierarchy
from incrowd.errors import IncrowdError
from incrowd.methods.safe.remote_counts import RemoteCountedTable
from incrowd.privacy.presentation import read_as_decimal
from incrowd.privacy.randomness import Randomness
from incrowd.release.shares_part import ShareTable, list_values
from incrowd.spec.build import ColumnHierarchies
from incrowd.spec.release import SafeSpec

MOST_VALUES = 100  # of a column: beyond, shares are of groups of values
_SHARES = ((10_000, 0.1), (math.inf, 0.05))  # below so many people, so much of epsilon per column
_MOST = 0.2  # of epsilon, for all columns together


@dataclass(frozen=True)
class MeasuredColumn:
    """A column that was measured, and the noisy count of each code of its level.

    Codes with one label are counted together: each has the count of all.
    """

    table: ShareTable
    counts: Counts


class ShareCounter:
    """The columns that are counted, each at a level with few values; and the counting."""

    def __init__(self, release: SafeSpec, declared: ColumnHierarchies, size: int | None) -> None:
        self._declared = declared
        self._levels = {
            name: self._find_kept_level(name, release)
            for name in declared.names
            if declared.columns[name].rare == "keep"
        }
        target = release.target
        if target is not None:
            level = _find_lowest_level(release, target)
            if not declared.is_open(target) and self._has_few_values(target, level):
                self._levels[target] = level
        if self._levels and release.series is not None:
            raise IncrowdError(
                f"Column '{next(iter(self._levels))}': `rare: keep` counts by itself, and the "
                "noise of a `series` is planned for its cells alone. Remove one of them."
            )
        rows = math.inf if size is None else size
        share = next(share for below, share in _SHARES if rows < below or below == math.inf)
        self._part = min(share, _MOST / max(len(self._levels), 1))

    @property
    def levels(self) -> Mapping[str, int]:
        """The columns that are counted, each with the level of its counts."""
        return self._levels

    def lower_levels(self, levels: Sequence[int]) -> tuple[int, ...]:
        """Return the levels that the tuples of a table are to be counted at, so that all follows.

        ``levels`` are those that its rows need, a column each. A column that is counted by itself
        may need a finer one; the rows roll up from there.
        """
        return tuple(
            min(level, self._levels.get(name, level))
            for name, level in zip(self._declared.names, levels, strict=True)
        )

    def list_epsilons(self, epsilon: float, releases: int) -> list[float]:
        """Return what the columns spend, those of all planned releases one after the other."""
        part = self._part * epsilon / math.sqrt(releases)
        return [part] * (len(self._levels) * releases)

    def measure(
        self,
        table: CountedTable | RemoteCountedTable,
        epsilons: Sequence[float],
        *,
        rows: int,
        bits: Randomness,
    ) -> dict[str, MeasuredColumn]:
        """Count the columns, with noise; ``rows`` is the largest number of rows of one person."""
        measured = {}
        for (name, level), epsilon in zip(self._levels.items(), epsilons, strict=True):
            column = (
                table.column(table.names.index(name))
                if isinstance(table, RemoteCountedTable)
                else table.select_columns([name])
            )
            frequencies = column.roll_up((level,)).merge_labels().frequencies
            labels = column.hierarchies[0].labels[level]
            first_codes = column.hierarchies[0].map_equal_labels(level)
            places = np.unique(first_codes)
            counts = np.zeros(len(labels), dtype=np.int64)
            counts[frequencies.codes[:, 0]] = frequencies.counts
            noisy = measure_counts(
                counts[places], epsilon=read_as_decimal(epsilon), rows=rows, bits=bits
            )
            part = ShareTable(
                column=name,
                level=level,
                epsilon=epsilon,
                values=list_values(column.hierarchies[0], level),
                counts=noisy.tolist(),
            )
            measured[name] = MeasuredColumn(part, noisy[np.searchsorted(places, first_codes)])
        return measured

    def _find_kept_level(self, name: str, release: SafeSpec) -> int:
        """Return the finest level with few values that the spec allows; refuse if there is none."""
        if self._declared.is_open(name):
            raise IncrowdError(
                f"Column '{name}': `rare: keep` counts listed values, and its hierarchy lists "
                "none. List them (`flat: {values: […]}`, `intervals` or a file), or remove `rare`."
            )
        lowest = _find_lowest_level(release, name)
        for level in range(lowest, self._declared.height(name)):
            if self._has_few_values(name, level):
                return level
        raise IncrowdError(
            f"Column '{name}': `rare: keep` needs a level of 2 to {MOST_VALUES} values, and from "
            f"level {lowest} on it has none. Add one to its hierarchy, or remove `rare`."
        )

    def _has_few_values(self, name: str, level: int) -> bool:
        hierarchy = self._declared.get_hierarchy(name, tuple)
        return 2 <= _count_groups(hierarchy, level) <= MOST_VALUES


def _count_groups(hierarchy: Hierarchy, level: int) -> int:
    """Return how many groups of listed values a level has."""
    return len(set(hierarchy.groups[level][: len(hierarchy.values)].tolist()))


def _find_lowest_level(release: SafeSpec, name: str) -> int:
    """Return the finest level that a column may have, by the spec."""
    level = release.levels.get(name, 0)
    return level if isinstance(level, int) else level[0]
