"""Tables whose distinct tuples are too many for this machine: rolled up, searched, drawn there.

Nothing here changes what is released: a search scores the same schemes with the same scores, a
draw has the same law. Which tuples are brought here, and which stay, is decided by how many they
are, which changes the time that it takes and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.lattice import Node, Rollups
from incrowd.arrays import Codes, Counts
from incrowd.codes.counted_table import CountedTable
from incrowd.codes.frequency import Frequencies, map_levels
from incrowd.codes.hierarchy import Hierarchy
from incrowd.engine.count import build_hierarchies, count_tuples
from incrowd.engine.table import DrawnCells, PicklableDraw, RemoteTuples, Table, TooManyTuplesError
from incrowd.privacy.randomness import Randomness
from incrowd.spec.build import ColumnHierarchies

_NUMBERED = 2**62


@dataclass(frozen=True, eq=False)
class RemoteCountedTable:
    """What :class:`~incrowd.codes.counted_table.CountedTable` is, of tuples that are not here.

    ``levels`` are those that they are to be seen at, ``held`` those that they are kept at.
    """

    names: tuple[str, ...]
    hierarchies: tuple[Hierarchy, ...]
    levels: tuple[int, ...]
    held: tuple[int, ...]
    tuples: RemoteTuples

    @property
    def maps(self) -> list[Codes]:
        """From the codes that are kept to those that are to be seen."""
        return map_levels(self.hierarchies, self.held, self.levels)

    def roll_up(self, levels: tuple[int, ...]) -> CountedTable | RemoteCountedTable:
        """Return the tuples at higher levels, here if they fit."""
        return replace(self, levels=levels).collect_if_small()

    def collect_if_small(self) -> CountedTable | RemoteCountedTable:
        """Return the tuples here, if they fit."""
        try:
            return self._make_counted(self.tuples.roll_up(self.maps))
        except TooManyTuplesError:
            return self

    def select_columns(self, names: Sequence[str]) -> CountedTable | RemoteCountedTable:
        """Return the tuples of some of the columns, here if they fit."""
        places = [self.names.index(name) for name in names]
        return RemoteCountedTable(
            tuple(names),
            tuple(self.hierarchies[at] for at in places),
            tuple(self.levels[at] for at in places),
            tuple(self.held[at] for at in places),
            self.tuples.select_columns(places),
        ).collect_if_small()

    def column(self, at: int) -> CountedTable:
        """Return the tuples of one column: its values are here already."""
        return CountedTable(
            (self.names[at],),
            (self.hierarchies[at],),
            (self.levels[at],),
            self.collect_above([at], 0),
        )

    def collect_above(self, places: Sequence[int], threshold: int) -> Frequencies:
        """Return the tuples of some columns that have more than so many rows."""
        maps = self.maps
        return self.tuples.select_columns(places).collect_above(
            [maps[at] for at in places], threshold
        )

    def collect_sample(self) -> CountedTable:
        """Return some of the tuples, to measure on."""
        return self._make_counted(self.tuples.collect_sample(self.maps))

    def draw_cells(self, draw: PicklableDraw, bits: Randomness) -> DrawnCells:
        """Return what a draw shows; tuples that look the same to a reader are one."""
        looks = [
            h.map_equal_labels(level)
            for h, level in zip(self.hierarchies, self.levels, strict=True)
        ]
        maps = [look[lookup] for look, lookup in zip(looks, self.maps, strict=True)]
        return self.tuples.draw_cells(maps, draw, bits)

    def _make_counted(self, frequencies: Frequencies) -> CountedTable:
        return CountedTable(self.names, self.hierarchies, self.levels, frequencies)


def count_local_or_remote(
    table: Table, declared: ColumnHierarchies, levels: Sequence[int] | None = None
) -> CountedTable | RemoteCountedTable:
    """Count the distinct tuples of a table; where they are, if too many for this machine."""
    base_levels = tuple(levels) if levels is not None else (0,) * len(declared.names)
    try:
        return count_tuples(table, declared, levels=base_levels)
    except TooManyTuplesError as error:
        if error.spread is None:
            raise
        hierarchies = build_hierarchies(table, declared)
        return RemoteCountedTable(
            declared.names, hierarchies, base_levels, base_levels, error.spread
        )


class RemoteRollups(Rollups):
    """The cells at any node of a search, brought here from tuples that are not.

    Tuples at some levels that fit are brought here once, and roll up to every coarser node. The
    cells of other nodes are counted where the tuples are; only those of more than ``threshold``
    rows come here, and a search looks at no others.
    """

    def __init__(self, table: RemoteCountedTable, threshold: int) -> None:
        self._whole, self._threshold = table, threshold
        self._base, local_table = _bring_tuples(table)
        super().__init__(table.hierarchies, local_table.represent_by_values().frequencies)

    def count_cells(self, node: Node) -> tuple[npt.NDArray[np.int64], Counts]:
        """Return the keys of the cells with more than ``threshold`` rows, and their rows."""
        if all(a >= b for a, b in zip(node, self._base, strict=True)):
            return super().count_cells(node)
        maps = map_levels(self.hierarchies, self._whole.held, node)
        above = self._whole.tuples.collect_above(maps, self._threshold)
        widths = [self._count_level_groups(at, level) for at, level in enumerate(node)]
        if math.prod(widths) >= _NUMBERED:
            self._wide[node] = above.codes
            return np.arange(len(above), dtype=np.int64), above.counts
        keys = np.zeros(len(above), dtype=np.int64)
        for at, width in enumerate(widths):
            keys = keys * width + above.codes[:, at] if width > 1 else keys
        return keys, above.counts


def _bring_tuples(table: RemoteCountedTable) -> tuple[Node, CountedTable]:
    """Return levels at which the tuples fit here, and these; wide columns roll up first.

    At the root of every column there is one tuple, which fits.
    """
    levels = list(table.held)
    while True:
        if_small = replace(table, levels=tuple(levels)).collect_if_small()
        if isinstance(if_small, CountedTable):
            return tuple(levels), if_small
        wide = [
            len(hierarchy.labels[level]) if level < hierarchy.height - 1 else 0
            for hierarchy, level in zip(table.hierarchies, levels, strict=True)
        ]
        if not any(wide):
            raise TooManyTuplesError(
                "Table: too many distinct tuples at every level. Publish fewer columns."
            )
        levels[int(np.argmax(wide))] += 1
