"""The words of a certificate on the levels of a column: written with it, and checked with it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from incrowd.codes.hierarchy import ROOT, Hierarchy
from incrowd.codes.level_words import (
    NOTHING,
    describe_levels,
    describe_mask_levels,
    list_open_ends,
)
from incrowd.errors import IncrowdError
from incrowd.release.certificate import AbsentLabels, SchemeColumn
from incrowd.spec.hierarchies import HierarchyChoice

_MOST_NAMED = 3  # absent labels that are named one by one


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


def find_absent(
    hierarchy: Hierarchy, level: int | None, published: Collection[str | None]
) -> AbsentLabels | None:
    """Return the listed labels of a level that no published row shows; None if each is shown.

    A level that hides everything has no labels, and local recoding has no level.
    """
    if level is None:
        return None
    listed = dict.fromkeys(label for label in hierarchy.labels[level][:-2] if label is not None)
    absent = [label for label in listed if label != ROOT and label not in published]
    return AbsentLabels(number=len(absent), first=absent[:_MOST_NAMED]) if absent else None


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
