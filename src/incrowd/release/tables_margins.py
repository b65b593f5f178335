"""Whether tables agree: equal sums where they share columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from incrowd.arrays import Counts
from incrowd.findings import Finding, make_finding
from incrowd.release.tables_column import TabulatedColumn, sum_groups


class TableMargins:
    """The margins of tables that were read, by which later ones must agree with them.

    Two tables agree if their margins on the columns that they share are equal, at the coarser of
    their levels.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[str, ...], dict[tuple[int, ...], tuple[str, Counts]]] = {}

    def compare(
        self,
        file: str,
        columns: tuple[TabulatedColumn, ...],
        levels: tuple[int, ...],
        finest: Counts,
        summed: str = "",
    ) -> Iterator[Finding]:
        """Return a finding if a table contradicts an earlier one; remember its margins.

        ``finest`` are counts or, of a column that is ``summed``, its steps.
        """
        places = sorted(range(len(columns)), key=lambda at: columns[at].name)
        for size in range(len(places) + 1):
            for remaining in combinations(places, size):
                dropped = tuple(at for at in range(len(columns)) if at not in remaining)
                margin = finest.sum(axis=dropped)
                order = np.argsort(np.argsort(remaining)) if remaining else ()
                other = self._find_contradiction(
                    file,
                    summed,
                    [columns[at] for at in remaining],
                    tuple(levels[at] for at in remaining),
                    np.transpose(margin, order),
                )
                if other is not None:
                    yield make_finding("TABLES_DISAGREE", file=file, other=other)
                    return

    def _find_contradiction(
        self,
        file: str,
        summed: str,
        columns: list[TabulatedColumn],
        levels: tuple[int, ...],
        margin: Counts,
    ) -> str | None:
        margins = self._seen.setdefault((summed, *(column.name for column in columns)), {})
        for other_levels, (other, theirs) in margins.items():
            joint = [max(pair) for pair in zip(levels, other_levels, strict=True)]
            mine, yours = margin, theirs
            for axis, (column, high) in enumerate(zip(columns, joint, strict=True)):
                mine = sum_groups(mine, axis, column.list_parents(levels[axis], high))
                yours = sum_groups(yours, axis, column.list_parents(other_levels[axis], high))
            if not np.array_equal(mine, yours):
                return other
        margins.setdefault(levels, (file, margin))
        return None
