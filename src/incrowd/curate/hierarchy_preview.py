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
from incrowd.codes.hierarchy import ROOT, Hierarchy, build_from_rows
from incrowd.engine.count import count_tuples
from incrowd.engine.source import open_spec_table
from incrowd.engine.table import Table
from incrowd.errors import IncrowdError
from incrowd.spec.arx import ArxRows
from incrowd.spec.base import quote_scalar
from incrowd.spec.build import ColumnHierarchies, build_hierarchy, is_open
from incrowd.spec.file import SpecFile
from incrowd.spec.model import Column

MOST = 200  # nodes that are shown


@dataclass(frozen=True)
class TreeLevel:
    """One level: what it shows, in how many groups.

    Of rows that were counted, ``held`` groups have some, and the ``smallest`` of these has so many.
    """

    words: str
    groups: int | None
    held: int | None = None
    smallest: int | None = None


@dataclass(frozen=True)
class TreeNode:
    """A group, or a value: how many values it covers, and how many rows hold them, if counted.

    ``more`` members are not shown.
    """

    label: str
    values: int
    rows: int | None
    members: tuple[TreeNode, ...] = ()
    more: int = 0


@dataclass(frozen=True)
class HierarchyTree:
    """The groups of the highest level with all below them, and each level from fine to coarse.

    ``values`` is how many there are; None if nobody has listed or counted them. ``nulls`` and
    ``outside`` are rows without a value, and with one that is outside the domain.
    """

    column: str
    levels: tuple[TreeLevel, ...]
    top: tuple[TreeNode, ...]
    more: int
    values: int | None
    nulls: int | None = None
    outside: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the tree as plain values, for JSON."""
        return asdict(self)


def build_tree(
    file: SpecFile, name: str, *, with_counts: bool, table: Table | None = None, most: int = MOST
) -> HierarchyTree:
    """Build the tree of a column; the table is read only to count rows."""
    column = require_hierarchy(file, name)
    declared = ColumnHierarchies({name: column}, file.folder)
    words = [declared.describe_level(name, level) for level in range(declared.height(name))]
    if with_counts:
        hierarchy, counts = count_hierarchy_values(file, name, table)
        return _assemble_tree(name, hierarchy, words, counts, most)
    if is_open(column):
        return HierarchyTree(name, tuple(TreeLevel(word, None) for word in words), (), 0, None)
    return _assemble_tree(name, build_hierarchy(column, folder=file.folder), words, None, most)


def _assemble_tree(
    name: str, hierarchy: Hierarchy, words: list[str], counts: Counts | None, most: int
) -> HierarchyTree:
    size, height = len(hierarchy.values), hierarchy.height
    codes = [groups[:size] for groups in hierarchy.groups]
    numbers = [int(level_codes.max()) + 1 for level_codes in codes]
    covers = [
        np.bincount(level_codes, minlength=n) for level_codes, n in zip(codes, numbers, strict=True)
    ]
    rows: list[Counts | None] = [None] * height
    if counts is not None:
        rows = [
            _sum_by_group(level_codes, counts[:size], n)
            for level_codes, n in zip(codes, numbers, strict=True)
        ]
    levels = tuple(map(_summarize_level, words, numbers, rows))
    members = [_list_members(codes[at - 1], codes[at], numbers[at]) for at in range(1, height)]
    shown_members = _choose_shown_members(members, numbers, most)

    def make_node(level: int, code: int) -> TreeNode:
        shown_codes = shown_members[level].get(code, [])
        of = rows[level]
        return TreeNode(
            label=str(hierarchy.labels[level][code]),
            values=int(covers[level][code]),
            rows=None if of is None else int(of[code]),
            members=tuple(make_node(level - 1, below) for below in shown_codes),
            more=len(members[level - 1][code]) - len(shown_codes) if level else 0,
        )

    top = range(min(numbers[-1], most))
    return HierarchyTree(
        column=name,
        levels=levels,
        top=tuple(make_node(height - 1, code) for code in top),
        more=numbers[-1] - len(top),
        values=size,
        nulls=None if counts is None else int(counts[size]),
        outside=None if counts is None else int(counts[size + 1]),
    )


def _summarize_level(words: str, groups: int, rows: Counts | None) -> TreeLevel:
    if rows is None:
        return TreeLevel(words, groups)
    some = rows[rows > 0]
    return TreeLevel(words, groups, len(some), int(some.min()) if len(some) else None)


def _sum_by_group(codes: Codes, counts: Counts, groups: int) -> Counts:
    sums = np.zeros(groups, dtype=np.int64)
    np.add.at(sums, codes, counts)
    return sums


def _list_members(below: Codes, above: Codes, groups: int) -> list[list[int]]:
    """Return the groups of one level that make up each group of the next, in order."""
    members: list[list[int]] = [[] for _ in range(groups)]
    first = np.unique(below, return_index=True)[1]
    for code, owner in zip(below[first].tolist(), above[first].tolist(), strict=True):
        members[owner].append(code)
    return members


def _choose_shown_members(
    members: list[list[list[int]]], numbers: list[int], most: int
) -> list[dict[int, list[int]]]:
    """Choose for each level the members of its groups that are shown."""
    shown_members: list[dict[int, list[int]]] = [{} for _ in numbers]
    parents = list(range(min(numbers[-1], most)))
    left = max(most - len(parents), 0)
    for level in range(len(numbers) - 1, 0, -1):
        children = sum(len(members[level - 1][code]) for code in parents)
        share = left if level == 1 else _allot_nodes(left, children, level)
        each = share // max(len(parents), 1)
        shown_children = {}
        for code in parents:
            inside = members[level - 1][code]
            take = len(inside) if children <= share else min(each, len(inside))
            shown_children[code] = inside[:take]
            left -= take
        shown_members[level] = shown_children
        parents = [code for inside in shown_children.values() for code in inside]
    return shown_members


def _allot_nodes(left: int, children: int, levels: int) -> int:
    """Return how many nodes a level may show, so that some are left for those below it."""
    return children if children * levels <= left else max(left // levels, left // 2)


@dataclass(frozen=True)
class HierarchyPreview:
    """The labels of each value at each level; how many rows hold it, if they were counted."""

    rows: tuple[tuple[str | None, ...], ...]
    counts: tuple[int, ...]
    height: int

    def as_dict(self) -> dict[str, Any]:
        """Return the preview as plain values, for JSON."""
        return {"height": self.height, "rows": list(self.rows), "counts": list(self.counts)}


def preview_hierarchy(file: SpecFile, name: str, *, with_counts: bool) -> HierarchyPreview:
    """List every value of a column's domain with its labels."""
    column = require_hierarchy(file, name)
    if not with_counts and not is_open(column):
        hierarchy = build_hierarchy(column, folder=file.folder)
        rows = hierarchy.list_rows()
        return HierarchyPreview(tuple(rows), (0,) * len(rows), hierarchy.height)
    hierarchy, counts = count_hierarchy_values(file, name)
    shown_codes = [
        code for code in range(len(counts)) if code < len(hierarchy.values) or counts[code]
    ]
    labels = tuple(
        tuple(
            hierarchy.labels[level][hierarchy.groups[level][code]]
            for level in range(hierarchy.height)
        )
        for code in shown_codes
    )
    return HierarchyPreview(
        labels, tuple(int(counts[code]) for code in shown_codes), hierarchy.height
    )


def count_hierarchy_values(
    file: SpecFile, name: str, table: Table | None = None
) -> tuple[Hierarchy, Counts]:
    """Return the hierarchy of a column, and the count of each value, null and outside.

    Without a table, the one that the spec names is read.
    """
    declared = ColumnHierarchies({name: require_hierarchy(file, name)}, file.folder)
    counted_table = count_tuples(open_spec_table(file, table), declared)
    (hierarchy,) = counted_table.hierarchies
    counts = np.zeros(len(hierarchy.values) + 2, dtype=np.int64)
    at_value = dict(zip(hierarchy.groups[0].tolist(), range(len(counts)), strict=True))
    for code, rows_held in zip(
        counted_table.frequencies.codes[:, 0].tolist(),
        counted_table.frequencies.counts.tolist(),
        strict=True,
    ):
        counts[at_value[code]] += rows_held
    return hierarchy, counts


def load_hierarchy(
    file: SpecFile, name: str, *, values_are_public: bool = False, table: Table | None = None
) -> Hierarchy:
    """Return the hierarchy of a column; an open domain holds the values of the table.

    Those are facts about the people in it. In a file they would count as listed beforehand,
    so that they are read only by someone who says that they are public.
    """
    column = require_hierarchy(file, name)
    if is_open(column) and not values_are_public:
        raise IncrowdError(
            f"Column '{name}': the hierarchy lists no values, and values of a file are published, "
            "rare ones included. Keep the rule, or add --values-are-public if all are public."
        )
    values = open_spec_table(file, table).values(name) if is_open(column) else ()
    return build_hierarchy(column, folder=file.folder, values=values)


def format_as_groups(rows: ArxRows) -> str:
    """Return the rows of an ARX file as a ``groups`` (or ``flat``) hierarchy in YAML.

    Values and labels stay the same. The root is left out, because ``groups`` adds it, unless
    it has a name of its own.
    """
    hierarchy = build_from_rows(rows)  # checks that it is one
    named = [row[1:] for row in hierarchy.list_rows()]
    rootless = bool(named[0]) and {row[-1] for row in named} == {ROOT}
    if rootless:
        named = [row[:-1] for row in named]
    values = [row[0] for row in hierarchy.list_rows()]
    if not named[0]:
        return f"{{flat: {{values: [{', '.join(map(quote_scalar, values))}]}}}}"
    tree: dict[str, Any] = {}
    for value, groups in zip(values, named, strict=True):
        node = tree
        for label in reversed(groups[1:]):
            node = node.setdefault(label, {})
        node.setdefault(groups[0], []).append(value)
    if rootless and len(tree) == 1:
        tree = {ROOT: tree}  # a single group is taken for the root, so the root must be named
    return f"{{groups: {_format_flow_yaml(tree)}}}"


def _format_flow_yaml(node: Any) -> str:
    if isinstance(node, list):
        return f"[{', '.join(map(quote_scalar, node))}]"
    return (
        "{"
        + ", ".join(
            f"{quote_scalar(name)}: {_format_flow_yaml(inner)}" for name, inner in node.items()
        )
        + "}"
    )


def require_hierarchy(file: SpecFile, name: str) -> Column:
    """Return a column that has a hierarchy; refuse any other."""
    column = file.spec.columns.get(name)
    if column is None or column.hierarchy is None:
        have = [key for key, entry in file.spec.columns.items() if entry.hierarchy]
        listed = ", ".join(have) or "none"
        raise IncrowdError(
            f"Column '{name}': no hierarchy in the spec. Columns with one: {listed}."
        )
    return column
