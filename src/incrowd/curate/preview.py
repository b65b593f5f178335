"""Look at the hierarchy of a column, with counts if wanted, and write it in other forms.

**The tree.** The hierarchy of a column as a tree: what each level shows, and how many rows each
group holds.

A large domain is folded: of each group some members are shown, and how many there are beside them.
Without counts nothing is read of the table, so that an open domain shows its rule alone.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from incrowd.arrays import Codes, Counts
from incrowd.codes.hierarchy import ROOT, Hierarchy, from_rows
from incrowd.engine.count import count
from incrowd.engine.source import open_for
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.spec.arx import ArxRows
from incrowd.spec.base import quoted
from incrowd.spec.build import Declared, build, is_open
from incrowd.spec.file import SpecFile
from incrowd.spec.model import Column

MOST = 200  # nodes that are shown


@dataclass(frozen=True)
class Level:
    """One level: what it shows, in how many groups.

    Of rows that were counted, ``held`` groups have some, and the ``smallest`` of these has so many.
    """

    words: str
    groups: int | None
    held: int | None = None
    smallest: int | None = None


@dataclass(frozen=True)
class Node:
    """A group, or a value: how many values it covers, and how many rows hold them, if counted.

    ``more`` members are not shown.
    """

    label: str
    values: int
    rows: int | None
    members: tuple[Node, ...] = ()
    more: int = 0


@dataclass(frozen=True)
class Tree:
    """The groups of the highest level with all below them, and each level from fine to coarse.

    ``values`` is how many there are; None if nobody has listed or counted them. ``nulls`` and
    ``outside`` are rows without a value, and with one that is outside the domain.
    """

    column: str
    levels: tuple[Level, ...]
    top: tuple[Node, ...]
    more: int
    values: int | None
    nulls: int | None = None
    outside: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The tree as plain values, for JSON."""
        return asdict(self)


def tree(
    file: SpecFile, name: str, *, counted: bool, table: Table | None = None, most: int = MOST
) -> Tree:
    """The tree of a column; the table, or the one that the spec names, is read to count alone."""
    column = column_of(file, name)
    declared = Declared({name: column}, file.folder)
    words = [declared.words(name, level) for level in range(declared.height(name))]
    if counted:
        hierarchy, counts = held(file, name, table)
        return _grown(name, hierarchy, words, counts, most)
    if is_open(column):
        return Tree(name, tuple(Level(one, None) for one in words), (), 0, None)
    return _grown(name, build(column, folder=file.folder), words, None, most)


def _grown(
    name: str, hierarchy: Hierarchy, words: list[str], counts: Counts | None, most: int
) -> Tree:
    size, height = len(hierarchy.values), hierarchy.height
    codes = [groups[:size] for groups in hierarchy.groups]
    numbers = [int(one.max()) + 1 for one in codes]
    covers = [np.bincount(one, minlength=n) for one, n in zip(codes, numbers, strict=True)]
    rows: list[Counts | None] = [None] * height
    if counts is not None:
        rows = [_sums(one, counts[:size], n) for one, n in zip(codes, numbers, strict=True)]
    levels = tuple(map(_level, words, numbers, rows))
    members = [_members(codes[at - 1], codes[at], numbers[at]) for at in range(1, height)]
    shown = _shown(members, numbers, most)

    def node(level: int, code: int) -> Node:
        kept = shown[level].get(code, [])
        of = rows[level]
        return Node(
            label=str(hierarchy.labels[level][code]),
            values=int(covers[level][code]),
            rows=None if of is None else int(of[code]),
            members=tuple(node(level - 1, below) for below in kept),
            more=len(members[level - 1][code]) - len(kept) if level else 0,
        )

    top = range(min(numbers[-1], most))
    return Tree(
        column=name,
        levels=levels,
        top=tuple(node(height - 1, code) for code in top),
        more=numbers[-1] - len(top),
        values=size,
        nulls=None if counts is None else int(counts[size]),
        outside=None if counts is None else int(counts[size + 1]),
    )


def _level(words: str, groups: int, rows: Counts | None) -> Level:
    if rows is None:
        return Level(words, groups)
    some = rows[rows > 0]
    return Level(words, groups, len(some), int(some.min()) if len(some) else None)


def _sums(codes: Codes, counts: Counts, groups: int) -> Counts:
    sums = np.zeros(groups, dtype=np.int64)
    np.add.at(sums, codes, counts)
    return sums


def _members(below: Codes, above: Codes, groups: int) -> list[list[int]]:
    """The groups of one level that each of the next one up is made of, in order."""
    found: list[list[int]] = [[] for _ in range(groups)]
    first = np.unique(below, return_index=True)[1]
    for code, owner in zip(below[first].tolist(), above[first].tolist(), strict=True):
        found[owner].append(code)
    return found


def _shown(
    members: list[list[list[int]]], numbers: list[int], most: int
) -> list[dict[int, list[int]]]:
    """For each level the members of its groups that are shown: each level gets its share."""
    shown: list[dict[int, list[int]]] = [{} for _ in numbers]
    parents = list(range(min(numbers[-1], most)))
    left = max(most - len(parents), 0)
    for level in range(len(numbers) - 1, 0, -1):
        wanted = sum(len(members[level - 1][code]) for code in parents)
        share = left if level == 1 else _share(left, wanted, level)
        each = share // max(len(parents), 1)
        kept = {}
        for code in parents:
            inside = members[level - 1][code]
            take = len(inside) if wanted <= share else min(each, len(inside))
            kept[code] = inside[:take]
            left -= take
        shown[level] = kept
        parents = [code for inside in kept.values() for code in inside]
    return shown


def _share(left: int, wanted: int, levels: int) -> int:
    """How many nodes a level may show, so that some are left for those below it."""
    return wanted if wanted * levels <= left else max(left // levels, left // 2)


@dataclass(frozen=True)
class Preview:
    """The labels of each value at each level; how many rows hold it, if they were counted."""

    rows: tuple[tuple[str | None, ...], ...]
    counts: tuple[int, ...]
    height: int

    def as_dict(self) -> dict[str, Any]:
        """The preview as plain values, for JSON."""
        return {"height": self.height, "rows": list(self.rows), "counts": list(self.counts)}


def preview(file: SpecFile, name: str, *, counted: bool) -> Preview:
    """Every value of a column's domain with its labels; null and outside if rows hold them."""
    column = column_of(file, name)
    if not counted and not is_open(column):
        hierarchy = build(column, folder=file.folder)
        rows = hierarchy.rows()
        return Preview(tuple(rows), (0,) * len(rows), hierarchy.height)
    hierarchy, counts = held(file, name)
    shown = [code for code in range(len(counts)) if code < len(hierarchy.values) or counts[code]]
    labels = tuple(
        tuple(
            hierarchy.labels[level][hierarchy.groups[level][code]]
            for level in range(hierarchy.height)
        )
        for code in shown
    )
    return Preview(labels, tuple(int(counts[code]) for code in shown), hierarchy.height)


def held(file: SpecFile, name: str, table: Table | None = None) -> tuple[Hierarchy, Counts]:
    """The hierarchy of a column, and how many rows hold each value, null, and what is outside.

    Without a table, the one that the spec names is read.
    """
    declared = Declared({name: column_of(file, name)}, file.folder)
    result = count(open_for(file, table), declared)
    (hierarchy,) = result.hierarchies
    counts = np.zeros(len(hierarchy.values) + 2, dtype=np.int64)
    at_value = dict(zip(hierarchy.groups[0].tolist(), range(len(counts)), strict=True))
    for code, rows_held in zip(
        result.frequencies.codes[:, 0].tolist(), result.frequencies.counts.tolist(), strict=True
    ):
        counts[at_value[code]] += rows_held
    return hierarchy, counts


def hierarchy_of(
    file: SpecFile, name: str, *, values_are_public: bool = False, table: Table | None = None
) -> Hierarchy:
    """The hierarchy of a column; an open domain holds the values of the table, or the spec's.

    Those are facts about the people in it. In a file they would count as listed beforehand,
    so that they are read only by someone who says that they are public.
    """
    column = column_of(file, name)
    if is_open(column) and not values_are_public:
        raise IncrowdError(
            f"Column '{name}': the hierarchy lists no values, and values of a file are published, "
            "rare ones included. Keep the rule, or add --values-are-public if all are public."
        )
    values = open_for(file, table).values(name) if is_open(column) else ()
    return build(column, folder=file.folder, values=values)


def as_groups(rows: ArxRows) -> str:
    """The rows of an ARX file as a ``groups`` hierarchy in YAML (``flat`` if there are none).

    Values and labels stay the same. The root is left out, because ``groups`` adds it, unless
    it has a name of its own.
    """
    hierarchy = from_rows(rows)  # checks that it is one
    named = [row[1:] for row in hierarchy.rows()]
    rootless = bool(named[0]) and {row[-1] for row in named} == {ROOT}
    if rootless:
        named = [row[:-1] for row in named]
    values = [row[0] for row in hierarchy.rows()]
    if not named[0]:
        return f"{{flat: {{values: [{', '.join(map(quoted, values))}]}}}}"
    tree: dict[str, Any] = {}
    for value, groups in zip(values, named, strict=True):
        node = tree
        for label in reversed(groups[1:]):
            node = node.setdefault(label, {})
        node.setdefault(groups[0], []).append(value)
    if rootless and len(tree) == 1:
        tree = {ROOT: tree}  # a single group is taken for the root, so the root must be named
    return f"{{groups: {_flow(tree)}}}"


def _flow(node: Any) -> str:
    if isinstance(node, list):
        return f"[{', '.join(map(quoted, node))}]"
    return "{" + ", ".join(f"{quoted(name)}: {_flow(inner)}" for name, inner in node.items()) + "}"


def column_of(file: SpecFile, name: str) -> Column:
    """A column that has a hierarchy; refuses any other."""
    column = file.spec.columns.get(name)
    if column is None or column.hierarchy is None:
        have = [key for key, entry in file.spec.columns.items() if entry.hierarchy]
        listed = ", ".join(have) or "none"
        raise IncrowdError(
            f"Column '{name}': no hierarchy in the spec. Columns with one: {listed}."
        )
    return column
