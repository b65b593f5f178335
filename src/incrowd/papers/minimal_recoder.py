"""A minimal hierarchical local recoder, kept as the baseline for downcoding.

Every record is generalized along given hierarchies, each by itself, until at least k look alike.
It starts with all records at the roots and specializes as long as it can: what most tools call
quality, and what tells an attacker that everything left general had to be.

**Claim.** The result is k-anonymous, and *minimal*: no records of one class can be specialized by
one step in one column so that it stays k-anonymous.

Proof. A step takes records of a class of s into classes of the groups one level below, with t_i
records there already and m_i that come. The result is k-anonymous if and only if t_i + m_i >= k
wherever m_i > 0, and none or at least k of the s stay. If at least k stay, the step that takes
only one of the groups is k-anonymous as well, since more stay; it is there if and only if
max(1, k - t) <= min(c, s - k) for the c records of some group. If none stay, all c_i go. Both are
tried for every class and column; the last pass found neither. Each step lowers the sum of levels,
so there is a last pass.

(Cohen, "Attacks on Deidentification's Defenses", 2022, calls a table minimal if no finer one is
k-anonymous at all. Such a table is minimal here too, so what follows from this follows from that.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from incrowd.arrays import Codes, Counts, Members, Places
from incrowd.codes.hierarchy import Hierarchy
from incrowd.errors import ParameterError, check_whole

Label: TypeAlias = tuple[tuple[int, int], ...]  # of each column the level, and the code there


@dataclass(frozen=True, eq=False)
class RecodedClasses:
    """What is published: of each class the level and code of every column, and its rows."""

    levels: Codes
    codes: Codes
    counts: Counts


@dataclass(frozen=True, eq=False)
class Recoding:
    """What is published, and what is not: the class of each record."""

    classes: RecodedClasses
    members: Members


def recode_minimally(hierarchies: Sequence[Hierarchy], codes: Codes, *, k: int) -> Recoding:
    """Return the minimal recoding of records, given by their codes of level 0.

    Of several steps that are possible, the one in the first column is taken.
    """
    check_whole("k", k)
    if len(codes) < k:
        raise ParameterError("k", f"be at most the number of rows ({len(codes)})", k)
    if not all(hierarchy.is_rooted for hierarchy in hierarchies):
        raise ParameterError("hierarchies", "each have a single root", "one without")
    rows_by_label = _Recoder(hierarchies, codes, k).run()
    labels = np.array(list(rows_by_label), dtype=np.int32)
    members = np.empty(len(codes), dtype=np.int64)
    for number, rows in enumerate(rows_by_label.values()):
        members[rows] = number
    classes = RecodedClasses(labels[:, :, 0], labels[:, :, 1], np.bincount(members))
    return Recoding(classes, members)


class _Recoder:
    """The records of each class, by its label."""

    def __init__(self, hierarchies: Sequence[Hierarchy], codes: Codes, k: int) -> None:
        self._hierarchies, self._codes, self._k = hierarchies, codes, k
        top = tuple((hierarchy.height - 1, 0) for hierarchy in hierarchies)
        self._classes: dict[Label, Places] = {top: np.arange(len(codes))}

    def run(self) -> dict[Label, Places]:
        """Specialize until no class allows a step."""
        waiting = list(self._classes)
        while waiting:
            has_stepped = False
            while waiting:
                label = waiting.pop()
                changed_classes = self._take_step(label) if label in self._classes else []
                has_stepped = has_stepped or bool(changed_classes)
                waiting += changed_classes
            # A class that grew may take in records that it could not before: one more pass.
            waiting = list(self._classes) if has_stepped else []
        return self._classes

    def _take_step(self, label: Label) -> list[Label]:
        """Take one step in a class, if there is one; return the classes that it changed."""
        for groups in self._list_groups(label):
            moves = self._choose_moves(label, groups)
            if moves:
                moved_rows = np.concatenate(list(moves.values()))
                remaining_rows = np.setdiff1d(self._classes[label], moved_rows)
                for target, rows in moves.items():
                    target_rows = self._classes.get(target, np.zeros(0, dtype=np.int64))
                    self._classes[target] = np.concatenate([target_rows, rows])
                if len(remaining_rows):
                    self._classes[label] = remaining_rows
                    return [label, *moves]
                del self._classes[label]
                return list(moves)
        return []

    def _list_groups(self, label: Label) -> Iterator[dict[Label, Places]]:
        """Yield, for each column above its values, the class's records by their groups below."""
        rows = self._classes[label]
        for at, (level, _) in enumerate(label):
            if level:
                below = self._hierarchies[at].groups[level - 1][self._codes[rows, at]]
                yield {
                    (*label[:at], (level - 1, int(code)), *label[at + 1 :]): rows[below == code]
                    for code in np.unique(below)
                }

    def _choose_moves(self, label: Label, groups: dict[Label, Places]) -> dict[Label, Places]:
        """Choose which records go to which class; none if no step leaves it k-anonymous."""
        target_sizes = {target: len(self._classes.get(target, ())) for target in groups}
        if all(target_sizes[target] + len(rows) >= self._k for target, rows in groups.items()):
            return groups
        for target, rows in groups.items():
            limit = min(len(rows), len(self._classes[label]) - self._k)
            if limit >= max(1, self._k - target_sizes[target]):
                return {target: rows[:limit]}
        return {}
