"""Groups by hand: rows of a hierarchy, as in an ARX file, before and after a click.

A row is a value with its label at every level, the root at the last. What is in no group yet is a
group of its own, so that every value has as many levels as any other. Levels nest before and after.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from incrowd.codes.hierarchy import ROOT
from incrowd.codes.values import canonicalize_value
from incrowd.errors import IncrowdError
from incrowd.spec.arx import ArxRows

MOST_SHOWN = 400  # members that a page lists


@dataclass(frozen=True)
class Group:
    """A group of one level and what it is made of: groups of the level below, or values.

    ``own`` marks what nobody has put anywhere: a single member of the same name.
    """

    name: str
    members: tuple[str, ...]
    hidden: int = 0

    @property
    def is_single(self) -> bool:
        """Whether it is only itself."""
        return self.members == (self.name,) and not self.hidden


def list_levels(rows: ArxRows) -> range:
    """Return the levels whose groups can be changed: between the values and the root."""
    return range(1, len(rows[0]) - 1)


def list_groups(rows: ArxRows, level: int, find: str = "", most: int = MOST_SHOWN) -> list[Group]:
    """List the groups of a level with their members; those that hold a text, if given."""
    members_by_group: dict[str, dict[str, None]] = {}
    for row in rows:
        members_by_group.setdefault(row[level], {})[row[level - 1]] = None
    groups, left = [], most
    for name, members in members_by_group.items():
        request = [member for member in members if find.lower() in member.lower()]
        if find and not request:
            continue
        groups.append(Group(name, tuple(request[:left]), len(members) - min(len(request), left)))
        left -= min(len(request), left)
    return sorted(groups, key=lambda group: group.is_single)


def move_to_group(rows: ArxRows, level: int, members: Collection[str], name: str) -> ArxRows:
    """Move members of a level to the group of this name, a new one or an existing one.

    A group that is there keeps what it belongs to; a new one belongs to what its first member did.
    """
    name = name.strip()
    if not members:
        raise IncrowdError("Select values first.")
    if not name:
        raise IncrowdError("Give the group a name.")
    above = next((row[level + 1 :] for row in rows if row[level] == name), None)
    if above is None:
        above = next((row[level + 1 :] for row in rows if row[level - 1] in members), None)
    if above is None:
        raise IncrowdError("The selected values no longer exist.")
    return [(*row[:level], name, *above) if row[level - 1] in members else row for row in rows]


def remove_from_groups(rows: ArxRows, level: int, members: Collection[str]) -> ArxRows:
    """Take members out of their groups; each becomes a group of its own."""
    if not members:
        raise IncrowdError("Select values first.")
    return [
        (*row[:level], row[level - 1], *row[level + 1 :]) if row[level - 1] in members else row
        for row in rows
    ]


def rename_group(rows: ArxRows, level: int, old: str, new: str) -> ArxRows:
    """Rename a group; the name of another group merges them."""
    members = {row[level - 1] for row in rows if row[level] == old}
    return move_to_group(rows, level, members, new)


def add_level(rows: ArxRows) -> ArxRows:
    """Add a level below the root, where each group is one of its own: groups of groups."""
    return [(*row[:-1], row[-2], row[-1]) for row in rows]


def remove_level(rows: ArxRows, level: int) -> ArxRows:
    """Remove one level."""
    return [(*row[:level], *row[level + 1 :]) for row in rows]


def add_values(rows: ArxRows, values: Iterable[str], group: str) -> ArxRows:
    """Add further values, in a group of level 1, or each by itself."""
    old_values = {row[0] for row in rows}
    new = [
        text for value in values if (text := canonicalize_value(value)) and text not in old_values
    ]
    new = list(dict.fromkeys(new))
    if not new:
        raise IncrowdError("Enter new values, one per line.")
    root, height = rows[0][-1], len(rows[0])
    group = group.strip()
    above = next((row[1:] for row in rows if group and height > 2 and row[1] == group), None)
    return [
        *rows,
        *((text, *(above or ((group or text,) * (height - 2) + (root,)))) for text in new),
    ]


def remove_values(rows: ArxRows, values: Collection[str]) -> ArxRows:
    """Remove values from the domain."""
    left = [row for row in rows if row[0] not in values]
    if not left:
        raise IncrowdError("Keep at least one value.")
    return left


def add_root(rows: Sequence[Sequence[str]]) -> ArxRows:
    """Add the root where it is missing: one last label for all rows."""
    single = len(rows[0]) > 1 and len({row[-1] for row in rows}) == 1
    return [tuple(row) if single else (*row, ROOT) for row in rows]
