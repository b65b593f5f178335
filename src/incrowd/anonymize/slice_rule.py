"""Which columns must not stand in one slice: those of which one is a function of others.

The rule is declared, and no data decide it. It says how many columns each slice may have and which
columns a slice may still take, so that every column gets a place whatever a private choice picks.

**A place for every column.** *Packing* puts the columns that the rule names, in their order, each
into the first slice that has room and may take it, and the others wherever there is room. A choice
is allowed only if packing still succeeds after it, and a column is left for each slice to come.
Then some choice is allowed, or the slice is complete as it is, and what is left finds room in the
slices to come:

- If only one column is left for each of them, each takes one.
- If packing puts a column c into the slice being made, take the first such c. Those that stand
  before it were refused by this slice, and a slice with more columns refuses no fewer (what
  determines a column still does so among more). So packing puts each other column where it put it
  before, and succeeds.
- If it puts none there that the rule names, either one of the other columns needs the room and may
  be taken, or none does.

Slices are as few as packing succeeds with, of even sizes if it does with these. As many slices as
columns always do.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

import numpy as np

from incrowd.arrays import Bools


class SliceRule:
    """Columns by their places, and which of them are functions of others.

    ``functions`` has the place of each such column with the places of those that determine it.
    Places beyond the ``columns`` are of columns that are not published.
    """

    def __init__(self, columns: int, functions: Sequence[tuple[int, Collection[int]]] = ()) -> None:
        self.columns = columns
        self._functions = [(1 << target, _mask(sources)) for target, sources in functions]
        named = 0
        for target, sources in self._functions:
            named |= target | sources
        self._named = named
        self._verdicts: dict[int, bool] = {}

    @property
    def dependent_columns(self) -> tuple[int, ...]:
        """The columns that are functions of others, or others of which are functions."""
        return tuple(at for at in range(self.columns) if self._named >> at & 1)

    def allows(self, members: Collection[int]) -> bool:
        """Return whether none of some columns is a function of the others."""
        return self._allows_mask(_mask(members) & self._named)

    def _allows_mask(self, members: int) -> bool:
        if members not in self._verdicts:
            targets = {target for target, _ in self._functions if target & members}
            self._verdicts[members] = not any(
                self._close(members & ~target) & target for target in targets
            )
        return self._verdicts[members]

    def _close(self, closed: int) -> int:
        """Return the columns, and all that they determine."""
        before = -1
        while closed != before:
            before = closed
            for target, sources in self._functions:
                if closed & sources == sources:
                    closed |= target
        return closed

    def list_separate_pairs(self) -> Bools:
        """Return which two columns may stand together, as a matrix."""
        is_allowed = ~np.eye(self.columns, dtype=bool)
        for first, second in combinations(self.dependent_columns, 2):
            is_allowed[first, second] = is_allowed[second, first] = self.allows((first, second))
        return is_allowed

    def compute_sizes(self, limit: int) -> list[int]:
        """Return how many columns each slice may have, ``limit`` at most."""
        number = -(-self.columns // limit)
        while True:
            size, remainder = divmod(self.columns, number)
            even = [size + (at < remainder) for at in range(number)]
            for sizes in (even, [limit] * number):
                if self.leaves_room((), range(self.columns), sizes):
                    return sizes
            number += 1

    def leaves_room(
        self, members: Collection[int], free: Collection[int], sizes: Sequence[int]
    ) -> bool:
        """Return whether columns find a place by packing: see the top of the file.

        ``sizes`` are those of the slice with some ``members``, and of the slices after it.
        """
        if len(free) + bool(members) < len(sizes):
            return False
        room = [sizes[0] - len(members), *sizes[1:]]
        packed = [_mask(members) & self._named, *[0] * (len(sizes) - 1)]
        for column in free:
            if not self._named >> column & 1:
                continue
            for at, mask in enumerate(packed):
                if room[at] > 0 and self._allows_mask(mask | 1 << column):
                    packed[at] |= 1 << column
                    room[at] -= 1
                    break
            else:
                return False
        return sum(not self._named >> column & 1 for column in free) <= sum(room)


def _mask(columns: Collection[int]) -> int:
    """Return a set of places as the bits of a number."""
    mask = 0
    for column in columns:
        mask |= 1 << column
    return mask
