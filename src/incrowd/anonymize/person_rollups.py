"""The cells at any node where people are counted, each once per cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from incrowd.anonymize.lattice import Node, NodeClasses, Rollups
from incrowd.arrays import Codes, Counts, Places
from incrowd.codes.counted_table import CountedTable
from incrowd.codes.frequency import Frequencies
from incrowd.codes.hierarchy import Hierarchy
from incrowd.codes.person_sets import PeopleTable, PersonSets, merge_codes
from incrowd.measure.diversity import SensitiveColumn

_DENSEST = 1 << 22  # so many cells are counted in place


class PeopleRollups(Rollups):
    """What :class:`~incrowd.anonymize.lattice.Rollups` is, with people for rows.

    ``entries`` are the tuples of level 0 that people have behind each tuple held here. However fine
    a node is, the people of its cells add up to no more than those. The same holds of rows, of
    which so many of a person count in a cell: a finer cell has no more than a coarser one.
    """

    def __init__(
        self,
        hierarchies: Sequence[Hierarchy],
        codes: Codes,
        sets: PersonSets,
        entries: Counts | None = None,
    ) -> None:
        super().__init__(hierarchies, Frequencies(codes, sets.counts))
        self._sets = sets
        self._entries = sets.counts if entries is None else entries

    def count_cells(self, node: Node) -> tuple[npt.NDArray[np.int64], Counts]:
        """Return the keys of the cells of a node, and their people."""
        keys, people, _ = self.count_cells_with_rows(node)
        return keys, people

    def count_cells_with_rows(self, node: Node) -> tuple[npt.NDArray[np.int64], Counts, Counts]:
        """Return the keys of the cells of a node, their people, and the people of finer cells."""
        keys, cells = self._make_keys(node)
        people, entries = self._sets.count_once(keys), self._entries
        if cells <= max(min(_DENSEST, 16 * len(keys)), 1 << 12):
            by_key = _sum_by_place(keys, people, cells)
            distinct = np.flatnonzero(by_key)
            return distinct, by_key[distinct], _sum_by_place(keys, entries, cells)[distinct]
        distinct, places = np.unique(keys, return_inverse=True)
        size = len(distinct)
        return (
            distinct,
            _sum_by_place(places, people, size),
            _sum_by_place(places, entries, size),
        )

    def roll_up_to(self, node: Node) -> Rollups:
        """Return the same for a node and all that are coarser, from the cells of the node."""
        columns = []
        for at, level in enumerate(node):
            group = self.hierarchies[at].groups[level]
            member = np.zeros(self._count_level_groups(at, level), dtype=np.int32)
            member[group] = np.arange(len(group))
            columns.append(member[group[self.frequencies.codes[:, at]]])
        codes, places = merge_codes(np.column_stack(columns).astype(np.int32))
        entries = _sum_by_place(places, self._entries, len(codes))
        return PeopleRollups(self.hierarchies, codes, self._sets.merge(places, len(codes)), entries)


class ClassRollups(Rollups):
    """Classes of rows, in which k counts people: a class needs the rows of k different ones.

    ``base`` has the rows of each tuple, of which several may share one of ``codes``; ``owner``
    says which. A class never has more people than rows, and a part of it no more than the whole, so
    what is too small by rows is too small, and what has too few people has too few at any finer
    node.
    """

    def __init__(
        self,
        hierarchies: Sequence[Hierarchy],
        base: Frequencies,
        sensitive_columns: Sequence[SensitiveColumn],
        codes: Codes,
        sets: PersonSets,
    ) -> None:
        super().__init__(hierarchies, base, sensitive_columns)
        self._sets = sets
        self._tuples = Rollups(hierarchies, Frequencies(codes, sets.counts))

    def count_classes(self, node: Node, *, k: int, limit: int | None = None) -> NodeClasses | None:
        """Return the classes at a node; None if over ``limit`` rows surely must be suppressed."""
        classes = super().count_classes(node, k=k, limit=limit)
        if classes is None:
            return None
        keys, _ = self._tuples._make_keys(node)
        places = np.searchsorted(classes.keys, keys)
        few = self._sets.count_by_key(places, len(classes.keys)) < k
        by_people = replace(classes, lost=classes.lost | few, surely=classes.surely | few)
        if limit is not None and by_people.surely_suppressed > limit:
            return None
        return by_people


def _sum_by_place(places: Places, counts: Counts, size: int) -> Counts:
    """Return the sum of counts at each place; exact below 2**53."""
    return np.bincount(places, weights=counts, minlength=size).astype(np.int64)


def make_rollups(table: CountedTable) -> Rollups:
    """Return the cells at any node from the tuples of a table at level 0, by what it counts."""
    if isinstance(table, PeopleTable):
        return PeopleRollups(table.hierarchies, table.frequencies.codes, table.sets)
    return Rollups(table.hierarchies, table.frequencies)
