"""Look at the hierarchy of a column, with counts if wanted, and write it in other forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from incrowd.arrays import Counts
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
