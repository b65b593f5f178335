"""The words of a certificate on the levels of a column: written with it, and checked with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from incrowd.codes.hierarchy import Hierarchy
from incrowd.codes.level_words import (
    NOTHING,
    describe_levels,
    describe_mask_levels,
    list_open_ends,
)
from incrowd.errors import IncrowdError
from incrowd.spec.hierarchies import HierarchyChoice

if TYPE_CHECKING:
    from incrowd.release.certificate import SchemeColumn


@dataclass(frozen=True)
class SchemeWords:
    """What each level of a column shows, how many labels it has, and which of them are open.

    ``open_ends`` are labels of the published level without a lower or an upper end. An unlisted
    domain has no ``sizes``.
    """

    shows: list[str]
    sizes: list[int]
    open_ends: list[str]


def describe_listed(hierarchy: Hierarchy, level: int | None) -> SchemeWords:
    """Return the words for a listed hierarchy; without a level, for labels of any level."""
    labels = hierarchy.labels[level or 0]
    sizes = [int(groups[: len(hierarchy.values)].max()) + 1 for groups in hierarchy.groups]
    return SchemeWords(describe_levels(hierarchy), sizes, list_open_ends(labels))


def describe_rule(rule: HierarchyChoice) -> SchemeWords:
    """Return the words for a rule, whose values are not listed."""
    if rule.mask is not None:
        return SchemeWords(describe_mask_levels(rule.mask.length, rule.mask.hide), [], [])
    return SchemeWords(["values that are not listed", NOTHING], [], [])


def refuse_other_words(name: str, column: SchemeColumn, words: SchemeWords) -> None:
    """Refuse words that do not follow from the scheme.

    Raises:
        IncrowdError: If the certificate describes the levels of a column otherwise.

    """
    if words != SchemeWords(column.shows, column.sizes, column.open_ends):
        raise IncrowdError(f"the levels of '{name}' are described otherwise than they are")
