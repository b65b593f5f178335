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
from incrowd.codes.counted import Counted
from incrowd.codes.frequency import Frequencies, between
from incrowd.codes.hierarchy import Hierarchy
from incrowd.engine.count import count, hierarchies_of
from incrowd.engine.table import DrawnCells, Shows, Spread, Table, TooManyError
from incrowd.privacy.randomness import Randomness
from incrowd.spec.build import Declared

_NUMBERED = 2**62


@dataclass(frozen=True, eq=False)
class SpreadCounted:
    """What :class:`~incrowd.codes.counted.Counted` is, of tuples that are not here.

    ``levels`` are those that they are to be seen at, ``held`` those that they are kept at.
    """

    names: tuple[str, ...]
    hierarchies: tuple[Hierarchy, ...]
    levels: tuple[int, ...]
    held: tuple[int, ...]
    tuples: Spread

    @property
    def maps(self) -> list[Codes]:
        """From the codes that are kept to those that are to be seen."""
        return between(self.hierarchies, self.held, self.levels)

    def rolled(self, levels: tuple[int, ...]) -> Counted | SpreadCounted:
        """The tuples at higher levels, here if they fit."""
        return replace(self, levels=levels).near()

    def near(self) -> Counted | SpreadCounted:
        """The tuples here, if they fit."""
        try:
            return self._counted(self.tuples.rolled(self.maps))
        except TooManyError:
            return self

    def part(self, names: Sequence[str]) -> Counted | SpreadCounted:
        """The tuples of some of the columns, here if they fit."""
        places = [self.names.index(name) for name in names]
        return SpreadCounted(
            tuple(names),
            tuple(self.hierarchies[at] for at in places),
            tuple(self.levels[at] for at in places),
            tuple(self.held[at] for at in places),
            self.tuples.part(places),
        ).near()

    def column(self, at: int) -> Counted:
        """The tuples of one column: its values are here already."""
        return Counted(
            (self.names[at],), (self.hierarchies[at],), (self.levels[at],), self.above([at], 0)
        )

    def above(self, places: Sequence[int], least: int) -> Frequencies:
        """The tuples of some columns that have more than so many rows."""
        maps = self.maps
        return self.tuples.part(places).above([maps[at] for at in places], least)

    def some(self) -> Counted:
        """Some of the tuples, to measure on."""
        return self._counted(self.tuples.some(self.maps))

    def drawn(self, draw: Shows, bits: Randomness) -> DrawnCells:
        """What a draw shows; tuples that look the same to a reader are one."""
        looks = [h.by_label(level) for h, level in zip(self.hierarchies, self.levels, strict=True)]
        maps = [look[lookup] for look, lookup in zip(looks, self.maps, strict=True)]
        return self.tuples.drawn(maps, draw, bits)

    def _counted(self, frequencies: Frequencies) -> Counted:
        return Counted(self.names, self.hierarchies, self.levels, frequencies)


def counted(
    table: Table, declared: Declared, levels: Sequence[int] | None = None
) -> Counted | SpreadCounted:
    """The distinct tuples of a table; where they are, if they are too many for this machine."""
    held = tuple(levels) if levels is not None else (0,) * len(declared.names)
    try:
        return count(table, declared, levels=held)
    except TooManyError as many:
        if many.spread is None:
            raise
        hierarchies = hierarchies_of(table, declared)
        return SpreadCounted(declared.names, hierarchies, held, held, many.spread)


class SpreadRollups(Rollups):
    """The cells at any node of a search, brought here from tuples that are not.

    Tuples at some levels that fit are brought here once, and roll up to every coarser node. The
    cells of other nodes are counted where the tuples are; only those of more than ``least`` rows
    come here, and a search looks at no others.
    """

    def __init__(self, whole: SpreadCounted, least: int) -> None:
        self._whole, self._least = whole, least
        self._base, near = _brought(whole)
        super().__init__(whole.hierarchies, near.by_values().frequencies)

    def cells(self, node: Node) -> tuple[npt.NDArray[np.int64], Counts]:
        """The keys of the cells of a node that have more than ``least`` rows, and their rows."""
        if all(a >= b for a, b in zip(node, self._base, strict=True)):
            return super().cells(node)
        maps = between(self.hierarchies, self._whole.held, node)
        found = self._whole.tuples.above(maps, self._least)
        widths = [self._width(at, level) for at, level in enumerate(node)]
        if math.prod(widths) >= _NUMBERED:
            self._wide[node] = found.codes
            return np.arange(len(found), dtype=np.int64), found.counts
        keys = np.zeros(len(found), dtype=np.int64)
        for at, width in enumerate(widths):
            keys = keys * width + found.codes[:, at] if width > 1 else keys
        return keys, found.counts


def _brought(whole: SpreadCounted) -> tuple[Node, Counted]:
    """Levels at which the tuples fit here, and the tuples: the widest column is made coarser first.

    At the root of every column there is one tuple, which fits.
    """
    levels = list(whole.held)
    while True:
        found = replace(whole, levels=tuple(levels)).near()
        if isinstance(found, Counted):
            return tuple(levels), found
        wide = [
            len(hierarchy.labels[level]) if level < hierarchy.height - 1 else 0
            for hierarchy, level in zip(whole.hierarchies, levels, strict=True)
        ]
        if not any(wide):
            raise TooManyError(
                "Table: too many distinct tuples at every level. Publish fewer columns."
            )
        levels[int(np.argmax(wide))] += 1
