"""Listed values that differ only in case or spaces: probably one value, spelled in several ways."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from incrowd.findings import Finding, make_finding
from incrowd.spec.hierarchies import Flat, Groups, Order
from incrowd.spec.model import Column

_SHOWN = 5


def find_alike_values(name: str, column: Column) -> Iterator[Finding]:
    """Find the values that a hierarchy lists in several spellings.

    Groups that join them change nothing at level 0, where each spelling is a value of its own.
    """
    declared = column.hierarchy.declaration if column.hierarchy is not None else None
    values: Iterable[str] = ()
    if isinstance(declared, Flat | Order):
        values = declared.values
    elif isinstance(declared, Groups):
        values = dict.fromkeys(_list_members(declared.root))
    if alike := group_alike_values(values):
        listed = [" and ".join(f"'{value}'" for value in group) for group in alike]
        more = max(len(listed) - _SHOWN, 0)
        yield make_finding("VALUES_ALIKE", name, listed=listed[:_SHOWN], more=more)


def _list_members(groups: Any) -> Iterator[str]:
    """Yield the values of groups, and of groups within groups."""
    if isinstance(groups, dict | list | tuple):
        for member in groups.values() if isinstance(groups, dict) else groups:
            yield from _list_members(member)
    elif groups is not None:
        yield str(groups)


def group_alike_values(values: Iterable[str]) -> list[list[str]]:
    """Return the groups of two or more values that differ only in case or spaces.

    >>> group_alike_values(["North", "north", "South", "new  town", "New Town"])
    [['North', 'north'], ['new  town', 'New Town']]
    """
    groups: dict[str, list[str]] = {}
    for value in values:
        groups.setdefault("".join(value.casefold().split()), []).append(value)
    return [group for group in groups.values() if len(group) > 1]
